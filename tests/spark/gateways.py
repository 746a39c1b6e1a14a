"""Gateways in processes of their own, as a user starts them; two brokers of this host stand for two hosts."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import shmq
from shmq.spark.placement import stream_sink, stream_source
from shmq.spark.stream_source import Limit
from tests.spark.engine import Checkpoint, Crash, Engine

__all__ = ["GatewayProcess", "HostsEngine"]


class GatewayProcess:
    """`shmq gateway` over a broker.

    Arguments:
        path: of the broker.
        arguments: of the command, besides --listen.
        port: 0: any free one.
        within: a command that runs another one, such as `ip netns exec NAME`.
    """

    def __init__(
        self, path: Path, *arguments: str, port: int = 0, host: str = "127.0.0.1", within: Sequence[str] = ()
    ) -> None:
        command = ("--json", "-d", str(path), "gateway", "--listen", f"{host}:{port}", *arguments)
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "shmq", *command], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.uri: str = json.loads(self.process.stdout.readline())["uri"]
        self.port = int(self.uri.rpartition(":")[2])

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._gone()

    def end(self) -> int:
        """By Ctrl-C."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self._gone()

    def _gone(self) -> int:
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait()


class HostsEngine(Engine):
    """One run of a query that reads queue `orders` of all hosts, and writes into `results` of all of them."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        uris: Sequence[str],
        crash_at: int | None = None,
        attempts: int = 1,
        token_file: str = "",
        **options: str,
    ) -> None:
        self.checkpoint = checkpoint
        common = {"uri": ",".join(uris), **({"tokenFile": token_file} if token_file else {})}
        self.source = stream_source(
            common | {"queue": "orders", "subscription": "etl", "pollMs": "0"} | options, ("body",)
        )
        self.hosts_sink = stream_sink(common | {"queue": "results"})
        self.limit = Limit(5)
        self.crash_at = crash_at
        self.attempts = attempts
        self.calls = 0

    def _task(self, part: Any) -> Any:
        worker, task, sink = pickle.loads(pickle.dumps((self.source, part, self.hosts_sink)))
        return sink.write(worker.read(task), self.checkpoint.query)

    def _commit(self, messages: list[Any], batch: int) -> None:
        pickle.loads(pickle.dumps(self.hosts_sink)).commit(messages, batch)


def run_to_the_end(engine: HostsEngine) -> bool:
    """False: it crashed on the way."""
    try:
        engine.run()
        return True
    except Crash:
        return False


def drained(path: Path, queue: str) -> list[bytes]:
    """All bodies of a queue, in order."""
    with shmq.open(path, create=False) as broker:
        found = broker.queue(queue)
        return [found.get(timeout=0) for _ in range(found.qsize())]
