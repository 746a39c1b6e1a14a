"""A type checker's knowledge of shmq.mp, and of code that takes a queue of either kind. Checked, never run."""

import multiprocessing.queues
import queue
from multiprocessing.pool import Pool
from typing import Any, assert_type

from shmq.mp import Context, JoinableQueue, JoinableQueueLike, Queue, QueueLike, SimpleQueue, get_context


def work(jobs: JoinableQueue[int]) -> None:
    jobs.task_done()


def contexts() -> None:
    ctx = get_context("spawn")
    assert_type(ctx, Context)
    assert_type(ctx.get_context("fork"), Context)
    assert_type(ctx.Queue(), Queue[Any])
    assert_type(ctx.SimpleQueue(), SimpleQueue[Any])
    assert_type(ctx.Pool(2), Pool)
    todo: JoinableQueue[int] = ctx.JoinableQueue(100)
    process = ctx.Process(target=work, args=(todo,), daemon=True)
    process.start()
    assert_type(process.exitcode, int | None)
    with ctx.Lock():
        pass


def first(jobs: QueueLike[int]) -> int:
    jobs.put(7, timeout=1.0)
    jobs.put_nowait(8)
    jobs.put("a")  # type: ignore[arg-type]
    return jobs.get(timeout=1.0)


def drain(jobs: JoinableQueueLike[int]) -> None:
    jobs.task_done()
    jobs.join()
    first(jobs)


def queues() -> None:
    ours: Queue[int] = Queue()
    joinable: JoinableQueue[int] = JoinableQueue()
    theirs: multiprocessing.queues.Queue[int] = multiprocessing.Queue()
    theirs_joinable: multiprocessing.queues.JoinableQueue[int] = multiprocessing.JoinableQueue()
    of_threads: queue.Queue[int] = queue.Queue()
    first(ours)
    first(joinable)
    first(theirs)
    first(of_threads)
    drain(joinable)
    drain(theirs_joinable)
    drain(of_threads)
    drain(ours)  # type: ignore[arg-type]
    texts: Queue[str] = Queue()
    first(texts)  # type: ignore[arg-type]
