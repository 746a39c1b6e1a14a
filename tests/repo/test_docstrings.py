"""Every public name says what it takes, what it raises and how it is used, and every example does what it shows."""

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import shmq
from generate.public_names import MODULES, Public, public
from shmq.mp import process_broker

ENOUGH = 40  # examples; fewer would mean that they are not found


ALL = {name.name: name for module in MODULES for name in public(module)}
WITH_A_JVM = {"shmq.spark.local_session", "shmq.spark.map_in_pool"}  # run by tests/spark/test_local_session.py


def missing(thing: Public) -> list[str]:
    """The parts that a reader of the docstring would look for in vain."""
    lacks = [] if thing.text else ["a docstring"]
    if thing.kind == "property":
        return lacks
    for parameter in thing.parameters():
        if not re.search(rf"^ *(\w+, )*{parameter}(, \w+)*: ", thing.text, re.MULTILINE):
            lacks.append(f"a line `{parameter}: ...`")
    if thing.kind != "class" and not re.search(r"\b[Rr]aises\b", thing.text):
        lacks.append("what it raises")
    if not re.search(r"^Example:\n    >>> ", thing.text, re.MULTILINE):
        lacks.append("an example")
    return lacks


def test_every_public_name_tells_its_arguments_its_errors_and_an_example() -> None:
    assert len(ALL) > 100
    found = [f"{name} lacks {', '.join(lacks)}" for name, thing in ALL.items() if (lacks := missing(thing))]
    assert not found, "\n".join(found)


def test_a_snapshot_explains_each_of_its_fields() -> None:
    for kind in (shmq.QueueStatistics, shmq.BrokerStatistics, shmq.ProcessInfo, shmq.PoolCounts, shmq.Death):
        text = inspect.getdoc(kind) or ""
        fields = list(inspect.signature(kind).parameters)
        assert [f for f in fields if not re.search(rf"^ *(\w+, )*{f}(, \w+)*: ", text, re.MULTILINE)] == []


def test_the_help_of_what_makes_a_queue_names_all_options() -> None:
    named = set(re.findall(r"\w+", inspect.getdoc(shmq.Broker.queue) or ""))
    assert set(shmq.QueueOptions.__annotations__) - named == set()


def test_what_a_docstring_lacks_is_noticed() -> None:
    def bare(path: str, limit: int) -> None:
        """Does it.

        path: where.
        """

    assert missing(Public("bare", bare, "function")) == ["a line `limit: ...`", "what it raises", "an example"]


@pytest.fixture
def names(broker_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[str, object]]]:
    """Gives what the examples speak of, in a broker and a directory of their own."""
    brokers: list[shmq.Broker] = []

    def made() -> dict[str, object]:
        folder = broker_dir / str(len(brokers))
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        broker = shmq.open("example.shmq", memory="32MiB")
        brokers.append(broker)
        queue = broker.queue("jobs")
        return {"shmq": shmq, "broker": broker, "queue": queue, "consumer": queue.consumer()}

    monkeypatch.setattr(process_broker, "_own", None)  # whatever queue or key an example before has made
    monkeypatch.setattr(process_broker, "_key", None)
    yield made
    if process_broker._own is not None:
        process_broker._own[1].close()
    for broker in brokers:
        broker.close()


def examples() -> dict[str, str]:
    found = {name: thing.text for name, thing in ALL.items()}
    return {name: text for name, text in found.items() if ">>> " in text and name not in WITH_A_JVM}


def test_the_examples_are_found() -> None:
    assert len(examples()) > ENOUGH


@pytest.mark.parametrize("name", sorted(examples()))
def test_the_example_does_what_it_shows(name: str, names: Callable[[], dict[str, object]]) -> None:
    text = examples()[name]
    test = doctest.DocTestParser().get_doctest(text, names(), name, None, None)
    assert test.examples
    assert not any(example.options.get(doctest.SKIP) for example in test.examples)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test, out=said.append)
    assert result.attempted == len(test.examples)
    assert result.failed == 0, "".join(said)
