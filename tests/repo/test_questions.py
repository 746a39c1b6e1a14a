"""A function of the core whose name asks (`is_`, `has_`, `can_`, `may_`) writes nothing, nor does what it calls.

Read from the text, without a compiler: the names that a function mentions in calls, those of inline functions included.
"""

import re
from collections.abc import Mapping

import pytest

from tests.repo.test_rooms import without_noise
from tests.repo.tree import files, name_of

QUESTION = re.compile(r"(?:shmq_)?(?:is|has|can|may)_")
FUNCTION = re.compile(
    r"^(?:__attribute__\(\(.*?\)\) )?\w[\w *]*?[ *](\w+)\([^;{}]*?\)\s*\{([^\n]*\}$|\n.*?^\})", re.MULTILINE | re.DOTALL
)
WRITE = re.compile(
    r"\bshmq_(?:(?:store|cas|cas32|add|and|or|swap)_(?:relaxed|acquire|release|seq)|futex_wake|write_once)\b"
)
CALL = re.compile(r"\b([a-z]\w+)\s*\(")


Bodies = Mapping[str, Mapping[str, str]]  # of functions: by name, then by file

# These may write: the one counts damage that it finds, the other fills a view, which is the caller's own copy.
NO_WRITES = {"shmq_damage", "shmq_level_look"}


def bodies_in(texts: Mapping[str, str]) -> Bodies:
    found: dict[str, dict[str, str]] = {}
    for file, text in texts.items():
        for name, body in FUNCTION.findall(without_noise(text)):
            found.setdefault(name, {})[file] = body
    return found


def way_to_a_write(name: str, file: str, bodies: Bodies, seen: frozenset[str] = frozenset()) -> list[str] | None:
    """The calls that lead from a function to a write; None: none do. A static function is that of its own file."""
    if name in NO_WRITES or name in seen:
        return None
    homes = bodies.get(name, {})
    for home, body in homes.items():
        if file in homes and home != file:
            continue
        if write := WRITE.search(body):
            return [name, write[0]]
        for called in CALL.findall(body):
            if way := way_to_a_write(called, home, bodies, seen | {name}):
                return [name, *way]
    return None


def wrong_in(texts: Mapping[str, str]) -> list[list[str]]:
    bodies = bodies_in(texts)
    asked = [(name, file) for name in sorted(bodies) if QUESTION.match(name) for file in bodies[name]]
    return [way for name, file in asked if (way := way_to_a_write(name, file, bodies))]


def test_a_question_writes_nothing() -> None:
    folders = [("native/src", ".c"), ("native/src", ".h")]
    sources = {name_of(path): path.read_text() for folder, suffix in folders for path in files(folder, suffix)}
    assert len([name for name in bodies_in(sources) if QUESTION.match(name)]) > 70
    wrong = wrong_in(sources)
    assert not wrong, "these ask by their names, and write:\n" + "\n".join(" -> ".join(way) for way in wrong)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("static bool is_so(row *r) {\n    return shmq_cas_seq(&r->word, 1, 2);\n}\n", 1),
        ("static bool is_so(row *r) { return shmq_cas32_seq(&r->word, 1, 2); }\n", 1),
        (
            "void set(row *r) {\n    shmq_store_seq(&r->word, 2);\n}\nbool shmq_may_take(row *r) {\n    set(r);\n}\n",
            1,
        ),
        ("static bool is_so(row *r) {\n    return shmq_load_seq(&r->word); /* no shmq_store_seq() */\n}\n", 0),
        ("static bool take(row *r) {\n    return shmq_cas_seq(&r->word, 1, 2);\n}\n", 0),
    ],
)
def test_a_write_is_found_behind_calls(text: str, found: int) -> None:
    assert len(wrong_in({"a.c": text})) == found
