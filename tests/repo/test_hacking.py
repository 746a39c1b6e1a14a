"""The page for engineers names functions that are there, and says in which file."""

import re
from pathlib import Path

from tests.repo.tree import ROOT, files

PAGE = ROOT / "docs" / "hacking.md"
ROW = re.compile(r"^\| (`[\w./]+\.(?:c|py)`(?:, `[\w./]+\.(?:c|py)`)*) \| (.*) \|$", re.MULTILINE)
FUNCTION = re.compile(r"\w*_\w+|claim|fill|publish|repair|considers|delete|retry|reject")
NAME = re.compile(r"`([\w./]+)`")
DEFINITION = {".py": r"^ *def {}\(", ".c": r"^\w[^;{{}}\n]*\b{}\([^;{{}}]*\) \{{"}


def table(text: str) -> dict[str, list[str]]:
    """The files in which a function may be, by the table at the end of the page."""
    found = {}
    for sources, functions in ROW.findall(text):
        found.update({name: NAME.findall(sources) for name in NAME.findall(functions)})
    return found


def sources() -> dict[str, Path]:
    """The paths below the folders in which the page says that its files lie."""
    folders = [("native/src", ".c"), ("native/python", ".c"), ("shmq/engine", ".py")]
    return {
        path.relative_to(ROOT / folder).as_posix(): path for folder, suffix in folders for path in files(folder, suffix)
    }


def defines(path: Path, function: str) -> bool:
    return re.search(DEFINITION[path.suffix].format(function), path.read_text(), re.MULTILINE) is not None


def lost(places: dict[str, list[str]]) -> list[str]:
    paths = sources()
    return [
        f"{function} in {' or '.join(names)}"
        for function, names in places.items()
        if not any(name in paths and defines(paths[name], function) for name in names)
    ]


def test_every_function_of_the_table_is_in_its_file() -> None:
    places = table(PAGE.read_text())
    assert len(places) > 40
    assert lost(places) == []
    assert lost({"shmq_put": ["limits/line.c"], "nothing": ["gone.c"]}) == [
        "shmq_put in limits/line.c",
        "nothing in gone.c",
    ]


def test_every_function_that_the_page_speaks_of_is_in_the_table() -> None:
    text = PAGE.read_text()
    told = text[text.index("## Where to find") : text.index("## Add an option")]
    named = {name for name in NAME.findall(told) if FUNCTION.fullmatch(name)}
    assert named - {"dead_letter", "max_bytes"} == set(table(text))
