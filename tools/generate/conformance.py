"""Which test shows which guarantee, and which line of the design that shmq carries over (docs/conformance.md).

    tools/conformance [LINE ...] [--open] [--strict] [--json]

Prints each line with the tests that show it, or why there are none. Lines (S81, R3, G4) choose; --open leaves out those
that are shown or do not apply. A test names its lines: "Shows S81, R3." in its docstring or, in C and in models, in the
comment above it. A file whose tests show a line together names it at its head. With --strict the exit code is 1 if a
line has neither tests nor a reason, or a line that is "not built yet" has tests. So it is if a test names a line that
does not exist.

Examples:
    tools/conformance S81 R3
    tools/conformance G4
    tools/conformance --open
    tools/conformance --json | jq -r '.lines[] | select(.waits_for == "priorities") | .line'
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/conformance.md"
GUARANTEES = "docs/guarantees.md"
# Capabilities that may be named in the place of a test that does not exist yet.
CAPABILITIES = {
    "consumer priorities",
    "consumers of several queues",
    "delays",
    "exchanges",
    "exclusive consumers",
    "flow to disk",
    "groups",
    "immediate",
    "last values",
    "leases",
    "live consumers",
    "overflow",
    "priorities",
    "selectors of consumers",
    "the log",
    "time to live",
    "transactions",
}
ROW = re.compile(r"^\| ([SECR]\d+) \| (.+?) \|(.*)\|$", re.MULTILINE)
GUARANTEE = re.compile(r"^\| \[(G\d) [^|]*\| (.+?) \|", re.MULTILINE)
NAME = r"[SECRG]\d{1,3}"
SHOWS = re.compile(rf"\bShows ({NAME}(?:(?:, and |, | and ){NAME})*)\b")
WAITS = re.compile(r"(?:(.*); )?(in part, )?not built yet: (.+)")
NO_NEED = "does not apply: "
# A comment, and the function that it stands above; a line of a table with a comment behind it.
C_TEST = re.compile(r"/\*((?:[^*]|\*(?!/))*)\*/\s*(?:static void |TEST\()(\w+)(?:\(void\)|\)) \{")
C_SCENARIO = re.compile(r'^\s*\{"([\w-]+)",[^/\n]*/\*(.*?)\*/', re.MULTILINE)
HEAD = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)


@dataclass
class Line:
    """One line of the page. `waits_for` is a capability; `in_part` says that tests show the rest."""

    line: str
    text: str
    remark: str = ""
    reason: str = ""  # why it does not apply
    waits_for: str = ""
    in_part: bool = False
    tests: list[str] = field(default_factory=list)

    @property
    def needs_tests(self) -> bool:
        return not self.reason and (self.in_part or not self.waits_for)

    @property
    def state(self) -> str:
        if self.reason:
            return "does not apply"
        if self.waits_for:
            return "in part" if self.in_part else "not built yet"
        return "shown" if self.tests else "NOT SHOWN"


def read_page(text: str) -> dict[str, Line]:
    """The lines of the page by their names. Raises ValueError for one that stands there twice."""
    lines: dict[str, Line] = {}
    for name, what, here in ROW.findall(text):
        if name in lines:
            raise ValueError(f"{PAGE}: {name} stands there twice")
        line = lines[name] = Line(name, what)
        here = here.strip()
        if here.startswith(NO_NEED):
            line.reason = here.removeprefix(NO_NEED)
        elif match := WAITS.fullmatch(here):
            line.remark, line.in_part, line.waits_for = match[1] or "", bool(match[2]), match[3]
        else:
            line.remark = here
    return lines


def read_pages(root: Path = ROOT) -> dict[str, Line]:
    guarantees = GUARANTEE.findall((root / GUARANTEES).read_text())
    return read_page((root / PAGE).read_text()) | {name: Line(name, text) for name, text in guarantees}


def named(text: str | None) -> list[str]:
    """The lines that a docstring or comment says it shows."""
    flat = re.sub(r"\s+(\* )?", " ", text or "")
    return [name for names in SHOWS.findall(flat) for name in re.findall(NAME, names)]


def marks_of_python(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each test function and the lines that it shows, with "" for the file."""
    tree = ast.parse(source)
    yield "", named(ast.get_docstring(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, named(ast.get_docstring(node))


def marks_of_c(source: str) -> Iterator[tuple[str, list[str]]]:
    """The same for functions without arguments, by the comment above, and for rows of a table, by the one behind."""
    head = HEAD.match(source)
    yield "", named(head and head[1] if head and not C_TEST.match(source) else None)
    for comment, function in C_TEST.findall(source):
        yield function, named(comment)
    for scenario, comment in C_SCENARIO.findall(source):
        yield scenario, named(comment)


def collect(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yields (line, test) for every mark in the tree below `root`."""
    python = dict.fromkeys(sorted((root / "tests").rglob("test_*.py")), marks_of_python)
    places = (
        "native/tests/**/*.[ch]",
        "native/killstep/scenarios.c",
        "tests/protocols/*.pml",
        "native/weak/scenarios/*.c",
    )
    c = {path: marks_of_c for place in places for path in sorted(root.glob(place))}
    for path, marks in (python | c).items():
        for test, lines in marks(path.read_text()):
            yield from ((line, f"{path.relative_to(root)}{test and '::'}{test}") for line in lines)


def faults(lines: dict[str, Line], marks: Sequence[tuple[str, str]]) -> list[str]:
    """The faults, one sentence each."""
    found = [f"{test} shows {line}, which no page has" for line, test in marks if line not in lines]
    for line in lines.values():
        if line.waits_for and line.waits_for not in CAPABILITIES:
            found.append(
                f"{line.line} waits for {line.waits_for!r}: one of {', '.join(sorted(CAPABILITIES))} is expected"
            )
        if line.needs_tests and not line.tests:
            found.append(
                f'{line.line} has neither a test nor a reason: write "Shows {line.line}." where a test shows it'
            )
        if line.tests and not line.needs_tests:
            found.append(f'{line.line} is shown by {line.tests[0]}: strike out "{line.state}" in {PAGE}')
    return found


def print_lines(lines: Sequence[Line]) -> None:
    for line in lines:
        print(f"{line.line:<5} {line.state:<14} {line.text}")
        for why in (line.reason, line.waits_for and f"waits for: {line.waits_for}", line.remark):
            if why:
                print(f"{'':21}({why})")
        for test in line.tests:
            print(f"{'':21}{test}")


def main(arguments: Sequence[str]) -> int:
    options = {word for word in arguments if word.startswith("-")}
    chosen = [word for word in arguments if not word.startswith("-")]
    unknown = options - {"--open", "--strict", "--json", "-h", "--help"}
    lines = read_pages()
    unknown |= set(chosen) - lines.keys()
    if unknown or options & {"-h", "--help"}:
        print(__doc__)
        if unknown:
            print(f"tools/conformance: unknown: {' '.join(sorted(unknown))}", file=sys.stderr)
        return 2 if unknown else 0
    marks = sorted(set(collect()), key=lambda mark: mark[1])
    for name, test in marks:
        if name in lines:
            lines[name].tests.append(test)
    shown = [line for line in lines.values() if not chosen or line.line in chosen]
    if "--open" in options:
        shown = [line for line in shown if line.waits_for or line.state == "NOT SHOWN"]
    wrong = faults(lines, marks)
    counts = Counter(line.state for line in lines.values())
    if "--json" in options:
        answer = {"lines": [asdict(line) | {"state": line.state} for line in shown], "counts": counts, "faults": wrong}
        print(json.dumps(answer, indent=1))
    else:
        print_lines(shown)
        print(f"{len(lines)} lines: " + ", ".join(f"{number} {state}" for state, number in counts.most_common()))
    if wrong and "--json" not in options:
        print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong) and "--strict" in options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
