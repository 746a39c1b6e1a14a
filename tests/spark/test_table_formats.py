"""A batch is in a table, and its query ends before the checkpoint says so: the next run writes no row twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shmq
from tests.programs.test_shown_output import Shown, shown
from tests.support.table_formats import TABLE_FORMATS, need_table_formats

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

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
    with_spark: Jvm, tmp_path: Path, program: Shown
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
    (tmp_path / program.name).write_text(text)
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # Its exit code is not asked for: once the Delta program was aborted after it had printed all of this ("terminate
    # called without an active exception"). What did that is not known.
    assert done.stdout == f"True\n{program.output}", done.stderr[-3000:]
    with shmq.open(tmp_path / "shop.shmq", create=False) as broker:
        broker.delete()
