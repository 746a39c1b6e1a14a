"""Calls in the core go downward: who calls whom in native/src is compared with the order of its folders, its rooms.

So do includes: a header lies in the room that defines what it declares, so a file sees no name of a higher room.
Where tools/layers.toml gives the files of a room an order, calls between these go downward, too.

Read from the text, without a compiler: a name that a source defines for others, and another source mentions. Inline
functions and macros of headers lie in no room: who uses one uses what stands in it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.repo.tree import ROOT, files, name_of

TABLE = tomllib.loads((ROOT / "tools" / "layers.toml").read_text())["native"]
ROOMS: list[str] = TABLE["rooms"]
FILES: dict[str, list[str]] = TABLE["files"]
HOOK: str = TABLE["hook"]
CORE = "native/src"
LAYOUT = "layout"  # the room that has headers only
SAY_WHICH = (LAYOUT, "recovery", "check")  # files of these say which room they are about

NOISE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
HEAD = r"[\w *]*?\b(shmq_\w+)\([^;{}]*?\)\s*\{"
FUNCTION = re.compile(rf"^(?!static\b)(?:__attribute__\(\(.*?\)\) )?\w{HEAD}", re.MULTILINE)
OBJECT = re.compile(r"^(?!static\b)(?:\w[\w *]*)\b(shmq_\w+)(?:\[[^\]\n]*\])? = ", re.MULTILINE)
INLINE = re.compile(rf"^static {HEAD}(.*?\}}\n|\n.*?^\}})", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^# *define (\w+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
DECLARED = re.compile(r"^(?!static\b|typedef\b)\w[\w *]*?\b(shmq_\w+)\(", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
NAME = re.compile(r"\b(?:shmq|SHMQ)_\w+")

Texts = Mapping[str, str]  # of sources or headers, by name

LOW, HIGH = f"{CORE}/{ROOMS[0]}/low.c", f"{CORE}/{ROOMS[-1]}/high.c"


def texts(suffix: str) -> dict[str, str]:
    return {name_of(path): path.read_text() for path in files(CORE, suffix)}


def without_noise(text: str) -> str:
    return NOISE.sub(" ", text)


def room_of(file: str) -> str:
    return file.removeprefix(f"{CORE}/").partition("/")[0]


def height_of(file: str) -> tuple[int, int]:
    """The higher one may use the lower one, and so may equals: files of a room that have no order."""
    room, _, name = file.removeprefix(f"{CORE}/").partition("/")
    return ROOMS.index(room), FILES[room].index(name.removesuffix(".c")) if room in FILES else 0


def defined_in(text: str) -> set[str]:
    """The functions and objects that a source defines for others."""
    text = without_noise(text)
    return {*FUNCTION.findall(text), *OBJECT.findall(text)}


def in_headers(headers: Texts) -> dict[str, set[str]]:
    """By the name of a header's inline function or macro, the names in it: they stand wherever it is used."""
    found: dict[str, set[str]] = {}
    for text in map(without_noise, headers.values()):
        for name, body in [*INLINE.findall(text), *MACRO.findall(text)]:
            found.setdefault(name, set()).update(NAME.findall(body))
    return found


def mentioned_in(text: str, inlines: Mapping[str, set[str]]) -> set[str]:
    """All names in a source, and those behind the inline functions and macros among them."""
    names: set[str] = set()
    left = set(NAME.findall(without_noise(text)))
    while left:
        name = left.pop()
        names.add(name)
        left |= inlines.get(name, set()) - names
    return names


def upward(sources: Texts, headers: Texts) -> Iterator[tuple[str, str]]:
    """Yields (file, name) where a source mentions a name that a higher source defines."""
    home = {name: file for file, text in sources.items() for name in defined_in(text)}
    inlines = in_headers(headers)
    for file, text in sources.items():
        for name in sorted(mentioned_in(text, inlines)):
            if name in home and name != HOOK and height_of(home[name]) > height_of(file):
                yield file, name


def included_upward(texts: Texts) -> Iterator[tuple[str, str]]:
    """Yields (file, header) where a file includes a header of a higher room, or of none."""
    for file, text in texts.items():
        for header in INCLUDE.findall(text):
            room = header.partition("/")[0] if "/" in header else room_of(file)
            if room not in ROOMS[: ROOMS.index(room_of(file)) + 1]:
                yield file, header


def away_from_home(sources: Texts, headers: Texts) -> Iterator[tuple[str, str]]:
    """Yields (header, name) where a header declares a function that another room defines, or none."""
    home = {name: room_of(file) for file, text in sources.items() for name in defined_in(text)}
    for header, text in headers.items():
        for name in DECLARED.findall(without_noise(text)):
            if home.get(name) != room_of(header):
                yield header, name


def test_every_file_of_the_core_lies_in_a_room() -> None:
    rooms = {room_of(name_of(path)) for path in files(CORE)}
    assert rooms == set(ROOMS), "rooms of tools/layers.toml, from the bottom upward"


def named_after_others(names: Iterable[str]) -> list[str]:
    """The files whose names are those of other rooms, or begin with them."""
    stems = [(name, room_of(name), name.rpartition("/")[2].partition(".")[0]) for name in names]
    return [
        name
        for name, own, stem in stems
        if own not in SAY_WHICH and any(f"{stem}_".startswith(f"{room}_") for room in ROOMS if room != own)
    ]


