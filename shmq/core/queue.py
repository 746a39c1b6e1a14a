"""Queues as the native core has them: the handle that Queue is built on, the directory, and the reaper."""

from __future__ import annotations

from typing import Final

import shmq.core.status  # noqa: F401  - so that what fails below raises the right exception
from shmq._native import (
    NAME_MAX,
    OBITUARY_PROCESS,
    Delivery,
    Drop,
    LoanBuffer,
    Member,
    QueueHandle,
    View,
    obituaries,
    obituary_signal,
    queue_declare,
    queue_names,
    reap,
)
from shmq.options import QueueSettings

__all__ = [
    "CODEC_BYTES",
    "CODEC_DEFAULT",
    "CODEC_OTHER",
    "CODEC_PICKLE",
    "NAME_MAX",
    "OBITUARY_PROCESS",
    "SETTINGS",
    "Delivery",
    "Drop",
    "LoanBuffer",
    "QueueHandle",
    "View",
    "declare",
    "obituaries",
    "obituary_signal",
    "queue_names",
    "reap",
]

# How a handle's codec looks to the fast path in C.
CODEC_DEFAULT: Final = 0
CODEC_BYTES: Final = 1
CODEC_OTHER: Final = 2
CODEC_PICKLE: Final = 3  # as DEFAULT for exact bytes and str, OTHER for all else

# In the order of enum shmq_setting.
SETTINGS: Final = (
    "maxsize",
    "slot_size",
    "temporary",
    "max_deliveries",
    "max_deaths",
    "checksum",
    "dead_letter",
)


def declare(member: Member, name: bytes, settings: QueueSettings, create: bool) -> tuple[int, int, str | None]:
    """Finds or makes a queue: (directory index, incarnation, None), or (0, 0, name of the setting that differs).

    Raises NotFound (create False and no such queue), Full (no memory for a ring), OutOfSpace, BrokerError (too many).
    """
    given = sum(1 << bit for bit, setting in enumerate(SETTINGS) if getattr(settings, setting) is not None)
    index, incarnation, differs = queue_declare(
        member,
        name,
        given,
        settings.maxsize or 0,
        settings.slot_size or 0,
        bool(settings.temporary),
        settings.max_deliveries or 0,
        settings.max_deaths or 0,
        bool(settings.checksum),
        (settings.dead_letter or "").encode(),
        create,
    )
    return index, incarnation, None if differs is None else SETTINGS[differs]
