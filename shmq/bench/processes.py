"""Producer and consumer processes of one measurement: started together, watched, ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from shmq.bench.contestant import CONTEXT
from shmq.pool.interruption import no_ctrl_c

__all__ = ["run_together"]

_READY = (0, 0, None, None)  # a report of who waits for the others


def _child(target: Callable[..., Any], arguments: tuple[Any, ...], gate: tuple[int, int], report: Any) -> None:
    try:
        os.close(gate[1])
        report.send(_READY)
        os.read(gate[0], 1)  # until the last writing end is closed: that of the parent
        began = time.monotonic_ns()
        result = target(*arguments)
        report.send((began, time.monotonic_ns(), result, None))
    except BaseException as error:
        report.send((0, 0, None, f"{type(error).__name__}: {error}"))
    finally:
        report.close()


def run_together(
    jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]], timeout: float = 300.0
) -> tuple[float, list[Any]]:
    """Run each job in a process of its own, all released at once.

    Returns seconds from the start of the first job to the end of the last one, and what each answered. The jobs read
    the clock themselves: on a busy machine this process may be the last that learns of the release.
    Raises RuntimeError when a process fails, dies, or does not end within `timeout` seconds.
    """
    gate: list[int] = list(os.pipe())  # and no Barrier: an interrupt that comes amid one may leave its lock taken
    processes: list[Any] = []
    ends: list[Any] = []
    try:
        for target, arguments in jobs:
            receiving, sending = CONTEXT.Pipe(duplex=False)
            process = CONTEXT.Process(target=_child, args=(target, arguments, tuple(gate), sending))  # type: ignore[attr-defined]
            with no_ctrl_c():  # amid a fork Python would drop it; the child keeps it blocked, and is killed below
                process.start()
                processes.append(process)
            sending.close()
            ends.append(receiving)
        _collect(ends, 60.0)
        os.close(gate.pop())
        answers = _collect(ends, timeout)
        for process in processes:
            process.join()
        first, last = min(answer[0] for answer in answers), max(answer[1] for answer in answers)
        return (last - first) / 1e9, [answer[2] for answer in answers]
    finally:
        for descriptor in gate:
            os.close(descriptor)
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()


def _collect(ends: list[Any], timeout: float) -> list[tuple[int, int, Any]]:
    answers: dict[int, tuple[int, int, Any]] = {}
    deadline = time.monotonic() + timeout
    while len(answers) < len(ends):
        left = deadline - time.monotonic()
        waiting = [end for number, end in enumerate(ends) if number not in answers]
        ready: list[Any] = list(wait(waiting, max(0.0, left)))
        if not ready:
            raise RuntimeError(f"the measurement did not end within {timeout:.0f} s")
        for end in ready:
            try:
                began, ended, result, fault = end.recv()
            except EOFError:
                raise RuntimeError("a process of the measurement died") from None
            if fault is not None:
                raise RuntimeError(f"a process of the measurement failed: {fault}")
            answers[ends.index(end)] = (began, ended, result)
    return [answers[number] for number in range(len(ends))]
