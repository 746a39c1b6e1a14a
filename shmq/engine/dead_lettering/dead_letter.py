"""Dead messages: out of their queue, into the one for the dead, with the reason. Never lost on the way.

It is moved in one step: whoever dies when, it is in its queue or among the dead, never in both, never in none. Where
the queue of the dead has no room the message stays locked by this process and is tried again.
"""

from __future__ import annotations

import itertools
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast, get_args

from shmq.core import clock
from shmq.core.handles import directory_entry, settings_of, settings_version, steal
from shmq.core.queue import DEAD, EXPIRED, NAME_MAX, SETTINGS, Delivery
from shmq.death import DeathReason, died_with_it
from shmq.engine.handle.declaration import declared
from shmq.engine.handle.open_queue import (
    OpenQueue,
    dead_letters_of,
    membership_of,
    open_queue,
    pool_of,
    set_dead_letters,
)
from shmq.engine.handle.taking_pool import FailureReason
from shmq.engine.membership.death_record import endings
from shmq.error_text import text_of
from shmq.errors import DecodeError, Full, NotFound, OutOfSpace, ShmqError, ShutDown
from shmq.headers import with_death
from shmq.options import QueueSettings

if TYPE_CHECKING:
    from shmq.engine.membership.membership import Membership, WaitingDeadLetter

__all__ = [
    "move_to_dead_letters",
    "check_error",
    "dead_letter_name",
    "default_name",
    "dead_letter_positions",
    "give_back_undeleted",
    "is_for_the_dead",
    "is_named",
    "is_waiting",
    "retry_dead_letters",
]

SUFFIX: Final = ".dead"
_NAMED: Final = 1 << SETTINGS.index("dead_letter")
_FAILURES: Final = get_args(FailureReason)
_LOG: Final = logging.getLogger("shmq.broker")
_LOOKED_AT: Final = 64  # of those that wait: a large one does not keep small ones from room, nor do they take long


@dataclass(slots=True)
class DeadLetter:
    """A dead message that this process has locked and not yet moved to the queue for the dead."""

    queue: OpenQueue
    delivery: Delivery
    reason: DeathReason
    error: str | None
    at: float  # POSIX seconds
    pids: tuple[int, ...]
    signal: int | None


def default_name(name: str) -> str:
    """Returns the default name of a queue for the dead. A name that is too long for the suffix is shortened."""
    room = NAME_MAX - len(SUFFIX)
    shortened = name.encode()[:room].decode(errors="ignore")
    if shortened + SUFFIX == name:  # as long as a name can be, with the suffix: it would be its own
        shortened = shortened[:-1]
    return shortened + SUFFIX


def dead_letter_name(queue: OpenQueue) -> str:
    """Returns the name of the queue for its dead messages."""
    return settings_of(queue)["dead_letter"].decode(errors="replace") or default_name(queue.name)


def is_named(queue: OpenQueue) -> bool:
    """Says whether its options name a queue for its dead messages."""
    return settings_of(queue)["given"] & _NAMED != 0


def is_for_the_dead(queue: OpenQueue) -> bool:
    """Says whether the queue was made for the dead of another queue: its own messages are not dead-lettered again."""
    if not queue.name.endswith(SUFFIX):
        return False
    settings = settings_of(queue)
    return not settings["given"] & _NAMED and settings["max_attempts"] == 0 and settings["max_deaths"] == 0


def _dead_letter_queue(queue: OpenQueue) -> OpenQueue:
    """Made when it is needed, by whatever handle: also by one on a broker that is closed."""
    version = settings_version(queue)
    known = dead_letters_of(queue)
    if known is None or known[0] != version:
        known = (version, _declared(queue))
        set_dead_letters(queue, known)
    return known[1]


def _declared(queue: OpenQueue) -> OpenQueue:
    name, membership = dead_letter_name(queue), membership_of(queue)

    def opened(index: int, incarnation: int) -> OpenQueue:
        return open_queue(membership, name, index, incarnation)

    if not is_named(queue):
        try:
            unlimited = QueueSettings(max_attempts=0, max_deaths=0)
            return declared(membership, name, unlimited, create=True, opened=opened)
        except ShmqError:
            pass  # a user made the queue with other limits: they stay
    return declared(membership, name, QueueSettings(), create=True, opened=opened)


def check_error(error: object) -> None:
    """Raises TypeError for what cannot be kept as a reason; while the message is still in hand."""
    if error is not None and not isinstance(error, BaseException | str):
        raise TypeError(f"error={error!r:.60}: an exception or a text is expected; a delay is given as delay=seconds")


def _reason_text(error: BaseException | str | None) -> str | None:
    return error if error is None or isinstance(error, str) else text_of(error)


