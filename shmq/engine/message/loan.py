"""The loan: memory of a message that is not put yet."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from shmq.engine.handle.open_queue import membership_of
from shmq.errors import SettlementError
from shmq.quantity import quantity
from shmq.whole_import import import_whole

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from shmq.core.queue import Extras, LoanBuffer
    from shmq.engine.handle.open_queue import OpenQueue

__all__ = ["Loan"]

_OPEN, _COMMITTED = 0, 1


class Loan:
    """Memory of a message that is not put yet. As a context manager: left normally: commit(); else abandon().

    For one thread at a time: another one gets RuntimeError. A loan that is dropped open is abandoned, with a
    ResourceWarning; one whose process dies never was. Made by Queue.loan() and Queue.loan_array().

    Example:
        >>> with queue.loan(5) as loan:
        ...     loan.view[:] = b"hello"
    """

    def __init__(
        self,
        queue: OpenQueue,
        buffer: LoanBuffer,
        content: int,
        timeout: float | None,
        extras: Extras | None,
        array: tuple[int, Any, tuple[int, ...]] | None = None,
    ) -> None:
        self._queue = queue
        self._buffer = buffer
        self._content = content
        self._timeout = timeout
        self._extras = extras
        self._shape = array
        self._memory: memoryview | None = None
        self._numpy: NDArray[Any] | None = None
        self._busy = threading.Lock()
        self._serial = membership_of(queue).member.serial

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other threads out, also while commit() waits for room."""
        if not self._busy.acquire(blocking=False):
            raise RuntimeError(
                f"a loan on queue {self._queue.name!r} is in use by another call, such as a commit() that waits; "
                "a Loan is for one thread at a time"
            )
        try:
            yield
        finally:
            self._busy.release()

    def _must_be_open(self) -> None:
        if self._buffer.state != _OPEN:
            how = "committed" if self._buffer.state == _COMMITTED else "abandoned"
            raise SettlementError(
                f"this loan on queue {self._queue.name!r} was {how}", remedy="use a new loan for each message"
            )

    @property
    def view(self) -> memoryview:
        """The memory: nbytes bytes, writable until commit; the same object each time. Raises SettlementError later."""
        with self._alone():
            self._must_be_open()
            if self._memory is None:
                self._memory = memoryview(self._buffer)
            return self._memory

    @property
    def array(self) -> NDArray[Any]:
        """Of loan_array(), in its shape and dtype: writable until commit, read-only after it. Of loan(): the bytes
        as a vector of nbytes uint8. Raises SettlementError when the loan is over and it was not asked for before.
        """
        with self._alone():
            if self._numpy is None:
                self._must_be_open()
                import_whole("numpy")
                import numpy

                if self._shape is None:
                    self._numpy = numpy.frombuffer(cast(Any, self._buffer), dtype=numpy.uint8)
                else:
                    prefix, dtype, shape = self._shape
                    items = numpy.frombuffer(cast(Any, self._buffer), dtype=numpy.uint8)[prefix:]
                    self._numpy = items.view(dtype).reshape(shape)
            return self._numpy

    def commit(self, *, nbytes: int | None = None) -> int:
        """Put the message and return its id. Then the message is as safe as one that was put().

        nbytes: use only so many bytes of the loan; None: all. An array is always put whole.
        Raises BufferError while slices of `view` live, and the same errors as put(): the loan is still open then.
        Raises SettlementError when it is over; ValueError for an unfit nbytes.

        Example:
            >>> loan = queue.loan(100)
            >>> loan.view[:2] = b"ok"
            >>> loan.commit(nbytes=2)
            1
            >>> queue.get()
            b'ok'
        """
        self._must_be_open()
        if nbytes is not None and self._shape is not None:
            raise ValueError(f"nbytes={nbytes}: an array is put whole; loan_array() of the shape that is needed")
        with self._alone():
            if self._memory is not None:
                self._memory.release()  # BufferError while slices of it live
                self._memory = None
            size = self._buffer.size if nbytes is None else nbytes
            identity = self._buffer.commit(self._content, size, self._timeout, self._numpy is not None, self._extras)
            if self._numpy is not None:
                self._numpy.flags.writeable = False
            return identity

    def abandon(self) -> None:
        """Give the memory back without a put. Twice is fine. Raises BufferError while slices of `view` live.

        Example:
            >>> loan = queue.loan(100)
            >>> loan.abandon()
            >>> queue.qsize()
            0
        """
        with self._alone():
            if self._buffer.state == _OPEN:
                if self._memory is not None:
                    self._memory.release()
                    self._memory = None
                self._numpy = None
                self._buffer.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._buffer.state != _OPEN:
            return
        if kind is None:
            self.commit()
            return
        try:
            self.abandon()
        except BufferError:
            pass  # a frame of the traceback still has a slice: the memory goes back when that has gone

    def __reduce__(self) -> Any:
        raise TypeError("a Loan belongs to its process and cannot be pickled")

    def __del__(self) -> None:
        buffer = getattr(self, "_buffer", None)
        if buffer is None or buffer.state != _OPEN:
            return
        member = membership_of(self._queue).member
        if not member.forked and member.serial == self._serial:  # else it is the parent's
            warnings.warn(
                f"a loan of {quantity(buffer.size, 'byte')} on queue {self._queue.name!r} was dropped; it is "
                "abandoned. Use `with queue.loan(...)`",
                ResourceWarning,
                stacklevel=2,
            )
