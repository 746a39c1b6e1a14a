"""Takes the place of multiprocessing's queues: same signatures, same exceptions, no feeder thread.

Once put() has returned, the message lies in shared memory: it outlives the process that put it, which can be joined
before anybody has read. An object that cannot be pickled raises in put(), and nothing is put then. A process that is
killed holds no lock that others wait for.

Example:
    from shmq.mp import Queue  # was: from multiprocessing import Queue
"""

from shmq.mp.context import Context, get_context
from shmq.mp.joinable_queue import JoinableQueue
from shmq.mp.process_broker import set_encryption_key
from shmq.mp.queue import Queue
from shmq.mp.queue_like import JoinableQueueLike, QueueLike
from shmq.mp.simple_queue import SimpleQueue

__all__ = [
    "Context",
    "JoinableQueue",
    "JoinableQueueLike",
    "Queue",
    "QueueLike",
    "SimpleQueue",
    "get_context",
    "set_encryption_key",
]
