"""`shmq pipeline` as a user meets it, with the Spark that it starts by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shmq
from tests.cli.shell import SHMQ, TIMEOUT, Shell
from tests.engine.child import eventually

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm


@pytest.fixture
def broker(broker_dir: Path) -> Iterator[shmq.Broker]:
    with shmq.open(broker_dir, memory="64MiB") as opened:
        yield opened


@pytest.fixture
def shell(broker: shmq.Broker, broker_dir: Path, tmp_path: Path) -> Shell:
    return Shell(broker_dir, tmp_path)


def test_an_archive_ends_by_ctrl_c_and_a_page_shows_it(with_spark: Jvm, broker: shmq.Broker, shell: Shell) -> None:
    """Ctrl-C as a terminal sends it: to the command and all of its processes."""
    orders = broker.queue("orders")
    orders.put_many({"id": n} for n in range(100))
    command = subprocess.Popen(
        [*SHMQ, "pipeline", "archive", "kept", "orders", "--every", "0.5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=shell.environment,
        cwd=shell.folder,
        start_new_session=True,
    )
    try:
        eventually(lambda: any(shell.folder.glob("kept/*/_spark_metadata/0")), "a batch in the archive")
        os.killpg(command.pid, signal.SIGINT)
        out, words = command.communicate(timeout=TIMEOUT)
    finally:
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGKILL)
            command.communicate()
    assert (command.returncode, out) == (130, "100 messages archived\n"), words
    assert words == "archiving 'orders'; Ctrl-C ends\n"
    assert broker.queue("orders.spark.archive").qsize() == 0  # the last batch is acknowledged

    orders.put("<b>one more</b>")
    shown = shell("pipeline", "stats", "orders", "--archive", "kept", "--html", "page.html", "--json")
    (row,) = shown.json["queues"]
    assert (row["waiting"], row["left"], shown.words) == (1, 100, "")
    assert "<svg" in (shell.folder / "page.html").read_text()
