"""The calls of the pools of map_in_pool in these tests. Their processes import this module by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc


def note(folder: Path) -> None:
    """Says that a model was loaded."""
    (folder / f"loaded-{os.getpid()}").touch()


def doubled(batch: Any) -> Any:
    return batch.set_column(0, "id", pc.multiply(batch.column(0), 2))


def by_whom(batch: Any) -> Any:
    return pa.RecordBatch.from_pydict({"id": [os.getpid()] * batch.num_rows})


def twice(batch: Any) -> Any:
    """More rows than it got, as a table."""
    return pa.Table.from_batches([batch, batch])


SECRET = b"a secret"
SECRETS = 1 << 17  # of each batch: 1 MiB


def secrets(batch: Any) -> Any:
    """Numbers whose bytes can be read."""
    return pa.RecordBatch.from_pydict({"id": [int.from_bytes(SECRET, "little")] * SECRETS})


def wide(batch: Any) -> Any:
    return pa.RecordBatch.from_pydict({"id": list(range(1 << 20))})


def nothing(batch: Any) -> None:
    pass


def refuse(batch: Any) -> NoReturn:
    raise LookupError(f"no such thing as {batch.column(0)[0]}")


def die(batch: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


async def later(folder: Path) -> None:
    """Work that nobody awaits."""


def leave(folder: Path) -> None:
    """A model that cannot be loaded until somebody has mended it."""
    if not (folder / "mended").exists():
        raise FileNotFoundError("the model is not here")


class DieOnce:
    """Dies with the batch of that number, the first time."""

    def __init__(self, folder: Path, first: int) -> None:
        self.folder = folder
        self.first = first

    def __call__(self, batch: Any) -> Any:
        mark = self.folder / "died"
        if batch.column(0)[0].as_py() == self.first and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return doubled(batch)
