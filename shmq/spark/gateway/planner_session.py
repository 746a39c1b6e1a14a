"""The planner of a query on another host: it holds the subscription as long as its session lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shmq.spark.gateway.leased_session import LeasedSession
from shmq.spark.gateway.wire import field, plain_range
from shmq.spark.options import SourceOptions
from shmq.spark.stream_source import Limit, StreamSource

__all__ = ["PlannerSession"]

_CALLS: Final[Mapping[str, Callable[[StreamSource, Mapping[str, Any]], Any]]] = {
    "initialOffset": lambda source, said: source.initialOffset(),
    "latestOffset": lambda source, said: source.latestOffset(field(said, "start", dict), _limit(said)),
    "reportLatestOffset": lambda source, said: source.reportLatestOffset(),
    "waiting": lambda source, said: source.waiting(said["start"]),
    "prepareForTriggerAvailableNow": lambda source, said: source.prepareForTriggerAvailableNow(),
    "partitions": lambda source, said: [plain_range(one) for one in source.partitions(*_bounds(said))],
    "commit": lambda source, said: source.commit(field(said, "end", dict)),
}


def _bounds(said: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return field(said, "start", dict), field(said, "end", dict)


def _limit(said: Mapping[str, Any]) -> Limit:
    rows, nbytes = (None if said.get(name) is None else field(said, name, int) for name in ("rows", "nbytes"))
    return Limit(rows, nbytes)


class PlannerSession(LeasedSession):
    """Answers what Spark's engine asks the stream reader.

    Arguments:
        options: of the source, on this host.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__()
        self._source = StreamSource(options)

    def _answer(self, call: str, said: Mapping[str, Any]) -> Any:
        if call not in _CALLS:
            raise ValueError(f"a planner's session has no call {call!r:.80}; there are: {', '.join(_CALLS)}")
        return _CALLS[call](self._source, said)

    def _end(self) -> None:
        self._source.close()  # what was claimed stays
