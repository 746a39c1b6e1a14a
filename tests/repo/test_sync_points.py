"""Each ordering between processes has a label, `SYNC <label>`, on both of its sides and in docs/memory-ordering.md."""

import re
from collections import Counter

from tests.repo.tree import ROOT, files, name_of

# A label has two or more parts with dots between: structure and event. So prose may speak of a "SYNC pair".
LABEL = re.compile(r"\bSYNC\s+`?([a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+)")
WITHOUT_DOT = re.compile(r"\bSYNC\s+`?[a-z][a-z0-9_-]*`?:")
MEMORY_ORDER = re.compile(r"\bmemory_order_\w+|\b__ATOMIC_[A-Z]\w*")
ONLY_SPELLER = "native/src/base/atomic.h"
PAGE = ROOT / "docs" / "memory-ordering.md"


def labels(text: str) -> list[str]:
    return LABEL.findall(text)


def labels_in_code() -> Counter[str]:
    return Counter(label for path in files("native", ".c", ".h") for label in labels(path.read_text()))


def labels_in_docs() -> set[str]:
    return set(labels(PAGE.read_text())) if PAGE.exists() else set()


def test_every_sync_label_stands_on_both_sides() -> None:
    alone = sorted(label for label, count in labels_in_code().items() if count < 2)
    assert not alone, f"these labels occur once only, name the partner too: {alone}"


def test_every_sync_label_of_the_code_is_explained_in_the_docs() -> None:
    unexplained = sorted(set(labels_in_code()) - labels_in_docs())
    assert not unexplained, f"write `SYNC <label>` and its reason into {name_of(PAGE)}: {unexplained}"


def test_every_sync_label_of_the_docs_occurs_in_the_code() -> None:
    stale = sorted(labels_in_docs() - set(labels_in_code()))
    assert not stale, f"{name_of(PAGE)} explains labels that no code has: {stale}"


def test_every_sync_label_names_its_structure() -> None:
    pages = [*files("native", ".c", ".h"), *([PAGE] if PAGE.exists() else [])]
    wrong = [f"{name_of(page)}: {match.group()}" for page in pages for match in WITHOUT_DOT.finditer(page.read_text())]
    assert not wrong, "write `SYNC <structure>.<event>:`\n" + "\n".join(wrong)


def test_only_one_header_spells_memory_orders() -> None:
    wrong = [
        f"{name_of(path)}: {match.group()}"
        for path in files("native", ".c", ".h")
        if name_of(path) != ONLY_SPELLER
        for match in MEMORY_ORDER.finditer(path.read_text())
    ]
    assert not wrong, f"use the calls of {ONLY_SPELLER}:\n" + "\n".join(wrong)


def test_a_label_is_read_with_its_dots_and_without_the_text_after_it() -> None:
    assert labels("/* SYNC ring.publish: body before turn */ and `SYNC wake-up.idle_bit`.") == [
        "ring.publish",
        "wake-up.idle_bit",
    ]
