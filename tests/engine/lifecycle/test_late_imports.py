"""Calls that import a module: forks, signal handlers and frozen clocks amid it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmq
from tests.engine.child import HEAD, Child

SLOW = """
import importlib.abc, importlib.util
class Slow(importlib.abc.MetaPathFinder):  # in it the thread lets others run, as a busy machine does
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            begun.set()
            end = time.time() + 1
            while time.time() < end: time.sleep(0.01)
        return None
begun = threading.Event()
sys.meta_path.insert(0, Slow())
"""

VERBS = {
    "lark": "list(queue.consumer(selector='a = 1').receive_many(1, timeout=0))",
    "numpy": "queue.get()",
    "psutil": "broker.statistics()",
}
READY = """
broker = shmq.open(sys.argv[2])
queue = broker.queue("jobs")
verb = lambda: eval(sys.argv[3])
"""


@pytest.fixture
def arrays(broker_dir: Path) -> Iterator[Path]:
    """A broker with arrays, which nobody decodes without numpy."""
    numpy = pytest.importorskip("numpy")
    with shmq.open(broker_dir, memory="16MiB") as broker:
        broker.queue("jobs").put_many([numpy.arange(3)] * 4)
        yield broker_dir


@pytest.mark.parametrize("module", VERBS)
def test_a_child_that_is_forked_amid_an_import_can_do_the_same(module: str, arrays: Path) -> None:
    program = """
thread = threading.Thread(target=verb)
thread.start()
begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    verb()
    os._exit(0)
say(os.waitpid(pid, 0)[1])
thread.join()
"""
    with Child(SLOW + READY + program, module, arrays, VERBS[module]) as child:
        assert child.line() == "0"


@pytest.mark.parametrize("module", VERBS)
def test_a_signal_handler_amid_an_import_can_do_the_same(module: str, arrays: Path) -> None:
    program = """
done = []
def handler(number, frame):
    verb(); done.append(number)
signal.signal(signal.SIGUSR1, handler)
main = threading.get_native_id()
def interrupt():
    begun.wait(); os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=interrupt).start()
verb()
while not done: time.sleep(0.01)
say("done", len(done))
"""
    with Child(SLOW + READY + program, module, arrays, VERBS[module]) as child:
        assert child.line() == "done 1"


def test_no_deadline_is_of_a_clock_that_a_test_has_frozen(broker_dir: Path) -> None:
    program = """
broker = shmq.open(sys.argv[1], memory="16MiB")
queue, empty = broker.queue("jobs"), broker.queue("empty")
queue.put_many(["a", "b", "c"])
time.monotonic = lambda: 5.0
time.time = lambda: 5.0
time.monotonic_ns = time.time_ns = lambda: 5_000_000_000
def ends(call, *errors):
    try: call()
    except errors: return
ends(lambda: queue.join(timeout=0.2), shmq.Timeout)
consumer = queue.consumer(prefetch=1)
held = consumer.receive()
ends(lambda: consumer.receive(timeout=0.2), shmq.Empty)
held.ack()
ends(lambda: empty.receive(timeout=0.2), shmq.Empty)
ends(lambda: broker.consumer(queue, empty, selector="a = 1").receive(timeout=0.2), shmq.Empty)
import select
select.select([consumer], [], [])
consumer.close()
queue.put("d")
import shmq.mp
waiting = shmq.mp.JoinableQueue()
ends(lambda: waiting.get(timeout=0.2), Exception)
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program, broker_dir], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "done\n", done.stderr
