"""Every guarantee is shown by tests, and every line of the design that shmq carries over, or the page says why not."""

import json
import subprocess
from pathlib import Path

import pytest

from generate import conformance
from tests.repo.tree import ROOT

# Lines whose subject was not built when they were written. They may only become fewer: strike out here, too, what the
# page has struck out.
AWAITED = {
    *(f"S{n}" for n in (88, 105)),
    *(f"E{n}" for n in (19,)),
    *(f"R{n}" for n in (15, 18, 22)),
}
# S1 to S205 without those of the log, of which nothing is built.
STATEMENTS = (range(1, 107), range(111, 114), range(117, 147), range(165, 206))
NAMES = [f"S{n}" for numbers in STATEMENTS for n in numbers]
NAMES += [*(f"E{n}" for n in range(1, 21)), *(f"C{n}" for n in range(1, 15)), *(f"R{n}" for n in range(1, 23))]
NAMES += [f"G{n}" for n in range(1, 9)]


def test_every_line_is_accounted_for() -> None:
    command = [str(ROOT / "tools" / "conformance"), "--strict", "--json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(result.stdout)
    assert not answer["faults"], "\n".join(answer["faults"])
    assert result.returncode == 0
    assert [line["line"] for line in answer["lines"]] == NAMES


def test_what_is_not_built_yet_becomes_less() -> None:
    lines = conformance.read_page((ROOT / conformance.PAGE).read_text())
    awaited = {name for name, line in lines.items() if line.waits_for}
    assert awaited <= AWAITED, f"they did not wait for anything before: {sorted(awaited - AWAITED)}"
    assert awaited >= AWAITED, f"strike out of AWAITED in {__file__}: {sorted(AWAITED - awaited)}"


PAGE = """
| S1 | one | |
| S2 | two | a remark; in part, not built yet: groups |
| S3 | three | not built yet: groups |
| S4 | four | does not apply: because |
| R1 | five | not built yet: wings |
"""


def test_the_page_is_read_as_it_is_meant() -> None:
    lines = conformance.read_page(PAGE)
    assert [(line.state, line.needs_tests) for line in lines.values()] == [
        ("NOT SHOWN", True),
        ("in part", True),
        ("not built yet", False),
        ("does not apply", False),
        ("not built yet", False),
    ]
    assert (lines["S2"].remark, lines["S2"].waits_for, lines["S4"].reason) == ("a remark", "groups", "because")
    with pytest.raises(ValueError, match="S1 stands there twice"):
        conformance.read_page(PAGE + PAGE)


def test_what_is_wrong_is_told() -> None:
    lines = conformance.read_page(PAGE)
    lines["S3"].tests.append("a test")
    lines["S4"].tests.append("a test")
    found = conformance.faults(lines, [("S1", "another"), ("E99", "another")])
    assert [text.split(" ")[0] for text in found] == ["another", "S1", "S2", "S3", "S4", "R1"]


def test_marks_are_found_in_docstrings_comments_tables_and_models(tmp_path: Path) -> None:
    places = {
        "tests/engine/test_a.py": 'def test_one() -> None:\n    """It.\n\n    Shows S1,\n    E2 and R3.\n    """\n',
        "tests/engine/test_b.py": '"""Two. Shows G4."""\n\ndef test_two() -> None:\n    """S7 is not shown."""\n',
        "native/tests/ring/test_c.c": "/* One. Shows C5,\n * R1. */\nstatic void three(void) {\n}\n"
        "static void no(void) {\n",
        "native/tests/ring/test_e.c": "/* Shows G3. */\nTEST(four) {\n}\n",
        "native/tests/ring/test_d.c": "/* All of it. Shows G2. */\n\n#include <a.h>\n",
        "native/tests/contract.h": "/* Shows S8. */\nstatic void of_each_store(void) {\n}\n",
        "native/killstep/scenarios.c": '    {"put-few", a, 0}, /* Shows E1. */\n    {"put", a, 0},\n',
        "tests/protocols/m.pml": "/* A model.\n *\n * Shows R4. */\nbyte x; /* Shows R5. */\n",
    }
    for name, text in places.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sorted(conformance.collect(tmp_path)) == [
        ("C5", "native/tests/ring/test_c.c::three"),
        ("E1", "native/killstep/scenarios.c::put-few"),
        ("E2", "tests/engine/test_a.py::test_one"),
        ("G2", "native/tests/ring/test_d.c"),
        ("G3", "native/tests/ring/test_e.c::four"),
        ("G4", "tests/engine/test_b.py"),
        ("R1", "native/tests/ring/test_c.c::three"),
        ("R3", "tests/engine/test_a.py::test_one"),
        ("R4", "tests/protocols/m.pml"),
        ("S1", "tests/engine/test_a.py::test_one"),
        ("S8", "native/tests/contract.h::of_each_store"),
    ]


def test_the_tool_has_help_and_refuses_what_it_does_not_know() -> None:
    command = str(ROOT / "tools" / "conformance")
    shown = subprocess.run([command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "Examples:" in shown
    refused = subprocess.run([command, "S999"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "unknown: S999" in refused.stderr) == (2, True)
    one = subprocess.run([command, "S46"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "tests/repo/test_architecture.py::" in one
    many = subprocess.run([command, "G8"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "tests/engine/disk/test_encryption.py" in many
