"""A queue under full load wakes hardly anybody: a consumer at work finds the next message by itself."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import shmq
from shmq.core import layout
from tests.engine.child import Child
from tests.support.segment_bytes import SegmentBytes, place_of

CONSUMERS, PRODUCERS, EACH = 4, 2, 6_000  # processes; messages of each producer
DEPTH = 10_000  # more than a consumer takes while the producers wait for a processor
ROWS, CHUNKS = 64, 16  # consumer rows of a chunk, chunks of a queue
WAKES_A_MESSAGE = 0.05

CONSUMER = """
with shmq.open(sys.argv[1]) as broker, broker.queue("jobs").consumer() as consumer:
    say("ready")
    count = 0
    for m in consumer:
        sum(range(1000))  # the work; without it consumers are faster than producers, and the stream runs dry
        m.ack()
        count += 1
    say(count)
"""
PRODUCER = """
with shmq.open(sys.argv[1]) as broker:
    queue = broker.queue("jobs")
    say("ready")
    listen()
    for _ in range(int(sys.argv[2])):
        queue.put(b"work")
    say("done")
"""


def wakes(segment: SegmentBytes, queue: shmq.Queue[Any]) -> int:
    """How often anybody who sleeps at the queue was woken, since it was made."""
    chunks = segment.page(queue) + place_of("queue", "chunks")
    size, word = layout.STRUCTS["consumer"][0], place_of("consumer", "wake")
    offsets = [segment.word(chunks + 8 * number) for number in range(CHUNKS)]
    return sum(segment.word(at + row * size + word, 4) for at in offsets if at for row in range(ROWS))


def test_a_steady_stream_wakes_nobody_needlessly(broker: shmq.Broker, broker_dir: Path, kind: dict[str, Any]) -> None:
    """Every queue that is never empty for long, of whatever kind. Shows S70, S98."""
    queue: shmq.Queue[Any] = broker.queue("jobs", **{**kind, "maxsize": DEPTH})
    queue.put_many([b"work"] * DEPTH)  # full from the beginning: the stream is steady when the first one looks
    with ExitStack() as stack, SegmentBytes.of(broker) as segment:
        producers = [stack.enter_context(Child(PRODUCER, broker_dir, EACH)) for _ in range(PRODUCERS)]
        assert [producer.line() for producer in producers] == ["ready"] * PRODUCERS
        for producer in producers:
            producer.tell("go")
        consumers = [stack.enter_context(Child(CONSUMER, broker_dir)) for _ in range(CONSUMERS)]
        assert [consumer.line() for consumer in consumers] == ["ready"] * CONSUMERS
        assert [producer.line() for producer in producers] == ["done"] * PRODUCERS
        woken = wakes(segment, queue)
        queue.shutdown()
        taken = sum(int(consumer.line()) for consumer in consumers)
    messages = DEPTH + PRODUCERS * EACH
    assert taken == messages
    print(f"{woken} wakes for {messages} messages")
    assert woken < WAKES_A_MESSAGE * messages, f"{woken} wakes for {messages} messages"
