"""destroy: a broker goes, with its memory, its files and its directory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from shmq.cli.session import Refused, Session, confirm, pass_session, say, usage

if TYPE_CHECKING:
    from shmq.engine.directory.removal import Removal

__all__ = ["destroy"]


@click.command("destroy")
@click.argument("place", metavar="[DIR]", required=False)
@click.option(
    "--force",
    is_flag=True,
    help="Also while others use it (their calls fail then), or with a damaged record.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def destroy(session: Session, place: str | None, force: bool, yes: bool) -> None:
    """Delete the broker in DIR with all its messages: its memory, its files, and DIR unless other things lie in it.

    Works in every state of the broker: damaged, of another version, or left half-way by a destroy that was killed.
    Removes only files that shmq has made. It leaves a segment alone that DIR's record names, but that is another
    broker's. While other processes use the broker it refuses, and names them. It refuses, too, if DIR's file `segment`
    is none of shmq's. --force overrides both. Without DIR it takes that of -d, or $SHMQ_DIR.

    \b
    Example:
      shmq destroy /var/lib/shop
      shmq -d /var/lib/shop destroy --yes --force
    """
    from shmq.engine.directory.ownership import is_directory
    from shmq.engine.directory.removal import destroy
    from shmq.names import parse_broker_path

    if place is not None and _names_another():
        raise Refused("two directories are named, by -d and behind destroy; name one")
    with usage():
        path = parse_broker_path(place or session.place())
    if is_directory(path):  # else there is nothing to ask about, and destroy() says so
        confirm(f"Delete the broker {path} with all its messages?", yes=yes)
    removal = destroy(path, force=force)
    if session.json:
        session.result(asdict(removal))
    else:
        _tell(removal)


def _names_another() -> bool:
    context = click.get_current_context()
    sources = (context.find_root().get_parameter_source("directory"), context.get_parameter_source("directory"))
    return ParameterSource.COMMANDLINE in sources


def _tell(removal: Removal) -> None:
    say(
        f"deleted {removal.path}" if removal.directory else f"deleted the broker; {removal.path} stays, it is not empty"
    )
    if removal.left is not None:
        say(f"left alone: {removal.left}, which belongs to another broker")
