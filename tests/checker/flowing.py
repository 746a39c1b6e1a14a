"""A sound segment with a queue that flows to disk, made by hand from one whose messages are all in memory.

Queue `flows`: of its first 30 messages 0 to 2 were taken; a flow began at 4, so that 3 stays in memory; a flush took
what lies below 20, but for 7 and 15, which are held; six rows came back, of which two, 4 and 5, were taken. So rows are
11 to 19 without 15, and the front ring has 6, 8, 9 and 10, in its slots 2 to 5.
"""

from pathlib import Path
from typing import Any, Final

import shmq
from checker import Image
from checker.layout import COLD, GRANULE, SETTINGS
from checker.limits import weight
from checker.queue import queues_of
from checker.words import GRANULE_RING, LAID_ALL, RESERVED
from tests.checker.scene import Scene
from tests.support.segment_image import check_image, segment_file

NAME: Final = "flows"
FRONT: Final = 1  # behind the one level
HELD: Final = (7, 15)
STAYED: Final = 3
P, LOW = 20, 11
FLUSHED, PULLED = 14, 6
IN_FRONT: Final = {2: 6, 3: 8, 4: 9, 5: 10}  # slot: place
LARGE_PLACE: Final = 8  # its body is in a block
LAP: Final = 1 << 32


def flowing(broker_dir: Path) -> Image:
    with shmq.open(broker_dir, memory="16MiB") as broker:
        queue: shmq.Queue[Any] = broker.queue(NAME, codec="bytes")
        for number in range(30):
            body = b"x" * 5000 if number == LARGE_PLACE else b"message %d" % number
            queue.put(body, delay=3600 if number in HELD else 0)
        queue.get_many(3, timeout=0)
        sound = check_image(broker_dir, {0})
    segment_file(broker_dir).unlink()
    scene = Scene.of(sound)
    records = take_granule(scene, scene.free_granule(), LAP | GRANULE_RING)
    geometry = scene.ring(NAME, FRONT).geometry
    granules = range(geometry.slots, geometry.slots + geometry.bytes, GRANULE)
    taken = [records, *(take_granule(scene, (at - sound.regions.data) // GRANULE, 0) for at in granules)]
    scene.write(scene.of_ring(NAME, "cold", FRONT), records)
    scene.write(scene.of_ring(NAME, "laid", FRONT), LAID_ALL)
    scene.write(scene.of_ring(NAME, "tail", FRONT), PULLED)
    for slot, place in IN_FRONT.items():
        begin, size = scene.slot(NAME, place), scene.ring(NAME).geometry.slot_size
        to = scene.slot(NAME, slot, level=FRONT)
        scene.data[to : to + size] = scene.data[begin : begin + size]
        scene.write(scene.slot(NAME, slot, "position", FRONT), slot)
        scene.write(records + slot * COLD.bytes + COLD["back"], place)
        scene.write(records + slot * COLD.bytes + COLD["ordinal"], slot + 1)
    for slot in (0, 1):
        scene.write(scene.slot(NAME, slot, level=FRONT), LAP)
    for place in set(range(4, P)) - set(HELD):
        scene.write(scene.slot(NAME, place), LAP)
    words = {"flow": P << 1 | 1, "low": LOW, "flushed": FLUSHED, "pulled": PULLED, "flushing_at": P}
    sizes = {"flushed_bytes": FLUSHED * 10, "pulled_bytes": PULLED * 10, "flushing_bytes": FLUSHED * 10}
    for word, value in {**words, **sizes, "flushing_count": FLUSHED}.items():
        scene.write(scene.of_ring(NAME, word), value)
    scene.write(scene.page(NAME, "settings") + SETTINGS["max_memory"], 1 << 20)
    scene.write(scene.page(NAME, "resident"), weight(queues_of(Image(scene.data))[0]))
    return Image(scene.data, sorted([*sound.parts, *((at, at + GRANULE) for at in taken)]))


def take_granule(scene: Scene, granule: int, word: int) -> int:
    """Memory for all of a granule; with what its word says besides. Answers where it begins."""
    at = scene.granule(granule)
    assert scene.read(at) & RESERVED == 0, "it has memory"
    scene.write(at, scene.read(at) | RESERVED | word)
    scene.add(scene.header("granules_used"), int(word != 0), 4)
    for field in ("reserved_bytes", "used_bytes"):
        scene.add(scene.header(field), GRANULE)
    return scene.sound.regions.data + granule * GRANULE
