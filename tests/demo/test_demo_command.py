"""The command as it is called: its figures, its exit code, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shmq.cli.root import root
from shmq.demo import process_server, spark_run
from shmq.demo.definitions import Definitions, Result
from shmq.demo.multiprocessing_run import MultiprocessingRun
from shmq.demo.outcome import Outcome
from shmq.demo.pool_run import PoolRun
from shmq.demo.spark_run import SparkOutcome, SparkRun

SHARED_MEMORY = Path("/dev/shm")
COMMAND = [sys.executable, "-m", "shmq", "demo"]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """60 files that take a few milliseconds each, so that a worker is at work half-way, and two that do not parse."""
    folder = tmp_path / "sources"
    folder.mkdir()
    body = "".join(f"def f{n}(a, b):\n    return [a + {n} for b in range({n})]\n" for n in range(300))
    for number in range(60):
        (folder / f"module_{number}.py").write_text(f"import module_{number}\n{body}")
    (folder / "bad_syntax.py").write_text("def f(:\n")
    (folder / "bad_encoding.py").write_bytes(b"x = '\xff'\n")
    return folder


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_the_demo_kills_a_worker_and_loses_and_doubles_nothing(sources: Path) -> None:
    run = call("--input", sources, "--workers", 2, "--seed", 7, "--json")
    assert run.returncode == 0, run.stderr
    facts: dict[str, Any] = json.loads(run.stdout)
    assert facts["equal"] is True
    assert (facts["files"], facts["lost"], facts["doubled"], facts["wrong"]) == (62, 0, 0, 0)
    assert (facts["workers"], facts["producers"], facts["seed"]) == (2, 2, 7)
    assert (facts["functions"], facts["imports"], facts["unparsed"]) == (60 * 300, 60, 2)
    assert facts["bytes"] == sum(path.stat().st_size for path in sources.iterdir())
    assert facts["multiprocessing"]["equal"] is True
    assert facts["seconds"] > 0
    assert facts["messages"] >= 2 * 62
    assert facts["killed"] is not None, run.stderr
    assert 1 <= facts["redelivered"] <= 3
    assert f"worker {facts['killed']} of queue 'sources': killed by SIGKILL" in run.stderr
    assert "Traceback" not in run.stderr


def test_people_get_a_table_with_both_ways_side_by_side(sources: Path) -> None:
    run = call("--input", sources, "--workers", 1, "--producers", 1)
    assert run.returncode == 0, run.stderr
    head, ours, theirs, alone = run.stdout.splitlines()[:4]
    assert head.split() == ["files", "MB", "seconds", "messages/s", "redelivered", "lost", "doubled", "wrong"]
    assert re.match(r"shmq +62 .* [1-3] +0 +0 +0$", ours)
    assert re.match(r"multiprocessing\.Queue +62 .* 0 +0 +0 +0$", theirs)
    assert re.match(r"one process alone +62 ", alone)
    assert re.search(r"seed \d+; worker \d+ was killed \(SIGKILL\)", run.stdout)
    assert "equal to what one process finds alone" in run.stdout
    assert len([line for line in run.stderr.splitlines() if " of 62" in line]) <= 12  # a quarter each, of three steps


@pytest.mark.parametrize("typed", ["", "tools/run"])
def test_a_refusal_names_the_command_that_was_typed(
    tmp_path: Path, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHMQ_DEMO_TYPED", typed)
    run = call("--input", tmp_path / "nowhere")
    assert run.returncode == 2
    assert run.stderr.startswith(f"Usage: {typed or 'shmq demo'} [OPTIONS]\nTry '{typed or 'shmq demo'} --help'")
    assert call("-h").stdout.startswith(f"Usage: {typed or 'shmq demo'} [OPTIONS]")


def test_a_temporary_directory_with_too_long_a_path_for_sockets_is_named(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    run = call("--input", sources)
    assert run.returncode == 1
    assert "path too long for a socket; let TMPDIR name" in run.stderr
    assert str(deep) in run.stderr
    assert list(deep.iterdir()) == []


def test_a_directory_without_sources_is_a_usage_error(tmp_path: Path) -> None:
    run = call("--input", tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "no *.py file" in run.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_leaves_nothing_behind(sources: Path, number: signal.Signals, code: int) -> None:
    for copy in range(100):  # more than is parsed before the signal comes
        os.link(sources / "module_0.py", sources / f"copy_{copy}.py")
    process = subprocess.Popen([*COMMAND, "--input", str(sources)], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        while "killed by SIGKILL" not in (line := process.stderr.readline()):
            assert line, "it ended before it was interrupted"
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        names = set(re.findall(r"/dev/shm/(shmq-[0-9]+-[0-9a-f]{32})", maps))
        assert len(names) == 1
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == code
    assert "Traceback" not in rest
    assert not any((SHARED_MEMORY / name).exists() for name in names)


# ---- a result that is not right ------------------------------------------------------------------------------------


def falsified(tree_names: tuple[str, ...], how: str, tree: Any) -> list[Result]:
    results = [Result(name, Definitions.of(tree.read(name)), False) for name in tree_names]
    if how == "lost":
        return results[1:]
    if how == "doubled":
        return [*results, results[0]]
    if how == "wrong":
        wrong = results[0].definitions._replace(lines=results[0].definitions.lines + 1)
        return [results[0]._replace(definitions=wrong), *results[1:]]
    return results


@pytest.mark.parametrize("words", [[], ["--spark"]], ids=["pool", "spark"])
@pytest.mark.parametrize(("how", "code"), [("lost", 1), ("doubled", 1), ("wrong", 1), ("nothing", 0)])
def test_the_exit_code_says_what_the_comparison_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, code: int, words: list[str]
) -> None:
    for number in range(3):
        (tmp_path / f"m{number}.py").write_text("import os\n")
    right = Outcome([], 1.0, 6)

    def ours(self: PoolRun) -> Outcome:
        return replace(right, results=falsified(self._tree.names, how, self._tree))

    def by_spark(self: SparkRun) -> SparkOutcome:
        results = falsified(self._tree.names, how, self._tree)
        return SparkOutcome(results, 1.0, 6, 11, driver=12, processes=13, before=2, recovery=5.0, batches=4, parsed=3)

    def theirs(self: MultiprocessingRun) -> Outcome:
        return replace(right, results=falsified(self._tree.names, "nothing", self._tree))

    monkeypatch.setattr(PoolRun, "run", ours)
    monkeypatch.setattr(MultiprocessingRun, "run", theirs)
    monkeypatch.setattr(SparkRun, "run", by_spark)
    monkeypatch.setattr(spark_run, "check_spark", lambda: None)
    # Here it would make the server of this very process, whose children are other tests' and must hear Ctrl-C.
    monkeypatch.setattr(process_server, "start_process_server", lambda: None)
    text = CliRunner().invoke(root, ["demo", "--input", str(tmp_path), *words])
    assert text.exit_code == code, text.output
    assert ("NOT equal" in text.stdout) is bool(code)
    assert ("driver 12 was killed with all of its 13 processes when 2 files had results" in text.stdout) is bool(words)
    facts = json.loads(CliRunner().invoke(root, ["demo", "--input", str(tmp_path), "--json", *words]).stdout)
    assert ("spark" in facts) is bool(words)
    assert facts["equal"] is not bool(code)
    if code:
        assert facts[how] == 1
        assert re.search(rf"{how}: m\d\.py", text.stdout)
