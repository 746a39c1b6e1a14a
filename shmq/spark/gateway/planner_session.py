"""The planner of a query on another host: it holds the subscription as long as its session lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shmq.spark.gateway.leased_session import LeasedSession
from shmq.spark.gateway.wire import plain_range
from shmq.spark.options import SourceOptions
from shmq.spark.stream_source import Limit, StreamSource

__all__ = ["PlannerSession"]

_CALLS: Final[Mapping[str, Callable[[StreamSource, Mapping[str, Any]], Any]]] = {
    "initialOffset": lambda source, said: source.initialOffset(),
    "latestOffset": lambda source, said: source.latestOffset(said["start"], Limit(said["rows"], said["nbytes"])),
    "reportLatestOffset": lambda source, said: source.reportLatestOffset(),
    "waiting": lambda source, said: source.waiting(said["start"]),
    "prepareForTriggerAvailableNow": lambda source, said: source.prepareForTriggerAvailableNow(),
    "partitions": lambda source, said: [plain_range(one) for one in source.partitions(said["start"], said["end"])],
    "commit": lambda source, said: source.commit(said["end"]),
}


class PlannerSession(LeasedSession):
    """Answers what Spark's engine asks the stream reader.

    Arguments:
        options: of the source, on this host.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__()
        self._source = StreamSource(options)

    def _answer(self, call: str, said: Mapping[str, Any]) -> Any:
        return _CALLS[call](self._source, said)

    def _end(self) -> None:
        self._source.close()  # what was claimed stays
