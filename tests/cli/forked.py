"""Commands whose process has loaded the package already: forks of one that has, each with arguments, environment,
folder and pipes of its own. From a cold start a command spends five sixths of its time on imports.

As a program it is what forks, and has no threads; `Forks` starts it.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

LOADED = ("shmq.cli", "shmq.core", "shmq.engine", "shmq.options", "shmq.selector")
REQUEST_BYTES = 1 << 17


class Forks:
    """The process that forks, on behalf of this one."""

    def __init__(self) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def run(
        self, arguments: Sequence[str], given: bytes, environment: Mapping[str, str], folder: Path, seconds: float
    ) -> tuple[int, bytes, bytes]:
        """Exit code, output and words of one command. Any thread may call."""
        (stdin, write), (out, stdout), (words, stderr) = os.pipe(), os.pipe(), os.pipe()
        ended, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
        assert len(request) < REQUEST_BYTES
        theirs = [stdin, stdout, stderr, told.detach()]
        socket.send_fds(self.requests, [request], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        ended.settimeout(seconds)
        with ended, ThreadPoolExecutor(3) as threads:
            threads.submit(write_all, write, given)
            said = [threads.submit(read_all, descriptor) for descriptor in (out, words)]
            pid = int(ended.recv(20))
            try:
                status = int(ended.recv(20))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise
            return status, said[0].result(), said[1].result()

    def end(self) -> None:
        self.requests.close()
        self.process.wait()


def write_all(descriptor: int, given: bytes) -> None:
    try:
        with open(descriptor, "wb") as pipe:
            pipe.write(given)
    except BrokenPipeError:
        pass  # the command has read enough


def read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read()


def load() -> None:
    for package in map(import_module, LOADED):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def forked(requests: socket.socket) -> list[str]:
    """Returns in the process of a command, with its arguments. Between it and the one that forks stands a process that
    waits for its end and tells of it.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 4)
        if not request:
            sys.exit()
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.close()
    *streams, told = descriptors
    pid = os.fork()
    if pid != 0:
        for descriptor in streams:
            os.close(descriptor)
        os.write(told, str(pid).encode())
        os.write(told, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    os.close(told)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, environment, folder = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(":"))]
    return list(arguments)


if __name__ == "__main__":
    load()
    sys.argv[1:] = forked(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("shmq", run_name="__main__", alter_sys=True)  # as python -m shmq does
