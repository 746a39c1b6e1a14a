"""The last close of a broker ends all that the process opened there by itself, by any verb, whatever it keeps.

Each verb runs in a process of its own, whose threads, descriptors, mappings and segments are counted after each round.
"""

from pathlib import Path

import pytest

import shmq
from tests.engine.child import Child

ROUNDS = 12

COUNTING = """
import multiprocessing, os, select, tempfile
import shmq.mp

def is_of_shmq(path):
    return path.startswith(("/dev/shm/shmq-", sys.argv[1])) or "shmq-" in os.path.basename(path)

def descriptors():
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass  # that of the listing
    return found

def kept():
    with open("/proc/self/maps") as maps:
        mapped = sum("/dev/shm/shmq-" in line for line in maps)
    threads = len(os.listdir("/proc/self/task"))
    return {"descriptors": len(descriptors()), "of shmq": sum(map(is_of_shmq, descriptors())), "mappings": mapped,
            "threads": threads, "segments": len([name for name in os.listdir("/dev/shm") if name in ours])}

ours = set()
def opened(**options):
    broker = shmq.open(sys.argv[1] if sys.argv[2] == "directory" else None, memory="16MiB", disk="1GiB", **options)
    ours.add(broker._membership.key)
    return broker

def handle(m):
    return m.body

def put(broker, queue):
    queue.put("a"); queue.put_many(range(100)); queue.put("h", headers={"n": 1}, ttl=100)
    return queue.get()

def get_many(broker, queue):
    queue.put_many(range(100))
    return queue.get_many(50), queue

def receive(broker, queue):
    queue.put_many(["a", "b", "c"])
    with queue.receive() as m:
        m.body
    held = queue.receive()
    return held, queue.receive_many(1), queue

def fail(broker, queue):
    queue.put_many(["a", "b"])
    queue.receive().reject("bad")
    queue.receive().retry("again")
    return [m.death for m in broker.queue("jobs.dead").browse()], queue

def drop(broker, queue):
    queue.put("a")
    queue.receive()
    try:
        queue.receive()
    except shmq.SettlementError:
        return queue

def consumer(broker, queue):
    queue.put_many(range(3))
    consumer = queue.consumer(prefetch=2, selector="kind IS NULL")
    return consumer, consumer.receive(), iter(consumer)

def several(broker, queue):
    queue.put_many(range(3))
    consumer = broker.consumer(queue, broker.queue("other"))
    return consumer, consumer.receive()

def fileno(broker, queue):
    consumer = queue.consumer()
    queue.put("a")
    select.select([consumer], [], [])  # the descriptor is the consumer's, and not kept: it tells a loop of the close

def browse(broker, queue):
    queue.put_many(range(3))
    looking = queue.browse(follow=True)
    return next(looking), looking, queue

def view(broker, queue):
    queue.put(bytes(500_000))
    m = queue.receive()
    with m.view() as view:
        assert len(view) == 500_000
    other = broker.queue("other")
    other.put(bytes(500_000))
    with other.receive() as read:
        assert len(read.body) == 500_000
    return m, read, queue

def loan(broker, queue):
    with queue.loan(500_000) as loan:
        loan.view[:] = bytes(500_000)
    left = queue.loan(10)
    left.abandon()
    return left, loan, queue

def move(broker, queue):
    queue.put_many(range(10))
    queue.move(broker.queue("other"), limit=5)
    queue.purge()
    return queue

def statistics(broker, queue):
    queue.put("a")
    return queue.statistics(), broker.statistics(), broker.queues(), queue.options

def delete(broker, queue):
    queue.put("a"); queue.receive()
    queue.delete()
    return queue

def flow(broker, queue):
    deep = broker.queue("deep", codec="bytes", max_memory=1)
    for n in range(50): deep.put(bytes(5000))
    return deep.get(), deep.get_many(20), deep

def wait(broker, queue):
    def take():
        try:
            queue.get()
        except shmq.Closed:
            pass
    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads: thread.start()
    while queue._waiters()["asleep"] < 3: time.sleep(0.001)
    return threads, queue

def pickled(broker, queue):
    import pickle
    queue.put("a")
    again = pickle.loads(pickle.dumps(queue))
    again.receive().ack()  # not kept: its handle on the broker is another one

def refused(broker, queue):
    seen = []
    for wrong in (lambda: queue.get(timeout=0), lambda: queue.put(object()), lambda: broker.queue("q", create=False)):
        try:
            wrong()
        except Exception as error:
            seen.append(error)
    return seen, queue

def forked(broker, queue):
    queue.put_many(["a", "b"])
    m = queue.receive()
    pid = os.fork()
    if pid == 0:
        queue.get(); broker.close()
        os._exit(len([path for path in descriptors() if is_of_shmq(path)]))
    assert os.waitpid(pid, 0)[1] == 0
    return m, queue

def pool(broker, queue):
    queue.put_many(range(5))
    results = broker.queue("results")
    pool = shmq.WorkerPool(queue, handle, processes=0, results=results)
    pool.run(until_empty=True)
    return pool, results.get_many(10), queue

def processes(broker, queue):
    queue.put_many(range(5))
    pool = shmq.WorkerPool(queue, repr, processes=1)
    pool.run(until_empty=True)
    return queue

def deleted(broker, queue):
    queue.put("a")
    m = queue.receive()
    broker.delete()
    return m, queue, broker

def replaced(broker, queue):  # those of multiprocessing: in a broker that lives with the process
    kinds = shmq.mp.Queue(), shmq.mp.JoinableQueue(), shmq.mp.SimpleQueue()
    for one in kinds: one.put("a"); one.get()

VERBS = {f.__name__: f for f in (put, get_many, receive, fail, drop, consumer, several, fileno, browse, view, loan,
    move, statistics, delete, flow, wait, pickled, refused, forked, pool, processes, deleted, replaced)}

def one_round(verb):
    with opened() as broker:
        result = VERBS[verb](broker, broker.queue("jobs"))
    after = kept()  # while all that the verb answered is kept
    return after, result

def run():
    verb = sys.argv[3]
    one_round(verb)  # what the interpreter opens once
    while (before := kept())["threads"] != 1: time.sleep(0.001)
    own = 1 if verb == "replaced" else 0
    for n in range(int(sys.argv[4])):
        after, result = one_round(verb)
        for thread in (result[0] if verb == "wait" else ()): thread.join()
        until = time.monotonic() + 30
        while (threads := kept()["threads"]) != before["threads"] and time.monotonic() < until:
            time.sleep(0.001)  # the system counts one that was joined a moment longer
        after["threads"] = threads
        if after != before:
            say(f"round {n}: {before} before, {after} after")
            return
    segments = 0 if sys.argv[2] == "anonymous" or verb == "deleted" else 1
    found = before["mappings"], before["of shmq"], before["segments"]
    say("nothing kept" if found == (own, 2 * own, segments) else before)

if __name__ == "__main__":
    run()
"""

VERBS = (
    "put", "get_many", "receive", "fail", "drop", "consumer", "several", "fileno", "browse", "view", "loan", "move",
    "statistics", "delete", "flow", "wait", "pickled", "refused", "forked", "pool", "processes", "deleted", "replaced",
)  # fmt: skip


@pytest.mark.parametrize("home", ["anonymous", "directory"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_broker_keeps_no_descriptor_mapping_thread_or_memory(verb: str, home: str, broker_dir: Path) -> None:
    """Shows G5."""
    with Child(COUNTING, broker_dir, home, verb, ROUNDS) as child:
        assert child.line() == "nothing kept"


def test_what_is_read_in_place_stays_until_its_reader_has_done(broker_dir: Path) -> None:
    broker = shmq.open(broker_dir, memory="16MiB")
    queue = broker.queue("jobs")
    queue.put(b"x" * 500_000)
    name = broker._membership.member.name
    message = queue.receive()
    view = message.view()
    broker.close()
    assert bytes(view) == b"x" * 500_000
    assert name in Path("/proc/self/maps").read_text()
    view.release()
    del message, view
    assert name not in Path("/proc/self/maps").read_text()
    with pytest.raises(shmq.Closed):
        queue.get(timeout=0)
