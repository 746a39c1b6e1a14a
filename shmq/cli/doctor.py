"""doctor: is this machine, and this directory, fit for shmq?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from shmq.cli.session import Session, pass_session, usage
from shmq.cli.text import size, wants_colour
from shmq.errors import ShmqError
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.segment import Member

__all__ = ["doctor"]

State = Literal["ok", "note", "bad"]

_SMALL = 256 << 20  # /dev/shm of a container is 64 MiB when nobody says otherwise
_KERNEL = (5, 10)


class Verdict(NamedTuple):
    """The answer of one look."""

    check: str
    state: State
    detail: str


@click.command("doctor")
@pass_session
def doctor(session: Session) -> None:
    """Look at /dev/shm, limits, kernel, liveness (a child is killed and must be seen dead), leftovers, and at DIR.

    Needs no broker. The exit code is 1 if something is bad; notes do not count.

    \b
    Example:
      shmq doctor
      shmq -d /var/lib/shop doctor --json
    """
    verdicts = [verdict for name, look in _LOOKS.items() for verdict in _protected(name, look)]
    if session.directory:
        from shmq.names import parse_broker_path

        with usage():
            path = parse_broker_path(session.directory)
        verdicts += _protected("directory", lambda: _look_at_directory(path))
    bad = any(verdict.state == "bad" for verdict in verdicts)
    session.result({"ok": not bad, "checks": [verdict._asdict() for verdict in verdicts]}, _text(verdicts))
    if bad:
        click.get_current_context().exit(1)


def _protected(name: str, look: Callable[[], Iterator[Verdict]]) -> list[Verdict]:
    """A look that fails is a finding, not the end of the visit."""
    found: list[Verdict] = []
    try:
        for verdict in look():
            found.append(verdict)
    except (ShmqError, OSError) as error:
        found.append(Verdict(name, "bad", _told(error)))
    return found


def _told(error: ShmqError | OSError) -> str:
    """Without the number of an error of the system; an error of the library's own says more than that."""
    if isinstance(error, ShmqError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"


def _text(verdicts: list[Verdict]) -> str:
    width = max(len(verdict.check) for verdict in verdicts)
    colours = {"ok": "32", "note": "33", "bad": "31"}
    lines = []
    for verdict in verdicts:
        state = f"{verdict.state:<4}"
        if wants_colour():
            state = f"\x1b[{colours[verdict.state]}m{state}\x1b[0m"
        lines.append(f"{state}  {verdict.check:<{width}}  {verdict.detail}")
    return "\n".join(lines)


# ---- the machine -----------------------------------------------------------------------------------------------


def _look_at_shared_memory() -> Iterator[Verdict]:
    from shmq.core.segment import SHM_DIRECTORY, default_memory, is_memory, list_segments, shm_type

    found = os.statvfs(SHM_DIRECTORY)
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    if not is_memory(kind := shm_type()):
        yield Verdict("/dev/shm", "bad", f"is not a tmpfs (type {kind:#x}); mount one there")
    if found.f_flag & os.ST_RDONLY:
        yield Verdict("/dev/shm", "bad", "is read-only; mount it writable")
    state: State = "note" if total < _SMALL or free < total // 10 else "ok"
    remedy = "; enlarge it (in Docker --shm-size)" if state == "note" else ""
    detail = f"{size(total)}, {size(free)} free, a new broker takes at most {size(default_memory())}{remedy}"
    yield Verdict("/dev/shm", state, detail)
    names = list_segments()
    ours = [name for name in names if name.startswith(f"shmq-{os.geteuid()}-")]
    yield Verdict("segments", "ok", f"{len(names)}, of which {len(ours)} are ours")


def _look_at_kernel() -> Iterator[Verdict]:
    import platform

    release = platform.release()
    version = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    state: State = "ok" if version >= _KERNEL else "bad"
    libc = " ".join(platform.libc_ver()) or "libc unknown"
    yield Verdict("kernel", state, f"Linux {release}, {platform.machine()}, {libc}; 5.10 or later is needed")
    cpus = len(os.sched_getaffinity(0))
    yield Verdict("CPUs", "ok", f"{cpus} for this process, of {os.cpu_count()}")


def _look_at_limits() -> Iterator[Verdict]:
    import resource

    for name, number, need, noun in (
        ("open files", resource.RLIMIT_NOFILE, 256, ""),
        ("file size", resource.RLIMIT_FSIZE, 1 << 30, " bytes"),
        ("address space", resource.RLIMIT_AS, 32 << 30, " bytes"),  # a broker of 4 GiB maps 20 GiB of addresses
    ):
        soft, hard = resource.getrlimit(number)
        if soft == resource.RLIM_INFINITY:
            yield Verdict(name, "ok", "no limit")
            continue
        state: State = "ok" if soft >= need else "note"
        remedy = "" if state == "ok" else f"; less than {need:,} may be too few, see ulimit"
        of = "" if hard == resource.RLIM_INFINITY else f" of at most {hard:,}"
        yield Verdict(name, state, f"{soft:,}{noun}{of}{remedy}")


# ---- liveness --------------------------------------------------------------------------------------------------


def _look_at_liveness() -> Iterator[Verdict]:
    """A child takes a message and is killed: it must be seen alive, then dead, and the message must come back."""
    import signal
    import time

    from shmq.core.segment import MEMORY_MIN
    from shmq.runtime import open

    with open(None, memory=MEMORY_MIN) as broker:
        queue = broker.queue("doctor")
        queue.put("pulse")
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            _hold_until_killed(queue, theirs)
        os.close(theirs)
        try:
            held = os.read(ours, 1) == b"."
            states = {process.pid: process.state for process in broker.statistics().processes}
            alive = held and states.get(child) == "live" and queue.qsize() == 0
        finally:
            os.close(ours)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        yield Verdict("locks", *_said(alive, "a living process is seen alive", f"states {states}"))
        began = time.perf_counter()
        back = queue.get_many(1, timeout=5.0) == ["pulse"]
        took = time.perf_counter() - began
        gone = all(process.pid != child for process in broker.statistics().processes)
        text = f"a killed process is seen dead, its message was back after {took * 1000:.1f} ms"
        yield Verdict("liveness", *_said(back and gone, text, "the message of a killed process did not come back"))


def _said(good: bool, then: str, otherwise: str) -> tuple[State, str]:
    return ("ok", then) if good else ("bad", otherwise)


def _noted(trouble: str | None, otherwise: str) -> tuple[State, str]:
    return ("ok", otherwise) if trouble is None else ("note", trouble)


def _hold_until_killed(queue: Any, pipe: int) -> None:
    """In the child; never returns."""
    import signal

    try:
        message = queue.receive(timeout=5.0)
        os.write(pipe, b"." if message is not None else b"?")
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _look_at_waking() -> Iterator[Verdict]:
    """Another process sleeps in get() and is woken by a put."""
    import signal
    import time

    from shmq.core.segment import MEMORY_MIN
    from shmq.runtime import open

    with open(None, memory=MEMORY_MIN) as broker:
        there, back = broker.queue("there"), broker.queue("back")
        child = os.fork()
        if child == 0:
            try:
                for _ in range(20):
                    back.put(there.get(timeout=5.0))
            finally:
                os._exit(0)
        try:
            rounds = []
            for number in range(20):
                began = time.perf_counter()
                there.put(number)
                if back.get_many(1, timeout=5.0) != [number]:
                    yield Verdict("waking", "bad", "a sleeping process was not woken within 5 s")
                    return
                rounds.append(time.perf_counter() - began)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        yield Verdict("waking", "ok", f"there and back in {sorted(rounds)[10] * 1e6:,.0f} µs (futexes)")


def _look_at_leftovers() -> Iterator[Verdict]:
    from shmq.engine.directory.drafts import drafts
    from shmq.engine.directory.orphans import orphans

    for path in drafts():
        yield Verdict(
            "leftovers", "note", f"{path} is unfinished, and its maker is gone: shmq gc without DIR removes it"
        )
    sure = orphans()
    doubtful = [identity for identity in orphans(deleted=True) if identity not in sure]
    taken = sum(identity.memory for identity in sure + doubtful)
    if not taken:
        yield Verdict("leftovers", "ok", "none")
        return
    parts = []
    if sure:
        parts.append(f"{quantity(len(sure), 'segment')} that no process uses: shmq gc without DIR removes them")
    if doubtful:
        parts.append(f"{len(doubtful)} whose directory is gone: shmq gc --discard without DIR removes them")
    yield Verdict("leftovers", "note", f"up to {size(taken)}; " + "; ".join(parts))


# ---- the directory ---------------------------------------------------------------------------------------------


def _look_at_directory(path: str) -> Iterator[Verdict]:
    from shmq.engine.directory.drafts import drafts
    from shmq.engine.directory.ownership import (
        check_filesystem,
        check_owner,
        is_directory,
        mounted_type,
        open_directory,
    )
    from shmq.engine.directory.record import RECORD_DRAFT

    if not is_directory(path):
        yield Verdict("directory", "note", f"{path} does not exist; shmq init makes it")
        return
    directory = open_directory(path)
    try:
        found = os.fstat(directory)
        check_owner(path, found)
        check_filesystem(path, directory)
        kind = mounted_type(found.st_dev) or "a file system of unknown type"
        if os.fstatvfs(directory).f_flag & os.ST_RDONLY:
            yield Verdict("directory", "bad", f"{path} is on a read-only file system; mount it writable")
    finally:
        os.close(directory)
    yield Verdict("directory", "ok", f"{path}, mode {found.st_mode & 0o777:04o}, on {kind}")
    unfinished = os.path.join(path, RECORD_DRAFT)
    if unfinished in drafts(path):
        yield Verdict("directory", "note", f"{unfinished} was left by a process that died: shmq gc removes it")
    yield from _look_at_segment(path)


def _look_at_segment(path: str) -> Iterator[Verdict]:
    from shmq.cli.check import segment_fault
    from shmq.core.segment import inspect
    from shmq.engine.directory.record import read_record

    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        record = read_record(path, directory)
    finally:
        os.close(directory)
    if record is None:
        yield Verdict("broker", "note", f"none in {path}; shmq init makes one")
        return
    fault = segment_fault(path)
    if fault is not None:
        yield Verdict("broker", "bad", fault)
        return
    identity = inspect(record.name)
    use = "in use" if identity.has_members else "not in use"
    yield Verdict("broker", "ok", f"{record.name}, {size(identity.memory)}, {use}")
    yield from _look_inside(path)


def _look_inside(path: str) -> Iterator[Verdict]:
    from shmq.cli.check import examine

    report = examine(path)
    if not report.findings:
        yield Verdict(
            "damage", "ok", f"none in {quantity(report.queues, 'queue')}, {quantity(report.messages, 'message')}"
        )
    for finding in report.findings:
        yield Verdict("damage", "bad", finding.text())
    if not report.findings:
        yield from _look_at_alerts(path)
    yield from _look_at_movers(report.movers)
    state: State = "ok" if report.rescues == 0 else "note"
    remedy = "" if state == "ok" else "; a process was stopped, or a wake-up was missed"
    yield Verdict("rescues", state, f"{report.rescues:,} sleeps found a message only when their time was over{remedy}")


def _look_at_alerts(path: str) -> Iterator[Verdict]:
    """Thresholds of queues that are reached now, whether that was told or not; and what they may have in memory."""
    from shmq.engine.broker.broker import live_membership
    from shmq.engine.dead_lettering.alert import raised
    from shmq.engine.handle.max_memory import excess_of
    from shmq.runtime import open_to_look

    with open_to_look(path) as broker:
        told = [f"queue {queue.name!r} {text}" for queue in broker.queues() for text in raised(queue)]
        excess = excess_of(live_membership(broker))
        yield _look_at_disk(live_membership(broker).member, path)
    yield Verdict("memory", *_noted(excess, "all queues can reach their max_memory at the same time"))
    if not told:
        yield Verdict("alerts", "ok", "no queue has reached a threshold of its alerts=")
    for text in told:
        yield Verdict("alerts", "note", text)


def _look_at_disk(member: Member, path: str) -> Verdict:
    """Is there room for messages that do not fit into memory?"""
    from shmq.core.segment import DISK_NONE, DISK_SHARE
    from shmq.engine.directory.disk import disk_bytes, disk_of, file_system

    budget, used = member.header()["disk"], disk_bytes(disk_of(path, member.name))
    if budget == DISK_NONE:
        return Verdict("disk", "ok", "nothing goes to disk (disk=0)")
    if budget != DISK_SHARE:
        figures = f"{used:,} of {budget:,} bytes that messages may have there"
        full, remedy = used >= budget - budget // 10, "take messages out, or make the broker anew with a larger disk="
    else:
        directory, system = file_system(path)
        free, size = system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize
        figures = f"{used:,} bytes of messages; {directory} has {free:,} of {size:,} bytes free, a tenth stays free"
        full, remedy = free <= size // 10, "take messages out, or make room there"
    return Verdict("disk", "note" if full else "ok", f"{figures}: {remedy}" if full else figures)


def _look_at_movers(movers: dict[str, int]) -> Iterator[Verdict]:
    """A process that is stopped amid its turn keeps others from what is on disk."""
    from shmq.core.process_table import state_of

    stopped = {name: pid for name, pid in movers.items() if state_of(pid) == "stopped"}
    if not stopped:
        yield Verdict("movers", "ok", "no process is stopped while it moves messages to or from disk")
    for name, pid in stopped.items():
        text = f"process {pid} was stopped while it moved messages of queue {name!r}; others get none from disk"
        yield Verdict("movers", "bad", f"{text}: let it go on (kill -CONT {pid}), or end it")


_LOOKS: dict[str, Callable[[], Iterator[Verdict]]] = {
    "/dev/shm": _look_at_shared_memory,
    "kernel": _look_at_kernel,
    "limits": _look_at_limits,
    "liveness": _look_at_liveness,
    "waking": _look_at_waking,
    "leftovers": _look_at_leftovers,
}
