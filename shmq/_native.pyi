from collections.abc import Callable
from typing import TypedDict, final

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
