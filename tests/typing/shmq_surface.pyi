# ruff: noqa
# fmt: off
# The public surface, decided before the code. A mark such as [log] names the stage that builds a thing; no mark: it is there.
# tests/typing/test_surface.py compares the package with this listing, signature by signature.
"""shmq: message queues for the processes of one host, in a directory, without a server."""
# Everywhere: durations are seconds (float), timeout=None waits for ever and timeout=0 does not wait,
# sizes are bytes (int, or text such as "64MiB"), points in time are POSIX seconds (float).
# Everything after the first one or two arguments is keyword-only. A name without a mark is [core].
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, overload

from numpy.typing import DTypeLike, NDArray
from pyarrow import RecordBatchReader

from shmq.death import DeathReason
from shmq.engine.arrow.plain_columns import ArrowStream
from shmq.errors import (
    BrokerError as BrokerError, BrokerNotFound as BrokerNotFound, Closed as Closed,
    ConsumerRefused as ConsumerRefused, CorruptionError as CorruptionError, DecodeError as DecodeError,
    Empty as Empty, Full as Full, MessageTooLarge as MessageTooLarge, NotFound as NotFound,
    OptionsMismatch as OptionsMismatch, OutOfSpace as OutOfSpace, Returned as Returned,
    SelectorError as SelectorError, SettlementError as SettlementError, ShmqError as ShmqError,
    ShutDown as ShutDown, Timeout as Timeout, TransactionAborted as TransactionAborted,
    VersionMismatch as VersionMismatch, WorkerError as WorkerError,
)

__version__: str

T = TypeVar("T")
R = TypeVar("R")

Size = int | str                                     # 67108864 or "64MiB"
Header = str | int | float | bool | bytes | None
Durability = Literal["none", "os", "sync"]           # survives: processes; the loss of the segment; power loss


# ---- broker ---------------------------------------------------------------------------------------------------

def open(
    path: str | PathLike[str] | None = None,         # a directory, or "shmq:///abs/dir"; None: gone with its last user
    *,
    create: bool = True,                             # False: BrokerNotFound when there is none
    memory: Size | None = None,                      # budget of the segment; new: half of /dev/shm, at most 4 GiB
    mode: int | None = None,                         # of the directory, files lose the x bits; new: 0o700; 0o770 for a group
    patience: float | None = None,                   # how long a stopped process may delay others; new: 0.1
    disk: Size | None = None,                        # budget on disk; new: up to 90 % of the file system used
    disk_path: str | PathLike[str] | None = None,    # where that lies; new: the broker's directory
    durability: Durability | None = None,            # [log]  default of new queues; new: "none"
    encryption_key: bytes | str | PathLike[str] | Callable[[], bytes] | None = None,   # 32 bytes, or a file with them:
                                                     # what is on disk is encrypted
) -> Broker: ...
# Options follow the rule of Broker.queue() below; memory, mode, disk_path and encryption_key are fixed at creation.
# Opening the same directory again in a process gives another handle on the same membership.
# Environment variables never change what open() opens.


