"""No module needs itself: the import graph of shmq and of the packages in tools/ has no circle.

An import in a function is one like any other. One that only type checkers read counts if it goes upward, from a lower
layer of tools/layers.toml to a higher one, for then its file speaks of what it may not know.
"""

from collections.abc import Mapping, Set

import pytest

from tests.repo.test_layers import MODULES, Import, file_of, imports_of, is_answer, owner_of, typing_lines, upward
from tests.repo.tree import ROOT

Graph = Mapping[str, Set[str]]


def counts(found: Import, source: str, for_types: set[int]) -> bool:
    if owner_of(found) is not None:
        return False
    return found.line not in for_types or (upward(found) and not is_answer(found, source))


def graph_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each one imports, without the packages that they lie in."""
    graph: dict[str, set[str]] = {}
    for file, source in sources.items():
        for_types = typing_lines(source)
        wanted = {file_of(found.module) for found in imports_of(file, source) if counts(found, source, for_types)}
        graph[file] = {target for target in wanted if target is not None and target != file}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    left = list(graph.get(start, ()))
    while left:
        file = left.pop()
        if file not in seen:
            seen.add(file)
            left += graph.get(file, ())
    return seen


def circles(graph: Graph) -> list[list[str]]:
    """The modules that import each other, in groups."""
    reach = {file: reachable(graph, file) for file in graph}
    inside = [file for file in graph if file in reach[file]]
    groups = [sorted(other for other in reach[file] if file in reach[other]) for file in inside]
    return sorted(group for n, group in enumerate(groups) if group not in groups[:n])


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = graph_of({file: (ROOT / file).read_text() for file in MODULES})
    assert sum(map(len, graph.values())) > 500
    found = circles(graph)
    assert not found, "these import each other:\n" + "\n".join(" ".join(group) for group in found)


LOW, HIGH = "shmq/engine/membership/membership.py", "shmq/engine/consumer/consumer.py"
DOWN = "from shmq.engine.membership.membership import Membership\n"


@pytest.mark.parametrize(
    ("low", "expected"),
    [
        ("from shmq.engine.consumer.consumer import Consumer\n", True),
        ("def late():\n    from shmq.engine.consumer.consumer import Consumer\n", True),
        ("if TYPE_CHECKING:\n    from shmq.engine.consumer.consumer import Consumer\n", True),
        ("from shmq.engine.membership.death_record import endings\n", False),
        ("import os\n", False),
    ],
)
def test_a_circle_is_found_wherever_the_import_stands(low: str, expected: bool) -> None:
    found = circles(graph_of({LOW: low, HIGH: DOWN}))
    assert found == ([[HIGH, LOW]] if expected else [])


def test_two_modules_of_one_room_may_name_each_other_for_type_checkers() -> None:
    other = "shmq/engine/consumer/readiness.py"
    of_types = "if TYPE_CHECKING:\n    from shmq.engine.consumer.consumer import Consumer\n"
    down = "from shmq.engine.consumer.readiness import Readiness\n"
    assert circles(graph_of({other: of_types, HIGH: down})) == []
    assert circles(graph_of({other: of_types.replace("if TYPE_CHECKING", "def late()"), HIGH: down})) != []


def test_circles_are_told_apart() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}, "f": {"a"}}
    assert circles(graph) == [["a", "b"], ["c", "d", "e"]]
