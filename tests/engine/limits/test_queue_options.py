"""Options of a queue: given once, the same for all, in whatever order the processes start."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.alerts import Alerts
from shmq.options import FIXED_QUEUE_OPTIONS, LATER_PUT_OPTIONS, LATER_QUEUE_OPTIONS
from shmq.options.stage import NOT_BUILT
from tests.engine.child import Child

GIVEN: dict[str, tuple[Any, Any]] = {
    "maxsize": (10, 11),
    "slot_size": (512, 1024),
    "temporary": (True, False),
    "max_attempts": (5, 6),
    "max_deaths": (2, 0),
    "checksum": (False, True),
    "dead_letter": ("dead_letters", "others"),
    "max_bytes": (1 << 20, 1 << 21),
    "overflow": ("reject", "wait"),
    "priorities": (10, 3),
    "groups": ("shared", None),
    "retry_delay": ((1.0, 10.0), 0.5),
    "max_ttl": (3600.0, None),
    "dead_letter_expired": (True, False),
    "lease": (60.0, None),
    "live_consumers": (1, None),
    "expires": (3600.0, 0.0),
    "max_memory": (1 << 20, None),
    "alerts": (Alerts(messages=10, age=0.5), None),
}
FIXED = set(FIXED_QUEUE_OPTIONS)
# A queue keeps its options, whether anything is made of them yet or not.
ALL_BUILT = "from shmq import Alerts; import shmq.options.stage; shmq.options.stage.NOT_BUILT.clear()\n"


@pytest.fixture
def all_built() -> Iterator[None]:
    kept = set(NOT_BUILT)
    NOT_BUILT.clear()
    yield
    NOT_BUILT.update(kept)


@pytest.mark.memory
def test_options_have_defaults(queue: shmq.Queue[Any]) -> None:
    """Shows S40, S137."""
    options = queue.options
    assert set(options) == set(GIVEN)
    assert options["slot_size"] in range(128, 4097)
    del options["slot_size"]
    assert options == {
        "maxsize": 0,
        "temporary": False,
        "max_attempts": 20,
        "max_deaths": 3,
        "checksum": True,
        "dead_letter": "jobs.dead",
        "max_bytes": 0,
        "overflow": "wait",
        "priorities": 1,
        "groups": None,
        "retry_delay": 0.0,
        "max_ttl": None,
        "dead_letter_expired": False,
        "lease": None,
        "live_consumers": None,
        "expires": None,
        "max_memory": None,
        "alerts": None,
    }


@pytest.mark.memory
@pytest.mark.parametrize("name", sorted(GIVEN))
def test_an_option_is_kept_and_another_value_is_refused_naming_both_and_who_set_it(
    broker_dir: Path, broker: shmq.Broker, all_built: None, name: str
) -> None:
    """Shows S117, S123."""
    value, other = GIVEN[name]
    program = f"{ALL_BUILT}shmq.open(sys.argv[1]).queue('jobs', {name}={value!r}); say('made'); listen()"
    with Child(program, broker_dir) as child:
        assert child.line() == "made"
        assert broker.queue("jobs").options[name] == value  # type: ignore[literal-required]
        broker.queue("jobs", **{name: value})
        with pytest.raises(shmq.OptionsMismatch) as caught:
            broker.queue("jobs", **{name: other})
        text = str(caught.value)
        assert f"{name}={other!r} here, {value!r} since it was set by pid {child.pid}" in text
        assert "queue 'jobs'" in text
        assert name in caught.value.remedy
        assert broker.queue("jobs").options[name] == value  # type: ignore[literal-required]


@pytest.mark.memory
@pytest.mark.parametrize("name", sorted(set(GIVEN) - FIXED))
def test_an_option_that_nobody_gave_is_set_by_the_first_who_does(
    broker_dir: Path, broker: shmq.Broker, all_built: None, name: str
) -> None:
    value, other = GIVEN[name]
    queue = broker.queue("jobs")
    queue.put("before")
    with Child(f"{ALL_BUILT}shmq.open(sys.argv[1]).queue('jobs', {name}={value!r})", broker_dir) as child:
        child.end()
    assert queue.options[name] == value  # type: ignore[literal-required]
    with pytest.raises(shmq.OptionsMismatch, match=str(child.pid)):
        broker.queue("jobs", **{name: other})


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_fixed_option_cannot_be_given_later(broker: shmq.Broker, all_built: None, name: str) -> None:
    queue = broker.queue("jobs")
    with pytest.raises(shmq.OptionsMismatch, match=str(os.getpid())):
        broker.queue("jobs", **{name: GIVEN[name][0]})
    value: Any = queue.options[name]  # type: ignore[literal-required]
    broker.queue("jobs", **{name: value})


def test_a_mismatch_changes_nothing_at_all(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_deaths=2)
    with pytest.raises(shmq.OptionsMismatch):
        broker.queue("jobs", max_attempts=5, max_deaths=1)
    assert queue.options["max_attempts"] == 20
    broker.queue("jobs", max_attempts=7)
    assert queue.options["max_attempts"] == 7


def test_a_maxsize_given_later_counts_what_is_there(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs")
    queue.put_many(range(5))
    broker.queue("jobs", maxsize=6)
    queue.put(5, timeout=0)
    with pytest.raises(shmq.Full) as caught:
        queue.put(6, timeout=0)
    assert (caught.value.limit, caught.value.used) == (6, 6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxsize", -1), ("maxsize", "10"), ("maxsize", 1 << 40), ("slot_size", 100), ("slot_size", 130),
        ("slot_size", "1TiB"), ("temporary", 1), ("max_attempts", -1), ("max_deaths", 1 << 20), ("checksum", "yes"),
        ("dead_letter", ""), ("dead_letter", 7), ("unknown", 1),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_and_nothing_is_made(broker: shmq.Broker, name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        broker.queue("jobs", **{name: value})
    assert broker.queues() == []


@pytest.mark.parametrize("name", LATER_QUEUE_OPTIONS)
def test_an_option_of_a_later_stage_says_so(broker: shmq.Broker, name: str) -> None:
    options: dict[str, Any] = {name: 1}
    with pytest.raises(ValueError, match="later stage"):
        broker.queue("jobs", **options)
    assert broker.queues() == []


@pytest.mark.parametrize("name", LATER_PUT_OPTIONS)
def test_a_message_option_of_a_later_stage_says_so(queue: shmq.Queue[Any], name: str) -> None:
    options: Any = {name: 1}
    for call in (
        lambda: queue.put("a", **options),
        lambda: queue.put_many(["a"], **options),
        lambda: queue.loan(5, **options),
        lambda: queue.loan_array(5, "int8", **options),
    ):
        with pytest.raises(ValueError, match="later stage"):
            call()
    assert queue.statistics().put == 0


def test_the_same_options_from_many_processes_agree(broker_dir: Path) -> None:
    program = """
