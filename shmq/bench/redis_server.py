"""A redis server of one measurement, and as much of its protocol as that needs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["RedisServer"]

_START_SECONDS = 30.0  # in which it must answer


class RedisServer:
    """It listens at a socket in the directory, and ends with close()."""

    def __init__(self, directory: Path) -> None:
        self._socket = directory / "redis.sock"
        self._connection: tuple[int, socket.socket, BinaryIO] | None = None
        options = {"--port": "0", "--unixsocket": self._socket, "--save": "", "--appendonly": "no", "--dir": directory}
        words = ["redis-server", *(str(word) for pair in options.items() for word in pair), "--loglevel", "warning"]
        self._server = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.call(b"PING")
                return
            except OSError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("redis-server does not answer") from None
                time.sleep(0.01)

    def _connected(self) -> tuple[socket.socket, BinaryIO]:
        """By each process anew, after a fork too."""
        if self._connection is None or self._connection[0] != os.getpid():
            end = socket.socket(socket.AF_UNIX)
            try:
                end.connect(str(self._socket))
            except OSError:
                end.close()
                raise
            self._connection = (os.getpid(), end, end.makefile("rb"))
        return self._connection[1:]

    def call(self, *words: bytes) -> Any:
        """One command and its answer. RuntimeError: the server refuses it."""
        end, answers = self._connected()
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts += (b"$%d\r\n" % len(word), word, b"\r\n")
        end.sendall(b"".join(parts))
        return _answer(answers)

    def most_memory(self) -> int:
        """Bytes that it had at most."""
        found = re.search(rb"used_memory_peak:(\d+)", self.call(b"INFO", b"memory"))
        return int(found.group(1)) if found else 0

    def close(self) -> None:
        if self._connection is not None:
            self._connection[2].close()
            self._connection[1].close()
        self._server.kill()
        self._server.wait()


def _answer(answers: BinaryIO) -> Any:
    line = answers.readline()
    if not line:
        raise RuntimeError("redis-server has gone")
    kind, text = line[:1], line[1:-2]
    if kind == b"-":
        raise RuntimeError(f"redis-server: {text.decode(errors='replace')}")
    if kind == b"*":
        return [_answer(answers) for _ in range(int(text))]
    if kind == b"$":
        size = int(text)
        return None if size < 0 else answers.read(size + 2)[:-2]
    return int(text) if kind == b":" else text
