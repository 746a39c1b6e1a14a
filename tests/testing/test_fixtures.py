"""The fixtures for pytest, as a project that uses shmq has them: no more than shmq and pytest installed."""

import subprocess
import sys
from pathlib import Path

from shmq.core import segment
from shmq.engine.directory.orphans import orphans

TESTS = """
import os, shutil, subprocess, sys
import pytest
import shmq

def test_a_broker(shmq_broker, shmq_directory):
    shmq_broker.queue("orders").put("one")
    assert shmq_broker.path == str(shmq_directory)
    assert shmq_broker.queue("orders").qsize() == 1

def test_each_test_has_its_own(shmq_broker):
    assert shmq_broker.queues() == []

def test_a_program(shmq_directory):
    program = "import shmq, sys; shmq.open(sys.argv[1], memory='8MiB').queue('results').put('done')"
    subprocess.run([sys.executable, "-c", program, shmq_directory], check=True)
    with shmq.open(shmq_directory) as broker:
        assert broker.queue("results").get(timeout=0) == "done"

def test_that_fails(shmq_broker):
    shmq_broker.queue("orders").put("one")
    raise AssertionError("as told")

def test_that_leaves_a_process(shmq_broker, request):
    program = "import shmq, sys; shmq.open(sys.argv[1]).queue('orders').get()"
    child = subprocess.Popen([sys.executable, "-c", program, shmq_broker.path], stderr=subprocess.PIPE)
    request.config.child = child
    while len(shmq_broker.statistics().processes) < 2:
        assert child.poll() is None

def test_it_has_ended(request):
    _, words = request.config.child.communicate(timeout=120)
    assert b"BrokerNotFound" in words

def test_that_deletes_the_directory(shmq_broker, shmq_directory):
    shutil.rmtree(shmq_directory)

def test_that_uses_none():
    pass
"""


def test_fixtures_give_brokers_and_leave_nothing(tmp_path: Path) -> None:
    """Shows G8."""
    (tmp_path / "test_orders.py").write_text(TESTS)
    place = tmp_path / "files"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={place}", "test_orders.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "1 failed, 7 passed" in done.stdout, done.stdout + done.stderr
    assert "test_that_fails" in done.stdout
    assert [identity for identity in orphans(deleted=True) if identity.path.startswith(str(place))] == []
    assert [name for name in segment.list_segments() if str(place) in path_of(name)] == []


def path_of(name: str) -> str:
    try:
        return segment.inspect(name).path
    except OSError:
        return ""  # gone meanwhile, or another user's


def test_pytest_is_needed_only_by_who_tests() -> None:
    program = "import sys, shmq, shmq.engine.directory.removal, shmq.mp; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
