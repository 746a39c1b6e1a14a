"""The benchmarks run small, as real processes, so that they never rot. No test here judges their figures."""

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

import shmq
from shmq.bench import processes
from shmq.bench.processes import run_together
from shmq.bench.throughput import rate_of


def run(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "shmq", "bench", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "options",
    [
        ["--size", "64"],
        ["--size", "64", "--batch", "10"],
        ["--size", "64", "--producers", "2", "--consumers", "2"],
        ["--size", "200000", "--loan"],
    ],
    ids=" ".join,
)
def test_throughput_reports_every_contestant_with_a_ratio(options: list[str]) -> None:
    result = run("throughput", "--rounds", "1", "--seconds", "0.02", *options)
    names = [row["name"] for row in result["rows"]]
    assert names[0].startswith("shmq")
    assert "multiprocessing.Queue" in names
    assert "shmq, no checksum" in names
    for row in result["rows"]:
        assert row["messages_per_second"] > 0
        assert row["lowest"] <= row["messages_per_second"] <= row["highest"]
    assert result["rows"][0]["ratio"] == 1.0


def test_latency_reports_every_contestant_with_percentiles_in_order() -> None:
    result = run("latency", "--rounds", "1", "--messages", "30")
    assert {row["name"] for row in result["rows"]} == {"shmq", "multiprocessing.Queue", "os.pipe"}
    for row in result["rows"]:
        assert 0 < row["p50"] <= row["p90"] <= row["p99"]


def test_a_contestant_that_loses_messages_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from shmq.bench import contestant

    class Losing(contestant.ShmqContestant):
        def consume(self, size: int, count: int, batch: int) -> int:
            return super().consume(size, count - 1, batch)

    monkeypatch.setitem(contestant.CONTESTANTS, "losing", Losing)
    with pytest.raises(RuntimeError, match="99 of 100 messages"):
        rate_of("losing", size=8, producers=1, consumers=1, batch=1, messages=100)


def die() -> None:
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise ValueError("on purpose")


@pytest.mark.parametrize(("job", "word"), [(die, "died"), (fail, "on purpose")])
def test_a_process_that_fails_ends_the_measurement_with_an_error(job: object, word: str) -> None:
    with pytest.raises(RuntimeError, match=word):
        run_together([(job, ())])  # type: ignore[list-item]


