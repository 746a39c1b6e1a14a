"""The exception tree. Each message has three parts: what happened, the figures, the remedy. All can be pickled.

ShmqError
 |- Empty (queue.Empty)                 nothing came within the timeout
 |- Full (queue.Full)                   no room came within the timeout
 |- ShutDown (queue.ShutDown)           the queue was shut down (Python 3.11, 3.12: without that base)
 |- Timeout (TimeoutError)              no reply to request(), or join() not done
 |- Closed (ValueError)                 this handle, or its broker in this process, is closed
 |- SettlementError                     settled before, taken away, of another process, only browsed, or dropped
 |- MessageTooLarge (ValueError)        would never fit
 |- DecodeError (ValueError)            the handle's codec does not understand this body
 |- SelectorError (ValueError)          malformed selector, with the place
 |- Returned                            immediate and not taken, or mandatory and nobody bound (.reason)
 |- ConsumerRefused                     the queue has an exclusive consumer, or would get one beside others
 |- TransactionAborted                  timeout, a deleted queue, a failed log write; nothing of it happened
 |- NotFound (LookupError)              no such queue or exchange (create=False), or deleted while in use
 |- OptionsMismatch (ValueError)        given options differ from those of the broker, queue or exchange
 |- WorkerError                         the pool gives up: workers die as they start
 `- BrokerError (OSError)
     |- BrokerNotFound (FileNotFoundError)   no broker there (create=False), or its directory was deleted
     |- VersionMismatch                      made by another version or layout of shmq; says which field differs
     |- OutOfSpace                           errno ENOSPC: /dev/shm or the disk is full
     `- CorruptionError                      damage found and quarantined; says where, and what is safe
Besides: PermissionError for another user's broker, TypeError for a body that the codec does not take, ValueError for an
argument out of range.
"""

from __future__ import annotations

import errno as errno_codes
import os
import queue
import sys
from typing import Any, ClassVar, Literal

__all__ = [
    "BrokerError",
    "BrokerNotFound",
    "Closed",
    "ConsumerRefused",
    "CorruptionError",
    "DecodeError",
    "Empty",
    "Full",
    "MessageTooLarge",
    "NotFound",
    "OptionsMismatch",
    "OutOfSpace",
    "Returned",
    "SelectorError",
    "SettlementError",
    "ShmqError",
    "ShutDown",
    "Timeout",
    "TransactionAborted",
    "VersionMismatch",
    "WorkerError",
]

Resource = Literal["maxsize", "max_bytes", "memory", "disk"]
ReturnReason = Literal["no_consumer", "no_route"]


def _join(what: str, figures: str, remedy: str) -> str:
    text = f"{what}: {figures}" if what and figures else what or figures
    return f"{text}; {remedy}" if text and remedy else text or remedy


def _rebuild(kind: type[ShmqError], native: tuple[Any, ...]) -> ShmqError:
    # Beside the class's own __init__, whose parameters a subclass may choose freely. OSError keeps errno and filename
    # in C fields that only its own __init__ fills; all else travels in the instance's __dict__.
    error = kind.__new__(kind, *native)
    if isinstance(error, OSError):
        OSError.__init__(error, *native)
    else:
        Exception.__init__(error, *native)
    return error


