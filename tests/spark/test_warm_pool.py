"""Tasks and their warm pool, without Spark: a task is a call of through_pool, here or in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shmq
from shmq.errors import OptionsMismatch, ShmqError
from shmq.spark.warm.job import Job
from shmq.spark.warm.place import Place
from tests.support.warm_pools import wait_for_the_end_of_pools

if TYPE_CHECKING:
    import pyarrow

pytestmark = pytest.mark.usefixtures("with_spark")

SECONDS = 60.0  # of anything, on a busy machine
Make = Callable[..., Job]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Jobs whose pools have their places in the test's directory; they have ended when the test has."""
    import pyarrow as pa

    from tests.spark import warm_calls

    def made(handler: str | Callable[..., Any] = "doubled", load: str | None = None, **fields: Any) -> Job:
        call = getattr(warm_calls, handler) if isinstance(handler, str) else handler
        initializer = None if load is None else getattr(warm_calls, load)
        calls = pickle.dumps((call, initializer, () if load is None else (tmp_path,)))
        chosen = {"processes": 1, "memory": 16 << 20, "idle": 1.0, "in_flight": 4, "key_file": None, **fields}
        schema = pa.schema([("id", pa.int64())]).serialize().to_pybytes()
        return Job(calls=calls, run="test", directory=str(tmp_path), schema=schema, **chosen)

    yield made
    wait_for_the_end_of_pools(tmp_path)


def batches(count: int, rows: int = 3) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    for number in range(count):
        yield pa.RecordBatch.from_pydict({"id": list(range(number * rows, (number + 1) * rows))})


def ids(job: Job, count: int = 20) -> list[int]:
    from shmq.spark.warm.task import through_pool

    return [value for batch in through_pool(batches(count), job) for value in batch.column(0).to_pylist()]


def send_ids(job: Job, count: int, pipe: Any) -> None:
    pipe.send(ids(job, count))


def stop_half_way(job: Job, count: int, pipe: Any) -> None:
    """A task that is killed when it has handed on half of its results."""
    from shmq.spark.warm.task import through_pool

    for number, batch in enumerate(through_pool(batches(count), job)):
        pipe.send(batch.column(0).to_pylist())
        if number == count // 2:
            os.kill(os.getpid(), signal.SIGKILL)


def started(target: Callable[..., None], job: Job, count: int) -> tuple[Any, Any]:
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(job, count, writer))
    process.start()
    writer.close()
    return process, reader


def users_of(job: Job) -> set[int]:
    return Place.of(job).users()


def test_results_come_in_the_order_of_the_batches(make: Make) -> None:
    assert ids(make(processes=3), 50) == [2 * n for n in range(150)]


def test_a_handler_may_return_more_rows_as_a_table(make: Make) -> None:
    assert ids(make("twice"), 2) == [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]


def test_a_task_without_batches_has_no_results(make: Make) -> None:
    assert ids(make(), 0) == []


def test_all_tasks_of_a_host_share_one_load(make: Make, tmp_path: Path) -> None:
    job = make("by_whom", "note", idle=3.0)
    tasks = [started(send_ids, job, 10) for _ in range(3)]
    pids = {pid for _, reader in tasks for pid in reader.recv()}
    for process, _ in tasks:
        process.join(SECONDS)
    pids.update(ids(job, 10))
    assert len(pids) == 1
    assert len(list(tmp_path.glob("loaded-*"))) == 1


def test_other_handlers_have_other_pools(make: Make) -> None:
    assert make().key != make("twice").key
    assert make().key == make(in_flight=7).key  # an affair of the task alone


def test_a_killed_worker_fails_no_task(make: Make, tmp_path: Path) -> None:
    from tests.spark.warm_calls import DieOnce

    assert ids(make(DieOnce(tmp_path, 30))) == [2 * n for n in range(60)]
    assert (tmp_path / "died").exists()


def test_a_batch_that_kills_every_worker_fails_its_task(make: Make) -> None:
    with pytest.raises(ShmqError, match="batch 0 of this task failed: 3 processes of the pool died with this batch"):
        ids(make("die"), 1)


