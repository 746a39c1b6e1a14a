"""Two hosts with networks of their own: a gateway in each, and a query in a third. No JVM runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import shmq
from tests.spark.engine import Checkpoint
from tests.spark.gateways import GatewayProcess, HostsEngine, drained, run_to_the_end

pytestmark = pytest.mark.usefixtures("with_spark")  # for its pyarrow

ROWS = [[b"%d of one" % n for n in range(40)], [b"%d of two" % n for n in range(25)]]
TOKEN = "correct-horse-battery-staple"


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def connect(namespace: str, number: int) -> str:
    """Makes a network between this namespace and another one, with which it goes; returns the address there."""
    ours, theirs = f"shmq{os.getpid()}.{number}", "eth0"
    # Of the range that RFC 2544 keeps for tests, so that no real network is shadowed.
    network = f"198.{18 + os.getpid() // 250 % 2}.{os.getpid() % 250}"
    host, other = (f"{network}.{number * 4 + end}" for end in (1, 2))
    ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", namespace)
    ip("addr", "add", f"{host}/30", "dev", ours)
    ip("link", "set", ours, "up")
    ip("-n", namespace, "addr", "add", f"{other}/30", "dev", theirs)
    ip("-n", namespace, "link", "set", theirs, "up")
    return other


@pytest.fixture
def places() -> Iterator[list[tuple[str, str]]]:
    """Two network namespaces, and the address of each as this one reaches it."""
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces here: there is no command ip")
    with ExitStack() as stack:
        found = []
        for number in (1, 2):
            namespace = f"shmq-{os.getpid()}-{number}"
            try:
                ip("netns", "add", namespace)
                stack.callback(ip, "netns", "del", namespace)
                found.append((namespace, connect(namespace, number)))
            except OSError as error:
                pytest.skip(f"no network namespaces here: {error}")
        yield found


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Path]]:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path, rows in zip(paths, ROWS, strict=True):
        with shmq.open(path, memory="16MiB") as broker:
            broker.queue("orders").put_many(rows)
    yield paths
    for path in paths:
        shmq.open(path).delete(force=True)


def test_rows_of_two_networks_arrive_once_though_one_gateway_and_the_driver_die(
    places: list[tuple[str, str]], hosts: list[Path], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with ExitStack() as stack:

        def served(number: int, port: int = 0) -> GatewayProcess:
            namespace, address = places[number]
            inside = ("ip", "netns", "exec", namespace)
            options = ("--token-file", str(token), "--insecure")
            gateway = GatewayProcess(hosts[number], *options, host=address, port=port, within=inside)
            stack.callback(gateway.end)
            return gateway

        gateways = [served(0), served(1)]
        uris = [gateway.uri for gateway in gateways]
        assert [uri.rpartition(":")[0] for uri in uris] == [f"grpc://{address}" for _, address in places]
        checkpoint = Checkpoint()
        assert not run_to_the_end(HostsEngine(checkpoint, uris, crash_at=9, token_file=str(token)))
        gateways[1].kill()
        gateways[1] = served(1, gateways[1].port)
        assert run_to_the_end(HostsEngine(checkpoint, uris, token_file=str(token)))
    found = [drained(path, "results") for path in hosts]
    assert all(found)
    assert sorted(found[0] + found[1]) == sorted(ROWS[0] + ROWS[1])
