"""The driver of a write into several hosts: it holds the turn of the host that decides as long as its session lasts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import shmq
from shmq.spark.gateway.leased_session import LeasedSession
from shmq.spark.gateway.wire import stages_of
from shmq.spark.options import SinkOptions
from shmq.spark.publication import Publication

__all__ = ["PublisherSession", "act"]


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
        if call == "abort":
            self._turn.abort(stages_of(said["stages"]))
            return None
        query, batch = str(said["query"]), int(said["batch"])
        if call == "decided":
            note = self._turn.decided(query, batch, int(said["rows"]))
            return None if note is None else asdict(note)
        if call == "decide":
            elsewhere = {str(uri): stages_of(stages) for uri, stages in said["elsewhere"].items()}
            own, kept, purge = stages_of(said["stages"]), bool(said["kept"]), bool(said["purge"])
            self._turn.decide(query, batch, int(said["rows"]), own, elsewhere, kept=kept, purge=purge)
            return None
        assert call == "complete", call
        self._turn.complete(query, batch)
        return None

    def _end(self) -> None:
        self._held.close()


def act(name: str, options: SinkOptions, said: Mapping[str, Any]) -> Any:
    """What a write into several hosts asks those that do not decide."""
    with shmq.open(options.path, create=False) as broker:
        publication = Publication(broker.queue(options.queue), options.commit_timeout)
        if name == "abort":
            publication.abort(stages_of(said["stages"]))
            return None
        query = str(said["query"])
        if name == "prepare":
            publication.prepare(query, int(said["batch"]), stages_of(said["stages"]))
        elif name == "publish":
            publication.publish_prepared(query, int(said["batch"]), stages_of(said["stages"]), bool(said["purge"]))
        elif name == "forget":
            publication.forget(query)
        else:
            raise ValueError(f"a gateway has no action {name!r}")
    return None
