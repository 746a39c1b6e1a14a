"""Each rule about rings, messages, consumers and blocks can fail: a sound segment, damaged so, breaks it.

A test expects the whole answer: the rule, and with it only the rules that the same damage breaks as well.
"""

from checker import Image
from checker.layout import CONSUMER
from checker.words import NEXT
from tests.checker.damage import Damage, Damages
from tests.checker.scene import Scene

DAMAGES = Damages()
breaks = DAMAGES.breaks

REDELIVERED_SLOT, BLOCK_SLOT, PLAIN_SLOT, OTHER_SLOT, OTHER_BLOCK_SLOT = 2, 3, 4, 5, 6
IN_HAND = 1
UNUSED_ROW = 60


# Slots


@breaks("slot.lap")
def a_tail_that_passed_a_slot_that_nobody_claimed(s: Scene) -> None:
    s.add(s.of_ring("jobs", "tail"), 1)


@breaks("slot.lap")
def a_slot_that_is_a_lap_ahead(s: Scene) -> None:
    s.add(s.slot("jobs", 900), 1 << 32)


@breaks("slot.lap")
def a_slot_beyond_the_tail_in_use(s: Scene) -> None:
    s.write(s.slot("temp", 900), 0x1000 << 8 | 1)


@breaks("slot.free")
def a_free_slot_with_a_tag(s: Scene) -> None:
    s.change_slot("jobs", 900, tag=1)


@breaks("slot.state")
def a_state_of_a_later_stage(s: Scene) -> None:
    s.change_slot("jobs", PLAIN_SLOT, state=12)


@breaks("slot.broken")
def a_slot_that_somebody_gave_up(s: Scene) -> None:
    s.change_slot("jobs", PLAIN_SLOT, state=10)


@breaks("slot.owner")
def an_available_message_with_an_owner(s: Scene) -> None:
    s.change_slot("jobs", PLAIN_SLOT, owner=s.consumer_rows("jobs", 0)[0])


@breaks("slot.owner")
def a_message_in_nobodys_hands(s: Scene) -> None:
    s.change_slot("jobs", IN_HAND, owner=0)


@breaks("slot.owner")
def a_claim_by_a_consumer_row(s: Scene) -> None:
    s.change_slot("jobs", s.claim("jobs"), owner=s.consumer_rows("jobs", 0)[0])


@breaks("slot.claim")
def a_claim_with_a_tag(s: Scene) -> None:
    s.claim("jobs", tag=1)


@breaks("slot.flags")
def a_flag_of_a_later_stage(s: Scene) -> None:
    s.add(s.slot("jobs", PLAIN_SLOT), 4 << 4)


@breaks("slot.props")
def a_property_of_a_later_stage(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "props"), 1, 2)


@breaks("slot.props", "slot.cold")
def one_that_is_next_of_its_group_and_was_not_fetched(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "props"), NEXT, 2)


@breaks("slot.held")
def a_held_message_without_an_end(s: Scene) -> None:
    s.write(s.slot("timed", 0, "props"), 0, 2)


@breaks("slot.pending")
def a_message_on_its_way_that_does_not_say_where_from(s: Scene) -> None:
    s.change_slot("jobs", PLAIN_SLOT, state=2, owner=0x1000)


@breaks("slot.cold")
def a_message_with_a_time_and_no_record(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "props"), 1 << 4, 2)


@breaks("slot.position")
def a_position_of_another_turn(s: Scene) -> None:
    s.add(s.slot("jobs", PLAIN_SLOT, "position"), 1024)


@breaks("slot.position")
def a_carried_entry_from_the_future(s: Scene) -> None:
    s.add(s.slot("old", 1, "position"), 1 << 20)


@breaks("slot.carried")
def a_carried_entry_without_its_bit(s: Scene) -> None:
    s.write(s.read(s.of_ring("old", "carried")), 0)


# Pointers


@breaks("ring.passed")
def a_head_beyond_what_was_never_delivered(s: Scene) -> None:
    s.set_head("jobs", BLOCK_SLOT + 1)


@breaks("ring.floor")
def a_floor_above_what_is_not_settled(s: Scene) -> None:
    s.write(s.of_ring("jobs", "floor"), 7)


