"""The binding under AddressSanitizer and UndefinedBehaviorSanitizer: tests of Python against a sanitized extension."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builds.extension_tree import interpreter_of, tree_around
from builds.native_build import RACE, SANITIZED, Variant, built
from tests.native.c_programs import said_by
from tests.support.size import FULL, sized

# Together they call every function of native/python; the rest of the suite with SHMQ_FULL=1.
QUICK = [
    "tests/unit/test_directory.py",
    "tests/unit/test_selector.py",
    "tests/engine/messages/test_batches.py",
    "tests/engine/messages/test_browse.py",
    "tests/engine/messages/test_counts.py",
    "tests/engine/messages/test_dead_letters.py",
    "tests/engine/messages/test_loans.py",
    "tests/engine/messages/test_settlement.py",
    "tests/engine/messages/test_views.py",
    "tests/engine/lifecycle/test_closing.py",
    "tests/engine/lifecycle/test_shutdown.py",
]
WHOLE = ["tests/unit", "tests/engine", "tests/mp"]
RUN_SECONDS = sized(2400, 3600)


def library(name: str) -> str:
    """The sanitizer's library has to be the first one that the interpreter loads."""
    answer = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = answer.stdout.strip()
    if not Path(path).is_absolute():
        pytest.skip(f"gcc comes without {name} here")
    return path


def run_under(variant: Variant, preload: str, tests: list[str], base: Path, variables: dict[str, str]) -> str:
    """Runs tests against an extension with this sanitizer in it; what they say. Asserts that they pass."""
    directory = built(variant, targets=("_native",))
    tree = tree_around(directory)
    python = interpreter_of(directory)
    # Not SHMQ_TEST_STRICT either: beside it runs the whole suite, whose segments it would take for its own.
    left_out = ("PYTEST_", "SHMQ_TEST_STRICT")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    # PYTHONMALLOC: else an overrun inside one of the interpreter's arenas is not seen.
    environment |= {"LD_PRELOAD": preload, "PYTHONMALLOC": "malloc", "PYTHONPATH": "", **variables}
    said = subprocess.run(
        [python, "-c", "import shmq._native; print(shmq._native.__file__)"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    ).stdout
    assert str(tree) in said, f"these tests would run against {said}"
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={base}"]
    options += ["-m", "not alone", "--rootdir", str(tree)]
    result = said_by([python, "-m", "pytest", *options, *tests], RUN_SECONDS, cwd=tree, env=environment)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout[-8000:]}"
    assert " passed" in result.stdout
    return result.stdout


@pytest.mark.timeout(RUN_SECONDS + 400)
def test_the_binding_passes_its_tests_under_the_sanitizers(tool: Callable[[str], str], tmp_path: Path) -> None:
    tool("gcc")
    variables = {
        # The interpreter itself keeps memory to its end; a leak of the binding is found by the tests of its lifetimes.
        "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1:abort_on_error=0:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    preload = f"{library('libasan.so')} {library('libubsan.so')}"
    run_under(SANITIZED, preload, WHOLE if FULL else QUICK, tmp_path / "inner", variables)


@pytest.mark.timeout(RUN_SECONDS + 400)
def test_threads_that_are_cut_off_amid_calls_race_with_nobody(tool: Callable[[str], str], tmp_path: Path) -> None:
    """The random calls of test_closes_amid_calls.py, in processes whose extension ThreadSanitizer watches."""
    tool("gcc")
    known = tmp_path / "known"
    known.write_text("race:_dl_deallocate_tls\n")  # a thread's own variables go with it, which the sanitizer misses
    variables = {"TSAN_OPTIONS": f"exitcode=99:history_size=4:report_signal_unsafe=0:suppressions={known}"}
    tests = ["tests/engine/lifecycle/test_closes_amid_calls.py", "-k", "cut_off"]
    run_under(RACE, library("libtsan.so"), tests, tmp_path / "inner", variables)
