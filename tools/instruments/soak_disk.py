"""The rows of a soak's queues on disk, from the bytes of the segment: a look opens nothing, and waits for nobody."""

from pathlib import Path

from checker.image import Image
from checker.layout import QUEUE, RING
from checker.queue import queues_of
from instruments.resident import resident_bytes

REFUSED = 1960  # of the header: when a mover found no room on disk (native/src/layout/segment.h)


class Disk:
    """Of all queues that have a max_memory.

    Arguments:
        segment: its file in /dev/shm.
        directory: of the broker.
    """

    def __init__(self, segment: Path, directory: Path) -> None:
        self.segment, self.directory = segment, directory
        self.bytes = segment.open("rb", buffering=0)
        queues = [queue for queue in queues_of(Image.of_file(segment)) if queue.limit("max_memory")]
        self.turns = [queue.page + QUEUE["unfinished"] for queue in queues]
        self.levels = {queue.name: [(back.at, back.front) for back in queue.backs] for queue in queues}

    def _word(self, at: int, size: int = 8) -> int:
        self.bytes.seek(at)
        return int.from_bytes(self.bytes.read(size), "little")

    def _moved(self, ring: int) -> int:
        """How many rows have come to be by the words of this ring, and are not gone."""
        return self._word(ring + RING["flushed"]) - self._word(ring + RING["pulled"])

    def _waits(self, ring: int) -> int:
        """How many delayed messages are on disk."""
        return self._word(ring + RING["waiting"]) - self._word(ring + RING["came"])

    def movers(self) -> list[int]:
        """Their pids; 0 for a queue of which nobody moves anything."""
        return [self._word(turn, 4) for turn in self.turns]

    def is_full(self) -> bool:
        """Has a mover found no room, which nobody was told of yet?"""
        return self._word(REFUSED) != 0

    def there(self) -> dict[str, int]:
        """How many messages are on disk, by the queue's name; inexact while some are moved."""
        return {
            name: max(0, sum(self._moved(back) - self._moved(front) + self._waits(back) for back, front in levels))
            for name, levels in self.levels.items()
        }

    def ever(self) -> dict[str, int]:
        """How many messages have gone there since the queue was made."""
        return {
            name: sum(self._word(back + RING["flushed"]) + self._word(back + RING["waiting"]) for back, _ in levels)
            for name, levels in self.levels.items()
        }

    def files(self) -> list[Path]:
        return [path for path in (self.directory / "disk").rglob("*") if not path.is_dir()]

    def segment_bytes(self) -> int:
        return resident_bytes(self.segment)

    def close(self) -> None:
        self.bytes.close()
