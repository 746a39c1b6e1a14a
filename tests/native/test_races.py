"""ThreadSanitizer over memberships that share one mapping: nothing is touched that is not ordered."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builds.native_build import RACE, built
from tests.support.size import sized

STEPS = sized(4000, 40000)  # of each of four threads, twice
TRIES = 6  # a weakened order is a race in every run, but seen only when two threads meet in time
RUN_SECONDS = sized(1000, 3000)
REPORT = "WARNING: ThreadSanitizer: data race"


def run(program: str, *arguments: int, weakened: str = "") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:history_size=4")
    environment.pop("SHMQ_WEAKENED", None)
    if weakened:
        environment["SHMQ_WEAKENED"] = weakened
    process = subprocess.Popen(
        [built(RACE, targets=(program,)) / program, *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate(timeout=RUN_SECONDS)
    finally:
        process.kill()
        process.wait()
        # A report ends the program at once, without the handler that takes its segment away.
        for segment in Path("/dev/shm").glob(f"shmq-ctest-{process.pid}-*"):
            segment.unlink(missing_ok=True)
    return subprocess.CompletedProcess([program], process.returncode, output)


@pytest.fixture(autouse=True)
def _gcc(tool: Callable[[str], str]) -> None:
    """Its runtime library for threads comes with it, that of clang often not."""
    tool("gcc")


@pytest.mark.timeout(5000)
def test_members_in_one_mapping_race_for_nothing(seed: int) -> None:
    """Shows S49."""
    result = run("test_members", seed, STEPS)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}"


@pytest.mark.timeout(5000)
def test_takers_of_groups_race_for_nothing(seed: int) -> None:
    """And no two of them have messages of one group; nor does anybody get a later one of a group first. Shows R6."""
    result = run("test_group_traffic", seed, STEPS // 2)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}"


@pytest.mark.timeout(5000)
def test_a_publish_that_orders_nothing_is_found(seed: int) -> None:
    """The same check with one order taken away: it can fail."""
    for more in range(TRIES):
        result = run("test_members", seed + more, 3000, weakened="publish")
        if REPORT in result.stdout:
            assert result.returncode != 0
            return
    pytest.fail(f"in {TRIES} runs nobody saw it; the last one said\n{result.stdout}")
