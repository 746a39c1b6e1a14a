"""Each rule about groups can fail: a sound segment, damaged so, breaks it, and no other."""

from checker import Image
from checker.layout import SETTINGS
from tests.checker.damage import Damage, Damages
from tests.checker.scene import Scene

DAMAGES = Damages()
breaks = DAMAGES.breaks


@breaks("group.kind")
def groups_of_a_kind_there_is_not(s: Scene) -> None:
    s.write(s.page("grouped", "settings") + SETTINGS["grouping"], 7, 4)


@breaks("group.table")
def a_group_in_a_queue_without_groups(s: Scene) -> None:
    s.write(s.group("jobs", "owner", owned=False), 1 << 40)


@breaks("group.row")
def a_group_of_a_row_beyond_the_table(s: Scene) -> None:
    s.write(s.group("grouped", "owner", owned=False), 0xFFF)


@breaks("group.refused")
def a_refusal_at_a_level_that_there_is_not(s: Scene) -> None:
    s.write(s.group("grouped", "refused"), 5 << 44)


@breaks("group.refused")
def a_refusal_beyond_the_tail(s: Scene) -> None:
    s.write(s.group("grouped", "refused"), 1 << 44 | s.read(s.of_ring("grouped", "tail")))


@breaks("group.record")
def a_message_of_a_group_beyond_the_table(s: Scene) -> None:
    s.write(s.record("grouped", 1, "group"), 257 + 65536)


@breaks("group.holder")
def a_group_that_is_free_while_somebody_has_a_message_of_it(s: Scene) -> None:
    s.write(s.group("grouped", "owner"), 1 << 40)


@breaks("group.holder")
def a_message_in_the_hands_of_another_than_its_group(s: Scene) -> None:
    s.change_slot("grouped", 0, owner=0x1000)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_of_everything: Image, rules: set[str], damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    assert scene.judged(dead=set()) == rules
