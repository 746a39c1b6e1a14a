"""gc: shared memory that nobody uses goes back to the system."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, confirm, pass_session, say, usage
from shmq.cli.text import size, table
from shmq.errors import BrokerNotFound, CorruptionError, VersionMismatch
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.segment import SegmentIdentity

__all__ = ["gc"]


@click.command("gc")
@click.option("--discard", is_flag=True, help="Also segments whose directory is gone, and DIR's own if it is unusable.")
@click.option("--yes", is_flag=True, help="Do not ask before discarding.")
@pass_session
def gc(session: Session, discard: bool, yes: bool) -> None:
    """Remove segments that nobody uses and nobody can find again, and settle the affairs of dead processes in DIR.

    A segment whose directory is not there may be in use from a container that sees the directory: so it goes only with
    --discard. The same for the segment of DIR if another version of shmq made it, or it is damaged. Also removes what a
    death has left unfinished when it made a segment or wrote DIR's record of it. Needs no DIR.

    \b
    Example:
      shmq gc
      shmq gc --discard --yes
    """
    from shmq.engine.drafts import sweep_drafts
    from shmq.engine.orphans import orphans, sweep_orphans

    drafts = sweep_drafts(_directory(session))
    removed = sweep_orphans()
    kept = orphans(deleted=True)
    if discard:
        taken = sum(identity.memory for identity in kept)
        confirm(
            f"Discard {quantity(len(kept), 'segment')} ({size(taken)}) whose directory is gone, and DIR's if unusable?",
            yes=yes,
        )
        removed += sweep_orphans(deleted=True)
        kept = orphans(deleted=True)
    discarded = _discard_unusable(session) if discard else None
    reaped = _reap(session)
    result: dict[str, Any] = {
        "removed": [_fields(identity) for identity in removed],
        "kept": [_fields(identity) for identity in kept],
        "drafts": drafts,
        "discarded": discarded,
        "reaped": reaped,
    }
    session.result(result, _text(removed) if removed else None)
    if not session.json:
        _tell(len(removed), drafts, kept, discarded, reaped)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _fields(identity: SegmentIdentity) -> dict[str, Any]:
    return {
        "name": identity.name,
        "memory": identity.memory,
        "path": identity.path or None,
        "created": identity.created,
    }


def _text(identities: list[SegmentIdentity]) -> str:
    rows = [[identity.name, identity.path or "anonymous", size(identity.memory)] for identity in identities]
    return table(["removed", "directory", "size"], rows, left=2)


def _directory(session: Session) -> str | None:
    from shmq.names import parse_broker_path

    with usage():
        return parse_broker_path(session.directory) if session.directory else None


def _tell(
    removed: int, drafts: list[str], kept: list[SegmentIdentity], discarded: str | None, reaped: int | None
) -> None:
    for draft in drafts:
        say(f"removed {draft}, which nobody finishes any more")
    if not removed and not drafts and discarded is None:
        say("nothing to remove")
    if discarded is not None:
        say(f"discarded {discarded}")
    if kept:
        say(f"{_count(len(kept), 'segment')} left whose directory is gone; shmq gc --discard removes what nobody uses")
    if reaped:
        say(f"settled the affairs of {_count(reaped, 'dead process', 'dead processes')}")


def _reap(session: Session) -> int | None:
    """How many dead members were reaped; None: there is no broker to look into."""
    from shmq.core.queue import reap
    from shmq.runtime import open

    if not session.directory:
        return None
    with usage():
        try:
            with open(session.directory, create=False) as broker:
                return reap(broker._live().live())
        except BrokerNotFound:
            return None


def _discard_unusable(session: Session) -> str | None:
    """Removes the segment of the broker's directory if this version cannot open it and nobody has it mapped."""
    from shmq.core import segment
    from shmq.engine.record import RECORD_NAME, read_record
    from shmq.names import parse_broker_path

    if not session.directory:
        return None
    with usage():
        path = parse_broker_path(session.directory)
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        try:
            record = read_record(path, directory)
        except (VersionMismatch, CorruptionError):
            # Which segment it was nobody can say any more; without a directory that names it, it is an orphan.
            os.unlink(RECORD_NAME, dir_fd=directory)
            return os.path.join(path, RECORD_NAME)
        if record is None:
            return None
        try:
            segment.inspect(record.name)
        except (VersionMismatch, CorruptionError):
            pids = _users(record.name)
            if pids:
                raise click.ClickException(
                    f"{record.name} is in use by {', '.join(map(str, pids))}; end these processes first"
                ) from None
            segment.unlink(record.name)
            return record.name
        except BrokerNotFound:
            pass
        return None
    finally:
        os.close(directory)


def _users(name: str) -> list[int]:
    """Who has a segment mapped whose own table of members cannot be read."""
    found = []
    needle = re.compile(rf"/dev/shm/{re.escape(name)}$", re.MULTILINE)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/maps", errors="replace") as maps:
                    if needle.search(maps.read()):
                        found.append(int(entry))
            except OSError:
                continue
    return sorted(found)
