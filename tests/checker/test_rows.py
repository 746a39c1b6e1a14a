"""The step killer compares the rows that lie on disk with the segment's words about them."""

from checker import Image
from checker.queue import queues_of
from steps.judge import judge_rows
from tests.checker.flowing import HELD, LOW, NAME, P
from tests.checker.scene import Scene

ROWS = [[LOW, max(HELD)], [max(HELD) + 1, P]]  # what the sound segment has on disk


def test_the_rows_of_a_sound_segment_are_as_many_as_its_words_say(image_that_flows: Image) -> None:
    assert judge_rows(queues_of(image_that_flows), ROWS) == []


def test_rows_that_have_left_and_rows_of_a_dead_mover_count_for_nothing(image_that_flows: Image) -> None:
    assert judge_rows(queues_of(image_that_flows), [[0, 3], *ROWS, [P, P + 5]]) == []


def test_a_row_that_is_lost_is_told(image_that_flows: Image) -> None:
    (wrong,) = judge_rows(queues_of(image_that_flows), [ROWS[0], [ROWS[1][0] + 1, P]])
    assert "7 rows between low and P, and by its words 8" in wrong


def test_a_row_that_is_a_message_in_memory_too_is_told(image_that_flows: Image) -> None:
    number, twice = judge_rows(queues_of(image_that_flows), [[LOW, P]])
    assert "9 rows between low and P, and by its words 8" in number
    assert f"the entry of place {max(HELD)} is a row, too" in twice


def test_amid_a_turn_nothing_is_asked(image_that_flows: Image) -> None:
    scene = Scene.of(image_that_flows)
    scene.write(scene.page(NAME, "unfinished"), 4711, 4)
    assert judge_rows(queues_of(Image(scene.data)), []) == []
