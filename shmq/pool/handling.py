"""Handles one message: calls the handler, puts its result, settles the message in any case, and counts it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from shmq.core.handles import failed_of, outcome_of, settings_of
from shmq.engine.dead_lettering.dead_letter import dead_letter_name, dead_letter_positions
from shmq.engine.handle import long_wait
from shmq.error_text import last_line, line_of, text_of
from shmq.errors import Closed, Full, NotFound, ShutDown
from shmq.pool.failure_trace import begin_in_the_handler, shortened, theirs
from shmq.pool.hand import Hand
from shmq.pool.report import Dead, Failed, Logged, Stalled
from shmq.pool.signature import unfinished
from shmq.pool.tally import Outcome, Tally
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.core.queue import Delivery
    from shmq.engine.handle.taking_pool import FailureReason
    from shmq.engine.message.message import Message
    from shmq.engine.queue.queue import Queue
    from shmq.pool.job import Job

__all__ = ["HandlerLeft", "Handling", "ResultRefused", "ResultsUnusable"]

_AGAIN = ("retried", "released", "taken away")
_OUTCOMES: dict[str | None, Outcome] = {"acked": "handled", "retried": "retried", "rejected": "retried"}


class ResultsUnusable(Exception):
    """The results queue was shut down, deleted or closed. The message went back."""


class HandlerLeft(Exception):
    """The handler raised a BaseException that is no Exception, such as SystemExit."""


class ResultRefused(Exception):
    """The results queue does not take what the handler returned, or it is no result."""


@dataclass(slots=True)
class _InHand:
    """The message that is being handled."""

    message_id: int
    dead: Dead | None = None


@dataclass
class Handling:
    """The pool's work on each message: as in `with m:`, with the result put before the ack.

    Attributes:
        job: the handler and where its results go.
        is_stopping: whether to give up waiting for room for a result; its message goes back then, uncounted.
        report: takes what the pool's log has to tell.
        in_worker: in a process of the pool. SystemExit and the like are the handler's failure there: released, the same
            message would end one worker after the other, for ever.
        tally: counts what becomes of each message.
        hand: shows the pool what is in hand; None: it is the pool's own thread.
    """

    job: Job
    is_stopping: Callable[[], bool]
    report: Callable[[Failed | Dead | Stalled | Logged], object]
    in_worker: bool
    tally: Tally
    hand: Hand | None = None
    _hand: _InHand | None = None

    def handle(self, message: Message[Any]) -> None:
        """Reports a failed attempt, and a death. Raises ResultsUnusable; and what is no Exception, if not in_worker."""
        self._hand = hand = _InHand(message.id)
        self.tally.begin(message.id)
        try:
            failure = self._handle(message)
        finally:
            self._hand = None
            self.tally.end(_OUTCOMES.get(outcome_of(message), "returned") if hand.dead is None else hand.dead.reason)
        if failure is not None:
            self.report(_failed(message, failure, hand.dead))
        elif hand.dead is not None:
            self.report(hand.dead)

    def _handle(self, message: Message[Any]) -> Exception | None:
        # Not `with message`: its error would have frames of the pool in front of those of the handler.
        try:
            result = self._result_of(message)
            # A handler that settled it as failed has no result; one that acked it early has one.
            if self.job.results is not None and outcome_of(message) in (None, "acked"):
                self._put_result(message, result)
        except ResultsUnusable:
            raise
        except Exception as error:
            begin_in_the_handler(error, __file__, ResultRefused)
            return self._leave(message, error) or error
        except BaseException as error:
            message.__exit__(type(error), error, error.__traceback__)
            raise
        return self._leave(message, None)

    def _leave(self, message: Message[Any], error: Exception | None) -> Exception | None:
        """Settles the message. Returns the error if that failed, such as for one that was taken away."""
        try:
            message.__exit__(None if error is None else type(error), error, None)
        except Exception as late:
            return late
        return None

    def _result_of(self, message: Message[Any]) -> Any:
        hand = self.hand
        if hand is None:
            return self._call(message)
        hand.begin(message)
        try:
            return self._call(message)
        finally:
            if hand.is_child:
                self._end_child(message.id)
            hand.end()

    def _end_child(self, message_id: int) -> NoReturn:
        """Ends a process that the handler has forked and that returned from it: the parent settles the message."""
        text = f"message {message_id}: a process that its handler has forked came back from it, and was ended"
        self.report(Logged("shmq.pool", logging.WARNING, f"{text}; end it in the handler, by os._exit()", {}))
        os._exit(1)

    def _call(self, message: Message[Any]) -> Any:
        try:
            result = self.job.handler(message)
            if result is not None and (text := unfinished(result, "handler", self.job.handler)) is not None:
                raise ResultRefused(text)
            return result
        except Exception:
            raise
        except BaseException as error:
            if not self.in_worker:
                raise
            raise HandlerLeft(f"the handler raised {type(error).__name__}; a pool takes that as a failure") from error

    def _put_result(self, message: Message[Any], result: Any) -> None:
        results = self.job.results
        assert results is not None
        said = False
        while True:
            try:
                results.put(result, timeout=long_wait.LONG_WAIT, headers={"job": message.id})
                return
            except Full as full:
                if self.is_stopping():
                    if not message.settled:
                        message.release()
                    return
                if not said:
                    said = True
                    self.report(Stalled(_no_room(results, full)))
            except (ShutDown, NotFound, Closed) as error:
                if not message.settled:
                    message.release()
                raise ResultsUnusable(str(error)) from error
            except Exception as error:
                raise self._refused(result, results, error) from None

    def _refused(self, result: Any, results: Queue[Any], error: Exception) -> ResultRefused:
        """Makes the error for a refused result. Its traceback keeps only frames of the user's code."""
        handler = getattr(self.job.handler, "__qualname__", None) or repr(self.job.handler)
        text = f"queue {results.name!r} does not take what {handler}() returned, of type {type(result).__qualname__}"
        refused = ResultRefused(f"{text}: {type(error).__name__}: {error}")
        return refused.with_traceback(theirs(error.__traceback__))

    # ---- called by the queue's handle that the messages come from ----------------------------------------------

    def fails(self, delivery: Delivery) -> None:
        """See TakingPool."""
        if self._has_in_hand(delivery):
            self.tally.intend("retried")

    def dies(self, delivery: Delivery, reason: FailureReason) -> None:
        """See TakingPool."""
        if self._hand is None:  # the message died with other consumers, or unnoticed by a handler
            self.tally.begin(delivery.message_id, reason)
        elif self._has_in_hand(delivery):
            self.tally.intend(reason)

    def died(self, delivery: Delivery, reason: FailureReason, error: str | None) -> None:
        """See TakingPool."""
        in_hand = self._has_in_hand(delivery)
        dead = _dead(self.job.queue, delivery, reason, error, in_hand=in_hand)
        if self._hand is not None and in_hand:
            self._hand.dead = dead  # told when the handler has returned, with its failure
            return
        if self._hand is None:
            self.tally.end(reason)
        self.report(dead)

    def retry_delay_ns(self, failed: int) -> int:
        """See TakingPool."""
        return self.job.back_off.delay_ns(failed)

    def _has_in_hand(self, delivery: Delivery) -> bool:
        """Says whether the pool has lent this message. If not, a handler has received it from the same queue itself."""
        return self._hand is not None and self._hand.message_id == delivery.message_id


