"""Messages as Arrow streams: taken, looked at, put; rows and messages are the same."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shmq
from shmq.codec import Codec
from shmq.engine.arrow.row import FIELDS, header_text
from tests.engine.child import Child
from tests.engine.lifecycle.test_shutdown import finish, in_thread
from tests.spark.heads import any_headers
from tests.support.segment_bytes import SegmentBytes

NAMES = [field.name for field in FIELDS]


def rows(stream: pa.RecordBatchReader) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stream.read_all().to_pylist()
    return found


def of_browse(queue: shmq.Queue[Any]) -> list[dict[str, Any]]:
    """The messages of browse() in the words of the columns. The handle leaves bodies as they are."""
    return [
        {
            "queue": queue.name,
            "position": m.position,
            "message_id": m.id,
            "priority": m.priority,
            "group": m.group,
            "delivery_count": m.delivery_count,
            "content_type": m.content_type,
            "headers": [(name, header_text(value)) for name, value in m.headers.items()],
            "body": m.body,
        }
        for m in queue.broker.queue(queue.name, codec="bytes").browse()
    ]


def put_any(queue: shmq.Queue[Any], rng: random.Random, count: int, sizes: list[int]) -> None:
    """Bodies of all kinds, some with headers, groups and priorities."""
    own = queue.broker.queue(queue.name, codec=Codec("application/x-own", lambda body: bytes(body), bytes))
    for _ in range(count):
        body = rng.randbytes(rng.choice(sizes))
        options: dict[str, Any] = {"priority": rng.randrange(10)}
        if rng.random() < 0.5:
            options["headers"] = any_headers(rng)
        if rng.random() < 0.5:
            options["group"] = rng.choice(["a", "ü" * 127, f"customer {rng.randrange(5)}"])
        if rng.random() < 0.2:
            own.put(body, **options)
        else:
            queue.put(rng.choice([body, body.hex(), {"n": len(body)}]), **options)


@pytest.mark.parametrize("kind", ["in memory", "on disk"])
def test_rows_are_the_messages_looked_at_and_taken(broker_dir: Path, seed: int, kind: str) -> None:
    rng = random.Random(seed)
    with shmq.open(broker_dir, memory="64MiB", disk="256MiB") as broker:
        queue = broker.queue("orders", priorities=3, groups="shared")
        if kind == "on disk":
            queue.alter(max_memory=100_000)
        put_any(queue, rng, 400, [0, 1, 64, 200, 5_000, 70_000])
        if kind == "in memory":  # a front ring on disk would have other places afterwards
            with queue.consumer() as consumer:
                for _ in range(20):
                    consumer.receive(timeout=0).release()  # some have been delivered before
        expected = of_browse(queue)
        seen = rows(queue.browse_arrow())
        assert list(seen[0]) == NAMES
        assert [{name: row[name] for name in expected[0]} for row in seen] == expected
        assert queue.qsize() == 400
        some = ["body", "group"]
        assert rows(queue.browse_arrow(columns=some)) == [{name: row[name] for name in some} for row in seen]
        high = [row for row in seen if row["priority"] > 6]
        assert rows(queue.browse_arrow(selector="JMSPriority > 6")) == high
        taken = rows(queue.get_arrow(150, timeout=0)) + rows(queue.get_arrow(1000, timeout=0))
        places = ("position",) if kind == "on disk" else ()  # what comes back from disk has another place
        assert [{k: v for k, v in row.items() if k not in places} for row in taken] == [
            {k: v for k, v in row.items() if k not in places} for row in seen
        ]
        assert queue.qsize() == 0
        assert rows(queue.get_arrow(1, timeout=0)) == rows(queue.browse_arrow()) == []


def test_a_stream_has_batches_of_a_size_that_fits(broker_dir: Path) -> None:
    with shmq.open(broker_dir, memory="256MiB") as broker:
        small, large = broker.queue("small"), broker.queue("large")
        small.put_many([b"x"] * 40_000)
        large.put_many([bytes(6 << 20)] * 7)
        for queue, sizes in ((small, [16_384, 16_384, 7_232]), (large, [3, 3, 1])):
            looked = [batch.num_rows for batch in queue.browse_arrow(columns=["body"])]
            taken = [batch.num_rows for batch in queue.get_arrow(100_000, timeout=0, columns=["position"])]
            assert (looked, taken) == (sizes, sizes)


def test_get_arrow_waits_for_the_first_and_takes_what_is_there(queue: shmq.Queue[Any]) -> None:
    thread, results = in_thread(lambda: rows(queue.get_arrow(10, columns=["body"])))
    queue.put("late")
    finish(thread)
    assert results == [[{"body": b"late"}]]
    stream = queue.get_arrow(10, timeout=0.01)
    assert (stream.schema.names, rows(stream)) == (NAMES, [])
    queue.put_many(["a", "b", "c"])
    stream = queue.get_arrow(2)
    assert queue.qsize() == 1  # taken, though nobody has read the stream
    queue.shutdown()
    assert len(rows(queue.get_arrow(2))) == 1
    with pytest.raises(shmq.ShutDown):
        queue.get_arrow(2)


def test_what_died_of_attempts_is_not_among_the_rows_and_its_death_is_a_column(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", max_attempts=1)
    queue.put_many(["poison", "sound"])
    queue.receive().reject("unfit")
    assert [row["body"] for row in rows(queue.get_arrow(9, timeout=0))] == [b"sound"]
    ((death,),) = (row.values() for row in rows(broker.queue("jobs.dead").get_arrow(9, timeout=0, columns=["death"])))
    assert (death["queue"], death["error"]) == ("jobs", "unfit")


def test_damage_amid_the_rows_is_told_by_the_next_call(queue: shmq.Queue[Any], broker: shmq.Broker) -> None:
    queue.put_many([b"sound", b"this one is damaged", b"last"])
    with SegmentBytes.of(broker) as segment:
        at = segment.memory.find(b"this one is damaged")
        segment.flip(at, 3)
        assert [row["body"] for row in rows(queue.get_arrow(9, timeout=0))] == [b"sound"]
        with pytest.raises(shmq.CorruptionError, match="does not match"):
            queue.get_arrow(9, timeout=0)
        assert [row["body"] for row in rows(queue.get_arrow(9, timeout=0))] == [b"last"]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda queue: queue.get_arrow(0), ValueError, "1 or more"),
        (lambda queue: queue.get_arrow(True), TypeError, "number of messages"),
        (lambda queue: queue.get_arrow(1, timeout=-1), ValueError, "timeout"),
        (lambda queue: queue.get_arrow(1, columns=["bodies"]), ValueError, "no column 'bodies'.*position"),
        (lambda queue: queue.browse_arrow(columns=["body", "body"]), ValueError, "twice"),
        (lambda queue: queue.browse_arrow(columns="body"), TypeError, r"\['body'\]"),
        (lambda queue: queue.browse_arrow(selector="a ="), shmq.SelectorError, "end"),
    ],
)
def test_unfit_arguments_are_refused_and_nothing_is_taken(
    queue: shmq.Queue[Any], wrong: Callable[[shmq.Queue[Any]], object], error: type[Exception], text: str
) -> None:
    queue.put("a")
    with pytest.raises(error, match=text):
        wrong(queue)
    assert queue.qsize() == 1


# ---- put -----------------------------------------------------------------------------------------------------------


class Foreign:
    """A frame of another library, as far as Arrow knows of it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


