"""A caller of a gateway may ask for nothing of its host's files, and for nothing without a limit."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.spark.placement import batch_source, stream_sink, stream_source
from tests.engine.child import eventually

flight = pytest.importorskip("pyarrow.flight")
import pyarrow as pa  # noqa: E402

from shmq.spark.gateway.wire import PROTOCOL  # noqa: E402

# A gateway with a short lease, few calls at once, and few stages.
PROGRAM = """
    import sys
    from shmq.spark.gateway import connection, leased_session, server
    leased_session.LEASE = server.LEASE = float(sys.argv[2])
    connection.MOST_CALLS, server._MOST_STAGES = 40, 5
    gateway = server.Gateway(sys.argv[1], "grpc://127.0.0.1:0")
    print(gateway.port, flush=True)
    gateway.serve()
"""


class Served:
    def __init__(self, path: Path, lease: float = 60.0) -> None:
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path), str(lease)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.uri = f"grpc://127.0.0.1:{int(self.process.stdout.readline())}"

    def client(self) -> Any:
        return flight.FlightClient(self.uri, generic_options=[("grpc.use_local_subchannel_pool", 1)])

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def host(broker_dir: Path) -> Iterator[Path]:
    with shmq.open(broker_dir, memory="16MiB", disk="1MiB") as broker:
        broker.queue("orders").put_many([b"row"] * 10)
        yield broker_dir


@pytest.fixture
def served(host: Path) -> Iterator[Served]:
    found = Served(host)
    yield found
    found.end()


def text(**said: Any) -> bytes:
    return json.dumps({"protocol": PROTOCOL, "options": {"queue": "orders"}} | said).encode()


def act(served: Served, name: str, body: bytes) -> str:
    """The refusal of the gateway."""
    with served.client() as client, pytest.raises(flight.FlightError) as refused:
        list(client.do_action(flight.Action(name, body)))
    found: str = json.loads(refused.value.extra_info)["what"]
    return found


CALLS = ("ranges", "prepare", "ticket", "put", "exchange")


def send(client: Any, call: str, said: bytes) -> None:
    descriptor = flight.FlightDescriptor.for_command(said)
    if call == "ticket":
        client.do_get(flight.Ticket(said)).read_all()
    elif call == "put":
        writer, reader = client.do_put(descriptor, pa.schema([("body", pa.binary())]))
        writer.done_writing()
        reader.read()
        writer.close()
    elif call == "exchange":
        writer, reader = client.do_exchange(descriptor)
        writer.done_writing()
        reader.read_chunk()
    else:
        list(client.do_action(flight.Action(call, said)))


def ways(served: Served, said: bytes) -> Iterator[str]:
    """The same text by each of Flight's calls; what the gateway says."""
    with served.client() as client:
        for call in CALLS:
            with pytest.raises(flight.FlightError) as refused:
                send(client, call, said)
            yield str(refused.value)


@pytest.mark.parametrize(
    "option", ["encryptionkeyfile", "encryptionKeyFile", "path", "PATH", "location", "uri", "tokenFile", "cafile"]
)
def test_no_option_of_a_place_is_taken_from_a_caller(served: Served, option: str) -> None:
    """Whether the file is there or not, the answer is the same."""
    for file in ("/etc/shadow", "/no/such/file"):
        said = text(options={"queue": "orders", option: file}, role="planner", query="q", batch=0, stages=[], range={})
        for answer in ways(served, said):
            assert f"the option {option} says where something is;" in answer
            assert file not in answer


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b'{"protocol": 2, "pad": "' + b"x" * (9 << 20) + b'"}', "bytes came, and 8,388,608 are"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "in each other more than 8 deep"),
        (b'{"a": ' + b"[" * 20 + b"]" * 20 + b"}", "in each other more than 8 deep"),
        (b"[]", "a JSON object is expected, not []"),
        (b"\xff\xfe", "a JSON object is expected: "),
        (b"{}", "the caller speaks protocol None"),
        (text(options=7), "options=7 is no dict"),
        (text(options={"queue": 7}), "option queue=7 is no text"),
    ],
)
def test_a_text_that_is_unfit_is_told_whatever_call_brings_it(served: Served, said: bytes, told: str) -> None:
    for answer in ways(served, said):
        assert told in answer


