"""Lists the members of a broker for statistics and commands."""

from __future__ import annotations

from typing import Literal

from shmq._native import Member
from shmq.statistics import ProcessInfo
from shmq.whole_import import import_whole

__all__ = ["processes", "state_of"]


def state_of(pid: int) -> Literal["live", "stopped"]:
    """Returns the state of a living process: whether it was stopped, by SIGSTOP or a debugger."""
    import_whole("psutil")
    import psutil  # when first needed: it takes longer to import than all of shmq

    try:
        status = psutil.Process(pid).status()
    except (psutil.Error, OSError):  # an OSError where the process ends while psutil reads what the kernel says of it
        return "live"  # or it is in another pid namespace: its lock says that it lives, and its state is unknown
    return "stopped" if status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP) else "live"


def processes(member: Member) -> tuple[ProcessInfo, ...]:
    """Returns the members of the broker in the order of their rows, with the dead that are not reaped yet."""
    found = []
    for row in member.processes():
        pid, attached_ns, name, held, pinned, dead = row[3], row[6], row[7], row[8], row[9], row[11]
        found.append(
            ProcessInfo(
                pid=pid,
                name=name,
                started_at=attached_ns / 1e9,
                state="dead" if dead else state_of(pid),
                unsettled=held,
                pinned_bytes=pinned,
            )
        )
    return tuple(found)
