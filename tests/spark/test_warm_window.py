"""The order of replies: each number once, in turn, whatever comes when and how often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shmq.spark.warm.window import Window


@given(st.permutations(range(8)), st.lists(st.integers(0, 7)))
def test_replies_are_taken_once_and_in_order(order: list[int], again: list[int]) -> None:
    window: Window[int] = Window()
    assert [window.open() for _ in range(8)] == list(range(8))
    taken: list[int] = []
    for number in [*order, *again, *order]:
        window.put(number, number)
        taken += window.take()
    assert taken == list(range(8))
    assert (window.size, window.missing) == (0, 0)


def test_a_second_reply_changes_nothing() -> None:
    window: Window[str] = Window()
    first, second = window.open(), window.open()
    window.put(second, "b")
    window.put(second, "c")
    assert (window.take(), window.size, window.missing) == ([], 2, 1)
    window.put(first, "a")
    assert window.take() == ["a", "b"]