def test_a_pool_whose_processes_are_all_killed_is_started_again(make: Make) -> None:
    from shmq.spark.warm.task import through_pool

    job = make(in_flight=1)
    results = through_pool(batches(10), job)
    found = [next(results)]
    others = users_of(job)
    assert others
    for how in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: none of them replaces another one meanwhile
        for pid in others:
            os.kill(pid, how)
    found += results
    assert [value for batch in found for value in batch.column(0).to_pylist()] == [2 * n for n in range(30)]


def test_workers_end_with_the_first_process_of_their_pool_and_the_task_goes_on_with_others(make: Make) -> None:
    from shmq.spark.warm.task import through_pool

    job = make("by_whom", in_flight=2)
    results = through_pool(batches(1_000_000, rows=1), job)
    worker = next(results).column(0)[0].as_py()
    (host,) = users_of(job) - {worker}
    watched = os.pidfd_open(worker)
    try:
        os.kill(host, signal.SIGKILL)
        deadline = time.monotonic() + SECONDS
        while not select.select([watched], [], [], 0)[0]:
            assert time.monotonic() < deadline, "a worker of a killed pool goes on"
            next(results)
        while next(results).column(0)[0].as_py() == worker:  # what it had answered before
            pass
    finally:
        results.close()  # type: ignore[attr-defined]
        os.close(watched)


def test_a_task_that_is_tried_again_doubles_nothing(make: Make) -> None:
    job = make(idle=3.0)
    process, reader = started(stop_half_way, job, 20)
    process.join(SECONDS)
    assert process.exitcode == -signal.SIGKILL
    assert reader.recv() == [0, 2, 4]
    assert ids(job) == [2 * n for n in range(60)]
    with shmq.open(Place.of(job).broker, create=False) as broker:
        assert list(broker.statistics().queues) == ["requests"]


def test_the_error_of_a_handler_is_told_with_its_traceback(make: Make) -> None:
    with pytest.raises(ShmqError, match="batch 0 of this task failed") as caught:
        ids(make("refuse"))
    text = str(caught.value)
    assert 'warm_calls.py", line' in text
    assert "LookupError: no such thing as 0" in text
    assert "handling.py" not in text


def test_the_pool_outlives_errors(make: Make, tmp_path: Path) -> None:
    job = make("refuse", "note", idle=3.0)
    for _ in range(3):
        with pytest.raises(ShmqError, match="LookupError"):
            ids(job)
    assert len(list(tmp_path.glob("loaded-*"))) == 1


def test_what_is_no_batch_is_refused(make: Make) -> None:
    with pytest.raises(ShmqError, match=re.escape("returns a pyarrow.RecordBatch or a pyarrow.Table, not NoneType")):
        ids(make("nothing"))


def test_an_initializer_that_fails_is_told_and_tried_again_for_the_next_task(make: Make, tmp_path: Path) -> None:
    job = make("doubled", "leave")
    with pytest.raises(ShmqError, match=r"no process of the pool can start: .* FileNotFoundError: the") as told:
        ids(job)
    assert "requests" not in str(told.value)  # the name of a queue that its user has not made
    assert "message" not in str(told.value)
    (tmp_path / "mended").touch()
    deadline = time.monotonic() + SECONDS
    while Place.of(job).directory.exists():  # the pool that could not begin has gone
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ids(job, 1) == [0, 2, 4]


def test_an_initializer_whose_work_has_not_begun_has_failed(make: Make) -> None:
    with pytest.raises(
        ShmqError, match=r"no process of the pool can start: .*initializer later\(\) returned a coroutine"
    ):
        ids(make("doubled", "later"))


def test_a_batch_that_does_not_fit_is_refused_with_what_helps(make: Make) -> None:
    from shmq.spark.warm.task import through_pool

    with pytest.raises(ShmqError, match=r"batch of this task does not fit into the pool: 8,\d+,\d+ bytes.* memory="):
        list(through_pool(batches(1, rows=1 << 20), make()))


def test_a_result_that_does_not_fit_is_refused(make: Make) -> None:
    with pytest.raises(
        ShmqError, match=r"its result of 8,\d+,\d+ bytes does not fit into the pool, .* map_in_pool memory="
    ):
        ids(make("wide"))


