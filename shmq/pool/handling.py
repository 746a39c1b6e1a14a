"""One message: through the handler, its result put, settled whatever happens."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmq.errors import Closed, Full, NotFound, ShutDown
from shmq.pool.report import Dead, Failed
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.death import DeathReason
    from shmq.engine.message import Message
    from shmq.engine.queue import Queue
    from shmq.pool.job import Job

__all__ = ["HandlerLeft", "Handling", "ResultsUnusable", "found_dead"]

_TEXT = 32768  # characters of a traceback that are kept
_NO_ROOM = 5.0  # seconds without room for a result before that is said


class ResultsUnusable(Exception):
    """The results queue takes nothing any more. The message went back."""


class HandlerLeft(Exception):
    """The handler raised what is no Exception, such as SystemExit."""


@dataclass
class Handling:
    """What the pool does with each message: as in `with m:`, with the result put before the ack.

    Attributes:
        job: the handler and where its results go.
        is_stopping: whether to give up waiting for room for a result; its message goes back then, uncounted.
        warn: takes a sentence for the pool's log.
        in_worker: in a process of the pool. SystemExit and the like are the handler's failure there: released, the same
            message would end one worker after the other, for ever.
    """

    job: Job
    is_stopping: Callable[[], bool]
    warn: Callable[[str], None]
    in_worker: bool

    def handle(self, message: Message[Any]) -> Failed | None:
        """Returns a failed attempt, else None.

        Raises ResultsUnusable; and what is no Exception, if not in_worker.
        """
        # Not `with message`: its error would have frames of the pool in front of those of the handler.
        try:
            result = self._result_of(message)
            # Who settled it as failed has no result; who acked it early has one.
            if self.job.results is not None and message._outcome in (None, "acked"):
                self._put_result(message, result)
        except ResultsUnusable:
            raise
        except Exception as error:
            _begin_in_the_handler(error)
            return self._leave(message, error) or _failed(message, error)
        except BaseException as error:
            message.__exit__(type(error), error, error.__traceback__)
            raise
        return self._leave(message, None)

    def _leave(self, message: Message[Any], error: Exception | None) -> Failed | None:
        """Settles the message. Returns its failure if that failed, such as for one that was taken away."""
        try:
            message.__exit__(None if error is None else type(error), error, None)
        except Exception as late:
            return _failed(message, late)
        return None

    def _result_of(self, message: Message[Any]) -> Any:
        try:
            return self.job.handler(message)
        except Exception:
            raise
        except BaseException as error:
            if not self.in_worker:
                raise
            raise HandlerLeft(f"the handler raised {type(error).__name__}; a pool takes that as a failure") from error

    def _put_result(self, message: Message[Any], result: Any) -> None:
        assert self.job.results is not None
        said = False
        while True:
            try:
                self.job.results.put(result, timeout=_NO_ROOM)
                return
            except Full as full:
                if self.is_stopping():
                    if not message.settled:
                        message.release()
                    return
                if not said:
                    said = True
                    self.warn(f"results wait for room: {full}")
            except (ShutDown, NotFound, Closed) as error:
                if not message.settled:
                    message.release()
                raise ResultsUnusable(str(error)) from error


def _begin_in_the_handler(error: BaseException) -> None:
    """Takes the frames of this module from the beginning of the traceback, unless there are no others."""
    link: BaseException | None = error
    while link is not None:
        trace = link.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        if trace is not None:
            link.__traceback__ = trace
        link = link.__cause__


def _text_of(error: Exception) -> str:
    text = "".join(traceback.format_exception(error)).rstrip()
    return text if len(text) <= _TEXT else f"{text[: _TEXT // 2]}\n...\n{text[-_TEXT // 2 :]}"


def _failed(message: Message[Any], error: Exception) -> Failed:
    attempt, limit = message._failed + 1, message.queue._settings()["max_deliveries"]
    died = message._outcome == "rejected" or (message._outcome == "retried" and 0 < limit <= attempt)
    fate = _fate_of(message.queue, message.position) if died else None
    return Failed(message.id, attempt, limit, _text_of(error), fate)


def found_dead(queue: Queue[Any], delivery: Delivery, reason: DeathReason) -> Dead:
    """Of a message that died before this delivery: with others, or by what no handler noticed."""
    settings = queue._settings()
    if reason == "max_deaths":
        why = f"{quantity(delivery.deaths, 'process')} died with it, max_deaths={settings['max_deaths']}"
    else:
        why = f"{quantity(delivery.delivery, 'attempt')} failed, max_deliveries={settings['max_deliveries']}"
    return Dead(delivery.message_id, why, _fate_of(queue, delivery.position))


def _fate_of(queue: Queue[Any], position: int) -> str:
    if queue._is_for_the_dead():
        return "it stays here: this is a queue for the dead"
    name = queue._dead_letter_name()
    if position in queue._graves():
        return f"it waits for room in queue {name!r}"
    return f"it went to queue {name!r}"
