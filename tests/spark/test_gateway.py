"""Source and sink through gateways: two hosts, whose callers and gateways are killed. No JVM runs."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.spark.placement import batch_sink, batch_source, stream_source
from shmq.spark.stream_source import Limit
from tests.spark.engine import Checkpoint, Crash
from tests.spark.gateways import GatewayProcess, HostsEngine, drained, run_to_the_end

pytestmark = pytest.mark.usefixtures("with_spark")  # for its pyarrow

ROWS = [[b"%d of one" % n for n in range(12)], [b"%d of two" % n for n in range(7)]]
MORE = [b"%d more" % n for n in range(60)]
TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Path]]:
    """Two brokers with orders."""
    paths = [tmp_path / "one", tmp_path / "two"]
    for path, rows in zip(paths, ROWS, strict=True):
        with shmq.open(path, memory="16MiB") as broker:
            broker.queue("orders").put_many(rows)
    yield paths
    for path in paths:
        shmq.open(path).delete(force=True)


@pytest.fixture
def gateways(hosts: list[Path]) -> Iterator[list[GatewayProcess]]:
    served = [GatewayProcess(path) for path in hosts]
    yield served
    for one in served:
        one.end()


def uris(gateways: list[GatewayProcess]) -> list[str]:
    return [one.uri for one in gateways]


def results(hosts: list[Path]) -> list[bytes]:
    return sorted(body for path in hosts for body in drained(path, "results"))


def everything() -> list[bytes]:
    return sorted(body for rows in ROWS for body in rows)


def test_entries_of_all_hosts_are_rows_and_stay(hosts: list[Path], gateways: list[GatewayProcess]) -> None:
    source: Any = batch_source({"uri": ",".join(uris(gateways)), "queue": "orders"}, ("body", "position"))
    for _ in range(2):
        batches = [batch for part in source.partitions() for batch in source.read(part)]
        assert [name for batch in batches for name in batch.schema.names] == ["body", "position"] * 2
        assert [batch.column("body").to_pylist() for batch in batches] == ROWS


def test_bounds_patterns_and_what_waits_are_asked_of_each_host(
    hosts: list[Path], gateways: list[GatewayProcess]
) -> None:
    given = {"uri": ",".join(uris(gateways)), "subscribePattern": "ord.*"}

    def bodies(**options: str) -> list[list[bytes]]:
        source: Any = batch_source(given | options, ("body",))
        batches = [batch for part in source.partitions() for batch in source.read(part)]
        return [batch.column("body").to_pylist() for batch in batches if batch.num_rows]

    assert bodies(startingPosition='{"orders": 5}', endingTimestamp="2100-01-01") == [rows[5:] for rows in ROWS]
    assert bodies(startingTimestamp="2100-01-01") == []
    source: Any = stream_source(given | {"subscription": "etl", "pollMs": "0", "minRowsPerBatch": "2"}, ("body",))
    start = source.initialOffset()
    assert (len(start["queues"]), source.waiting(start)) == (2, 19)
    end = source.latestOffset(start, Limit(rows=4))
    assert source.waiting(end) == 15
    latest = source.reportLatestOffset()["queues"]
    assert sum(each["rows"] for each in latest.values()) == 19
    source.close()


def test_a_batch_is_written_once_for_one_key(hosts: list[Path], gateways: list[GatewayProcess]) -> None:
    import pyarrow

    rows = [b"%d" % n for n in range(1000)]
    batch = pyarrow.RecordBatch.from_pydict({"body": pyarrow.array(rows, pyarrow.binary())})
    for _ in range(2):
        sink: Any = batch_sink({"uri": ",".join(uris(gateways)), "queue": "results", "idempotencyKey": "night"}, False)
        sink.commit([sink.write([batch.slice(0, 700)]), None, sink.write([batch.slice(700)])])
    found = [drained(path, "results") for path in hosts]
    assert sorted(found[0] + found[1]) == sorted(rows)
    assert all(len(one) >= 300 for one in found)
    with shmq.open(hosts[0]) as one, shmq.open(hosts[1]) as two:
        assert [queue.name for broker in (one, two) for queue in broker.queues() if ".stage." in queue.name] == []


def test_rows_of_a_group_go_to_one_host(hosts: list[Path], gateways: list[GatewayProcess]) -> None:
    import pyarrow

    rows = {"body": [f"{n}" for n in range(600)], "group": [f"customer {n % 40}" for n in range(600)]}
    for path in hosts:
        with shmq.open(path) as broker:
            broker.queue("results", groups="shared")
    options = {"uri": ",".join(uris(gateways)), "queue": "results", "distribution": "group"}
    sink: Any = batch_sink(options, False)
    sink.commit([sink.write([pyarrow.RecordBatch.from_pydict(rows)])])
    groups: list[set[int]] = []
    for path in hosts:
        bodies = [int(body) for body in drained(path, "results")]
        assert bodies == sorted(bodies)
        groups.append({body % 40 for body in bodies})
    assert groups[0] | groups[1] == set(range(40))
    assert not groups[0] & groups[1]


def test_each_row_arrives_once_whatever_call_is_the_last_of_a_driver(
    hosts: list[Path], gateways: list[GatewayProcess]
) -> None:
    checkpoint = Checkpoint()
    crash_at = 1
    while not run_to_the_end(HostsEngine(checkpoint, uris(gateways), crash_at, attempts=2)):
        crash_at = crash_at % 9 + 1  # each run goes on from the checkpoint, and dies a little later or sooner
    assert results(hosts) == everything()
    assert len(checkpoint.commits) >= 4


def test_each_row_arrives_once_whatever_request_is_the_last_of_a_driver(
    hosts: list[Path], gateways: list[GatewayProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    from shmq.spark.gateway.client import GatewayClient, Session

    made, last = 0, 0

    def crashing(call: Callable[..., Any]) -> Callable[..., Any]:
        def crash_behind(self: Any, name: str, **said: Any) -> Any:
            nonlocal made
            answer = call(self, name, **said)
            made += name != "ping"
            if made == last:
                raise Crash
            return answer

        return crash_behind

    monkeypatch.setattr(GatewayClient, "call", crashing(GatewayClient.call))
    monkeypatch.setattr(Session, "call", crashing(Session.call))
    with shmq.open(hosts[1]) as broker:
        broker.queue("orders").put_many(MORE)
    checkpoint, crashes = Checkpoint(), 0
    for at in itertools.cycle(range(1, 17)):
        made, last = 0, at
        if run_to_the_end(HostsEngine(checkpoint, uris(gateways))):
            break
        crashes += 1
    assert results(hosts) == sorted(everything() + MORE)
    assert crashes >= 16


def test_a_second_query_is_refused_until_the_first_ones_process_is_dead(gateways: list[GatewayProcess]) -> None:
    program = f"""
        from shmq.spark.placement import stream_source
        options = {{"uri": "{gateways[0].uri}", "queue": "orders", "subscription": "etl"}}
        source = stream_source(options, ("body",))
        source.initialOffset()
        print("holds it", flush=True)
        input()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    options = {"uri": gateways[0].uri, "queue": "orders", "subscription": "etl"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds it\n"
        with pytest.raises(shmq.ConsumerRefused, match="subscription 'etl' of queue 'orders' is read by another query"):
            stream_source(options, ("body",)).initialOffset()
        first.kill()
        first.wait()
    second = stream_source(options, ("body",))
    second.initialOffset()
    second.close()


def test_a_query_goes_on_when_a_killed_gateway_is_back(hosts: list[Path], gateways: list[GatewayProcess]) -> None:
    from shmq.spark.gateway.gateway_error import GatewayError

    checkpoint = Checkpoint()
    engine = HostsEngine(checkpoint, uris(gateways))
    assert not run_to_the_end(HostsEngine(checkpoint, uris(gateways), crash_at=8))
    gateways[1].kill()
    with pytest.raises(GatewayError, match="see that `shmq gateway` runs there"):
        engine.run()
    gateways[1] = GatewayProcess(hosts[1], port=gateways[1].port)
    assert run_to_the_end(HostsEngine(checkpoint, uris(gateways)))
    assert results(hosts) == everything()


def test_a_session_of_a_gateway_that_dies_is_a_clear_error(gateways: list[GatewayProcess]) -> None:
    from shmq.spark.gateway.gateway_error import GatewayError

    source: Any = stream_source({"uri": gateways[0].uri, "queue": "orders", "subscription": "etl"}, ("body",))
    start = source.initialOffset()
    gateways[0].kill()
    with pytest.raises(GatewayError, match=f"the gateway {gateways[0].uri} does not answer"):
        source.latestOffset(start, Limit())
    source.close()


def test_what_the_gateway_refuses_is_the_error_that_the_broker_has(gateways: list[GatewayProcess]) -> None:
    source: Any = batch_source({"uri": gateways[0].uri, "queue": "nowhere"}, ("body",))
    with pytest.raises(shmq.NotFound, match=f"{gateways[0].uri}: .*nowhere"):
        source.partitions()
    with pytest.raises(ValueError, match="maxRowsPerBatch='few'"):
        batch_source({"uri": gateways[0].uri, "queue": "orders", "maxRowsPerBatch": "few"}, ("body",))


def test_only_who_has_the_token_is_served(hosts: list[Path], tmp_path: Path) -> None:
    from shmq.spark.gateway.gateway_error import GatewayError

    token, wrong = tmp_path / "token", tmp_path / "wrong"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    wrong.write_text(TOKEN[::-1])
    served = GatewayProcess(hosts[0], "--token-file", str(token))
    try:
        options = {"uri": served.uri, "queue": "orders"}
        for unfit, text in (({}, "wants a token"), ({"tokenFile": str(wrong)}, "refuses this token")):
            with pytest.raises(GatewayError, match=rf"{text}; .*tokenFile"):
                batch_source(options | unfit, ("body",)).partitions()
            with pytest.raises(GatewayError, match=text):
                stream_source(options | {"subscription": "etl"} | unfit, ("body",)).initialOffset()
        missing = {"tokenFile": str(tmp_path / "none")}
        with pytest.raises(ValueError, match=r"option tokenFile='.*none': No such file"):
            batch_source(options | missing, ("body",)).partitions()
        assert len(batch_source(options | {"tokenFile": str(token)}, ("body",)).partitions()) == 1
    finally:
        assert served.end() == 0


def test_rows_travel_encrypted(hosts: list[Path], tmp_path: Path, tool: Callable[[str], str]) -> None:
    from shmq.spark.gateway.gateway_error import GatewayError

    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem -addext"
    subprocess.run(
        [
            tool("openssl"),
            *made.split(),
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    served = GatewayProcess(hosts[0], "--tls-cert", str(certificate), "--tls-key", str(key))
    try:
        assert served.uri.startswith("grpc+tls://")
        options = {"uri": served.uri, "queue": "orders"}
        source: Any = batch_source(options | {"caFile": str(certificate)}, ("body",))
        assert [
            row for part in source.partitions() for batch in source.read(part) for row in batch.column(0).to_pylist()
        ]
        with pytest.raises(GatewayError, match="does not answer"):
            batch_source(options, ("body",)).partitions()
    finally:
        served.end()


def test_an_address_that_is_taken_is_said(hosts: list[Path], gateways: list[GatewayProcess]) -> None:
    command = [
        sys.executable,
        "-m",
        "shmq",
        "-d",
        str(hosts[0]),
        "gateway",
        "--listen",
        f"127.0.0.1:{gateways[0].port}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert f"the gateway cannot listen at grpc://127.0.0.1:{gateways[0].port}" in done.stderr