def _try_move(letter: DeadLetter) -> bool:
    """Moves a dead message. False: another process has it. Raises Full, OutOfSpace; the message stays locked."""
    queue, delivery = letter.queue, letter.delivery
    death = (queue.name, letter.reason, letter.error, letter.at, letter.pids, letter.signal)
    try:
        head = with_death(delivery.head(), *death)
    except (DecodeError, ValueError, TypeError):
        head = with_death(b"", *death)  # damaged headers must not keep the message out of the dead letters
    why = EXPIRED if letter.reason == "expired" else DEAD
    try:
        return delivery.move(_dead_letter_queue(queue), head, why)
    except NotFound:  # deleted since it was found
        set_dead_letters(queue, None)
        return delivery.move(_dead_letter_queue(queue), head, why)


def move_to_dead_letters(
    queue: OpenQueue, delivery: Delivery, reason: DeathReason, error: BaseException | str | None = None
) -> bool:
    """Moves an acquired message to the queue for the dead.

    Arguments:
        queue: where it died.
        delivery: acquired or locked by this process.
        reason: as in Death.
        error: text, or an exception whose traceback is kept.

    Returns False if the message is not ours any more. Without room among the dead it stays locked, behind those of its
    queue that wait already. Later calls of this process try it again.
    """
    if not delivery.lock():
        return False
    membership = membership_of(queue)
    pids, signal = endings(membership.live(), delivery.message_id) if delivery.deaths else ((), None)
    text = died_with_it(pids, signal) if reason == "max_deaths" else _reason_text(error)
    letter = DeadLetter(queue, delivery, reason, text, clock.wall(), pids, signal)
    pool, failure = pool_of(queue) if reason in _FAILURES else None, cast("FailureReason", reason)
    if pool is not None:
        pool.dies(delivery, failure)
    try:
        retry_dead_letters(membership)
        if membership.dead_letters and delivery.size >= _least_waiting(membership, queue.name):
            text = "message %d of queue %r is dead (%s), and waits behind others for room in queue %r"
            _LOG.debug(text, delivery.message_id, queue.name, reason, dead_letter_name(queue))
            dead, told = _keep(letter), True
        else:
            dead, told = _try_move(letter), reason not in _FAILURES or pool is not None
    except (Full, OutOfSpace, ShutDown) as full:
        _tell(letter, full)
        dead, told = _keep(letter), True
    except BaseException:
        delivery.release(True)
        raise
    if dead and not told:
        _tell(letter)
    if dead and pool is not None:
        pool.died(delivery, failure, letter.error)
    return dead


def _tell(letter: DeadLetter, full: Exception | None = None) -> None:
    queue, message_id, known = letter.queue, letter.delivery.message_id, dead_letters_of(letter.queue)
    target = known[1].name if known is not None else dead_letter_name(queue)
    membership_of(queue).deaths.tell(queue.name, message_id, letter.reason, letter.error, target, full)


def _keep(letter: DeadLetter) -> bool:
    """Keeps a dead message until there is room, in the name of the process: its consumer may be closed before."""
    mine = steal(letter.queue, letter.delivery.position)
    if mine is None:
        return False  # deleted with its queue
    letter.delivery = mine
    membership_of(letter.queue).keep(letter.queue.name, letter)
    return True


def retry_dead_letters(membership: Membership) -> None:
    """Moves what found no room before, of each queue in order. Called at each look and each take: where one finds no
    room, none behind it is tried that is as large."""
    if not membership.dead_letters:
        return
    with membership.lock:
        for name in list(membership.dead_letters):
            while (line := membership.dead_letters.get(name)) and _is_gone(line[0]):
                membership.let_go(name, line[0])
            least = line[0].delivery.size if line else 0
            for letter in list(itertools.islice(line or (), 1, _LOOKED_AT)):
                if letter.delivery.size < least:
                    least = letter.delivery.size
                    if _is_gone(letter):
                        membership.let_go(name, letter)


def _least_waiting(membership: Membership, name: str) -> float:
    """Bytes of the smallest one of this queue that waits, among the first of them; infinite: none does."""
    line = itertools.islice(membership.dead_letters.get(name, ()), _LOOKED_AT)
    return min((letter.delivery.size for letter in line), default=math.inf)


def _is_gone(letter: WaitingDeadLetter) -> bool:
    """Says whether the message is in the queue for the dead, or was deleted with its own queue."""
    try:
        if letter.delivery.lock():
            _try_move(cast("DeadLetter", letter))
    except ShmqError:
        return False
    return True


def is_waiting(queue: OpenQueue) -> bool:
    """Says whether dead messages of this queue wait in this process for room in the queue for the dead."""
    return queue.name in membership_of(queue).dead_letters


def give_back_undeleted(queue: OpenQueue) -> None:
    """Gives dead messages back to their queue, whose deletion has failed."""
    membership = membership_of(queue)
    with membership.lock:
        for letter in list(membership.dead_letters.get(queue.name, ())):
            if letter.reason == "queue_deleted":
                letter.delivery.release(False)
                membership.let_go(queue.name, letter)


def dead_letter_positions(queue: OpenQueue) -> set[int]:
    """Returns the positions of its dead messages that this process holds, since there was no room for them."""
    mine = directory_entry(queue)
    letters = cast("list[DeadLetter]", list(membership_of(queue).dead_letters.get(queue.name, ())))
    return {letter.delivery.position for letter in letters if directory_entry(letter.queue) == mine}
