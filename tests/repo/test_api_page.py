"""The page of all public names says what their docstrings say."""

import inspect
import re
from operator import attrgetter
from types import MethodDescriptorType

import pytest

import shmq
from generate import api_page
from generate.public_names import MODULES, Public, public
from shmq.options import PUT_OPTIONS
from tests.repo.tree import ROOT

MADE_IN_C = [name for module in MODULES for name in public(module) if isinstance(name.thing, MethodDescriptorType)]


def test_the_page_is_what_the_docstrings_say() -> None:
    assert api_page.PAGE == ROOT / "docs" / "api.md"
    assert api_page.main(["--check"]) == 0, "tools/api writes the page anew"


def test_every_public_name_stands_there_once() -> None:
    titles, properties = set(), []
    for name in (name for module in MODULES for name in public(module)):
        own = name.name if name.kind in api_page.TITLED else ".".join(name.name.split(".")[-2:])
        titles |= {own} if name.kind != "property" else set()
        properties += [api_page.property_line(name)] if name.kind == "property" else []
    found = re.findall(r"^#{3,4} ([\w.]+)$", api_page.page(), re.MULTILINE)
    assert len(titles) > 100
    assert set(found) == titles
    assert len(properties) > 20
    assert set(properties) <= set(api_page.page().splitlines())


def test_a_change_of_a_type_a_field_a_base_or_a_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is how a change of the public surface is noticed."""
    text = api_page.page()
    for shown in (
        "put(body: T, *, timeout: float | None = None, **options: Unpack[PutOptions]) -> int",  # made in C
        "codec: Literal['bytes']",  # one of several overloads
        "`maxsize: int`, `slot_size: Size`",
        "Is a `BrokerError`, `FileNotFoundError`.",
        "resource: Literal['maxsize', 'max_bytes', 'memory', 'disk']",
        "* `body: T`: ",
        "As in [shmq.mp.Queue](#shmqmpqueue): `put`, ",
        "put(obj: T, /, block: bool = True, timeout: float | None = None) -> None",  # of a protocol
    ):
        assert shown in text
    monkeypatch.setitem(shmq.Death.__annotations__, "at", "int")
    assert "`at: int`" in api_page.page([shmq])


@pytest.mark.parametrize("name", MADE_IN_C, ids=lambda name: name.name)
def test_what_is_made_in_c_takes_what_its_types_say(name: Public) -> None:
    """C takes by place what Python may also take by name, and names each of the options."""
    assert name.typed is not None
    given, typed = (inspect.signature(thing).parameters.values() for thing in (name.thing, name.typed))
    options = [key for key in PUT_OPTIONS if name.name == "shmq.Queue.put" or key != "immediate"]
    kinds = [
        [(p.name, p.kind.name.replace("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD"), p.default) for p in ps]
        for ps in ([p for p in given if p.name not in options], [p for p in typed if p.name != "options"])
    ]
    assert kinds[0] == kinds[1]
    assert [p.name for p in given if p.name in options] == options * any(p.name == "options" for p in typed)
    assert len(MADE_IN_C) >= 5


def test_signatures_that_people_complete_name_each_option() -> None:
    named = {
        shmq.QueueOptions: ("Broker.queue", "Queue.alter"),
        shmq.PutOptions: ("Queue.put", "Queue.loan", "Queue.loan_array"),
    }
    for options, functions in named.items():
        for function in map(attrgetter, functions):
            assert {*options.__annotations__} < {*inspect.signature(function(shmq)).parameters, "self"}
    assert "lease: float | None = <not given>" in str(inspect.signature(shmq.Queue.alter)).replace("'", "")


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
