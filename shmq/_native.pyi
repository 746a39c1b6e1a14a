from collections.abc import Callable
from threading import RLock
from typing import Literal, TypedDict, TypeVar, final, overload

from typing_extensions import Buffer

T = TypeVar("T")

LAYOUT_VERSION: int
MEMORY_MIN: int
MEMORY_MAX: int
GRANULE_BYTES: int
PROCESS_ROWS: int
QUEUES: int
CONSUMER_ROWS: int
NAME_MAX: int
OBITUARY_MOVER: int
OBITUARY_PROCESS: int
PATH_MAX: int
HEAD_MAX: int
BODY_MAX: int
SLOT_MIN: int
SLOT_MAX: int
SLOT_HEADER: int
RING_MIN: int
RING_MAX: int
ROW_FREE: int
ROW_ATTACHING: int
ROW_LIVE: int
ROW_CLOSING: int
ROW_REAPING: int

class Identity(TypedDict):
    memory: int
    created_ns: int
    patience_ns: int
    uid: int
    owner: int
    mode: int
    anonymous: bool
    has_members: bool
    directory: tuple[int, int, bytes]
    uuid: bytes
    boot_id: bytes
    path: str

class Header(TypedDict):
    version: int
    fingerprint: int
    memory: int
    features_required: int
    features: int
    created_ns: int
    patience_ns: int
    clock_offset_ns: int
    granules: int
    uid: int
    mode: int
    anonymous: bool
    uuid: bytes
    boot_id: bytes
    path: str

class Usage(TypedDict):
    memory: int
    reserved: int
    used: int
    granules: int
    granules_free: int
    slabs: int
    blocks: int
    blocks_used: int
    blocks_building: int
    block_bytes_used: int
    block_bytes: int
    damage: int
    rescues: int
    deaths: int

# row, generation, state, pid, start_time, pid_namespace, attached_ns, name, held, pinned_bytes, inside, dead
ProcessRow = tuple[int, int, int, int, int, int, int, str, int, int, int, bool]

def set_exception_factory(factory: Callable[[str, str, int], BaseException] | None, /) -> None: ...
def crc32c(data: Buffer, start: int = 0) -> int: ...
def monotonic_ns() -> int: ...
def wall_ns() -> int: ...
def segment_create(
    name: str,
    memory: int,
    patience_ns: int,
    mode: int,
    anonymous: bool,
    path: str,
    uuid: bytes,
    directory: tuple[int, int, bytes] = ...,
    id_epoch: int = 0,
    group: int = 0,
) -> None: ...
def segment_inspect(name: str, /) -> Identity: ...
def segment_sweep(name: str, /) -> bool: ...
def segment_remove(name: str, home: tuple[int, bytes], force: bool, /) -> None: ...
def boot_id() -> bytes: ...
def filesystem_type(fd: int, /) -> int: ...

class Sight(TypedDict):
    """A queue as an Observer saw it."""

    words: tuple[str, int | None, int | None] | None  # what is wrong, on which level, in which slot
    messages: tuple[str, int | None, int | None] | None
    undecided: str | None  # what looked wrong, but never twice in the same way
    broken: int
    entries: int
    bodies: tuple[int, int, int, int, int]  # entries, verified, without checksums, moved, damaged

@final
class Observer:
    def __new__(cls, name: str, home: tuple[int, bytes] | None) -> Observer: ...
    def close(self) -> None: ...
    def usage(self) -> Usage: ...
    def parts(self) -> list[tuple[str, str | None, str | None]]: ...
    def queues(self) -> list[tuple[bytes, int, int]]: ...
    def queue(self, index: int, incarnation: int, bodies: bool, /) -> Sight | None: ...
    def heads(self, index: int, incarnation: int, /) -> list[bytes]: ...

