"""The pools of map_in_pool outlive the tasks that use them; a test waits until they have gone."""

import time
from pathlib import Path

SECONDS = 300.0  # on a busy machine


def wait_for_the_end_of_pools(directory: Path) -> None:
    """Returns when no pool is left below the directory for temporary files."""
    deadline = time.monotonic() + SECONDS
    while left := list(directory.glob("shmq-pools-*/*")):
        logs = [file.read_text(errors="replace") for pool in left for file in pool.glob("log")]
        assert time.monotonic() < deadline, f"a pool does not end: {logs}"
        time.sleep(0.05)
