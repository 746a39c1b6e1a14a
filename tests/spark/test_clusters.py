"""Executors that are processes of their own: some of one application, a standalone cluster, limits of their memory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import shmq
from tests.spark.drivers import SECONDS, STREAM, program, running

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

ROWS = 4000
EXECUTOR = "CoarseGrainedExecutorBackend"

LIMITED = """
    import sys
    from shmq.spark import local_session
    with local_session(**{"spark.executor.pyspark.memory": "400m"}) as spark:
        rows = spark.read.format("shmq").option("path", sys.argv[1]).option("queue", "orders").load()
        print(rows.count())
"""


@pytest.fixture
def orders(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        broker.queue("orders").put_many(b"%d" % n for n in range(ROWS))
        yield broker


def executor_of(roots: list[int]) -> psutil.Process | None:
    for root in roots:
        for process in psutil.Process(root).children(recursive=True):
            try:
                if process.name() == "java" and any(EXECUTOR in word for word in process.cmdline()):
                    return process
            except psutil.NoSuchProcess:
                pass
    return None


def stream_with_a_kill(
    broker: shmq.Broker, directory: Path, master: str, workers: list[int], **environment: str
) -> list[int]:
    """The rows that come out of a query, one of whose executors is killed while they come."""
    results = broker.queue("results")
    arguments = [*program(directory, STREAM), "path", broker.path or "", str(directory / "checkpoint"), master]
    log = directory / "driver.txt"
    with running(arguments, log, **environment) as driver:
        found = [results.get(timeout=SECONDS) for _ in range(600)]
        victim = executor_of([*workers, driver.pid])
        assert victim is not None, "no executor to kill"
        victim.kill()
        found += [results.get(timeout=SECONDS) for _ in range(ROWS - len(found))]
        assert driver.wait(SECONDS) == 0, log.read_text()[-3000:]
    assert results.qsize() == 0
    return [int(body) for body in found]


def test_an_executor_that_is_killed_loses_and_doubles_nothing(
    with_spark: Jvm, orders: shmq.Broker, tmp_path: Path
) -> None:
    found = stream_with_a_kill(orders, tmp_path, "local-cluster[2,1,512]", [])
    assert found == list(range(ROWS))


def test_a_standalone_cluster_of_two_workers_reads_and_writes_each_row_once(
    with_spark: Jvm, orders: shmq.Broker, tmp_path: Path
) -> None:
    import pyspark

    start = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    home = {"JAVA_HOME": str(with_spark.home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        at = [start, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = tmp_path / "master.txt"
        stack.enter_context(running(at, log, **home))
        url = wait_for(log, r"spark://127\.0\.0\.1:\d+")
        workers = []
        for number in range(2):
            work = ["--cores", "1", "--memory", "600m", "--webui-port", "0", "--host", "127.0.0.1", "-d", str(tmp_path)]
            process = running([start, f"{deploy}.worker.Worker", *work, url], tmp_path / f"worker{number}.txt", **home)
            workers.append(stack.enter_context(process).pid)
        for number in range(2):
            wait_for(tmp_path / f"worker{number}.txt", "Successfully registered with master")
        found = stream_with_a_kill(orders, tmp_path, url, workers, **home)
    assert found == list(range(ROWS))


def wait_for(log: Path, pattern: str) -> str:
    """The first match in what a process says."""
    import time

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace")) if log.exists() else None
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"{pattern} does not come: {log.read_text()[-3000:]}")


def test_a_worker_that_may_not_map_the_broker_names_the_setting(
    with_spark: Jvm, broker_dir: Path, tmp_path: Path
) -> None:
    with shmq.open(broker_dir, memory="64MiB") as broker:
        broker.queue("orders").put(b"one")
        arguments = [*program(tmp_path, LIMITED), broker.path or ""]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode != 0
        assert "this process may map 419,430,400 bytes" in done.stderr
        assert "leave spark.executor.pyspark.memory unset" in done.stderr
        assert broker.queue("orders").qsize() == 1
