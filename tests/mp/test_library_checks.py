"""The standard library's checks of a queue that it is given."""

import logging
import logging.config
import multiprocessing.queues
import pickle
import threading
from typing import Any

import pytest

from shmq.mp import JoinableQueue, Queue, SimpleQueue
from tests.engine.child import eventually

KINDS = [
    (Queue, multiprocessing.queues.Queue),
    (JoinableQueue, multiprocessing.queues.JoinableQueue),
    (SimpleQueue, multiprocessing.queues.SimpleQueue),
]


@pytest.mark.parametrize(("kind", "original"), KINDS)
def test_a_queue_passes_for_the_one_in_whose_place_it_stands(kind: Any, original: type) -> None:
    queue = kind()
    assert isinstance(queue, original)
    assert isinstance(queue, kind)
    assert type(pickle.loads(pickle.dumps(queue))) is kind
    assert not isinstance(queue, dict)


def test_dict_config_takes_a_queue_for_its_handler() -> None:
    """From Python 3.12.2 on it asks for a class of the library, or for all methods of a joinable queue."""
    queue: Queue[Any] = Queue()
    settings = {
        "version": 1,
        "handlers": {"far": {"class": "logging.handlers.QueueHandler", "queue": queue}},
        "loggers": {"tests.far": {"handlers": ["far"], "propagate": False}},
        "disable_existing_loggers": False,
    }
    logging.config.dictConfig(settings)
    try:
        logging.getLogger("tests.far").error("hello %d", 7)
        assert queue.get(timeout=60).getMessage() == "hello 7"
    finally:
        logging.getLogger("tests.far").handlers.clear()


def test_a_join_that_waits_for_nobody_says_so(caplog: pytest.LogCaptureFixture) -> None:
    todo: JoinableQueue[str] = JoinableQueue()
    todo.put("a")
    thread = threading.Thread(target=todo.join)
    thread.start()
    eventually(lambda: "join() waits for 1 object" in caplog.text, "the word on a wait")
    todo.get()
    todo.task_done()
    thread.join()
