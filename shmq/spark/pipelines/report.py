"""Statistics as one HTML page: no script, nothing from elsewhere, light or dark as its reader likes it.

Texts of messages, their headers, errors and queues are anybody's: each goes through shown().
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from shmq.quantity import quantity
from shmq.spark.pipelines.plot import Frame, lines, seconds_text, shown, steps, time_text
from shmq.spark.pipelines.report_style import STYLE

if TYPE_CHECKING:
    from shmq.spark.pipelines.statistics import Row, Statistics

__all__ = ["report"]

_SECONDS: Final = {"minute": 60, "hour": 3600, "day": 86_400}
_PLOTS: Final = 12  # queues that have plots; all are in the table
_QUANTILES: Final = {"half": "p50", "90 %": "p90", "99 %": "p99"}


def report(found: Statistics, title: str) -> str:
    """Writes the page as HTML.

    Arguments:
        found: as collected() gives them.
        title: what was looked at, such as the broker's directory.
    """
    parts = [
        _head(found, title),
        _queues(found),
        _over_time(found),
        _redelivered(found.redelivered),
        _poison(found.poison),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown(title)}: queues</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def _head(found: Statistics, title: str) -> str:
    totals = [
        ("waiting", sum(row["waiting"] for row in found.queues), False),
        ("archived", sum(row["left"] for row in found.queues), False),
        ("redelivered", sum(row["redelivered"] for row in found.queues), False),
        ("dead", sum(row["dead"] for row in found.queues), True),
    ]
    cards = "".join(
        f"<li{' class=bad' if bad and count else ''}><b>{count:,}</b>{name}</li>" for name, count, bad in totals
    )
    return (
        f'<h1>{shown(title)}</h1>\n<p class="soft">{quantity(len(found.queues), "queue")}, looked at on '
        f'{time_text(found.at)}. All times are UTC.</p>\n<ul class="totals">{cards}</ul>'
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML, with their <td>."""
    names = "".join(f"<th>{name}</th>" for name in head)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="card scroll"><table><thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _theirs(text: str | None) -> str:
    return f'<td class="theirs"><bdi>{shown(text)}</bdi></td>' if text else "<td>-</td>"


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'


def _wait(seconds: float | None) -> str:
    return _number("-" if seconds is None else seconds_text(seconds))


def _queues(found: Statistics) -> str:
    head = ["Queue", "Waiting", "Archived", "Dead", "Redelivered", "Bytes", "Half waited", "90 %", "99 %", "Longest"]
    rows = [
        [
            _theirs(row["queue"]),
            *[_number(f"{row[name] or 0:,}") for name in ("waiting", "left", "dead", "redelivered", "bytes")],
            *[_wait(row[name]) for name in ("p50", "p90", "p99", "longest")],
        ]
        for row in found.queues
    ]
    note = "How long messages have waited, at most; of those that were archived, how long they had waited."
    return f'<h2>Queues</h2>\n{_table(head, rows)}\n<p class="soft">{note}</p>'


def _over_time(found: Statistics) -> str:
    if not found.minutes:
        return ""
    step = _SECONDS[found.every]
    ends = [found.at if row["waiting"] or row["dead"] else row["last_at"] for row in found.queues]
    begin = min(row["minute"] for row in found.minutes)
    frame = Frame(begin, max([begin + step, *ends]))
    busiest = sorted(found.queues, key=lambda row: -(row["waiting"] + row["left"] + row["dead"]))[:_PLOTS]
    plots = "\n".join(_plots_of(found, row["queue"], frame) for row in busiest)
    more = len(found.queues) - len(busiest)
    note = f"Each step is one {found.every}. Messages that others took out of a queue are not known: the depth is that "
    note += "of the messages which are still there, or were archived."
    rest = f" {quantity(more, 'queue')} with fewer messages not shown." if more else ""
    return f'<h2>Over time</h2>\n<p class="soft">{note}{rest}</p>\n<div class="plots">\n{plots}\n</div>'


def _plots_of(found: Statistics, queue: str, frame: Frame) -> str:
    depth = [(row["minute"], row["depth"]) for row in found.minutes if row["queue"] == queue]
    waits = [row for row in found.waits_by_minute if row["queue"] == queue]
    name = f"<h3><bdi>{shown(queue)}</bdi></h3>"
    figures = []
    if depth:
        drawn = steps(frame, depth, f"depth of {queue}")
        figures.append(f"<figure>{name}<figcaption>depth</figcaption>{drawn}</figure>")
    if waits:
        series = {text: [(row["minute"], row[key]) for row in waits] for text, key in _QUANTILES.items()}
        caption = f"wait of what was put in each {found.every}, at most"
        drawn = lines(frame, series, f"waits in {queue}")
        figures.append(f"<figure>{name}<figcaption>{caption}</figcaption>{drawn}</figure>")
    return "\n".join(figures)


def _bar(part: float, kind: str = "") -> str:
    return f'<span class="bar{kind}"><i style="width:{100 * min(max(part, 0.0), 1.0):.1f}%"></i></span>'


def _redelivered(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    most = max(row["entries"] for row in rows)
    cells = [
        [
            _theirs(row["queue"]),
            _number(f"{row['delivery_count']:,}"),
            f"<td>{row['entries']:,}{_bar(row['entries'] / most, ' calm')}</td>",
            f"<td>{time_text(row['first_at'])}</td>",
        ]
        for row in rows
    ]
    note = "Delivered before, and back in the queue: a handler failed, gave it back, or died."
    table = _table(["Queue", "Deliveries", "Messages", "Earliest put"], cells)
    return f'<h2>Redelivered</h2>\n<p class="soft">{note}</p>\n{table}'


def _poison(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    cells = [
        [
            _theirs(row["queue"]),
            f"<td>{shown(row['by'])}</td>",
            _theirs(row["preview"] or row["value"]),
            _theirs(row["error"]),
            f"<td>{shown(', '.join(row['reasons']))}</td>",
            f"<td>{row['dead']:,} of {row['dead'] + row['others']:,}"
            f"{_bar(row['dead'] / max(row['dead'] + row['others'], 1))}</td>",
            _number("no other has it" if row["lift"] is None else f"{row['lift']:,.1f} times"),
            f"<td>{time_text(row['last_at'])}</td>",
        ]
        for row in rows
    ]
    head = ["Died in", "By", "Value", "Last error", "Reasons", "Dead", "As frequent", "Last death"]
    note = "Traits of dead letters that others have not: a group, the same content, a header with its value. "
    note += "How many of those that have it are dead, and how much more frequent it is among the dead."
    return f'<h2>Poison candidates</h2>\n<p class="soft">{note}</p>\n{_table(head, cells)}'
