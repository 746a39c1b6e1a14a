"""How far a streaming query has come: what Spark keeps in its checkpoint, and compares as text.

    {"empty": 0, "queues": {"orders": {"id": "9f2c...-3-7", "position": 4096, "rows": 4090}}, "version": 1}

Of each queue the offset names the claimed entries below `position` (see claim.py), `rows` of them since the query's
first batch. Between two positions there may be places that hold nothing, since a mover was killed. The rows say how
many entries a range has, so that a missing one is noticed. `id` is of the queue that holds them: another one, made anew
under its name, has another id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Offset", "Reached"]

VERSION: Final = 1


@dataclass(frozen=True)
class Reached:
    """The part of an offset for one queue.

    Arguments:
        id: of the queue that holds the claimed entries.
        position: behind the last entry; exclusive.
        rows: how many entries lie below, counted from the query's first batch.
    """

    id: str
    position: int
    rows: int


@dataclass(frozen=True)
class Offset:
    """One place in all queues of a query; the same place has the same text.

    Arguments:
        queues: how far each has been read, by the name of the queue whose entries are claimed.
        empty: how many batches without rows came before. Spark acknowledges a batch while it plans the next one; where
            there is no room for another claim before that, an empty one is planned.

    Example:
        >>> Offset({"orders": Reached("9f2c-3-7", 2, 2)}).text()
        '{"empty": 0, "queues": {"orders": {"id": "9f2c-3-7", "position": 2, "rows": 2}}, "version": 1}'
    """

    queues: Mapping[str, Reached]
    empty: int = 0

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> Offset:
        """Reads an offset that Spark gives back. Raises a ValueError that names the part that does not fit."""
        try:
            found = json.loads(given) if isinstance(given, str) else given
            if found["version"] != VERSION:
                raise ValueError(
                    f"an offset of version {found['version']!r}, this shmq knows version {VERSION}; "
                    "go on with the shmq that wrote the checkpoint, or begin a new one"
                )
            queues = {name: _reached(entry) for name, entry in sorted(found["queues"].items())}
            return cls(queues, _number(found["empty"]))
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{given!r} is not an offset of shmq ({type(error).__name__}: {error}); "
                "is this the checkpoint of another source?"
            ) from None

    def plain(self) -> dict[str, Any]:
        """Returns the offset for Spark, with sorted keys: so the same offset has always the same JSON text."""
        queues = {
            name: {"id": reached.id, "position": reached.position, "rows": reached.rows}
            for name, reached in sorted(self.queues.items())
        }
        return {"empty": self.empty, "queues": queues, "version": VERSION}

    def text(self) -> str:
        return json.dumps(self.plain())


def _reached(entry: Mapping[str, Any]) -> Reached:
    if not isinstance(entry["id"], str):
        raise TypeError("id is not a text")
    return Reached(entry["id"], _number(entry["position"]), _number(entry["rows"]))


def _number(found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ValueError(f"{found!r} in an offset: a whole number from 0 on is expected")
    return found
