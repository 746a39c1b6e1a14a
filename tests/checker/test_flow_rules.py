"""Each rule about a queue that flows to disk can fail: a sound segment, damaged so, breaks it."""

from checker import Image
from checker.entries import entries
from checker.layout import GRANULE
from checker.words import AVAILABLE, CLAIMED, FETCHED, MOVING, RESERVED
from tests.checker.damage import Damage, Damages
from tests.checker.flowing import FRONT, HELD, IN_FRONT, LAP, LARGE_PLACE, LOW, NAME, PULLED, STAYED, P
from tests.checker.scene import Scene

DAMAGES = Damages()
breaks = DAMAGES.breaks

LARGE_SLOT = next(slot for slot, place in IN_FRONT.items() if place == LARGE_PLACE)


def amid_a_turn(s: Scene) -> None:
    s.write(s.page(NAME, "unfinished"), 4711, 4)


# The words


@breaks("flow.words")
def words_of_a_front_ring_that_are_the_back_rings(s: Scene) -> None:
    s.write(s.of_ring(NAME, "flow", FRONT), 1)


@breaks("flow.fetched", "flow.rows")
def more_that_were_fetched_are_passed_than_there_were(s: Scene) -> None:
    s.write(s.of_ring(NAME, "passed", FRONT), 1)
    s.write(s.of_ring(NAME, "fetched", FRONT), 0)


@breaks("flow.fetched")
def more_that_were_fetched_than_there_are_rows(s: Scene) -> None:
    s.write(s.of_ring(NAME, "fetched", FRONT), 1000)


@breaks("front.fetched")
def a_message_that_was_fetched_and_lies_behind_the_last_one(s: Scene) -> None:
    at = s.slot(NAME, LARGE_SLOT, "props", FRONT)
    s.write(at, s.read(at, 2) | FETCHED, 2)


@breaks("flow.place")
def a_flow_beyond_the_tail(s: Scene) -> None:
    amid_a_turn(s)  # then the places are no matter
    for place in range(P, 30):
        s.change_slot(NAME, place, tag=1)
    s.write(s.of_ring(NAME, "flow"), 32 << 1 | 1)


@breaks("flow.tried")
def a_message_that_failed_and_went_to_disk_from_beyond_the_tail(s: Scene) -> None:
    s.write(s.of_ring(NAME, "tried"), 32)


@breaks("flow.words")
def a_front_ring_from_which_messages_that_failed_go_to_disk(s: Scene) -> None:
    s.write(s.of_ring(NAME, "tried", FRONT), 1)


@breaks("flow.low")
def rows_that_begin_behind_their_end(s: Scene) -> None:
    amid_a_turn(s)
    s.write(s.of_ring(NAME, "low"), P + 1025)  # more than a turn hands over


@breaks("flow.rows")
def more_rows_that_came_back_than_there_were(s: Scene) -> None:
    amid_a_turn(s)
    s.write(s.of_ring(NAME, "flushed"), PULLED - 1)


@breaks("flow.rows")
def more_rows_than_places_for_them(s: Scene) -> None:
    s.add(s.of_ring(NAME, "flushed"), 1)
    s.add(s.of_ring(NAME, "flushing_count"), 1)


@breaks("flow.rows")
def rows_of_a_queue_that_does_not_flow_any_more(s: Scene) -> None:
    s.add(s.of_ring(NAME, "flow"), -1)


@breaks("flow.flushing")
def a_flush_that_does_not_say_how_many_it_took(s: Scene) -> None:
    s.write(s.of_ring(NAME, "flushing_count"), 3)


@breaks("flow.missed")
def a_mark_that_nobody_makes(s: Scene) -> None:
    s.write(s.page(NAME, "missed"), 2, 4)


@breaks("flow.cold", "granule.map")
def a_front_ring_without_records(s: Scene) -> None:
    s.write(s.of_ring(NAME, "cold", FRONT), 0)


# Geometry


@breaks("ring.geometry", "granule.map", "block.unnamed")
def a_front_ring_that_says_that_producers_put_there(s: Scene) -> None:
    s.write(s.of_ring(NAME, "kind", FRONT), 0, 4)


