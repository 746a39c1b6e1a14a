"""Writes what C and Python say of a queue's options.

tools/options            writes the three files anew from tools/options.toml
tools/options --check    fails if one of them differs from what the table says
"""

import json
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = ROOT / "tools" / "options.toml"
HEADER: Final = ROOT / "native" / "src" / "layout" / "setting.h"
NUMBERS: Final = ROOT / "native" / "src" / "queue" / "setting_table.h"
MODULE: Final = ROOT / "shmq" / "options" / "queue_table.py"
WIDTH: Final = 120

Option = dict[str, Any]  # an entry of the table

# By kind: what a user gives, what QueueSettings has, what the core answers.
TYPES: Final = {
    "count": ("int", "int", "int"),
    "size": ("Size", "int", "int"),
    "switch": ("bool", "bool", "int"),
    "choice": ("Literal[{}]", "str", "int"),
    "seconds": ("float", "float", "int"),
    "name": ("str | Named", "str", "bytes"),
    "delays": ("float | Sequence[float]", "tuple[float, ...]", "tuple[int, ...]"),
    "alerts": ("Alerts", "tuple[float, ...]", "tuple[int, ...]"),
}
NO_NUMBERS: Final = ("name", "delays", "alerts")
REMARKS: Final = {
    "size": "bytes",
    "choice": "of its choices",
    "name": "of the queue",
    "delays": "seconds",
    "alerts": "its fields",
}

HEADER_TEXT: Final = """\
/* The options of a queue: their numbers, and what a declaration says of them. Written by tools/options. */
#ifndef SHMQ_LAYOUT_SETTING_H
#define SHMQ_LAYOUT_SETTING_H

#include <stdbool.h>
#include <stdint.h>

/* Bit in queue.given, index in settings.given_by. */
enum shmq_setting {{
{numbers}
    SHMQ_SETTINGS
}};

{choices}

/* The settings that a declaration gives: those in `given`, no others. */
typedef struct shmq_declaration {{
    uint32_t given; /* bit per enum shmq_setting */
    bool create;
{fields}
}} shmq_declaration;

#endif
"""

NUMBERS_TEXT: Final = """\
/* Written by tools/options, for settings.c: of each option that is a number its field in a declaration, its field in
 * the page, is it fixed, its default, its least and its most; then the names of all. */
#ifndef SHMQ_SETTING_TABLE_H
#define SHMQ_SETTING_TABLE_H

static const number numbers[SHMQ_SETTINGS] = {{
{numbers}
}};

static const char *const names[SHMQ_SETTINGS] = {{
{names}
}};

#endif
"""

MODULE_TEXT: Final = '''\
"""Options of a queue: their types, defaults and ranges. Written by tools/options from tools/options.toml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypedDict

from shmq.alerts import Alerts
from shmq.options.option import Option
from shmq.options.value import NEVER, Size

__all__ = ["QUEUE_TABLE", "QueueOptions", "QueueSettings", "SettingValues"]


class Named(Protocol):
    """A Queue or Exchange, as far as options look at it."""

    @property
    def name(self) -> str: ...


class QueueOptions(TypedDict, total=False):
    """Belong to the queue, kept with it, the same for every process: options of Broker.queue() and Queue.alter().

    Those marked "fixed" are settled when the queue is made; the others can be altered while it is in use, by alter() or
    `shmq declare`.

{means}

    One that shmq does not know is a TypeError, one of a stage that is not built yet a ValueError that says so.

    Example:
        >>> jobs = broker.queue("jobs", max_attempts=5)
        >>> jobs.options["max_attempts"], jobs.options["max_deaths"]
        (5, 3)
    """

{given}


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Options of a queue, checked. None: not given; what a user gives as None is its default here."""

{checked}


class SettingValues(TypedDict):
    """As the core answers. Times are nanoseconds, 2**64 - 1 for never; choices are their numbers."""

{answered}


QUEUE_TABLE: Final = (
{rows}
)
'''


def read() -> list[Option]:
    """The entries of the table, with the numbers put into their texts."""
    options: list[Option] = tomllib.loads(TABLE.read_text())["option"]
    for option in options:
        given = {end: f"{option[end]:,}" for end in ("least", "most") if end in option}
        for text in "means", "remedy":
            if text in option:
                option[text] = option[text].format(default=shown(option), **given)
    return options


def shown(option: Option) -> str:
    """The default as a page says it."""
    default = option.get("default")
    if option.get("none"):
        return "None"
    if option["kind"] == "delays":
        return ", ".join(f"{step:g}" for step in default or ())
    return f"{default:,}" if type(default) is int else json.dumps(default)


# ---- C --------------------------------------------------------------------------------------------------------------