BODIES = ["ü" * n for n in (0, 1, 40, 500)]
TABLE = pa.table({"body": BODIES})


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        TABLE.to_reader(1),
        TABLE.to_batches()[0],
        Foreign(TABLE.cast(pa.schema({"body": pa.string_view()}))),
        pa.table({"body": pa.array(BODIES).dictionary_encode()}),
        pa.table({"body": pa.chunked_array([BODIES[:1], BODIES[1:]], pa.large_string())}),
        [TABLE.slice(0, 2), TABLE.slice(2).to_batches()[0]],
        iter(TABLE.to_batches(1)),
        Foreign(pa.table({"body": [body.encode() for body in BODIES]}).cast(pa.schema({"body": pa.binary_view()}))),
    ],
    ids=["table", "reader", "batch", "views", "dictionary", "large", "list", "iterator", "views of bytes"],
)
def test_streams_of_all_kinds_are_put_in_order(queue: shmq.Queue[Any], given: Any) -> None:
    assert queue.put_arrow(given) == 4
    assert [body if isinstance(body, str) else body.decode() for body in queue.get_many(9, timeout=0)] == BODIES


@pytest.mark.parametrize("delay", [False, True], ids=["as columns", "row by row"])
@pytest.mark.parametrize("pairs", ["map", "list"])
def test_columns_are_the_options_of_a_put(broker: shmq.Broker, delay: bool, pairs: str) -> None:
    queue = broker.queue("jobs", priorities=10, groups="shared")
    pair = pa.struct({"k": pa.string(), "v": pa.string()})
    kinds = {"map": pa.map_(pa.large_string(), pa.string()), "list": pa.list_(pair)}
    headers = [{"k": "colour", "v": "red"}] if pairs == "list" else [("colour", "red")]
    table = pa.table(
        {
            "body": pa.array(['{"n":1}', "plain", None], pa.string()).slice(0, 2),
            "priority": pa.array([9, None], pa.uint8()),
            "group": pa.array(["a", None]).dictionary_encode(),
            "ttl": pa.array([60, None], pa.int16()),
            "delay": pa.array([0.0 if delay else None, None], pa.float64()),
            "content_type": pa.array(["application/json", None], pa.large_string()),
            "headers": pa.array([headers, None], kinds[pairs]),
        }
    )
    assert queue.put_arrow(table) == 2
    first, second = (queue.receive(timeout=0), queue.receive(timeout=0))
    assert (first.body, first.priority, first.group, first.headers) == ({"n": 1}, 9, "a", {"colour": "red"})
    assert 0 < (first.expires_at or 0) - first.enqueued_at <= 60.001
    assert (second.body, second.priority, second.group, second.headers) == ("plain", 4, None, {})
    assert second.expires_at is None
    for message in (first, second):
        message.ack()


