"""Runs every check of the tree and sums up what happened.

    tools/test [--strict] [--full] [--instruments] [ARGUMENT OF PYTEST...]

All stages run even if an earlier one failed; the exit code is 1 if any did. With arguments for pytest only pytest runs.
Tests that need a tool which is missing (spin, clang) or a right are skipped and named at the end; --strict makes them
fail, but for the reasons in tests/support/skips.py.
--full does ten times as much of what is random or large, and takes as much longer. --instruments runs that part alone
which searches for what a crash could break: step kills, stops, flips, soak, the judge, models, weak memory, races.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import figures
from environment import ROOT, Unusable, activated, prepared

NO_TESTS_COLLECTED = 5
# One more than there are processors: while one test waits for something, another has its processor.
WORKERS = len(os.sched_getaffinity(0)) + 1
# The tests with the longest time limits come first (tests/conftest.py), each to the next worker that is free.
SIDE_BY_SIDE = ["-n", str(WORKERS), "--dist", "load", "--maxschedchunk", "1"]
FULL_SECONDS = 3600  # that the longest test may take with --full: no stacks are shown before


@dataclass
class Stage:
    """One line of the summary."""

    name: str
    seconds: float
    status: int
    detail: str = ""
    not_run: list[str] = field(default_factory=list)


def run_stage(name: str, *command: str | Path, strict: bool = False) -> Stage:
    """Runs one checker with its output shown, and takes the time."""
    print(f"\n=== {name}", flush=True)
    variables = activated()
    if strict:
        variables["SHMQ_TEST_STRICT"] = "1"
    start = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env=variables).returncode
    return Stage(name, time.monotonic() - start, status)


def run_lint() -> list[Stage]:
    c_files = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in {".c", ".h"})
    return [
        run_stage("ruff check", "ruff", "check", "."),
        run_stage("ruff format", "ruff", "format", "--check", "."),
        run_stage("mypy", "mypy", "--strict", "shmq", "tools", "tests"),
        run_stage("clang-format", "clang-format", "--dry-run", "--Werror", *c_files),
    ]


def run_pytest(name: str, arguments: Sequence[str], strict: bool) -> Stage:
    """Runs pytest and reads its counts and the reasons of its skips from the report."""
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        report = Path(directory) / "report.xml"
        stage = run_stage(name, "python", "-m", "pytest", f"--junitxml={report}", *arguments, strict=strict)
        if not report.exists():
            return stage
        for case in ElementTree.parse(report).iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                test = f"{case.get('classname')}.{case.get('name')}"
                stage.not_run.append(f"{test}: {skipped.get('message')}")
        figures.keep(figures.read_report(report))
        totals = next(ElementTree.parse(report).iter("testsuite")).attrib
    failed = int(totals["failures"]) + int(totals["errors"])
    stage.detail = f"{totals['tests']} tests, {failed} failed, {totals['skipped']} skipped"
    return stage


def run_tests(extra: Sequence[str], strict: bool, only: str = "") -> list[Stage]:
    """Runs the tests (those with the marker `only`) side by side, then those that watch a clock, one after another."""
    also = f" and {only}" if only else ""
    if any(word.startswith("-m") for word in extra):
        return [run_pytest("pytest", ["-n", "0", *extra], strict)]
    stages = [
        run_pytest("pytest", [*SIDE_BY_SIDE, "-m", f"not alone{also}", *extra], strict),
        run_pytest("pytest (alone)", [*extra, "-n", "0", "-m", f"alone{also}"], strict),
    ]
    # A selection may well lie in one of the two halves; only nothing in both is a mistake.
    if any(stage.status != NO_TESTS_COLLECTED for stage in stages):
        for stage in stages:
            if stage.status == NO_TESTS_COLLECTED:
                stage.status = 0
    return stages


def print_summary(stages: Sequence[Stage]) -> None:
    print("\n=== summary")
    for stage in stages:
        result = "ok" if stage.status == 0 else "FAILED"
        print(f"{stage.name:16} {result:7} {stage.seconds:7.1f} s  {stage.detail}".rstrip())
    not_run = [line for stage in stages for line in stage.not_run]
    if not_run:
        print(f"not run ({len(not_run)}):")
        for line in not_run:
            print(f"  {line}")


def main(arguments: Sequence[str]) -> int:
    strict = "--strict" in arguments
    if "--full" in arguments:
        os.environ["SHMQ_FULL"] = "1"  # read by tests/support/size.py
    instruments = "--instruments" in arguments
    extra = [word for word in arguments if word not in ("--strict", "--full", "--instruments")]
    run_options = ["-o", f"faulthandler_timeout={FULL_SECONDS}"] if "--full" in arguments else []
    if extra and extra[0] in {"-h", "--help"}:
        print(__doc__)
        return 0
    start = time.monotonic()
    try:
        with prepared():
            stages = [Stage("environment", time.monotonic() - start, 0)]
            if not extra and not instruments:
                stages += run_lint()
            stages += run_tests([*run_options, *extra], strict, "instrument" if instruments else "")
    except Unusable as error:
        print(f"shmq: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print_summary(stages)
    return int(any(stage.status != 0 for stage in stages))


if __name__ == "__main__":
    os.environ.pop("PYTEST_ADDOPTS", None)  # what is checked must not depend on who starts it
    sys.exit(main(sys.argv[1:]))
