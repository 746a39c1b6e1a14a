"""Which files of an archive were put into which queue: a replay that is repeated puts what is new, and no more.

A file of an archive never changes. Before a replay puts anything, it writes down which files it is going to put, under
a key. With this key the sink puts them once, however often that is tried. So whenever a replay dies, the next one does
again what was written down, under the same key, and then goes on with the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from shmq.errors import ShmqError

__all__ = ["Entry", "Ledger"]

_FOLDER: Final = "_replays"  # readers of Parquet pass over what begins so


@dataclass(frozen=True)
class Entry:
    """One write of a replay.

    Arguments:
        key: of the write: another one for other files, another queue, another condition.
        target: the identity of the queue.
        where: the condition on the rows; "": all of them.
        files: their names.
        done: they are in the queue.
    """

    key: str
    target: str
    where: str
    files: tuple[str, ...]
    done: bool = False


class Ledger:
    """The replays of an archive into one queue under one condition.

    Arguments:
        archive: its directory.
        target: the identity of the queue: one that was made anew has got nothing yet.
        where: the condition on the rows; another condition is another replay, and knows nothing of this one.
    """

    def __init__(self, archive: str | Path, target: str, where: str = "") -> None:
        self._folder = Path(archive) / _FOLDER
        self._target = target
        self._where = where

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Allows one replay of an archive at a time. Raises ShmqError while another replay runs."""
        self._folder.mkdir(exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ShmqError(
                    f"another replay of {str(self._folder.parent)!r} is running", remedy="wait for its end"
                ) from None
            yield

    def entries(self) -> list[Entry]:
        """Returns the entries that were written down, done or not."""
        found = []
        for file in sorted(self._folder.glob("*.json")):
            plain = json.loads(file.read_text())
            plain["files"] = tuple(plain["files"])
            entry = Entry(**plain)
            if (entry.target, entry.where) == (self._target, self._where):
                found.append(entry)
        return found

    def pending(self) -> list[Entry]:
        """Returns the entries that were begun, and perhaps not finished."""
        return [entry for entry in self.entries() if not entry.done]

    def new(self, files: Iterable[str]) -> list[str]:
        """Those of the files that no replay has begun with, in order."""
        known = {file for entry in self.entries() for file in entry.files}
        return sorted(set(files) - known)

    def begin(self, files: Iterable[str]) -> Entry:
        """Writes down that these files are going to be put."""
        names = tuple(sorted(files))
        text = json.dumps([self._target, self._where, names])
        entry = Entry(f"replay-{hashlib.sha256(text.encode()).hexdigest()[:32]}", self._target, self._where, names)
        self._write(entry)
        return entry

    def finish(self, entry: Entry) -> None:
        """Writes down that the entry's files are in the queue."""
        self._write(replace(entry, done=True))

    def _write(self, entry: Entry) -> None:
        """Writes an entry whole or not at all. The replay acts on the entry only after that."""
        draft = self._folder / f".{entry.key}.{os.getpid()}"
        with draft.open("w") as file:
            file.write(json.dumps(asdict(entry), indent=1))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._folder / f"{entry.key}.json")
