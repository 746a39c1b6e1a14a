"""The programs of docs/spark.md are saved, started as the page shows it, and print what stands there."""

from __future__ import annotations

import pytest

from tests.programs.test_shown_output import Shown, shown
from tests.spark.warm_driver import WarmDriver
from tests.support.table_formats import TABLE_FORMATS
from tests.support.warm_pools import wait_for_the_end_of_pools

# Those into tables are started by test_table_formats.py.
STARTED = [
    each for each in shown("docs/spark.md") if each.name and not any(name in each.text for name in TABLE_FORMATS)
]


@pytest.mark.parametrize("program", STARTED, ids=[program.name for program in STARTED])
def test_the_page_shows_what_its_program_prints(warm_driver: WarmDriver, program: Shown) -> None:
    (warm_driver.folder / program.name).write_text(program.text)
    done = warm_driver.run(program.name)
    assert (done.returncode, done.stdout.strip()) == (0, program.output.strip()), done.stderr
    wait_for_the_end_of_pools(warm_driver.folder.parent)
    warm_driver.clear()
