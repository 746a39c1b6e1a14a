"""Whole programs with a pool, in processes of their own: examples of the documentation, Ctrl-C, the end of a parent."""

import os
import re
import select
import signal
import subprocess
import sys
import zipapp
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import shmq

KILLED_WORKER = """
import os
import signal

import shmq


def handle(m: shmq.Message[int]) -> int:
    if m.body == 500 and not m.redelivered:
        os.kill(os.getpid(), signal.SIGKILL)   # this worker dies with the message in hand
    return m.body * m.body                     # returning acks, an exception retries


if __name__ == "__main__":
    with shmq.open() as broker:
        jobs, squares = broker.queue("jobs"), broker.queue("squares")
        jobs.put_many(range(1000))
        shmq.WorkerPool(jobs, handle, processes=4, results=squares).run(until_empty=True)
        assert sorted(squares.get_many(2000, timeout=0)) == [n * n for n in range(1000)]
"""

OWN_LOOP = """
import shmq


def resize(image: bytes) -> None: ...


jobs = shmq.open("jobs.shmq").queue("resize", codec="bytes")
for m in jobs.consumer():                      # ends after jobs.shutdown(). If this process dies, others get the message
    with m:                                    # ack. An exception: retry, and it passes through, so this loop ends
        resize(m.body)
"""  # noqa: E501 - as documented

# Says on "begun" who has a message in hand, and goes on when there is something on "go".
HOLDING = """
import os
import sys

import shmq


def handle(m):
    m.queue.broker.queue("begun").put(os.getpid())
    m.queue.broker.queue("go").get(timeout=60.0)


if __name__ == "__main__":
    processes, until_empty = int(sys.argv[1]), sys.argv[2] == "until_empty"
    with shmq.open("jobs.shmq") as broker:
        shmq.WorkerPool(broker.queue("jobs"), handle, processes=processes).run(until_empty=until_empty)
    print("after the pool")
"""

UNKNOWN_HANDLER = """
import sys
import types

import shmq

if __name__ == "__main__":
    hidden = types.ModuleType("hidden")
    exec("def handle(m): pass", hidden.__dict__)
    sys.modules["hidden"] = hidden
    with shmq.open() as broker:
        jobs = broker.queue("jobs")
        jobs.put(1)
        try:
            shmq.WorkerPool(jobs, hidden.handle, processes=2).run(until_empty=True)
        except shmq.WorkerError as error:
            assert "ModuleNotFoundError: No module named 'hidden'" in str(error), error
            assert jobs.qsize() == 1
            print("refused")
"""

UNGUARDED = """
import shmq


def handle(m):
    return m.body


jobs = shmq.open("jobs.shmq").queue("jobs")
jobs.put(1)
shmq.WorkerPool(jobs, handle, processes=4, mp_context="METHOD").run(until_empty=True)
"""

FORGOTTEN = """
import shmq


def handle(m):
    return m.body


if __name__ == "__main__":
    broker = shmq.open()
    jobs, results = broker.queue("jobs"), broker.queue("results")
    shmq.WorkerPool(jobs, handle, processes=2, results=results).__enter__()
    jobs.put(1)
    print(results.get(timeout=120.0))
"""


FINISHING = "finishing the messages in hand; Ctrl-C or SIGTERM once more ends at once and gives them back\n"


def program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def finished(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program(folder, text))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def test_a_killed_worker_loses_nothing_ten_times_in_a_row(tmp_path: Path) -> None:
    """Shows G2."""
    for _ in range(10):
        run = finished(tmp_path, KILLED_WORKER)
        assert (run.returncode, run.stdout) == (0, "")
        (line,) = run.stderr.splitlines()  # without any logging set up
        assert re.fullmatch(r"worker \d+ of queue 'jobs': killed by SIGKILL; its message .*", line)


def test_a_loop_of_ones_own_ends_after_the_shutdown(tmp_path: Path) -> None:
    with shmq.open(tmp_path / "jobs.shmq", memory="32MiB") as broker:
        jobs = broker.queue("resize", codec="bytes")
        jobs.put_many([b"image"] * 50)
        jobs.shutdown()
        run = finished(tmp_path, OWN_LOOP)
        assert (run.returncode, run.stderr) == (0, "")
        assert jobs.statistics().acked == 50


