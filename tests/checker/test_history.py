"""Histories of calls that must not be, one for each rule, and such that may be."""

from collections.abc import Hashable

import pytest

from checker import Call, Drained, judge_history
from checker.history import BEGUN, FAILED, RETURNED
from tests.checker.scene import names


def put(value: str, process: str = "p", phase: str = RETURNED) -> Call:
    return Call(process, "put", value, phase)


def done(op: str, value: str, process: str = "c", result: object = None) -> Call:
    return Call(process, op, value, RETURNED, result)


SOUND: dict[str, tuple[list[Call | tuple[object, ...]], list[Drained | Hashable]]] = {
    "nothing at all": ([], []),
    "what was put is there": ([put("1"), put("2")], ["1", "2"]),
    "what was got is gone": ([put("1"), done("get", "1")], []),
    "acked": ([put("1"), done("receive", "1"), done("ack", "1")], []),
    "released, and it says so": ([put("1"), done("receive", "1"), done("release", "1")], [Drained("1", True)]),
    "refused": ([put("1"), put("2", phase=FAILED)], ["1"]),
    "a put that was cut off, there": ([put("1", phase=BEGUN)], ["1"]),
    "a put that was cut off, not there": ([put("1", phase=BEGUN)], []),
    "an ack that was cut off, there": (
        [put("1"), done("receive", "1"), Call("c", "ack", "1", BEGUN)],
        [Drained("1", True)],
    ),
    "an ack that was cut off, gone": ([put("1"), done("receive", "1"), Call("c", "ack", "1", BEGUN)], []),
    "a get that was cut off took one": ([put("1"), put("2"), Call("c", "get", None, BEGUN)], ["2"]),
    "a receive that was cut off gave it back": (
        [put("1"), Call("c", "receive", None, BEGUN)],
        [Drained("1", True)],
    ),
    "in living hands": ([put("1"), done("receive", "1")], []),
    "a batch that was cut off": ([Call("p", "put_many", ["1", "2", "3"], BEGUN)], ["1", "2"]),
    "a batch of which some fitted": ([Call("p", "put_many", ["1", "2", "3"], RETURNED, 2)], ["1", "2"]),
    "a call and its end": ([put("1", phase=BEGUN), put("1")], ["1"]),
    "two producers": ([put("1"), put("a", "q"), put("2")], ["a", "1", "2"]),
    "a purge that was cut off": ([put("1"), put("2"), Call("c", "purge", None, BEGUN)], ["2"]),
}


@pytest.mark.parametrize("name", SOUND)
def test_what_may_be(name: str) -> None:
    calls, drained = SOUND[name]
    assert judge_history(calls, drained) == []


BROKEN: dict[str, tuple[str, list[Call | tuple[object, ...]], list[Drained | Hashable]]] = {
    "accepted, and lost": ("history.lost", [put("1"), put("2")], ["2"]),
    "one get that was cut off cannot have two": (
        "history.lost",
        [put("1"), put("2"), Call("c", "get", None, BEGUN)],
        [],
    ),
    "a batch of which some fitted, and one more is lost": (
        "history.lost",
        [Call("p", "put_many", ["1", "2", "3"], RETURNED, 2)],
        ["1"],
    ),
    "there twice": ("history.twice", [put("1")], ["1", "1"]),
    "never put": ("history.foreign", [put("1")], ["1", "2"]),
    "refused, and there": ("history.foreign", [put("1", phase=FAILED)], ["1"]),
    "got, and there": ("history.again", [put("1"), done("get", "1")], ["1"]),
    "acked, and delivered": (
        "history.again",
        [put("1"), done("receive", "1"), done("ack", "1"), done("receive", "1", "d")],
        [],
    ),
    "in two hands": ("history.double", [put("1"), done("receive", "1"), done("receive", "1", "d")], []),
    "in living hands, and there": ("history.double", [put("1"), done("receive", "1")], ["1"]),
    "settled twice": (
        "history.settled",
        [put("1"), done("receive", "1"), done("ack", "1"), done("ack", "1")],
        [],
    ),
    "came back, and does not say so": (
        "history.redelivered",
        [put("1"), done("receive", "1"), done("release", "1")],
        [Drained("1", False)],
    ),
    "delivered again, and does not say so": (
        "history.redelivered",
        [put("1"), done("receive", "1"), done("release", "1"), done("receive", "1", "d", result=False)],
        [],
    ),
    "says that it came back, and was never away": ("history.redelivered", [put("1")], [Drained("1", True)]),
    "out of order": ("history.order", [put("1"), put("2")], ["2", "1"]),
    "a batch with a gap": ("history.batch", [Call("p", "put_many", ["1", "2", "3"], BEGUN)], ["1", "3"]),
    "the same message put twice": ("history.input", [put("1"), put("1")], ["1"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_must_not_be(name: str) -> None:
    rule, calls, drained = BROKEN[name]
    assert names(judge_history(calls, drained)) == {rule}


def test_what_a_killed_process_had_in_hand_comes_back() -> None:
    calls = [put("1"), done("receive", "1")]
    assert judge_history(calls, [Drained("1", True)], killed={"c"}) == []
    assert names(judge_history(calls, [], killed={"c"})) == {"history.lost"}


def test_plain_tuples_will_do() -> None:
    assert judge_history([("p", "put", "1", RETURNED, None)], ["1"]) == []


def test_an_operation_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no operation"):
        judge_history([Call("p", "putt", "1", RETURNED)], [])
