"""The binding touches no word that processes share: it calls functions of the core, and is given copies.

Read from the text, without a compiler: atomic accesses, types of shared memory (`..._shm`), ways from a handle to it.
"""

import re
from collections.abc import Iterator, Mapping

import pytest

from tests.repo.test_rooms import without_noise
from tests.repo.tree import files, name_of

ATOMIC = r"\bshmq_\w+_(?:relaxed|acquire|release|seq)\b|\bshmq_(?:less|read_once)\b|\batomic_\w+"
SHARED = r"\b\w+_shm\b|\bm->rows\b|->(?:page|counters|directory|granules|shm|slots|carried|process|tickets)(?:->|\[)"
TOUCH = re.compile(f"{ATOMIC}|{SHARED}")

# The identity of a broker: written before anybody can join, and never again.
IDENTITY = {("native/python/py_usage.c", "shmq_segment_shm")}


def touches(sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for file, text in sources.items():
        for found in TOUCH.findall(without_noise(text)):
            if (file, found) not in IDENTITY:
                yield file, found


def test_the_binding_touches_no_shared_word() -> None:
    sources = {name_of(path): path.read_text() for suffix in (".c", ".h") for path in files("native/python", suffix)}
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
