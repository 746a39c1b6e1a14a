"""A process that is stopped while it opens a broker: others hear which one it is, and wait as long as the patience.

Shows G8.
"""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import shmq
from shmq.engine.directory.removal import destroy
from tests.engine.child import Child, eventually
from tests.engine.conftest import MEMORY
from tests.support.segment_image import is_stopped

STOPS = """
from shmq.engine.directory import broker_directory
def stop(*arguments, **options):
    os.kill(os.getpid(), signal.SIGSTOP)
    return work(*arguments, **options)
what = sys.argv[2]
work = getattr(broker_directory, what)
setattr(broker_directory, what, stop)
queue = shmq.open(sys.argv[1], memory="16MiB").queue("q")
queue.put("first")
say("put")
listen()
"""


@pytest.mark.parametrize("stopped_in", ["read_record", "sweep_orphans", "write_record"])
def test_others_do_not_wait_for_an_opener_that_is_stopped(broker_dir: Path, stopped_in: str) -> None:
    with Child(STOPS, broker_dir, stopped_in) as child:
        eventually(lambda: is_stopped(child.pid), "it is stopped")
        told = rf"lock is held by a stopped process, pid {child.pid}; .*kill -CONT {child.pid}"
        with pytest.raises(shmq.BrokerError, match=told) as caught:
            shmq.open(broker_dir, memory=MEMORY)
        assert caught.value.filename == str(broker_dir / "lock")
        with pytest.raises(shmq.BrokerError, match=told):
            shmq.open(broker_dir, create=False)
        if (broker_dir / "segment").exists():
            with pytest.raises(shmq.BrokerError, match=told):
                destroy(str(broker_dir), force=True)
        for command in ("ls", "ps", "init"):
            line = [sys.executable, "-m", "shmq", "-d", str(broker_dir), command]
            done = subprocess.run(line, capture_output=True, text=True, timeout=120)
            assert done.returncode == 1
            assert f"pid {child.pid}" in done.stderr
        child.process.send_signal(signal.SIGCONT)
        assert child.line() == "put"
        with shmq.open(broker_dir) as broker:
            assert broker.queue("q").get(timeout=0) == "first"
            child.tell("end")
            child.end()
            broker.delete()


WORKS = STOPS.replace("os.kill(os.getpid(), signal.SIGSTOP)", "say('holds the lock'); listen()")


def test_an_opener_that_is_at_work_for_long_is_named_once_and_then_an_error(
    broker_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shmq.engine.directory.lock.LONG_WAIT", 0.2)
    monkeypatch.setattr("shmq.engine.directory.lock.LOCK_HELD", 1.0)
    with Child(WORKS, broker_dir, "write_record") as child:
        assert child.line() == "holds the lock"
        with pytest.raises(shmq.BrokerError, match=f"lock is held for 1 seconds by pid {child.pid}"):
            shmq.open(broker_dir)
        (record,) = caplog.records
        assert (record.name, record.levelname) == ("shmq.broker", "WARNING")
        assert f"by pid {child.pid}, which opens or deletes the broker" in record.getMessage()
        child.tell("go on")
        assert child.line() == "put"
        shmq.open(broker_dir).delete(force=True)


def test_an_opener_that_is_at_work_is_waited_for(broker_dir: Path) -> None:
    """It has been asked whether it is stopped, and is not."""
    with Child(WORKS, broker_dir, "write_record") as child:
        assert child.line() == "holds the lock"
        opened: list[shmq.Broker] = []
        thread = threading.Thread(target=lambda: opened.append(shmq.open(broker_dir)))
        thread.start()
        thread.join(0.5)  # several patiences
        assert not opened
        child.tell("go on")
        assert child.line() == "put"
        thread.join()
        (broker,) = opened
        assert broker.queue("q").get(timeout=0) == "first"
        child.tell("end")
        child.end()
        broker.delete()
