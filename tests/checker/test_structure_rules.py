"""Each rule about header, processes, directory and map can fail: a sound segment, damaged so, breaks it.

A test expects the whole answer: the rule, and with it only the rules that the same damage breaks as well.
"""

import pytest

from checker import Image
from checker.layout import COLD
from tests.checker.damage import Damage, Damages
from tests.checker.scene import Scene

DAMAGES = Damages()
breaks = DAMAGES.breaks


# The header


@breaks("header.crc")
def a_byte_of_the_path(s: Scene) -> None:
    s.write(s.header("path"), ord("?"), 1)


@breaks("header.damage")
def damage_that_was_found(s: Scene) -> None:
    s.write(s.header("damage"), 1)


@breaks("header.state")
def a_state_that_is_none(s: Scene) -> None:
    s.write(s.header("state"), 2, 4)


@breaks("header.process_high")
def rows_that_do_not_exist(s: Scene) -> None:
    s.write(s.header("process_high"), 1025, 4)


@breaks("header.process_high")
def a_row_above_the_high_mark(s: Scene) -> None:
    s.write(s.process(500, "word"), 1 << 32)


@breaks("header.queue_high")
def entries_that_do_not_exist(s: Scene) -> None:
    s.write(s.header("queue_high"), 4097, 4)


@breaks("header.queue_high")
def an_entry_above_the_high_mark(s: Scene) -> None:
    s.write(s.sound.regions.directory + 64 * 4000, 1 << 32)


@breaks("header.slab_high")
def granules_that_do_not_exist(s: Scene) -> None:
    s.write(s.header("slab_high"), s.sound.regions.granule_count + 1, 4)


@breaks("header.slab_high")
def a_slab_above_the_high_mark(s: Scene) -> None:
    s.write(s.header("slab_high"), 0, 4)


@breaks("header.reserved")
def memory_noted_and_not_counted(s: Scene) -> None:
    s.add(s.header("reserved_bytes"), -4096)


@breaks("header.memory_waiters")
def a_waiter_for_memory_that_is_not_counted(s: Scene) -> None:
    s.write(s.process(1, "memory_waiting"), 1, 4)


@breaks("watch.word")
def a_watcher_in_a_row_that_does_not_exist(s: Scene) -> None:
    s.write(s.header("watch"), 1000)


@breaks("watch.wake")
def a_volunteer_at_an_odd_offset(s: Scene) -> None:
    s.write(s.header("volunteers"), s.sound.regions.data + 3 | 1 << 48)


@breaks("watch.wake")
def a_volunteer_of_a_process_that_never_was(s: Scene) -> None:
    s.write(s.header("volunteers"), s.header("memory_full") - s.header("magic") | 1000 << 48)


@breaks("watch.wake")
def a_watcher_that_sleeps_on_a_word_of_a_process_row_that_is_none(s: Scene) -> None:
    s.write(s.header("watch_wake"), s.process(0, "wake_words") - 4)


# Processes, pins, counter lines


@breaks("process.word")
def bits_of_a_row_word_that_mean_nothing(s: Scene) -> None:
    s.add(s.process(1, "word"), 1 << 8)


@breaks("process.page")
def a_row_without_pin_cells(s: Scene) -> None:
    s.write(s.process(1, "pin_cells"), 0, 4)


@breaks("process.page")
def a_row_whose_counters_are_elsewhere(s: Scene) -> None:
    s.add(s.process(1, "counters"), 8)


@breaks("process.page", "granule.map")
def a_free_row_with_a_page_that_is_none(s: Scene) -> None:
    s.write(s.process(2, "pins"), 12345)


@breaks("process.chunk")
def counters_that_are_no_page(s: Scene) -> None:
    s.write(s.counter_chunk(1, 9), 12345)


@breaks("process.attached")
def a_process_that_uses_a_queue_of_the_future(s: Scene) -> None:
    s.write(s.line(1, "temp", "attached"), 99)


@breaks("process.free")
def a_free_row_that_uses_a_queue(s: Scene) -> None:
    s.write(s.line(2, "temp", "attached"), 1)


