"""Bodies: what goes in comes out, and what does not decode is neither lost nor taken."""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest

import shmq
from shmq import Codec
from tests.engine.conftest import Taker

TABLE: list[tuple[Any, str]] = [
    (b"bytes", "application/octet-stream"),
    (b"", "application/octet-stream"),
    ("text ä", "text/plain; charset=utf-8"),
    ("", "text/plain; charset=utf-8"),
    (None, "application/json"),
    (True, "application/json"),
    (7, "application/json"),
    (-(2**53), "application/json"),
    (1.5, "application/json"),
    ([1, [2, {"a": None}]], "application/json"),
    ({"id": 7, "customer": "ann"}, "application/json"),
    ({}, "application/json"),
]


class Point:
    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and other.x == self.x


def decode_never(data: memoryview) -> int:
    raise RuntimeError("no such luck")


FAILING: Codec[int] = Codec("application/x-test", lambda n: str(n).encode(), decode_never)
WORKING: Codec[int] = Codec("application/x-test", lambda n: str(n).encode(), lambda data: int(bytes(data)))


@pytest.mark.parametrize(("body", "content_type"), TABLE, ids=[f"{body!r:.20}" for body, _ in TABLE])
def test_what_goes_in_comes_out_with_its_content_type(
    queue: shmq.Queue[Any], take: Taker, body: Any, content_type: str
) -> None:
    queue.put(body)
    (seen,) = queue.browse()
    assert seen.content_type == content_type
    out = take(queue, 0)
    assert out == body
    assert type(out) is type(body)


@pytest.mark.parametrize("body", [bytearray(b"abc"), memoryview(b"abc")])
def test_bytes_like_bodies_come_out_as_bytes(queue: shmq.Queue[Any], take: Taker, body: Any) -> None:
    queue.put(body)
    assert take(queue, 0) == b"abc"


def test_arrays_come_out_as_arrays(queue: shmq.Queue[Any], take: Taker) -> None:
    array = numpy.arange(24, dtype="int16").reshape(2, 3, 4)
    queue.put(array)
    (seen,) = queue.browse()
    assert seen.content_type == "application/x-numpy"
    out = take(queue, 0)
    assert out.dtype == array.dtype
    assert (out == array).all()
    out[0] = 0  # an own copy


