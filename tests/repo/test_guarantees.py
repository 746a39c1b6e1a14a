"""The page of guarantees names tests that exist: a guarantee is worth what its test is worth."""

import re

from tests.repo.tree import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
NAMED = re.compile(r"`((?:tests|native)/[\w/]+\.(?:py|c))(?:::(test_\w+))?`")
DEFINED = {".py": r"^def {}\(", ".c": r"^static void {}\("}
PROMISE = re.compile(r"^## (G\d) .*?(?=^## )", re.MULTILINE | re.DOTALL)


def missing(text: str) -> list[str]:
    """Returns the tests that `text` names and that no file defines."""
    lost = []
    for file, test in NAMED.findall(text):
        path = ROOT / file
        definition = DEFINED[path.suffix].format(test)
        if not path.exists() or (test and not re.search(definition, path.read_text(), re.MULTILINE)):
            lost.append(f"{file}::{test}")
    return lost


def test_every_test_that_a_guarantee_names_exists() -> None:
    lost = missing(PAGE.read_text())
    assert not lost, "named in docs/guarantees.md, defined nowhere:\n" + "\n".join(lost)


def test_every_guarantee_names_what_shows_it() -> None:
    promises = {match.group(1): match.group() for match in PROMISE.finditer(PAGE.read_text())}
    assert sorted(promises) == [f"G{number}" for number in range(1, 9)]
    assert not [name for name, text in promises.items() if not any(test for _, test in NAMED.findall(text))]


def models_in(text: str) -> list[str]:
    """The models that "the model `a`" or "the models `a`, `b`" names, up to the end of that sentence."""
    clauses = re.findall(r"\bmodels? (`[^.:*]*)", text)
    return [name for clause in clauses for name in re.findall(r"`(\w+)`", clause)]


def test_every_model_that_a_guarantee_names_exists() -> None:
    named = models_in(PAGE.read_text())
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / "tests" / "protocols" / f"{name}.pml").exists()] == []
    assert models_in("the models `rows`, and the reaper in `rewind`. `x`; the model `y`: `z`") == [
        "rows",
        "rewind",
        "y",
    ]


def test_a_test_that_is_gone_is_noticed() -> None:
    here = "tests/repo/test_guarantees.py"
    assert missing(f"`{here}::test_a_test_that_is_gone_is_noticed`") == []
    assert missing(f"`{here}::test_of_last_year` `tests/repo/test_never.py::test_x`") == [
        f"{here}::test_of_last_year",
        "tests/repo/test_never.py::test_x",
    ]
