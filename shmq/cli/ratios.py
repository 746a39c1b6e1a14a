"""shmq bench ratios: what each use of a queue costs beside the comfortable case, and is allowed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmq.cli.interruption import loading
from shmq.cli.measuring import json_option, measuring, print_rows
from shmq.quantity import quantity

if TYPE_CHECKING:
    from shmq.bench.ratios.table import Row

__all__ = ["ratios"]

_COLUMNS = {
    "name": "",
    "baseline": "baseline us",
    "variant": "variant us",
    "factor": "times",
    "at_most": "allowed",
    "goal": "goal",
    "verdict": "",
}
_LISTED = {"name": "", "beside": "baseline", "variant": "variant", "allowed": "allowed", "goal": "goal", "when": ""}


@dataclass(frozen=True, slots=True)
class _Listed:
    """A row as it stands in the table."""

    name: str
    beside: str
    variant: str
    allowed: float | None
    goal: float | None
    when: str


@click.command(short_help="How many times as much a use costs, and may cost.")
@click.option("--only", metavar="ROW", multiple=True, help="A row, or all of a verb, on demand or not; several times.")
@click.option("--all", "every", is_flag=True, help="Also the rows that need more depth, memory or processes.")
@click.option("--list", "listing", is_flag=True, help="Show the rows and measure nothing.")
@click.option("--table", metavar="FILE", help="Other rows than those of shmq: a TOML of the same form.")
@json_option
@click.pass_context
def ratios(context: click.Context, only: tuple[str, ...], every: bool, listing: bool, table: str | None) -> None:
    """CPU time of a call in some situation, beside the same call in the comfortable one: 100 messages of 64 bytes.

    Situations are a deep queue, many consumers, a large body, an option of put. Short rounds of both run in turn, so
    that a busy machine hardly matters; "times" is the median of the rounds' factors. A row has failed when it was above
    its allowed factor four times; the exit code is 1 then. "open": allowed, and above the goal. "reached": the goal.

    It takes a minute or two, and a few hundred MiB of disk. It has at most 1 GiB of /dev/shm at a time (with --all 2
    GiB).

    \b
    Example:
      shmq bench ratios
      shmq bench ratios --list
      shmq bench ratios --only get --only put.headers
      shmq bench ratios --all --json
    """
    with loading():
        from shmq.bench.ratios.measure import measure_ratios
        from shmq.bench.ratios.table import TABLE, read_rows
    try:
        rows = _chosen(read_rows(Path(table) if table else TABLE), only, every or listing)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    if listing:
        print_rows(quantity(len(rows), "row"), [_listed(row) for row in rows], _LISTED)
        return
    with measuring() as say:
        found = list(measure_ratios(rows, progress=say))
    print_rows(f"CPU time of a call, {quantity(len(rows), 'row')}", found, _COLUMNS)
    for row in found:
        if row.note:
            click.echo(f"{row.name}: {row.note}", err=True)
    failed = [row.name for row in found if row.failed]
    if failed:
        click.echo(f"shmq: above what is allowed: {', '.join(failed)}", err=True)
        context.exit(1)


def _chosen(rows: Sequence[Row], only: Sequence[str], every: bool) -> list[Row]:
    """ValueError for a name that there is not."""
    for name in only:
        if not any(name in (row.name, row.verbs[1]) for row in rows):
            near = get_close_matches(name, [word for row in rows for word in (row.name, row.verbs[1])], 1)
            hint = f", did you mean {near[0]!r}?" if near else ";"
            raise ValueError(f"there is no row {name!r}{hint} shmq bench ratios --list shows all")
    if only:
        return [row for row in rows if row.name in only or row.verbs[1] in only]
    return [row for row in rows if every or not row.on_demand]


def _listed(row: Row) -> _Listed:
    allowed = None if isinf(row.at_most) else row.at_most
    return _Listed(row.name, row.beside, row.variant, allowed, row.goal, "on demand" if row.on_demand else "")