@breaks("ring.floor")
def a_floor_above_the_tail(s: Scene) -> None:
    s.write(s.of_ring("temp", "floor"), 700)


@breaks("ring.head")
def a_head_beyond_the_tail(s: Scene) -> None:
    s.set_head("temp", 30)


@breaks("ring.epoch")
def an_epoch_beyond_the_heads(s: Scene) -> None:
    s.add(s.of_ring("temp", "epoch"), 5)


@breaks("ring.cell")
def a_cell_of_another_epoch(s: Scene) -> None:
    s.write(s.of_ring("temp", "cells") + 8 * 5, 6 << 44)


@breaks("ring.cell")
def a_release_of_a_position_to_come(s: Scene) -> None:
    s.add(s.of_ring("jobs", "cells") + 8, 1000)


@breaks("ring.count")
def a_count_that_lets_one_too_many_in(s: Scene) -> None:
    s.add(s.page("jobs", "count"), -1)


@breaks("ring.weight")
def a_weight_that_lets_one_byte_too_many_in(s: Scene) -> None:
    s.add(s.page("old", "weight"), -1)


@breaks("ring.waiters")
def a_blocked_producer_that_is_not_counted(s: Scene) -> None:
    s.write(s.line(1, "jobs", "waiting"), 1, 4)


# Messages


@breaks("message.length")
def a_body_longer_than_its_slot(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "body_len"), 100_000, 4)


@breaks("message.length")
def a_body_longer_than_its_block(s: Scene) -> None:
    s.write(s.slot("jobs", BLOCK_SLOT, "body_len"), 100_000, 4)


@breaks("message.block")
def a_generation_without_a_block(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "body_gen"), 7, 4)


@breaks("message.block", "block.unnamed")
def a_body_in_the_midst_of_a_block(s: Scene) -> None:
    s.add(s.slot("jobs", BLOCK_SLOT, "body"), 1)


@breaks("message.block", "block.gone", "block.unnamed")
def a_reference_that_no_put_takes(s: Scene) -> None:
    s.add(s.slot("jobs", BLOCK_SLOT, "body"), 13 << 40)


@breaks("message.fields")
def a_priority_of_a_later_stage(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "priority"), 10, 1)
    s.seal("jobs", PLAIN_SLOT)


@breaks("message.deaths")
def a_death_that_was_counted_and_is_not_there(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "death_tag"), 0x8001, 2)


@breaks("message.deaths")
def a_death_of_a_delivery_that_is_none(s: Scene) -> None:
    s.write(s.slot("jobs", REDELIVERED_SLOT, "deaths"), 1, 2)
    s.write(s.slot("jobs", REDELIVERED_SLOT, "death_tag"), 0x4001, 2)


@breaks("message.redelivered")
def a_failed_attempt_of_what_was_never_delivered(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "delivery"), 1, 2)


@breaks("message.id")
def an_id_that_nobody_was_given(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "message_id"), 1 << 63)
    s.seal("jobs", PLAIN_SLOT)


@breaks("message.twice")
def one_message_in_two_places(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "message_id"), s.read(s.slot("jobs", OTHER_SLOT, "message_id")))
    s.seal("jobs", PLAIN_SLOT)


@breaks("message.twice")
def one_message_locked_here_and_available_there(s: Scene) -> None:
    s.write(s.slot("jobs", PLAIN_SLOT, "message_id"), s.read(s.slot("jobs", IN_HAND, "message_id")))
    s.change_slot("jobs", IN_HAND, state=7)
    s.seal("jobs", PLAIN_SLOT)


@breaks("message.crc")
def a_flipped_bit_in_a_slot(s: Scene) -> None:
    s.add(s.slot("jobs", PLAIN_SLOT) + 64, 1, 1)


@breaks("message.crc")
def a_flipped_bit_in_a_block(s: Scene) -> None:
    offset = (s.read(s.slot("jobs", BLOCK_SLOT, "body")) & (1 << 40) - 1) << 6
    s.add(offset + 4000, 1, 1)


