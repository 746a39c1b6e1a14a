"""check: every structure of a broker that may be in use is looked at, and nothing is changed."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, pass_session, usage
from shmq.errors import BrokerNotFound, CorruptionError, DecodeError, NotFound

if TYPE_CHECKING:
    from shmq.engine.broker import Broker
    from shmq.engine.queue import Queue

__all__ = ["check", "segment_fault"]


@dataclass
class Finding:
    """One thing that makes no sense."""

    place: str
    fault: str
    slot: int | None = None  # of a queue's ring
    count: int = 1


@dataclass
class Report:
    """What was looked at, and what was found."""

    path: str
    memory: int = 0
    blocks: int = 0
    queues: int = 0
    messages: int = 0
    damage: int = 0  # places that processes have met and quarantined since the broker was made
    findings: list[Finding] = field(default_factory=list)


@click.command("check")
@pass_session
def check(session: Session) -> None:
    """Look for damage: the segment's map, its blocks, the ring of each queue, the headers of each message.

    Only looks, and may run while others work. The exit code is 1 if something was found.

    \b
    Example:
      shmq check
      shmq check --json | jq '.findings[]'
    """
    report = _examine(session)
    session.result(asdict(report), _text(report))
    if report.findings:
        click.get_current_context().exit(1)


def _examine(session: Session) -> Report:
    from shmq.names import parse_broker_path

    with usage():
        report = Report(parse_broker_path(session.place()))
    fault = segment_fault(report.path)
    if fault is not None:
        report.findings.append(Finding("broker", fault))
        return report
    with session.open() as broker:
        _examine_segment(broker, report)
        for queue in broker.queues():
            try:
                _examine_queue(queue, report)
            except NotFound:
                continue  # deleted meanwhile
            report.queues += 1
    return report


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
    fault = member.valid()
    if fault is not None:
        report.findings.append(Finding("segment", fault))
    if report.damage:
        report.findings.append(Finding("segment", "damage was met and quarantined by processes", count=report.damage))


def _examine_queue(queue: Queue[Any], report: Report) -> None:
    place = f"queue {queue.name!r}"
    found, broken = queue._check(), queue._census()["broken"]
    if found is not None:
        report.findings.append(Finding(place, found[0], slot=found[1]))
    if broken:
        report.findings.append(Finding(place, "broken slots, each with the loss of its message", count=broken))
    damaged = 0
    for message in queue.browse():
        report.messages += 1
        try:
            _ = message.headers, message.content_type
        except DecodeError:
            damaged += 1
    if damaged:
        report.findings.append(Finding(place, "messages with damaged headers", count=damaged))


def _text(report: Report) -> str:
    from shmq.cli.text import size

    looked = f"{report.path}: {size(report.memory)}, {report.blocks:,} blocks, "
    looked += f"{report.queues:,} queues, {report.messages:,} messages"
    if not report.findings:
        return f"{looked}: sound"
    lines = [f"{looked}: found {len(report.findings)}"]
    for finding in report.findings:
        where = "" if finding.slot is None else f", slot {finding.slot:,}"
        count = "" if finding.count == 1 else f" ({finding.count:,})"
        lines.append(f"  {finding.place}{where}: {finding.fault}{count}")
    return "\n".join(lines)