def test_no_file_is_named_after_another_room() -> None:
    assert named_after_others(name_of(path) for path in files(CORE)) == []
    names = [f"{CORE}/take/{name}.c" for name in ("ring", "ring_scan", "rings", "take_ring")]
    assert named_after_others(names) == names[:2]


def test_every_file_of_a_room_with_an_order_has_its_place_in_it() -> None:
    for room, names in FILES.items():
        assert sorted(names) == sorted(path.stem for path in files(f"{CORE}/{room}", ".c")), room


def test_the_c_tests_stand_in_the_rooms_that_they_are_about() -> None:
    homes = {path: path.parent.name for path in (ROOT / "native" / "tests").rglob("test_*.c")}
    assert set(homes.values()) == set(ROOMS) - {LAYOUT}
    assert not [path for path in homes if path.parent.parent.name != "tests"]


def test_calls_go_downward_only() -> None:
    wrong = [f"{file} uses {name}" for file, name in upward(texts(".c"), texts(".h"))]
    assert not wrong, "these go upward (tools/layers.toml):\n" + "\n".join(wrong)


def test_includes_go_downward_only() -> None:
    everything = {**texts(".c"), **texts(".h")}
    assert sum(len(INCLUDE.findall(text)) for text in everything.values()) > 500
    wrong = [f"{file} includes {header}" for file, header in included_upward(everything)]
    assert not wrong, "these go upward (tools/layers.toml):\n" + "\n".join(wrong)


def test_a_header_declares_what_its_room_defines() -> None:
    headers = texts(".h")
    assert sum(len(DECLARED.findall(without_noise(text))) for text in headers.values()) > 500
    assert list(away_from_home(texts(".c"), headers)) == []


def test_an_include_upward_is_found() -> None:
    up, down = f'#include "{ROOMS[-1]}/high.h"\n', f'#include "{ROOMS[0]}/low.h"\n'
    assert list(included_upward({LOW: up, HIGH: down + up})) == [(LOW, f"{ROOMS[-1]}/high.h")]
    assert list(included_upward({LOW: '#include "nowhere/a.h"\n', HIGH: '#include "beside.h"\n'})) == [
        (LOW, "nowhere/a.h")
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("int shmq_high(int a,\n              int b);\n", ["shmq_high"]),
        ("const char *shmq_gone(void);\n", ["shmq_gone"]),
        ("/* shmq_high() */\nstatic inline int shmq_in(void) { return 1; }\nint shmq_low(void);\n", []),
    ],
)
def test_a_function_declared_away_from_home_is_found(text: str, found: list[str]) -> None:
    sources = {LOW: "int shmq_low(void) {\n}\n", HIGH: HIGHER}
    assert [name for _, name in away_from_home(sources, {LOW.replace(".c", ".h"): text})] == found


def test_a_name_has_one_home() -> None:
    homes: dict[str, list[str]] = {}
    for file, text in texts(".c").items():
        for name in defined_in(text):
            homes.setdefault(name, []).append(file)
    assert len(homes) > 300
    assert [name for name, where in homes.items() if len(where) > 1] == []


HIGHER = "/* shmq_no(void) { */\nstatic int shmq_own(void) {\n}\nint shmq_high(int a,\n              int b) {\n}\n"


@pytest.mark.parametrize(
    ("low", "header", "found"),
    [
        ("int shmq_low(void) {\n    return shmq_high(1, 2);\n}\n", "", ["shmq_high"]),
        ("static calls all = {.call = shmq_high};\n", "", ["shmq_high"]),
        ('/* shmq_high() */ const char *text = "shmq_high()";\n', "", []),
        ("int shmq_low(void) {\n    return shmq_own();\n}\n", "", []),
        (
            "int f(void) {\n    return shmq_in();\n}\n",
            "static inline int shmq_in(void) { return shmq_high(1, 2); }\n",
            1,
        ),
        ("int f(void) {\n    return shmq_in();\n}\n", "static inline int shmq_in(void) {\n  shmq_high(1, 2);\n}\n", 1),
        ("int f(void) {\n    return SHMQ_IN();\n}\n", "#define SHMQ_IN() \\\n    shmq_high(1, 2)\n", 1),
        ("int f(void) {\n    return 1;\n}\n", "#define SHMQ_IN() shmq_high(1, 2)\n", 0),
    ],
)
def test_a_call_upward_is_found_in_every_spelling(low: str, header: str, found: list[str] | int) -> None:
    expected = found if isinstance(found, list) else ["shmq_high"] * found
    headers = {"a.h": header}
    assert [name for _, name in upward({LOW: low, HIGH: HIGHER}, headers)] == expected
    assert list(upward({LOW: HIGHER, HIGH: low}, headers)) == []


@pytest.mark.parametrize("room", FILES)
def test_a_call_upward_is_found_within_a_room_that_has_an_order(room: str) -> None:
    low, high = (f"{CORE}/{room}/{FILES[room][n]}.c" for n in (0, -1))
    call = "int shmq_low(void) {\n    return shmq_high(1, 2);\n}\n"
    assert list(upward({low: call, high: HIGHER}, {})) == [(low, "shmq_high")]
    assert list(upward({low: HIGHER, high: call}, {})) == []


def test_an_object_is_found_as_a_function_is() -> None:
    table = "const shmq_calls shmq_table = {.call = NULL};\nconst char *shmq_names[] = {NULL};\n"
    low = "int f(void) {\n    return shmq_table.call(shmq_names[0]);\n}\n"
    assert [name for _, name in upward({LOW: low, HIGH: table}, {})] == ["shmq_names", "shmq_table"]
