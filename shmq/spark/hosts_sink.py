"""Several hosts as one sink: rows are spread over them, and one host decides for all.

The first host's queue of notes has the decision, with the stages of the others. They keep theirs until then, and move
them afterwards. A driver that dies in between has decided nothing, or all: the next run of the batch does the rest.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from shmq.engine.arrow.outgoing import checked
from shmq.errors import ShmqError
from shmq.spark.options import SinkOptions
from shmq.spark.publication import rows_of
from shmq.spark.stage import Stage

if TYPE_CHECKING:
    import pyarrow

    from shmq.spark.gateway.address import Address
    from shmq.spark.gateway.client import GatewayClient

__all__ = ["HostsBatchSink", "HostsStaged", "HostsStreamSink", "spread"]

_FEW_ROWS: Final = 256  # fewer go to one host, in turn


@dataclass(frozen=True)
class HostsStaged:
    """The report of one run of a task to the commit: the query it is of, and the stages of each host."""

    query: str
    stages: Mapping[str, tuple[Stage, ...]]


class HostsStreamSink:
    """The writer's logic for several hosts.

    Arguments:
        addresses: of the gateways; the first one decides.
        options: of the sink.
        texts: the same, without those that say where it is: for the gateways.
        kept: a note of a batch that is done stays: whoever comes again with it publishes nothing.
        purge: what is ready in the queues goes when the batch is published.

    Guarantee: each batch of a query is published once on all hosts, whoever is killed when.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        options: SinkOptions,
        texts: Mapping[str, str],
        *,
        kept: bool = True,
        purge: bool = False,
    ) -> None:
        self._addresses = {address.uri: address for address in addresses}
        self._options = dict(texts)
        self._by_group = options.by_group
        self._kept = kept
        self._purge = purge

    def write(self, batches: Iterable[pyarrow.RecordBatch], query: str) -> HostsStaged:
        """Stages the rows of one attempt of a task, in a worker. Rows that it has staged before an error expire."""
        uris = list(self._addresses)
        with ExitStack() as stack:
            uploads: dict[str, Any] = {}
            for index, batch in spread(checked(batches), len(uris), self._by_group):
                uri = uris[index]
                if uri not in uploads:
                    client = stack.enter_context(self._client(uri))
                    uploads[uri] = client.upload(batch.schema, query, self._options)
                uploads[uri].write(batch)
            return HostsStaged(query, {uri: upload.finish().stages for uri, upload in uploads.items()})

    def commit(self, messages: Sequence[HostsStaged | None], batch: int) -> None:
        """Publishes a batch, on the driver. `messages` are those of the attempts that won, in order of the partitions.

        Raises DataLost, as Publication.publish(): nothing is published. GatewayError, Full: it is decided or not; the
        next run of the batch goes on.
        """
        staged = _together(messages)
        if not staged and not self._purge:
            return
        query = next((message.query for message in messages if message is not None), secrets.token_hex(16))
        rows = sum(rows_of(stages) for stages in staged.values())
        uris = list(self._addresses)
        with self._client(uris[0]) as client:
            turn = client.session(role="publisher", options=self._options)
            try:
                found = turn.call("decided", query=query, batch=batch, rows=rows)
                if found is None:
                    elsewhere = self._prepare(uris[1:], query, batch, staged)
                    turn.call(
                        "decide", query=query, batch=batch, rows=rows, stages=_plain(staged.get(uris[0], ())),
                        elsewhere=elsewhere, kept=self._kept, purge=self._purge,
                    )  # fmt: skip
                else:
                    turn.call("abort", stages=_plain(staged.pop(uris[0], ())))
                    for uri, stages in staged.items():
                        self._act(uri, "abort", stages=_plain(stages))
                    if found["done"]:
                        return
                    elsewhere = found["elsewhere"]
                self._publish(query, batch, elsewhere)
                turn.call("complete", query=query, batch=batch)
            finally:
                turn.close()
        if not self._kept:
            for uri in elsewhere:
                self._act(uri, "forget", query=query)

    def abort(self, messages: Sequence[HostsStaged | None], batch: int) -> None:
        """Drops stages that no note names."""
        for uri, stages in _together(messages).items():
            self._act(uri, "abort", stages=_plain(stages))

    def _prepare(
        self, uris: Sequence[str], query: str, batch: int, staged: Mapping[str, tuple[Stage, ...]]
    ) -> dict[str, list[dict[str, Any]]]:
        elsewhere = {uri: _plain(staged.get(uri, ())) for uri in uris if uri in staged or self._purge}
        for uri, stages in elsewhere.items():
            self._act(uri, "prepare", query=query, batch=batch, stages=stages)
        return elsewhere

    def _publish(self, query: str, batch: int, elsewhere: Mapping[str, list[dict[str, Any]]]) -> None:
        strange = [uri for uri in elsewhere if uri not in self._addresses]
        if strange:
            raise ShmqError(
                f"batch {batch} was decided for the host {strange[0]}, too, which is not among the sink's any more",
                remedy="give its URI, too, until this batch is published",
            )
        for uri, stages in elsewhere.items():
            self._act(uri, "publish", query=query, batch=batch, stages=stages, purge=self._purge)

    def _client(self, uri: str) -> GatewayClient:
        from shmq.spark.gateway.client import GatewayClient  # which needs pyarrow

        return GatewayClient(self._addresses[uri])

    def _act(self, uri: str, action: str, **said: Any) -> None:
        with self._client(uri) as client:
            client.call(action, options=self._options, **said)


