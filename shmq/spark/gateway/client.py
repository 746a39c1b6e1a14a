"""Calls of a gateway: the other end of server.py."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow.flight as flight

from shmq.spark.entry_range import EntryRange
from shmq.spark.gateway.address import Address
from shmq.spark.gateway.gateway_error import GatewayError
from shmq.spark.gateway.leased_session import PING
from shmq.spark.gateway.token import BearerToken, read_token
from shmq.spark.gateway.wire import PROTOCOL, dumps, error_of, loads, plain_range, staged_of
from shmq.spark.sink import Staged

__all__ = ["GatewayClient", "Session", "Upload"]

# A call that waits is asked for a sign of life, so that a host which has vanished is noticed. More often than once in
# five minutes, Flight's servers end the connection.
_KEEPALIVE: Final = [("grpc.keepalive_time_ms", 310_000), ("grpc.keepalive_timeout_ms", 20_000)]
# A connection of its own for each client: a gateway ends that of a silent session.
_OWN_CONNECTION: Final = [("grpc.use_local_subchannel_pool", 1)]


def _file(option: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"option {option}={path!r}: {error.strerror}; on each host of Spark it names a file") from None


class GatewayClient:
    """A connection with one gateway; close() it, or use it in a `with` statement.

    Raises GatewayError when the gateway does not answer; else what the gateway's own calls raise.

    Example:
        >>> with GatewayClient(Address("grpc://127.0.0.1:8815")) as gateway:
        ...     gateway.call("ranges", options={"queue": "orders"})
    """

    def __init__(self, address: Address) -> None:
        self._uri = address.uri
        settings: dict[str, Any] = {"generic_options": _KEEPALIVE + _OWN_CONNECTION}
        self._has_token = address.token_file is not None
        if address.token_file is not None:
            _file("tokenFile", address.token_file)
            settings["middleware"] = [BearerToken(read_token(address.token_file, private=False))]
        if address.ca_file is not None:
            settings["tls_root_certs"] = _file("caFile", address.ca_file)
        self._client = flight.FlightClient(address.uri, **settings)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> GatewayClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def call(self, name: str, **said: Any) -> Any:
        """Calls one action, and returns its answer."""
        with self.raising():
            results = list(self._client.do_action(flight.Action(name, dumps({"protocol": PROTOCOL, **said}))))
            return _plain(results[0].body.to_pybytes())

    def rows(self, range: EntryRange, options: Mapping[str, str]) -> Iterator[Any]:
        """Yields Arrow batches of a range."""
        ticket = {"protocol": PROTOCOL, "options": dict(options), "range": plain_range(range)}
        with self.raising():
            reader = self._client.do_get(flight.Ticket(dumps(ticket)))
        while True:
            with self.raising():
                try:
                    chunk = reader.read_chunk()
                except StopIteration:
                    return
            yield chunk.data

    def upload(self, schema: Any, query: str, options: Mapping[str, str]) -> Upload:
        """Begins an upload of rows into staging queues of the gateway's host: it stages all of them, or none."""
        said = {"protocol": PROTOCOL, "options": dict(options), "query": query}
        with self.raising():
            return Upload(self, *self._client.do_put(flight.FlightDescriptor.for_command(dumps(said)), schema))

    def session(self, **said: Any) -> Session:
        """Begins a session, which the gateway ends when this process dies."""
        with self.raising():
            writer, reader = self._client.do_exchange(
                flight.FlightDescriptor.for_command(dumps({"protocol": PROTOCOL, **said}))
            )
        return Session(self, writer, reader)

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Turns errors of Flight into those of shmq."""
        try:
            yield
        except flight.FlightUnauthenticatedError:
            raise GatewayError(
                f"the gateway {self._uri} {'refuses this token' if self._has_token else 'wants a token'}",
                remedy="name the file that it was started with: tokenFile",
            ) from None
        except flight.FlightError as error:
            if error.extra_info:
                raise error_of(loads(error.extra_info), self._uri) from None
            raise self._lost(error) from None
        except OSError as error:  # what Flight raises for a broken connection
            if type(error) is not OSError and not isinstance(error, ConnectionError):
                raise
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> GatewayError:
        return GatewayError(
            f"the gateway {self._uri} does not answer",
            figures=str(error).splitlines()[0],
            remedy="see that `shmq gateway` runs there and can be reached; nothing is lost, start the query again",
        )


class Upload:
    """An upload: the rows of one run of a task."""

    def __init__(self, client: GatewayClient, writer: Any, reader: Any) -> None:
        self._client = client
        self._writer = writer
        self._reader = reader
        self._rows = 0

    def write(self, batch: Any) -> None:
        with self._raising():
            self._writer.write_batch(batch)
        self._rows += batch.num_rows

    def finish(self) -> Staged:
        """Ends the upload and returns the stages. Before this call no row is staged."""
        with self._raising():
            self._writer.write_metadata(dumps({"rows": self._rows}))
            self._writer.done_writing()
            answer = self._reader.read()
            self._writer.close()
            return staged_of(loads(answer.to_pybytes()))

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        with self._client.raising():
            try:
                yield
            except (flight.FlightError, OSError, AttributeError):
                self._writer.close()  # raises why the gateway has ended it
                raise


class Session:
    """Calls and answers in turn. While it is idle a thread keeps it alive; see PlannerSession."""

    def __init__(self, client: GatewayClient, writer: Any, reader: Any) -> None:
        self._client = client
        self._writer = writer
        self._reader = reader
        self._lock = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._ping, name="shmq gateway session", daemon=True).start()

    def call(self, name: str, **said: Any) -> Any:
        with self._lock, self._client.raising():
            self._writer.write_metadata(dumps({"call": name, **said}))
            try:
                answer = self._reader.read_chunk().app_metadata
            except StopIteration:
                answer = None
            if answer is None:
                self._writer.close()  # raises why
                raise GatewayError("the gateway has ended the session", remedy="start the query again")
            found = _plain(answer.to_pybytes())
        if "error" in found:
            raise error_of(found["error"], self._client._uri)
        return found["answer"]

    def _ping(self) -> None:
        while not self._closed.wait(PING):
            try:
                self.call("ping")
            except Exception:
                return  # the next call says so

    def close(self) -> None:
        self._closed.set()
        with self._lock, contextlib.suppress(flight.FlightError, OSError):
            self._writer.done_writing()
            self._writer.close()


def _plain(data: bytes) -> Any:
    return json.loads(data)
