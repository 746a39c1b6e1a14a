"""Each rule of what must hold at rest can fail, and is broken by nothing that may be left after a death."""

import pytest

from checker import Image
from checker.layout import CONSUMER, SETTINGS
from tests.checker.damage import Damage, Damages
from tests.checker.scene import Scene

DAMAGES = Damages()
LEFTOVERS: list[Damage] = []
breaks = DAMAGES.breaks

REDELIVERED_SLOT, BLOCK_SLOT, PLAIN_SLOT = 2, 3, 4


def left_by_death(damage: Damage) -> Damage:
    """Allowed once somebody has died, as the protocol pages say; a violation before."""
    LEFTOVERS.append(damage)
    return damage


@breaks("quiet.due")
def a_held_message_that_nobody_will_look_for(s: Scene) -> None:
    s.write(s.of_ring("timed", "due"), 0)


@breaks("quiet.due")
def due_rings_that_nobody_will_look_at(s: Scene) -> None:
    s.write(s.header("due"), 0)


@breaks("quiet.dirty")
def a_structure_lock_whose_holder_died(s: Scene) -> None:
    s.write(s.header("dirty"), 1 << 63 | 5)


@breaks("quiet.held")
def a_count_of_messages_in_hand_that_is_too_high(s: Scene) -> None:
    s.add(s.process(1, "unsettled"), 1, 4)


@breaks("quiet.privileges")
def a_privilege_that_is_not_counted(s: Scene) -> None:
    row = s.consumer_rows("jobs", 1)[0]
    s.write(s.consumer_word("jobs", row) + CONSUMER["privileged"], 1, 4)


@breaks("quiet.pin")
def a_pin_that_is_being_taken(s: Scene) -> None:
    s.write(s.unused_pin(0), s.read(s.used_pin()) | 255 << 40)


@breaks("quiet.moving")
def a_put_that_is_on_its_way(s: Scene) -> None:
    s.write(s.line(1, "jobs", "moving"), 1, 4)


@breaks("quiet.changing")
def a_producer_that_joins_the_waiters(s: Scene) -> None:
    s.write(s.line(1, "jobs", "changing"), 1, 4)


@breaks("quiet.line")
def a_row_that_is_free_and_waits_for_room(s: Scene) -> None:
    s.write(s.line(2, "temp", "waiting"), 1, 4)


@breaks("quiet.tickets")
def a_ticket_that_somebody_took_along(s: Scene) -> None:
    s.write(s.ticket("jobs", 0), 1)
    s.write(s.page("jobs", "line"), 1)


@breaks("quiet.memory_waiters")
def a_waiter_for_memory_that_nobody_is(s: Scene) -> None:
    s.add(s.header("memory_waiters"), 1, 4)


@breaks("quiet.watch")
def a_watcher_that_left(s: Scene) -> None:
    s.write(s.header("watch"), 3 | 1 << 16)


@breaks("quiet.watch")
def a_watcher_in_an_earlier_life_of_a_row(s: Scene) -> None:
    s.write(s.header("watch"), 2 | 77 << 32)


@breaks("quiet.deleted")
def messages_of_a_deleted_queue_that_nobody_has_in_hand(s: Scene) -> None:
    s.write(s.page("jobs", "state"), 2, 4)


@breaks("quiet.temporary")
def a_temporary_queue_whose_process_left(s: Scene) -> None:
    s.write(s.page("temp", "temporary_row"), 2, 4)


@breaks("quiet.slot")
def a_claim(s: Scene) -> None:
    s.claim("jobs")


@breaks("quiet.slot")
def a_hole(s: Scene) -> None:
    s.change_slot("jobs", s.claim("jobs"), state=9)


@breaks("quiet.slot")
def an_offer(s: Scene) -> None:
    s.change_slot("jobs", PLAIN_SLOT, state=5, owner=0x1000, tag=1)


@breaks("quiet.slot")
def a_settlement_by_half(s: Scene) -> None:
    s.change_slot("jobs", BLOCK_SLOT, state=8, owner=0x1000, tag=1)


@breaks("quiet.stranded")
def a_released_message_behind_the_head(s: Scene) -> None:
    s.set_head("jobs", REDELIVERED_SLOT + 1)


@breaks("quiet.stranded")
def an_old_message_that_no_walk_looks_for(s: Scene) -> None:
    s.set_head("old", s.read(s.of_ring("old", "tail")))


@breaks("quiet.stranded")
def a_released_message_behind_the_head_of_a_lower_level(s: Scene) -> None:
    s.add(s.slot("ranked", 0, level=2), 2 << 4)  # redelivered
    s.set_head("ranked", 1, 2)


