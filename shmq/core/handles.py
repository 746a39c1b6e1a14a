"""Functions by which the engine asks handles of the core that are not its own: queues, messages and consumers.

The classes of the core are the bases of what users hold, so their methods have names with an underscore. These are the
same methods, without a frame in between, for callers that have such a handle and are not its class.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from shmq._native import ConsumerHandle, MessageHandle, QueueHandle

__all__ = [
    "acquire",
    "alert_flow",
    "alert_is_ours",
    "alert_largest",
    "alert_look",
    "browse_columns",
    "browse_entry",
    "census_of",
    "claim_entries",
    "content_of",
    "counters_of",
    "users_of",
    "data_of",
    "deaths_of",
    "delete_at_once",
    "directory_entry",
    "discard_below",
    "ends_of",
    "enqueued_ns_of",
    "expires_ns_of",
    "failed_of",
    "flows",
    "get_columns",
    "head_of",
    "hurry_rows",
    "id_of",
    "is_ready",
    "is_unused",
    "open_row",
    "outcome_of",
    "own_expires_ns_of",
    "purge_at",
    "put_column",
    "put_encoded",
    "settings_of",
    "settings_version",
    "shut_down",
    "steal",
    "steal_expired",
    "steal_left",
    "steal_poisoned",
    "takers_of",
    "used_of",
    "wait_for_newcomers",
    "was_closed",
    "was_redelivered",
]

# ---- queues ----------------------------------------------------------------------------------------------------

acquire: Final = QueueHandle._acquire
alert_flow: Final = QueueHandle._alert_flow
alert_is_ours: Final = QueueHandle._alert_is_ours
alert_largest: Final = QueueHandle._alert_largest
alert_look: Final = QueueHandle._alert_look
browse_columns: Final = QueueHandle._browse_columns
browse_entry: Final = QueueHandle._browse
census_of: Final = QueueHandle._census
claim_entries: Final = QueueHandle._claim
counters_of: Final = QueueHandle._counters
users_of: Final = QueueHandle._waiters
delete_at_once: Final = QueueHandle._delete
get_columns: Final = QueueHandle._get_columns
directory_entry: Final = QueueHandle._identity
discard_below: Final = QueueHandle._discard_below
ends_of: Final = QueueHandle._ends
is_ready: Final = QueueHandle._is_ready
is_unused: Final = QueueHandle._is_unused
open_row: Final = QueueHandle._row_open
purge_at: Final = QueueHandle._purge_at
put_column: Final = QueueHandle._put_column
put_encoded: Final = QueueHandle._put_encoded
settings_of: Final = QueueHandle._settings
settings_version: Final = QueueHandle._settings_version
shut_down: Final = QueueHandle._shut_down
steal: Final = QueueHandle._steal
flows: Final = QueueHandle._flows
hurry_rows: Final = QueueHandle._hurry_rows
steal_expired: Final = QueueHandle._steal_expired
steal_left: Final = QueueHandle._steal_left
steal_poisoned: Final = QueueHandle._steal_poisoned
takers_of: Final = QueueHandle._takers
used_of: Final = QueueHandle._used
wait_for_newcomers: Final = QueueHandle._browse_wait

# ---- messages --------------------------------------------------------------------------------------------------

data_of: Final = MessageHandle._data
content_of: Final[Callable[[MessageHandle], int]] = attrgetter("_content")
deaths_of: Final[Callable[[MessageHandle], int]] = attrgetter("_deaths")
enqueued_ns_of: Final[Callable[[MessageHandle], int]] = attrgetter("_enqueued_ns")
expires_ns_of: Final[Callable[[MessageHandle], int]] = attrgetter("_expires_ns")
failed_of: Final[Callable[[MessageHandle], int]] = attrgetter("_failed")
head_of: Final[Callable[[MessageHandle], bytes]] = attrgetter("_head")
id_of: Final[Callable[[MessageHandle], int]] = attrgetter("_id")
outcome_of: Final[Callable[[MessageHandle], str | None]] = attrgetter("_outcome")
own_expires_ns_of: Final[Callable[[MessageHandle], int]] = attrgetter("_own_expires_ns")
was_redelivered: Final[Callable[[MessageHandle], bool]] = attrgetter("_redelivered")

# ---- consumers -------------------------------------------------------------------------------------------------

was_closed: Final[Callable[[ConsumerHandle], bool]] = attrgetter("_closed")
