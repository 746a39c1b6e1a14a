"""Answers and arguments of the functions of shmq._native: dictionaries and tuples."""

from typing import TypedDict

from typing_extensions import Buffer

from shmq.options.queue_table import SettingValues

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
    epoch: int
    patience_ns: int
    disk: int
    granules: int
    uid: int
    mode: int
    anonymous: bool
    uuid: bytes
    key_check: bytes  # b"": nothing is encrypted
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

class Sight(TypedDict):
    """A queue as an Observer saw it."""

    words: tuple[str, int | None, int | None] | None  # what is wrong, on which level, in which slot
    messages: tuple[str, int | None, int | None] | None
    undecided: str | None  # what looked wrong, but never twice in the same way
    broken: int
    entries: int
    bodies: tuple[int, int, int, int, int]  # entries, verified, without checksums, moved, damaged
    mover: int  # pid of who moves messages to or from disk, or has died at it; 0: nobody

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
    on_disk: int
    disk_bytes: int

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

class Settings(SettingValues):
    """Times are nanoseconds, 2**64 - 1 for never; choices are their numbers."""

    given: int
    slots: int
    flows: bool
    shut_down: int
    created_ns: int
    created_by: int
    given_by: tuple[int, ...]

class QueueUsers(TypedDict):
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

# row, generation, state, pid, start_time, pid_namespace, attached_ns, name, held, pinned_bytes, inside, dead
ProcessRow = tuple[int, int, int, int, int, int, int, str, int, int, int, bool]
