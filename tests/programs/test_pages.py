"""The programs on the pages of docs/ run as they stand, twice."""

from pathlib import Path

import pytest

from tests.programs.test_shown_output import run_twice, shown

PAGES = [
    "docs/broker.md",
    "docs/consumers.md",
    "docs/dead-letters.md",
    "docs/event-loops.md",
    "docs/groups.md",
    "docs/limits.md",
    "docs/pipelines.md",
    "docs/priorities.md",
    "docs/selectors.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page: str, tmp_path: Path) -> None:
    programs = shown(page)
    assert programs, f"{page} has no program"
    for number, program in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert len(list(run_twice(folder, program))) == 2