class ShmqError(Exception):
    """Base of every error that shmq raises on its own account.

    Catch it to treat all of shmq's errors alike. `str(error)` is "what happened: figures; remedy"; the parts that do
    not apply are left out, and `error.remedy` is the last one alone. Can be pickled and copied with all its attributes.

    Attributes:
        accepted: of `put_many` and `move`: how many messages of this call are in; they stay. Else 0.

    Arguments:
        what: what happened, naming the queue or broker.
        figures: the numbers or values that led to it.
        remedy: what the reader can do about it.

    Example:
        >>> print(shmq.ShmqError("queue 'jobs' is full", figures="8 of 8 messages", remedy="take some"))
        queue 'jobs' is full: 8 of 8 messages; take some
    """

    # On the class too, so that an error whose __init__ has not run (in the middle of unpickling) can be printed.
    _what = ""
    _figures = ""
    _remedy = ""
    accepted: int = 0

    def __init__(self, what: str = "", *, figures: str = "", remedy: str = "") -> None:
        self._keep(what, figures, remedy)
        super().__init__(str(self))

    def _keep(self, what: str, figures: str, remedy: str) -> None:
        self._what = what
        self._figures = figures
        self._remedy = remedy

    @property
    def what(self) -> str:
        """The error in words, without figures and remedy."""
        return self._what

    @property
    def figures(self) -> str:
        """The numbers or values that led to it, and `accepted` if it is not 0; "" if there are none."""
        done = f"{self.accepted:,} of this call accepted" if self.accepted else ""
        return ", ".join(filter(None, (self._figures, done)))

    @property
    def remedy(self) -> str:
        """The remedy for the reader; "" if nothing helps."""
        return self._remedy

    def __str__(self) -> str:
        return _join(self._what, self.figures, self._remedy)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._native_arguments()), dict(self.__dict__)

    def _native_arguments(self) -> tuple[Any, ...]:
        if not isinstance(self, OSError):
            return self.args
        if self.errno is None and self.filename is None:
            return self.args
        filename = () if self.filename is None else (self.filename,)
        return (self.errno, self.strerror, *filename)


class Empty(ShmqError, queue.Empty):
    """Nothing came within the timeout, or nothing was there with timeout=0.

    No fault by itself: wait longer, do other work, or use `get_many` and `receive_many`, which return an empty list.

    Example:
        >>> queue.get(timeout=0)
        Traceback (most recent call last):
        shmq.errors.Empty: nothing came to queue 'jobs' within the timeout; wait longer, or do other work
    """


