"""The composition root: from what a user types to a Broker."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from shmq.engine.broker.broker import Broker
from shmq.engine.membership.opening import join_anonymous, join_directory
from shmq.names import parse_broker_path
from shmq.options import Size, check_bool, check_broker_options

__all__ = ["Broker", "open", "open_to_look"]


def open(
    path: str | PathLike[str] | None = None,
    *,
    create: bool = True,
    memory: Size | None = None,
    mode: int | None = None,
    patience: float | None = None,
    disk: Size | None = None,
    disk_path: str | PathLike[str] | None = None,
    durability: None = None,
    encryption_key: bytes | str | PathLike[str] | Callable[[], bytes] | None = None,
) -> Broker:
    """Open the broker in a directory; make it if there is none.

    path: a directory, or "shmq:///abs/dir". None: anonymous (no directory, shared by passing handles, gone with its
        last user).
    create: False: BrokerNotFound when there is none.
    memory: budget of the segment, bytes or text such as "64MiB"; new: half of /dev/shm, at most 4 GiB.
    mode: of the directory, files lose the x bits; new: 0o700; 0o770 for a group.
    patience: seconds for which a stopped process may delay others; new: 0.1.
    disk: most bytes of all queues on disk together, such as "20GiB"; 0: nothing flows there; new: a tenth of the file
        system stays free.
    disk_path: a directory, on a larger or faster disk perhaps. Messages on disk get a folder of their own there. New:
        the broker's directory, or that of temporary files where there is none.
    encryption_key: 32 random bytes, the path of a file with them or with 64 hexadecimal digits, or a function that
        returns them. It encrypts messages that go to disk. Each process that opens the broker has to give it.
    durability: belongs to a later stage: ValueError.

    Options that are given must be those of the broker that is there, else OptionsMismatch. Opening the same directory
    again in a process gives another handle on the same membership.

    Raises PermissionError for another user's directory, BrokerError for a remote file system or a full process table.
    Raises BrokerNotFound, VersionMismatch, CorruptionError, OutOfSpace; ValueError, TypeError for a wrong argument.

    Example:
        >>> with shmq.open("hello.shmq", memory="64MiB") as broker:
        ...     broker.queue("greetings").put("hello, world")
        1
    """
    check_bool(create, "create")
    settings = check_broker_options(
        memory=memory,
        mode=mode,
        patience=patience,
        disk=disk,
        disk_path=disk_path,
        durability=durability,
        encryption_key=encryption_key,
    )
    if path is None:
        return Broker(join_anonymous(settings))
    return Broker(join_directory(parse_broker_path(path), settings, create=create))


def open_to_look(path: str | PathLike[str]) -> Broker:
    """The broker in a directory, for callers that need no message that lies on disk: without the key of messages there.

    path: as for open(). Raises what open(path, create=False) raises.
    """
    return Broker(join_directory(parse_broker_path(path), check_broker_options(), create=False, rows=False))
