"""The programs of docs/spark.md are saved, started as the page shows it, and print what stands there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import shmq
from tests.programs.test_shown_output import Shown, shown
from tests.support.table_formats import TABLE_FORMATS
from tests.support.warm_pools import wait_for_the_end_of_pools

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

# Those into tables are started by test_table_formats.py.
STARTED = [
    each for each in shown("docs/spark.md") if each.name and not any(name in each.text for name in TABLE_FORMATS)
]


@pytest.mark.parametrize("program", STARTED, ids=[program.name for program in STARTED])
def test_the_page_shows_what_its_program_prints(with_spark: Jvm, tmp_path: Path, program: Shown) -> None:
    (tmp_path / program.name).write_text(program.text)
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, program.output.strip()), done.stderr
    if (tmp_path / "shop.shmq").exists():
        with shmq.open(tmp_path / "shop.shmq", create=False) as broker:
            broker.delete()
    wait_for_the_end_of_pools(tmp_path)
