"""check: every structure of a broker that may be in use is looked at, and nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, pass_session, usage
from shmq.errors import BrokerNotFound, CorruptionError, DecodeError, NotFound
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.engine.broker import Broker
    from shmq.engine.queue import Queue

__all__ = ["Report", "check", "examine", "segment_fault"]


@dataclass
class Finding:
    """One thing that makes no sense."""

    place: str
    fault: str
    slot: int | None = None  # of a queue's ring
    count: int = 1

    def text(self) -> str:
        """In one line."""
        where = "" if self.slot is None else f", slot {self.slot:,}"
        count = "" if self.count == 1 else f" ({self.count:,})"
        return f"{self.place}{where}: {self.fault}{count}"


@dataclass
class Report:
    """What was looked at, and what was found."""

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
    findings: list[Finding] = field(default_factory=list)


@click.command("check")
@click.option("--no-bodies", is_flag=True, help="Leave the checksums of messages alone: they take most of the time.")
@pass_session
def check(session: Session, no_bodies: bool) -> None:
    """Look for damage: every structure of the segment, every slot of every ring, the checksum of every message.

    Processes, consumers and their sleepers, the queue directory, memory and its blocks are looked at, each by itself
    and against the others: an owner must be there, a body's block must know its message, a used block must be named.
    Only looks, and may run while others work, each second if need be. The exit code is 1 if something was found.

    \b
    Example:
      shmq check
      shmq check --json | jq '.findings[]'
    """
    from shmq.names import parse_broker_path

    with usage():
        path = parse_broker_path(session.place())
    report = examine(path, session.open, bodies=not no_bodies)
    session.result(asdict(report), _text(report))
    if report.findings:
        click.get_current_context().exit(1)


def examine(path: str, opened: Callable[[], Broker], *, bodies: bool = True) -> Report:
    """Everything that can be looked at in the broker of this directory, which is opened if it can be."""
    report = Report(path)
    fault = segment_fault(path)
    if fault is not None:
        report.findings.append(Finding("broker", fault))
        return report
    with opened() as broker:
        _examine_segment(broker, report)
        for queue in _queues(broker, report):
            try:
                _examine_queue(queue, report, bodies)
            except NotFound:
                continue  # deleted meanwhile
            except CorruptionError as error:
                report.findings.append(Finding(f"queue {queue.name!r}", str(error)))
            report.queues += 1
    return report


def _queues(broker: Broker, report: Report) -> Iterator[Queue[Any]]:
    """All that can be opened; what cannot is a finding, and hides none of the others."""
    from shmq.core.queue import queue_names
    from shmq.engine.queue import Queue

    for raw, index, incarnation in sorted(queue_names(broker._live().live())):
        name = raw.decode(errors="replace")
        try:
            yield Queue._open(broker, name, None, index, incarnation)
        except NotFound:
            continue
        except CorruptionError as error:
            report.findings.append(Finding(f"queue {name!r}", str(error)))


def segment_fault(path: str) -> str | None:
    """Why nobody could join the segment that the directory names. Opening would put a new one in the place of a lost
    one, so it is looked at before."""
    from shmq.core import segment
    from shmq.engine.record import read_record

    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None  # open() says it better
    try:
        record = read_record(path, directory)
        if record is not None:
            segment.inspect(record.name)
    except BrokerNotFound:
        return "its segment is lost; the next open makes an empty one"
    except CorruptionError as error:
        return str(error)
    finally:
        os.close(directory)
    return None


def _examine_segment(broker: Broker, report: Report) -> None:
    member = broker._live().live()
    used = member.usage()
    report.memory, report.blocks, report.damage = used["memory"], used["blocks"], used["damage"]
    report.rescues = used["rescues"]
    fault = member.valid()
    if fault is not None:
        report.findings.append(Finding("segment", fault))
    if report.damage:
        report.findings.append(Finding("segment", "damage was met and quarantined by processes", count=report.damage))


def _examine_queue(queue: Queue[Any], report: Report, bodies: bool) -> None:
    place = f"queue {queue.name!r}"
    found, census = queue._check(), queue._census()
    if found is not None:
        report.findings.append(Finding(place, found[0], slot=found[1]))
    if census["broken"]:
        fault = "broken slots, each with the loss of its message"
        report.findings.append(Finding(place, fault, count=census["broken"]))
    if not bodies:
        report.messages += census["ready"] + census["unsettled"]
        return
    entries, verified, unsigned, moved, damaged, fault_of_first, slot = queue._verify()
    report.messages += entries
    report.verified += verified
    report.unsigned += unsigned
    report.moved += moved
    if fault_of_first is not None:
        report.findings.append(Finding(place, fault_of_first, slot=slot, count=damaged))
    if unsigned:
        _examine_headers(queue, place, report)


def _examine_headers(queue: Queue[Any], place: str, report: Report) -> None:
    """Without checksums it is the only thing of a message that shows its damage."""
    damaged = 0
    for message in queue.browse():
        try:
            _ = message.headers, message.content_type
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
    if not report.findings:
        return f"{looked}: sound"
    lines = [f"{looked}: found {len(report.findings)}"]
    lines += [f"  {finding.text()}" for finding in report.findings]
    return "\n".join(lines)