@breaks("ring.geometry", "granule.map", "block.unnamed")
def a_front_ring_as_long_as_the_back_ring(s: Scene) -> None:
    s.add(s.of_ring(NAME, "shift", FRONT), 2, 4)


@breaks("granule.reserved", "granule.counts")
def a_front_ring_whose_slots_have_no_memory(s: Scene) -> None:
    granule = (s.slot(NAME, 0, level=FRONT) - s.sound.regions.data) // GRANULE
    s.write(s.granule(granule), s.read(s.granule(granule)) & ~RESERVED)


# Between low and P


@breaks("flow.gap", "flow.rows")
def a_message_that_a_flush_has_not_taken(s: Scene) -> None:
    s.change_slot(NAME, HELD[1], state=AVAILABLE)
    s.write(s.slot(NAME, HELD[1], "props"), 0, 2)
    s.add(s.of_ring(NAME, "flushed"), 1)
    s.add(s.of_ring(NAME, "flushing_count"), 1)


@breaks("flow.gap")
def a_claim_that_a_flush_has_passed(s: Scene) -> None:
    s.write(s.slot(NAME, 12), 0x1000 << 8 | CLAIMED)


# On its way to disk


def moving(s: Scene, place: int, level: int = 0) -> None:
    s.change_slot(NAME, place, state=MOVING, level=level)


@breaks("flow.moving")
def a_message_on_its_way_that_no_mover_has(s: Scene) -> None:
    moving(s, P + 1)


@breaks("flow.moving")
def a_message_on_its_way_where_no_flow_is(s: Scene) -> None:
    amid_a_turn(s)
    s.add(s.of_ring(NAME, "flow"), -1)
    moving(s, P + 1)


@breaks("flow.moving", "flow.gap", "slot.lap")
def a_message_on_its_way_far_from_where_the_mover_is(s: Scene) -> None:
    amid_a_turn(s)
    s.write(s.of_ring(NAME, "flow"), 1 << 12 | 1)
    s.write(s.of_ring(NAME, "tail"), 1 << 11)
    moving(s, P + 1)


@breaks("slot.owner")
def a_message_on_its_way_that_is_somebodys(s: Scene) -> None:
    amid_a_turn(s)
    moving(s, P + 1)
    s.change_slot(NAME, P + 1, owner=0x1000)


# The front ring


@breaks("front.state")
def a_message_that_comes_back_and_goes(s: Scene) -> None:
    amid_a_turn(s)
    moving(s, LARGE_SLOT + 1, FRONT)


@breaks("front.place")
def places_in_another_order(s: Scene) -> None:
    s.write(s.record(NAME, LARGE_SLOT, "back", FRONT), 5)


@breaks("front.place")
def a_message_before_which_rows_may_come(s: Scene) -> None:
    s.write(s.record(NAME, 5, "back", FRONT), LOW)


@breaks("front.place")
def a_message_that_was_never_on_disk(s: Scene) -> None:
    amid_a_turn(s)
    s.write(s.record(NAME, 5, "back", FRONT), P)


@breaks("front.ordinal")
def a_message_that_came_back_before_the_one_before_it(s: Scene) -> None:
    s.write(s.record(NAME, LARGE_SLOT, "ordinal", FRONT), 0)


@breaks("flow.bytes")
def more_bytes_back_than_went(s: Scene) -> None:
    s.add(s.of_ring(NAME, "pulled_bytes"), 1 << 40)


@breaks("flow.flushing")
def bytes_that_no_flush_has_moved(s: Scene) -> None:
    s.add(s.of_ring(NAME, "flushing_bytes"), 1)


@breaks("flow.dropping")
def rows_that_were_to_go_and_did_not(s: Scene) -> None:
    s.write(s.of_ring(NAME, "dropping_at"), LOW + 1)


@breaks("flow.waiting")
def more_delayed_messages_that_came_back_than_went(s: Scene) -> None:
    s.write(s.of_ring(NAME, "came"), 1)


@breaks("flow.waiting")
def a_turn_that_writes_delayed_messages_and_has_no_end(s: Scene) -> None:
    s.write(s.of_ring(NAME, "waiting_from"), 1)


