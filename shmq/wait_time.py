"""How long Python code of shmq waits, in seconds, where the patience does not say it.

How long a stopped process may be in the way of others is the broker's option patience. The core asks it; so do
`put(immediate=True)` and descriptors. Code that waits by the times here looks at a state of which nobody tells, or says
that something takes long. Or it stops waiting for something that would long be over if it were well. The core's times
are in native/src/base/wait_time.h.
"""

from __future__ import annotations

__all__ = [
    "BUSY_LOOK",
    "CREDIT_LOOK",
    "DRAFT_AGE",
    "EARLY_DEATH",
    "DEAD_LETTERS_TOLD",
    "DEAD_LETTER_LOOK",
    "IMPORT_END",
    "LEFT_TO_TAKE_LOOK",
    "LOCK_HELD",
    "LOCK_LOOK",
    "LONG_CALL",
    "LONG_WAIT",
    "NOTED_WITHIN",
    "OTHERS_FLOW",
    "OTHERS_LOOK",
    "OTHERS_LOOK_OF_A_POOL",
    "OVERDUE_LOOK",
    "OWNER_LOOK",
    "PROCESS_END",
    "RESTART",
    "STALL_AGAIN",
    "THREAD_END",
    "WORKERS_END",
]

# Of the engine.
LONG_WAIT = 5.0  # without room, at the prefetch, for the lock of a directory: then the log says so
LEFT_TO_TAKE_LOOK = 0.1  # what comes back from a consumer, or from a delay, ends no wait
DEAD_LETTER_LOOK = 0.25  # for what nobody may be given any more, by whoever waits until a queue is empty
DEAD_LETTERS_TOLD = 1.0  # from a line of the log about the dead of a queue to the next one, however many die
CREDIT_LOOK = 0.5  # a lease that ends and a purge give credit back, and tell nobody
IMPORT_END = 10.0  # a fork waits for an import of another thread, unless that waits for what the fork has
THREAD_END = 1.0  # a thread that was told to end is left alone after it: the interpreter may be ending, too
OTHERS_FLOW = 10.0  # memory for what Spark stages and decides: others move theirs to disk in milliseconds
LOCK_HELD = 60.0  # a broker is opened or deleted in milliseconds, on a full disk or a busy machine in seconds
LOCK_LOOK = 0.02  # who holds the lock of a directory is asked only where it is held for longer than an opening takes
DRAFT_AGE = 60.0  # the maker of a file locks it at once: one that is older and not locked is left behind

# Of pools.
OWNER_LOOK = 1.0  # is the pool's process there, and is the worker to stop, while there is nothing to do
BUSY_LOOK = 0.005  # the same between two messages, and at those that take less
LONG_CALL = 60.0  # of a handler that the end of the pool waits for, of an initializer: then the log says so
OVERDUE_LOOK = 0.5  # between looks at a message that is over its lease and still its worker's, for it was touched
PROCESS_END = 1.0  # behind the last word of a worker its process takes milliseconds
OTHERS_LOOK = 0.1  # for what others hold, in the only thread, which has nothing else to do
OTHERS_LOOK_OF_A_POOL = 0.5  # the same where workers do the work meanwhile
RESTART = 0.05  # before a worker is started again, doubled with each failure
EARLY_DEATH = 1.0  # after it was ready: a worker that dies sooner, without a message, has died as it started
NOTED_WITHIN = 5.0  # after a death somebody may still be about to note what came back
STALL_AGAIN = 60.0  # between two words on results that have no room
WORKERS_END = 10.0  # to kill and collect workers takes milliseconds