class Broker:
    """This process's membership in one broker. Shared by threads, survives fork, can be pickled."""

    @property
    def path(self) -> str | None: ...
    @property
    def url(self) -> str: ...                        # "shmq:///abs/dir"

    @overload
    def queue(self, name: str | None = None, *, codec: None = None, create: bool = True,
              **options: Unpack[QueueOptions]) -> Queue[Any]: ...
    @overload
    def queue(self, name: str | None = None, *, codec: Literal["bytes"], create: bool = True,
              **options: Unpack[QueueOptions]) -> Queue[bytes]: ...
    @overload
    def queue(self, name: str | None = None, *, codec: Literal["pickle"], create: bool = True,
              **options: Unpack[QueueOptions]) -> Queue[Any]: ...
    @overload
    def queue(self, name: str | None = None, *, codec: Codec[T], create: bool = True,
              **options: Unpack[QueueOptions]) -> Queue[T]: ...
    # Declares or opens (create=False: NotFound). Options not given are taken as they are. One that is given and was
    # given before must be equal, else OptionsMismatch naming both values and who set the first; one that nobody gave
    # before is set by the first who does, so the start order does not matter. Fixed ones (f) are settled at creation:
    # state them wherever the queue may be opened first. name=None: a new name, temporary=True implied.
    # codec: how this handle turns bodies into bytes and back. Each message carries its content type.
    #   None      bytes-like, str, JSON values (dict list int float bool None) and numpy arrays; out comes what went in
    #   "bytes"   bytes in, bytes out, whatever the content type says
    #   "pickle"  any object; the only way to unpickle: a handle without it raises DecodeError for a pickled body
    #   Codec     your own: msgspec, protobuf, Arrow, ...

    def queues(self) -> list[Queue[Any]]: ...
    def consumer(self, *queues: Queue[T], prefetch: int | None = None, selector: str | None = None,
                 priority: int = 0, exclusive: bool = False) -> Consumer[T]: ...
    # one consumer of several queues, served in turn; Queue.consumer() is the usual case of one

    def exchange(self, name: str, kind: Literal["direct", "topic", "fanout", "headers"] | None = None, *,
                 create: bool = True, alternate: Queue[Any] | Exchange | None = None,
                 durability: Durability | None = None) -> Exchange: ...          # [semantics]
    def exchanges(self) -> list[Exchange]: ...                                   # [semantics]

    def transaction(self, *messages: Message[Any], durability: Durability | None = None,
                    timeout: float | None = None) -> Transaction: ...            # [log]
    # the messages are settled with it; durability=None: the highest of the queues that take part

    def statistics(self) -> BrokerStatistics: ...
    def close(self) -> None: ...                     # twice is fine; waiting threads get Closed; unsettled messages go back
    def delete(self, *, force: bool = False) -> None: ...   # its memory, files and directory; refused while others are attached
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...


# ---- queue ----------------------------------------------------------------------------------------------------

class QueueOptions(TypedDict, total=False):
    """Belong to the queue, kept with it, the same for every process. (f) = fixed at creation, others: Queue.alter()."""

    maxsize: int                    # most entries, in whatever state; 0 (default): as many as memory (and disk) hold. The ring's
                                    # slots are fixed at creation: maxsize rounded up to a power of two, at least 1,024; for 0
                                    # what takes an eighth of the budget, at most 65,536. More entries: Full, or [flow]
    slot_size: Size                 # (f) 128 to 4096, default by measurement; small bodies lie in the slot itself
    temporary: bool                 # (f) False; True: deleted when the process that made it ends or closes its broker
    max_deliveries: int             # 20; after so many failed attempts (retry) a message is dead. 0: never
    max_deaths: int                 # 3; after it was with so many processes that died. 0: never
    checksum: bool                  # (f) True; CRC-32C of each body, checked on delivery
    dead_letter: str | Queue[Any] | Exchange   # where dead messages go (an Exchange: [semantics]); default: the queue
                                               # "<name>.dead", made when needed, from which nothing dies further
    # [semantics]
    max_bytes: Size                 # most bytes of bodies and headers; 0: no limit
    overflow: Literal["wait", "reject", "drop_oldest"]   # at maxsize or max_bytes; default "wait" (up to the timeout)
    priorities: int                 # (f) 1; number of levels, 2 to 10; larger goes first
    groups: Literal["shared", "sticky"] | None   # (f) None; a group is with one consumer at a time, or for its life
    # [semantics] last_value: str | None          # (f) None; header whose newest value replaces the older message
    # [semantics] sort_by: str | None             # (f) None; header by which the queue is ordered, ascending
    retry_delay: float | Sequence[float]   # 0; by attempt, the last one repeats: (1, 10, 60)
    max_ttl: float | None           # None; upper bound of every message's time to live, also of those without one
    dead_letter_expired: bool       # False: expired messages are dropped and counted
    lease: float | None             # None: for as long as the consumer lives; else seconds, then it is taken from a live one
    live_consumers: int | None      # None; so many are served, the others stand by
    expires: float | None           # None; deleted after so long without a consumer; 0: when its last one has gone
    # [flow]
    max_memory: Size | None       # None: the broker's budget alone decides; else what exceeds it flows to disk
    alerts: Alerts | None         # None; thresholds that are logged
    # [log]
    # durability: Durability        # (f) the broker's


