"""Fixtures for pytest: a broker for each test, of which nothing is left. pytest finds them where shmq is installed.

`shmq_broker`: an open broker. `shmq_directory`: a directory in which the test, and its programs, may open one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import shmq

__all__ = ["shmq_broker", "shmq_directory"]

MEMORY = "16MiB"


@pytest.fixture
def shmq_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory in which the test, and programs that it starts, may open a broker. It does not exist yet.

    When the test is over the broker is deleted, whoever still uses it: the calls of processes that are left fail. One
    whose directory the test has deleted goes, too.

    Example:
        >>> def test_a_worker(shmq_directory):  # doctest: +SKIP
        ...     subprocess.run([sys.executable, "worker.py", shmq_directory], check=True)
        ...     with shmq.open(shmq_directory) as broker:
        ...         assert broker.queue("results").get(timeout=0) == "done"
    """
    path = tmp_path / "broker"
    yield path
    from shmq.engine.directory.orphans import orphans, sweep_discarded
    from shmq.engine.directory.removal import destroy
    from shmq.errors import BrokerNotFound

    with suppress(BrokerNotFound):
        destroy(str(path), force=True)
    sweep_discarded(orphans(str(path), deleted=True), str(path))


@pytest.fixture
def shmq_broker(shmq_directory: Path) -> Iterator[shmq.Broker]:
    """An open broker of 16 MiB in `shmq_directory`.

    Example:
        >>> def test_an_order(shmq_broker):  # doctest: +SKIP
        ...     shmq_broker.queue("orders").put("one")
        ...     assert shmq_broker.queue("orders").qsize() == 1
    """
    import shmq

    with shmq.open(shmq_directory, memory=MEMORY) as broker:
        yield broker
