"""A test that asks for something within a time runs alone, or it would measure what runs beside it."""

import ast
from collections.abc import Iterator

from tests.repo.tree import files, name_of

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}


def is_clock(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call) and ast.unparse(part.func).split(".")[-1] in CLOCKS for part in ast.walk(node)
    )


def bounds_a_clock_from_above(node: ast.AST) -> bool:
    """True for `assert clock() - start < 5` and `assert 5 > clock() - start`, not for lower bounds.

    Nor for `assert clock() < deadline`, by which a loop that waits for an event gives up.
    """
    if not isinstance(node, ast.Assert) or "deadline" in {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name)
    }:
        return False
    for part in ast.walk(node.test):
        if isinstance(part, ast.Compare):
            terms = [part.left, *part.comparators]
            for left, sign, right in zip(terms, part.ops, terms[1:], strict=False):
                if isinstance(sign, ast.Lt | ast.LtE) and is_clock(left):
                    return True
                if isinstance(sign, ast.Gt | ast.GtE) and is_clock(right):
                    return True
    return False


def unmarked(source: str) -> Iterator[str]:
    """Yields the tests of a module that have such an assertion and are not marked `alone`."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = {ast.unparse(mark) for mark in node.decorator_list}
            if "pytest.mark.alone" not in marks and any(map(bounds_a_clock_from_above, ast.walk(node))):
                yield node.name


def test_tests_that_give_a_clock_an_upper_bound_run_alone() -> None:
    found = [f"{name_of(path)}::{test}" for path in files("tests", ".py") for test in unmarked(path.read_text())]
    assert not found, "mark them `alone` and state the margin, or wait for the event itself:\n" + "\n".join(found)


def test_an_upper_bound_is_noticed_and_a_lower_one_is_not() -> None:
    body = "    start = time.monotonic()\n    {}\n"
    late, early = "assert 0.1 <= time.monotonic() - start < 5", "assert time.monotonic() - start >= 0.1"
    source = f"def test_a():\n{body.format(late)}\ndef test_b():\n{body.format(early)}\n"
    source += f"@pytest.mark.alone\ndef test_c():\n{body.format(late)}"
    assert list(unmarked(source)) == ["test_a"]
