"""Rules for the words that limits count by, which hold at any moment. The words are of all rings of a queue together,
two of them also of its rows on disk."""

from dataclasses import dataclass

from checker.layout import QUEUE
from checker.queue import Queue
from checker.slots import IS_CLAIM
from checker.violation import Findings


@dataclass(frozen=True)
class Measure:
    """A limit of a queue: what its word says, and what there is."""

    option: str
    never_less: str  # the rule: at any moment
    exactly: str  # the rule: when nobody is at work
    said: int
    found: int


def judge_limits(queue: Queue, findings: Findings) -> None:
    """Raised before a claim, lowered after a slot is free: never too low.

    But for a limit that is given to a queue in use, while puts that had looked before it came are on their way.
    """
    for one in measures(queue):
        text = f"{one.said} by the word of {one.option}, {one.found} found"
        findings.expect(one.said >= one.found, one.never_less, queue.title, text)


def measures(queue: Queue) -> list[Measure]:
    """Those of the limits that the queue has. Amid a mover's turn what moves may be a row, too: it is not counted."""
    amid = queue.flow.is_amid
    used = places(queue) - (moving(queue) if amid else -queue.rows)
    weighed = weight(queue)
    words = {
        "maxsize": Measure("maxsize", "ring.count", "quiet.count", word_of(queue, "count", 32), used),
        "max_bytes": Measure(
            "max_bytes",
            "ring.weight",
            "quiet.weight",
            word_of(queue, "weight", 40),
            weighed + (0 if amid else queue.row_bytes),
        ),
        "max_memory": Measure("max_memory", "ring.resident", "quiet.resident", word_of(queue, "resident", 40), weighed),
    }
    return [measure for option, measure in words.items() if queue.limit(option) != 0]


def places(queue: Queue) -> int:
    """Slots that the count counts."""
    return sum(int(ring.use.counts.sum()) for ring in queue.rings if not ring.is_unused)


def moving(queue: Queue) -> int:
    return sum(int(ring.use.moving.sum()) for ring in queue.rings if not ring.is_unused)


def word_of(queue: Queue, word: str, bits: int) -> int:
    return queue.image.u64(queue.page + QUEUE[word]) & (1 << bits) - 1


def weight(queue: Queue) -> int:
    """Bytes of headers and bodies in the slots: of the filled ones, a claim says none yet."""
    total = 0
    for ring in queue.rings:
        if ring.is_unused:
            continue
        use = ring.use
        filled = use.counts & ~IS_CLAIM[use.state]
        total += int((use.headers_len + use.body_len)[filled].sum())
    return total
