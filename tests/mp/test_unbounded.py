"""A queue without a bound is unbounded, as users of multiprocessing expect: what finds no slot goes to disk."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mp.children import put_numbers

MANY = 100_000  # objects: a queue without maxsize has at most 65,536 slots
KINDS = ["Queue", "JoinableQueue", "SimpleQueue"]


@pytest.mark.memory  # each flows by itself
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_that_nobody_takes_from_holds_whatever_a_child_puts(
    kind: str, ctx: Any, start: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    queue = getattr(ctx, kind)()
    child = start(ctx, put_numbers, queue, 0, MANY)
    child.join(120)
    assert child.exitcode == 0
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) > MANY // 4 * 64
    for number in range(MANY):
        assert queue.get() == number
        if kind == "JoinableQueue":
            queue.task_done()
    assert queue.empty()