q = shmq.open(sys.argv[1], memory="16MiB").queue("jobs", maxsize=50, max_attempts=4)
q.put(os.getpid())
say(q.options["maxsize"])
"""
    children = [Child(program, broker_dir) for _ in range(4)]
    assert [child.end() for child in children] == ["50\n"] * 4
    with shmq.open(broker_dir, create=False) as broker:
        assert sorted(broker.queue("jobs").get_many(9, timeout=0)) == sorted(child.pid for child in children)


def test_a_dead_letter_queue_of_another_broker_is_refused(broker: shmq.Broker) -> None:
    with shmq.open(memory="8MiB") as other, pytest.raises(ValueError, match="another broker"):
        broker.queue("jobs", dead_letter=other.queue("dead_letters"))


@pytest.mark.parametrize("by_name", [True, False])
def test_a_queue_is_not_its_own_queue_for_the_dead(broker: shmq.Broker, by_name: bool) -> None:
    queue = broker.queue("jobs")
    with pytest.raises(ValueError, match=r"'jobs' would come back to it; .* leave it out for 'jobs.dead'"):
        queue.alter(dead_letter="jobs" if by_name else queue)
    with pytest.raises(ValueError, match="would come back to it"):
        broker.queue("jobs", dead_letter="jobs" if by_name else queue)
    with pytest.raises(ValueError, match="would come back to it"):
        broker.queue("new", dead_letter="new")
    assert queue.options["dead_letter"] == "jobs.dead"
    assert [found.name for found in broker.queues()] == ["jobs"]


def test_without_create_a_missing_queue_is_not_found(broker: shmq.Broker) -> None:
    with pytest.raises(shmq.NotFound):
        broker.queue("jobs", create=False)
    assert broker.queues() == []
