"""The end of a queue: shut down, reopened, deleted, also under those who wait."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shmq
from tests.engine.child import Child, eventually
from tests.engine.conftest import Taker

Call = Callable[[shmq.Queue[Any]], Any]
TAKE_CALLS: dict[str, Call] = {
    "get": lambda q: q.get(),
    "get_many": lambda q: q.get_many(3),
    "receive": lambda q: q.receive(),
    "receive_many": lambda q: q.receive_many(3),
    "consumer": lambda q: q.consumer().receive(),
}


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[BaseException | Any]]:
    """Starts the call; the list gets what it answers or raises."""
    results: list[BaseException | Any] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, results


def finish(thread: threading.Thread) -> None:
    thread.join(120)
    assert not thread.is_alive()


def test_takers_drain_a_queue_that_was_shut_down(queue: shmq.Queue[Any], take: Taker) -> None:
    queue.put_many(["a", "b"])
    queue.shutdown()
    assert queue.statistics().shut_down
    with pytest.raises(shmq.ShutDown, match="reopen"):
        queue.put("c")
    with pytest.raises(shmq.ShutDown):
        queue.put({"c": 1}, timeout=0)
    with pytest.raises(shmq.ShutDown):
        queue.put_many(["c"])
    with pytest.raises(shmq.ShutDown):
        queue.loan(5).commit()
    assert take(queue, None) == "a"
    assert take(queue, 0) == "b"
    for timeout in (None, 0, 5.0):
        with pytest.raises(shmq.ShutDown):
            take(queue, timeout)
    with pytest.raises(shmq.ShutDown):
        queue.get_many(5)
    with pytest.raises(shmq.ShutDown):
        queue.receive_many(5)
    assert queue.statistics().put == 2


def test_loops_end_when_the_queue_is_drained(queue: shmq.Queue[Any]) -> None:
    queue.put_many(range(5))
    queue.shutdown()
    seen = []
    for m in queue.consumer():
        with m:
            seen.append(m.body)
    assert seen == [0, 1, 2, 3, 4]


def test_a_message_released_while_draining_is_drained_too(queue: shmq.Queue[Any]) -> None:
    queue.put("a")
    m = queue.receive(timeout=0)
    queue.shutdown()
    m.release()
    assert queue.get() == "a"


def test_an_immediate_shutdown_ends_takers_at_once_and_messages_stay(queue: shmq.Queue[Any], take: Taker) -> None:
    queue.put_many(["a", "b"])
    queue.shutdown(immediate=True)
    with pytest.raises(shmq.ShutDown):
        take(queue, None)
    assert list(queue.consumer()) == []
    assert queue.qsize() == 2
    queue.reopen()
    assert take(queue, 0) == "a"


def test_a_reopened_queue_is_in_service_for_everybody(broker_dir: Path, queue: shmq.Queue[Any], take: Taker) -> None:
    queue.shutdown()
    program = """
q = shmq.open(sys.argv[1]).queue("jobs", create=False)
try:
    q.put("a")
except shmq.ShutDown:
    q.reopen()
q.put("b")
"""
    with Child(program, broker_dir) as child:
        child.end()
    assert not queue.statistics().shut_down
    assert take(queue, 0) == "b"


@pytest.mark.parametrize("immediate", [False, True])
@pytest.mark.parametrize("name", sorted(TAKE_CALLS))
def test_a_shutdown_ends_the_wait_of_takers(queue: shmq.Queue[Any], name: str, immediate: bool) -> None:
    thread, results = in_thread(lambda: TAKE_CALLS[name](queue))
    eventually(lambda: queue._waiters()["asleep"] == 1, "a waiting thread")
    queue.shutdown(immediate=immediate)
    finish(thread)
    assert isinstance(results[0], shmq.ShutDown)


def test_a_shutdown_ends_the_wait_of_producers_and_browsers(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    browser, seen = in_thread(lambda: [m.body for m in queue.browse(follow=True)])
    producer, results = in_thread(lambda: queue.put("b"))
    eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
    queue.shutdown()
    finish(producer)
    finish(browser)
    assert isinstance(results[0], shmq.ShutDown)
    assert seen == [["a"]]


def test_a_shutdown_from_another_process_ends_a_loop_here(broker_dir: Path, queue: shmq.Queue[Any]) -> None:
    thread, results = in_thread(lambda: [m.body for m in queue.consumer()])
    eventually(lambda: queue._waiters()["asleep"] == 1, "a waiting thread")
    with Child("shmq.open(sys.argv[1]).queue('jobs').shutdown()", broker_dir) as child:
        child.end()
    finish(thread)
    assert results == [[]]


# ---- deleted ---------------------------------------------------------------------------------------------------

CALLS: dict[str, Call] = {
    **TAKE_CALLS,
    "put": lambda q: q.put("a"),
    "put_slow": lambda q: q.put({"a": 1}),
    "put_many": lambda q: q.put_many(["a", "b"]),
    "qsize": lambda q: q.qsize(),
    "statistics": lambda q: q.statistics(),
    "join": lambda q: q.join(timeout=0),
    "purge": lambda q: q.purge(),
    "shutdown": lambda q: q.shutdown(),
    "reopen": lambda q: q.reopen(),
    "delete": lambda q: q.delete(),
    "loan": lambda q: q.loan(5).commit(),
    "browse": lambda q: list(q.browse()),
    "browse_next": lambda q: list(q.browse(start="next")),
    "options": lambda q: q.options,
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_every_call_on_a_deleted_queue_is_not_found(broker: shmq.Broker, queue: shmq.Queue[Any], name: str) -> None:
    queue.put("a")
    queue.delete()
    with pytest.raises(shmq.NotFound, match="'jobs'"):
        CALLS[name](queue)
    assert broker.queues() == []


@pytest.mark.parametrize("name", sorted(TAKE_CALLS))
def test_deletion_ends_the_wait_of_takers(queue: shmq.Queue[Any], name: str) -> None:
    """Shows C14."""
    thread, results = in_thread(lambda: TAKE_CALLS[name](queue))
    eventually(lambda: queue._waiters()["asleep"] == 1, "a waiting thread")
    queue.delete()
    finish(thread)
    assert isinstance(results[0], shmq.NotFound)


def test_deletion_ends_the_waits_of_other_processes(broker_dir: Path, broker: shmq.Broker) -> None:
    """Shows C14."""
    queue = broker.queue("jobs", maxsize=1)
    queue.put("a")
    program = """