REFUSED: dict[str, Any] = {
    "tuple": (1, 2),
    "set": {1, 2},
    "other keys": {1: "a"},
    "nan": math.nan,
    "inf": [math.inf],
    "too large an int": 10**5000,
    "object": Point(1),
    "objects in an array": numpy.array([object()]),
    "tuple inside": {"a": [(1,)]},
    "surrogates": "\ud800",
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_not_come_back_equal_is_a_type_error_and_nothing_is_put(queue: shmq.Queue[Any], name: str) -> None:
    body = REFUSED[name]
    with pytest.raises(TypeError):
        queue.put(body)
    with pytest.raises(TypeError):
        queue.put_many([body])
    assert queue.statistics().put == 0


def test_an_unknown_content_type_leaves_the_message_in_its_place(broker: shmq.Broker, take: Taker) -> None:
    broker.queue("jobs", codec=WORKING).put(7)
    plain = broker.queue("jobs")
    plain.put("next")
    for _ in range(3):
        with pytest.raises(shmq.DecodeError, match="application/x-test"):
            plain.get(timeout=0)
    (seen, _) = plain.browse()
    assert seen.delivery_count == 0
    assert take(broker.queue("jobs", codec=WORKING), 0) == 7
    assert take(plain, 0) == "next"


def test_a_received_message_of_an_unknown_type_still_has_its_bytes(broker: shmq.Broker) -> None:
    broker.queue("jobs", codec=WORKING).put(7)
    m = broker.queue("jobs").receive(timeout=0)
    with pytest.raises(shmq.DecodeError):
        m.body  # noqa: B018
    assert bytes(m.view()) == b"7"
    assert m.content_type == "application/x-test"
    m.release()
    assert broker.queue("jobs").qsize() == 1


def test_a_pickle_is_read_only_by_a_handle_that_asked_for_it(broker: shmq.Broker, take: Taker) -> None:
    """Shows G8."""
    pickling = broker.queue("jobs", codec="pickle")
    pickling.put(Point(3))
    plain = broker.queue("jobs")
    with pytest.raises(shmq.DecodeError, match="pickle"):
        plain.get(timeout=0)
    m = plain.receive(timeout=0)
    with pytest.raises(shmq.DecodeError, match="pickle"):
        m.body  # noqa: B018
    assert b"Point" in bytes(m.view())
    m.release()
    assert take(pickling, 0) == Point(3)


def test_a_codec_that_fails_counts_as_an_attempt_and_ends_among_the_dead(broker: shmq.Broker) -> None:
    failing = broker.queue("jobs", codec=FAILING, max_attempts=3)
    failing.put(7)
    for _ in range(3):
        with pytest.raises(shmq.DecodeError) as caught:
            failing.get(timeout=0)
        assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(shmq.Empty):
        failing.get(timeout=0)
    m = broker.queue("jobs.dead", codec=WORKING).receive(timeout=0)
    assert m.body == 7
    assert m.death is not None
    assert m.death.reason == "max_attempts"
    assert "no such luck" in (m.death.error or "")
    m.ack()


def test_a_codec_that_fails_in_a_with_block_retries(broker: shmq.Broker) -> None:
    failing = broker.queue("jobs", codec=FAILING)
    failing.put(7)
    with pytest.raises(shmq.DecodeError), failing.receive(timeout=0) as m:
        m.body  # noqa: B018
    (seen,) = failing.browse()
    assert seen.delivery_count == 1


def test_a_codec_that_fails_in_get_many_does_not_take_what_came_before_with_it(broker: shmq.Broker) -> None:
    plain = broker.queue("jobs")
    plain.put_many([1, 2])
    broker.queue("jobs", codec=WORKING).put(3)
    assert plain.get_many(10, timeout=0) == [1, 2]
    with pytest.raises(shmq.DecodeError):
        plain.get_many(10, timeout=0)
    assert plain.qsize() == 1


def test_the_bytes_codec_takes_bytes_and_gives_bytes_of_whatever_type(broker: shmq.Broker, take: Taker) -> None:
    broker.queue("jobs").put({"a": 1})
    raw = broker.queue("jobs", codec="bytes")
    assert take(raw, 0) == b'{"a":1}'
    with pytest.raises(TypeError):
        raw.put("text")  # type: ignore[arg-type]


def test_a_codec_of_ones_own_names_its_content_type(broker: shmq.Broker, take: Taker) -> None:
    queue = broker.queue("jobs", codec=WORKING)
    queue.put(12345)
    (seen,) = queue.browse()
    assert seen.content_type == "application/x-test"
    assert take(queue, 0) == 12345


@pytest.mark.parametrize("codec", ["json", 7, object()])
def test_an_unknown_codec_is_refused_before_anything_is_made(broker: shmq.Broker, codec: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        broker.queue("unmade", codec=codec)
    assert "unmade" not in broker.statistics().queues


@pytest.mark.parametrize("size", [0, 1, 100, 191, 192, 193, 1000, 65536, 65537, 1_000_000])
def test_bodies_of_all_sizes_come_out_whole(broker_dir: Path, queue: shmq.Queue[Any], take: Taker, size: int) -> None:
    body = bytes(n & 0xFF for n in range(size))
    queue.put(body, headers={"size": size})
    queue.put(body)
    assert take(queue, 0) == body
    assert take(queue, 0) == body


@pytest.mark.parametrize("name", ["shmq-trace", "JMSType", ""])
def test_reserved_names_of_headers_are_refused(queue: shmq.Queue[Any], name: str) -> None:
    with pytest.raises(ValueError):
        queue.put("a", headers={name: 1})
    assert queue.qsize() == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1, 2",
        "nul",
        "NaN",
        "[Infinity]",
        "1 2",
        '"\\ud8"',
        "[" * 100_000,
        "1" * 5000,
        '{"a": 1,}',
        "\x00",
        "-",
        "007",
        "-01",
        "+7",
        "7-",
    ],
    ids=lambda text: repr(text)[:12],
)
def test_a_body_that_says_it_is_json_and_is_none_is_an_error_and_stays(
    broker: shmq.Broker, take: Taker, text: str
) -> None:
    foreign: Codec[Any] = Codec("application/json", str.encode, decode_never)
    broker.queue("jobs", codec=foreign, max_attempts=0, max_deaths=0).put(text)
    queue: shmq.Queue[Any] = broker.queue("jobs")
    with pytest.raises(shmq.DecodeError, match="the body is not JSON, as its content type says"):
        take(queue, 0)
    assert queue.qsize() == 1


@pytest.mark.parametrize("text", [' {"a": [1, 2]}\n', '{"a" : [1,2]}', '{"a":[0],"a":[1,2]}', '{"\\u0061":[1,2]}'])
def test_json_that_another_program_wrote_is_read(broker: shmq.Broker, take: Taker, text: str) -> None:
    foreign: Codec[Any] = Codec("application/json", str.encode, decode_never)
    broker.queue("jobs", codec=foreign).put(text)
    queue: shmq.Queue[Any] = broker.queue("jobs")
    assert take(queue, 0) == {"a": [1, 2]}


@pytest.mark.parametrize(
    "text", ["0", "-0", "7", "-7", "7\n", " 7", "7e0", "9" * 18, "-" + "9" * 18, "9" * 19, "1" + "0" * 18]
)
def test_a_number_that_another_program_wrote_is_read_as_python_reads_it(
    broker: shmq.Broker, take: Taker, text: str
) -> None:
    foreign: Codec[Any] = Codec("application/json", str.encode, decode_never)
    broker.queue("jobs", codec=foreign).put(text)
    queue: shmq.Queue[Any] = broker.queue("jobs")
    body = take(queue, 0)
    assert (body, type(body)) == (json.loads(text), type(json.loads(text)))


def test_json_of_any_size_and_depth_comes_out_equal(queue: shmq.Queue[Any], take: Taker) -> None:
    deep: Any = []
    for depth in range(200):
        deep = [deep] if depth % 2 else {"in": deep}
    for body in (deep, ["ä\n" * 50_000], {str(n): n / 7 for n in range(3000)}, [10**18, -(2**63), 2**64, 10**4000]):
        queue.put(body)
        assert take(queue, 0) == body