INTERRUPTED = """
import os, signal
from shmq.bench.processes import run_together

def interrupt_all():
    os.killpg(0, signal.SIGINT)  # as a terminal does
    signal.pause()

try:
    run_together([(interrupt_all, ()), (signal.pause, ())])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_measurement_and_its_processes() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


def test_the_time_is_that_of_the_jobs_however_late_the_parent_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    collect = processes._collect

    def late(ends: list[Any], timeout: float) -> Any:
        time.sleep(0.2)  # the second time: when the children have done their work, as on a busy machine
        return collect(ends, timeout)

    monkeypatch.setattr(processes, "_collect", late)
    seconds, answers = run_together([(sum, ([1, 2],)), (sum, ([3, 4],))])
    assert answers == [3, 7]
    assert seconds > 0


def test_a_selector_takes_one_entry_in_100_whoever_looks() -> None:
    result = run("selector", "--entries", "2000", "--rounds", "1")
    rows = {row["name"]: row for row in result["rows"]}
    assert {row["selected"] for name, row in rows.items() if name != "memcpy of the heads"} == {20}
    assert all(row["entries_per_second"] > 0 for row in rows.values())
    assert rows["shmq, a consumer"]["ratio"] == 1.0


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["depth", "--depth", "5000"], ["depth 10", "depth 5,000"]),
        (["depth", "--depth", "60000", "--memory", "8MiB"], ["depth 10", "depth 60,000"]),
        (["consumers", "--consumers", "200"], ["1 consumer", "200 consumers"]),
    ],
    ids=["depth", "depth on disk", "consumers"],
)
def test_what_should_cost_the_same_is_measured_small_and_large(command: list[str], names: list[str]) -> None:
    rows = run(*command, "--messages", "500", "--rounds", "3")["rows"]
    assert [row["name"] for row in rows] == names
    for row in rows:
        assert all(row[call] > 0 and row[f"{call}_ratio"] > 0 for call in ("put", "get", "ack"))
    assert [rows[0][f"{call}_ratio"] for call in ("put", "get", "ack")] == [1.0] * 3


def test_a_release_of_the_first_message_is_measured_beside_few_and_many_in_hand() -> None:
    rows = run("release", "--held", "3000", "--messages", "200", "--rounds", "3")["rows"]
    assert [row["name"] for row in rows] == ["10 in hand", "3,000 in hand"]
    assert all(row["release"] > 0 and row["ratio"] > 0 for row in rows)
    assert rows[0]["ratio"] == 1.0


def test_a_pool_is_measured_beside_that_of_multiprocessing() -> None:
    rows = run("pool", "--messages", "300", "--rounds", "1")["rows"]
    assert [row["name"].split(".")[0] for row in rows] == ["multiprocessing", "shmq"]
    assert all(row["rate"] > 0 and row["ratio"] > 0 for row in rows)


def test_a_backlog_on_disk_is_measured_beside_memory_and_other_stores() -> None:
    """Shows S141, S142, S185."""
    settings = ["--messages", "9000", "--memory", "16MiB", "--max-memory", "1MiB", "--rounds", "1"]
    result = run("backlog", *settings)
    rows = {row["name"].split(":")[0]: row for row in result["rows"]}
    assert list(rows) == [
        "shmq",
        "shmq, 1,024 a call",
        "shmq, encrypted",
        "shmq, all in memory",
        "SQLite",
        "LMDB",
        "drop all, load on demand",
        "redis",
    ]
    if shutil.which("redis-server") is None:
        redis = rows.pop("redis")
        assert redis["name"] == "redis: no redis-server on the PATH"
        assert redis["in_per_second"] is None
    for row in rows.values():
        assert all(row[f"{kind}_per_second"] > 0 and row[f"{kind}_ratio"] > 0 for kind in ("in", "out", "turn"))
    assert rows["shmq"]["in_ratio"] == 1.0
    assert 1 < rows["shmq"]["memory_mib"] <= 16
    assert rows["shmq"]["disk_mib"] > 7
    assert rows["shmq, all in memory"]["disk_mib"] == 0
    assert result["after"][0]["name"] == "it never flowed"
    assert all(row["put_get"] > 0 for row in result["after"])


def test_a_producer_and_a_consumer_at_full_speed_are_measured_beside_a_backlog() -> None:
    result = run("overload", "--messages", "10000", "--memory", "16MiB", "--seconds", "0.3", "--rounds", "1")
    rows = {row["name"].split(":")[0]: row for row in result["rows"]}
    for name in ("shmq", "LMDB"):
        assert rows[name]["put_per_second"] > 0
        assert rows[name]["get_per_second"] > 0
        assert rows[name]["put_worst_ms"] > 0
        assert rows[name]["get_worst_ms"] > 0
    assert rows["shmq"]["sum_ratio"] == 1.0


def test_a_store_that_loses_part_of_a_backlog_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from shmq.bench import backlog_contestant
    from shmq.bench.backlog import round_of

    class Losing(backlog_contestant.SqliteBacklog):
        def get(self, count: int) -> int:
            return super().get(count) - 1

    monkeypatch.setitem(backlog_contestant.BACKLOGS, "losing", Losing)
    with pytest.raises(RuntimeError, match="losing: 2,497 of 2,500 messages arrived"):
        round_of("losing", backlog_contestant.Load(5000, 100, 1 << 24, 1 << 20), None)


def test_a_round_of_releases_leaves_the_first_message_in_hand() -> None:
    from shmq.bench.release import release_round

    with shmq.open(memory="16MiB") as broker:
        queue: shmq.Queue[bytes] = broker.queue("held", codec="bytes")
        queue.put_many([b"x"] * 30)
        with queue.consumer() as consumer:
            mine = consumer.receive_many(20, timeout=0)
            spent, first = release_round(consumer, mine[0], 10)
            assert spent > 0
            assert first.position == mine[0].position
            found = queue.statistics()
            assert (found.ready, found.unsettled, found.redelivered) == (10, 20, 10)


def test_a_round_leaves_a_queue_as_deep_as_it_was() -> None:
    from shmq.bench.scale import measure_round

    with shmq.open(memory="16MiB") as broker:
        queue: shmq.Queue[bytes] = broker.queue("deep", codec="bytes")
        queue.put_many([b"x"] * 30)
        measure_round(queue, 10)
        found = queue.statistics()
        assert (found.ready, found.unsettled, found.acked) == (30, 0, 20)
