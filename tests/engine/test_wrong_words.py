"""Names and calls that other queues have, and this one has not: the error says what is meant instead."""

from typing import Any

import pytest

import shmq


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("empty", "qsize"),
        ("full", "timeout=0"),
        ("get_nowait", r"get\(timeout=0\)"),
        ("put_nowait", "timeout=0"),
        ("task_done", "ack"),
        ("close", "broker"),
        ("nothing", "no attribute 'nothing'$"),
    ],
)
def test_a_method_of_other_queues_is_an_error_that_says_how_it_is_done(
    name: str, says: str, queue: shmq.Queue[Any]
) -> None:
    with pytest.raises(AttributeError, match=says):
        getattr(queue, name)
    assert not hasattr(queue, name)


def test_a_queue_is_neither_a_sequence_nor_empty(queue: shmq.Queue[Any]) -> None:
    anything: Any = queue
    assert anything
    with pytest.raises(TypeError, match="qsize"):
        len(anything)
    with pytest.raises(TypeError, match="browse"):
        list(anything)


def test_a_broker_is_no_mapping(broker: shmq.Broker) -> None:
    anything: Any = broker
    assert anything
    with pytest.raises(TypeError, match=r"broker.queue\('jobs'\)"):
        anything["jobs"]
    with pytest.raises(TypeError, match="NotFound"):
        "jobs" in anything  # noqa: B015
    with pytest.raises(TypeError, match="queues"):
        list(anything)


@pytest.mark.parametrize("body", [{"url": "a"}, {}, b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_one_body_is_no_batch(body: Any, queue: shmq.Queue[Any]) -> None:
    many: Any = queue.put_many
    for options in ({}, {"ttl": 5}, {"timeout": 1}):
        with pytest.raises(TypeError, match=r"put\(\)") as caught:
            many(body, **options)
        assert caught.value.accepted == 0  # type: ignore[attr-defined]
    assert queue.qsize() == 0


@pytest.mark.parametrize("before", [0, 2, 64, 200])
def test_a_body_that_the_codec_refuses_is_named(before: int, queue: shmq.Queue[Any]) -> None:
    with pytest.raises(TypeError, match=f"body number {before}, .*tuple") as caught:
        queue.put_many([*range(before), (3,), 4])
    assert caught.value.accepted == before  # type: ignore[attr-defined]
    assert queue.get_many(1000, timeout=0) == list(range(before))


def test_a_message_says_how_large_it_is(queue: shmq.Queue[Any]) -> None:
    queue.put("hello")
    with queue.receive() as m:
        assert repr(m) == "<Message 1 of 'jobs', position 0, 5 bytes, unsettled>"
