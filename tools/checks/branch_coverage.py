"""Which branches of native/src the C tests take, by gcov: file by file, with the lines where one is missing.

    tools/coverage [--missing] [--json] [--least PERCENT]

Builds the C tests and the simulator of weak memory with counters, and runs each once. It fails (exit code 1) below the
least share, 90 % unless told. The false side of SHMQ_ASSERT is not counted: no test may take it.

Examples:
    tools/coverage --missing | less
    tools/coverage --json | jq '.files | to_entries | sort_by(.value.share) | .[0]'
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from builds.native_build import COVERAGE, ROOT, WEAK_COVERAGE, BuildFailed, built, programs

SOURCES = ROOT / "native" / "src"
LEAST_PERCENT = 90.0
RUN_SECONDS = 200
WEAK_SEEDS = "400"
ROUNDS = {"test_block_kill": "100"}  # instead of 1000, which the C suite has it do; they take the same branches


@dataclass
class Branches:
    """The branches of one file: how many were taken, of how many, and the lines where one never was."""

    taken: int = 0
    total: int = 0
    missing: dict[int, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return 100.0 * self.taken / self.total if self.total else 100.0


def run_tests(directory: Path, calls: Sequence[Sequence[str]]) -> list[str]:
    """Runs the programs, two at a time; answers what failed. Their counters add up."""
    for old in directory.rglob("*.gcda"):
        old.unlink()

    def failure_of(call: Sequence[str]) -> str | None:
        words = [str(directory / call[0]), *call[1:]]
        try:
            result = subprocess.run(words, capture_output=True, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{call[0]}: not done after {RUN_SECONDS} s"
        return None if result.returncode == 0 else f"{call[0]}: {result.stderr.decode(errors='replace')[-300:]}"

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        failed = [call for call, failure in zip(calls, threads.map(failure_of, calls), strict=True) if failure]
    # Some watch a clock, and may fail beside others: once more, alone.
    return [failure for call in failed if (failure := failure_of(call)) is not None]


Lines = dict[int, list[int]]  # by line: how often each way out of it was taken


def read_counters(directory: Path) -> dict[str, Lines]:
    """Asks gcov about the core's objects."""
    found: dict[str, Lines] = {}
    counters = sorted(path.resolve() for path in directory.rglob("*.gcda") if path.parent.parent.name == "src")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            ["gcov", "--json-format", "--branch-probabilities", *map(str, counters)],
            cwd=scratch,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        for report in Path(scratch).glob("*.json.gz"):
            with gzip.open(report, "rt") as text:
                for entry in json.load(text)["files"]:
                    path = Path(entry["file"])
                    if path.parent.parent == SOURCES and path.suffix == ".c":
                        lines = found.setdefault(path.relative_to(SOURCES).as_posix(), {})
                        for line in entry["lines"]:
                            lines.setdefault(line["line_number"], []).extend(way["count"] for way in line["branches"])
    return found


def add(to: dict[str, Lines], more: dict[str, Lines]) -> None:
    """Adds what the simulator has reached. Where its build has other ways out of a line, the line is left as it is."""
    for name, lines in to.items():
        for number, ways in lines.items():
            others = more.get(name, {}).get(number, [])
            if len(others) == len(ways):
                lines[number] = [one + other for one, other in zip(ways, others, strict=True)]


def count(lines: Lines, source: list[str]) -> Branches:
    branches = Branches()
    for number, ways in lines.items():
        if "SHMQ_ASSERT" in source[number - 1]:
            continue
        never = sum(way == 0 for way in ways)
        branches.total += len(ways)
        branches.taken += len(ways) - never
        if never:
            branches.missing[number] = never
    return branches


def measure() -> dict[str, Branches]:
    directory = built(COVERAGE)
    failures = run_tests(directory, [[name, *ROUNDS.get(name, "").split()] for name in programs()])
    weak = built(WEAK_COVERAGE, targets=("weak",))
    failures += run_tests(weak, [["weak", "--seeds", WEAK_SEEDS]])
    if failures:
        raise BuildFailed("\n".join(failures))
    counted = read_counters(directory)
    add(counted, read_counters(weak))
    return {name: count(lines, (SOURCES / name).read_text().splitlines()) for name, lines in counted.items()}


def whole(files: dict[str, Branches]) -> Branches:
    return Branches(sum(one.taken for one in files.values()), sum(one.total for one in files.values()))


def show(files: dict[str, Branches], missing: bool) -> None:
    for name, one in sorted(files.items(), key=lambda item: item[1].share):
        print(f"{name:36} {one.share:6.1f} %  {one.taken:4} of {one.total:4}")
        source = (SOURCES / name).read_text().splitlines()
        for number in sorted(one.missing) if missing else ():
            print(f"    {number:4} ({one.missing[number]}) {source[number - 1].strip()[:100]}")
    total = whole(files)
    print(f"{'native/src':36} {total.share:6.1f} %  {total.taken:4} of {total.total:4}")


def main(arguments: Sequence[str]) -> int:
    words = list(arguments)
    if {"-h", "--help"} & set(words):
        print(__doc__)
        return 0
    least = LEAST_PERCENT
    if "--least" in words:
        at = words.index("--least")
        least = float(words[at + 1])
        del words[at : at + 2]
    if set(words) - {"--missing", "--json"}:
        print(f"shmq: cannot read {' '.join(words)}; see tools/coverage --help", file=sys.stderr)
        return 2
    try:
        files = measure()
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 2
    total = whole(files)
    if "--json" in words:
        figures = {name: {"taken": one.taken, "total": one.total, "share": one.share} for name, one in files.items()}
        print(json.dumps({"share": total.share, "files": figures}, indent=1))
    else:
        show(files, "--missing" in words)
    return int(total.share < least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
