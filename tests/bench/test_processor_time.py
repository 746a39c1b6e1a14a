"""The processor time of all processes, as a bench counts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from shmq.bench.processor_time import processor_seconds, processor_times
from tests.engine.child import eventually

# As PySpark's daemon: nobody waits for its workers. The worker works for a while, then says who it is.
DAEMON = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 0.3:
        pass
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_what_workers_took_that_have_ended_is_not_taken_from_what_others_take() -> None:
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None
            worker = int(daemon.stdout.readline())
            before, own = processor_times(), time.process_time()
            os.kill(worker, signal.SIGKILL)
            eventually(lambda: not psutil.pid_exists(worker))
            while time.process_time() < own + 0.05:
                pass
            assert processor_seconds(before) > 0.03  # the kernel counts in hundredths
        finally:
            daemon.kill()