@breaks("process.held")
def a_message_in_hand_that_nobody_would_watch(s: Scene) -> None:
    s.write(s.process(1, "unsettled"), 0, 4)


@breaks("process.reaping")
def a_living_process_is_reaped(s: Scene) -> None:
    s.add(s.process(1, "word"), 2)


@breaks("pin.row")
def a_pin_in_a_free_row(s: Scene) -> None:
    s.write(s.unused_pin(2), s.read(s.used_pin()))


@breaks("pin.row")
def a_pin_of_the_rows_next_owner(s: Scene) -> None:
    s.add(s.used_pin(), 1 << 48)


@breaks("pin.cell")
def a_pin_of_a_ninth_view(s: Scene) -> None:
    s.add(s.used_pin(), 20 << 40)


@breaks("pin.block")
def a_pin_of_another_generation(s: Scene) -> None:
    s.add(s.used_pin() + 8, 1)


@breaks("pin.block")
def a_pin_of_a_place_that_is_no_block(s: Scene) -> None:
    s.add(s.used_pin(), 1)


@breaks("pin.twice")
def two_pins_of_one_view(s: Scene) -> None:
    pin, other = s.used_pin(), s.unused_pin(0)
    s.write(other, s.read(pin))
    s.write(other + 8, s.read(pin + 8))


# The directory and its pages


@breaks("directory.word")
def bits_of_an_entry_that_mean_nothing(s: Scene) -> None:
    s.add(s.entry("temp", "word"), 1 << 8)


@breaks("directory.page")
def a_page_of_another_incarnation(s: Scene) -> None:
    s.add(s.page("temp", "incarnation"), 1, 4)


@breaks("directory.page", "granule.map")
def an_entry_whose_page_is_none(s: Scene) -> None:
    s.add(s.entry("temp", "page"), 64)


@breaks("directory.twice")
def two_queues_of_one_name(s: Scene) -> None:
    for offset in range(0, 200, 8):
        s.write(s.page("temp", "name") + offset, s.read(s.page("seen", "name") + offset))
    s.write(s.page("temp", "name_len"), 4, 4)
    s.write(s.entry("temp", "name_hash"), s.read(s.entry("seen", "name_hash")))


@breaks("directory.name")
def a_name_with_another_hash(s: Scene) -> None:
    s.add(s.entry("temp", "name_hash"), 1)


@breaks("directory.name")
def a_queue_without_a_name(s: Scene) -> None:
    s.write(s.page("temp", "name_len"), 0, 4)


@breaks("ring.geometry", "granule.map")
def slots_of_an_odd_size(s: Scene) -> None:
    s.write(s.of_ring("temp", "slot_size"), 200, 4)


@breaks("ring.geometry", "granule.map")
def more_slots_than_fit(s: Scene) -> None:
    s.write(s.of_ring("temp", "shift"), 24, 4)


@breaks("ring.geometry", "granule.map")
def carried_bits_elsewhere(s: Scene) -> None:
    s.add(s.of_ring("temp", "carried"), 64)


@breaks("ring.geometry", "granule.map")
def cold_records_in_the_middle_of_a_granule(s: Scene) -> None:
    s.add(s.of_ring("timed", "cold"), 64)


