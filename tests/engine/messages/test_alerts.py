"""Alerts tell people that a queue flows and has recovered, that thresholds are reached, that the disk is full."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq import Alerts
from tests.engine.child import Child, eventually
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.engine.numbered import put_numbers

pytestmark = pytest.mark.memory  # each says itself what flows

LITTLE = 20_000  # bytes in memory, so that a few hundred messages flow
AGE = 0.5  # seconds
CLOCKS = 0.02  # seconds; by which two clocks may differ
LOGGING = """
import logging
class Lines(logging.Handler):
    def emit(self, record):
        say(record.alert, record.getMessage())
logging.getLogger("shmq.alert").addHandler(Lines())
"""

Told = Callable[[], list[str]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Told]:
    """The kinds of alerts that this process has told so far."""
    with caplog.at_level(logging.WARNING, "shmq.alert"):
        yield lambda: [record.__dict__["alert"] for record in caplog.records if record.name == "shmq.alert"]


def fill(queue: shmq.Queue[Any]) -> None:
    """Until it flows."""
    number = 0
    while not queue.statistics().flowed:
        put_numbers(queue, range(number, number + 100))
        number += 100


def empty(queue: shmq.Queue[Any]) -> None:
    while queue.get_many(1000, timeout=0):
        pass


def test_it_is_told_once_that_a_queue_flows_and_once_that_it_has_recovered(broker: shmq.Broker, told: Told) -> None:
    """Shows S138, S188, G5."""
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE)
    put_numbers(queue, range(100))
    queue.statistics()
    assert told() == []
    fill(queue)
    queue.statistics()
    assert told() == ["flowed"]
    put_numbers(queue, range(1000))
    queue.statistics()
    assert told() == ["flowed"]
    empty(queue)
    queue.statistics()
    assert told() == ["flowed", "recovered"]


def test_it_flows_and_has_recovered_also_with_delayed_messages(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("later", codec="bytes", max_memory=1)
    for number in range(3):
        queue.put(b"%d" % number, delay=3600)
    assert queue.statistics().flowed
    assert told() == ["flowed"]
    assert queue.purge() == 3
    assert not queue.statistics().flowed
    assert told() == ["flowed", "recovered"]
    soon = broker.queue("soon", codec="bytes", max_memory=1)
    for number in range(3):
        soon.put(b"%d" % number, delay=1)
    eventually(lambda: not soon.get_many(1, timeout=0) and told()[2:] == ["flowed"], "a call tells")
    assert sorted(soon.get(timeout=60) for _ in range(3)) == [b"0", b"1", b"2"]
    eventually(lambda: not soon.get_many(1, timeout=0) and told()[2:] == ["flowed", "recovered"], "a call tells")


def test_what_flowed_and_recovered_between_two_looks_is_told_in_one(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE)
    logging.getLogger("shmq.alert").disabled = True
    try:
        fill(queue)
        empty(queue)
    finally:
        logging.getLogger("shmq.alert").disabled = False
    queue.statistics()
    assert told() == ["recovered"]


def test_a_queue_that_comes_and_goes_is_told_of_once_in_repeat(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE, alerts=Alerts(repeat=3600))
    for _ in range(3):
        fill(queue)
        empty(queue)
        queue.statistics()
    assert told() == ["flowed", "recovered"]
    queue.alter(alerts=Alerts(repeat=1e-9))
    queue.statistics()
    assert told() == ["flowed", "recovered", "recovered"]  # of the last two times


def test_a_threshold_below_max_memory_gives_early_warning(broker: shmq.Broker, told: Told) -> None:
    """Shows S121, S139, S173."""
    queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE, alerts=Alerts(bytes=LITTLE * 8 // 10))
    size = 0
    while size < LITTLE * 9 // 10:
        queue.put(bytes(500))
        size += 500
    eventually(lambda: queue.statistics() and told() == ["bytes"], "the early warning")
    assert not queue.statistics().flowed
    fill(queue)
    queue.statistics()
    assert told() == ["bytes", "flowed"]


@pytest.mark.parametrize(
    ("alerts", "kind", "words"),
    [
        (Alerts(messages=3), "messages", "queue 'jobs' has 3 messages, its alerts= says 3"),
        (Alerts(bytes=600), "bytes", "queue 'jobs' has 600 bytes of messages, its alerts= says 600"),
        (Alerts(message_bytes=200), "message_bytes", "queue 'jobs' was given a message of 200 bytes"),
        (Alerts(age=1e-6), "age", "its alerts= says 1e-06"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_threshold_is_told_with_its_figures(
    broker: shmq.Broker, told: Told, caplog: pytest.LogCaptureFixture, alerts: Alerts, kind: str, words: str
) -> None:
    queue = broker.queue("jobs", codec="bytes", alerts=alerts)
    assert queue.options["alerts"] == alerts
    queue.put_many([bytes(200)] * 3)
    eventually(lambda: queue.statistics() and told(), "the alert")
    assert told() == [kind]
    record = caplog.records[-1]
    assert words in record.getMessage()
    assert (record.__dict__["queue"], record.levelname) == ("jobs", "WARNING")


def test_messages_of_all_states_count_and_none_is_told_of_below(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("jobs", alerts=Alerts(messages=3))
    queue.put("ready")
    queue.put("delayed", delay=3600)
    other = broker.queue("other", alerts=Alerts(messages=1))
    other.put("sentinel")
    eventually(lambda: other.statistics() and told() == ["messages"], "a look at both")
    queue.put("held")
    with queue.receive():
        eventually(lambda: queue.statistics() and told() == ["messages"] * 2, "the alert")


def test_what_stays_so_is_told_again_after_repeat(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("jobs", alerts=Alerts(messages=1, repeat=0.001))
    queue.put("x")
    eventually(lambda: queue.statistics() and len(told()) >= 3, "three alerts")


def test_a_process_that_waits_tells(broker: shmq.Broker, told: Told) -> None:
    queue, quiet = broker.queue("jobs", alerts=Alerts(age=0.01)), broker.queue("quiet")
    queue.put("x")
    thread, _ = in_thread(lambda: quiet.get(timeout=None))
    eventually(lambda: told() == ["age"], "the alert")
    quiet.put("end")
    finish(thread)


def test_a_put_that_waits_for_room_tells(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("jobs", maxsize=1, alerts=Alerts(messages=1))
    queue.put("x")
    thread, _ = in_thread(lambda: queue.put("y"))
    eventually(lambda: told() == ["messages"], "the alert")
    assert queue.get(timeout=5.0) == "x"
    finish(thread)


def test_a_producer_that_neither_waits_nor_looks_tells(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("jobs", overflow="drop_oldest", maxsize=10, alerts=Alerts(messages=10))
    eventually(lambda: queue.put("x") and told() == ["messages"], "the alert")


def test_nothing_is_told_where_nobody_listens_and_another_process_tells_it(broker_dir: Path) -> None:
    deaf = "queue = shmq.open(sys.argv[1]).queue('jobs', alerts=shmq.Alerts(messages=1)); queue.put('x')\n"
    deaf += "say('put')\nwhile True:\n    queue.statistics(); time.sleep(0.01)"
    hears = LOGGING + "shmq.open(sys.argv[1]).queue('quiet').get()"
    with Child(deaf, broker_dir) as other:
        assert other.line() == "put"
        with Child(hears, broker_dir) as child:
            assert child.line() == "messages queue 'jobs' has 1 message, its alerts= says 1"


def test_of_several_processes_that_listen_one_tells(broker_dir: Path) -> None:
    """Shows G5."""
    program = LOGGING + (
        "queue = shmq.open(sys.argv[1]).queue('jobs', alerts=shmq.Alerts(messages=1, repeat=3600))\n"
        "say('ready'); listen(); end = time.monotonic() + 3\n"  # there are three looks in it
        "while time.monotonic() < end:\n    queue.statistics()\n"
        "say('end')"
    )
    with shmq.open(broker_dir) as broker, Child(program, broker_dir) as a, Child(program, broker_dir) as b:
        assert a.line() == b.line() == "ready"
        broker.queue("jobs").put("x")
        a.tell("go")
        b.tell("go")
        lines = [line for child in (a, b) for line in iter(child.line, "end")]
    assert lines == ["messages queue 'jobs' has 1 message, its alerts= says 1"]


def test_what_a_process_was_about_to_tell_when_it_died_is_told_by_another_after_repeat(broker_dir: Path) -> None:
    """Shows G5."""
    dies = (
        LOGGING.replace("say(record.alert, record.getMessage())", "os.kill(os.getpid(), signal.SIGKILL)")
        + "queue = shmq.open(sys.argv[1]).queue('jobs', alerts=shmq.Alerts(messages=1, repeat=2)); queue.put('x')\n"
        + "while True:\n    queue.statistics()"
    )
    hears = LOGGING + "shmq.open(sys.argv[1]).queue('quiet').get()"
    with shmq.open(broker_dir), Child(dies, broker_dir) as victim:
        victim.process.wait(120)
        with Child(hears, broker_dir) as child:
            assert child.line().startswith("messages queue 'jobs' has 1 message")


def test_a_handler_may_put_into_the_queue_that_it_is_told_of(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", alerts=Alerts(messages=1, repeat=0.001))

    class Putting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            queue.put(record.getMessage())
            queue.statistics()

    handler = Putting()
    logging.getLogger("shmq.alert").addHandler(handler)
    try:
        queue.put("x")
        eventually(lambda: queue.statistics().ready >= 3, "two alerts among the messages")
    finally:
        logging.getLogger("shmq.alert").removeHandler(handler)


def test_a_full_disk_is_told_of_and_nine_tenths_of_its_budget_are(
    broker_dir: Path, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    with shmq.open(broker_dir, memory="16MiB", disk="4MiB") as broker:
        queue = broker.queue("backlog", codec="bytes", max_memory=LITTLE, alerts=Alerts(repeat=3600))
        while broker.statistics().disk_used < 3.85e6:
            queue.put(bytes(10_000))
        assert told() == ["flowed", "disk"]
        with pytest.raises(shmq.Full):
            queue.put_many((bytes(10_000) for _ in range(1000)), timeout=0)
        queue.statistics()
        assert told() == ["flowed", "disk", "disk_full"]
        text = caplog.records[-1].getMessage()
        assert re.search(
            r"[\d,]+ of 4,194,304 bytes. .* producers .* are told Full: take messages out, or .* disk=", text
        )


def test_alerts_are_altered_and_taken_away(broker: shmq.Broker, told: Told) -> None:
    queue = broker.queue("jobs", alerts=Alerts(messages=1))
    queue.alter(alerts=None)
    other = broker.queue("other", alerts=Alerts(messages=1))
    queue.put("x")
    other.put("x")
    eventually(lambda: other.statistics() and told(), "a look at both")
    queue.alter(alerts=Alerts(bytes=1))
    eventually(lambda: queue.statistics() and len(told()) == 2, "the alert")
    assert told() == ["messages", "bytes"]
    assert queue.options["alerts"] == Alerts(bytes=1)


def test_the_age_is_that_of_messages_on_disk_too(broker: shmq.Broker, told: Told) -> None:
    """All but the newest message lie on disk."""
    queue = broker.queue("backlog", codec="bytes", max_memory=1, alerts=Alerts(age=AGE, repeat=3600))
    put_numbers(queue, range(20))
    first = next(queue.browse())
    eventually(lambda: time.time() - first.enqueued_at > AGE + CLOCKS, "the age")
    put_numbers(queue, range(20, 21))
    seen = queue.statistics()
    assert seen.flowed
    assert seen.oldest_age is not None
    assert seen.oldest_age >= AGE
    assert "age" in told()
    empty(queue)
    assert queue.statistics().oldest_age is None