def test_a_handler_that_workers_cannot_import_is_named_and_workers_print_nothing(tmp_path: Path) -> None:
    run = finished(tmp_path, UNKNOWN_HANDLER)
    assert (run.returncode, run.stdout) == (0, "refused\n")
    told = [line for line in run.stderr.splitlines() if line.startswith("a worker of queue 'jobs' died as it started")]
    assert len(told) == run.stderr.count("Traceback") == 5


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_program_without_its_guard_is_told_so_by_its_first_worker(tmp_path: Path, method: str) -> None:
    text = UNGUARDED.replace("METHOD", method)
    run = finished(tmp_path, text)
    assert run.returncode == 1
    last = run.stderr.rstrip().splitlines()[-1]
    assert last.startswith("shmq.errors.WorkerError: the workers of queue 'jobs' die as they start")
    assert last.endswith('put what starts the pool behind if __name__ == "__main__":, for workers import the program')
    assert run.stderr.count("RuntimeError: a worker imports this program, which starts a pool again") == 1
    with shmq.open(tmp_path / "jobs.shmq") as broker:
        assert broker.queue("jobs").qsize() == 2  # of the program and of one worker


MAIN = """
import sys

import shmq


class Handler:
    def __call__(self, m):
        return m.body


def handle(m):
    return m.body


if __name__ == "__main__":
    import functools

    given = {"function": handle, "object": Handler(), "partial": functools.partial(handle), "module": None}
    handler = given[sys.argv[1]]
    if handler is None:
        from pkg.handlers import handle as handler
    with shmq.open() as broker:
        jobs = broker.queue("jobs")
        jobs.put(1)
        print(shmq.WorkerPool(jobs, handler, processes=2).run(until_empty=True))
"""


@pytest.mark.parametrize("way", [["-m", "pkg"], ["pkg"], ["pkg.pyz"]], ids=["package", "folder", "archive"])
@pytest.mark.parametrize("handler", ["function", "object", "partial"])
def test_a_handler_in_the_main_file_of_a_package_is_refused_before_a_worker_starts(
    tmp_path: Path, way: list[str], handler: str
) -> None:
    run = main_file(tmp_path, way, handler)
    assert (run.returncode, run.stdout, run.stderr.count("Traceback")) == (1, "", 1)
    last = run.stderr.rstrip().splitlines()[-1]
    assert last.startswith("TypeError: workers do not import the __main__.py of a package, a folder or an archive")
    assert "move handler and initializer to another module of it, or use processes=0" in last


def test_a_handler_in_another_module_of_a_package_is_fine(tmp_path: Path) -> None:
    run = main_file(tmp_path, ["-m", "pkg"], "module")
    assert (run.returncode, run.stdout, run.stderr) == (0, "PoolCounts(handled=1, retried=0, dead={})\n", "")


def main_file(folder: Path, way: list[str], handler: str) -> subprocess.CompletedProcess[str]:
    package = folder / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(MAIN)
    (package / "handlers.py").write_text("def handle(m):\n    return m.body\n")
    zipapp.create_archive(package, folder / "pkg.pyz")
    command = [sys.executable, *way, handler]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


DAEMONIC = """
import multiprocessing

import shmq


def handle(m):
    return m.body


def run():
    assert multiprocessing.current_process().daemon
    with shmq.open() as broker:
        jobs, results = broker.queue("jobs"), broker.queue("results")
        jobs.put(1)
        print(shmq.WorkerPool(jobs, handle, processes=2, results=results).run(until_empty=True))
    assert multiprocessing.current_process().daemon


if __name__ == "__main__":
    for method in ("forkserver", "spawn", "fork"):  # the last one's parent has a server of processes by then
        process = multiprocessing.get_context(method).Process(target=run, daemon=True)
        process.start()
        process.join()
        assert process.exitcode == 0
"""


