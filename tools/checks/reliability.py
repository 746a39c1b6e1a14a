"""One table of what the crash tests reach: goal, figure, verdict, and the command that goes further.

    tools/reliability [--report] [--full] [--json]

Without options it first runs the tests that measure these figures. With --report it only shows the figures of the last
run of tools/test --all or tools/reliability. With --full it runs the large sizes (hours). The exit code is 1 if a
figure misses its goal or has not been measured.

Examples:
    tools/test --all && tools/reliability --report
    tools/reliability --report --json | jq '.[] | select(.met | not)'
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from builds.environment import ROOT, Unusable, prepared
from checks import figures
from checks.suite import Wish, run_tests


@dataclass(frozen=True)
class Row:
    """One goal. `least`: counts, summed over the tests that give them; `most`: bounds, the worst of them counts.

    A test may give a list of `delays_ms` instead: the lists are put together, and make p50_ms and p99_ms.
    """

    figure: str
    what: str
    least: dict[str, float]
    most: dict[str, float]
    further: str  # the command for more of it
    floor: dict[str, float] = field(default_factory=dict)  # shares: the lowest counts


ROWS = [
    Row("step kills", "step kills, invariants broken", {"kills": 200_000}, {"broken": 0}, "tools/killstep --all"),
    Row(
        "step pauses",
        "step pauses, others blocked beyond the patience",
        {"pauses": 20_000},
        {"blocked": 0},
        "tools/killstep --pause --all",
    ),
    Row(
        "two deaths",
        "two deaths, pairs on slot operations, broken",
        {"pairs": 1},
        {"broken": 0},
        "tools/killstep --closure",
    ),
    Row(
        "stops", "live process robbed in random SIGSTOPs", {"stops": 500}, {"robbed": 0}, "tools/test --full -k stopped"
    ),
    Row(
        "deaths",
        "messages of a killed process with others, ms",
        {"deaths": 60},
        {"p99_ms": 50},
        "tools/test --full -k killed_holder",
    ),
    Row(
        "flips",
        "flips in a live segment: crashes, hangs, wrong bodies",
        {"flips": 20_000},
        {"crashes": 0, "hangs": 0, "wrong": 0},
        "tools/flips --count 1000000",
    ),
    Row("soak", "soak, invariants broken", {"seconds": 60}, {"broken": 0}, "tools/soak --minutes 480"),
    Row(
        "backlog",
        "messages of a backlog beyond a memory of 64 MiB, in order: MiB of the segment, of a process's growth",
        {"messages": 2_900_000},
        {"segment_mib": 64, "growth_mib": 32},
        "tools/test --full -k deep_backlog",
    ),
    Row(
        "backlog kills",
        "such messages while producers, consumers and movers are killed, invariants broken",
        {"messages": 90_000, "kills": 10},
        {"broken": 0},
        "tools/backlog",
    ),
    Row("coverage", "branches of the C core that the tests take, %", {}, {}, "tools/coverage", {"branches": 90}),
    Row(
        "rescues",
        "rescues by a sleep's time limit without stops",
        {"messages": 100_000},
        {"rescues": 0},
        "tools/test --full -k rescue",
    ),
    Row("mutants", "mutants of the C core that the suite finds", {"found": 15}, {"alive": 0}, "tools/mutants"),
]


@dataclass(frozen=True)
class Result:
    """A row with what was measured; values is empty when nothing was."""

    row: Row
    values: dict[str, float]
    commits: list[str]
    met: bool


def judge(row: Row, kept: dict[str, Any]) -> Result:
    """Sums up what the tests of one figure gave."""
    tests = list(kept.get(row.figure, {}).values())
    values: dict[str, float] = {}
    delays: list[float] = []
    for one in tests:
        for name, value in one["values"].items():
            if name == "delays_ms":
                delays += value
            elif name in row.least:
                values[name] = values.get(name, 0) + value
            elif name in row.floor:
                values[name] = min(values.get(name, value), value)
            else:
                values[name] = max(values.get(name, value), value)
    if delays:
        delays.sort()
        values |= {"p50_ms": delays[len(delays) // 2], "p99_ms": delays[int(len(delays) * 0.99)]}
    met = (
        bool(tests)
        and all(values.get(name, 0) >= bound for name, bound in (row.least | row.floor).items())
        and all(values.get(name, float("inf")) <= bound for name, bound in row.most.items())
    )
    return Result(row, values, sorted({one["commit"] for one in tests}), met)


def shown(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.6g}" for name, value in values.items())


def print_table(results: Sequence[Result]) -> None:
    lines = [("what", "goal", "measured", "", "further")]
    for result in results:
        row = result.row
        goal = [f"{name} >= {bound:,}" for name, bound in (row.least | row.floor).items()]
        goal += [f"{name} <= {bound:,}" for name, bound in row.most.items()]
        measured = shown(result.values) or "not measured"
        lines.append((row.what, ", ".join(goal), measured, "ok" if result.met else "MISSED", row.further))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    commits = sorted({commit for result in results for commit in result.commits})
    if commits:
        print(f"measured at {', '.join(commits)}; a + stands for changes that were not committed")
    else:
        print("nothing has been measured here; run tools/test --all, or tools/reliability without --report")


def measured_by() -> list[str]:
    """The test files that hand over a figure of the table."""
    names = [f'"{row.figure}"' for row in ROWS]
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "figure(" in text and any(name in text for name in names):
            found.append(str(path.relative_to(ROOT)))
    return found


def main(arguments: Sequence[str]) -> int:
    unknown = [word for word in arguments if word not in ("--report", "--full", "--json", "-h", "--help")]
    if unknown or "-h" in arguments or "--help" in arguments:
        print(__doc__)
        if unknown:
            print(f"tools/reliability: unknown: {' '.join(unknown)}", file=sys.stderr)
        return 2 if unknown else 0
    if "--report" not in arguments:
        if "--full" in arguments:
            os.environ["SHMQ_FULL"] = "1"
        try:
            with prepared():
                run_tests(measured_by(), Wish())
        except Unusable as error:
            print(f"shmq: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    kept = figures.load()
    results = [judge(row, kept) for row in ROWS]
    if "--json" in arguments:
        answer = [
            {"what": r.row.what, "values": r.values, "met": r.met, "commits": r.commits, "further": r.row.further}
            for r in results
        ]
        print(json.dumps(answer, indent=1))
    else:
        print_table(results)
    return int(not all(result.met for result in results))


if __name__ == "__main__":
    os.environ.pop("PYTEST_ADDOPTS", None)
    sys.exit(main(sys.argv[1:]))
