"""What travels between a gateway and its callers besides rows: JSON, of which each part is checked when it arrives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import shmq.errors
from shmq.errors import ShmqError
from shmq.spark.data_lost import DataLost
from shmq.spark.entry_range import EntryRange
from shmq.spark.gateway.gateway_error import GatewayError
from shmq.spark.sink import Staged
from shmq.spark.stage import Stage

__all__ = [
    "PROTOCOL",
    "dumps",
    "error_of",
    "loads",
    "plain_error",
    "plain_range",
    "plain_staged",
    "range_of",
    "stages_of",
    "staged_of",
]

PROTOCOL: Final = 2
_OWN: Final = {name: getattr(shmq.errors, name) for name in shmq.errors.__all__} | {
    "DataLost": DataLost,
    "GatewayError": GatewayError,
}
_PYTHON: Final[Mapping[str, type[Exception]]] = {
    "ValueError": ValueError, "TypeError": TypeError, "PermissionError": PermissionError
}  # fmt: skip


def dumps(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def loads(data: bytes) -> dict[str, Any]:
    """Raises ValueError for what is no JSON object."""
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(f"an object is expected, not {found!r:.80}")
    return found


def _checked(found: object, name: str, kind: type) -> Any:
    if isinstance(found, bool) is not (kind is bool) or not isinstance(found, kind):
        raise ValueError(f"{name}={found!r:.80} is no {kind.__name__}")
    return found


def plain_range(range: EntryRange) -> dict[str, Any]:
    return asdict(range)


def range_of(found: Mapping[str, Any]) -> EntryRange:
    """Raises ValueError, KeyError."""
    queue, held_by, id = (_checked(found[name], name, str) for name in ("queue", "held_by", "id"))
    begin, end = (_checked(found[name], name, int) for name in ("begin", "end"))
    rows = None if found["rows"] is None else _checked(found["rows"], "rows", int)
    return EntryRange(queue, held_by, id, begin, end, rows)


def stages_of(found: Sequence[Mapping[str, Any]]) -> tuple[Stage, ...]:
    """Raises ValueError, KeyError."""
    return tuple(
        Stage(
            _checked(one["queue"], "queue", str),
            _checked(one["id"], "id", str),
            _checked(one["count"], "count", int),
            _checked(one["timed"], "timed", bool),
        )
        for one in found
    )


def plain_staged(staged: Staged) -> dict[str, Any]:
    return {"query": staged.query, "stages": [asdict(stage) for stage in staged.stages]}


def staged_of(found: Mapping[str, Any]) -> Staged:
    return Staged(_checked(found["query"], "query", str), stages_of(found["stages"]))


def plain_error(error: Exception) -> dict[str, str]:
    """An error in words, so that the caller can raise its like."""
    name = type(error).__name__
    if isinstance(error, ShmqError):
        return {"type": name, "what": error.what, "figures": error.figures, "remedy": error.remedy}
    return {"type": name, "what": str(error), "figures": "", "remedy": ""}


def error_of(found: Mapping[str, str], gateway: str) -> Exception:
    """The error that a gateway has had, as one of the same kind.

    Arguments:
        found: as plain_error() makes it.
        gateway: its URI, for the text.
    """
    name, what, figures, remedy = (str(found.get(part, "")) for part in ("type", "what", "figures", "remedy"))
    what = f"{gateway}: {what}"
    if name in _PYTHON:
        return _PYTHON[name](what)
    if name in _OWN:
        try:
            own: Exception = _OWN[name](what, figures=figures, remedy=remedy)
            return own
        except TypeError:
            pass  # wants to know more
    return GatewayError(f"{what} ({name})" if name not in _OWN else what, figures=figures, remedy=remedy)
