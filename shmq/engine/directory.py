"""The broker's directory: what open() finds there or makes there, until this process is a member."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from shmq.core import segment
from shmq.core.segment import Member
from shmq.core.status import OtherBoot
from shmq.engine.orphans import sweep_orphans
from shmq.engine.ownership import PRIVATE_MODE, check_filesystem, check_mode, check_owner, file_mode, mode_of
from shmq.engine.record import RECORD_NAME, SegmentRecord, read_record, write_record
from shmq.errors import BrokerError, BrokerNotFound, OptionsMismatch

__all__ = ["DEFAULT_PATIENCE", "BrokerDirectory", "open_anonymous"]

DEFAULT_PATIENCE: Final = 0.1
LOCK_NAME: Final = "lock"
_LOG: Final = logging.getLogger("shmq.broker")
_ATTEMPTS: Final = 100


def open_anonymous(*, memory: int | None = None, patience: float | None = None) -> Member:
    """Makes a segment without a directory and joins it; it goes with its last member.

    Arguments:
        memory: bytes; None: half of /dev/shm, at most 4 GiB.
        patience: seconds; None: 0.1.

    Raises OutOfSpace, BrokerError.
    """
    sweep_orphans()
    for _ in range(_ATTEMPTS):
        name = segment.create(
            segment.new_uuid(),
            memory=segment.default_memory() if memory is None else memory,
            patience=DEFAULT_PATIENCE if patience is None else patience,
            mode=0o600,
        )
        # Between the two steps the segment has no member: somebody's sweep may take it.
        with suppress(BrokerNotFound):
            return segment.attach(name)
    raise BrokerNotFound("a new segment vanished before it could be joined", figures=f"{_ATTEMPTS} times in a row")


class BrokerDirectory:
    """A directory in which a broker is, or shall be.

    Arguments:
        path: absolute.

    Example:
        >>> member = BrokerDirectory("/run/user/1000/jobs").open()  # doctest: +SKIP
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def open(
        self,
        *,
        create: bool = True,
        memory: int | None = None,
        mode: int | None = None,
        patience: float | None = None,
    ) -> Member:
        """Becomes a member of the directory's broker; makes directory and broker if they are missing.

        Arguments:
            create: False: BrokerNotFound when there is none.
            memory: bytes; None: as it is, or half of /dev/shm, at most 4 GiB.
            mode: of the directory, 0o700 or 0o770; None: as it is, or 0o700.
            patience: seconds; None: as it is, or 0.1.

        A broker whose segment was lost, or was made before the last boot, gets a new one; what was in memory only is
        gone, and a warning says so.

        Raises PermissionError for another user's directory, BrokerError for one on a remote file system,
        BrokerNotFound, OptionsMismatch when an option differs from the broker's, CorruptionError for garbage in place
        of record or segment, VersionMismatch, OutOfSpace.
        """
        if mode is not None:
            check_mode(mode)
        if not create and self._holds_no_broker():
            raise self._not_found(f"{self.path} has no file {RECORD_NAME!r}")
        for _ in range(_ATTEMPTS):
            made = self._make_directory(mode) if create else False
            with self._locked() as dir_fd:
                # Deleted while we waited for its lock: what we hold is no longer what the path names.
                if dir_fd is not None:
                    return self._open_locked(dir_fd, create, memory, mode, patience, made)
        raise self._not_found("its directory is deleted again and again")

    def _holds_no_broker(self) -> bool:
        """Then it does not matter whose directory it is. False where we may not look."""
        may_look = os.access(self.path, os.R_OK | os.X_OK) and os.path.isdir(self.path)
        return may_look and not os.path.lexists(os.path.join(self.path, RECORD_NAME))

    def _not_found(self, figures: str) -> BrokerNotFound:
        return BrokerNotFound(
            "there is no broker", figures=figures, remedy="check the path, or open with create=True", filename=self.path
        )

    def _no_directory(self) -> BrokerNotFound:
        found = self.path
        while not os.path.lexists(found):
            found = os.path.dirname(found)
        return BrokerNotFound(
            "there is no broker, and none can be made",
            figures=f"{found} is no directory",
            remedy="name a directory: a broker is one, with files of its own",
            filename=self.path,
        )

    def _not_made(self, error: OSError) -> OSError:
        if isinstance(error, PermissionError):
            return error  # it names the place already
        return BrokerNotFound(
            "there is no broker, and none can be made",
            figures=f"{error.filename}: {error.strerror}",
            remedy="name a directory where you can make files",
            filename=self.path,
        )

    def _make_directory(self, mode: int | None) -> bool:
        """True: it did not exist."""
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise self._no_directory() from None
        except OSError as error:
            raise self._not_made(error) from None
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._not_made(error) from None
        if mode is not None:
            os.chmod(self.path, mode)  # mkdir leaves out what the umask says
        return True

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """The directory's descriptor, checked, with its lock held; None when it was deleted meanwhile."""
        try:
            dir_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._not_found(f"{self.path} does not exist") from None
        except NotADirectoryError:
            raise self._no_directory() from None
        except PermissionError:
            check_owner(self.path, os.stat(self.path))  # says more, if that is the reason
            raise
        try:
            check_owner(self.path, os.fstat(dir_fd))
            check_filesystem(self.path, dir_fd)
            lock_fd = self._open_lock(dir_fd)
            if lock_fd is None:
                yield None
                return
            try:
                fcntl.flock(lock_fd, fcntl.LOCK_EX)
                yield dir_fd if os.fstat(dir_fd).st_nlink > 0 and os.fstat(lock_fd).st_nlink > 0 else None
            finally:
                # Not left to close(): a fork in another thread may have copied the descriptor.
                fcntl.flock(lock_fd, fcntl.LOCK_UN)
                os.close(lock_fd)
        finally:
            os.close(dir_fd)

    def _open_lock(self, dir_fd: int) -> int | None:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        found = os.fstat(dir_fd)
        try:
            try:
                return os.open(LOCK_NAME, flags, dir_fd=dir_fd)
            except FileNotFoundError:
                lock_fd = os.open(LOCK_NAME, flags | os.O_CREAT, 0o600, dir_fd=dir_fd)
        except FileNotFoundError:
            return None  # the directory itself has been deleted
        except OSError as error:
            error.filename = os.path.join(self.path, LOCK_NAME)  # the name alone says nothing to who reads it
            raise
        self._share(lock_fd, mode_of(found), found.st_gid)
        return lock_fd

    @staticmethod
    def _share(descriptor: int, mode: int, group: int) -> None:
        """A file of a group's broker is the group's; in a private one it is only ours already."""
        with suppress(PermissionError):
            os.fchown(descriptor, -1, group)
        os.fchmod(descriptor, file_mode(mode))

    def _open_locked(
        self, dir_fd: int, create: bool, memory: int | None, mode: int | None, patience: float | None, made: bool
    ) -> Member:
        record = read_record(self.path, dir_fd)
        if record is None:
            if not create:
                raise self._not_found(f"{self.path} has no file {RECORD_NAME!r}")
            if mode is not None and not made:
                os.fchmod(dir_fd, mode)
                # The lock file was made when the directory still had its old mode.
                os.chmod(LOCK_NAME, file_mode(mode), dir_fd=dir_fd)
            return self._create(
                dir_fd,
                memory=segment.default_memory() if memory is None else memory,
                mode=mode_of(os.fstat(dir_fd)) if mode is None else mode,
                patience=DEFAULT_PATIENCE if patience is None else patience,
            )
        self._compare(record, memory, mode, patience)
        if record.boot_id == segment.this_boot():
            try:
                return self._join(dir_fd, record.name)
            except OtherBoot:
                reason = "was made before the last boot"
            except BrokerNotFound:
                self._refuse_another_shm(dir_fd, record)
                reason = "is lost"
        else:
            reason = "was made before the last boot"
        return self._replace(dir_fd, record, reason)

    @staticmethod
    def _join(dir_fd: int, name: str) -> Member:
        member = segment.attach(name, dir_fd)
        # On the open directory, which the member keeps: whoever shares it sees the lock, whatever /dev/shm he has.
        fcntl.flock(dir_fd, fcntl.LOCK_SH)
        return member

    def _refuse_another_shm(self, dir_fd: int, record: SegmentRecord) -> None:
        """A segment that is not in our /dev/shm may be in another container's, and in use there."""
        if record.shm_device == segment.shm_device():
            return
        try:
            fcntl.flock(dir_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BrokerError(
                f"the segment of the broker {self.path} is in another /dev/shm, and in use",
                figures=f"{record.name}, device {record.shm_device} there, {segment.shm_device()} here",
                remedy="let the containers that share the directory share /dev/shm, too (in Docker --ipc)",
                filename=self.path,
            ) from None

    def _compare(self, record: SegmentRecord, memory: int | None, mode: int | None, patience: float | None) -> None:
        for option, given, has in (
            ("memory", None if memory is None else segment.whole_granules(memory), record.memory),
            ("mode", None if mode is None else f"{mode:#o}", f"{record.mode:#o}"),
            ("patience", patience, record.patience),
        ):
            if given is not None and given != has:
                raise OptionsMismatch(
                    f"the broker {self.path} has another {option}",
                    figures=f"{option}={given} here, {has} since it was made",
                    remedy=f"open it without {option}, or use another directory",
                )

    def _replace(self, dir_fd: int, record: SegmentRecord, reason: str) -> Member:
        _LOG.warning(
            "broker %s: its segment %s %s; messages that were not durable are gone", self.path, record.name, reason
        )
        segment.unlink(record.name)
        return self._create(
            dir_fd, memory=record.memory, mode=record.mode, patience=record.patience, epoch=record.epoch + 1
        )

    def _create(self, dir_fd: int, *, memory: int, mode: int, patience: float, epoch: int = 0) -> Member:
        """A death before the record is replaced leaves a segment that no directory names; the next open sweeps it."""
        sweep_orphans()
        found = os.fstat(dir_fd)
        uuid = segment.new_uuid()
        name = segment.create(
            uuid,
            memory=memory,
            patience=patience,
            mode=file_mode(mode),
            path=self.path,
            directory=(found.st_dev, found.st_ino),
            epoch=epoch,
        )
        try:
            if mode != PRIVATE_MODE:
                # The segment has got our group; others of the directory's group cannot know its name yet.
                os.chown(f"{segment.SHM_DIRECTORY}/{name}", -1, found.st_gid)
            # Before the record names it, so that whoever reads the name finds a segment that can be joined.
            member = self._join(dir_fd, name)
        except BaseException:
            segment.unlink(name)
            raise
        try:
            record = SegmentRecord(
                name=name,
                uuid=uuid,
                boot_id=segment.this_boot(),
                memory=segment.whole_granules(memory),
                patience=patience,
                mode=mode,
                shm_device=segment.shm_device(),
                epoch=epoch,
            )
            write_record(dir_fd, record, mode=file_mode(mode), group=found.st_gid)
        except BaseException:
            member.close(True)
            segment.unlink(name)
            raise
        return member
