"""Numbers, sizes, ages and tables for people; and text that cannot command a terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

__all__ = ["age", "duration", "escaped", "size", "table", "wants_colour"]

# C0 and C1 controls without tab and newline, and what turns the direction of writing around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNITS = ("KiB", "MiB", "GiB", "TiB")


def escaped(text: str, *, json: bool = False, line: bool = False) -> str:
    """Control characters as \\x1b or \\u202e.

    json: as \\u001b, which JSON reads back as the same text.
    line: newlines and tabs, too.
    """

    def code(match: re.Match[str]) -> str:
        number = ord(match[0])
        return f"\\x{number:02x}" if number < 256 and not json else f"\\u{number:04x}"

    text = _CONTROL.sub(code, text)
    return text.replace("\n", "\\n").replace("\t", "\\t") if line else text


def size(number: int) -> str:
    """Bytes with a unit: 28 B, 2.8 KiB, 512.0 MiB."""
    if number < 1024:
        return f"{number} B"
    scaled, unit = number / 1024, 0
    while scaled >= 1024 and unit < len(_UNITS) - 1:
        scaled, unit = scaled / 1024, unit + 1
    return f"{scaled:,.1f} {_UNITS[unit]}"


def age(seconds: float | None) -> str:
    """So long ago, in one unit: 2 s, 5 min, 3 h, 4 d; "-" for None."""
    if seconds is None:
        return "-"
    for unit, length, limit in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds / length < limit:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:,.0f} d"


def duration(seconds: float) -> str:
    """As somebody gave it: 1 s, 0.5 s."""
    return f"{seconds:g} s"


def wants_colour() -> bool:
    """Whether stdout is a terminal of somebody who did not say NO_COLOR."""
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns two spaces apart. The first `left` columns are text and stand left, all others right."""
    cells = [[escaped(cell, line=True) for cell in row] for row in [head, *rows]]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            cell + " " * (width - _width(cell)) if column < left else " " * (width - _width(cell)) + cell
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    if wants_colour():
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    return "\n".join(lines)
