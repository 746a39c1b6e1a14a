"""check: every structure of a broker that may be in use is looked at, without a row, a lock or a write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import click

from shmq.cli.session import Session, pass_session, usage
from shmq.errors import BrokerNotFound, CorruptionError, DecodeError
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.segment import Home, Observer
    from shmq.engine.directory.record import SegmentRecord

__all__ = ["Report", "check", "examine", "segment_fault"]


@dataclass
class Finding:
    """One thing that makes no sense."""

    place: str
    fault: str
    slot: int | None = None  # of the ring of a queue, or of a level
    count: int = 1
    level: int | None = None  # of a queue with priorities; 0 is the most important

    def text(self) -> str:
        """In one line."""
        where = "" if self.level is None else f", level {self.level}"
        where += "" if self.slot is None else f", slot {self.slot:,}"
        count = "" if self.count == 1 else f" ({self.count:,})"
        return f"{self.place}{where}: {self.fault}{count}"


@dataclass
class Report:
    """The parts that a check has looked at, and its findings."""

    path: str
    memory: int = 0
    blocks: int = 0
    queues: int = 0
    messages: int = 0
    verified: int = 0  # messages whose checksum was computed anew, and is right
    unsigned: int = 0  # of queues without checksums
    moved: int = 0  # taken or settled while they were read: nothing can be said
    damage: int = 0  # places that processes have met and quarantined since the broker was made
    rescues: int = 0  # sleeps that ended by their time limit beside a message; 0 unless somebody was stopped
    movers: dict[str, int] = field(default_factory=dict)  # pid of who moves messages of a queue to or from disk
    findings: list[Finding] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)  # what could not be looked at, and why


@click.command("check")
@click.option("--no-bodies", is_flag=True, help="Leave the checksums of messages alone: they take most of the time.")
@pass_session
def check(session: Session, no_bodies: bool) -> None:
    """Look for damage: every structure of the segment, every slot of every ring, the checksum of every message.

    It looks at processes, consumers and their sleepers, the queue directory, memory and its blocks. It compares them
    with each other, too: an owner must exist, a body's block must count its message, a message must name each used
    block. It maps the segment without the right to write and takes no lock. So it may run while others work, each
    second if need be. It looks again before it calls anything damage. The exit code is 1 if it found something.

    \b
    Example:
      shmq check
      shmq check --json | jq '.findings[]'
    """
    from shmq.names import parse_broker_path

    with usage():
        path = parse_broker_path(session.place())
    report = examine(path, bodies=not no_bodies)
    session.result(asdict(report), _text(report))
    if report.findings:
        click.get_current_context().exit(1)


def examine(path: str, *, bodies: bool = True) -> Report:
    """Everything that can be looked at in the broker of this directory. Raises BrokerNotFound if there is none."""
    report = Report(path)
    fault = segment_fault(path)
    if fault is not None:
        report.findings.append(Finding("broker", fault))
        return report
    observer = _observe(path)
    try:
        _examine_segment(observer, report)
        for raw, index, incarnation in sorted(observer.queues()):
            _examine_queue(observer, raw.decode(errors="replace"), index, incarnation, bodies, report)
    finally:
        observer.close()
    return report


@contextmanager
def _record_of(path: str) -> Iterator[tuple[SegmentRecord, Home] | None]:
    """The directory's record of its segment, and the home that the segment must name; None: there is no broker."""
    from shmq.engine.directory.ownership import open_directory
    from shmq.engine.directory.record import read_record

    try:
        directory = open_directory(path)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        record = read_record(path, directory)
        yield None if record is None else (record, record.home(directory))
    finally:
        os.close(directory)


def _observe(path: str) -> Observer:
    from shmq.core.segment import SHM_DIRECTORY, is_segment_name, observe

    if os.path.dirname(path) == SHM_DIRECTORY and is_segment_name(os.path.basename(path)):
        return observe(os.path.basename(path))  # an anonymous broker
    with _record_of(path) as found:
        if found is None:
            raise BrokerNotFound(f"there is no broker in {path}", remedy="check the path, or make one by shmq init")
        record, home = found
        return observe(record.name, home)


def segment_fault(path: str) -> str | None:
    """Why nobody could join the segment that the directory names. Opening would put a new one in the place of a lost
    one, so it is looked at before."""
    from shmq.core.segment import observe
    from shmq.core.status import ForeignSegment

    try:
        with _record_of(path) as found:
            if found is not None:
                record, home = found
                observe(record.name, home).close()
    except BrokerNotFound:
        return "its segment is lost; the next open makes an empty one"
    except (CorruptionError, ForeignSegment) as error:
        return str(error)
    return None


def _examine_segment(observer: Observer, report: Report) -> None:
    used = observer.usage()
    report.memory, report.blocks, report.damage = used["memory"], used["blocks"], used["damage"]
    report.rescues = used["rescues"]
    for part, fault, why in observer.parts():
        if fault is not None:
            report.findings.append(Finding("segment", fault))
        if why is not None:
            report.undecided.append(f"{part}: {why}")
    if report.damage:
        report.findings.append(Finding("segment", "processes have found damage and set it aside", count=report.damage))


def _examine_queue(observer: Observer, name: str, index: int, incarnation: int, bodies: bool, report: Report) -> None:
    place = f"queue {name!r}"
    sight = observer.queue(index, incarnation, bodies)
    if sight is None:
        return  # deleted meanwhile
    report.queues += 1
    if sight["mover"]:
        report.movers[name] = sight["mover"]
    if sight["words"] is not None:
        fault, level, slot = sight["words"]
        report.findings.append(Finding(place, fault, slot, level=level))
    if sight["undecided"] is not None:
        report.undecided.append(f"{place}: each look found something else; the last one found: {sight['undecided']}")
    if sight["broken"]:
        fault = "slots are broken, and their messages are lost"
        report.findings.append(Finding(place, fault, count=sight["broken"]))
    if not bodies:
        report.messages += sight["entries"]
        return
    entries, verified, unsigned, moved, damaged = sight["bodies"]
    report.messages += entries
    report.verified += verified
    report.unsigned += unsigned
    report.moved += moved
    if sight["messages"] is not None:
        fault, level, slot = sight["messages"]
        report.findings.append(Finding(place, fault, slot, damaged, level))
    if unsigned:
        _examine_headers(observer.heads(index, incarnation), place, report)


def _examine_headers(heads: list[bytes], place: str, report: Report) -> None:
    """Without checksums it is the only thing of a message that shows its damage."""
    from shmq.headers import decode_headers

    damaged = 0
    for head in heads:
        try:
            decode_headers(head)
        except DecodeError:
            damaged += 1
    if damaged:
        report.findings.append(Finding(place, "messages with damaged headers", count=damaged))


def _text(report: Report) -> str:
    from shmq.cli.text import size

    looked = f"{report.path}: {size(report.memory)}, {report.blocks:,} blocks, "
    looked += f"{quantity(report.queues, 'queue')}, {quantity(report.messages, 'message')}"
    if report.messages:
        looked += f" ({report.verified:,} verified)"
    lines = [f"{looked}: found {len(report.findings)}" if report.findings else f"{looked}: sound"]
    lines += [f"  {finding.text()}" for finding in report.findings]
    lines += [f"  not decided: {what}" for what in report.undecided]
    return "\n".join(lines)
