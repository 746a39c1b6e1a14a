"""Texts between a gateway and its callers, besides rows: JSON, of which each part is checked when it arrives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
    "field",
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
_MOST_BYTES: Final = 8 << 20  # of a text: a commit names the stages of all tasks, each in 150 bytes
_MOST_DEPTH: Final = 8  # of lists and objects in each other; a commit for several hosts has four
_MOST_NAME: Final = 1000  # characters of a name, such as that of a query
_LARGEST: Final = (1 << 63) - 1
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
    """Raises ValueError for what is no JSON object, too long, or too deep."""
    if len(data) > _MOST_BYTES:
        raise ValueError(f"a text of {len(data):,} bytes came, and {_MOST_BYTES:,} are the most")
    try:
        found = json.loads(data)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise ValueError(f"a JSON object is expected: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"a JSON object is expected, not {found!r:.80}")
    level: list[object] = [found]
    for _ in range(_MOST_DEPTH):
        level = [each for part in level for each in _parts(part)]
    if level:
        raise _too_deep()
    return found


def _parts(value: object) -> Iterable[object]:
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (each for each in found if isinstance(each, dict | list))


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects lie in each other more than {_MOST_DEPTH} deep, which are the most")


def field(said: Mapping[str, Any], name: str, kind: type) -> Any:
    """One field of a text: a number from 0 on, a name that is not too long, a list, an object, or a truth value.

    Raises ValueError naming it.
    """
    if name not in said:
        raise ValueError(f"the field {name!r} is missing; a caller with the same shmq sends it")
    return _checked(said[name], name, kind)


def _checked(found: object, name: str, kind: type) -> Any:
    if isinstance(found, bool) is not (kind is bool) or not isinstance(found, kind):
        raise ValueError(f"{name}={found!r:.80} is no {kind.__name__}")
    if kind is int and not 0 <= found <= _LARGEST:  # type: ignore[operator]
        raise ValueError(f"{name}={found!r:.80}: a whole number from 0 to {_LARGEST} is expected")
    if kind is str and len(found) > _MOST_NAME:  # type: ignore[arg-type]
        raise ValueError(f"{name} has {len(found):,} characters, and {_MOST_NAME:,} are the most")  # type: ignore[arg-type]
    return found


def plain_range(range: EntryRange) -> dict[str, Any]:
    return asdict(range)


def range_of(found: Mapping[str, Any]) -> EntryRange:
    """Raises ValueError."""
    queue, held_by, id = (field(found, name, str) for name in ("queue", "held_by", "id"))
    begin, end = (field(found, name, int) for name in ("begin", "end"))
    rows = None if found.get("rows") is None else field(found, "rows", int)
    return EntryRange(queue, held_by, id, begin, end, rows)


def stages_of(found: object) -> tuple[Stage, ...]:
    """Raises ValueError."""
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"stages={found!r:.80} is no list of objects")
    return tuple(
        Stage(
            field(one, "queue", str),
            field(one, "id", str),
            field(one, "count", int),
            field(one, "timed", bool),
            field(one, "into", str),
            field(one, "into_id", str),
        )
        for one in found
    )


def plain_staged(staged: Staged) -> dict[str, Any]:
    return {"query": staged.query, "stages": [asdict(stage) for stage in staged.stages]}


def staged_of(found: Mapping[str, Any]) -> Staged:
    return Staged(field(found, "query", str), stages_of(found["stages"]))


def plain_error(error: Exception) -> dict[str, str]:
    """Converts an error to JSON, from which the caller makes an error of the same kind."""
    name = type(error).__name__
    if isinstance(error, ShmqError):
        return {"type": name, "what": error.what, "figures": error.figures, "remedy": error.remedy}
    return {"type": name, "what": str(error), "figures": "", "remedy": ""}


def error_of(found: Mapping[str, str], gateway: str) -> Exception:
    """Makes an error of the kind that a gateway has had.

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
