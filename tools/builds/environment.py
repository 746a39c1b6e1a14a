"""Keeps the virtual environment of this checkout up to date and runs commands in it.

    tools/interpreter tools/builds/environment.py [--without-tools] [--spark] COMMAND [ARGUMENT...]

--without-tools: only what shmq itself needs; else also what tests, checks and formatters need.
--spark: also PySpark, and a Java where there is none that Spark can use.

The environment is `.venv` in the checkout (SHMQ_VENV names another directory). It holds shmq as an editable install, so
a change of Python code needs nothing. A change of pyproject.toml, of anything in native/ or of the interpreter leads to
a rebuild at the next start. Only the standard library is used here: this runs before anything is installed.
"""

import fcntl
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(os.environ.get("SHMQ_VENV", ROOT / ".venv")).absolute()
STAMP = VENV / "shmq-stamp.json"
ADDITIONS = ("tools", "spark", "tables")  # parts of the environment that not every command needs
BUILDERS = ("cmake", "ninja")  # of the tools those that a build needs
NO_INDEX = (
    " pip needs an index of packages: name one that this machine reaches (PIP_INDEX_URL=https://...), a proxy "
    "(HTTPS_PROXY=http://...), or a directory with the wheels (PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels)."
)
DEBIAN_REMEDY = "Debian, Ubuntu: apt-get install"


class Unusable(Exception):
    """The environment cannot be made; the text says what is missing and how to get it."""


def missing_requirements() -> Iterator[str]:
    """Yields one sentence with its remedy for each thing that a build needs and this machine has not."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as error:
        yield f"{sys.executable} has no module {error.name}. {DEBIAN_REMEDY} python{version}-venv"
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        yield f"The C headers of {sys.executable} are missing (no {include}/Python.h). {DEBIAN_REMEDY} python3-dev"
    compilers = [os.environ["CC"].split()[0]] if os.environ.get("CC", "").strip() else ["cc", "gcc", "clang"]
    if not any(shutil.which(compiler) for compiler in compilers):
        yield f"No C compiler was found (tried: {', '.join(compilers)}). {DEBIAN_REMEDY} gcc libc6-dev, or set CC"


def digest(paths: Sequence[Path]) -> str:
    """Returns one hash over the names and the content of the files."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def warnings_are_errors() -> bool:
    return os.environ.get("SHMQ_WERROR", "").upper() in {"1", "ON", "TRUE", "YES"}


def wanted_stamp(*, tools: bool = True, spark: bool = False) -> dict[str, str]:
    """Describes the environment as it has to be; the parts lead to different depths of a rebuild."""
    python = f"{sys.version} {os.path.realpath(sys.executable)} {ROOT}"
    project = digest([ROOT / "pyproject.toml", ROOT / "shmq" / "version.py"])
    native = digest([path for path in (ROOT / "native").rglob("*") if path.is_file()])
    wanted = {"python": python, "project": project, "native": f"{native} werror={warnings_are_errors()}"}
    additions = {"tools": tools, "spark": spark, "tables": tools and spark}
    return {**wanted, **{part: project for part, asked in additions.items() if asked}}


def found_stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and (VENV / "bin" / "python").exists() else {}


def is_current(found: dict[str, str], wanted: dict[str, str]) -> bool:
    """Whether what was found is all that is wanted; there may be more."""
    return wanted.items() <= found.items()


