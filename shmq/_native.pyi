from collections.abc import Callable
from typing import Literal, TypedDict, final

from typing_extensions import Buffer

LAYOUT_VERSION: int
MEMORY_MIN: int
MEMORY_MAX: int
GRANULE_BYTES: int
PROCESS_ROWS: int
QUEUES: int
CONSUMER_ROWS: int
NAME_MAX: int
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
    mode: int
    anonymous: bool
    has_members: bool
    directory: tuple[int, int]
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
    directory: tuple[int, int] = (0, 0),
    id_epoch: int = 0,
) -> None: ...
def segment_inspect(name: str, /) -> Identity: ...
def segment_sweep(name: str, /) -> bool: ...
def boot_id() -> bytes: ...
def filesystem_type(fd: int, /) -> int: ...

@final
class Member:
    def __new__(cls, name: str, dir_fd: int) -> Member: ...
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
    def header(self) -> Header: ...
    def valid(self) -> str | None: ...
    def gone(self) -> bool: ...

# ---- queues ----------------------------------------------------------------------------------------------------

class Census(TypedDict):
    ready: int
    unsettled: int
    claimed: int
    holes: int
    broken: int
    bytes: int
    memory_bytes: int
    oldest_ns: int
    first_position: int
    next_position: int

class Counters(TypedDict):
    put: int
    got: int
    received: int
    acked: int
    redelivered: int
    dead_lettered: int
    died: int

class Settings(TypedDict):
    maxsize: int
    slot_size: int
    temporary: bool
    max_deliveries: int
    max_deaths: int
    checksum: bool
    dead_letter: bytes
    given: int
    slots: int
    shut_down: int
    created_ns: int
    created_by: int
    given_by: list[int]

class Crowd(TypedDict):
    consumers: int
    asleep: int
    producers_waiting: int

# position, id, enqueued_ns, content, delivery, deaths, redelivered, head, body
Browsed = tuple[int, int, int, int, int, int, int, bytes, bytes]

def queue_declare(
    member: Member,
    name: bytes,
    given: int,
    maxsize: int,
    slot_size: int,
    temporary: bool,
    max_deliveries: int,
    max_deaths: int,
    checksum: bool,
    dead_letter: bytes,
    create: bool,
    /,
) -> tuple[int, int, int | None]: ...
def queue_names(member: Member, /) -> list[tuple[bytes, int, int]]: ...
def reap(member: Member, /) -> int: ...
def obituaries(member: Member, message_id: int, /) -> list[tuple[int, int, int]]: ...
def obituary_signal(member: Member, pid: int, signal: int, /) -> None: ...

class QueueHandle:
    def _put_encoded(
        self, content: int, head: bytes | None, pieces: tuple[Buffer, ...], timeout: float | None, /
    ) -> int: ...
    def _receive(self, owner: int, row: int, timeout: float | None, /) -> Delivery: ...
    def _bind(self, member: Member, index: int, incarnation: int, codec_kind: int, /) -> None: ...
    def _unbind(self) -> None: ...
    def _loan(self, head: bytes | None, nbytes: int, timeout: float | None, /) -> LoanBuffer: ...
    def _census(self) -> Census: ...
    def _counters(self) -> Counters: ...
    def _settings(self) -> Settings: ...
    def _crowd(self) -> Crowd: ...
    def _row_open(self) -> int: ...
    def _row_closing(self, row: int, /) -> None: ...
    def _row_close(self, row: int, /) -> None: ...
    def _is_ready(self) -> bool: ...
    def _used(self) -> int: ...
    def _join(self, timeout: float | None, /) -> None: ...
    def _shut_down(self, how: int, /) -> None: ...
    def _delete(self) -> None: ...
    def _purge(self) -> int: ...
    def _browse(self, position: int, /) -> tuple[int, Browsed | None]: ...
    def _browse_wait(self, position: int, timeout: float | None, /) -> None: ...
    def _check(self) -> tuple[str, int] | None: ...
    def _identity(self) -> tuple[int, int]: ...
    def _tail(self) -> int: ...
    def _steal(self, position: int, /) -> Delivery | None: ...

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
    def word(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def tag(self) -> int: ...
    def settle(self) -> bool: ...
    def discard(self) -> bool: ...
    def release(self, attempt: bool, /) -> bool: ...
    def lock(self) -> bool: ...
    def head(self) -> bytes: ...
    def body(self) -> bytes | Literal[False]: ...
    def intact(self) -> bool: ...
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
    def commit(self, content: int, nbytes: int, timeout: float | None, keep: bool, /) -> int: ...
    def abandon(self) -> None: ...
