"""A Spark for one command: nothing of it is seen, and what it fails with is said in one line."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from shmq.errors import ShmqError
from shmq.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["command_session"]

# The last line of a traceback in which our words stand; before and behind it are those of Spark and of Java.
_OURS: Final = re.compile(r"^\s*(?:shmq(?:\.\w+)+|ValueError|TypeError): (.+)$", re.MULTILINE)
_LAST: Final = 400  # characters of what Java said when it did not start


@contextmanager
def command_session(app: str) -> Iterator[SparkSession]:
    """A local Spark in UTC for the `with` block. Java prints into a file that nobody sees.

    Raises ShmqError: without PySpark or Java, with what helps; for what Spark says of a job, in one line.
    """
    with tempfile.TemporaryFile() as said:
        with _printing_into(said):
            try:
                spark = local_session(app, cores=_cores())
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                raise ShmqError(
                    f"there is no package {package!r}", remedy="pip install 'shmq[spark-jvm]' brings it"
                ) from error
            except RuntimeError as error:  # PySpark's way to say that Java has ended
                raise ShmqError("Spark does not start", figures=f"{error}; {_end_of(said)}") from error
        with spark, _in_one_line():
            logging.getLogger("SQLQueryContextLogger").disabled = True  # PySpark's, with the stack of each mistake
            spark.conf.set("spark.sql.session.timeZone", "UTC")  # days of one archive are the same everywhere
            yield spark


def _cores() -> int:
    return max(2, len(os.sched_getaffinity(0)))


@contextmanager
def _printing_into(file: IO[bytes]) -> Iterator[None]:
    """Processes that are started meanwhile have it as stdout and stderr; so has this one as long as that lasts."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, fd in enumerate(kept, 1):
            os.dup2(fd, number)
            os.close(fd)


def _end_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").strip()[-_LAST:] or "Java said nothing"


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise ShmqError(_told(str(error))) from error


def _told(text: str) -> str:
    found: list[str] = _OURS.findall(text)
    if found:
        return found[-1].strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Spark failed and does not say why")
    return first.partition(" SQLSTATE:")[0]
