"""Each test of the commands has a broker directory and a shell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.forked import Forks
from tests.cli.shell import Shell


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.end()


@pytest.fixture
def bare(tmp_path: Path, broker_dir: Path, forks: Forks) -> Shell:
    """A shell whose $SHMQ_DIR names no broker yet."""
    return Shell(broker_dir, tmp_path, forks)


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell whose $SHMQ_DIR is a broker of 16 MiB."""
    bare("init", "--memory", "16MiB", "--disk", "8GiB")
    return bare
