"""A library has put its own threads in the place of all (gevent, eventlet): behind a descriptor stands a true one."""

from pathlib import Path

from tests.engine.child import Child

PATCHED = """
import _thread, queue, select
jobs = shmq.open(sys.argv[1], memory="16MiB").queue("jobs")
def never(*arguments, **options):
    raise AssertionError("a thread of the library, which runs when the loop lets it")
class Green:  # locks and queues that need the loop
    def __init__(self, *arguments): never()
_thread.start_new_thread = never
threading.Lock = queue.SimpleQueue = threading.Event = Green
"""


def test_a_descriptor_becomes_readable_where_threads_are_green(broker_dir: Path) -> None:
    program = """
consumer = jobs.consumer()
number = consumer.fileno()
assert select.select([number], [], [], 0)[0] == []
if os.fork() == 0:
    jobs.put("a"); os._exit(0)
assert select.select([number], [], [], 60)[0] == [number]
assert consumer.receive(timeout=0).body == "a"
consumer.close()
while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.001)
say("done")
"""
    with Child(PATCHED + program, broker_dir) as child:
        assert child.line() == "done"