class HostsBatchSink:
    """The batch writer's logic for several hosts: as BatchSink.

    Raises ValueError for overwrite without truncate=true, and for truncate=true alone.
    """

    def __init__(
        self, addresses: Sequence[Address], options: SinkOptions, texts: Mapping[str, str], overwrite: bool
    ) -> None:
        kept = options.idempotency_key is not None
        self._key = options.idempotency_key or secrets.token_hex(16)
        self._version = options.idempotency_version
        self._sink = HostsStreamSink(addresses, options, texts, kept=kept, purge=overwrite)

    def write(self, batches: Iterable[pyarrow.RecordBatch]) -> HostsStaged:
        return self._sink.write(batches, self._key)

    def commit(self, messages: Sequence[HostsStaged | None]) -> None:
        self._sink.commit(messages, self._version)

    def abort(self, messages: Sequence[HostsStaged | None]) -> None:
        self._sink.abort(messages, self._version)


def _plain(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    return [asdict(stage) for stage in stages]


def _together(messages: Sequence[HostsStaged | None]) -> dict[str, tuple[Stage, ...]]:
    found: dict[str, tuple[Stage, ...]] = {}
    for message in messages:
        if message is not None:
            for uri, stages in message.stages.items():
                found[uri] = found.get(uri, ()) + tuple(stages)
    return found


def spread(
    batches: Iterable[pyarrow.RecordBatch], hosts: int, by_group: bool
) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    """Which rows go to which host.

    Arguments:
        batches: of one run of a task.
        hosts: how many there are.
        by_group: by the column `group`, the same text always to the same host; rows without one go in turn.

    Raises ValueError without such a column.
    """
    turn = secrets.randbelow(hosts)
    for batch in batches:
        if by_group:
            if "group" not in batch.schema.names:
                raise ValueError("distribution=group spreads rows by their column 'group', and the frame has none")
            yield from _by_group(batch, hosts)
            continue
        parts = min(hosts, max(batch.num_rows // _FEW_ROWS, 1))
        bounds = [batch.num_rows * part // parts for part in range(parts + 1)]
        for begin, end in pairwise(bounds):
            if end > begin:
                yield turn, batch.slice(begin, end - begin)
                turn = (turn + 1) % hosts


def _by_group(batch: pyarrow.RecordBatch, hosts: int) -> Iterator[tuple[int, pyarrow.RecordBatch]]:
    rows: list[list[int]] = [[] for _ in range(hosts)]
    for number, key in enumerate(batch.column("group").to_pylist()):
        rows[number % hosts if key is None else zlib.crc32(key.encode()) % hosts].append(number)
    for host, numbers in enumerate(rows):
        if numbers:
            yield host, batch.take(numbers)