def test_an_unknown_action_call_role_or_field_is_named(served: Served) -> None:
    assert (
        act(served, "drop", b"") == "a gateway has no action 'drop'; there are: ranges, abort, prepare, publish, forget"
    )
    assert "the field 'query' is missing" in act(served, "publish", text())
    assert "batch=-1: a whole number from 0" in act(served, "prepare", text(query="q", batch=-1, stages=[]))
    assert "query has 2,000 characters" in act(served, "forget", text(query="q" * 2000))
    assert "stages=[7] is no list of objects" in act(served, "abort", text(stages=[7]))
    source: Any = stream_source({"uri": served.uri, "queue": "orders", "subscription": "etl"}, ("body",))
    with pytest.raises(ValueError, match="a planner's session has no call 'drop'; there are: initialOffset"):
        source._sources[served.uri]._ask("drop")
    with pytest.raises(ValueError, match="the field 'start' is missing"):
        source._sources[served.uri]._ask("latestOffset")
    source.close()
    with served.client() as client, pytest.raises(flight.FlightError, match="role='other': planner or publisher"):
        send(client, "exchange", text(role="other"))


def test_a_session_that_is_silent_ends_with_its_thread(host: Path) -> None:
    served = Served(host, lease=1.0)
    try:
        options = {"uri": served.uri, "queue": "orders"}
        batch_source(options, ("body",)).partitions()
        before = served.threads()
        said = [text(role="planner", options={"queue": "orders", "subscription": f"s{number}"}) for number in range(20)]
        clients = [served.client() for _ in said]
        held = [
            client.do_exchange(flight.FlightDescriptor.for_command(each))
            for client, each in zip(clients, said, strict=True)
        ]
        eventually(lambda: served.threads() >= before + 15)
        eventually(lambda: served.threads() <= before + 8)  # gRPC keeps some, for the next calls
        with pytest.raises(flight.FlightError):
            held[0][1].read_chunk()
        stream_source(options | {"subscription": "s0"}, ("body",)).initialOffset()
    finally:
        served.end()


def test_more_calls_at_once_than_there_may_be_are_refused_and_others_go_on(served: Served) -> None:
    """Uploads that send nothing, more than may be: while they begin, a call beside them may still have a place."""
    descriptor = flight.FlightDescriptor.for_command(text(query="q"))
    clients = [served.client() for _ in range(60)]
    held = []
    for client in clients:
        with contextlib.suppress(flight.FlightUnavailableError):
            held.append(client.do_put(descriptor, pa.schema([("body", pa.binary())])))

    def refused() -> bool:
        try:
            batch_source({"uri": served.uri, "queue": "orders"}, ("body",)).partitions()
            return False
        except shmq.ShmqError as error:
            return "40 calls in hand" in str(error)

    eventually(refused)
    del held
    for client in clients:
        client.close()
    eventually(lambda: not refused())


def test_stages_that_nobody_decides_are_limited(served: Served, host: Path) -> None:
    sink: Any = stream_sink({"uri": served.uri, "queue": "results"})
    rows = pa.RecordBatch.from_pydict({"body": pa.array([b"row"])})
    staged = [sink.write([rows], "query") for _ in range(5)]
    with pytest.raises(shmq.ShmqError, match=r"no room for another staging queue.*5 wait to be published.*drop-stages"):
        sink.write([rows], "query")
    sink.commit(staged, 0)
    staged = [sink.write([rows], "query")]
    sink.commit(staged, 1)
    with shmq.open(host) as broker:
        assert broker.queue("results").qsize() == 6
