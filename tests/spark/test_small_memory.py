"""A batch for which /dev/shm has no room goes to disk; without one its query fails, and the next run has each row."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.repo.tree import ROOT
from tests.spark.drivers import SECONDS

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

APART = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=40m tmpfs /dev/shm && exec "$@"', "sh"]
SETUP = """
    import sys
    import shmq
    from shmq.spark import local_session

    directory, disk = sys.argv[1:]
    broker = shmq.open(f"{directory}/broker", memory="64MiB", disk=disk)
    orders, ballast, results = broker.queue("orders"), broker.queue("ballast"), broker.queue("results")
    bodies = [b"%d " % n + bytes(50_000) for n in range(240)]
    orders.put_many(bodies)
    ballast.put_many(bodies[:200])

    def run(spark):
        rows = spark.readStream.format("shmq").option("path", broker.path).option("queue", "orders")
        rows = rows.option("subscription", "etl").load().select("body")
        sink = rows.writeStream.format("shmq").option("path", broker.path).option("queue", "results")
        sink = sink.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True)
        sink.start().awaitTermination()
"""
WITHOUT_DISK = """
    with local_session() as spark:
        try:
            run(spark)
        except Exception as error:
            text = str(error)
        assert "/dev/shm" in text and "OutOfSpace" in text, text
        assert "take messages out of 'orders.spark" not in text and "maxRowsPerBatch" in text, text
        assert orders.qsize() + broker.queue("orders.spark.etl").qsize() == 240
        assert results.qsize() == 0
        ballast.purge()
        run(spark)
"""
WITH_DISK = """
    with local_session() as spark:
        run(spark)
    assert [ballast.get(timeout=0) for _ in range(ballast.qsize())] == bodies[:200]
"""
RESULTS = """
    found = [results.get(timeout=0) for _ in range(results.qsize())]
    assert found == bodies, len(found)
    print("each row once")
"""


def run_apart(tmp_path: Path, steps: str, disk: str) -> None:
    if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not allowed to mount: run the tests as root, or in a user namespace")
    program = tmp_path / "driver.py"
    program.write_text(textwrap.dedent(SETUP + steps + RESULTS))
    done = subprocess.run(
        [*APART, sys.executable, str(program), str(tmp_path), disk],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "each row once"), done.stderr[-4000:]


def test_a_batch_without_room_in_dev_shm_is_told_and_comes_once_when_there_is_room(
    with_spark: Jvm, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    tool("unshare")
    run_apart(tmp_path, WITHOUT_DISK, "0")


def test_a_batch_without_room_in_dev_shm_goes_to_disk(
    with_spark: Jvm, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    tool("unshare")
    run_apart(tmp_path, WITH_DISK, "1GiB")
