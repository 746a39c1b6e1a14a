"""The way of a message, step by step, as the page of the architecture tells it, is the way that the code goes."""

import ast
import re
from itertools import pairwise

from tests.repo.tree import ROOT

PAGE = ROOT / "docs" / "architecture.md"
STEP = re.compile(r"^\| (\d+) \|.*\| `([\w/.]+):(\w+)` \|$", re.MULTILINE)
PLACE = re.compile(r"`((?:native|shmq)/[\w/.]+):(\w+)`")
# (steps, the function that does them in this order); a step that the function itself is calls the next one. A name
# stands for a function between two steps.
ORDER: list[tuple[tuple[int | str, ...], str, str]] = [
    ((1,), "native/src/put/publish.c", "put"),
    ((2,), "native/src/put/publish.c", "put_done"),
    (("put", "put_done"), "native/src/put/publish.c", "shmq_put_now"),
    (("put", "put_done"), "native/src/put/publish.c", "shmq_put_some"),
    ((2, 3), "native/src/consumers/sleepers.c", "shmq_notify"),
    ((3, 4), "native/src/consumers/sleepers.c", "wake_one"),
    ((4, 5), "native/src/consumers/sleepers.c", "wake_row"),
    ((6,), "native/src/wake/wait.c", "shmq_sleep_long"),
    ((7, 9), "native/src/take/wait_any.c", "wait_round"),
    ((8,), "native/src/take/wait_any.c", "wait_rounds"),
    (("shmq_look",), "native/src/take/wait_any.c", "look_at_all"),
    (("offer_to",), "native/src/take/wait_any.c", "shmq_look"),
    (("shmq_offer_to",), "native/src/take/wait_any.c", "offer_to"),
    (("find",), "native/src/take/scan.c", "shmq_offer_to"),
    ((10,), "native/src/take/scan.c", "find"),
    ((11,), "native/src/take/take.c", "shmq_receive"),
    (("shmq_receive", 12), "native/python/py_consumer.c", "next_message"),
]


def body_of(file: str, function: str) -> str:
    """The text of a function's definition; empty if the file defines no such function."""
    text = (ROOT / file).read_text()
    if file.endswith(".py"):
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == function]
        return ast.unparse(nodes[0].body) if nodes else ""  # type: ignore[arg-type]
    match = re.search(rf"^\w[\w *]*\b{function}\([^;{{}}]*\) \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def test_every_place_that_the_architecture_names_exists() -> None:
    places = PLACE.findall(PAGE.read_text())
    assert len(places) >= 12
    assert [place for place in places if not (ROOT / place[0]).exists() or not body_of(*place)] == []
    assert body_of("native/src/wake/wait.c", "no_such_function") == ""
    assert body_of("shmq/engine/consumer/consumer.py", "no_such_function") == ""


def test_a_message_goes_through_the_twelve_steps_in_their_order() -> None:
    """In the sources: each function calls those of its steps, one behind the other. Shows S46."""
    steps = {int(number): (file, function) for number, file, function in STEP.findall(PAGE.read_text())}
    assert sorted(steps) == list(range(1, 13))
    for numbers, file, function in ORDER:
        body = body_of(file, function)
        calls = [step if isinstance(step, str) else steps[step][1] for step in numbers]
        calls = [call for call in calls if call != function]
        found = [max((match.start() for match in re.finditer(rf"\b{call}\(", body)), default=-1) for call in calls]
        assert min(found) >= 0, f"{function} in {file} does not call all of {calls}"
        assert all(one < other for one, other in pairwise(found)), f"{function} calls {calls} in another order"
    told = {step for numbers, _, _ in ORDER for step in numbers if isinstance(step, int)}
    assert told == set(steps)
