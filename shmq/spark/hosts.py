"""Several hosts as one source: each with a broker of its own, which a gateway serves.

An offset has one key for each host and queue, `grpc://one:8815/orders`. Hosts know nothing of each other, so there is
no order between their entries. A host that does not answer fails the query, which goes on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shmq.spark.entry_range import EntryRange
from shmq.spark.offset import Offset
from shmq.spark.stream_source import Limit

if TYPE_CHECKING:
    import pyarrow

__all__ = ["HostRange", "HostsBatchSource", "HostsStreamSource"]


@dataclass(frozen=True)
class HostRange:
    """Entries of a queue of one host."""

    uri: str
    range: EntryRange


class _Stream(Protocol):
    def initialOffset(self) -> dict[str, Any]: ...
    def latestOffset(self, start: Mapping[str, Any], limit: Limit) -> dict[str, Any]: ...
    def prepareForTriggerAvailableNow(self) -> None: ...
    def reportLatestOffset(self) -> dict[str, Any]: ...
    def waiting(self, start: Mapping[str, Any]) -> int: ...
    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[EntryRange]: ...
    def commit(self, end: Mapping[str, Any]) -> None: ...
    def read(self, partition: EntryRange | None) -> Iterator[pyarrow.RecordBatch]: ...
    def close(self) -> None: ...


class _Batch(Protocol):
    def partitions(self) -> list[EntryRange]: ...
    def read(self, partition: EntryRange | None) -> Iterator[pyarrow.RecordBatch]: ...


class HostsStreamSource:
    """The stream reader's logic for several hosts.

    Arguments:
        sources: one for each host, by its URI.

    Guarantee: that of StreamSource, for each host.
    """

    def __init__(self, sources: Mapping[str, _Stream]) -> None:
        self._sources = dict(sources)
        self._turn = 0

    def _of_each(self, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Splits the offset into one for each host. Raises ValueError for hosts that are not read any more."""
        whole = Offset.parse(given)
        parts: dict[str, dict[str, Any]] = {uri: {} for uri in self._sources}
        for key, reached in whole.queues.items():
            uri = next((uri for uri in self._sources if key.startswith(f"{uri}/")), None)
            if uri is None:
                raise ValueError(
                    f"the checkpoint is of {key}, which is not among the hosts that are read now; "
                    "begin a new checkpoint, or read that host, too"
                )
            parts[uri][key.removeprefix(f"{uri}/")] = reached
        return {uri: Offset(queues, whole.empty).plain() for uri, queues in parts.items()}

    def _together(self, parts: Mapping[str, Mapping[str, Any]], empty: int) -> dict[str, Any]:
        queues = {
            f"{uri}/{queue}": reached
            for uri, part in parts.items()
            for queue, reached in Offset.parse(part).queues.items()
        }
        return Offset(queues, empty).plain()

    def initialOffset(self) -> dict[str, Any]:
        return self._together({uri: source.initialOffset() for uri, source in self._sources.items()}, 0)

    def latestOffset(self, start: Mapping[str, Any], limit: Limit) -> dict[str, Any]:
        """Claims the next batch, the hosts in turn: none starves because another one has always enough."""
        parts, empty = self._of_each(start), Offset.parse(start).empty
        order = list(self._sources)[self._turn :] + list(self._sources)[: self._turn]
        self._turn = (self._turn + 1) % len(order)
        taken, blocked = 0, False
        for uri in order:
            rows = None if limit.rows is None else limit.rows - taken
            if rows is not None and rows <= 0:
                break
            nbytes = None if limit.nbytes is None else max(limit.nbytes // len(order), 1)
            found = Offset.parse(self._sources[uri].latestOffset(parts[uri], Limit(rows, nbytes)))
            before = Offset.parse(parts[uri])
            taken += _rows(found) - _rows(before)
            blocked = blocked or found.empty > empty
            parts[uri] = found.plain()
        return self._together(parts, empty + (blocked and not taken))

    def prepareForTriggerAvailableNow(self) -> None:
        for source in self._sources.values():
            source.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._together({uri: source.reportLatestOffset() for uri, source in self._sources.items()}, 0)

    def waiting(self, start: Mapping[str, Any]) -> int:
        parts = self._of_each(start)
        return sum(source.waiting(parts[uri]) for uri, source in self._sources.items())

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[HostRange]:
        begins, ends = self._of_each(start), self._of_each(end)
        return [
            HostRange(uri, one)
            for uri, source in self._sources.items()
            for one in source.partitions(begins[uri], ends[uri])
        ]

    def commit(self, end: Mapping[str, Any]) -> None:
        parts = self._of_each(end)
        for uri, source in self._sources.items():
            source.commit(parts[uri])

    def read(self, partition: HostRange | None) -> Iterator[pyarrow.RecordBatch]:
        return _read(self._sources, partition)

    def close(self) -> None:
        for source in self._sources.values():
            source.close()


def _rows(offset: Offset) -> int:
    return sum(reached.rows for reached in offset.queues.values())


def _read(
    sources: Mapping[str, _Stream] | Mapping[str, _Batch], partition: HostRange | None
) -> Iterator[pyarrow.RecordBatch]:
    if partition is not None:
        yield from sources[partition.uri].read(partition.range)


class HostsBatchSource:
    """The batch reader's logic for several hosts."""

    def __init__(self, sources: Mapping[str, _Batch]) -> None:
        self._sources = dict(sources)

    def partitions(self) -> list[HostRange]:
        return [HostRange(uri, one) for uri, source in self._sources.items() for one in source.partitions()]

    def read(self, partition: HostRange | None) -> Iterator[pyarrow.RecordBatch]:
        return _read(self._sources, partition)