@final
class Member:
    def __new__(cls, name: str, home: tuple[int, bytes] | None) -> Member: ...
    @property
    def name(self) -> str: ...
    @property
    def row(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def serial(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def forked(self) -> bool: ...
    def after_fork(self) -> None: ...
    def close(self, unmap: bool) -> None: ...
    def processes(self) -> list[ProcessRow]: ...
    def usage(self) -> Usage: ...
    def memory_users(self) -> list[tuple[bytes, int, int]]: ...
    def header(self) -> Header: ...
    def valid(self) -> str | None: ...
    def gone(self) -> bool: ...
    def delete(self, force: bool, /) -> None: ...
    def burials(self) -> bool: ...

# ---- queues ----------------------------------------------------------------------------------------------------

class Census(TypedDict):
    ready: int
    unsettled: int
    delayed: int
    claimed: int
    holes: int
    broken: int
    bytes: int
    memory_bytes: int
    oldest_ns: int
    first_position: int
    next_position: int
    reserved_bytes: int

class Counters(TypedDict):
    put: int
    got: int
    received: int
    acked: int
    redelivered: int
    dead_lettered: int
    died: int
    expired: int
    dropped: int

class Settings(TypedDict):
    """Times are nanoseconds, 2**64 - 1 for never; choices are their numbers."""

    maxsize: int
    slot_size: int
    temporary: int
    max_deliveries: int
    max_deaths: int
    checksum: int
    dead_letter: bytes
    max_bytes: int
    overflow: int
    priorities: int
    groups: int
    retry_delay: tuple[int, ...]
    max_ttl: int
    dead_letter_expired: int
    lease: int
    live_consumers: int
    expires: int
    given: int
    slots: int
    shut_down: int
    created_ns: int
    created_by: int
    given_by: tuple[int, ...]

class Crowd(TypedDict):
    consumers: int
    asleep: int
    producers_waiting: int

# position, id, enqueued_ns, content, delivery, deaths, redelivered, priority, head, body, expires_ns, own_expires_ns
Browsed = tuple[int, int, int, int, int, int, int, int, bytes, bytes, int, int]

# Of each entry position, id, time in us (int64), priority, attempts (int32), content (uint8); then ends (int32, one
# more than entries) and bytes of heads; the same of bodies
Columns = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]

# Of each head whether there is a group (bits), ends (int32, one more than heads) and bytes of groups; the same of
# content types; ends of the user's headers, counted; ends and bytes of their names; the same of their values as text
HeadColumns = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]

# Of a column of text: is there one (a byte each), ends (int32, one more), bytes
Texts = tuple[Buffer, Buffer, Buffer]

# priority, ttl in ns, delay in ns, group, immediate in ns; 2**64 - 1 for a time that was not given
Extras = tuple[int, int, int, bytes | None, int]

# queue, row of the consumer, what it takes
Part = tuple[QueueHandle, int, Subscription | None]

def receive_any(
    parts: tuple[Part, ...], own_rows: bool, first: int, timeout: float | None
) -> tuple[int, Delivery] | None: ...
def peek_any(parts: tuple[Part, ...], own_rows: bool, /) -> None: ...
def peek_pass_on(parts: tuple[Part, ...], /) -> None: ...
def if_free(lock: RLock, callback: Callable[[], object], /) -> None: ...
def release_all(deliveries: list[Delivery], /) -> None: ...
def queue_declare(
    member: Member,
    name: bytes,
    settings: tuple[int | bytes | tuple[int, ...] | None, ...],
    create: bool,
    /,
) -> tuple[int, int, int | None]: ...
def queue_names(member: Member, /) -> list[tuple[bytes, int, int]]: ...
def do_due(member: Member, /) -> None: ...
def ending_queues(member: Member, /) -> list[tuple[bytes, int, int]]: ...
def reap(member: Member, /) -> int: ...
def column_heads(
    max_bytes: int,
    groups: Texts,
    content_types: Texts,
    names: Texts,
    values: Texts,
    headers_there: Buffer,
    header_ends: Buffer,
    /,
) -> tuple[bytes, bytes] | None: ...
def head_columns(ends: Buffer, heads: Buffer, /) -> HeadColumns | None: ...
def obituaries(member: Member, message_id: int, /) -> list[tuple[int, int, int]]: ...
def obituary_signal(member: Member, pid: int, signal: int, /) -> None: ...

