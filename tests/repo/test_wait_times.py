"""Times that code waits stand in one place of the core and in one of Python, each with its reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.repo.tree import ROOT, files, name_of

HEADER = ROOT / "native" / "src" / "base" / "wait_time.h"
MODULE = ROOT / "shmq" / "wait_time.py"
# A time of its own has a name that ends in _NS; one without a name is a round number of nanoseconds.
NAMED = re.compile(r"^#define \w+_NS\b.*\d", re.MULTILINE)
ROUND = re.compile(r"\b(?!1000000000\b)[1-9]\d{0,2}0{5,}\b")
CONVERSIONS = {"native/src/selectors/row_selector.c": {"1000000"}}  # to milliseconds
# No waits: how far two clocks may differ; and the back-off, which is a promise of its page.
OTHERWISE = {"shmq/engine/membership/death_record.py": {"_NEAR", "_SLACK"}, "shmq/pool/back_off.py": {"FIRST", "MOST"}}
DRAWING = {"shmq/pool/progress.py"}  # how often a line is drawn


def times_in_c(text: str, conversions: set[str]) -> list[str]:
    return [*NAMED.findall(text), *(number for number in ROUND.findall(text) if number not in conversions)]


def times_in_python(text: str) -> Iterator[str]:
    """Yields the names of a module that are a float: numbers of seconds are."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(node.value.value, float):
                yield ast.unparse(target)


def python_files() -> list[Path]:
    return [path for folder in ("engine", "pool", "mp") for path in files(f"shmq/{folder}", ".py")]


def test_the_core_waits_for_no_time_but_the_patience_and_those_of_the_header() -> None:
    sources = [path for place in ("src", "python") for path in files(f"native/{place}")]
    assert len(sources) > 100
    found = {
        name_of(path): times
        for path in sources
        if path != HEADER and (times := times_in_c(path.read_text(), CONVERSIONS.get(name_of(path), set())))
    }
    assert found == {}
    assert len(times_in_c(HEADER.read_text(), set())) > 10
    assert times_in_c("sleep(m, word, seen, now + 2000000);", set()) == ["2000000"]


def test_engine_and_pools_wait_for_no_time_of_their_own() -> None:
    found = {
        name_of(path): names
        for path in python_files()
        if name_of(path) not in DRAWING
        and (names := set(times_in_python(path.read_text())) - OTHERWISE.get(name_of(path), set()))
    }
    assert found == {}
    assert len(set(times_in_python(MODULE.read_text()))) > 10


def test_each_time_has_its_reason_beside_it() -> None:
    lines = [line for line in MODULE.read_text().splitlines() if re.match(r"[A-Z_]+ = ", line)]
    assert [line for line in lines if "  # " not in line] == []
    header = HEADER.read_text()
    for define in re.finditer(r"^#define \w+_NS.*$", header, re.MULTILINE):
        before = header[: define.start()].rstrip("\n").splitlines()[-1]
        assert before.endswith("*/") or "/*" in define[0], define[0]


def test_each_time_is_used() -> None:
    text = "".join(path.read_text() for path in files("shmq", ".py") if path != MODULE)
    assert [name for name in times_in_python(MODULE.read_text()) if not re.search(rf"\b{name}\b", text)] == []
    text = "".join(path.read_text() for place in ("src", "python") for path in files(f"native/{place}"))
    names = re.findall(r"^#define (\w+_NS)", HEADER.read_text(), re.MULTILINE)
    assert [name for name in names if len(re.findall(rf"\b{name}\b", text)) < 2] == []
