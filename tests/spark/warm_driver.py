"""A process that runs programs of Spark one after another: its Java is started once.

Each program has a Spark of its own, as if it were started alone. All are started in one folder, for Java cannot
change its own. A driver that is to be killed needs a process of its own: drivers.py.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import shmq
from tests.repo.tree import ROOT
from tests.spark.drivers import end

__all__ = ["Done", "WarmDriver"]


class Done(NamedTuple):
    """How a program has ended."""

    returncode: int
    stdout: str
    stderr: str


class WarmDriver:
    """Its programs are started in `folder`, and all of its temporary files lie above that.

    Example:
        >>> driver.start("taxes.py")
        >>> driver.wait().returncode
        0
    """

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self.folder = folder

    @classmethod
    @contextmanager
    def running(cls, place: Path) -> Iterator[WarmDriver]:
        folder = place / "run"
        folder.mkdir()
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with (place / "java.txt").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.warm_driver"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(place)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            yield cls(process, folder)
        finally:
            end(process)

    def start(self, program: str, *arguments: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([program, *arguments]) + "\n")
        self._process.stdin.flush()

    def wait(self) -> Done:
        """For the end of the program that was started last."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.folder.parent / "java.txt").read_text()[-3000:]
        return Done(*json.loads(line))

    def run(self, program: str, *arguments: str) -> Done:
        self.start(program, *arguments)
        return self.wait()

    def clear(self) -> None:
        """Brokers and files that programs have left in their folder go."""
        for path in self.folder.glob("*.shmq"):
            with shmq.open(path, create=False) as broker:
                broker.delete(force=True)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _run(arguments: Sequence[str], out: Path, err: Path) -> int:
    sys.argv = list(arguments)
    with out.open("w") as stdout, err.open("w") as stderr, redirect_stdout(stdout), redirect_stderr(stderr):
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except SystemExit as error:
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0


def _serve() -> None:
    answers, out, err = os.fdopen(os.dup(1), "w"), Path("../stdout.txt").absolute(), Path("../stderr.txt").absolute()
    os.dup2(2, 1)  # what Java and Python's workers say goes elsewhere
    for line in sys.stdin:
        status = _run(json.loads(line), out, err)
        print(json.dumps([status, out.read_text(), err.read_text()]), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