def test_a_waiting_put_arrow_goes_on_when_there_is_room(broker: shmq.Broker) -> None:
    queue = broker.queue("jobs", maxsize=10)
    thread, results = in_thread(lambda: queue.put_arrow(pa.table({"body": [str(n) for n in range(500)]})))
    taken: list[int] = []
    while len(taken) < 500:
        taken += [int(row["body"]) for row in rows(queue.get_arrow(7, timeout=10))]
    finish(thread)
    assert taken == list(range(500))
    assert results == [500]


@pytest.mark.parametrize("delay", [False, True], ids=["as columns", "row by row"])
def test_a_full_queue_says_how_many_are_in(broker: shmq.Broker, delay: bool) -> None:
    queue = broker.queue("jobs", maxsize=10)
    batch = pa.table({"body": ["x"] * 6, "delay": pa.array([0.0 if delay else None] * 6, pa.float64())})
    for timeout in (0, 0.01):
        with pytest.raises(shmq.Full) as caught:
            queue.put_arrow([batch, batch], timeout=timeout)
        assert caught.value.accepted == 10
        assert len(rows(queue.get_arrow(99, timeout=0))) == 10


def broken_stream() -> Any:
    yield TABLE
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("given", "error", "text", "accepted"),
    [
        ("text", TypeError, "str; give a table", 0),
        ({"body": ["a"]}, TypeError, "dict; give a table", 0),
        ([{"body": "a"}], TypeError, "dict; give a table", 0),
        (7, TypeError, "int; give a table", 0),
        (pa.table({"n": [1]}), ValueError, "column 'n' cannot be put.*there are: body", 0),
        (pa.table({"priority": [1]}), ValueError, "one column 'body' is expected", 0),
        (pa.table({"body": [1]}), ValueError, "'body' is of the type int64; binary or text", 0),
        (pa.table({"body": ["a"], "priority": [1.5]}), ValueError, "'priority'.*whole", 0),
        (pa.table({"body": ["a"], "priority": [10]}), ValueError, "priority=10", 0),
        (pa.table({"body": ["a"], "priority": [1]}), ValueError, "has no priorities", 0),
        (pa.table({"body": ["a"], "ttl": [-1]}), ValueError, "ttl", 0),
        (pa.table({"body": ["a", None]}), ValueError, "NULL", 1),
        (pa.table({"body": ["a", "b" * (6 << 20)]}), shmq.MessageTooLarge, "jobs", 0),
        ([TABLE, pa.table({"n": [1]})], ValueError, "column 'n'", 4),
        (broken_stream(), ZeroDivisionError, None, 4),
    ],
)
def test_what_cannot_be_put_is_refused_with_how_many_are_in(
    queue: shmq.Queue[Any], given: Any, error: type[Exception], text: str | None, accepted: int
) -> None:
    with pytest.raises(error, match=text) as caught:
        queue.put_arrow(given)
    assert getattr(caught.value, "accepted", None) == accepted
    assert queue.qsize() == accepted


# ---- processes -----------------------------------------------------------------------------------------------------


def test_a_killed_taker_has_each_message_or_the_queue_has_it(broker_dir: Path, broker: shmq.Broker) -> None:
    """Shows G2."""
    queue = broker.queue("jobs")
    queue.put_many([b"%d" % n for n in range(50_000)])
    program = """
queue = shmq.open(sys.argv[1]).queue("jobs")
while True:
    taken = queue.get_arrow(40, columns=["body"]).read_all().column("body").to_pylist()
    say(*(body.decode() for body in taken))
"""
    with Child(program, broker_dir) as child:
        told = [[int(word) for word in child.line().split()] for _ in range(20)]
        child.kill()
    first = [n for each in told for n in each]
    rest = [int(row["body"]) for row in rows(queue.get_arrow(50_000, timeout=0))]
    assert first == list(range(800))
    assert rest == list(range(rest[0], 50_000))  # what the dead one had taken is gone, a first part of what was left
    assert rest[0] >= len(first)


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
import shmq
with shmq.open("b", memory="16MiB") as broker:
    queue = broker.queue("jobs")
    for call in (lambda: queue.get_arrow(1), queue.browse_arrow, lambda: queue.put_arrow([])):
        try:
            call()
        except ModuleNotFoundError as error:
            print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("pip install 'shmq[arrow]'") == 3, done.stderr