def test_more_batches_than_the_memory_holds_wait_for_room(make: Make) -> None:
    from shmq.spark.warm.task import through_pool

    job = make(memory=8 << 20, in_flight=8)
    total = 0
    for batch in through_pool(batches(20, rows=200_000), job):
        total += batch.num_rows
    assert total == 20 * 200_000


@pytest.mark.parametrize("encrypts", [False, True])
def test_what_does_not_fit_into_memory_can_be_read_on_disk_only_without_a_key_file(
    make: Make, tmp_path: Path, encrypts: bool
) -> None:
    """Shows G8."""
    from shmq.spark.warm.task import through_pool
    from tests.spark.warm_calls import SECRET, SECRETS

    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    job = make("secrets", in_flight=100, key_file=str(key) if encrypts else None)
    found = b""

    def on_disk() -> bytes:
        return b"".join(path.read_bytes() for path in Place.of(job).broker.glob("disk/**/*") if path.is_file())

    def given() -> Iterator[pyarrow.RecordBatch]:
        nonlocal found
        yield from batches(30)
        deadline = time.monotonic() + SECONDS
        while len(found) < 4 << 20:  # of 30 MiB: nothing is taken before all are given
            assert time.monotonic() < deadline
            with suppress(FileNotFoundError):
                found = on_disk()

    assert sum(batch.num_rows for batch in through_pool(given(), job)) == 30 * SECRETS
    assert (SECRET * 2 in found) == (not encrypts)
    assert key.read_bytes() not in found


def test_a_key_file_makes_another_pool_and_has_to_be_there(make: Make, tmp_path: Path) -> None:
    job = make(key_file=str(tmp_path / "no-key"))
    assert job.key != make().key
    with pytest.raises(FileNotFoundError, match="no-key"):
        ids(job, 1)
    Place.of(job).lock.unlink()
    Place.of(job).directory.rmdir()


def kill_all(job: Job) -> None:
    while pids := users_of(job):
        for pid in pids:
            with suppress(ProcessLookupError):  # a worker whose pool is dead ends by itself
                os.kill(pid, signal.SIGKILL)


def test_a_pool_begins_anew_with_another_key_in_the_file(make: Make, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    job = make(key_file=str(key), idle=30.0)
    ids(job, 1)
    key.write_bytes(b"y" * 32)
    with pytest.raises(OptionsMismatch, match="another encryption_key"):
        ids(job, 1)
    kill_all(job)
    assert Place.of(job).directory.exists()
    assert ids(make(key_file=str(key)), 1) == [0, 2, 4]


def test_what_a_killed_pool_has_left_goes_with_the_next_pool(make: Make) -> None:
    killed, other = make(idle=30.0), make("twice")
    ids(killed, 1)
    kill_all(killed)
    assert Place.of(killed).directory.exists()
    deadline = time.monotonic() + SECONDS
    while Place.of(killed).directory.exists():  # a worker that had just been started may look for its pool first
        assert time.monotonic() < deadline
        ids(other, 1)


def test_a_directory_of_others_is_refused(make: Make, tmp_path: Path) -> None:
    pools = tmp_path / f"shmq-pools-{os.geteuid()}"
    pools.mkdir()
    pools.chmod(0o777)
    with pytest.raises(PermissionError, match="can be written to by others"):
        ids(make(), 1)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"n": [1]}, "column 'id' is missing: the handler returned n, the schema has id"),
        ({"id": [1], "n": [1]}, "column 'n' is too many"),
        ({"id": ["a"]}, "column 'id': the handler returned string, the schema has int64"),
    ],
)
def test_columns_that_were_not_promised_are_named(columns: dict[str, list[Any]], text: str) -> None:
    import pyarrow as pa

    from shmq.spark.warm.arrow import SchemaMismatch, fitted

    with pytest.raises(SchemaMismatch, match=text):
        fitted(pa.RecordBatch.from_pydict(columns), pa.schema([("id", pa.int64())]))


def test_columns_come_in_the_order_of_the_schema_and_times_in_its_zone() -> None:
    import pyarrow as pa

    from shmq.spark.warm.arrow import fitted

    schema = pa.schema([("at", pa.timestamp("us", "Europe/Berlin")), ("id", pa.int64())])
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([5], pa.timestamp("us", "UTC"))], names=["id", "at"])
    assert fitted(batch, schema).schema == schema
