"""With set_encryption_key() nothing of these queues lies on disk in clear, whichever process has moved it there."""

import pickle
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

import shmq
from shmq.mp import JoinableQueue, Queue, SimpleQueue, set_encryption_key
from shmq.mp.process_broker import own_broker
from tests.engine.child import Child
from tests.mp import children
from tests.mp.children import KEY, SECRET, flowing, found_on_disk

COUNT = 3000
OTHER = bytes(reversed(KEY))

Start = Callable[..., BaseProcess]

TAKE = """
import pickle
if sys.argv[2]:
    from shmq.mp import set_encryption_key
    set_encryption_key(bytes.fromhex(sys.argv[2]))
try:
    say(pickle.loads(bytes.fromhex(sys.argv[1])).get(timeout=5))
except shmq.OptionsMismatch as error:
    say(error)
"""


def take(queue: Queue[str], key: bytes = b"") -> str:
    """The answer of a process that is no child and unpickles the queue."""
    with Child(TAKE, pickle.dumps(queue).hex(), key.hex()) as child:
        said = child.line()
        child.end()
    return said


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("make", [Queue, JoinableQueue])
def test_what_a_process_puts_can_be_read_on_disk_only_without_a_key(
    make: "type[Queue[str]]", key: bytes | None
) -> None:
    """Shows G8."""
    if key is not None:
        set_encryption_key(key)
    queue = flowing(make())
    children.put_secrets(queue, range(COUNT))
    assert found_on_disk() == {"some": True, "secret": key is None, "key": False}
    for number in range(COUNT):
        assert queue.get() == f"{SECRET}{number}"
        if isinstance(queue, JoinableQueue):
            queue.task_done()


def test_a_child_encrypts_what_it_puts_there_and_in_queues_of_its_own(ctx: Any, start: Start) -> None:
    """Shows G8."""
    set_encryption_key(KEY)
    queue, said = flowing(Queue[str]()), SimpleQueue[Any]()
    children.put_secrets(queue, range(COUNT))
    child = start(ctx, children.take_and_put_secrets, queue, said, COUNT)
    assert said.get() == [f"{SECRET}{number}" for number in range(COUNT)]
    assert said.get() == {"some": True, "secret": False, "key": False}  # of its own broker
    child.join(60)
    assert found_on_disk() == {"some": True, "secret": False, "key": False}
    assert [queue.get() for _ in range(COUNT)] == [f"{SECRET}{number}" for number in range(COUNT)]


def test_a_queue_that_a_child_sends_through_a_queue_has_its_key_in_the_parent(ctx: Any, start: Start) -> None:
    set_encryption_key(KEY)
    queue, go = Queue[Any](), SimpleQueue[Any]()
    child = start(ctx, children.send_a_queue_of_secrets, queue, go, COUNT)
    sent = queue.get()
    assert [sent.get() for _ in range(COUNT)] == [f"{SECRET}{number}" for number in range(COUNT)]
    go.put(None)
    child.join(60)
    assert child.exitcode == 0


def test_a_key_comes_before_the_first_queue() -> None:
    Queue[int]()
    with pytest.raises(shmq.OptionsMismatch, match=r"made without encryption_key; call .* before the first queue"):
        set_encryption_key(KEY)


def test_the_same_key_may_come_again_and_another_one_not() -> None:
    set_encryption_key(OTHER)
    set_encryption_key(KEY)  # nothing was made with the other one
    Queue[int]()
    set_encryption_key(lambda: KEY)
    with pytest.raises(shmq.OptionsMismatch, match="made with another encryption_key"):
        set_encryption_key(OTHER)


@pytest.mark.parametrize("wrong", [b"short", 7])
def test_what_is_no_key_is_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="encryption_key"):
        set_encryption_key(wrong)
    assert own_broker().queues() == []


def test_a_process_that_is_no_child_gives_the_key_itself() -> None:
    set_encryption_key(KEY)
    queue = flowing(Queue[str]())
    children.put_secrets(queue, range(COUNT))
    assert KEY not in pickle.dumps(queue)
    assert "call shmq.mp.set_encryption_key() with the same key" in take(queue)
    assert "another encryption_key" in take(queue, OTHER)
    assert take(queue, KEY) == f"{SECRET}0"
    assert queue.qsize() == COUNT - 1


def test_the_path_of_a_key_file_goes_with_each_pickle(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(KEY)
    set_encryption_key(file)
    queue = flowing(Queue[str]())
    children.put_secrets(queue, range(COUNT))
    assert KEY not in pickle.dumps(queue)
    assert take(queue) == f"{SECRET}0"
    assert take(queue, OTHER) == f"{SECRET}1"  # that is of its own queues


def test_the_key_file_may_go_where_the_key_is_known(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(KEY)
    set_encryption_key(file)
    queue = flowing(Queue[str]())
    children.put_secrets(queue, range(COUNT))
    file.unlink()
    assert pickle.loads(pickle.dumps(queue)).get() == f"{SECRET}0"
    assert take(queue, KEY) == f"{SECRET}1"


def test_a_process_with_a_key_takes_from_a_queue_without_one() -> None:
    queue = flowing(Queue[str]())
    children.put_secrets(queue, range(COUNT))
    assert take(queue, KEY) == f"{SECRET}0"
