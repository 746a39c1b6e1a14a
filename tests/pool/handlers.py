"""The calls of the pools in these tests. Workers import this module by name."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

import shmq
from shmq.engine.handle import long_wait

ended_by: list[str] = []


def square(message: shmq.Message[int]) -> int:
    return message.body * message.body


def pid(message: shmq.Message[Any]) -> int:
    return os.getpid()


def fail(message: shmq.Message[Any]) -> NoReturn:
    raise LookupError(f"no such thing as {message.body}")


def fail_on_three(message: shmq.Message[int]) -> int:
    if message.body == 3:
        raise LookupError("three")
    return message.body


def fail_behind_the_ack(message: shmq.Message[Any]) -> NoReturn:
    message.ack()
    raise LookupError("too late")


def leave(message: shmq.Message[Any]) -> NoReturn:
    sys.exit(7)


def poison(message: shmq.Message[Any]) -> Any:
    if message.body == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    return message.body


def settle_itself(message: shmq.Message[str]) -> str:
    if message.body == "reject":
        message.reject("not wanted")
    elif message.body == "ack":
        message.ack()
    return message.body


def countdown(message: shmq.Message[int]) -> int:
    """Puts the next number only after it has been at work for a while."""
    if message.body > 0:
        message.queue.broker.queue("pause").get(timeout=20.0)
        message.queue.put(message.body - 1)
        message.queue.broker.queue("pause").put(None)
    return message.body


def hold(message: shmq.Message[Any]) -> Any:
    """Says that it has begun, and by whom; goes on when the test lets it."""
    broker = message.queue.broker
    broker.queue("begun").put(os.getpid())
    broker.queue("go").get(timeout=60.0)
    return message.body


def greeting(message: shmq.Message[Any]) -> str:
    return f"{ended_by[0]} {message.body}"


def prepare(word: str) -> None:
    ended_by.append(word)


def break_down(word: str) -> NoReturn:
    raise OSError(f"no connection to {word}")


def die_at_once() -> NoReturn:
    os._exit(9)


def every_outcome(message: shmq.Message[int]) -> int:
    """The number of a message says what becomes of it."""
    if message.body % 10 == 3:
        raise LookupError("always")
    if message.body % 10 == 5 and message.delivery_count == 1:
        raise LookupError("once")
    if message.body % 10 == 7:
        message.reject("not wanted")
    return message.body


def refuse(message: shmq.Message[Any]) -> set[int]:
    """No codec takes a set."""
    return {1, 2}


def failing_dump(value: Any) -> bytes:
    raise OverflowError("too much")


FAILING = shmq.Codec(encode=failing_dump, decode=bytes, content_type="x/failing")


def hand_on(message: shmq.Message[int]) -> None:
    message.queue.broker.queue("others").put(message.body)


def put_where_there_is_no_room(message: shmq.Message[Any]) -> None:
    message.queue.broker.queue("small").put("more")


def retry_at_once(message: shmq.Message[Any]) -> None:
    message.retry("not now", delay=0)


def short_waits(seconds: float) -> None:
    long_wait.LONG_WAIT = seconds


# ---- what hangs, and what keeps a process --------------------------------------------------------------------------


def hang_at_first_on_three(message: shmq.Message[int]) -> int:
    if message.body == 3 and not message.redelivered:
        threading.Event().wait()
    return message.body


def hang(message: shmq.Message[str]) -> None:
    if message.body == "hang":
        threading.Event().wait()


def touch_for_long(message: shmq.Message[float]) -> float:
    """At work for so many seconds, several leases, with a touch now and then."""
    until = time.monotonic() + message.body
    while time.monotonic() < until:
        message.touch()
        time.sleep(0.02)
    return message.body


def ack_and_go_on(message: shmq.Message[float]) -> float:
    """Settles first, and holds another message meanwhile."""
    other = message.queue.broker.queue("others")
    other.put("held")
    with other.receive():
        message.ack()
        time.sleep(message.body)
    return message.body


def leave_the_block_and_go_on(message: shmq.Message[float]) -> float:
    with message:
        body = message.body
    time.sleep(body)
    return body


def take_sigterm(message: shmq.Message[str]) -> str:
    """As libraries do, each in its way."""
    if message.body == "mask":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    else:
        leave: dict[str, Any] = {
            "ignore": signal.SIG_IGN,
            "default": signal.SIG_DFL,
            "handle": lambda number, frame: None,
        }
        signal.signal(signal.SIGTERM, leave.get(message.body, lambda number, frame: sys.exit(0)))
    return message.body


def wait_at_the_gate(path: str) -> None:
    os.read(os.open(path, os.O_RDONLY), 1)


def leave_a_thread(message: shmq.Message[str]) -> None:
    threading.Thread(target=wait_at_the_gate, args=(message.body,), name="left-thread").start()


def leave_a_child(message: shmq.Message[str]) -> None:
    context = multiprocessing.get_context("fork")
    context.Process(target=wait_at_the_gate, args=(message.body,), name="left-child").start()


def fork_and_forget(message: shmq.Message[int]) -> int:
    """In the child, too, it returns, or raises."""
    if os.fork() == 0 and message.body == 1:
        raise LookupError("of the child")
    return message.body
