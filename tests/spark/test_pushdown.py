"""Which filters the source of a batch read applies, and what is left of its ranges."""

import random
from typing import Any

import pytest

from shmq.spark.entry_range import EntryRange
from shmq.spark.hosts import HostRange
from shmq.spark.pushdown import Pushdown

ORDERS = EntryRange("orders", "orders", "id", 100, 200, 100)
RETURNS = EntryRange("returns", "returns", "other", 0, 50, None)


def left_of(pushdown: Pushdown, *ranges: EntryRange) -> list[EntryRange]:
    found = pushdown.of(ranges)
    assert all(isinstance(one, EntryRange) for one in found)
    return [one for one in found if isinstance(one, EntryRange)]


@pytest.mark.parametrize(
    ("kind", "value", "bounds"),
    [
        ("EqualTo", 150, (150, 151)), ("EqualNullSafe", 150, (150, 151)), ("GreaterThan", 150, (151, 200)),
        ("GreaterThanOrEqual", 150, (150, 200)), ("LessThan", 150, (100, 150)), ("LessThanOrEqual", 150, (100, 151)),
    ],
)  # fmt: skip
def test_a_comparison_of_positions_narrows_a_range(kind: str, value: int, bounds: tuple[int, int]) -> None:
    pushdown = Pushdown()
    assert pushdown.take(kind, ("position",), value)
    (found,) = left_of(pushdown, ORDERS)
    assert (found.begin, found.end, found.rows) == (*bounds, None)


@pytest.mark.parametrize("kind", ["EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"])
def test_a_comparison_leaves_what_it_is_true_for(kind: str, seed: int) -> None:
    compares = {
        "EqualTo": int.__eq__, "GreaterThan": int.__gt__, "GreaterThanOrEqual": int.__ge__, "LessThan": int.__lt__,
        "LessThanOrEqual": int.__le__,
    }  # fmt: skip
    rng = random.Random(seed)
    for value in [-1, 0, 99, 100, 199, 200, *(rng.randrange(90, 210) for _ in range(20))]:
        pushdown = Pushdown()
        assert pushdown.take(kind, ("position",), value)
        left = [p for one in left_of(pushdown, ORDERS) for p in range(one.begin, one.end)]
        assert left == [p for p in range(ORDERS.begin, ORDERS.end) if compares[kind](p, value)], value


def test_queues_that_are_not_wanted_are_not_read() -> None:
    pushdown = Pushdown()
    assert pushdown.take("IsNotNull", ("queue",))
    assert pushdown.take("In", ("queue",), ("orders", "others"))
    assert pushdown.of([ORDERS, RETURNS]) == [ORDERS]
    assert pushdown.take("EqualTo", ("queue",), "others")
    assert pushdown.of([ORDERS, RETURNS]) == []


def test_ranges_of_hosts_are_narrowed_as_well() -> None:
    pushdown = Pushdown()
    assert pushdown.take("LessThan", ("position",), 10)
    hosts = [HostRange("grpc://one:1", RETURNS), HostRange("grpc://two:1", ORDERS)]
    assert pushdown.of(hosts) == [HostRange("grpc://one:1", EntryRange("returns", "returns", "other", 0, 10, None))]


@pytest.mark.parametrize(
    ("kind", "attribute", "value"),
    [
        ("EqualTo", ("priority",), 4), ("EqualTo", ("headers", "queue"), "a"), ("StringStartsWith", ("queue",), "o"),
        ("EqualTo", ("position",), 1.5), ("EqualTo", ("position",), True), ("In", ("position",), (1, 2)),
        ("IsNull", ("queue",), None), ("In", ("queue",), ("orders", None)), ("Surprise", ("position",), 3),
    ],
)  # fmt: skip
def test_what_it_cannot_apply_exactly_is_left_to_spark(kind: str, attribute: tuple[str, ...], value: Any) -> None:
    pushdown = Pushdown()
    assert not pushdown.take(kind, attribute, value)
    assert pushdown.of([ORDERS, RETURNS]) == [ORDERS, RETURNS]