@breaks("message.crc")
def a_time_that_is_not_that_of_the_put(s: Scene) -> None:
    s.add(s.slot("jobs", PLAIN_SLOT, "enqueued_ns"), 1)


# Levels

LAST = 2


@breaks("message.level")
def a_message_on_a_level_that_is_not_its_own(s: Scene) -> None:
    s.write(s.slot("ranked", 0, "priority", LAST), 9, 1)
    s.seal("ranked", 0, LAST)


@breaks("message.crc")
def a_flipped_bit_on_the_last_level(s: Scene) -> None:
    s.add(s.slot("ranked", 0, level=LAST) + 64, 1, 1)


@breaks("slot.lap")
def a_tail_of_the_last_level_that_passed_a_slot_that_nobody_claimed(s: Scene) -> None:
    s.add(s.of_ring("ranked", "tail", LAST), 1)


@breaks("ring.passed")
def a_head_of_the_last_level_beyond_what_was_never_delivered(s: Scene) -> None:
    s.set_head("ranked", 2, LAST)


@breaks("owner.row")
def a_message_of_the_second_level_in_nobodys_hands(s: Scene) -> None:
    s.change_slot("ranked", 0, owner=UNUSED_ROW, level=1)


@breaks("process.held")
def messages_in_hand_on_all_levels_that_are_not_admitted(s: Scene) -> None:
    s.change_slot("ranked", 0, state=6, owner=0x1000, tag=1, level=LAST)


@breaks("ring.count")
def a_count_that_forgets_the_last_level(s: Scene) -> None:
    s.add(s.page("ranked", "count"), -3)


@breaks("slot.cold")
def a_held_message_of_a_level_without_records(s: Scene) -> None:
    s.change_slot("ranked", 1, state=4)
    s.write(s.slot("ranked", 1, "props"), 1 << 5, 2)


@breaks("block.gone")
def a_message_of_the_last_level_whose_block_was_freed(s: Scene) -> None:
    word, state = s.block("ranked", 1, LAST)
    generation = (s.read(word) >> 32) + 1
    s.write(word, generation << 32)
    s.write(state, generation << 32 | s.read(state) & 0xFF000000 | 1)


# Consumers and owners


@breaks("consumer.chunk")
def a_sleeper_in_a_group_without_rows(s: Scene) -> None:
    s.write(s.sleepers("jobs", "idle", group=5), 1)


@breaks("consumer.chunk", "owner.row", "granule.map")
def rows_that_are_no_page(s: Scene) -> None:
    s.add(s.page("jobs", "chunks"), 64)


@breaks("consumer.groups")
def more_groups_than_there_are(s: Scene) -> None:
    s.write(s.page("jobs", "chunk_count"), 17, 4)


@breaks("consumer.groups")
def rows_in_a_group_that_no_notifier_looks_at(s: Scene) -> None:
    s.write(s.page("jobs", "chunk_count"), 0, 4)


@breaks("consumer.bits")
def a_sleeper_in_an_unused_row(s: Scene) -> None:
    s.add(s.sleepers("jobs", "idle"), 1 << UNUSED_ROW)


@breaks("consumer.bits", "consumer.word")
def row_zero_in_use(s: Scene) -> None:
    s.add(s.sleepers("jobs", "used"), 1)


@breaks("consumer.word")
def a_row_in_use_that_is_free(s: Scene) -> None:
    s.write(s.consumer_word("jobs", UNUSED_ROW), 5 << 32)
    s.add(s.sleepers("jobs", "used"), 1 << UNUSED_ROW)


@breaks("consumer.word")
def a_row_in_use_of_a_process_that_left(s: Scene) -> None:
    s.write(s.consumer_word("jobs", UNUSED_ROW), 2 << 8 | 2)
    s.add(s.sleepers("jobs", "used"), 1 << UNUSED_ROW)


@breaks("consumer.target")
def a_row_that_sleeps_on_a_word_that_is_none(s: Scene) -> None:
    row = s.consumer_rows("jobs", 0)[0]
    s.write(s.consumer_word("jobs", row) + CONSUMER["sleeps_on"], s.process(0, "wake_words") + 2)


