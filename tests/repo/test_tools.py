"""The commands of tools/: what is missing is named with its remedy, the summary tells all, a second start is quick."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import time
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

from tests.repo.tree import ROOT

TOOLS = ROOT / "tools"
# Measured: about 0.1 s, nearly all of it for two interpreters and the digest of the tree.
SECOND_START = 2.0


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded("environment", monkeypatch)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded("suite", monkeypatch)


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fresh copy of a module of tools/, which is no package."""
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def started(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOLS / "interpreter"), str(TOOLS / "environment.py"), *command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_a_missing_compiler_is_named_with_the_remedy_and_nothing_is_made(tmp_path: Path) -> None:
    done = started("true", CC="no-such-compiler", SHMQ_VENV=str(tmp_path / "venv"))
    assert done.returncode == 1
    assert "No C compiler was found (tried: no-such-compiler)" in done.stderr
    assert "apt-get install gcc libc6-dev, or set CC" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "venv").exists()


def test_missing_headers_are_named_with_the_remedy(
    environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    (missing,) = environment.missing_requirements()
    assert f"no {tmp_path}/Python.h" in missing
    assert missing.endswith("apt-get install python3-dev")


@pytest.mark.parametrize("module", ["ensurepip", "venv"])
def test_a_missing_module_for_environments_is_named_with_the_remedy(
    environment: ModuleType, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (missing,) = environment.missing_requirements()
    assert re.search(rf"has no module {module}\. .*apt-get install python3\.\d+-venv$", missing)


def test_on_this_machine_nothing_is_missing(environment: ModuleType) -> None:
    assert list(environment.missing_requirements()) == []


def test_a_command_that_is_not_there_is_an_error(environment: ModuleType) -> None:
    if environment.found_stamp() != environment.wanted_stamp():
        pytest.skip(f"{environment.VENV} was changed beside tools/test, which would build it anew")
    done = started("no-such-command")
    assert (done.returncode, done.stdout) == (127, "")
    assert "there is no command no-such-command" in done.stderr


@pytest.mark.alone
def test_a_second_start_adds_less_than_two_seconds(environment: ModuleType) -> None:
    """Margin: the least of three starts, of which each takes some tenths of a second on an idle machine."""
    if environment.found_stamp() != environment.wanted_stamp():
        pytest.skip(f"{environment.VENV} was changed beside tools/test, which would build it anew")
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        assert started("true").returncode == 0
        seconds.append(time.perf_counter() - begin)
    print(f"{min(seconds):.2f} s")
    assert min(seconds) < SECOND_START


INNER = """
import pytest

def test_good():
    pass

def test_bad():
    raise AssertionError("no")

def test_not_run():
    pytest.skip("no such thing here")
"""


def test_the_summary_has_counts_results_and_what_was_not_run(
    suite: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_inner.py").write_text(INNER)
    stage = suite.run_pytest("pytest", ["-c", str(tmp_path / "pytest.ini"), str(tmp_path / "test_inner.py")], False)
    assert stage.status == 1
    assert stage.detail == "3 tests, 1 failed, 1 skipped"
    capfd.readouterr()
    suite.print_summary([suite.Stage("ruff check", 0.5, 0), stage])
    lines = capfd.readouterr().out.splitlines()
    assert any(re.match(r"ruff check +ok +0\.5 s$", line) for line in lines)
    assert any(re.match(r"pytest +FAILED .* 3 tests, 1 failed, 1 skipped$", line) for line in lines)
    assert lines[-2:] == ["not run (1):", "  test_inner.test_not_run: no such thing here"]


def test_a_failed_stage_does_not_keep_the_others_from_running_and_fails_the_whole(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def stage(name: str, *command: object, strict: bool = False) -> object:
        ran.append(name)
        return suite.Stage(name, 0.0, int(name == "ruff check"))

    monkeypatch.setattr(suite, "run_stage", stage)
    monkeypatch.setattr(suite, "prepared", nullcontext)
    assert suite.main([]) == 1
    assert ran[0] == "ruff check"
    assert ran[-1] == "pytest (alone)"
    assert "mypy" in ran
    monkeypatch.setattr(suite, "run_stage", lambda name, *command, strict=False: suite.Stage(name, 0.0, 0))
    assert suite.main([]) == 0


def test_the_instruments_alone_can_be_asked_for(suite: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []

    def run_pytest(name: str, arguments: list[str], strict: bool) -> object:
        chosen.append(arguments[arguments.index("-m") + 1])
        return suite.Stage(name, 0.0, 0)

    monkeypatch.setattr(suite, "run_pytest", run_pytest)
    monkeypatch.setattr(suite, "prepared", nullcontext)
    assert suite.main(["--instruments"]) == 0
    assert chosen == ["not alone and instrument", "alone and instrument"]


def test_continuous_integration_calls_nothing_but_the_suite() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    code = [line.strip() for line in script.splitlines() if line.strip() and not line.startswith("#")]
    assert code[-1] == "exec tools/test --strict"
    assert [line for line in code if "tools/" in line] == [code[-1]]
    assert not re.search(r"pytest|ruff|mypy|pip |cmake|python", "\n".join(code))
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