@breaks("flow.waiting")
def bytes_of_no_delayed_message(s: Scene) -> None:
    s.write(s.of_ring(NAME, "waiting_bytes"), 1)


@breaks("front.ordinal")
def a_message_that_came_back_and_was_not_counted(s: Scene) -> None:
    s.write(s.record(NAME, 5, "ordinal", FRONT), PULLED + 1)


@breaks("message.twice", "ring.resident")
def a_message_in_both_rings(s: Scene) -> None:
    s.add(s.slot(NAME, 10), -LAP | AVAILABLE)


@breaks("ring.resident")
def less_in_memory_than_there_is(s: Scene) -> None:
    s.add(s.page(NAME, "resident"), -1)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_that_flows: Image, rules: set[str], damage: Damage) -> None:
    """Shows S103, S171, S188."""
    scene = Scene.of(image_that_flows)
    damage(scene)
    assert scene.judged(dead=set()) == rules


def test_the_sound_segment_breaks_none(image_that_flows: Image) -> None:
    assert Scene.of(image_that_flows).judged(dead=set()) == set()
    assert Scene.of(image_that_flows).judged_quiet(live={0}) == set()


def test_a_byte_that_nobody_has_is_found_when_all_is_quiet(image_that_flows: Image) -> None:
    """Shows S171."""
    scene = Scene.of(image_that_flows)
    scene.add(scene.page(NAME, "resident"), 1)
    assert scene.judged_quiet(live={0}) == {"quiet.resident"}


def test_what_is_in_memory_is_shown_in_its_order(image_that_flows: Image) -> None:
    places = [message.position for message in entries(image_that_flows, NAME)]
    assert places == sorted([STAYED, *IN_FRONT.values(), *HELD, *range(P, 30)])


def test_a_turn_that_is_not_over_leaves_what_the_next_mover_mends(image_that_flows: Image) -> None:
    scene = Scene.of(image_that_flows)
    amid_a_turn(scene)
    moving(scene, P)  # no row yet
    scene.write(scene.slot(NAME, STAYED), LAP)
    scene.add(scene.page(NAME, "resident"), -scene.read(scene.slot(NAME, STAYED, "body_len"), 4))
    scene.set_head(NAME, P + 3)  # all have passed them
    scene.change_slot(NAME, P + 1, state=AVAILABLE)  # given back, and nobody has turned the walks round
    moving(scene, P + 2)
    scene.write(scene.of_ring(NAME, "low"), 6)  # the front's are above it, until somebody recovers
    scene.write(scene.of_ring(NAME, "pulled"), 2)
    assert scene.judged(dead=set()) == set()
    assert scene.judged_quiet(live={0}) == {"quiet.mover"}
    scene.write(scene.header("deaths"), 1)
    assert scene.judged_quiet(live={0}) == set()


def test_what_is_a_row_already_has_no_claim_to_its_block(image_that_flows: Image) -> None:
    scene = Scene.of(image_that_flows)
    amid_a_turn(scene)
    scene.write(scene.slot(NAME, LARGE_PLACE), MOVING)
    generation = scene.read(scene.slot(NAME, LARGE_PLACE, "body_gen"), 4)
    scene.write(scene.slot(NAME, LARGE_PLACE, "body_gen"), generation + 1, 4)  # not that of the front's
    scene.write(scene.page(NAME, "resident"), 1 << 20)
    assert scene.judged(dead=set()) == set()
    scene.write(scene.of_ring(NAME, "flow"), LARGE_PLACE << 1 | 1)
    scene.write(scene.of_ring(NAME, "low"), LARGE_PLACE - 1)  # nothing was handed over
    assert scene.judged(dead=set()) >= {"block.gone"}


def test_a_mark_that_a_death_left_is_found_by_the_next_mover(image_that_flows: Image) -> None:
    scene = Scene.of(image_that_flows)
    scene.write(scene.page(NAME, "missed"), 1, 4)
    assert scene.judged(dead=set()) == set()
    assert scene.judged_quiet(live={0}) == {"quiet.mover"}
    scene.write(scene.header("deaths"), 1)
    assert scene.judged_quiet(live={0}) == set()
