"""Drivers of Spark in processes of their own, whose parts a test can kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

__all__ = ["SECONDS", "STREAM", "end", "program", "running"]

SECONDS = 300  # of one step, on a busy machine

# Queue `orders` goes to `results`. Arguments: option and value that say where, checkpoint, Spark's master.
STREAM = """
    import sys
    from shmq.spark import local_session
    option, place, checkpoint, master = sys.argv[1:]
    conf = {"spark.master": master, "spark.executor.memory": "512m", "spark.executor.cores": 1, "spark.cores.max": 2}
    with local_session(**conf) as spark:
        rows = spark.readStream.format("shmq").option(option, place).option("queue", "orders")
        rows = rows.option("subscription", "etl").option("maxRowsPerBatch", "500").option("minPartitions", "2").load()
        writer = rows.select("body").writeStream.format("shmq").option(option, place).option("queue", "results")
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""


def program(directory: Path, text: str) -> list[str]:
    """The command that runs this program."""
    file = directory / "driver.py"
    file.write_text(textwrap.dedent(text))
    return [sys.executable, str(file)]


@contextmanager
def running(arguments: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends here, with all that it has started; what it says goes into the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            arguments, stdout=output, stderr=output, start_new_session=True, env=os.environ | environment
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """kill -9 of all of it."""
    if process.poll() is None:
        children = psutil.Process(process.pid).children(recursive=True)  # some have groups of their own
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for child in children:
            if child.is_running():
                child.kill()
