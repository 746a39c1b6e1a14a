"""Each test of the commands has a broker directory and a shell."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def bare(tmp_path: Path, broker_dir: Path) -> Shell:
    """A shell whose $SHMQ_DIR names no broker yet."""
    return Shell(broker_dir, tmp_path)


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell whose $SHMQ_DIR is a broker of 16 MiB."""
    bare("init", "--memory", "16MiB", "--disk", "8GiB")
    return bare
