"""A worker of the pool loads what the handler needs, once, and answers each request.

A handler's error is an answer, too: its task fails with it, and Spark decides whether it is tried again.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from shmq.error_text import text_of
from shmq.errors import MessageTooLarge
from shmq.pool.signature import unfinished
from shmq.spark.warm.arrow import batches_of, bytes_of
from shmq.spark.warm.queues import ERROR, NUMBER, REPLIES, replies_named

if TYPE_CHECKING:
    from shmq.engine.message.message import Message

__all__ = ["answer", "fail", "prepare"]

_DEATHS: Final = 3  # processes that one batch may take with it
_handler: Callable[[pa.RecordBatch], object] | None = None


def prepare(calls: bytes) -> None:
    """Unpickles the handler and the initializer, and calls the initializer: once in each worker."""
    global _handler
    handler, initializer, arguments = pickle.loads(calls)
    if (
        initializer is not None
        and (text := unfinished(initializer(*arguments), "initializer", initializer)) is not None
    ):
        raise TypeError(text)
    _handler = handler


def answer(message: Message[bytes]) -> None:
    """Handles one request and puts the reply before the request is acknowledged."""
    deaths = message.delivery_count - 1
    if deaths >= _DEATHS:
        fail(message, f"{deaths} processes of the pool died with this batch")
        return
    if replies_named(message.queue.broker, str(message.headers[REPLIES])) is None:
        return
    try:
        assert _handler is not None
        (batch,) = batches_of(message.body)
        result = _result(_handler(batch))
    except BaseException as error:
        fail(message, f"in process {os.getpid()}:\n" + text_of(_theirs(error)))
        return
    try:
        _reply(message, result)
    except MessageTooLarge:
        fail(
            message,
            f"its result of {len(result):,} bytes does not fit into the pool, where it may take a quarter of the memory"
            "; give map_in_pool memory= of five times as much, or return fewer rows of a batch",
        )
    except Exception as error:
        fail(message, f"its result of {len(result):,} bytes cannot be sent: {error}")


def fail(message: Message[bytes], text: str) -> None:
    """Answers with an error."""
    _reply(message, text.encode(), {ERROR: True})


def _reply(message: Message[bytes], body: bytes, more: dict[str, Any] | None = None) -> None:
    replies = replies_named(message.queue.broker, str(message.headers[REPLIES]))
    if replies is not None:
        replies.put(body, headers={NUMBER: message.headers[NUMBER], **(more or {})})


def _result(value: object) -> bytes:
    if isinstance(value, pa.Table):
        return bytes_of(value.to_batches(), value.schema)
    if isinstance(value, pa.RecordBatch):
        return bytes_of([value], value.schema)
    raise TypeError(f"a handler returns a pyarrow.RecordBatch or a pyarrow.Table, not {type(value).__qualname__}")


def _theirs(error: BaseException) -> BaseException:
    """Returns the traceback without the frame of this module."""
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None:
        return error.with_traceback(trace.tb_next)
    return error
