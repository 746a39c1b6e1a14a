"""Puts known faults into a copy of the C core, one at a time, and says which check finds each.

    tools/mutants [--only NAME]... [--all-checks] [--json] [--list]

The faults stand in tools/mutants.toml: an edit of one file, and the checks to try, the quickest first. Each is built in
a temporary copy of the tree, and the first check that fails kills it. The option --all-checks goes on behind the first,
to see all that find it. The exit code is 1 if a mutant lives, 2 for a mistake in the table or in the call.

Checks:
    c:PROGRAM       a program of native/tests, plain
    race:PROGRAM    the same under ThreadSanitizer
    weak:SCENARIO   a scenario of native/weak in the simulator of weak memory
    py:FILE         tests of Python against a core with the fault

Examples:
    tools/mutants --only publish-orders-nothing
    tools/mutants --json | jq '.[] | select(.killed_by == null)'
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from builds.native_build import PLAIN, RACE, ROOT, WEAK, BuildFailed, built, call, command, programs
from checks import figures

TABLE = ROOT / "tools" / "mutants.toml"
KINDS = ("c", "race", "weak", "py")
CHECK_SECONDS = 120
RACE_TRIES = 4


@dataclass(frozen=True)
class Mutant:
    """One fault: `old`, which stands in `file` exactly once, becomes `new`."""

    name: str
    what: str
    file: str
    old: str
    new: str
    checks: list[str]


@dataclass
class Outcome:
    """The outcome of a mutant."""

    name: str
    what: str
    killed_by: str | None
    all_killers: list[str]
    seconds: float
    detail: str


def read_table() -> list[Mutant]:
    return [Mutant(**entry) for entry in tomllib.loads(TABLE.read_text())["mutant"]]


def mistake_in(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why this entry cannot be used: the code has moved on, or a check does not exist."""
    text = (root / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        return f"{mutant.name}: its text stands in {mutant.file} {text.count(mutant.old)} times, not once"
    if mutant.old == mutant.new:
        return f"{mutant.name}: changes nothing"
    for check in mutant.checks:
        kind, _, name = check.partition(":")
        there = {
            "c": name in programs(root),
            "race": name in programs(root),
            "weak": (root / "native" / "weak" / "scenarios" / f"{name}.c").exists(),
            "py": (root / name.partition("::")[0]).exists(),
        }
        if not there.get(kind, False):
            return f"{mutant.name}: there is no check {check}"
    return None if mutant.checks else f"{mutant.name}: names no check"


class Copy:
    """A copy of the tree in which one file at a time is changed, and builds go on from the last one."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "tree"
        left_out = shutil.ignore_patterns(
            ".git", ".venv*", "build", "__pycache__", "*.so", ".mypy_cache", ".ruff_cache"
        )
        shutil.copytree(ROOT, self.root, ignore=left_out, symlinks=True)
        self.python = self.root / ".venv" / "bin" / "python"

    def prepare_python(self) -> None:
        """An environment that finds the copy's shmq and, behind it, all that this one has but the installed shmq."""
        if self.python.exists():
            return
        call(sys.executable, "-m", "venv", "--without-pip", self.root / ".venv")
        site = next((self.root / ".venv" / "lib").glob("python*")) / "site-packages"
        packages = [path for path in sys.path if path.endswith("site-packages")]
        # A directory that is named here is searched, but the .pth files in it are not read: no editable install.
        (site / "copy.pth").write_text("\n".join([str(self.root), *packages]) + "\n")

    def build_extension(self) -> None:
        directory = self.root / "build" / "python"
        native = self.root / "native"
        make = f"-DCMAKE_MAKE_PROGRAM={command('ninja')}"
        call(
            command("cmake"),
            "-S",
            native,
            "-B",
            directory,
            "-G",
            "Ninja",
            make,
            f"-DPython_EXECUTABLE={sys.executable}",
        )
        call(command("cmake"), "--build", directory)
        for library in directory.glob("_native*.so"):
            shutil.copy(library, self.root / "shmq" / library.name)


def run(words: Sequence[str | Path], directory: Path, seconds: float = CHECK_SECONDS) -> str | None:
    """None, or how the command failed."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("SHMQ_", "PYTEST_"))}
    variables["TSAN_OPTIONS"] = "halt_on_error=1"
    process = subprocess.Popen(
        list(map(str, words)),
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        output = ""
    finally:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()
        for segment in Path("/dev/shm").glob(f"shmq-ctest-{process.pid}-*"):
            segment.unlink(missing_ok=True)
    if process.returncode == 0:
        return None
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [
        line for line in lines if "check failed" in line or "SUMMARY" in line or "FAILED" in line or "!!" in line
    ]
    last = (telling or lines or [f"not done after {seconds:.0f} s"])[-1]
    return last.strip().replace(f"{directory}/", "")[:200]


def fails(copy: Copy, check: str) -> str | None:
    """None: the check passes, the mutant lives. Else how it failed."""
    kind, _, name = check.partition(":")
    built.cache_clear()
    if kind == "c":
        return run([built(PLAIN, copy.root, (name,)) / name], copy.root)
    if kind == "race":
        directory = built(RACE, copy.root, (name,))
        for seed in range(1, RACE_TRIES + 1):
            failed = run([directory / name, str(seed), "3000"], copy.root)
            if failed is not None:
                return failed
        return None
    if kind == "weak":
        return run([built(WEAK, copy.root, ("weak",)) / "weak", "--scenario", name, "--seeds", "20000"], copy.root)
    copy.prepare_python()
    copy.build_extension()
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return run([copy.python, "-m", "pytest", *options, name], copy.root)


def try_mutant(copy: Copy, mutant: Mutant, all_checks: bool) -> Outcome:
    path = copy.root / mutant.file
    before = path.read_text()
    path.write_text(before.replace(mutant.old, mutant.new))
    start = time.monotonic()
    killers: list[str] = []
    detail = ""
    try:
        for check in mutant.checks:
            failed = fails(copy, check)
            if failed is None:
                continue
            killers.append(check)
            detail = detail or failed
            if not all_checks:
                break
    finally:
        path.write_text(before)
    killed_by = killers[0] if killers else None
    return Outcome(mutant.name, mutant.what, killed_by, killers, round(time.monotonic() - start, 1), detail)


def check_the_checks(copy: Copy, mutants: Sequence[Mutant], progress: bool) -> str | None:
    """Every check passes without a fault: one that fails anyway would kill them all."""
    for check in sorted({check for mutant in mutants for check in mutant.checks}):
        failed = fails(copy, check)
        if progress:
            print(f"without a fault: {check} {'passes' if failed is None else 'FAILS'}", file=sys.stderr, flush=True)
        if failed is not None:
            return f"{check} fails without a fault: {failed}"
    return None


def chosen(arguments: Sequence[str], table: list[Mutant]) -> list[Mutant] | str:
    names = [arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word == "--only"]
    known = {mutant.name for mutant in table}
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"no mutant is called {', '.join(unknown)}; tools/mutants --list names them"
    left = [
        word for at, word in enumerate(arguments) if word != "--only" and (at == 0 or arguments[at - 1] != "--only")
    ]
    wrong = [word for word in left if word not in ("--json", "--all-checks", "--list")]
    if wrong or (arguments and arguments[-1] == "--only"):
        return f"cannot read {' '.join(wrong) or '--only'}; see tools/mutants --help"
    return [mutant for mutant in table if not names or mutant.name in names]


def main(arguments: Sequence[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    mutants = chosen(arguments, read_table())
    if isinstance(mutants, str):
        print(f"shmq: {mutants}", file=sys.stderr)
        return 2
    if "--list" in arguments:
        for mutant in mutants:
            print(f"{mutant.name:34} {mutant.what}")
        return 0
    mistakes = [mistake for mutant in mutants if (mistake := mistake_in(mutant)) is not None]
    if mistakes:
        print("\n".join(mistakes), file=sys.stderr)
        return 2
    return hunt(mutants, "--all-checks" in arguments, "--json" in arguments)


def hunt(mutants: Sequence[Mutant], all_checks: bool, as_json: bool) -> int:
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="shmq-mutants-") as directory:
        copy = Copy(Path(directory))
        try:
            failed = check_the_checks(copy, mutants, progress=True)
            if failed is not None:
                print(failed, file=sys.stderr)
                return 2
            for number, mutant in enumerate(mutants, 1):
                outcome = try_mutant(copy, mutant, all_checks)
                outcomes.append(outcome)
                verdict = f"killed by {', '.join(outcome.all_killers)}" if outcome.killed_by else "LIVES"
                line = f"{number}/{len(mutants)} {mutant.name}: {verdict} ({outcome.seconds} s)"
                print(line, file=sys.stderr if as_json else sys.stdout, flush=True)
        except BuildFailed as error:
            print(error, file=sys.stderr)
            return 2
    killed = sum(outcome.killed_by is not None for outcome in outcomes)
    if len(mutants) == len(read_table()):  # a part of them is no figure
        found = {"found": float(killed), "alive": float(len(outcomes) - killed)}
        figures.keep({"mutants": {"tools/mutants": found}})
    if as_json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    else:
        print(f"{killed} of {len(outcomes)} killed")
    return 0 if killed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
