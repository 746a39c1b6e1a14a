"""The work of the children of these tests. A module of its own, so that spawned ones import nothing else."""

import importlib
import multiprocessing
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from shmq.engine.broker.broker import broker_membership
from shmq.errors import ShutDown
from shmq.mp import Queue, get_context, process_broker
from shmq.mp.process_broker import own_broker
from shmq.options import BrokerSettings

KEY = bytes(range(32))
SECRET = "a customer's secret "
# The default leaves a tenth of the file system free: where less is free, nothing would go to disk.
ROOMY = partial(BrokerSettings, disk=1 << 30)
if getattr(multiprocessing.current_process(), "_inheriting", False):  # a child that starts, and was not forked
    vars(process_broker)["BrokerSettings"] = ROOMY


def put_each(queue: Any, objects: list[Any]) -> None:
    for item in objects:
        queue.put(item)


def echo(todo: Any, done: Any) -> None:
    """Until None."""
    while (item := todo.get()) is not None:
        done.put(item)


def put_numbers(queue: Any, first: int, count: int) -> None:
    for number in range(first, first + count):
        queue.put(number)


def sum_up(queue: Any, sums: Any) -> None:
    """Until None: how many there were, and their sum."""
    count = total = 0
    while (number := queue.get()) is not None:
        count, total = count + 1, total + number
    sums.put((count, total))


def put_blocks(queue: Any, count: int, size: int) -> None:
    for number in range(count):
        queue.put(bytes([number]) * size)


def get_one(queue: Any, results: Any) -> None:
    results.put(queue.get())


def get_until_shut_down(queue: Any, results: Any) -> None:
    try:
        while True:
            results.put(queue.get())
    except ShutDown:
        results.put("shut down")


def say_what_interrupts(queue: Any, results: Any) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results.put("ready")
    try:
        results.put(queue.get())
    except KeyboardInterrupt:
        results.put("interrupted")


def put_by_a_grandchild(method: str, queue: Any) -> None:
    child = get_context(method).Process(target=put_each, args=(queue, ["from a grandchild"]))
    child.start()
    child.join()


def put_a_queue(queue: Any, go: Any) -> None:
    own: Queue[str] = Queue()
    own.put("from the queue of a child")
    queue.put(own)
    go.get()


def close_standard_input_and_put(queue: Any) -> None:
    sys.stdin.close()
    os.close(0)
    queue.put("without standard input")


def import_a_module_that_puts(folder: str, queue: Any) -> None:
    Path(folder, "puts_when_imported.py").write_text(
        "import shmq.mp\nown = shmq.mp.Queue()\nown.put('put during import')\ntaken = own.get(timeout=10)\n"
    )
    sys.path.insert(0, folder)
    queue.put(importlib.import_module("puts_when_imported").taken)


def done_too_often(queue: Any, results: Any) -> None:
    try:
        queue.task_done()
    except ValueError as error:
        results.put(str(error))
    else:
        results.put("done")


def work_off(queue: Any, results: Any) -> None:
    """Until None, each followed by task_done()."""
    while True:
        item = queue.get()
        if item is not None:
            results.put(item)
        queue.task_done()
        if item is None:
            return


def get_and_wait(queue: Any, results: Any, go: Any) -> None:
    """Has one in hand that is not done."""
    results.put(queue.get())
    go.get()


def add_through_a_connection(queue: Any) -> None:
    connection, number = queue.get()
    connection.send(number + 1)
    connection.close()


def start_method_of_child(queue: Any) -> None:
    queue.put(multiprocessing.get_start_method(allow_none=True))


def flowing(queue: Any) -> Any:
    """The same, with so little memory that a few hundred objects flow to disk."""
    own_broker().queue(queue._queue.name).alter(max_memory=20_000)
    return queue


def found_on_disk() -> dict[str, bool]:
    """Says whether the files of this process's own broker are large, and hold the secret or the key."""
    folder = Path(broker_membership(own_broker()).disk)
    all_of_it = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {"some": len(all_of_it) > 50_000, "secret": SECRET.encode() in all_of_it, "key": KEY in all_of_it}


def put_secrets(queue: Any, numbers: range) -> None:
    for number in numbers:
        queue.put(f"{SECRET}{number}", timeout=5.0)


def take_and_put_secrets(queue: Any, said: Any, count: int) -> None:
    """As many as it has taken; and what can be read of a queue of its own."""
    said.put([queue.get(timeout=5.0) for _ in range(count)])
    put_secrets(queue, range(count))
    own = flowing(Queue())
    put_secrets(own, range(count))
    said.put(found_on_disk())


def send_a_queue_of_secrets(queue: Any, go: Any, count: int) -> None:
    own = flowing(Queue())
    put_secrets(own, range(count))
    queue.put(own)
    go.get()