class PutOptions(TypedDict, total=False):
    """Belong to one message. An option of a stage that is not built yet is a ValueError that says so, never ignored."""

    headers: Mapping[str, Header] | None
    # [semantics]
    priority: int                   # 4; 0 to 9. On a queue without priorities, by put(): ValueError
    group: str | None               # None; on a queue without groups, by put(): ValueError
    ttl: float | None               # None; seconds until it expires
    delay: float                    # 0; seconds until it can be received
    immediate: bool | float         # False; True or seconds: taken by a consumer by then, or withdrawn: Returned
    # [log]
    # durability: Durability | None   # None: the queue's; never more than the queue's


class Queue(Generic[T]):
    """A handle on one queue. Shared by threads, survives fork, can be pickled; holds nothing, needs no close.

    `get` takes a message for good. `receive` lends it until it is settled. Choose `receive` when losing the message
    in hand to a crash would matter.
    """

    @property
    def name(self) -> str: ...
    @property
    def broker(self) -> Broker: ...
    @property
    def options(self) -> QueueOptions: ...           # all of them, as in force

    # produce
    def put(self, body: T, *, timeout: float | None = None, **options: Unpack[PutOptions]) -> int: ...
    # returns the message id; Full after timeout; TypeError (nothing put) for a body the codec does not take
    def put_many(self, bodies: Iterable[T], *, timeout: float | None = None,
                 **options: Unpack[PutOptions]) -> None: ...
    # in order, one wake-up; every error says in `accepted` how many are in
    def loan(self, nbytes: int, *, timeout: float | None = None, **options: Unpack[PutOptions]) -> Loan: ...
    def loan_array(self, shape: int | tuple[int, ...], dtype: DTypeLike, *, timeout: float | None = None,
                   **options: Unpack[PutOptions]) -> Loan: ...

    def put_arrow(self, batches: ArrowStream, *, timeout: float | None = None) -> int: ...
    # each row a message, of pyarrow, pandas, polars, DuckDB; how many; every error says in `accepted` how many are in

    # take for good
    def get(self, *, timeout: float | None = None) -> T: ...                       # Empty, ShutDown
    def get_many(self, limit: int, *, timeout: float | None = None) -> list[T]: ...
    # waits for the first, then takes what is there; [] after the timeout; ShutDown
    def get_arrow(self, limit: int, *, timeout: float | None = None,
                  columns: Sequence[str] | None = None) -> RecordBatchReader: ...
    # as get_many(), as an Arrow stream; taken when the call returns

    # take on loan, settle later
    def receive(self, *, timeout: float | None = None) -> Message[T]: ...          # Empty, ShutDown
    def receive_many(self, limit: int, *, timeout: float | None = None) -> list[Message[T]]: ...
    def consumer(
        self, *,
        prefetch: int | None = None,  # None: taken when asked for, no limit. n: at most n unsettled, read-ahead included
        selector: str | None = None,  # JMS selector over headers; SelectorError at once if malformed
        priority: int = 0,            # larger is served first, lower ones when it has no credit
        exclusive: bool = False,      # the only one; a second consumer: ConsumerRefused
    ) -> Consumer[T]: ...

    # look
    def browse(
        self, *,
        start: Literal["first", "next"] | int = "first",   # "next": only newcomers; int: from that position
        follow: bool = False,                              # True: wait for more, ends at shutdown
        selector: str | None = None,
    ) -> Iterator[Message[T]]: ...
    # takes nothing, counts nothing; what was yielded stays readable; settling it: SettlementError
    def browse_arrow(self, *, selector: str | None = None,
                     columns: Sequence[str] | None = None) -> RecordBatchReader: ...
    # what is there now, as an Arrow stream
    def qsize(self) -> int: ...                            # ready to be received now; there is no len(), see section 6
    def statistics(self) -> QueueStatistics: ...
    def join(self, *, timeout: float | None = None) -> None: ...   # until nothing is ready, delayed or unsettled; Timeout

    # request and reply [semantics]
    def request(self, body: T, *, timeout: float | None = None,
                **options: Unpack[PutOptions]) -> Any: ...                         # Timeout; a late reply is dropped

    # manage
    def purge(self, *, selector: str | None = None) -> int: ...                    # how many; selector [semantics]
    def move(self, to: Queue[Any], *, selector: str | None = None, limit: int | None = None,
             copy: bool = False) -> int: ...
    def alter(self, **options: Unpack[QueueOptions]) -> None: ...                  # OptionsMismatch for (f)
    def shutdown(self, *, immediate: bool = False) -> None: ...
    # for everybody: put raises ShutDown; takers drain, then iteration ends and get/receive raise ShutDown.
    # immediate=True: takers end at once, messages stay
    def reopen(self) -> None: ...
    def delete(self) -> None: ...
    # its users get NotFound; messages go to dead_letter if one was named, else with it


