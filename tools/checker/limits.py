"""What must hold of the count and the weight of a queue with limits, at any moment. They are of all levels together."""

from checker.layout import QUEUE
from checker.queue import Queue
from checker.slots import IS_CLAIM
from checker.violation import Findings


def judge_limits(queue: Queue, findings: Findings) -> None:
    """Raised before a claim, lowered after a slot is free: never too low.

    But for a limit that is given to a queue in use, while puts that had looked before it came are on their way.
    """
    if queue.maxsize != 0:
        count, used = counted(queue), places(queue)
        findings.expect(count >= used, "ring.count", queue.title, f"count {count}, {used} slots in use")
    if queue.is_weighed:
        weight, used = weighed(queue)
        findings.expect(weight >= used, "ring.weight", queue.title, f"weight {weight}, {used} bytes in the slots")


def places(queue: Queue) -> int:
    """Slots that the count counts."""
    return sum(int(ring.use.counts.sum()) for ring in queue.rings if not ring.is_unused)


def counted(queue: Queue) -> int:
    return queue.image.u64(queue.page + QUEUE["count"]) & 0xFFFFFFFF


def weighed(queue: Queue) -> tuple[int, int]:
    """Bytes as max_bytes and max_memory count them, and as the slots say: of the filled ones, a claim says none yet."""
    total = 0
    for ring in queue.rings:
        if ring.is_unused:
            continue
        use = ring.use
        filled = use.counts & ~IS_CLAIM[use.state]
        total += int((use.head_len + use.body_len)[filled].sum())
    return queue.image.u64(queue.page + QUEUE["weight"]) & (1 << 40) - 1, total