def run(*command: str | Path, remedy: str = "") -> None:
    """Runs one step of the build; its output, and what may help, is shown only when it fails."""
    result = subprocess.run(
        command, cwd=ROOT, env=activated(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        sys.stderr.buffer.write(result.stdout)
        text = " ".join(str(word) for word in command)
        raise Unusable(f"`{text}` failed with exit code {result.returncode}; its output stands above.{remedy}")


def activated() -> dict[str, str]:
    """Returns the variables for a command in the environment."""
    variables = dict(os.environ, VIRTUAL_ENV=str(VENV), PIP_DISABLE_PIP_VERSION_CHECK="1")
    variables["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables.pop("PYTHONHOME", None)
    # Else each of the thousands of processes that tests start compiles all modules of shmq anew.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def build(wanted: dict[str, str], found: dict[str, str]) -> None:
    """Brings the environment from the found stamp to the wanted one.

    The stamp grows with each finished part. So an interrupted build or an error of the compiler costs only the parts
    that were not reached.
    """
    problems = list(missing_requirements())
    if problems:
        raise Unusable("\n".join(problems))
    done: dict[str, str] = {}
    if found.get("python") == wanted["python"]:
        done = {part: found[part] for part in ADDITIONS if part in found}  # stay, though this start may not need them
    STAMP.unlink(missing_ok=True)
    if found.get("python") != wanted["python"]:
        report(f"making {VENV} with Python {sys.version.split()[0]}")
        run(sys.executable, "-m", "venv", "--clear", VENV)
        found, done = {}, {}
    record(done, wanted, "python")
    pip: list[str | Path] = [VENV / "bin" / "python", "-m", "pip", "install", "--quiet"]
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)
    project = declared["project"]
    extras = project["optional-dependencies"]
    tools = extras["test"]
    if found.get("project") != wanted["project"]:
        report("installing what the build and shmq need")
        builders = [each for each in tools if each.startswith(BUILDERS)]
        run(*pip, *declared["build-system"]["requires"], *builders, *project["dependencies"], remedy=NO_INDEX)
    record(done, wanted, "project")
    if any(found.get(part) != wanted[part] for part in ("project", "native")):
        report("building the native core")
        run(*pip, "--no-build-isolation", "--no-deps", *build_options(), "--editable", ".")
    record(done, wanted, "native")
    if "tools" in wanted and found.get("tools") != wanted["tools"]:
        report("installing what the tests and tools need")
        run(*pip, *tools, remedy=NO_INDEX)
        record(done, wanted, "tools")
    if "spark" in wanted and found.get("spark") != wanted["spark"]:
        report("installing PySpark: half a gigabyte, which takes some minutes")
        run(*pip, *extras["spark"], remedy=NO_INDEX)
        # Spark's workers look here first, and compile the modules that they find in it, a second for each. Without it
        # they import the same modules from the package.
        for archive in VENV.glob("lib/python*/site-packages/pyspark/python/lib/pyspark.zip"):
            archive.unlink()
        if not has_java():
            report("installing a Java for Spark: this machine has none of version 17 or later")
            run(*pip, *extras["spark-jvm"], remedy=NO_INDEX)
        record(done, wanted, "spark")
    if "tables" in wanted and found.get("tables") != wanted["tables"]:
        report("installing what programs of docs/spark.md and docs/arrow.md need")
        try:
            run(*pip, *extras["test-tables"])
        except Unusable:  # they are not for every Python, nor in every index; without them some programs are not run
            report(f"going on without {', '.join(extras['test-tables'])}")
        record(done, wanted, "tables")


def has_java() -> bool:
    """Whether shmq, which is installed by now, finds a Java that Spark can use."""
    command: list[str | Path] = [VENV / "bin" / "python", "-c", "from shmq.spark.jvm import find_jvm; find_jvm()"]
    return subprocess.run(command, cwd=ROOT, env=activated(), capture_output=True).returncode == 0


def record(done: dict[str, str], wanted: dict[str, str], part: str) -> None:
    done[part] = wanted[part]
    STAMP.write_text(json.dumps(done, indent=1))


def build_options() -> list[str]:
    options = ["--config-settings", f"cmake.define.SHMQ_WERROR={'ON' if warnings_are_errors() else 'OFF'}"]
    if VENV != ROOT / ".venv":
        # Two environments of one checkout must not meet in one build directory.
        options += ["--config-settings", f"build-dir={VENV / 'build'}"]
    return options


def report(text: str) -> None:
    print(f"shmq: {text}", file=sys.stderr, flush=True)


@contextmanager
def prepared(*, tools: bool = True, spark: bool = False) -> Iterator[None]:
    """Makes the environment current and keeps it from being rebuilt inside the `with` block.

    Users hold the lock shared, a build holds it alone. So concurrent starts build once, and no build replaces the
    extension module under a running suite.
    """
    VENV.parent.mkdir(parents=True, exist_ok=True)
    with VENV.with_name(f"{VENV.name}.lock").open("w") as lock:
        acquire(lock.fileno(), fcntl.LOCK_SH)
        while not is_current(found_stamp(), wanted_stamp(tools=tools, spark=spark)):
            acquire(lock.fileno(), fcntl.LOCK_EX)
            # While this start waited for the lock, another one may have done the work.
            wanted, found = wanted_stamp(tools=tools, spark=spark), found_stamp()
            if not is_current(found, wanted):
                build(wanted, found)
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def acquire(descriptor: int, kind: int) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        report(f"waiting for another command that uses {VENV}")
        fcntl.flock(descriptor, kind)


def main(arguments: Sequence[str]) -> int:
    options = list(itertools.takewhile({"--without-tools", "--spark"}.__contains__, arguments))
    arguments = arguments[len(options) :]
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with prepared(tools="--without-tools" not in options, spark="--spark" in options):
            program = shutil.which(arguments[0], path=activated()["PATH"])
    except Unusable as error:
        print(f"shmq: {error}", file=sys.stderr)
        return 1
    if program is None:
        print(f"shmq: there is no command {arguments[0]} in {VENV}", file=sys.stderr)
        return 127
    # The lock is given back first: a demonstration may run for days and must not hold up a build.
    os.execve(program, [program, *arguments[1:]], activated())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