class Consumer(Generic[T]):
    """A subscription. Iterating yields messages until shutdown; then the loop ends. Shared by threads, not by fork."""

    def __iter__(self) -> Iterator[Message[T]]: ...
    def receive(self, *, timeout: float | None = None) -> Message[T]: ...          # Empty, ShutDown
    def receive_many(self, limit: int, *, timeout: float | None = None) -> list[Message[T]]: ...
    def fileno(self) -> int: ...                     # readable when receive(timeout=0) is worth a try
    def close(self) -> None: ...                     # messages not settled go back in their place, uncounted
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...


class Message(Generic[T]):
    """One delivery. Immutable but for its settlement, which happens once and may be done by any thread.

    As a context manager: left normally: ack(). By an Exception: retry(error). By KeyboardInterrupt, SystemExit or
    cancellation: release(). Settled inside: nothing more. Exceptions pass through.
    """

    @property
    def body(self) -> T: ...                         # decoded on first use, own copy; DecodeError
    @property
    def headers(self) -> Mapping[str, Header]: ...   # read-only
    @property
    def id(self) -> int: ...                         # unique in the broker for ever
    @property
    def position(self) -> int: ...                   # place in its queue, growing
    @property
    def queue(self) -> Queue[T]: ...
    @property
    def size(self) -> int: ...                       # bytes of the encoded body
    @property
    def content_type(self) -> str: ...
    @property
    def enqueued_at(self) -> float: ...
    @property
    def redelivered(self) -> bool: ...
    @property
    def delivery_count(self) -> int: ...             # deliveries, deaths included, this one too; release() takes its one back
    @property
    def priority(self) -> int: ...
    @property
    def group(self) -> str | None: ...
    @property
    def expires_at(self) -> float | None: ...
    @property
    def routing_key(self) -> str | None: ...         # [semantics] as published
    @property
    def death(self) -> Death | None: ...             # on a dead message: why

    def view(self) -> memoryview: ...                # read-only; a body in a block is not copied, but pinned, also after
                                                     # settlement; a body that lies in its slot (small) is copied
    def array(self) -> NDArray[Any]: ...             # the same as numpy, read-only; of other bodies than arrays: uint8

    # the four outcomes (AMQP 1.0: accepted, released, modified, rejected); a second or late one: SettlementError
    def ack(self) -> None: ...                       # done
    def release(self, *, delay: float = 0.0, elsewhere: bool = False) -> None: ...
    # untouched: back in its place, attempt not counted. [semantics] delay; elsewhere: not to this consumer again
    def retry(self, error: BaseException | str | None = None, *, delay: float | None = None) -> None: ...
    # failed: back in its place, counted; at max_deliveries it is dead. [semantics] delay; None: the queue's retry_delay
    def reject(self, error: BaseException | str | None = None) -> None: ...
    # never again: dead at once

    @property
    def settled(self) -> bool: ...
    def touch(self) -> None: ...                     # renews the lease, where the queue has one
    def reply(self, body: Any, **options: Unpack[PutOptions]) -> None: ...         # [semantics] answer to request()
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...


