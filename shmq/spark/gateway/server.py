"""The gateway: a Flight server over one broker.

DoAction   ranges, prepare, publish, abort: JSON in, JSON out
DoExchange a planner's session, or a publisher's: JSON in, JSON out, as long as the caller lives
DoGet      the rows of a range
DoPut      the rows of one run of a task, into staging queues
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pyarrow
import pyarrow.flight as flight

from shmq.engine.arrow.outgoing import ROUTED
from shmq.engine.arrow.row import arrow_schema
from shmq.spark.batch_source import BatchSource
from shmq.spark.gateway.connection import CallLimit, hang_up
from shmq.spark.gateway.leased_session import LEASE, LeasedSession
from shmq.spark.gateway.planner_session import PlannerSession
from shmq.spark.gateway.publisher_session import PublisherSession, act, check_action
from shmq.spark.gateway.token import TokenCheck
from shmq.spark.gateway.wire import PROTOCOL, dumps, field, loads, plain_error, plain_range, plain_staged, range_of
from shmq.spark.options import PLACES, SinkOptions, SourceOptions
from shmq.spark.sink import StreamSink
from shmq.spark.stream_source import StreamSource

__all__ = ["Gateway"]

_MOST_STAGES: Final = 1024  # of all callers, and undecided; a broker has room for four thousand queues


class Gateway(flight.FlightServerBase):
    """Serves the queues of one broker until shutdown().

    Arguments:
        path: of the broker; it must be there.
        location: "grpc://HOST:PORT" or "grpc+tls://HOST:PORT"; port 0: any free one, see `port`.
        token: what callers must know; None: nothing.
        certificate, key: in PEM, for TLS.

    Raises OSError when it cannot listen there.

    Example:
        >>> Gateway("/var/lib/shop", "grpc://127.0.0.1:8815").serve()
    """

    def __init__(
        self,
        path: str,
        location: str,
        token: str | None = None,
        certificate: bytes | None = None,
        key: bytes | None = None,
    ) -> None:
        self._path = path
        self._sessions: dict[LeasedSession, str] = {}  # and their peers
        self._closed = threading.Event()
        try:
            super().__init__(
                location,
                tls_certificates=[(certificate, key)] if certificate is not None else [],
                middleware=({} if token is None else {"token": TokenCheck(token)}) | {"limit": CallLimit()},
            )
        except (pyarrow.ArrowException, OSError) as error:
            raise OSError(f"the gateway cannot listen at {location}: {str(error).splitlines()[0]}") from None
        threading.Thread(target=self._end_silent_sessions, name="shmq gateway", daemon=True).start()

    def shutdown(self) -> None:
        """Ends all calls."""
        self._closed.set()
        for session in list(self._sessions):
            session.close()
        super().shutdown()

    def _end_silent_sessions(self) -> None:
        while not self._closed.wait(LEASE / 10):
            now = time.monotonic()
            for session, peer in list(self._sessions.items()):
                if session.end_if_silent(now):
                    hang_up(peer)  # else its thread waits as long as the caller has the connection

    # ---- what the options of a caller mean here ------------------------------------------------------------------

    def _source_options(self, said: Mapping[str, Any]) -> SourceOptions:
        return SourceOptions.parse({**self._texts(said), "path": self._path})

    def _sink_options(self, said: Mapping[str, Any]) -> SinkOptions:
        options = SinkOptions.parse({**self._texts(said), "path": self._path})
        return replace(options, most_stages=_MOST_STAGES)

    def _texts(self, said: Mapping[str, Any]) -> dict[str, str]:
        if said.get("protocol") != PROTOCOL:
            raise ValueError(
                f"the caller speaks protocol {said.get('protocol')!r}, this gateway {PROTOCOL}; "
                "use the same shmq on both"
            )
        found: dict[str, str] = field(said, "options", dict)
        for name, text in found.items():
            if name.lower() in PLACES:
                raise ValueError(
                    f"the option {name:.80} says where something is; a gateway serves its own broker, and takes no "
                    "such option of a caller"
                )
            if not isinstance(text, str):
                raise ValueError(f"option {name:.80}={text!r:.80} is no text")
        return found

    # ---- Flight's four calls -------------------------------------------------------------------------------------

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        with _told():
            if action.type != "ranges":
                check_action(action.type)
            said = loads(action.body.to_pybytes())
            if action.type == "ranges":
                source = BatchSource(self._source_options(said))
                return [flight.Result(dumps([plain_range(one) for one in source.partitions()]))]
            act(action.type, self._sink_options(said), said)
            return [flight.Result(dumps(None))]

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        with _told():
            said = loads(ticket.ticket)
            options = self._source_options(said)
            source = StreamSource(options) if options.subscription else BatchSource(options)
            columns = options.columns or ()
            return flight.GeneratorStream(
                arrow_schema(columns), _told_rows(source, range_of(field(said, "range", dict)))
            )

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        with _told():
            said = loads(descriptor.command)
            self._texts(said)
            strange = [name for name in reader.schema.names if name not in ROUTED]
            if strange or "body" not in reader.schema.names:
                raise ValueError(f"the columns {reader.schema.names} cannot be put; there are: {', '.join(ROUTED)}")
            sink = StreamSink(self._sink_options(said))
            staged = sink.write(_whole(reader), field(said, "query", str))
            writer.write(dumps(plain_staged(staged)))

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        with _told():
            said = loads(descriptor.command)
            self._texts(said)
            session: LeasedSession
            role = field(said, "role", str)
            if role == "publisher":
                session = PublisherSession(self._sink_options(said))
            elif role == "planner":
                session = PlannerSession(self._source_options(said))
            else:
                raise ValueError(f"role={role!r:.80}: planner or publisher is expected")
            self._sessions[session] = context.peer()
            try:
                _converse(reader, writer, session.answer)
            finally:
                self._sessions.pop(session, None)
                session.close()


@contextmanager
def _told() -> Iterator[None]:
    """Tells the caller of an error in a `with` block, in words from which it makes the same error."""
    try:
        yield
    except flight.FlightError:
        raise
    except Exception as error:
        raise flight.FlightServerError(str(error), dumps(plain_error(error))) from error


def _told_rows(source: StreamSource | BatchSource, range: Any) -> Iterator[Any]:
    with _told():
        yield from source.read(range)


def _whole(reader: flight.MetadataRecordBatchReader) -> Iterator[Any]:
    """Yields the batches of a run of a task. Raises ValueError if the caller died before it had sent all."""
    rows = 0
    while True:
        try:
            chunk = reader.read_chunk()
        except StopIteration:
            raise ValueError("the caller has gone before it had sent all rows") from None
        if chunk.data is not None:
            rows += chunk.data.num_rows
            yield chunk.data
        if chunk.app_metadata is not None:
            told = field(loads(chunk.app_metadata.to_pybytes()), "rows", int)
            if told != rows:
                raise ValueError(f"{told} rows were sent, {rows} came")
            return


def _converse(reader: Any, writer: Any, answer: Callable[[str, Mapping[str, Any]], Any]) -> None:
    """Answers the calls of a session one after the other, until the caller has gone."""
    while True:
        try:
            text = reader.read_chunk().app_metadata.to_pybytes()
        except (StopIteration, flight.FlightError, AttributeError, OSError):
            return
        try:
            said = loads(text)
            reply = {"answer": answer(field(said, "call", str), said)}
        except Exception as error:
            reply = {"error": plain_error(error)}
        writer.write_metadata(dumps(reply))
