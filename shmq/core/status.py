"""Answers of the native core, as exceptions: one for each status code."""

from __future__ import annotations

import errno as errno_codes
from collections.abc import Callable
from typing import Final

from shmq import _native
from shmq.errors import (
    BrokerError,
    BrokerNotFound,
    Closed,
    ConsumerRefused,
    CorruptionError,
    Empty,
    Full,
    MessageTooLarge,
    NotFound,
    OutOfSpace,
    SettlementError,
    ShutDown,
    Timeout,
    VersionMismatch,
)

__all__ = ["ForeignSegment", "SegmentExists", "SegmentInUse", "exception_of", "parts_of"]


class ForeignSegment(BrokerError):
    """The segment's header names another directory: it is another broker's segment. errno is EXDEV."""

    default_errno = errno_codes.EXDEV


class SegmentInUse(BrokerError):
    """Others are members of the segment that is to be removed. errno is EBUSY."""

    default_errno = errno_codes.EBUSY


class SegmentExists(BrokerError):
    """A segment of this name exists. errno is EEXIST."""

    default_errno = errno_codes.EEXIST


def parts_of(trail: str) -> tuple[str, str, str]:
    """Splits a trail at its newlines into three parts: what happened, the figures, the remedy."""
    what, _, rest = trail.partition("\n")
    figures, _, remedy = rest.partition("\n")
    return what, figures, remedy


def _full_count(what: str, figures: str, remedy: str, errno: int) -> Exception:
    return Full(what, resource="maxsize", figures=figures, remedy=remedy or "take messages out, or raise maxsize")


def _full_memory(what: str, figures: str, remedy: str, errno: int) -> Exception:
    return Full(what, resource="memory", figures=figures, remedy=remedy or "take messages out, or use more memory")


def _denied(what: str, figures: str, remedy: str, errno: int) -> Exception:
    text = "; ".join(part for part in (f"{what}: {figures}" if figures else what, remedy) if part)
    return PermissionError(errno_codes.EACCES, text)


def _interrupted(what: str, figures: str, remedy: str, errno: int) -> Exception:
    return InterruptedError(errno_codes.EINTR, what)


def _broker_error(kind: type[BrokerError], default_remedy: str = "") -> Callable[[str, str, str, int], Exception]:
    def make(what: str, figures: str, remedy: str, errno: int) -> Exception:
        return kind(what, figures=figures, remedy=remedy or default_remedy, errno=errno or None)

    return make


_REMEDIES: Final = {
    errno_codes.EROFS: "mount it writable: all who use a broker write there; shmq check needs the right to read only",
    errno_codes.EMFILE: "close some files, or raise the limit of this process (ulimit -n)",
    errno_codes.ENFILE: "close some files, or raise the limit of the host (sysctl fs.file-max)",
    errno_codes.ENOMEM: "end other programs, or raise the limit of memory (ulimit -v, of the container)",
}


def _of_the_system(what: str, figures: str, remedy: str, errno: int) -> Exception:
    return BrokerError(what, figures=figures, remedy=remedy or _REMEDIES.get(errno, ""), errno=errno or None)


def _plain(
    kind: type[Empty | ShutDown | Timeout | Closed | ConsumerRefused | NotFound | SettlementError | MessageTooLarge],
    default_remedy: str = "",
) -> Callable[[str, str, str, int], Exception]:
    def make(what: str, figures: str, remedy: str, errno: int) -> Exception:
        return kind(what, figures=figures, remedy=remedy or default_remedy)

    return make


_EXCEPTIONS: Final[dict[str, Callable[[str, str, str, int], Exception]]] = {
    "EMPTY": _plain(Empty),
    "FULL_COUNT": _full_count,
    "FULL_RING": _full_count,
    "FULL_BYTES": _full_count,
    "FULL_RESIDENT": _full_count,
    "FULL_DISK": _full_memory,
    "FULL_MEMORY": _full_memory,
    "SHUT_DOWN": _plain(ShutDown, "reopen() takes the queue back into service"),
    "TIMEOUT": _plain(Timeout),
    "INTERRUPTED": _interrupted,
    "CLOSED": _plain(Closed, "open it again"),
    "MEMBERSHIP_LOST": _broker_error(BrokerError),
    "NOT_FOUND": _plain(NotFound, "check the name, or let Broker.queue() create it"),
    "SETTLED": _plain(SettlementError),
    "TOO_LARGE": _plain(MessageTooLarge),
    "NO_SPACE": _broker_error(OutOfSpace, "make room in /dev/shm, or enlarge it (in Docker --shm-size)"),
    "GONE": _broker_error(BrokerNotFound, "open it with create=True"),
    "NO_MAGIC": _broker_error(CorruptionError),
    "VERSION": _broker_error(VersionMismatch),
    "CORRUPT": _broker_error(CorruptionError, "the rest works on; shmq check tells more"),
    "LIMIT": _broker_error(BrokerError),
    "REFUSED": _plain(ConsumerRefused, "close the other consumer first"),
    "EXISTS": _broker_error(SegmentExists),
    "DENIED": _denied,
    "FOREIGN": _broker_error(ForeignSegment),
    "IN_USE": _broker_error(SegmentInUse),
    "OS": _of_the_system,
}


def exception_of(status: str, trail: str, errno: int) -> BaseException:
    """Returns the exception for a failed call of the native core.

    Arguments:
        status: name of the status code, without prefix.
        trail: what the core says about it; up to three lines, see `parts_of`.
        errno: of the system call that failed, else 0.
    """
    make = _EXCEPTIONS.get(status)
    if make is None:
        return AssertionError(f"status {status} has no exception: {trail}")
    return make(*parts_of(trail or f"the native core failed, and did not say why (status {status})"), errno)


_native.set_exception_factory(exception_of)
