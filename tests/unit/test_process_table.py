"""The process table tells of the members of a broker."""

import os

import psutil
import pytest

from shmq.core.process_table import state_of


@pytest.mark.parametrize("error", [FileNotFoundError(2, "/proc/1/stat"), psutil.NoSuchProcess(1)])
def test_a_process_that_ends_while_it_is_asked_for_is_told_as_it_was(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def gone(pid: int) -> None:
        raise error

    monkeypatch.setattr(psutil, "Process", gone)
    assert state_of(os.getpid()) == "live"
