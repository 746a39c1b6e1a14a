"""The driver of a write into several hosts: it holds the turn of the host that decides as long as its session lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Final

import shmq
from shmq.spark.gateway.leased_session import LeasedSession
from shmq.spark.gateway.wire import field, stages_of
from shmq.spark.options import SinkOptions
from shmq.spark.publication import Publication
from shmq.spark.stage import Stage

__all__ = ["PublisherSession", "act", "check_action"]

_CALLS: Final = ("abort", "decided", "decide", "complete")


class PublisherSession(LeasedSession):
    """Answers what a write into several hosts asks the first of them.

    Arguments:
        options: of the sink, on this host.
    """

    def __init__(self, options: SinkOptions) -> None:
        super().__init__()
        self._held = ExitStack()
        with ExitStack() as stack:
            broker = stack.enter_context(shmq.open(options.path, create=False))
            publication = Publication(broker.queue(options.queue), options.commit_timeout)
            self._turn = stack.enter_context(publication.turn())
            self._held = stack.pop_all()

    def _answer(self, call: str, said: Mapping[str, Any]) -> Any:
        if call not in _CALLS:
            raise ValueError(f"a publisher's session has no call {call!r:.80}; there are: {', '.join(_CALLS)}")
        if call == "abort":
            self._turn.abort(_stages(said))
            return None
        query, batch = field(said, "query", str), field(said, "batch", int)
        if call == "decided":
            note = self._turn.decided(query, batch, field(said, "rows", int))
            return None if note is None else asdict(note)
        if call == "decide":
            elsewhere = {str(uri): stages_of(stages) for uri, stages in field(said, "elsewhere", dict).items()}
            kept, purge = field(said, "kept", bool), field(said, "purge", bool)
            rows = field(said, "rows", int)
            self._turn.decide(query, batch, rows, _stages(said), elsewhere, kept=kept, purge=purge)
            return None
        self._turn.complete(query, batch)
        return None

    def _end(self) -> None:
        self._held.close()


def _stages(said: Mapping[str, Any]) -> tuple[Stage, ...]:
    return stages_of(field(said, "stages", list))


_ACTIONS: Final[Mapping[str, Callable[[Publication, Mapping[str, Any]], object]]] = {
    "abort": lambda publication, said: publication.abort(_stages(said)),
    "prepare": lambda publication, said: publication.prepare(*_batch(said), _stages(said)),
    "publish": lambda publication, said: publication.publish_prepared(
        *_batch(said), _stages(said), field(said, "purge", bool)
    ),
    "forget": lambda publication, said: publication.forget(field(said, "query", str)),
}


def _batch(said: Mapping[str, Any]) -> tuple[str, int]:
    return field(said, "query", str), field(said, "batch", int)


def check_action(name: str) -> None:
    """Raises ValueError with the actions that there are."""
    if name not in _ACTIONS:
        raise ValueError(f"a gateway has no action {name!r:.80}; there are: ranges, {', '.join(_ACTIONS)}")


def act(name: str, options: SinkOptions, said: Mapping[str, Any]) -> None:
    """Does an action that a write into several hosts asks of the hosts that do not decide."""
    check_action(name)
    with shmq.open(options.path, create=False) as broker:
        _ACTIONS[name](Publication(broker.queue(options.queue), options.commit_timeout), said)