q = shmq.open(sys.argv[1]).queue("jobs")
say("waits")
try:
    {wait}
except shmq.NotFound as error:
    say(error)
"""
    waits = ("q.put('b')", "q.join()", "list(q.browse(start='next', follow=True))")
    children = [Child(program.format(wait=wait), broker_dir) for wait in waits]
    try:
        for child in children:
            assert child.line() == "waits"
            child.sleeps()
        eventually(lambda: queue.statistics().producers_waiting == 1, "a waiting producer")
        queue.delete()
        for child in children:
            assert "queue 'jobs' was deleted" in child.line()
            child.end()
    finally:
        for child in children:
            child.__exit__(None, None, None)


def test_messages_of_a_deleted_queue_go_with_it_and_give_their_memory_back(broker: shmq.Broker) -> None:
    for _ in range(30):  # 60 MB in a broker of 16
        queue = broker.queue("jobs")
        assert queue.qsize() == 0
        queue.put_many([b"x" * 100_000] * 20, timeout=0)
        queue.delete()
        with pytest.raises(shmq.NotFound):
            broker.queue("jobs", create=False)


def test_messages_of_a_deleted_queue_go_to_the_queue_that_was_named_for_the_dead(broker: shmq.Broker) -> None:
    """Shows E5, E15, E16, R16."""
    queue, dead_letters = broker.queue("jobs", dead_letter="dead_letters"), broker.queue("dead_letters")
    queue.put_many(["a", "b", "c", "d"])
    held = [queue.receive(timeout=0) for _ in range(3)]
    queue.delete()
    assert [m.body for m in dead_letters.browse()] == ["d"]
    held[0].ack()
    held[1].release()
    held[2].retry("too late")
    assert dead_letters.statistics().ready == 3  # whoever looks buries what has come back
    dead = list(dead_letters.browse())
    assert sorted(m.body for m in dead) == ["b", "c", "d"]
    assert {m.death.reason for m in dead if m.death} == {"queue_deleted"}
    assert broker._membership.live().usage()["damage"] == 0


def test_a_queue_whose_messages_find_no_room_among_the_dead_is_not_deleted(broker: shmq.Broker) -> None:
    dead_letters = broker.queue("dead_letters", maxsize=1)
    queue = broker.queue("jobs", dead_letter="dead_letters")
    queue.put_many(["a", "b"])
    with pytest.raises(shmq.Full, match="no room"):
        queue.delete()
    assert not queue.statistics().shut_down
    assert [dead_letters.get(timeout=0)] == ["a"]
    queue.delete()
    assert dead_letters.get(timeout=0) == "b"


def test_a_queue_of_the_same_name_is_another_one(broker: shmq.Broker) -> None:
    old = broker.queue("jobs")
    old.delete()
    new = broker.queue("jobs", maxsize=7)
    new.put("a")
    with pytest.raises(shmq.NotFound):
        old.get(timeout=0)
    assert new.get(timeout=0) == "a"


def test_a_temporary_queue_goes_with_the_process_that_made_it(broker_dir: Path, broker: shmq.Broker) -> None:
    program = """
broker = shmq.open(sys.argv[1])
say(broker.queue().name)
listen()
"""
    with Child(program, broker_dir) as child:
        name = child.line()
        queue = broker.queue(name, create=False)
        assert queue.options["temporary"]
        queue.put("a")
        child.kill()
    eventually(lambda: name not in broker.statistics().queues, "the queue gone")
    with pytest.raises(shmq.NotFound):
        queue.get(timeout=0)


def test_a_temporary_queue_goes_when_its_broker_is_closed(broker_dir: Path, broker: shmq.Broker) -> None:
    with Child("b = shmq.open(sys.argv[1]); say(b.queue().name); b.close(); listen()", broker_dir) as child:
        name = child.line()
        eventually(lambda: name not in broker.statistics().queues, "the queue gone")


def test_a_queue_without_a_name_cannot_stay(broker: shmq.Broker) -> None:
    with pytest.raises(ValueError, match="temporary"):
        broker.queue(temporary=False)
