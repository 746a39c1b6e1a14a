"""The system sleeps, or somebody sets its clock, while a broker is there: each message tells the time of its put.

A library that is loaded before the C library's moves the clocks of a process by what two files say, in seconds.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.child import HEAD

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long from_file(const char *name) {
    long long seconds = 0;
    FILE *file = fopen(name, "r");
    if (file != NULL) {
        if (fscanf(file, "%lld", &seconds) != 1) {
            abort();
        }
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL) {
        next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int result = next(clock, at);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_BOOTTIME) {
        at->tv_sec += from_file("slept");
    }
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        at->tv_sec += from_file("stepped");
    }
    return result;
}
"""

STEPS = """
import json, pathlib
def moves(name, seconds):
    pathlib.Path(name + ".new").write_text(str(seconds))
    os.rename(name + ".new", name)
def near(one, other):
    assert abs(one - other) < 60, (one, other, one - other)
HOUR = 3600
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, folder / "shim.c", "-ldl"], check=True)
    return library


def run(shim: Path, folder: Path, program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + STEPS + program],
        cwd=folder,
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", ["slept", "stepped"])
@pytest.mark.parametrize("hours", [8, -8])
def test_a_message_tells_the_time_of_its_put_before_and_behind_a_step(
    file: str, hours: int, shim: Path, tmp_path: Path
) -> None:
    """Also in other processes, on disk, behind several steps; and who selects by the time gets what was meant.

    Shows G1.
    """
    run(
        shim,
        tmp_path,
        f"""
broker = shmq.open("b", memory="16MiB", disk="64MiB")
queue = broker.queue("jobs")
deep = broker.queue("deep", max_memory=1)
times = []
for n in range(6):
    moves({file!r}, n * {hours} * HOUR + (10 * 24 * HOUR if {hours} < 0 else 0))
    times.append(time.time())
    queue.put(n, ttl=10 * HOUR); queue.put_many([n], ttl=10 * HOUR)
    for _ in range(3): deep.put(str(n) + "x" * 3000)
    near(queue.statistics().oldest_age, abs(n * {hours} * HOUR) if {file!r} == "slept" and {hours} > 0 else
         queue.statistics().oldest_age)
looks = '''
broker = shmq.open("b")
times = json.loads(sys.argv[1])
queue, deep = broker.queue("jobs"), broker.queue("deep")
for where in (queue, deep):
    for m in where.browse():
        near(m.enqueued_at, times[int(str(m.body)[0])])
between = f"JMSTimestamp BETWEEN {{times[3] * 1000 - 60000:.0f}} AND {{times[3] * 1000 + 60000:.0f}}"
assert [m.body for m in queue.browse(selector=between)] == [3, 3]
with queue.consumer(selector=between) as consumer:
    assert [m.body for m in consumer.receive_many(9, timeout=0)] == [3, 3]
assert [int(str(m.body)[0]) for m in deep.browse(selector=between)] == [3, 3, 3]
for m in queue.browse():
    near(m.expires_at, time.time() + 10 * HOUR)  # on the clock as it goes now
held = queue.receive()
broker.close()
near(held.enqueued_at, times[0])
'''
import subprocess
subprocess.run([sys.executable, "-c", {HEAD + STEPS!r} + looks, json.dumps(times)], check=True)
exec(looks, dict(globals(), sys=type("", (), dict(argv=["", json.dumps(times)]))))
""",
    )


def test_more_steps_than_are_kept_change_no_message_behind_them(shim: Path, tmp_path: Path) -> None:
    run(
        shim,
        tmp_path,
        """
queue = shmq.open("b", memory="16MiB").queue("jobs")
times = []
for n in range(100):
    moves("stepped", n * HOUR)
    times.append(time.time())
    queue.put(n)
for m in list(queue.browse())[-30:]:
    near(m.enqueued_at, times[m.body])
shmq.open("b").close()
""",
    )


def test_an_age_counts_the_time_asleep_and_no_step(shim: Path, tmp_path: Path) -> None:
    run(
        shim,
        tmp_path,
        """
broker = shmq.open("b", memory="16MiB")
early, late = broker.queue("early"), broker.queue("late")
early.put("a")
moves("slept", 8 * HOUR); moves("stepped", -3 * HOUR)
late.put("b")
near(early.statistics().oldest_age, 8 * HOUR)
near(late.statistics().oldest_age, 0)
moves("slept", 9 * HOUR)
near(early.statistics().oldest_age, 9 * HOUR)
near(late.statistics().oldest_age, HOUR)
""",
    )


def test_a_time_to_live_counts_no_time_asleep(shim: Path, tmp_path: Path) -> None:
    run(
        shim,
        tmp_path,
        """
queue = shmq.open("b", memory="16MiB").queue("jobs")
queue.put("a", ttl=HOUR)
moves("slept", 8 * HOUR)
(m,) = queue.browse()
near(m.expires_at, time.time() + HOUR)
assert queue.get(timeout=0) == "a"
""",
    )
