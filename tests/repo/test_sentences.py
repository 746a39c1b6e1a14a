"""The pages are read in short sentences: one of them has at most 25 words."""

import re

import pytest

from tests.repo.tree import ROOT, files, name_of

MOST_WORDS = 25
PROGRAM = re.compile(r"^\s*```.*?^\s*```", re.DOTALL | re.MULTILINE)
TABLE_OR_TITLE = re.compile(r"^(?:\||#).*$", re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )")
LIST_MARK = re.compile(r"^\s*(?:[*-]|\d+\.) ")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
INDEX = re.compile(r"^(?:\[[^\]]*\]\([^)]*\)(?:, |\.$))+$", re.MULTILINE)  # a row of links, and nothing else
SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][*)\"])|(?<=[.!?]\*\*))\s+(?=[A-Z`*(\"])")


def split(words: str) -> list[str]:
    words = re.sub(r"`[^`]*`", "`code`", " ".join(words.split()))
    return SENTENCE.split(words) if words else []


def sentences(page: str) -> list[str]:
    """A code span is one word, of a link its text counts. In a cell of a table a sentence may end with a semicolon."""
    prose = LINK.sub(r"\1", INDEX.sub("", PROGRAM.sub("", page)))
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    cells = [part for row in rows for cell in CELL.split(row) for part in cell.split(";")]
    paragraphs = [LIST_MARK.sub("", each) for each in PARAGRAPH.split(TABLE_OR_TITLE.sub("", prose))]
    return [sentence for text in [*paragraphs, *cells] for sentence in split(text)]


def long_sentences(page: str) -> list[str]:
    return [sentence for sentence in sentences(page) if len(sentence.split()) > MOST_WORDS]


PAGES = [name_of(path) for path in files(".", ".md")]


@pytest.mark.parametrize("page", PAGES)
def test_a_sentence_of_a_page_has_at_most_25_words(page: str) -> None:
    long = [f"  {len(sentence.split())} words: {sentence}" for sentence in long_sentences((ROOT / page).read_text())]
    assert not long, f"{page} has sentences of more than {MOST_WORDS} words:\n" + "\n".join(long)


def test_there_are_pages() -> None:
    assert len(PAGES) > 50


def test_a_sentence_that_is_too_long_is_found() -> None:
    short, long = "Word " * 24 + "end.", "Word " * 25 + "end."
    assert (
        long_sentences(f"{short} {short}\n\n* {short}\n* **Title.** {short} `c d` is. {short} *Title.* {short}\n") == []
    )
    assert long_sentences(f"{short} {long}\n* {long}\n1. {long}\n\n{long[:59]}\n{long[60:]}\n") == [long] * 4
    assert long_sentences(f"# {long}\n```\n{long}\n```\n") == []
    assert long_sentences(f"| {short} {short} | {short}; {short} |\n| a | {long} |\n") == [long]
    assert long_sentences("[a](b.md), " * 30 + "[c](d.md).\n") == []
    assert long_sentences("`a b` " * 25 + "[one](b.md).") == ["`code` " * 25 + "one."]
