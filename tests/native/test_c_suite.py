"""Builds the C tests of native/tests and runs each one: plain, under the sanitizers, and with a second compiler."""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
PROGRAMS = sorted(path.stem for path in (NATIVE / "tests").glob("test_*.c"))
BUILD_SECONDS = 240
RUN_SECONDS = 100


@dataclass(frozen=True)
class Variant:
    """One way of compiling the core and its tests."""

    name: str
    compiler: str | None
    sanitize: bool


VARIANTS = [Variant("plain", None, False), Variant("sanitized", None, True), Variant("clang", "clang", False)]


def command(name: str) -> str:
    """Finds a build tool, first beside the interpreter: that is the one whose version the project asks for."""
    path = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    assert path is not None, f"{name} is not installed; pip install 'shmq[test]' brings it"
    return path


def call(*words: str | Path) -> None:
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert result.returncode == 0, f"{' '.join(map(str, words))}\n{result.stdout}"


@functools.cache
def built(variant: Variant) -> Path:
    """Builds a variant once per process, one process at a time, and returns its directory."""
    directory = ROOT / "build" / f"c-tests-{variant.name}"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = [
            "-DSHMQ_BUILD_PYTHON=OFF",
            "-DSHMQ_BUILD_TESTS=ON",
            "-DSHMQ_WERROR=ON",
            f"-DSHMQ_SANITIZE={'ON' if variant.sanitize else 'OFF'}",
            f"-DCMAKE_MAKE_PROGRAM={command('ninja')}",
        ]
        if variant.compiler is not None:
            options.append(f"-DCMAKE_C_COMPILER={variant.compiler}")
        call(command("cmake"), "-S", NATIVE, "-B", directory, "-G", "Ninja", *options)
        call(command("cmake"), "--build", directory)
    return directory


@pytest.mark.timeout(600)  # the first test of a variant builds it, or waits for the worker that does
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_program_passes(variant: Variant, program: str, tool: Callable[[str], str], tmp_path: Path) -> None:
    if variant.compiler is not None:
        tool(variant.compiler)
    environment = dict(
        os.environ,
        TMPDIR=str(tmp_path),
        ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
    )
    result = subprocess.run(
        [built(variant) / program],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=RUN_SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}"


def test_the_core_has_c_tests() -> None:
    assert PROGRAMS, "native/tests holds no test_*.c"
