"""A process that promises more memory than there is gets a warning."""

import logging
import os
from pathlib import Path

import pytest

import shmq

pytestmark = pytest.mark.memory


def test_queues_that_may_have_more_than_the_broker_are_told_of_with_names_and_figures(
    broker_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows S136."""
    with caplog.at_level(logging.WARNING, "shmq.flow"), shmq.open(broker_dir, memory="16MiB") as broker:
        broker.queue("lines", max_memory="7MiB")
        queue = broker.queue("images", max_memory="8MiB")  # 15 MiB of 15
        assert not caplog.records
        broker.queue("words", max_memory=1)
        (record,) = caplog.records
        for words in ("15,728,641 bytes in all", "'images' 8,388,608, 'lines' 7,340,032, 'words' 1", "has 15,728,640"):
            assert words in record.getMessage()
        assert "smaller max_memory" in record.getMessage()
        broker.queue("words", max_memory=1)
        assert len(caplog.records) == 1  # the same is told once
        queue.alter(max_memory="4MiB")
        assert len(caplog.records) == 1
        queue.alter(max_memory="9MiB")
        assert len(caplog.records) == 2


def test_a_queue_without_max_memory_is_not_counted(broker_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "shmq.flow"), shmq.open(broker_dir, memory="16MiB") as broker:
        broker.queue("lines", max_memory="15MiB")
        broker.queue("images", maxsize=100_000_000, max_bytes="1GiB")
        assert not caplog.records


@pytest.mark.parametrize("of", ["/dev/shm", "this machine"])
def test_a_broker_that_is_larger_than_there_is_memory_is_told_of(
    broker_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    size = 32 << 20
    broker_dir.mkdir()

    def little(asked: object) -> object:
        return size // 4096 if asked == "SC_PHYS_PAGES" else 4096

    class Little:
        f_blocks, f_frsize, f_bavail = size // 4096, 4096, size // 4096

    if of == "/dev/shm":
        monkeypatch.setattr(os, "statvfs", lambda path: Little)
    else:
        monkeypatch.setattr(os, "sysconf", little)
    with caplog.at_level(logging.WARNING, "shmq.broker"):
        with shmq.open(broker_dir / "fits", memory="32MiB"):
            assert not caplog.records
        with shmq.open(broker_dir / "large", memory="64MiB"):
            (record,) = caplog.records
    assert f"67,108,864 bytes of memory= is made, and {of} has 33,554,432" in record.getMessage()
    assert os.path.isdir(broker_dir / "large")
