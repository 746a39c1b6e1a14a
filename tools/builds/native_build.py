"""Builds the C core and its tests in one of several ways, below build/ of a tree."""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 400


class BuildFailed(Exception):
    """A step of a build failed; the text is its output."""


@dataclass(frozen=True)
class Variant:
    """One way of compiling the core and its tests."""

    name: str
    compiler: str | None = None
    sanitize: str = ""
    seam: str = ""  # header in place of the atomic accesses, below native/
    coverage: bool = False
    binding: bool = False  # the extension module, too


PLAIN = Variant("plain")
SANITIZED = Variant("sanitized", compiler="gcc", sanitize="address", binding=True)
CLANG = Variant("clang", compiler="clang")
RACE = Variant("race", compiler="gcc", sanitize="thread", seam="race/weakened.h", binding=True)
WEAK = Variant("weak", compiler="gcc", seam="weak/seam.h")
WEAK_COVERAGE = Variant("weak-coverage", compiler="gcc", seam="weak/seam.h", coverage=True)
COVERAGE = Variant("coverage", compiler="gcc", coverage=True)


def programs(root: Path = ROOT) -> list[str]:
    """The names of all C test programs."""
    return sorted(path.stem for path in (root / "native" / "tests").glob("*/test_*.c"))


def command(name: str) -> str:
    """Finds a build tool, first beside the interpreter: that is the one whose version the project asks for."""
    path = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if path is None:
        raise BuildFailed(f"{name} is not installed; pip install 'shmq[test]' brings it")
    return path


def call(*words: str | Path) -> None:
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_SECONDS, check=False
    )
    if result.returncode != 0:
        raise BuildFailed(f"{' '.join(map(str, words))}\n{result.stdout}")


@functools.cache
def built(variant: Variant, root: Path = ROOT, targets: tuple[str, ...] = ()) -> Path:
    """Builds a variant once per process, one process at a time, and returns its directory."""
    directory = root / "build" / f"c-tests-{variant.name}"
    native = root / "native"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = [
            f"-DSHMQ_BUILD_PYTHON={'ON' if variant.binding else 'OFF'}",
            f"-DPython_EXECUTABLE={sys.executable}",
            "-DSHMQ_BUILD_TESTS=ON",
            "-DSHMQ_WERROR=ON",
            f"-DSHMQ_SANITIZE={variant.sanitize}",
            f"-DSHMQ_ATOMIC_SEAM={native / variant.seam if variant.seam else ''}",
            f"-DSHMQ_COVERAGE={'ON' if variant.coverage else 'OFF'}",
            f"-DCMAKE_MAKE_PROGRAM={command('ninja')}",
        ]
        if variant.compiler is not None:
            options.append(f"-DCMAKE_C_COMPILER={variant.compiler}")
        call(command("cmake"), "-S", native, "-B", directory, "-G", "Ninja", *options)
        chosen = ["--target", *targets] if targets else []
        call(command("cmake"), "--build", directory, *chosen)
    return directory
