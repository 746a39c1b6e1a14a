"""A body that is text by its content type, and no UTF-8, is an error of whoever decodes it, and no damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.cli.check import examine

LATIN = shmq.Codec("text/plain; charset=utf-8", lambda text: text.encode("latin-1"), lambda data: str(data, "latin-1"))
SIZES = [1, 90, 5_000, 2_000_000]  # in a slot, at its end, in a block, in one that is copied without the GIL


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="32MiB", disk="16MiB") as opened:
        yield opened


def put(broker: shmq.Broker, size: int, **options: Any) -> shmq.Queue[Any]:
    broker.queue("in", **options, codec=LATIN).put("\xe9" * size)
    return broker.queue("in")


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_a_get_is_a_decode_error_and_the_message_stays(broker: shmq.Broker, size: int, checksum: bool) -> None:
    queue = put(broker, size, max_attempts=0, checksum=checksum)
    for _ in range(2):
        with pytest.raises(shmq.DecodeError, match=f"not text in UTF-8.*position 0.*{size:,} byte"):
            queue.get(timeout=0)
    with pytest.raises(shmq.DecodeError):
        queue.get_many(5, timeout=0)
    (seen,) = queue.browse()
    with pytest.raises(shmq.DecodeError):
        seen.body  # noqa: B018
    with queue.receive(timeout=0) as m, pytest.raises(shmq.DecodeError):
        m.body  # noqa: B018
    assert queue.qsize() == 0
    assert examine(broker.path or "").findings == []


@pytest.mark.parametrize("size", SIZES)
def test_other_handles_still_get_it(broker: shmq.Broker, size: int) -> None:
    handles: list[tuple[Any, Any]] = [("bytes", b"\xe9" * size), (LATIN, "\xe9" * size)]
    for codec, body in handles:
        queue = put(broker, size)
        with pytest.raises(shmq.DecodeError):
            queue.get(timeout=0)
        assert queue.qsize() == 1
        assert broker.queue("in", codec=codec).get(timeout=0) == body


def test_what_is_behind_it_is_got_and_what_was_taken_before_it_is_handed_over(broker: shmq.Broker) -> None:
    queue = broker.queue("in", max_attempts=2)
    queue.put("before")
    put(broker, 3)
    queue.put("behind")
    assert queue.get_many(5, timeout=0) == ["before"]
    found = []
    for _ in range(4):
        try:
            found += queue.get_many(5, timeout=0)
        except shmq.DecodeError:
            continue
    assert found == ["behind"]
    with broker.queue("in.dead", codec="bytes").receive(timeout=0) as dead:
        assert dead.body == b"\xe9" * 3
        assert dead.death is not None
        assert dead.death.reason == "max_attempts"
        assert "not text in UTF-8" in (dead.death.error or "")
