"""Each way in which results can be wrong is found, and a repeat that says so is none of them."""

import pytest

from shmq.demo.comparison import compare
from shmq.demo.definitions import Definitions, Result

A, B = Definitions(1, 2, 3, 4, True), Definitions(5, 6, 7, 8, True)
EXPECTED = {"a.py": A, "b.py": B}


def result(file: str, definitions: Definitions, redelivered: bool = False) -> Result:
    return Result(file, definitions, redelivered)


def test_the_right_results_in_any_order_are_equal() -> None:
    found = compare(EXPECTED, [result("b.py", B), result("a.py", A)])
    assert found.equal
    assert found.redelivered == ()


def test_a_lost_result_is_found() -> None:
    found = compare(EXPECTED, [result("a.py", A)])
    assert (found.equal, found.lost) == (False, ("b.py",))


def test_a_doubled_result_is_found() -> None:
    found = compare(EXPECTED, [result("a.py", A), result("b.py", B), result("a.py", A)])
    assert (found.equal, found.doubled, found.redelivered) == (False, ("a.py",), ())


def test_a_wrong_result_is_found_even_beside_the_right_one() -> None:
    found = compare(EXPECTED, [result("a.py", B, True), result("a.py", A), result("b.py", B)])
    assert (found.equal, found.wrong) == (False, ("a.py",))


def test_a_result_that_nobody_asked_for_is_found() -> None:
    found = compare(EXPECTED, [result("a.py", A), result("b.py", B), result("c.py", A)])
    assert (found.equal, found.wrong) == (False, ("c.py",))


@pytest.mark.parametrize(
    "results",
    [
        [result("a.py", A, True), result("b.py", B)],
        [result("a.py", A), result("a.py", A, True), result("b.py", B)],
        [result("a.py", A, True), result("a.py", A, True), result("b.py", B)],
    ],
)
def test_a_repeat_that_says_so_is_redelivered_and_equal(results: list[Result]) -> None:
    found = compare(EXPECTED, results)
    assert (found.equal, found.redelivered) == (True, ("a.py",))


def test_a_result_survives_its_way_through_a_queue() -> None:
    assert Result.of_body(result("a.py", A, True).to_body()) == result("a.py", A, True)