@breaks("granule.twice", "granule.map", "group.table", "group.row", "group.refused")  # places of groups lie there, too
def cold_records_in_the_ring_itself(s: Scene) -> None:
    slots = s.ring("timed").geometry
    s.write(s.of_ring("timed", "cold"), slots.run)
    # The slots in use there, read as cold records, say one thing or another by the time of day.
    s.write(slots.run + (slots.count // 2) * COLD.bytes + COLD["ordinal"] + 8, 2**64 - 1)


@breaks("ring.geometry", "granule.map")
def a_run_of_another_length(s: Scene) -> None:
    s.add(s.of_ring("temp", "run_granules"), 1)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def rings_of_levels_elsewhere(s: Scene) -> None:
    s.add(s.page("ranked", "level_rings"), 64)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def more_levels_than_there_are(s: Scene) -> None:
    s.write(s.page("ranked", "levels"), 11, 4)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def a_level_less_than_the_run_has_room_for(s: Scene) -> None:
    s.write(s.page("ranked", "levels"), 2, 4)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def a_level_in_the_slots_of_another(s: Scene) -> None:
    change = s.ring("ranked", 1).geometry.slots - s.ring("ranked", 2).geometry.slots
    s.add(s.of_ring("ranked", "slots", 2), change)
    s.add(s.of_ring("ranked", "carried", 2), change)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def a_level_with_a_run_of_its_own(s: Scene) -> None:
    s.write(s.of_ring("ranked", "run_granules", 1), 4)


@breaks("granule.map", "slot.cold")
def a_level_that_lost_its_cold_records(s: Scene) -> None:
    s.write(s.of_ring("ranked", "cold", 2), 0)


@breaks("queue.state")
def a_queue_out_of_the_directory_that_goes_on(s: Scene) -> None:
    s.write(s.page("gone", "state"), 1, 4)


@breaks("queue.state")
def a_state_of_a_queue_that_is_none(s: Scene) -> None:
    s.write(s.page("temp", "state"), 3, 4)


@breaks("queue.shut_down")
def a_way_to_shut_down_that_is_none(s: Scene) -> None:
    s.write(s.page("temp", "shut_down"), 3, 4)


# The granule map


@breaks("granule.word")
def bits_of_the_map_that_mean_nothing(s: Scene) -> None:
    s.add(s.granule(s.free_granule()), 1 << 14)


@breaks("granule.twice")
def a_page_with_two_owners(s: Scene) -> None:
    s.write(s.counter_chunk(1, 9), s.read(s.counter_chunk(0, 0)))


@breaks("granule.reserved", "granule.counts")
def memory_in_use_that_was_never_reserved(s: Scene) -> None:
    s.add(s.granule(s.used_granule()), -(1 << 8))


@breaks("granule.counts")
def a_count_of_granules_that_the_map_does_not_have(s: Scene) -> None:
    s.add(s.header("granules_ready"), 1, 4)


@breaks("granule.map", "granule.counts")
def a_granule_that_nobody_has(s: Scene) -> None:
    s.add(s.granule(s.free_granule()), 1 << 32 | 2)


@breaks("granule.map")
def memory_in_use_that_the_map_calls_free_while_somebody_is_at_work(s: Scene) -> None:
    s.write(s.header("dirty"), 1 << 63)
    s.write(s.granule(s.used_granule()), 1 << 8)


@breaks()
def memory_without_a_root_while_somebody_is_at_work(s: Scene) -> None:
    s.write(s.header("dirty"), 1 << 63)
    s.add(s.granule(s.free_granule()), 1 << 32 | 2)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_of_everything: Image, rules: set[str], damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    assert scene.judged(dead=set()) == rules


def test_the_sound_segment_breaks_none(image_of_everything: Image) -> None:
    assert Scene.of(image_of_everything).judged(dead=set()) == set()


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("magic", 8), ("fingerprint", 8), ("size", 8), ("processes", 8), ("directory", 8), ("granules", 8),
        ("class_bitmaps", 8), ("slabs", 8), ("data", 8), ("version", 4), ("byte_order", 4), ("granule_count", 4),
        ("process_rows", 4), ("queue_count", 4),
    ],
)  # fmt: skip
def test_a_constant_of_the_header_is_what_it_has_to_be(image_of_everything: Image, field: str, size: int) -> None:
    scene = Scene.of(image_of_everything)
    scene.add(scene.header(field), 1, size)
    scene.seal_header()
    assert scene.judged() == {f"header.{field}"}


@breaks("header.memory")
def more_memory_than_the_budget(s: Scene) -> None:
    s.write(s.header("reserved_bytes"), 1 << 40)


@breaks("granule.reserved")
def slots_that_have_no_memory(s: Scene) -> None:
    s.write(s.of_ring("temp", "laid"), (1 << 64) - 1)


@breaks("ring.geometry", "granule.map")
def a_ring_without_a_slot_that_has_memory(s: Scene) -> None:
    s.write(s.of_ring("temp", "laid"), 0)
