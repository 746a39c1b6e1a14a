"""The programs of the documentation, run as they stand; what a reader fills in is filled in here."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import shmq
from tests.engine.child import Child, eventually

FOLDER = Path(__file__).parent


def source(name: str, **filled_in: str) -> str:
    """The program's text; each placeholder (the end of a line `name(...): ...`) is replaced by a body."""
    text = (FOLDER / f"{name}.py").read_text()
    for head, body in filled_in.items():
        lines = [line for line in text.splitlines() if f"def {head}(" in line]
        assert len(lines) == 1
        assert lines[0].endswith(": ...")
        text = text.replace(lines[0], lines[0].removesuffix("...") + body)
    ast.parse(text)
    return text


@contextmanager
def opened(folder: Path, name: str) -> Iterator[shmq.Broker]:
    with shmq.open(folder / name, memory="64MiB") as broker:
        yield broker


def test_a_loop_of_ones_own_ends_after_the_shutdown(tmp_path: Path) -> None:
    with opened(tmp_path, "jobs.shmq") as broker:
        jobs = broker.queue("resize", codec="bytes")
        with Child(source("loop", resize="say(image.decode())"), folder=tmp_path) as child:
            for n in range(3):
                jobs.put(b"image %d" % n)
                assert child.line() == f"image {n}"
            jobs.shutdown()
            child.end()
        assert jobs.statistics().acked == 3


def test_a_loop_of_ones_own_that_fails_retries_and_ends_with_the_error(tmp_path: Path) -> None:
    with opened(tmp_path, "jobs.shmq") as broker:
        jobs = broker.queue("resize", codec="bytes")
        jobs.put(b"bad")
        with Child(source("loop", resize="raise ValueError(image)"), folder=tmp_path) as child:
            child.process.wait(120)
            assert child.process.returncode == 1
            assert child.process.stderr is not None
            assert "ValueError: b'bad'" in child.process.stderr.read().decode()
        (m,) = jobs.browse()
        assert m.delivery_count == 1


def test_a_loop_of_ones_own_that_is_killed_gives_the_message_to_others(tmp_path: Path) -> None:
    with opened(tmp_path, "jobs.shmq") as broker:
        jobs = broker.queue("resize", codec="bytes")
        jobs.put(b"image")
        with Child(source("loop", resize="say('has'); listen()"), folder=tmp_path) as child:
            assert child.line() == "has"
            child.kill()
        with jobs.receive(timeout=10) as m:
            assert (m.body, m.redelivered) == (b"image", True)


CHARGE = """
    if order["id"] == 1:
        raise Malformed("no customer")
    if order["id"] == 2:
        raise RuntimeError("the bank says no")
    if order["id"] == 3 and not os.path.exists("tried"):
        open("tried", "w").close()
        raise Busy
"""


def test_retries_and_dead_letters(tmp_path: Path) -> None:
    with opened(tmp_path, "shop.shmq") as broker:
        orders = broker.queue("orders", max_attempts=5)
        orders.put_many({"id": n} for n in range(5))
        with Child(source("dead_letters", charge=CHARGE), folder=tmp_path) as child:
            orders.join(timeout=60)
            orders.shutdown()
            lines = child.end().splitlines()
    assert [line[:9] for line in lines if line.startswith("{")] == ["{'id': 1}", "{'id': 2}"]
    text = "\n".join(lines)
    assert "reason='rejected'" in text
    assert "no customer" in text
    assert "reason='max_attempts'" in text
    assert "the bank says no" in text
    assert (tmp_path / "tried").exists()


def test_frames_without_a_copy(tmp_path: Path) -> None:
    text = source("frames", read_into="frame[:] = len(sent) % 256; sent.append(1)")
    head, _, rest = text.partition("camera = Camera()\n")
    producer, _, rest = rest.partition("for m in frames.consumer()")
    consumer, _, plain = rest.partition("frames.put(")
    head, consumer, plain = "sent = []\n" + head, "for m in frames.consumer()" + consumer, "frames.put(" + plain
    with Child(head + "camera = Camera()\n" + producer, folder=tmp_path) as camera:
        eventually((tmp_path / "camera.shmq" / "segment").exists, "the broker")
        with shmq.open(tmp_path / "camera.shmq") as broker:
            frames = broker.queue("frames", maxsize=16)
            eventually(lambda: frames.statistics().producers_waiting == 1, "a camera that waits for room")
            assert frames.qsize() == 16
            assert {m.headers["camera"] for m in frames.browse()} == {1}
            with Child(head + consumer, folder=tmp_path) as reader:
                assert [reader.line() for _ in range(20)] == [f"{n}.0" for n in range(20)]
                camera.kill()
                frames.shutdown()
                reader.end()
            frames.reopen()
            frames.purge()
            with Child(head + plain + "say(zeros.shape, zeros.sum())", folder=tmp_path) as child:
                assert child.line() == "(2, 2) 0.0"


def test_looking_without_taking(tmp_path: Path) -> None:
    with opened(tmp_path, "shop.shmq") as broker:
        orders = broker.queue("orders")
        orders.put_many([{"id": 7}, {"id": 8}], headers={"source": "web"})
        held = orders.receive(timeout=0)
        with Child(source("look"), folder=tmp_path) as child:
            assert child.line() == "0 False {'source': 'web'} {'id': 7}"
            assert child.line() == "1 False {'source': 'web'} {'id': 8}"
            for _ in range(2):
                words = child.line().split()
                assert words[:5] == ["orders", "1", "ready", "1", "unsettled"]
            child.interrupt()
            child.process.wait(120)
        held.ack()
        assert orders.qsize() == 1


def test_looking_at_a_broker_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with Child(source("look"), folder=tmp_path) as child:
        child.process.wait(120)
        assert child.process.stderr is not None
        assert "BrokerNotFound" in child.process.stderr.read().decode()
    assert list(tmp_path.iterdir()) == []
