"""Options of a broker."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from shmq.options.encryption_key import EncryptionKey, check_encryption_key
from shmq.options.stage import not_built
from shmq.options.value import Size, check_timeout, parse_size, shown

__all__ = ["BROKER_DEFAULTS", "PATIENCE", "BrokerSettings", "Durability", "check_broker_options"]

Durability = Literal["none", "os", "sync"]  # survives: processes; the loss of the segment; power loss


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Options of a broker, checked. None: not given."""

    memory: int | None = None  # bytes
    mode: int | None = None
    patience: float | None = None  # seconds
    disk: int | None = None  # bytes
    disk_path: str | None = None  # absolute, without links
    encryption_key: EncryptionKey | None = None


PATIENCE: Final = 0.1  # seconds
# memory has none: it is made from the size of /dev/shm.
BROKER_DEFAULTS: Final = BrokerSettings(memory=None, mode=0o700, patience=PATIENCE)

MIN_MEMORY: Final = 8 << 20  # what the core's fixed tables and a few queues need; the core has the same limits
MAX_MEMORY: Final = 256 << 30
MAX_DISK: Final = 1 << 62


def check_broker_options(
    *,
    memory: Size | None = None,
    mode: int | None = None,
    patience: float | None = None,
    disk: Size | None = None,
    disk_path: str | os.PathLike[str] | None = None,
    durability: Durability | None = None,
    encryption_key: bytes | str | os.PathLike[str] | Callable[[], bytes] | None = None,
) -> BrokerSettings:
    """Options of a broker, each checked for type and range; those not given stay None.

    Arguments:
        memory: budget of the segment in bytes, 8 MiB to 256 GiB.
        mode: permissions of the directory, with all of the owner's, at most 0o777.
        patience: seconds that a stopped process may delay others, 0.001 to 60.
        disk: bytes on disk of all queues together, 0 to 2**62; 0: messages stay in memory.
        disk_path: the directory in which they lie, which exists.
        durability: of a later stage; None only.
        encryption_key: of what goes to disk: 32 bytes, the path of a file with them, a function that returns them.

    Raises TypeError for a wrong type, ValueError for one out of range or of a later stage.
    """
    if durability is not None:
        raise not_built("durability")
    return BrokerSettings(
        memory=None if memory is None else _check_memory(memory),
        mode=None if mode is None else _check_mode(mode),
        patience=None if patience is None else _check_patience(patience),
        disk=None if disk is None else _check_disk(disk),
        disk_path=None if disk_path is None else _check_disk_path(disk_path, disk),
        encryption_key=None if encryption_key is None else check_encryption_key(encryption_key),
    )


def _check_memory(memory: Size) -> int:
    size = parse_size(memory, "memory")
    if not MIN_MEMORY <= size <= MAX_MEMORY:
        raise ValueError(f'memory={shown(memory)} is out of range; give 8 MiB to 256 GiB, such as "64MiB"')
    return size


def _check_disk(disk: Size) -> int:
    size = parse_size(disk, "disk")
    if not 0 <= size <= MAX_DISK:
        raise ValueError(f'disk={shown(disk)} is out of range; give bytes, such as "20GiB", or 0 for none')
    return size


def _check_disk_path(disk_path: str | os.PathLike[str], disk: Size | None) -> str:
    if isinstance(disk_path, bytes) or not isinstance(disk_path, str | os.PathLike):
        raise TypeError(f"disk_path={shown(disk_path)} is of the type {type(disk_path).__name__}; give a path")
    if disk is not None and parse_size(disk, "disk") == 0:
        raise ValueError(f"disk_path={shown(disk_path)} beside disk=0: nothing goes to disk; leave one of them out")
    if not os.path.isdir(disk_path):
        raise ValueError(f"disk_path={shown(disk_path)} is no directory; make it, or mount its file system")
    return os.path.realpath(disk_path)


def _check_mode(mode: int) -> int:
    if isinstance(mode, bool) or not hasattr(mode, "__index__"):
        raise TypeError(f"mode={shown(mode)} is of the type {type(mode).__name__}; give permissions, such as 0o770")
    number = operator.index(mode)
    if not 0 <= number <= 0o777 or number & 0o700 != 0o700:
        octal = oct(number) if 0 <= number < 1 << 32 else shown(number)
        raise ValueError(f"mode={octal} is out of range; give 0o700 for yourself, 0o770 for a group, with 0o in front")
    return number


def _check_patience(patience: float) -> float:
    seconds = check_timeout(patience, "patience")
    if seconds is None or not 0.001 <= seconds <= 60 or not math.isfinite(seconds):
        raise ValueError(
            f"patience={shown(patience)} is out of range; give 0.001 to 60 seconds, {PATIENCE} is the default"
        )
    return seconds
