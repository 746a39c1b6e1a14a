"""The page of all public names says what their docstrings say."""

import re

import pytest

import api_page
import shmq
from public_names import MODULES, public
from tests.repo.tree import ROOT

HEADING = re.compile(r"^#{3,4} ([\w.]+)$", re.MULTILINE)


def test_the_page_is_what_the_docstrings_say() -> None:
    assert api_page.PAGE == ROOT / "docs" / "api.md"
    assert api_page.main(["--check"]) == 0, "tools/api writes the page anew"


def test_every_public_name_has_a_heading_once() -> None:
    names = [name for module in MODULES for name in public(module)]
    wanted = [
        name.name if name.kind in api_page.TITLED else ".".join(name.name.split(".")[-2:])
        for name in names
        if not name.name.startswith(("shmq.mp.", "shmq.spark."))
    ]
    found = HEADING.findall(api_page.page([shmq]))
    assert len(wanted) > 100
    assert sorted(found) == sorted(wanted)


def test_a_docstring_that_was_changed_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shmq.Message.retry, "__doc__", "Done.")
    assert api_page.main(["--check"]) == 1
    assert "tools/api" in capsys.readouterr().out


def test_fields_become_a_list_and_examples_code() -> None:
    text = "Does it.\n\nlimit: most\n    of all.\n    inner: deeper.\nRaises: no field.\n\nExample:\n    >>> f()\n"
    assert list(api_page.in_markdown(text, {"limit", "inner"})) == [
        "Does it.",
        "",
        "* `limit`: most of all.",
        "  * `inner`: deeper.",
        "",
        "Raises: no field.",
        "",
        "```pycon",
        ">>> f()",
        "```",
        "",
    ]
