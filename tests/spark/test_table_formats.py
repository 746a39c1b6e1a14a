"""A driver is killed when its batch is in a table and not in the checkpoint: the next run writes no row twice."""

from __future__ import annotations

import os
import re
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
DYING = """
import os
import signal


def dying(rows: DataFrame, batch: int) -> None:
    append(rows, batch)
    if batch == 1 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


with local_session() as spark:"""


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_batch_that_a_killed_driver_has_written_is_not_written_again(
    with_spark: Jvm, tmp_path: Path, program: Shown
) -> None:
    need_table_formats(program.text)
    text = program.text.replace("\nwith local_session() as spark:", DYING).replace(
        "foreachBatch(append)", "foreachBatch(dying)"
    )
    assert text.count("dying") == 2
    (tmp_path / program.name).write_text(text)
    (tmp_path / f"again_{program.name}").write_text(re.sub(r"put_many\(.*\)", "put_many([])", text))
    for name, code in ((program.name, -9), (f"again_{program.name}", 0)):
        done = subprocess.run(
            [sys.executable, name],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stderr[-3000:]
    assert done.stdout.strip() == program.output.strip()  # as the page shows it
    with shmq.open(tmp_path / "shop.shmq", create=False) as broker:
        broker.delete()
