"""The watch over /dev/shm in tests/conftest.py fails a session that leaves a segment behind, and only such a one."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.repo.tree import ROOT

LEAVES_A_SEGMENT = """
from pathlib import Path

def test_inner(broker_dir):
    broker_dir.mkdir()
    (broker_dir / "segment").write_text("{name}")
    Path("/dev/shm/shmq-0-{name}").touch()
"""
LEAVES_NOTHING = LEAVES_A_SEGMENT + "    Path('/dev/shm/shmq-0-{name}').unlink()\n"


@pytest.mark.parametrize(("source", "status"), [(LEAVES_A_SEGMENT, 1), (LEAVES_NOTHING, 0)], ids=["leaky", "clean"])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_session_that_leaves_a_segment_fails(source: str, status: int, workers: str, tmp_path: Path) -> None:
    name = str(uuid.uuid4())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_inner.py").write_text(source.format(name=name))
    # Not strict: other tests make segments at the same time, and these are not the inner session's.
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "SHMQ_TEST_"))}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", workers, f"--basetemp={tmp_path / 'base'}"],
        cwd=tmp_path,
        env=dict(variables, PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )
    assert result.returncode == status, result.stdout
    assert "1 passed" in result.stdout
    assert (f"now removed: shmq-0-{name}" in result.stdout) == (status == 1)
    assert not Path(f"/dev/shm/shmq-0-{name}").exists()