def _no_room(results: Queue[Any], full: Full) -> str:
    return (
        f"results wait for room in queue {results.name!r}: {full.figures}; {long_wait.takers(results)}; take them "
        "while the pool runs, in another thread or process, or make that queue with room for all of them"
    )


def _failed(message: Message[Any], error: Exception, dead: Dead | None) -> Failed:
    limit = settings_of(message.queue)["max_attempts"]
    fate = None if dead is None else dead.fate
    final = dead is not None or outcome_of(message) not in _AGAIN
    return Failed(message.id, failed_of(message) + 1, limit, line_of(error), shortened(text_of(error)), fate, final)


class Finding:
    """Counts and reports messages that the supervisor finds dead when it looks whether any are left.

    Arguments:
        queue: the handle by which it looks.
        count: counts a death.
        report: tells of it.
    """

    def __init__(
        self, queue: Queue[Any], count: Callable[[FailureReason], None], report: Callable[[Dead], None]
    ) -> None:
        self._queue = queue
        self._count = count
        self._report = report

    def fails(self, delivery: Delivery) -> None:
        """See TakingPool. It handles nothing."""

    def dies(self, delivery: Delivery, reason: FailureReason) -> None:
        """See TakingPool."""

    def died(self, delivery: Delivery, reason: FailureReason, error: str | None) -> None:
        """See TakingPool."""
        self._count(reason)
        self._report(_dead(self._queue, delivery, reason, error, in_hand=False))

    def retry_delay_ns(self, failed: int) -> int:
        """See TakingPool."""
        return 0


def _dead(queue: Queue[Any], delivery: Delivery, reason: FailureReason, error: str | None, *, in_hand: bool) -> Dead:
    settings = settings_of(queue)
    if reason == "max_deaths":
        why = f"{quantity(delivery.deaths, 'process')} died with it, max_deaths={settings['max_deaths']}"
        error = None  # it says that, too; who they were, the lines on the workers have said
    elif reason == "max_attempts":
        attempts = delivery.delivery + in_hand
        why = f"{quantity(attempts, 'attempt')} failed, max_attempts={settings['max_attempts']}"
    else:
        why = "rejected"
    if error:
        why = f"{why}: {last_line(error)}"
    return Dead(delivery.message_id, reason, why, _fate_of(queue, delivery.position))


def _fate_of(queue: Queue[Any], position: int) -> str:
    name = dead_letter_name(queue)
    if position in dead_letter_positions(queue):
        return f"it waits for room in queue {name!r}"
    return f"it went to queue {name!r}"
