"""An archive of the classes that Spark loads: a Java virtual machine that maps it starts in half the processor time.

It is Java's own class data sharing. One that finds no archive, or one that does not fit, loads its classes as always.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import MutableMapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import shmq
from tests.repo.tree import ROOT
from tests.spark.drivers import SECONDS, STREAM, program

if TYPE_CHECKING:
    from shmq.spark.jvm import Jvm

__all__ = ["share_classes"]

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def share_classes(jvm: Jvm, directory: Path, environment: MutableMapping[str, str]) -> None:
    """The drivers, executors and daemons of Sparks that get this environment use the archive, from when on it is there.

    The first process that asks makes it, which takes as long as one of those drivers and some seconds more.

    Arguments:
        jvm: for whose classes it is.
        directory: for what the maker's stream writes.
        environment: of this process.
    """
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    stat = os.stat(spec.origin)
    of = f"{os.path.realpath(jvm.home)} {jvm.version} {spec.origin} {stat.st_mtime_ns}"
    archive = ROOT / "build" / f"spark-classes-{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"
    if " " in str(archive):
        return  # Spark's launcher takes no such path in these variables
    archive.parent.mkdir(exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not archive.exists():
                _make(archive, directory)
        except BlockingIOError:
            pass  # another worker makes it
    used = f"-XX:SharedArchiveFile={archive} {_QUIET}"
    environment["SPARK_SUBMIT_OPTS"] = f"{used} '-Dspark.executor.defaultJavaOptions={used}'"
    environment["SPARK_DAEMON_JAVA_OPTS"] = used


def _make(archive: Path, directory: Path) -> None:
    """From a stream of two batches. Where that fails an empty file says that there is none."""
    draft = archive.with_suffix(".draft")
    with shmq.open(directory / "broker", memory="32MiB") as broker:
        broker.queue("orders").put_many(b"%d" % n for n in range(1000))
        places = ["path", broker.path or "", str(directory / "checkpoint")]
        command = [*program(directory, STREAM), *places, "local[2,2]"]
        written = {"SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={draft} {_QUIET}"}
        subprocess.run(command, env=os.environ | written, capture_output=True, timeout=SECONDS, check=False)
        broker.delete(force=True)
    draft.touch()
    draft.replace(archive)
