"""shmq demo --spark with a real Spark: its figures, its exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

COMMAND = [sys.executable, "-m", "shmq", "demo", "--spark", "--json", "--workers", "2"]
SECONDS = 600


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """60 files that take a few milliseconds each, so that a worker is at work when it shall die, and one that does not
    parse."""
    folder = tmp_path / "sources"
    folder.mkdir()
    body = "".join(f"def f{n}(a, b):\n    return [a + {n} for b in range({n})]\n" for n in range(300))
    for number in range(60):
        (folder / f"module_{number}.py").write_text(f"import module_{number}\n{body}")
    (folder / "bad_syntax.py").write_text("def f(:\n")
    return folder


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where temporary files of the command and of Spark are. Sockets have their names there, of 107 bytes at most."""
    with TemporaryDirectory(prefix="demo-", dir="/tmp") as folder:
        yield Path(folder)


def left_in(scratch: Path) -> list[str]:
    """Files, shared segments that are named there, and processes that work there."""
    return [*map(str, scratch.rglob("*")), *processes_in(scratch)]


def processes_in(scratch: Path) -> Iterator[str]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path("/proc", name, "cmdline").read_bytes().decode(errors="replace")
            place = os.readlink(f"/proc/{name}/cwd")
        except OSError:
            continue
        if str(scratch) in words or place.startswith(str(scratch)):
            yield f"{name}: {words}"


def test_a_worker_of_spark_and_the_driver_die_and_the_result_is_that_of_one_process(
    with_spark: Jvm, sources: Path, scratch: Path
) -> None:
    run = subprocess.run(
        [*COMMAND, "--input", str(sources), "--seed", "7"],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert run.returncode == 0, run.stderr
    facts: dict[str, Any] = json.loads(run.stdout)
    assert facts["equal"] is True
    assert (facts["files"], facts["lost"], facts["doubled"], facts["wrong"]) == (61, 0, 0, 0)
    assert (facts["functions"], facts["imports"], facts["unparsed"]) == (60 * 300, 60, 1)
    spark = facts["spark"]
    assert facts["killed"] is not None
    assert spark["driver"] is not None
    assert spark["processes"] >= 4, "the driver, its Java, the planner, workers"
    assert 31 <= spark["before"] < 61
    assert spark["recovery_seconds"] > 0
    assert spark["batches"] >= 8
    assert spark["parsed"] > 61, "what the dead had in hand was parsed twice"
    assert facts["redelivered"] > 0
    assert f"worker {facts['killed']} of Spark: killed by SIGKILL" in run.stderr
    assert f"driver {spark['driver']} of Spark: killed by SIGKILL" in run.stderr
    assert left_in(scratch) == []


def test_an_interrupted_demo_leaves_no_java_no_memory_and_no_checkpoint(
    with_spark: Jvm, sources: Path, scratch: Path
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--input", str(sources)],
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        while "of Spark: killed by SIGKILL" not in (line := process.stderr.readline()):
            assert line, "it ended before it was interrupted"
        assert list(processes_in(scratch))
        segments = named_in(scratch)
        assert segments
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert left_in(scratch) == []
    assert not any(Path("/dev/shm", name).exists() for name in segments)


def named_in(scratch: Path) -> set[str]:
    """Segments of the brokers whose directories lie there."""
    found = set()
    for pid in (text.partition(":")[0] for text in processes_in(scratch)):
        maps = Path("/proc", pid, "maps").read_text()
        found |= {line.rpartition("/")[2].split()[0] for line in maps.splitlines() if "/dev/shm/shmq-" in line}
    return found