def test_a_pool_in_a_daemonic_process_runs_however_that_was_started(tmp_path: Path) -> None:
    run = finished(tmp_path, DAEMONIC)
    assert (run.returncode, run.stdout, run.stderr) == (0, "PoolCounts(handled=1, retried=0, dead={})\n" * 3, "")


# As a program runs that PyInstaller has packed: multiprocessing starts the executable, which is the whole program.
PACKED = """
import os
import sys

sys.frozen, sys.executable = True, os.environ["PACKED"]

import multiprocessing

import shmq


def handle(m):
    return m.body


if __name__ == "__main__":
    with open("starts", "a") as starts:
        print(*sys.argv, file=starts)
    if len(open("starts").readlines()) > 50:
        sys.exit("without an end")
    with shmq.open(memory="8MiB") as broker:
        jobs = broker.queue("jobs")
        jobs.put(1)
        shmq.WorkerPool(jobs, handle, processes=1, mp_context=os.environ["METHOD"]).run(until_empty=True)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_packed_program_without_freeze_support_says_so_and_starts_no_pool_in_its_workers(
    tmp_path: Path, method: str
) -> None:
    executable = tmp_path / "packed"
    executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program(tmp_path, PACKED)}" "$@"\n')
    executable.chmod(0o755)
    run = subprocess.run(
        [executable],
        cwd=tmp_path,
        env={**os.environ, "PACKED": str(executable), "METHOD": method},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, "without an end" in run.stderr) == (1, False)
    told = "call multiprocessing.freeze_support() first behind"
    assert any(line.startswith("RuntimeError: ") and told in line for line in run.stderr.splitlines()), run.stderr
    if method == "spawn":  # where the server does not come to be, there is an EOFError of multiprocessing
        assert told in run.stderr.rstrip().splitlines()[-1]


@pytest.mark.parametrize("arguments", [["-"], ["-c", FORGOTTEN]], ids=["stdin", "c"])
def test_a_program_without_a_file_is_refused_before_a_worker_starts(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, *arguments]
    run = subprocess.run(
        command, input=FORGOTTEN, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert run.stderr.count("Traceback") == 1
    last = run.stderr.rstrip().splitlines()[-1]
    assert last.startswith("TypeError: workers cannot import this program: it has no file")
    assert 'or use processes=0, or mp_context="fork"' in last


def test_a_program_that_forgets_its_pool_ends_all_the_same(tmp_path: Path) -> None:
    run = finished(tmp_path, FORGOTTEN)
    assert (run.returncode, run.stdout, run.stderr) == (0, "1\n", "")


# ---- signals -------------------------------------------------------------------------------------------------------


@contextmanager
def holding(folder: Path, processes: int, mode: str) -> Iterator[tuple[subprocess.Popen[str], shmq.Broker, int]]:
    """A program whose pool has one message in hand and one more to come; the pid of who has it."""
    with shmq.open(folder / "jobs.shmq", memory="32MiB") as broker:
        broker.queue("jobs").put_many(["in hand", "to come"])
        command = [sys.executable, str(program(folder, HOLDING)), str(processes), mode]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                worker = broker.queue("begun").get(timeout=120.0)
                yield process, broker, worker
            finally:
                process.kill()


def settled_at_exit(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


@pytest.mark.parametrize("processes", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_what_is_in_hand_and_ends_the_run(
    tmp_path: Path, processes: int, number: signal.Signals
) -> None:
    with holding(tmp_path, processes, "for ever") as (process, broker, _):
        process.send_signal(number)
        broker.queue("go").put_many([None, None])
        code, out, err = settled_at_exit(process)
        assert (code, out, err) == (0, "after the pool\n", FINISHING)
        jobs = broker.queue("jobs").statistics()
        # The signal and the permission to go on run a race: the second message may have been taken before the first.
        assert jobs.acked >= 1
        assert jobs.acked + jobs.ready == 2
        assert (jobs.unsettled, jobs.redelivered) == (0, 0)


@pytest.mark.parametrize("processes", [0, 1])
def test_an_interrupted_run_until_empty_does_not_pretend_to_be_done(tmp_path: Path, processes: int) -> None:
    with holding(tmp_path, processes, "until_empty") as (process, broker, _):
        process.send_signal(signal.SIGINT)
        broker.queue("go").put_many([None, None])
        code, out, err = settled_at_exit(process)
        assert code == -signal.SIGINT  # how Python ends after a KeyboardInterrupt
        assert out == ""
        assert "KeyboardInterrupt" in err
        assert broker.queue("jobs").statistics().unsettled == 0


@pytest.mark.memory  # all that is logged is compared
def test_sigterm_in_a_run_until_empty_exits_with_its_code(tmp_path: Path) -> None:
    with holding(tmp_path, 1, "until_empty") as (process, broker, _):
        process.send_signal(signal.SIGTERM)
        broker.queue("go").put_many([None, None])
        assert settled_at_exit(process) == (128 + signal.SIGTERM, "", FINISHING)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_second_ctrl_c_kills_and_messages_go_back(tmp_path: Path, processes: int) -> None:
    with holding(tmp_path, processes, "for ever") as (process, broker, worker):
        jobs = broker.queue("jobs")
        while process.poll() is None and jobs.statistics().unsettled:  # two signals that are not yet handled are one
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
        code, out, err = settled_at_exit(process)
        assert code == -signal.SIGINT
        assert out == ""
        # A third signal may meet the end of the interpreter, which says so.
        assert err.partition("Exception ignored in")[0].count("Traceback") == 1, err
        assert [jobs.get(timeout=5.0), jobs.get(timeout=5.0)] == ["in hand", "to come"]
        if processes:
            with pytest.raises(ProcessLookupError):
                os.kill(worker, 0)


@pytest.mark.memory  # all that is logged is compared
def test_workers_take_no_notice_of_ctrl_c(tmp_path: Path) -> None:
    with holding(tmp_path, 1, "for ever") as (process, broker, worker):
        os.kill(worker, signal.SIGINT)
        broker.queue("go").put(None)
        assert broker.queue("begun").get(timeout=120.0) == worker
        broker.queue("go").put(None)
        broker.queue("jobs").shutdown()
        assert settled_at_exit(process) == (0, "after the pool\n", "")


@pytest.mark.memory  # all that is logged is compared
def test_ctrl_c_in_a_terminal_reaches_all_and_only_the_pool_acts_on_it(tmp_path: Path) -> None:
    with holding(tmp_path, 2, "for ever") as (process, broker, _):
        broker.queue("begun").get(timeout=120.0)  # the other one has its message, too
        os.killpg(process.pid, signal.SIGINT)
        broker.queue("go").put_many([None, None])
        assert settled_at_exit(process) == (0, "after the pool\n", FINISHING)
        jobs = broker.queue("jobs").statistics()
        assert (jobs.acked, jobs.ready, jobs.unsettled) == (2, 0, 0)


@pytest.mark.memory  # all that is logged is compared
def test_sigterm_to_a_worker_costs_nothing_and_it_is_replaced(tmp_path: Path) -> None:
    with holding(tmp_path, 1, "for ever") as (process, broker, worker):
        os.kill(worker, signal.SIGTERM)
        broker.queue("go").put(None)
        other = broker.queue("begun").get(timeout=120.0)
        broker.queue("go").put(None)
        broker.queue("jobs").shutdown()
        assert settled_at_exit(process) == (0, "after the pool\n", "")
        assert other != worker
        assert broker.queue("jobs").statistics().redelivered == 0


def test_workers_end_by_themselves_when_the_process_of_the_pool_was_killed(tmp_path: Path) -> None:
    with holding(tmp_path, 1, "for ever") as (process, broker, worker):
        watched = os.pidfd_open(worker)
        try:
            process.kill()
            broker.queue("go").put_many([None, None])
            assert select.select([watched], [], [], 120.0)[0]
        finally:
            os.close(watched)
        jobs = broker.queue("jobs").statistics()
        assert (jobs.acked + jobs.ready, jobs.unsettled) == (2, 0)
