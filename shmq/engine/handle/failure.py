"""Errors of a queue, in words: status codes become exceptions that name queue, figures, remedy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from shmq.core.handles import flows, settings_of, used_of, users_of
from shmq.core.queue import SETTINGS, decode_settings
from shmq.core.segment import DISK_SHARE
from shmq.core.status import exception_of, parts_of
from shmq.engine.membership.memory_users import memory_users
from shmq.errors import (
    Closed,
    ConsumerRefused,
    CorruptionError,
    Empty,
    Full,
    MessageTooLarge,
    NotFound,
    OptionsMismatch,
    OutOfSpace,
    Returned,
    SettlementError,
    ShutDown,
    Timeout,
)
from shmq.options import FIXED_QUEUE_OPTIONS, QueueSettings, as_given, as_written
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.queue import QueueHandle
    from shmq.core.segment import Member
    from shmq.engine.membership.membership import Membership

__all__ = ["dropped_text", "failure_of", "full_disk", "largest_body", "no_memory_for_queue", "options_mismatch"]

LARGEST_BODY = 1 << 30
_STOPPED_MOVER = "; shmq doctor tells whether a process is stopped that moves messages to or from disk"
_MOST_SLOTS = 65_536  # the slots of a queue without maxsize, however much memory there is


def largest_body(memory: int) -> tuple[int, str]:
    """Bytes that a body may have at most in a broker of this budget, and what sets that limit."""
    if memory // 4 < LARGEST_BODY:
        return memory // 4, "a quarter of the broker's memory; open a new broker with a larger memory="
    return LARGEST_BODY, "the largest that shmq takes; split the body"


def too_large(name: str, size: int, memory: int) -> MessageTooLarge:
    limit, remedy = largest_body(memory)
    return MessageTooLarge(
        f"the message does not fit into queue {name!r}",
        figures=f"{size:,} bytes, at most {limit:,}",
        remedy=f"the limit is {remedy}",
    )


def _empty(queue: QueueHandle, name: str) -> Empty:
    what = f"nothing came to queue {name!r} within the timeout"
    if not flows(queue):
        return Empty(what, remedy="wait longer, or do other work")
    return Empty(
        f"{what}, and some of its messages are on disk",
        remedy="wait longer, or settle messages in hand: messages come back from disk into free slots, and those in "
        "hand, delayed, or waiting for retry_delay keep theirs" + _STOPPED_MOVER,
    )


def _full(queue: QueueHandle, name: str, membership: Membership, status: str) -> Full:
    member = membership.member
    if status == "FULL_MEMORY":
        usage = member.usage()
        who, remedy = memory_users(member, name)
        scattered = usage["used"] < usage["memory"] - usage["memory"] // 4
        lacking = "its free parts are too small" if scattered else "it is used up"
        return Full(
            f"the memory of the broker has no room for a message of queue {name!r}: {lacking}",
            resource="memory",
            limit=usage["memory"],
            used=usage["used"],
            figures=f"{usage['used']:,} of {usage['memory']:,} bytes used: {who}",
            remedy=f"{remedy or 'take messages out'}, or use a broker with more memory (memory=)",
        )
    if status == "FULL_DISK":
        return full_disk(name, membership)
    settings = settings_of(queue)
    wait = _way_to_wait(decode_settings(settings).overflow)
    entries, weight, resident = used_of(queue)
    if status == "FULL_BYTES":
        return Full(
            f"queue {name!r} is full",
            resource="max_bytes",
            limit=settings["max_bytes"],
            used=weight,
            figures=f"{weight:,} of {quantity(settings['max_bytes'], 'byte')}",
            remedy=f"take messages out, {wait}, or alter(max_bytes=...)",
        )
    if status == "FULL_RESIDENT":
        return Full(
            f"queue {name!r} has all the memory that it may have, and another process moves messages to disk just now",
            resource="memory",
            limit=settings["max_memory"],
            used=resident,
            figures=f"{resident:,} of {quantity(settings['max_memory'], 'byte')}",
            remedy=f"{wait}; shmq doctor tells whether that process is stopped",
        )
    limit = settings["maxsize"] if status == "FULL_COUNT" else settings["slots"]
    used = entries if status == "FULL_COUNT" else limit
    remedy = f"take messages out, or {wait}"
    if status == "FULL_RING":
        remedy = _room_in_the_ring(wait, settings["maxsize"], settings["slots"])
        remedy += _STOPPED_MOVER if settings["flows"] else "; nothing goes to disk, since the broker has disk=0"
    return Full(
        f"queue {name!r} is full",
        resource="maxsize",
        limit=limit,
        used=used,
        figures=f"{used:,} of {quantity(limit, 'message')}",
        remedy=remedy,
    )


def full_disk(name: str, membership: Membership) -> Full:
    """Makes the error for a full disk: the budget is used up, or only a tenth of the file system is free."""
    from shmq.engine.directory.disk import disk_bytes, file_system  # imported here: most programs never see this error

    header, place = membership.member.header(), membership.disk
    directory, system = file_system(place)
    what = f"no room on the disk for messages of queue {name!r} that do not fit into memory"
    if header["disk"] == DISK_SHARE:
        size, free = system.f_blocks * system.f_frsize, system.f_bavail * system.f_frsize
        return Full(
            what,
            resource="disk",
            limit=size - size // 10,
            used=size - free,
            figures=f"{directory}: {free:,} of {size:,} bytes free, a tenth stays free",
            remedy="take messages out, make room there, or set a budget with disk= when the broker is made",
        )
    used = disk_bytes(place)
    return Full(
        what,
        resource="disk",
        limit=header["disk"],
        used=used,
        figures=f"{directory}: {used:,} of {header['disk']:,} bytes",
        remedy="take messages out, or use a broker with a larger disk=",
    )


def no_memory_for_queue(lacking: Full | OutOfSpace, member: Member, name: str, broker: str) -> Full | OutOfSpace:
    """Makes the error for a queue that finds no memory: names the users of memory, and what makes room."""
    usage = member.usage()
    who, remedy = memory_users(member, name)
    what = f"no memory for queue {name!r} in the broker {broker}"
    if isinstance(lacking, OutOfSpace):
        figures = f"{lacking.what}, {lacking.figures}; of this broker {who}"
        remedies = ", ".join(filter(None, (remedy, lacking.remedy)))
        return OutOfSpace(what, figures=figures, remedy=remedies, errno=lacking.errno)
    if "never" in lacking.what:
        who, remedy = lacking.figures, ""
    return Full(
        what,
        resource="memory",
        limit=usage["memory"],
        used=usage["used"],
        figures=f"{usage['used']:,} of {usage['memory']:,} bytes used; {lacking.what}: {who}",
        remedy=", ".join(filter(None, (remedy, "make it with a smaller maxsize, or use a broker with more memory"))),
    )


def _way_to_wait(overflow: str | None) -> str:
    """Tells how a producer can wait for room. A timeout changes nothing where the queue rejects at once."""
    return 'alter(overflow="wait") and put with a timeout' if overflow == "reject" else "wait with a longer timeout"


def _room_in_the_ring(wait: str, maxsize: int, slots: int) -> str:
    """Returns the remedy where all slots are in use, whose number was fixed when the queue was made."""
    remedy = f"let more consumers take messages, {wait}, or make the queue anew "
    if maxsize != 0:  # the option was given after the queue was made
        return f"{remedy}with maxsize={maxsize}, which then fixes its slots"
    more_memory = " or a broker with more memory" if slots < _MOST_SLOTS else ""
    keep = "and messages in hand or delayed keep theirs"
    return f"{remedy}with a maxsize{more_memory}: without maxsize it has {slots:,} slots here, {keep}"


def _way_to_alter(there: QueueHandle, name: str, settings: QueueSettings, differs: str) -> str:
    """Tells how the queue can get this value; "" if it cannot."""
    found = settings_of(there)
    too_many = differs == "maxsize" and (settings.maxsize or 0) > found["slots"] and not found["flows"]
    if differs in FIXED_QUEUE_OPTIONS or too_many:
        return ""
    wanted = as_given(QueueSettings(**{differs: getattr(settings, differs)}))
    ((_, value),) = wanted.items()
    command = shlex.join(["shmq", "declare", name, *as_written(wanted)])
    return f"queue.alter({differs}={value!r}) or `{command}` changes it for all of its users; else "


def options_mismatch(
    there: QueueHandle, name: str, settings: QueueSettings, differs: str, *, altering: bool = False
) -> OptionsMismatch:
    """These settings are not those of the queue that is there: both values, who set the first, and what helps.

    altering: by alter(), which only options that are fixed resist.
    """
    remedy = f"{_way_to_alter(there, name, settings, differs)}open it without {differs}, or use another name"
    if altering:
        remedy = f"{differs} is fixed when a queue is made; leave it out, or make another queue"
    state = settings_of(there)
    by = state["given_by"][SETTINGS.index(differs)] or state["created_by"]
    here, has = (dict(as_given(each)).get(differs) for each in (settings, decode_settings(state)))
    return OptionsMismatch(
        f"queue {name!r} has another {differs}",
        figures=f"{differs}={here!r} here, {has!r} since it was set by pid {by}",
        remedy=remedy,
    )


def failure_of(
    queue: QueueHandle, name: str, membership: Membership, status: str, trail: str, errno: int
) -> BaseException:
    """Returns the exception for a failed call on this queue, by what the core tells of the failure."""
    what, figures, remedy = parts_of(trail)
    if status == "NO_SPACE":
        who, most = memory_users(membership.member, name)
        return OutOfSpace(
            f"{what}, no room for a message of queue {name!r}",
            figures=f"{figures}; of this broker {who}",
            remedy=f"{most or 'take messages out'}, {remedy}",
            errno=errno or None,
        )
    if status == "EMPTY":
        return _empty(queue, name)
    if status.startswith("FULL"):
        return _full(queue, name, membership, status)
    if status == "SHUT_DOWN":
        return ShutDown(f"queue {name!r} is shut down", remedy="reopen() takes it back into service")
    if status == "NOT_FOUND":
        return NotFound(f"queue {name!r} was deleted", remedy="broker.queue(name) makes it anew")
    if status == "CLOSED" and not membership.closed:
        return Closed(f"this consumer of queue {name!r} is closed", remedy="make a new one")
    if status == "CLOSED":
        return Closed(f"the broker of queue {name!r} is closed in this process", remedy="open it again")
    if status == "TIMEOUT":
        return Timeout(f"queue {name!r} was not done within the timeout", remedy="wait longer, or see shmq ls and ps")
    if status == "SETTLED":
        return SettlementError(f"this loan on queue {name!r} is over", remedy="use a new loan for each message")
    if status == "TAKEN_OUT":
        return Returned(
            f"the message was taken out of queue {name!r} before a consumer had it: purged, dropped, expired, or "
            "deleted with its queue",
            remedy="put it again if it is still wanted",
        )
    if status == "RETURNED":
        return Returned(
            f"no consumer of queue {name!r} took the message in time; it is withdrawn",
            reason="no_consumer",
            remedy="put it without immediate, or give consumers longer with immediate=seconds",
        )
    if status == "REFUSED":
        return ConsumerRefused(
            f"queue {name!r} refuses this consumer: {trail}",
            remedy="close the other one first; an exclusive consumer is alone",
        )
    if status == "LIMIT":
        users = users_of(queue)
        return ConsumerRefused(
            f"queue {name!r} cannot have another consumer",
            figures=f"{quantity(users['consumers'], 'consumer')} of 1,024, "
            f"{quantity(users['asleep'], 'waiting thread')}, 1,087 places for both",
            remedy="close consumers, or use more queues",
        )
    if status == "TOO_LARGE":
        limit, remedy = largest_body(membership.memory)
        return MessageTooLarge(
            f"the message does not fit into queue {name!r}",
            figures=f"at most {limit:,} bytes",
            remedy=f"the limit is {remedy}",
        )
    if status == "CORRUPT":
        return CorruptionError(
            f"damage in queue {name!r}: {what}",
            figures=figures,
            remedy="the rest works on; shmq check names the damage",
        )
    return exception_of(status, trail, errno)


def dropped_text(count: int, queue: str) -> str:
    """Returns the text about messages that were dropped unsettled and went back."""
    went = "was dropped unsettled; it went back" if count == 1 else "were dropped unsettled; they went back"
    return f"{quantity(count, 'message')} of queue {queue!r} {went}"
