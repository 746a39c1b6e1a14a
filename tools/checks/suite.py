"""Runs every check of the tree and sums up what happened.

    tools/test [--all] [--strict] [--full] [--instruments] [--spark] [--flow] [ARGUMENT OF PYTEST...]

    tools/test                       before a commit: linters, types, and all tests but the instruments
    tools/test --instruments         the instruments alone: they search at length for what crashes, races and load
                                     break: step kills, stops, flips, soak, the judge, models, weak memory, sanitizers;
                                     and the table of what a use may cost (shmq bench ratios)
    tools/test --all                 both
    tools/test --spark               as without it, and the tests that run Spark; so with each of the others
    tools/test --flow                the tests of queues, with one byte of memory for each, so that all of them flow to
                                     disk, and front rings of four slots; but those that say what holds in memory. Those
                                     that have more in hand at once run with front rings as usual
    tools/test tests/engine -k line  these tests, instruments or not

On two processors at a load of 8 it takes, without arguments, some 14 minutes: 5,942 tests, which take 10 minutes of
processor time. With --all it takes longer. The first start makes an environment and builds, which takes some minutes
more.

All stages run even if an earlier one failed; the exit code is 1 if any did. With arguments for pytest only pytest runs.
Tests that need a missing tool (spin, clang) or a right are skipped; the end says how many, by reason. With --strict
they fail, but for the reasons in tests/support/skips.py. --spark installs PySpark and runs the tests that need it, too;
without it they are skipped, also under --strict. --full does ten times as much of what is random or large, and takes as
much longer.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from builds.environment import ROOT, Unusable, activated, prepared
from checks import figures

NO_TESTS_COLLECTED = 5
# One more than there are processors: while one test waits for something, another has its processor.
WORKERS = len(os.sched_getaffinity(0)) + 1
# The tests with the longest time limits come first (tests/conftest.py), each to the next worker that is free.
SIDE_BY_SIDE = ["-n", str(WORKERS), "--dist", "load", "--maxschedchunk", "1"]
# A Spark takes 1 GiB and, in bursts, every processor. The tests of a file share the one of their worker.
TWO_SPARKS = ["-n", "2", "--dist", "loadfile"]
OPTIONS = ("--all", "--strict", "--full", "--instruments", "--spark", "--flow")
FLOWING = ["tests/engine", "tests/unit", "tests/mp", "tests/cli", "tests/pool", "tests/processes"]
# The fewest: a quarter of a front ring is for what is fetched from the middle, and one at least is to be there.
FRONT_SHIFT = "2"
FLOW_BUILD = ROOT / "build" / "flow-extension"
FULL_SECONDS = 3600  # that the longest test may take with --full: no stacks are shown before


@dataclass
class Stage:
    """One line of the summary."""

    name: str
    seconds: float
    status: int
    detail: str = ""
    not_run: Counter[str] = field(default_factory=Counter)  # tests, by reason


@dataclass(frozen=True)
class Wish:
    """The wishes for the tests, as tests/conftest.py reads them from their environment."""

    strict: bool = False
    spark: bool = False
    flow: bool = False
    few: bool = False  # slots of front rings

    def variables(self) -> dict[str, str]:
        strict = {"SHMQ_TEST_STRICT": "1"} if self.strict else {}
        flow = {"SHMQ_TEST_FLOW": "1"} if self.flow else {}
        if self.few:
            flow |= {"SHMQ_TEST_FRONT_SHIFT": FRONT_SHIFT, "PYTHONPATH": ""}
        return {**strict, **flow, "SHMQ_TEST_SPARK": str(int(self.spark))}


def run_stage(
    name: str, *command: str | Path, variables: Mapping[str, str] | None = None, folder: Path = ROOT
) -> Stage:
    """Runs one checker with its output shown, and takes the time."""
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    status = subprocess.run(command, cwd=folder, env={**activated(), **(variables or {})}).returncode
    return Stage(name, time.monotonic() - start, status)


def run_lint() -> list[Stage]:
    c_files = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in {".c", ".h"})
    return [
        run_stage("ruff check", "ruff", "check", "."),
        run_stage("ruff format", "ruff", "format", "--check", "."),
        run_stage("mypy", "mypy", "--strict", "shmq", "tools", "tests"),
        run_stage("clang-format", "clang-format", "--dry-run", "--Werror", *c_files),
    ]


def run_costs() -> Stage:
    """Checks the costs of uses beside the comfortable case: some two minutes, with nothing beside it."""
    return run_stage("costs", "python", "-m", "shmq", "bench", "ratios")


def run_flow_build() -> Stage:
    """The extension whose front rings are small, beside the installed one."""
    return run_stage(
        "flow build", "python", ROOT / "tools", "builds.extension_tree", FLOW_BUILD, f"-DSHMQ_FRONT_SHIFT={FRONT_SHIFT}"
    )


def run_pytest(name: str, arguments: Sequence[str], wish: Wish) -> Stage:
    """Runs pytest and reads its counts and the reasons of its skips from the report."""
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        report = Path(directory) / "report.xml"
        python, folder = (FLOW_BUILD / "venv/bin/python", FLOW_BUILD / "tree") if wish.few else ("python", ROOT)
        command = (python, "-m", "pytest", f"--rootdir={folder}", f"--junitxml={report}", *arguments)
        stage = run_stage(name, *command, variables=wish.variables(), folder=folder)
        if not report.exists():
            return stage
        for case in ElementTree.parse(report).iter("testcase"):
            skipped = case.find("skipped")
            if skipped is not None:
                stage.not_run[skipped.get("message", "no reason given")] += 1
        figures.keep(figures.read_report(report))
        totals = next(ElementTree.parse(report).iter("testsuite")).attrib
    failed = int(totals["failures"]) + int(totals["errors"])
    stage.detail = f"{totals['tests']} tests, {failed} failed, {totals['skipped']} skipped"
    return stage


def run_tests(extra: Sequence[str], wish: Wish, among: str = "") -> list[Stage]:
    """Runs the tests (`among`: of those markers) side by side, then those that watch a clock, one after another, then
    those with a Spark, two at a time.
    """
    if any(word.startswith("-m") for word in extra):
        return [run_pytest("pytest", ["-n", "0", *extra], wish)]
    if wish.flow and not wish.few:
        few, many = f"{among} and not in_hand", f"{among} and in_hand"
        return some_ran(run_parts(extra, replace(wish, few=True), few) + run_parts(extra, wish, many))
    return some_ran(run_parts(extra, wish, among))


def run_parts(extra: Sequence[str], wish: Wish, among: str) -> list[Stage]:
    meant = f" and {among}" if among else ""
    here = f"{meant} and not spark" if wish.spark else meant  # without the wish they are skipped, and counted as such
    stages = [
        run_pytest("pytest", [*SIDE_BY_SIDE, "-m", f"not alone{here}", *extra], wish),
        run_pytest("pytest (alone)", [*extra, "-n", "0", "-m", f"alone{here}"], wish),
    ]
    if wish.spark:
        stages.append(run_pytest("pytest (spark)", [*TWO_SPARKS, "-m", f"spark{meant}", *extra], wish))
    return stages


def some_ran(stages: list[Stage]) -> list[Stage]:
    # A selection may well lie in one of the parts; only nothing in all of them is a mistake.
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
    not_run = sum((stage.not_run for stage in stages), Counter[str]())
    if not_run:
        print(f"not run ({not_run.total()}):")
        for reason, count in not_run.most_common():
            print(f"  {count:5} {reason}")


def among(arguments: Sequence[str], extra: Sequence[str]) -> str:
    """Which tests are meant, as an expression of pytest's markers."""
    if "--flow" in arguments:
        return "not memory"
    if "--instruments" in arguments:
        return "instrument"
    return "" if extra or "--all" in arguments else "not instrument"


def main(arguments: Sequence[str]) -> int:
    wish = Wish(strict="--strict" in arguments, spark="--spark" in arguments, flow="--flow" in arguments)
    if "--full" in arguments:
        os.environ["SHMQ_FULL"] = "1"  # read by tests/support/size.py
    extra = [word for word in arguments if word not in OPTIONS]
    extra = extra or FLOWING * wish.flow
    run_options = ["-o", f"faulthandler_timeout={FULL_SECONDS}"] if "--full" in arguments else []
    if extra and extra[0] in {"-h", "--help"}:
        print(__doc__)
        return 0
    start = time.monotonic()
    if not extra:
        print(
            "shmq: without --all this takes some 14 minutes on two busy processors; tools/test --help has shorter ways",
            flush=True,
        )
    try:
        with prepared(spark=wish.spark):
            stages = [Stage("environment", time.monotonic() - start, 0)]
            if wish.flow:
                stages.append(run_flow_build())
            if not extra and "--instruments" not in arguments:
                stages += run_lint()
            if not extra and {"--all", "--instruments"} & set(arguments):
                stages.append(run_costs())
            stages += run_tests([*run_options, *extra], wish, among(arguments, extra))
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
