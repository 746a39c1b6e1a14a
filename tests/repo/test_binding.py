"""The binding touches no word that processes share: it calls functions of the core, and is given copies.

It knows the core by one header, shmq.h, which has nothing that the binding does not use.

Read from the text, without a compiler: atomic accesses, types of shared memory (`..._shm`), ways from a handle to it.
"""

import re
from collections.abc import Iterator, Mapping

import pytest

from tests.repo.test_rooms import CORE, DECLARED, INCLUDE, INLINE, MACRO, NAME, without_noise
from tests.repo.tree import ROOT, files, name_of

ATOMIC = r"\bshmq_\w+_(?:relaxed|acquire|release|seq)\b|\bshmq_(?:less|read_once)\b|\batomic_\w+"
SHARED = r"\b\w+_shm\b|\bm->rows\b|->(?:page|counters|directory|granules|shm|slots|carried|process|tickets)(?:->|\[)"
TYPE = re.compile(r"^\} (shmq_\w+);", re.MULTILINE)
TOUCH = re.compile(f"{ATOMIC}|{SHARED}")

# The identity of a broker: written before anybody can join, and never again.
IDENTITY = {("native/python/py_usage.c", "shmq_segment_shm")}


def touches(sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for file, text in sources.items():
        for found in TOUCH.findall(without_noise(text)):
            if (file, found) not in IDENTITY:
                yield file, found


def binding() -> dict[str, str]:
    return {name_of(path): path.read_text() for suffix in (".c", ".h") for path in files("native/python", suffix)}


def beside_the_public_header(sources: Mapping[str, str]) -> list[str]:
    """The includes of headers of rooms."""
    return [f"{file}: {header}" for file, text in sources.items() for header in INCLUDE.findall(text) if "/" in header]


def given_by(header: str) -> set[str]:
    """The names that a header declares or defines: functions, macros and types."""
    text = without_noise(header)
    named = [name for name, _ in [*INLINE.findall(text), *MACRO.findall(text)]]
    return {*DECLARED.findall(text), *TYPE.findall(text), *named}


def unused(headers: Mapping[str, str], sources: Mapping[str, str]) -> list[str]:
    """The headers of which the sources use no name."""
    names = {name for text in sources.values() for name in NAME.findall(without_noise(text))}
    return [header for header, text in headers.items() if not given_by(text) & names]


def test_the_binding_and_the_program_of_the_pages_include_the_public_header_only() -> None:
    users = {**binding(), "docs/example.c": (ROOT / "docs" / "example.c").read_text()}
    assert [file for file, text in users.items() if "shmq.h" in INCLUDE.findall(text)] == [
        "native/python/py_shmq.h",
        "docs/example.c",
    ]
    assert beside_the_public_header(users) == []
    assert beside_the_public_header({"a.c": '#include "take/take.h"\n#include "b.h"\n'}) == ["a.c: take/take.h"]


def test_the_public_header_has_nothing_that_the_binding_does_not_use() -> None:
    names = INCLUDE.findall((ROOT / "native" / "include" / "shmq.h").read_text())
    assert len(names) > 50
    assert unused({name: (ROOT / CORE / name).read_text() for name in names}, binding()) == []
    assert unused({"a.h": "int shmq_a(void);\n", "b.h": "#define SHMQ_B 1\n"}, {"c": "shmq_a(); /* SHMQ_B */"}) == [
        "b.h"
    ]


def test_the_binding_touches_no_shared_word() -> None:
    sources = binding()
    assert len(sources) > 20
    wrong = [f"{file}: {found}" for file, found in touches(sources)]
    assert not wrong, "these belong behind a function of the core (queue/queue_facts.h has several):\n" + "\n".join(
        wrong
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("return shmq_load_seq(&m->closed) != 0;", 1),
        ("shmq_add_relaxed(&counters, 1);", 1),
        ("uint64_t hash = shmq_read_once(&entry->name_hash);", 1),
        ("uint64_t n = q->page->count;", 1),
        ("const shmq_consumer_shm *row = NULL;", 1),
        ("atomic_fetch_add(&count, 1);", 1),
        ("return shmq_queue_used(q, &entries, &bytes); /* of q->page */", 0),
        ("PyObject *text = PyUnicode_FromString(note->text);", 0),
    ],
)
def test_a_touch_is_found(text: str, found: int) -> None:
    assert len(list(touches({"a.c": text}))) == found
