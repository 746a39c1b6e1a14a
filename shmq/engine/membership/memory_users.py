"""Lists the users of a broker's memory, for the text of an error that says there is no more."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmq.core.segment import Member

__all__ = ["memory_users"]

# Claims and stages (shmq/spark): what somebody takes out of them is lost to a query, so no remedy may name them.
_OF_SPARK = re.compile(r"\.(spark|stage)\.")


def memory_users(member: Member, asking: str) -> tuple[str, str]:
    """Returns the users of a broker's memory, the largest first, and remedies that make room; "": there is none.

    Arguments:
        asking: the queue that lacks memory.
    """
    uses = [
        (size, kind, name.decode(errors="replace"))
        for name, slots, bodies in member.memory_users()
        for size, kind in ((slots, "slots"), (bodies, "bodies"))
        if size > 0
    ]
    pinned = [(row[9], "views and loans", f"pid {row[3]}") for row in member.processes() if row[9]]
    most = sorted(uses + pinned, reverse=True)[:3]
    users = [f"{kind} of {_user(kind, name)}: {size:,}" for size, kind, name in most]
    if len(uses) + len(pinned) > len(most):
        users.append(f"and {len(uses) + len(pinned) - len(most):,} others")
    return "; ".join(users) or "no process or queue that could be named", ", ".join(_remedies(most, asking))


def _remedies(most: list[tuple[int, str, str]], asking: str) -> list[str]:
    kinds = [kind for _, kind, _ in most]
    full, reserved = (
        [name for _, kind, name in most if kind == wanted and name and not _OF_SPARK.search(name)]
        for wanted in ("bodies", "slots")
    )
    idle = [name for name in reserved if name not in full and name != asking]  # those with messages are emptied first
    remedies = {
        "bodies": f"take messages out of {full[0]!r}" if full else "",
        "slots": f"delete queues that are not needed, as {idle[0]!r}" if idle else "",
        "views and loans": "drop views (shmq ps shows their processes)",
    }
    found = [remedies[kind] for kind in dict.fromkeys(kinds) if remedies[kind]]
    if any(_OF_SPARK.search(name) for _, _, name in most):
        found.append("give Spark smaller batches (maxRowsPerBatch)")
    return found


def _user(kind: str, name: str) -> str:
    if kind == "views and loans":
        return name
    return f"queue {name!r}" if name else "a deleted queue in use"