def constant(option: Option) -> str:
    return f"SHMQ_SET_{option['name'].upper()}"


def field(option: Option) -> str:
    """The field of a declaration: it has the name of the one in the queue's page."""
    return str(option["kept"].rpartition(".")[2])


def enumeration(option: Option) -> str:
    tag, prefix = option["enum"]
    members = (f"{prefix}_{choice.upper()} = {number}" for number, choice in enumerate(option["choices"]))
    return f"enum {tag} {{ {', '.join(members)} }};"


def declared(option: Option) -> str:
    if option["kind"] == "name":
        return f"    const char *{field(option)};\n    uint32_t {field(option)}_len;"
    if option["kind"] == "delays":
        steps = field(option).replace("delay_ns", "steps")
        return f"    uint64_t {field(option)}[{option['most']}];\n    uint32_t {steps};"
    if option["kind"] == "alerts":
        return f"    uint64_t {field(option)}[{option['most']}];"
    return f"    uint64_t {field(option)};"


def in_core(option: Option) -> tuple[str, str, str]:
    """Default, least and most of what is kept."""
    default = option["default"]
    if option["kind"] == "switch":
        return str(int(default)), "0", "1"
    if option["kind"] == "choice":
        return str(option["choices"].index(default)), "0", str(len(option["choices"]) - 1)
    if option["kind"] == "seconds":
        never = "SHMQ_NEVER"
        return never if default == "never" else str(round(default * 1e9)), str(round(option["least"] * 1e9)), never
    return str(default), str(min(option["least"], default)), str(option["most"])


def number(option: Option) -> str:
    fixed = str(bool(option.get("fixed"))).lower()
    values = ", ".join(in_core(option))
    return f"    [{constant(option)}] = NUMBER({field(option)}, {option['kept']}, {fixed}, {values}),"


def header(options: Sequence[Option]) -> str:
    return HEADER_TEXT.format(
        numbers="\n".join(f"    {constant(option)} = {place}," for place, option in enumerate(options)),
        choices="\n".join(enumeration(option) for option in options if option["kind"] == "choice"),
        fields="\n".join(declared(option) for option in options),
    )


def numbers(options: Sequence[Option]) -> str:
    return NUMBERS_TEXT.format(
        numbers="\n".join(number(option) for option in options if option["kind"] not in NO_NUMBERS),
        names="\n".join(f'    [{constant(option)}] = "{option["name"]}",' for option in options),
    )


# ---- Python ---------------------------------------------------------------------------------------------------------


def literal(value: object) -> str:
    """As the formatter writes it."""
    if value == "never":
        return "NEVER"
    if isinstance(value, str):
        return f"'{value}'" if '"' in value else f'"{value}"'
    if isinstance(value, list):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    return f"{value:_}" if type(value) is int else repr(value)


def meaning(option: Option) -> str:
    return textwrap.fill(
        f"{option['name']}: {option['means']}",
        WIDTH,
        initial_indent="    ",
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def given(option: Option) -> str:
    choices = [choice for choice in option.get("choices", ()) if not (option.get("none") and choice == "none")]
    kind = TYPES[option["kind"]][0].format(", ".join(map(literal, choices)))
    return f"    {option['name']}: {kind}{' | None' if option.get('none') else ''}"


def checked(option: Option) -> str:
    remark = REMARKS.get(option["kind"], "")
    if option["kind"] == "seconds":
        remark = "seconds, or NEVER" if option.get("none") else "seconds"
    return f"    {option['name']}: {TYPES[option['kind']][1]} | None = None{f'  # {remark}' if remark else ''}"


def arguments(option: Option) -> Iterator[str]:
    yield literal(option["name"])
    yield literal(option["kind"])
    for name in ("default", "least", "most", "step", "choices", "fixed", "none", "remedy"):
        if name in option:
            yield f"{'may_be_none' if name == 'none' else name}={literal(option[name])}"


def row(option: Option) -> str:
    return "\n".join(["    Option(", *(f"        {argument}," for argument in arguments(option)), "    ),"])


def module(options: Sequence[Option]) -> str:
    return MODULE_TEXT.format(
        means="\n".join(map(meaning, options)),
        given="\n".join(map(given, options)),
        checked="\n".join(map(checked, options)),
        answered="\n".join(f"    {option['name']}: {TYPES[option['kind']][2]}" for option in options),
        rows="\n".join(map(row, options)),
    )


def main(arguments: Sequence[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    options = read()
    wanted = {HEADER: header(options), NUMBERS: numbers(options), MODULE: module(options)}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not arguments:
            path.write_text(wanted[path])
        print(f"{path.relative_to(ROOT)}: {'differs from tools/options.toml' if arguments else 'written'}")
    if stale and arguments:
        print("run tools/options, and look at the changes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