class QueueHandle:
    def _put_encoded(
        self,
        content: int,
        head: bytes | None,
        pieces: tuple[Buffer, ...],
        timeout: float | None,
        extras: Extras | None,
        /,
    ) -> int: ...
    def _receive(
        self, owner: int, row: int, timeout: float | None, subscription: Subscription | None, /
    ) -> Delivery: ...
    def _bind(self, member: Member, index: int, incarnation: int, codec_kind: int, /) -> None: ...
    def _unbind(self) -> None: ...
    def _loan(self, head: bytes | None, nbytes: int, timeout: float | None, /) -> LoanBuffer: ...
    def _census(self) -> Census: ...
    def _counters(self) -> Counters: ...
    def _settings(self) -> Settings: ...
    def _alter(self, settings: tuple[int | bytes | tuple[int, ...] | None, ...], /) -> int | None: ...
    def _crowd(self) -> Crowd: ...
    def _takers(self) -> set[int]: ...
    def _row_open(self, priority: int, exclusive: bool, implicit: bool = False, /) -> int: ...
    def _row_closing(self, row: int, /) -> None: ...
    def _row_close(self, row: int, /) -> None: ...
    def _is_ready(self) -> bool: ...
    def _used(self) -> tuple[int, int]: ...
    def _join(self, timeout: float | None, /) -> None: ...
    def _shut_down(self, how: int, /) -> None: ...
    def _delete(self) -> None: ...
    def _purge(self) -> int: ...
    def _purge_at(self, position: int, /) -> bool: ...
    def _claim(
        self, to: QueueHandle, limit: int, max_bytes: int, subscription: Subscription | None, /
    ) -> tuple[int, int, bool]: ...
    def _discard_below(self, position: int, /) -> int: ...
    def _browse(self, position: int, /) -> tuple[int, Browsed | None]: ...
    def _put_column(
        self,
        content: int,
        wide: bool,
        ends: Buffer,
        bodies: Buffer,
        first: int,
        count: int,
        options: tuple[Buffer, Buffer, Buffer, Buffer, Buffer] | None,
        /,
    ) -> None: ...
    def _browse_columns(
        self, position: int, end: int, max_rows: int, max_bytes: int, wall_offset_ns: int, /
    ) -> tuple[int, bool, int, Columns]: ...
    def _browse_wait(self, positions: tuple[int, ...], timeout: float | None, /) -> None: ...
    def _check(self) -> tuple[str, int | None] | None: ...
    def _identity(self) -> tuple[int, int]: ...
    def _ends(self) -> tuple[int, ...]: ...
    def _steal(self, position: int, ready: bool = False, /) -> Delivery | None: ...
    def _is_unused(self) -> bool: ...
    def _steal_expired(self) -> Delivery | None: ...
    def _steal_left(self) -> Delivery | None: ...
    def _steal_poisoned(self) -> Delivery | None: ...

@final
class Subscription:
    def __new__(cls, selector: Selector | None = None, /) -> Subscription: ...
    def refuse(self, queue: QueueHandle, position: int, /) -> None: ...

@final
class Delivery:
    @property
    def position(self) -> int: ...
    @property
    def message_id(self) -> int: ...
    @property
    def enqueued_ns(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def content(self) -> int: ...
    @property
    def delivery(self) -> int: ...
    @property
    def deaths(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def word(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def tag(self) -> int: ...
    def settle(self) -> bool: ...
    @property
    def expires_ns(self) -> int: ...
    @property
    def held_until_ns(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    def move(
        self, to: QueueHandle, content: int, head: bytes | None, pieces: tuple[bytes | memoryview, ...], why: int, /
    ) -> bool: ...
    def expire(self) -> bool: ...
    def touch(self) -> bool: ...
    def release(self, attempt: bool, delay_ns: int = 0, /) -> bool: ...
    def lock(self) -> bool: ...
    def head(self) -> bytes: ...
    def body(self) -> bytes | Literal[False]: ...
    def intact(self) -> bool: ...
    def ours(self) -> bool: ...
    def view(self) -> View | None: ...

@final
class View:
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class LoanBuffer:
    @property
    def size(self) -> int: ...
    @property
    def state(self) -> int: ...
    @property
    def exports(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def commit(self, content: int, nbytes: int, timeout: float | None, keep: bool, extras: Extras | None, /) -> int: ...
    def abandon(self) -> None: ...

@final
class Drop:
    @overload
    def __new__(cls, callback: Callable[[T], object], argument: T, /) -> Drop: ...
    @overload
    def __new__(
        cls, callback: Callable[[Delivery], object], argument: Delivery, held: dict[int, tuple[Delivery, object]], /
    ) -> Drop: ...
    def disarm(self) -> None: ...

@final
class Selector:
    def __new__(cls, program: Buffer, /) -> Selector: ...
    def selects(
        self,
        head: Buffer,
        message_id: int,
        enqueued_wall_ms: int,
        priority: int,
        redelivered: bool,
        delivery_count: int,
        /,
    ) -> bool: ...
    def count(self, heads: list[bytes], /) -> int: ...
