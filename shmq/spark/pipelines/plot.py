"""Plots as SVG text: no script, colours by CSS classes, so that a page decides how light or dark they are."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Frame", "lines", "seconds_text", "shown", "steps", "time_text"]

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 720, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 26
_TIMES: Final = (60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 31_536_000)
_LONGS: Final = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000)
_DAY: Final = 86_400
# C0 and C1 controls, and what turns the direction of writing around.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """Returns an untrusted text as HTML that shows it and does nothing else."""
    return escape(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text), quote=True)


def seconds_text(seconds: float) -> str:
    """Writes a duration in one unit: 250 µs, 1.5 ms, 20 s, 5 min, 3 h, 4 d."""
    for unit, length, limit in (("µs", 1e-6, 1e3), ("ms", 1e-3, 1e3), ("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * limit:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / _DAY:,.0f} d"


def time_text(at: float) -> str:
    """Writes a POSIX time in UTC: 2026-03-01 12:00."""
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class Frame:
    """The frame that all plots of a page have in common, so that one can be laid over the other by eye.

    Arguments:
        begin, end: POSIX seconds.
    """

    begin: float
    end: float

    def x(self, at: float) -> float:
        part = (at - self.begin) / max(self.end - self.begin, 1e-9)
        return _LEFT + min(max(part, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[tuple[float, str]]:
        """Returns at most seven round times, each with its label."""
        span = self.end - self.begin
        step = next((step for step in _TIMES if span / step <= 7), _TIMES[-1])
        first = math.ceil(self.begin / step) * step
        return [(at, _tick(at, step)) for at in range(int(first), int(self.end) + 1, step)]


def _tick(at: float, step: int) -> str:
    time = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f"{time:%m-%d}" if step >= _DAY or at % _DAY == 0 else f"{time:%H:%M}"


def steps(frame: Frame, points: Points, name: str) -> str:
    """A number that stays as it is from one point to the next, as an area that begins at zero.

    Arguments:
        frame: of the page.
        points: POSIX seconds and the number from then on, in order.
        name: of what is shown, for who cannot see it.
    """
    top = _nice(max((value for _, value in points), default=0))
    y = _scale(0, top)
    path = f"M{_n(frame.x(points[0][0]))},{_n(y(0))}" if points else ""
    for at, value in points:
        path += f"H{_n(frame.x(at))}V{_n(y(value))}"
    line = f"{path}H{_n(frame.x(frame.end))}" if points else ""
    area = f"{line}V{_n(y(0))}Z" if points else ""
    marks = "".join(
        f'<rect class="hit" x="{_n(frame.x(at))}" y="{_TOP}" width="{_n(max(frame.x(until) - frame.x(at), 1))}" '
        f'height="{_HEIGHT - _TOP - _BOTTOM}"><title>{time_text(at)}: {value:,.0f}</title></rect>'
        for (at, value), (until, _) in zip(points, [*points[1:], (frame.end, 0)], strict=False)
    )
    ticks = [(y(value), f"{value:,.0f}") for value in sorted({0, top / 2, top}) if value == int(value)]
    drawn = f'<path class="area" d="{area}"/><path class="line a" d="{line}"/>{marks}'
    return _svg(frame, ticks, drawn, name)


def lines(frame: Frame, series: Mapping[str, Points], name: str) -> str:
    """Durations over time, on a logarithmic scale, with a legend.

    Arguments:
        frame: of the page.
        series: names, and POSIX seconds with durations in seconds; five at most.
        name: as in steps().
    """
    values = [max(value, _LONGS[0]) for points in series.values() for _, value in points]
    low = max((mark for mark in _LONGS if mark <= min(values, default=1)), default=_LONGS[0])
    high = min((mark for mark in _LONGS if mark >= max(values, default=1) and mark > low), default=_LONGS[-1])
    y = _scale(math.log(low), math.log(high))
    drawn = ""
    for letter, points in zip("abcde", series.values(), strict=False):
        kind = "dot" if len(points) < 60 else "hit"  # many are a line that tells its numbers to who points at it
        places = [(frame.x(at), y(math.log(max(value, low))), at, value) for at, value in points]
        drawn += f'<polyline class="line {letter}" points="{" ".join(f"{_n(x)},{_n(at)}" for x, at, *_ in places)}"/>'
        drawn += "".join(
            f'<circle class="{kind} {letter}" cx="{_n(x)}" cy="{_n(place)}" r="3">'
            f"<title>{time_text(at)}: {escape(seconds_text(value))}</title></circle>"
            for x, place, at, value in places
        )
    marks = [mark for mark in _LONGS if low <= mark <= high]
    ticks = [(y(math.log(mark)), seconds_text(mark)) for mark in marks[:: max(1, -(-len(marks) // 5))]]
    return _legend(series) + _svg(frame, ticks, drawn, name)


def _legend(names: Iterable[str]) -> str:
    keys = "".join(
        f'<span><i class="key {letter}"></i>{shown(name)}</span>' for letter, name in zip("abcde", names, strict=False)
    )
    return f'<p class="legend">{keys}</p>'


def _scale(low: float, high: float) -> Callable[[float], float]:
    """Returns the function from a value to its height in the picture."""
    span = max(high - low, 1e-12)
    return lambda value: _HEIGHT - _BOTTOM - (value - low) / span * (_HEIGHT - _TOP - _BOTTOM)


def _nice(value: float) -> float:
    """Returns the least round number that is not below the value."""
    if value <= 1:
        return 1
    size: float = 10.0 ** math.floor(math.log10(value))
    return next(size * factor for factor in (1, 2, 3, 4, 5, 6, 8, 10) if size * factor >= value)


def _n(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")


def _svg(frame: Frame, ticks: Iterable[tuple[float, str]], drawn: str, name: str) -> str:
    rows = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_n(at)}" y2="{_n(at)}"/>'
        f'<text class="tick" x="{_LEFT - 8}" y="{_n(at + 4)}" text-anchor="end">{escape(text)}</text>'
        for at, text in ticks
    )
    columns = "".join(
        f'<text class="tick" x="{_n(frame.x(at))}" y="{_HEIGHT - 8}" text-anchor="middle">{text}</text>'
        for at, text in frame.ticks()
    )
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{shown(name)}">{rows}{columns}{drawn}</svg>'
