"""A batch is in a table, and its query ends before the checkpoint says so: the next run writes no row twice."""

from __future__ import annotations

import pytest

from tests.programs.test_shown_output import Shown, shown
from tests.spark.warm_driver import WarmDriver
from tests.support.table_formats import TABLE_FORMATS, need_table_formats

PROGRAMS = [program for program in shown("docs/spark.md") if any(name in program.text for name in TABLE_FORMATS)]
FAILING = """
failed = []


def failing(rows: DataFrame, batch: int) -> None:
    append(rows, batch)
    if batch == 1 and not failed:
        failed.append(batch)
        raise OSError("here the driver is gone")


with local_session() as spark:"""
RUN = "    query.trigger(availableNow=True).start().awaitTermination()\n"
RUNS = f"    try:\n    {RUN}    except Exception as error:\n        print('gone' in str(error))\n{RUN}"


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_batch_that_is_in_the_table_and_not_in_the_checkpoint_is_not_written_again(
    warm_driver: WarmDriver, program: Shown
) -> None:
    need_table_formats(program.text)
    text = program.text
    for shown_text, tried in (
        ("\nwith local_session() as spark:", FAILING),
        ("foreachBatch(append)", "foreachBatch(failing)"),
        (RUN, RUNS),
    ):
        assert text.count(shown_text) == 1
        text = text.replace(shown_text, tried)
    (warm_driver.folder / program.name).write_text(text)
    done = warm_driver.run(program.name)
    assert (done.returncode, done.stdout) == (0, f"True\n{program.output}"), done.stderr[-3000:]
    warm_driver.clear()