@breaks("quiet.refused")
def a_free_group_whose_refused_are_forgotten(s: Scene) -> None:
    s.write(s.group("grouped", "refused", owned=False), 1 << 44)


@breaks("quiet.group")
def a_sticky_group_of_a_row_that_nobody_uses(s: Scene) -> None:
    s.write(s.page("grouped", "settings") + SETTINGS["grouping"], 2, 4)
    s.write(s.group("grouped", "owner", owned=False), 60)


@left_by_death
@breaks("quiet.idle")
def a_shared_group_of_somebody_who_has_nothing_of_it(s: Scene) -> None:
    s.write(s.group("grouped", "owner", owned=False), 0x1000)


@breaks("quiet.slot")
def an_offer_of_a_lower_level(s: Scene) -> None:
    s.change_slot("ranked", 0, state=5, owner=0x1000, tag=1, level=2)


@left_by_death
@breaks("quiet.epoch")
def a_release_that_did_not_raise_the_epoch(s: Scene) -> None:
    s.add(s.of_ring("temp", "head"), 1 << 44)


@breaks("quiet.count")
def a_place_that_nobody_has(s: Scene) -> None:
    s.add(s.page("jobs", "count"), 1)


@breaks("quiet.weight")
def a_byte_that_nobody_has(s: Scene) -> None:
    s.add(s.page("old", "weight"), 1)


@breaks()
def a_place_that_nobody_has_and_that_a_recount_will_find(s: Scene) -> None:
    s.add(s.page("jobs", "count"), 1)
    s.write(s.page("jobs", "recount_due"), 1, 4)


@breaks("quiet.waiters")
def a_blocked_producer_that_nobody_is(s: Scene) -> None:
    s.add(s.of_ring("jobs", "waiters"), 1, 4)


@left_by_death
@breaks("quiet.view")
def a_view_that_nobody_has(s: Scene) -> None:
    word, _ = s.block("jobs", BLOCK_SLOT)
    s.add(word, 1 << 25 if s.read(word) >> 25 & 1 == 0 else 1 << 26)


@breaks("quiet.freeing")
def a_block_that_is_freed_by_half(s: Scene) -> None:
    word, state = s.free_block()
    s.add(word, 1 << 32)
    s.add(state, 2)


@breaks("quiet.building")
def a_block_that_is_built_and_in_a_queue(s: Scene) -> None:
    _, state = s.block("jobs", BLOCK_SLOT)
    s.add(state, -1)


@left_by_death
@breaks("quiet.retired")
def a_block_that_nobody_takes(s: Scene) -> None:
    _, state = s.free_block()
    s.add(state, 3)


@breaks("quiet.hint")
def free_blocks_that_are_not_among_the_free(s: Scene) -> None:
    slab = s.slab_with_free_blocks()
    for part in range(4):
        s.write(slab.headers + 8 + 8 * part, 0)


@breaks("quiet.hint")
def a_slab_that_is_not_found_by_its_class(s: Scene) -> None:
    slab, regions = s.slab_with_free_blocks(), s.sound.regions
    s.write(regions.class_bitmaps + slab.size_class * regions.class_bitmap_bytes + slab.granule // 64 * 8, 0)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_of_everything: Image, rules: set[str], damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    assert scene.judged_quiet() == rules


@pytest.mark.parametrize("damage", LEFTOVERS)
def test_one_such_trace_may_be_left_by_one_death(image_of_everything: Image, damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    scene.write(scene.header("deaths"), 1)
    assert scene.judged_quiet() == set()


@pytest.mark.parametrize("damage", [damage for damage in LEFTOVERS if damage is not a_block_that_nobody_takes])
def test_two_traces_are_one_more_than_one_death_leaves(image_of_everything: Image, damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    before = scene.judged_quiet()
    damage(scene)
    scene.write(scene.header("deaths"), 1)
    assert scene.judged_quiet() == before


def test_a_process_that_is_thought_to_live_and_has_left(image_of_everything: Image) -> None:
    assert Scene.of(image_of_everything).judged_quiet(live={0, 1, 2}) == {"quiet.row"}
    assert Scene.of(image_of_everything).judged_quiet(live={0, 1, 50}) == {"quiet.row"}


def test_a_process_that_died_and_was_not_reaped(image_of_everything: Image) -> None:
    assert Scene.of(image_of_everything).judged_quiet(live={0}) == {
        "quiet.row",
        "quiet.owner",
        "quiet.consumer",
        "quiet.line",
    }


def test_the_sound_segment_breaks_none(image_of_everything: Image) -> None:
    assert Scene.of(image_of_everything).judged_quiet() == set()
