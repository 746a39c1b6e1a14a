"""The page of `shmq pipeline stats --html`, without Spark: what it shows, and that nobody's text is more than text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from shmq.spark.pipelines.plot import Frame, lines, seconds_text, shown, steps
from shmq.spark.pipelines.report import report
from shmq.spark.pipelines.statistics import Statistics

NOON = 1_795_521_600.0  # 2026-11-24 12:00
EVIL = "<script>alert('x')</script>\"'&\x1b[2J\u202e"
VOID = {"meta", "link", "br", "img"}


def queue(name: str, **more: Any) -> dict[str, Any]:
    counts = {"waiting": 3, "left": 0, "dead": 0, "redelivered": 1, "bytes": 30}
    waits = {"p50": 0.25, "p90": 20.0, "p99": 300.0, "longest": 90_000.0}
    return {"queue": name, **counts, "first_at": NOON - 600, "last_at": NOON, **waits, **more}


def statistics(name: str = "orders", **more: Any) -> Statistics:
    minutes = [
        {"queue": name, "minute": NOON - 600 + 60 * n, "put": 1, "left": 0, "bytes": 10, "redelivered": 0, "depth": n}
        for n in range(3)
    ]
    waits = [
        {"queue": name, "minute": NOON - 600, "entries": 3, "p50": 0.25, "p90": 20.0, "p99": 300.0, "longest": 9e4}
    ]
    candidate = {"queue": name, "by": "header", "value": name, "dead": 2, "others": 0, "lift": None, "preview": name}
    candidate |= {"reasons": ["rejected"], "error": name, "first_at": NOON, "last_at": NOON}
    found: dict[str, Any] = {
        "at": NOON,
        "every": "minute",
        "queues": [queue(name), queue("orders.dead", dead=2, p50=None, p90=None, p99=None, longest=None)],
        "minutes": minutes,
        "waits_by_minute": waits,
        "redelivered": [{"queue": name, "delivery_count": 2, "entries": 1, "first_at": NOON}],
        "poison": [candidate],
    }
    return Statistics(**(found | more))


class Page(HTMLParser):
    """Elements in the order of their begin, each closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_shows_counts_waits_plots_and_candidates() -> None:
    text = report(statistics(), "/var/lib/shop")
    page = Page(text)
    words = " ".join(page.texts)
    for expected in ("/var/lib/shop", "2026-11-24 12:00", "orders.dead", "250 ms", "25 h", "no other has it", "99 %"):
        assert expected in words
    assert sum(tag == "svg" for tag, _ in page.elements) == 2  # depth and waits of orders: its dead have no minutes
    assert "prefers-color-scheme: dark" in text


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    text = report(statistics(), "/var/lib/shop")
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not {name for _, attributes in page.elements for name in attributes if name.startswith("on")}
    assert "://" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_what_comes_from_messages_is_text_and_nothing_else() -> None:
    plain, evil = report(statistics(), "/var/lib/shop"), report(statistics(EVIL), EVIL)
    assert [tag for tag, _ in Page(evil).elements] == [tag for tag, _ in Page(plain).elements]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", evil)
    assert "<script" not in evil
    assert "\\u001b[2J\\u202e" in evil
    assert shown('<a href="x">') == "&lt;a href=&quot;x&quot;&gt;"


def test_a_broker_with_nothing_in_it_has_a_page_without_plots() -> None:
    empty = statistics(queues=[], minutes=[], waits_by_minute=[], redelivered=[], poison=[])
    assert not [tag for tag, _ in Page(report(empty, "x")).elements if tag == "svg"]


@pytest.mark.parametrize(
    "points",
    [[], [(NOON, 0)], [(NOON, 7), (NOON + 1, 0)], [(NOON + 60 * n, n * n) for n in range(1500)]],
    ids=["none", "one", "two", "many"],
)
def test_plots_are_sound_and_stay_in_their_frame(points: list[tuple[float, float]]) -> None:
    frame = Frame(NOON, NOON + 90_000)
    for text in (steps(frame, points, "depth"), lines(frame, {"half": points}, "waits").partition("</p>")[2]):
        tree = ElementTree.fromstring(text)
        for circle in tree.iter("circle"):
            assert 0 <= float(circle.attrib["cx"]) <= 720
            assert 0 <= float(circle.attrib["cy"]) <= 190
        assert 2 <= sum(element.attrib.get("text-anchor") == "middle" for element in tree.iter("text")) <= 8


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 µs"), (2e-5, "20 µs"), (0.0015, "1.5 ms"), (20, "20 s"), (300, "5 min"), (90_000, "25 h"), (4e5, "5 d")],
)
def test_durations_have_one_unit(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