class Loan:
    """Memory of a message to be, not seen by anybody. As a context manager: left normally: commit(); else abandon()."""

    @property
    def view(self) -> memoryview: ...                # writable until commit
    @property
    def array(self) -> NDArray[Any]: ...             # of loan_array(); read-only after commit
    def commit(self, *, nbytes: int | None = None) -> int: ...   # message id; BufferError while slices of view live
    def abandon(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How a handle turns T into bytes and back. Belongs to the handle; the message carries the content type."""

    content_type: str
    encode: Callable[[T], bytes | bytearray | memoryview]
    decode: Callable[[memoryview], T]


# ---- routing [semantics] ---------------------------------------------------------------------------------------

class Exchange:
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["direct", "topic", "fanout", "headers"]: ...
    def publish(self, body: Any, key: str = "", *, mandatory: bool = False, timeout: float | None = None,
                **options: Unpack[PutOptions]) -> int: ...   # bodies as with codec=None; a Codec: encode first
    # how many queues got it; all of them or, on Full, none; mandatory and nobody bound: Returned
    def bind(self, to: Queue[Any] | Exchange, key: str = "", *, selector: str | None = None,
             headers: Mapping[str, Header] | None = None, match: Literal["all", "any"] = "all",
             replace_key: str | None = None) -> None: ...        # repeating it is fine
    def unbind(self, to: Queue[Any] | Exchange, key: str = "") -> None: ...
    def bindings(self) -> list[Binding]: ...
    def delete(self) -> None: ...


@dataclass(frozen=True)
class Binding:
    to: str
    key: str
    selector: str | None
    headers: Mapping[str, Header] | None


# ---- transaction [log] -----------------------------------------------------------------------------------------

class Transaction:
    """Puts and acks, all or nothing, across the queues of a broker. Only what goes through it belongs to it.

    As a context manager: left normally: commit(), which acks its messages. By an exception: rollback(), which gives them
    back (retry for an Exception, else release). Nobody sees the puts before the commit. One thread at a time.
    A message can say reject(), retry() or release() instead: that, too, takes effect with the commit.
    """

    # no room: Full at once by default, for the room may depend on what this transaction holds
    def put(self, queue: Queue[T], body: T, *, timeout: float | None = 0, **options: Unpack[PutOptions]) -> int: ...
    def put_many(self, queue: Queue[T], bodies: Iterable[T], *, timeout: float | None = 0,
                 **options: Unpack[PutOptions]) -> None: ...
    def publish(self, exchange: Exchange, body: Any, key: str = "", *, mandatory: bool = False,
                timeout: float | None = 0, **options: Unpack[PutOptions]) -> int: ...
    def ack(self, *messages: Message[Any]) -> None: ...  # more messages, as in Broker.transaction()
    def commit(self) -> None: ...                        # returns when durable; TransactionAborted: nothing happened
    def rollback(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...


# ---- workers ---------------------------------------------------------------------------------------------------

class WorkerPool(Generic[T, R]):
    """Handles the messages of one queue, as in `with m:`, but an exception is logged and recorded and the pool goes on."""

    def __init__(
        self, queue: Queue[T], handler: Callable[[Message[T]], R], *,
        processes: int | None = None,                # None: the CPUs this process may use; 0: in the thread that calls run()
        results: Queue[R] | None = None,             # gets what the handler returns; [log] together with the ack
        selector: str | None = None,
        initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = (),
        max_messages: int | None = None,             # a worker is replaced after so many
        mp_context: BaseContext | Literal["fork", "spawn", "forkserver"] | None = None,       # None: forkserver
        progress: bool = False, log_tracebacks: bool = False,  # of each failed attempt; False: of the last one
        time_limit: float | None = None,             # seconds for one call; over it the worker is killed, counted as a death
    ) -> None: ...
    def run(self, *, until_empty: bool = False) -> PoolCounts: ...
    # in this thread, until the queue is shut down and drained (until_empty: until nothing is ready, delayed or unsettled). First Ctrl-C or SIGTERM: finish what is in
    # hand; second: kill, messages go back. WorkerError if workers keep dying at start
    def stop(self, *, timeout: float | None = None) -> None: ...
    def processes(self) -> list[ProcessInfo]: ...
    def __enter__(self) -> Self: ...                 # starts; supervised by a thread "shmq-pool"
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...   # stop()


class Executor(futures.Executor):                    # [integrations] takes the place of ProcessPoolExecutor
    def __init__(self, max_workers: int | None = None, mp_context: BaseContext | None = None,
                 initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = (), *,
                 max_tasks_per_child: int | None = None, broker: Broker | None = None) -> None: ...
    # a dead worker fails its own task only (BrokenExecutor on that future) and is replaced


# ---- what one sees ---------------------------------------------------------------------------------------------
# frozen dataclasses; `--json` of the commands prints exactly these fields

@dataclass(frozen=True)
class QueueStatistics:
    name: str
    ready: int                       # can be received now
    unsettled: int                   # with consumers
    delayed: int                     # [semantics] not yet due
    bytes: int                       # of all of them
    memory_bytes: int                # resident
    reserved_bytes: int              # of /dev/shm that its ring has
    disk_bytes: int                  # [flow]
    flowed: bool                     # [flow]
    oldest_age: float | None         # of the oldest ready entry
    first_position: int | None       # of the oldest entry
    next_position: int               # of the next newcomer
    consumers: int
    producers_waiting: int
    shut_down: bool
    # since the queue exists
    put: int
    delivered: int
    acked: int
    redelivered: int
    deaths: int                      # deliveries that ended with their process
    dead_lettered: int
    expired: int                     # [semantics]
    dropped: int                     # [semantics] overflow, replaced by a last value


@dataclass(frozen=True)
class BrokerStatistics:
    path: str | None
    version: str
    memory: int                      # budget
    memory_reserved: int
    memory_used: int
    disk_used: int                   # [flow]
    log_bytes: int                   # [log]
    processes: tuple[ProcessInfo, ...]
    queues: Mapping[str, QueueStatistics]


@dataclass(frozen=True)
class PoolCounts:
    handled: int
    retried: int                     # attempts, not messages
    dead: Mapping[DeathReason, int]  # only reasons that there were

    @property
    def died(self) -> int: ...


@dataclass(frozen=True)
class ProcessInfo:
    pid: int
    name: str
    started_at: float
    state: Literal["live", "stopped", "dead"]
    unsettled: int
    pinned_bytes: int                # loans and views


@dataclass(frozen=True)
class Death:
    queue: str                       # where it died
    reason: Literal["rejected", "max_deliveries", "max_deaths", "expired", "undecodable", "queue_deleted"]
    error: str | None                # text or traceback
    at: float
    pids: tuple[int, ...]            # processes that died with it
    signal: int | None


@dataclass(frozen=True)
class Alerts:                        # logged to "shmq.alert", at most once per `repeat`
    messages: int | None = None
    bytes: int | None = None
    message_bytes: int | None = None
    age: float | None = None
    repeat: float = 30.0