@breaks("consumer.target")
def a_row_that_sleeps_on_a_word_of_another_process(s: Scene) -> None:
    s.write(s.consumer_word("jobs", s.consumer_rows("jobs", 0)[0]) + CONSUMER["sleeps_on"], s.process(1, "wake_words"))


@breaks("consumer.attached")
def a_row_of_a_process_that_does_not_use_the_queue(s: Scene) -> None:
    s.write(s.consumer_word("jobs", UNUSED_ROW), 1 << 8 | 2)
    s.add(s.sleepers("jobs", "used"), 1 << UNUSED_ROW)
    s.write(s.line(1, "jobs", "attached"), 0)
    # A message in the process's hands there would be nobody's to repair either: it gets another owner.
    s.change_slot("jobs", 0, owner=0x1000)
    s.add(s.process(0, "unsettled"), 1, 4)


@breaks("owner.row")
def a_message_in_the_hands_of_a_row_that_is_in_nobodys_use(s: Scene) -> None:
    s.change_slot("jobs", IN_HAND, owner=UNUSED_ROW)


@breaks("owner.row")
def a_claim_of_a_process_that_left(s: Scene) -> None:
    s.change_slot("jobs", s.claim("jobs"), owner=0x1002)


@breaks("owner.attached")
def a_message_in_the_hands_of_who_does_not_use_the_queue(s: Scene) -> None:
    s.write(s.line(1, "old", "attached"), 0)
    s.change_slot("old", 0, owner=0x1001)
    s.add(s.process(1, "unsettled"), 1, 4)


# Blocks


@breaks("block.class")
def a_slab_of_a_class_that_is_none(s: Scene) -> None:
    granule = s.free_granule()
    s.add(s.granule(granule), 1 << 9)
    s.add(s.header("reserved_bytes"), 4096)
    s.write(s.header("slab_high"), granule + 1, 4)
    s.write(s.sound.regions.slabs + 4096 * granule, 99)


@breaks("block.twice", "block.unnamed")
def two_slots_with_one_reference(s: Scene) -> None:
    for field, size in (("body", 8), ("body_gen", 4), ("body_len", 4)):
        s.write(s.slot("jobs", OTHER_BLOCK_SLOT, field), s.read(s.slot("jobs", BLOCK_SLOT, field), size), size)
    s.seal("jobs", OTHER_BLOCK_SLOT)


@breaks("block.gone")
def a_message_whose_block_was_freed(s: Scene) -> None:
    word, state = s.block("jobs", BLOCK_SLOT)
    generation = (s.read(word) >> 32) + 1
    s.write(word, generation << 32)
    s.write(state, generation << 32 | s.read(state) & 0xFF000000 | 1)


@breaks("block.state")
def a_block_in_a_state_that_is_none(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 6)


@breaks("block.state")
def a_block_of_another_class(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 1 << 24)


@breaks("block.state")
def a_free_block_with_an_owner(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 1 << 8)


@breaks("block.state")
def a_block_behind_the_last_one(s: Scene) -> None:
    slab = next(slab for slab in s.sound.slabs.values() if slab.blocks < 248)
    s.add(slab.headers + 128 + 16 * 247 + 8, 1)


@breaks("block.free")
def a_free_block_with_a_reference(s: Scene) -> None:
    word, _ = s.free_block()
    s.add(word, 1)


@breaks("block.generation")
def a_block_whose_words_disagree(s: Scene) -> None:
    word, _ = s.free_block()
    s.add(word, 3 << 32)


@breaks("block.bits", "block.unnamed")
def a_reference_of_a_later_stage(s: Scene) -> None:
    word, _ = s.block("jobs", BLOCK_SLOT)
    s.add(word, 1 << 15)


@breaks("block.shared")
def a_shared_block_without_references(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 2)


@breaks("block.owner")
def a_block_that_is_built_by_who_left(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 1 | 2 << 8)


@breaks("block.unnamed")
def a_reference_that_no_slot_names(s: Scene) -> None:
    word, state = s.free_block()
    s.add(word, 1)
    s.add(state, 2)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_of_everything: Image, rules: set[str], damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    assert scene.judged(dead=set()) == rules
