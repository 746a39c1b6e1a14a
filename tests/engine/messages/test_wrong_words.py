"""Names and calls that other queues have, and this one has not: the error says what is meant instead."""

import os
import pickle
from collections import UserDict
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import shmq


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("empty", r"shmq\.mp\.Queue"),
        ("maxsize", "options"),
        ("peek", "browse"),
        ("clear", "purge"),
        ("join_thread", r"shmq\.mp\.Queue"),
        ("ack", "receive"),
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


def test_what_a_codec_raises_names_the_body_in_a_note(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("q", codec="pickle")
    with pytest.raises((AttributeError, pickle.PicklingError)) as caught:
        queue.put_many(["a", "b", lambda: None, "c"])
    assert caught.value.__notes__ == ["put_many(), body number 2, counted from 0"]
    assert caught.value.accepted == 2  # type: ignore[attr-defined]
    assert queue.get_many(9, timeout=0) == ["a", "b"]


ONE_BODY = ["abc", "", b"abc", bytearray(b"abc"), memoryview(b"abc"), {"url": "a"}, {}, UserDict(url="a"), os.environ]


@pytest.mark.parametrize("body", ONE_BODY)
def test_one_body_is_no_batch(body: Any, queue: shmq.Queue[Any]) -> None:
    many: Any = queue.put_many
    for options in ({}, {"ttl": 5}, {"timeout": 1}):
        with pytest.raises(TypeError, match=r"put\(\) puts one message") as caught:
            many(body, **options)
        assert caught.value.accepted == 0  # type: ignore[attr-defined]
    assert queue.qsize() == 0


def test_block_of_other_queues_is_told_as_a_timeout(queue: shmq.Queue[Any]) -> None:
    anything: Any = queue
    wrong: list[Callable[[], Any]] = [
        lambda: anything.get(block=False),
        lambda: anything.get(False),
        lambda: anything.put("a", block=False),
    ]
    for call in wrong:
        with pytest.raises(TypeError, match="timeout=0"):
            call()


@pytest.mark.parametrize("before", [0, 2, 64, 200])
def test_a_body_that_the_codec_refuses_is_named(before: int, queue: shmq.Queue[Any]) -> None:
    with pytest.raises(TypeError, match=f"body number {before}, .*tuple") as caught:
        queue.put_many([*range(before), (3,), 4])
    assert caught.value.accepted == before  # type: ignore[attr-defined]
    assert queue.get_many(1000, timeout=0) == list(range(before))


class Loaded:
    def __reduce__(self) -> Any:
        return loads, ()


def loads() -> NoReturn:
    raise AssertionError("only a look at the message")


LOUD = shmq.Codec("text/plain; charset=utf-8", lambda body: bytes(body), lambda data: loads())


@pytest.mark.parametrize(
    ("codec", "body", "shown"),
    [
        (None, "hello", "5 bytes: 'hello'"),
        (None, "", "0 bytes"),
        (None, "\u20ac" * 41, f"123 bytes: '{'€' * 40}'..."),
        (None, "\U0001f600" * 1000, f"4,000 bytes: '{'😀' * 40}'..."),
        (None, {"a": [1, None]}, """14 bytes: '{"a":[1,null]}'"""),
        ("bytes", b"z" * 41, f"41 bytes: {b'z' * 40!r}..."),
        (LOUD, b"\xffabc", "4 bytes: '\ufffdabc'"),
    ],
)
def test_a_message_shows_how_its_body_begins(broker: shmq.Broker, codec: Any, body: Any, shown: str) -> None:
    queue: shmq.Queue[Any] = broker.queue("q", codec=codec)
    queue.put(body)
    (seen,) = queue.browse()
    assert repr(seen) == f"<Message 1 of 'q', position 0, {shown}, browsed>"
    m = queue.receive()
    assert repr(m) == f"<Message 1 of 'q', position 0, {shown}, unsettled>"
    m.ack()
    assert repr(m) == f"<Message 1 of 'q', position 0, {shown}, acked>"
    assert len(repr(m)) < 300


def test_a_look_at_a_message_runs_no_code_of_its_body_and_never_fails(broker: shmq.Broker) -> None:
    queue: shmq.Queue[Any] = broker.queue("q", codec="pickle")
    queue.put(Loaded())
    large: shmq.Queue[Any] = broker.queue("large", codec="bytes")
    large.put(bytes(1_000_000))
    assert repr(queue) == f"<Queue 'q' of {broker.path}, 1 ready>"
    first, second = queue.receive(), large.receive()
    assert "bytes: b'" in repr(first)
    assert "1,000,000 bytes: b'\\x00" in repr(second)
    if (pid := os.fork()) == 0:
        os._exit(0 if "unsettled>" in repr(first) and "unsettled>" in repr(second) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    large.delete()
    assert "1,000,000 bytes" in repr(second)
    broker.close()
    assert repr(first).startswith("<Message ")
    assert repr(second).startswith("<Message ")
    assert repr(queue) == f"<Queue 'q' of {broker.path}>"