class Full(ShmqError, queue.Full):
    """No room came within the timeout. Messages that were not accepted were not put.

    Take messages out, wait longer, or raise the limit that `resource` names.

    Attributes:
        resource: which limit was reached: "maxsize" (messages of the queue), "max_bytes" (bytes of the queue),
            "memory" (the broker's budget) or "disk" (its budget on disk).
        limit: that limit, in messages for "maxsize", else in bytes.
        used: how much of it was in use, in the same unit.
        accepted: of `put_many` and `move`: how many messages of this call are in; they stay. Else 0.

    Example:
        >>> small = broker.queue("small", maxsize=1)
        >>> small.put("a")
        1
        >>> small.put("b", timeout=0)
        Traceback (most recent call last):
        shmq.errors.Full: queue 'small' is full: 1 of 1 message; take messages out, or wait with a longer timeout
    """

    def __init__(
        self,
        what: str = "",
        *,
        resource: Resource = "maxsize",
        limit: int = 0,
        used: int = 0,
        accepted: int = 0,
        figures: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(what, figures=figures, remedy=remedy)
        self.resource: Resource = resource
        self.limit = limit
        self.used = used
        self.accepted = accepted


if sys.version_info >= (3, 13):

    class ShutDown(ShmqError, queue.ShutDown):
        """The queue was shut down: nothing can be put, and for takers it is drained.

        The regular end of a loop around `get` or `receive`; iteration over a Consumer ends without it. `Queue.reopen()`
        takes the queue back into service.

        Example:
            >>> queue.shutdown()
            >>> queue.get()
            Traceback (most recent call last):
            shmq.errors.ShutDown: queue 'jobs' is shut down; reopen() takes it back into service
        """

else:

    class ShutDown(ShmqError):
        """The queue was shut down: nothing can be put, and for takers it is drained.

        The regular end of a loop around `get` or `receive`; iteration over a Consumer ends without it. `Queue.reopen()`
        takes the queue back into service.

        Example:
            >>> queue.shutdown()
            >>> queue.get()
            Traceback (most recent call last):
            shmq.errors.ShutDown: queue 'jobs' is shut down; reopen() takes it back into service
        """


class Timeout(ShmqError, TimeoutError):
    """No reply came to `request()`, or `join()` was not done, within the timeout.

    Wait longer, or look with `Queue.statistics()` whether anybody takes messages. errno is ETIMEDOUT.

    Example:
        >>> queue.put("a")
        1
        >>> queue.join(timeout=0)
        Traceback (most recent call last):
        shmq.errors.Timeout: queue 'jobs' was not done within the timeout; wait longer, or see shmq ls and ps
    """

    def __init__(self, what: str = "", *, figures: str = "", remedy: str = "") -> None:
        self._keep(what, figures, remedy)
        OSError.__init__(self, errno_codes.ETIMEDOUT, str(self))


class Closed(ShmqError, ValueError):
    """This handle, or its broker in this process, is closed; also raised in threads that waited when it was closed.

    Open the broker again, or keep it open for as long as its handles are in use.

    Example:
        >>> broker.close()
        >>> queue.put("a")
        Traceback (most recent call last):
        shmq.errors.Closed: the broker of queue 'jobs' is closed in this process; open it again
    """


class SettlementError(ShmqError):
    """The message cannot be settled here: settled before, taken away, of another process, only browsed, or dropped.

    Nothing changed. Settle each message once, in the process that received it; `with m:` does so. After a loss of the
    message (lease, overflow, purge) the work may be done twice.

    Example:
        >>> queue.put("a")
        1
        >>> (seen,) = queue.browse()
        >>> seen.ack()
        Traceback (most recent call last):
        shmq.errors.SettlementError: message 1 of queue 'jobs' was only browsed; receive() lends a message; ...
    """


class MessageTooLarge(ShmqError, ValueError):
    """The message would not fit even into an empty broker or queue. Nothing was put.

    Make it smaller, or raise the limit that the text names.

    Example:
        >>> queue.put(bytes(100_000_000))
        Traceback (most recent call last):
        shmq.errors.MessageTooLarge: the message does not fit into queue 'jobs': at most ... bytes; the limit is ...
    """


class DecodeError(ShmqError, ValueError):
    """The handle's codec does not understand this body, or failed on it (then `__cause__` is the codec's error).

    Open the queue with the codec that the message's content type asks for; `m.view()` gives the bytes in any case.

    Example:
        >>> broker.queue("jobs", codec="pickle").put({1, 2})
        1
        >>> queue.get()
        Traceback (most recent call last):
        shmq.errors.DecodeError: ...
    """


class SelectorError(ShmqError, ValueError):
    """The selector is malformed; the text shows the place. Nothing was subscribed or changed.

    Example:
        >>> next(queue.browse(selector="width >"))
        Traceback (most recent call last):
        shmq.errors.SelectorError: ...
    """


class Returned(ShmqError):
    """The message came back: put with `immediate` and not taken in time, or published `mandatory` and nobody is bound.

    It is in no queue. Put it elsewhere, or put it without that option.

    Attributes:
        reason: "no_consumer" or "no_route".

    Example:
        >>> shmq.Returned("nobody is bound to exchange 'events'", reason="no_route").reason
        'no_route'
    """

    def __init__(
        self, what: str = "", *, reason: ReturnReason = "no_consumer", figures: str = "", remedy: str = ""
    ) -> None:
        super().__init__(what, figures=figures, remedy=remedy)
        self.reason: ReturnReason = reason


class ConsumerRefused(ShmqError):
    """The queue takes no further consumer: it has an exclusive one, would get one beside others, or its table is full.

    Close the other consumer, or ask without `exclusive`; the text says who holds how many.

    Example:
        >>> consumers = [queue.consumer() for _ in range(1088)]
        Traceback (most recent call last):
        shmq.errors.ConsumerRefused: queue 'jobs' cannot have another consumer: 1,024 consumers ...
    """


class TransactionAborted(ShmqError):
    """The transaction ended without effect: timeout, a deleted queue, or a failed write to the log.

    Nothing of it happened; its messages went back. Do it again, after mending what the text names.

    Example:
        >>> issubclass(shmq.TransactionAborted, shmq.ShmqError)
        True
    """


class NotFound(ShmqError, LookupError):
    """No such queue or exchange (create=False), or it was deleted while in use.

    Check the name, or let `Broker.queue()` create it.

    Example:
        >>> broker.queue("jbos", create=False)
        Traceback (most recent call last):
        shmq.errors.NotFound: there is no queue 'jbos' in the broker ...; check the name, ...
    """


class OptionsMismatch(ShmqError, ValueError):
    """Given options differ from those that the broker, queue or exchange has. Nothing changed.

    Leave the option out to take it as it is, alter it, or use another name. The text has both values and the process
    that set the first.

    Example:
        >>> small = broker.queue("small", maxsize=8)
        >>> broker.queue("small", maxsize=9)
        Traceback (most recent call last):
        shmq.errors.OptionsMismatch: queue 'small' has another maxsize: maxsize=9 here, 8 since it was set by pid ...
    """


class WorkerError(ShmqError):
    """The pool gives up, since its workers die as they start. No message is lost: what they held went back.

    The log of "shmq.pool" has the error of each; usually the handler or the initializer cannot be imported.

    Example:
        >>> issubclass(shmq.WorkerError, shmq.ShmqError)
        True
    """


class BrokerError(ShmqError, OSError):
    """The broker cannot be used: wrong file system, full process table, or one of the subclasses.

    Arguments:
        errno: the number of the system's error, if there was one.
        filename: the directory or file concerned.

    Attributes `errno`, `strerror` and `filename` are those of OSError; `strerror` is the whole text.

    Example:
        >>> issubclass(shmq.BrokerError, OSError)
        True
    """

    default_errno: ClassVar[int | None] = None

    def __init__(
        self,
        what: str = "",
        *,
        figures: str = "",
        remedy: str = "",
        errno: int | None = None,
        filename: str | os.PathLike[str] | None = None,
    ) -> None:
        self._keep(what, figures, remedy)
        number = self.default_errno if errno is None else errno
        text = str(self)
        # OSError reads one argument as a text and drops errno, and takes a filename only behind an errno and a text.
        if filename is not None:
            OSError.__init__(self, number, text, os.fspath(filename))
        elif number is not None:
            OSError.__init__(self, number, text)
        else:
            OSError.__init__(self, text)


class BrokerNotFound(BrokerError, FileNotFoundError):
    """No broker is there (create=False), or its directory was deleted while in use. errno is ENOENT.

    Check the path, or open with create=True.

    Example:
        >>> shmq.open("nowhere.shmq", create=False)
        Traceback (most recent call last):
        shmq.errors.BrokerNotFound: ...
    """

    default_errno = errno_codes.ENOENT


class VersionMismatch(BrokerError):
    """The broker was made by another version or layout of shmq; the text names the field that differs.

    Nothing was touched. Use the version that made it, or empty it with that one and open it again when nobody is
    attached.

    Example:
        >>> issubclass(shmq.VersionMismatch, shmq.BrokerError)
        True
    """


class OutOfSpace(BrokerError):
    """/dev/shm or the disk itself is full. errno is ENOSPC. Nothing that was accepted is lost; get and ack go on.

    Make room, or enlarge /dev/shm (in Docker `--shm-size`); the text has its size and the need.

    Example:
        >>> import errno
        >>> shmq.OutOfSpace("/dev/shm is full").errno == errno.ENOSPC
        True
    """

    default_errno = errno_codes.ENOSPC


class CorruptionError(BrokerError):
    """Damage was found and quarantined; the text says where, how much, and what is safe. The rest works on.

    `shmq check` repeats the report.

    Example:
        >>> issubclass(shmq.CorruptionError, shmq.BrokerError)
        True
    """
