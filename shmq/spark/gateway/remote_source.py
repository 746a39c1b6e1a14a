"""A streaming or a batch read of another host's queues: what StreamSource and BatchSource do, through its gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shmq.spark.entry_range import EntryRange
from shmq.spark.gateway.address import Address
from shmq.spark.gateway.client import GatewayClient, Session
from shmq.spark.gateway.wire import range_of
from shmq.spark.stream_source import Limit

__all__ = ["RemoteBatchSource", "RemoteStreamSource"]


class RemoteStreamSource:
    """The stream reader's logic for one gateway.

    Arguments:
        address: of the gateway.
        options: of the source, as texts, without those that say where it is.

    Guarantee: that of StreamSource. When the connection breaks the query fails, and goes on from its checkpoint.
    """

    def __init__(self, address: Address, options: Mapping[str, str]) -> None:
        self._address = address
        self._options = dict(options)
        self._forget()

    def _forget(self) -> None:
        self._client: GatewayClient | None = None
        self._session: Session | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_address": self._address, "_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _ask(self, call: str, **said: Any) -> Any:
        if self._session is None:
            self._client = GatewayClient(self._address)
            self._session = self._client.session(role="planner", options=self._options)
        return self._session.call(call, **said)

    def close(self) -> None:
        session, client = self._session, self._client
        self._forget()
        if session is not None:
            session.close()
        if client is not None:
            client.close()

    def initialOffset(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("initialOffset")
        return found

    def latestOffset(self, start: Mapping[str, Any], limit: Limit) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("latestOffset", start=dict(start), rows=limit.rows, nbytes=limit.nbytes)
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        self._ask("prepareForTriggerAvailableNow")

    def reportLatestOffset(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("reportLatestOffset")
        return found

    def waiting(self, start: Mapping[str, Any]) -> int:
        return int(self._ask("waiting", start=dict(start)))

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[EntryRange]:
        return [range_of(one) for one in self._ask("partitions", start=dict(start), end=dict(end))]

    def commit(self, end: Mapping[str, Any]) -> None:
        self._ask("commit", end=dict(end))

    def read(self, partition: EntryRange | None) -> Iterator[Any]:
        """Reads a partition in a worker, by a connection of its own."""
        return _read(self._address, self._options, partition)


class RemoteBatchSource:
    """The batch reader's logic for one gateway."""

    def __init__(self, address: Address, options: Mapping[str, str]) -> None:
        self._address = address
        self._options = dict(options)

    def partitions(self) -> list[EntryRange]:
        with GatewayClient(self._address) as client:
            return [range_of(one) for one in client.call("ranges", options=self._options)]

    def read(self, partition: EntryRange | None) -> Iterator[Any]:
        return _read(self._address, self._options, partition)


def _read(address: Address, options: Mapping[str, str], partition: EntryRange | None) -> Iterator[Any]:
    if partition is None:
        return
    with GatewayClient(address) as client:
        yield from client.rows(partition, options)
