"""gc: shared memory that nobody uses goes back to the system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shmq.cli.session import Session, confirm, pass_session, say, usage
from shmq.cli.text import size, table
from shmq.errors import BrokerNotFound
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.segment import SegmentIdentity

__all__ = ["gc"]


@click.command("gc")
@click.option("--discard", is_flag=True, help="Also segments whose directory is gone, and DIR's own if it is unusable.")
@click.option("--yes", is_flag=True, help="Do not ask before discarding.")
@pass_session
def gc(session: Session, discard: bool, yes: bool) -> None:
    """Remove segments that no process uses and none can find again, and files that dead processes have left in DIR.

    With DIR it touches that broker only. It removes segments that its directory has lost, also when it was deleted. It
    removes a draft of a process that died while it wrote DIR's record. Without DIR it looks at all segments of this
    user.

    A segment whose directory is not there may be in use from a container that sees the directory. Or its directory was
    moved. So it goes only with --discard, which lists the segments before it asks. The same holds for the segment of
    DIR if another version of shmq made it, or it is damaged. shmq destroy DIR removes a broker.

    \b
    Example:
      shmq gc
      shmq gc --discard
      shmq -d DIR gc --discard --yes
    """
    from shmq.engine.directory.drafts import sweep_drafts
    from shmq.engine.directory.orphans import orphans, sweep_discarded, sweep_orphans
    from shmq.engine.directory.removal import discard_unusable

    path = _directory(session)
    drafts = sweep_drafts(path)
    removed = sweep_orphans(path)
    kept = orphans(path, deleted=True)
    discarded = None
    if discard:
        if kept or path is not None:
            _ask(kept, path, yes)
        removed += sweep_discarded(kept, path)
        kept = orphans(path, deleted=True)
        discarded = discard_unusable(path) if path is not None else None
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


def _ask(kept: list[SegmentIdentity], path: str | None, yes: bool) -> None:
    """Lists what will go, then asks; what comes to it later does not go with it."""
    whose = "whose directory is gone" if path is None else f"that {path} has lost"
    if kept:
        say(f"to be discarded: {quantity(len(kept), 'segment')} {whose}")
        say(_text(kept, "segment"))
    taken = sum(identity.memory for identity in kept)
    unusable = "" if path is None else f", and that of {path} if it is unusable"
    confirm(f"Discard {quantity(len(kept), 'segment')} ({size(taken)}) {whose}{unusable}?", yes=yes)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _fields(identity: SegmentIdentity) -> dict[str, Any]:
    return {
        "name": identity.name,
        "memory": identity.memory,
        "path": None if identity.anonymous else identity.path,
        "created": identity.created,
    }


def _text(identities: list[SegmentIdentity], head: str = "removed") -> str:
    rows = [
        [identity.name, "anonymous" if identity.anonymous else identity.path, size(identity.memory)]
        for identity in identities
    ]
    return table([head, "directory", "size"], rows, left=2)


def _directory(session: Session) -> str | None:
    from shmq.names import parse_broker_path

    with usage():
        return parse_broker_path(session.directory) if session.directory else None


def _tell(
    removed: int, drafts: list[str], kept: list[SegmentIdentity], discarded: str | None, reaped: int | None
) -> None:
    for draft in drafts:
        say(f"removed {draft}, which a process left unfinished when it died")
    if not removed and not drafts and discarded is None:
        say("nothing to remove")
    if discarded is not None:
        say(f"discarded {discarded}")
    if kept:
        say(
            f"{_count(len(kept), 'segment')} left whose directory is gone; "
            "shmq gc --discard removes those that no process uses"
        )
    if reaped:
        say(f"cleaned up after {_count(reaped, 'dead process', 'dead processes')}")


def _reap(session: Session) -> int | None:
    """How many dead members were reaped; None: there is no broker to look into."""
    from shmq.core.queue import reap
    from shmq.engine.broker.broker import live_membership
    from shmq.runtime import open_to_look

    if not session.directory:
        return None
    with usage():
        try:
            with open_to_look(session.directory) as broker:
                return reap(live_membership(broker).live())
        except BrokerNotFound:
            return None
