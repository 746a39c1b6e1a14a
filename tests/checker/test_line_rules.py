"""Each rule about the line of blocked producers can fail: a sound segment, damaged so, breaks it."""

from checker import Image
from tests.checker.damage import Damage, Damages
from tests.checker.scene import Scene

DAMAGES = Damages()
breaks = DAMAGES.breaks

UNUSED_ROW = 60


@breaks("line.length")
def a_line_longer_than_its_tickets(s: Scene) -> None:
    s.write(s.page("jobs", "line"), 300)


@breaks("line.lap")
def a_line_with_a_ticket_that_nobody_has_taken(s: Scene) -> None:
    s.write(s.page("jobs", "line"), 1)


@breaks("line.lap")
def a_ticket_beyond_the_end_of_the_line(s: Scene) -> None:
    s.write(s.ticket("jobs", 7), 1 << 32)


@breaks("line.ticket")
def a_ticket_in_a_state_that_there_is_not(s: Scene) -> None:
    s.write(s.ticket("jobs", 0), 4, 4)
    s.write(s.line(0, "jobs", "waiting"), 1, 4)
    s.write(s.of_ring("jobs", "waiters"), 1)


@breaks("line.ticket")
def a_free_ticket_of_somebody(s: Scene) -> None:
    s.write(s.ticket("jobs", 9), 1 << 8)


@breaks("line.holder")
def a_ticket_of_a_row_in_nobodys_use(s: Scene) -> None:
    s.write(s.ticket("jobs", 0), UNUSED_ROW << 8 | 1)
    s.write(s.line(0, "jobs", "waiting"), 1, 4)
    s.write(s.of_ring("jobs", "waiters"), 1)


@DAMAGES.each
def test_a_damage_breaks_its_rule(image_of_everything: Image, rules: set[str], damage: Damage) -> None:
    scene = Scene.of(image_of_everything)
    damage(scene)
    assert scene.judged(dead=set()) == rules
