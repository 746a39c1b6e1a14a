"""Brokers and queues that the options of a query, or a command, name: what is missing is said in their words."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import shmq

if TYPE_CHECKING:
    from shmq.engine.broker.broker import Broker
    from shmq.engine.queue.queue import Queue
    from shmq.spark.options import SinkOptions

__all__ = ["check_target", "claims_of", "is_own_name", "named_broker", "named_queue", "queues_like"]

_TERMS = {"priority": "priorities=10", "group": "groups=shared"}  # what a queue has to be declared with for a column

_OWN = re.compile(r"\.spark\.|\.stage\.[0-9a-f]{16}$|\.published$|\.dead$|^spark\.routed$")  # names that shmq gives


def named_broker(path: str, key_file: str | None = None) -> Broker:
    """Opens the broker in this directory. Raises BrokerNotFound, and what shmq.open() raises.

    Arguments:
        path: of the directory.
        key_file: with the key of what it has on disk; None: it has none, or this process has opened it before.
    """
    try:
        return shmq.open(path, create=False, encryption_key=key_file)
    except shmq.OptionsMismatch as unfit:
        if key_file is not None:
            raise
        raise shmq.OptionsMismatch(
            unfit.what, figures="no key is given here", remedy="name the file with it by the option encryptionKeyFile"
        ) from None
    except shmq.BrokerNotFound as missing:
        raise shmq.BrokerNotFound(
            missing.what,
            figures=missing.figures,
            remedy=f"check the option path, or make the broker first: {shlex.join(['shmq', '-d', path, 'init'])}",
            filename=path,
        ) from None


def named_queue(broker: Broker, name: str) -> Queue[Any]:
    """Opens the queue of this name. Raises NotFound that names the most similar queue."""
    try:
        return broker.queue(name, create=False)
    except shmq.NotFound:
        pass
    near = difflib.get_close_matches(name, [queue.name for queue in broker.queues()], 1)
    raise shmq.NotFound(
        f"there is no queue {name!r} in the broker {broker.path}",
        remedy=f"did you mean {near[0]!r}?" if near else "check the option queue; shmq ls shows all queues",
    )


def is_own_name(name: str) -> bool:
    """Says whether shmq gives such names to its own queues beside a user's: claims, stages, notes, dead letters."""
    return _OWN.search(name) is not None


def queues_like(broker: Broker, pattern: str) -> list[Queue[Any]]:
    """The queues whose whole name matches a regular expression, by name; without those that shmq has made beside them:
    claims, stages, notes, dead letters. A caller that wants one of those names it."""
    wanted = re.compile(pattern)
    found = [queue for queue in broker.queues() if wanted.fullmatch(queue.name) and not is_own_name(queue.name)]
    return sorted(found, key=lambda queue: queue.name)


def claims_of(broker: Broker, queue: str, claims: str, subscription: str) -> Queue[Any]:
    """Opens the queue of claims of an existing subscription. Raises NotFound that names the existing ones."""
    try:
        return broker.queue(claims, create=False)
    except shmq.NotFound:
        pass
    prefix = claims.removesuffix(subscription)
    there = [each.name.removeprefix(prefix) for each in broker.queues() if each.name.startswith(prefix)]
    raise shmq.NotFound(
        f"queue {queue!r} has no subscription {subscription!r}",
        figures=f"it has {', '.join(map(repr, there)) or 'none'}",
        remedy="name the one that the query reads with",
    )


def check_target(options: SinkOptions, columns: Collection[str]) -> None:
    """A queue that the sink makes has no priorities and no groups: before it makes one, is it to have them?

    Raises ValueError with the command that makes it, BrokerNotFound.
    """
    terms = [term for column, term in _TERMS.items() if column in columns]
    if not options.path or not terms or "queue" in columns:  # each row's queue says what it takes
        return
    with named_broker(options.path, options.key_file) as broker:
        with suppress(shmq.NotFound):
            broker.queue(options.queue, create=False)
            return
    command = shlex.join(["shmq", "-d", options.path, "declare", options.queue, *terms])
    given = " and ".join(column for column in _TERMS if column in columns)
    raise ValueError(
        f"queue {options.queue!r} is not there, and one that a write makes takes no {given}; make it first: {command}"
    )
