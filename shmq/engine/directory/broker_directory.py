"""The broker's directory: what open() finds there or makes there, until this process is a member."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from shmq.core import segment
from shmq.core.segment import Home, Member
from shmq.engine.directory.disk import (
    link_disk,
    linked_disk,
    mend_linked_disk,
    private_disk,
    sweep_disk,
    sweep_private_disk,
    unlink_disk,
)
from shmq.engine.directory.lock import HeldLock, locked, locked_anew
from shmq.engine.directory.orphans import sweep_orphans, sweep_unjoined
from shmq.engine.directory.ownership import (
    check_filesystem,
    check_mode,
    check_owner,
    file_mode,
    mode_of,
    not_permitted,
    open_directory,
)
from shmq.engine.directory.record import (
    LOCK_NAME,
    RECORD_NAME,
    SegmentRecord,
    has_begun_record,
    read_record,
    write_copy,
    write_record,
)
from shmq.engine.directory.unrecorded import record_of, unrecorded
from shmq.errors import BrokerError, BrokerNotFound, CorruptionError, OptionsMismatch, ShmqError
from shmq.options.broker import PATIENCE, BrokerSettings
from shmq.options.value import size_as_text

if TYPE_CHECKING:
    from uuid import UUID


__all__ = ["BrokerDirectory", "open_anonymous"]

_LOG: Final = logging.getLogger("shmq.broker")
_ATTEMPTS: Final = 100


_AS_IT_IS: Final = BrokerSettings()


def open_anonymous(asked: BrokerSettings, *, check: bytes = b"") -> Member:
    """Makes a segment without a directory and joins it. The segment goes with its last member.

    Arguments:
        asked: its options.
        check: of the key of what goes to disk; none: that is not encrypted.

    Raises OutOfSpace, BrokerError.
    """
    sweep_orphans()
    sweep_private_disk(asked.disk_path)
    for _ in range(_ATTEMPTS):
        uuid = segment.new_uuid()
        name = segment.create(
            uuid,
            path=os.path.join(private_disk(asked.disk_path), segment.segment_name(uuid)),
            memory=segment.default_memory() if asked.memory is None else asked.memory,
            patience=PATIENCE if asked.patience is None else asked.patience,
            disk=asked.disk,
            mode=0o600,
            check=check,
        )
        # Between the two steps the segment has no member: the sweep of another process may remove it.
        with suppress(BrokerNotFound):
            return segment.attach(name)
    raise BrokerNotFound(
        "a new segment vanished before it could be joined",
        figures=f"{_ATTEMPTS} times in a row",
        remedy="try again, and end the program that removes segments from /dev/shm",
    )


class BrokerDirectory:
    """A directory in which a broker is, or shall be.

    Arguments:
        path: absolute.

    Example:
        >>> member = BrokerDirectory("/run/user/1000/jobs").open()  # doctest: +SKIP
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._new = ""  # the segment that was made here

    def open(self, asked: BrokerSettings = _AS_IT_IS, *, create: bool = True) -> Member:
        """Becomes a member of the directory's broker; makes directory and broker if they are missing.

        Arguments:
            asked: options that a new broker gets; those that are given must be those of one that is there. Whether that
                is so of its encryption_key is asked by the caller.
            create: False: BrokerNotFound when there is none.

        A broker whose segment was lost, with a reboot or otherwise, gets a new one; its messages are gone, and a
        warning says so. One whose record was removed, or is an older one, is found by what its segment says of itself.

        Raises PermissionError for another user's directory. Raises BrokerError for one on a remote file system or whose
        record names the segment of another directory. Raises OptionsMismatch when an option differs from the broker's,
        CorruptionError for garbage in place of record or segment. Raises BrokerNotFound, VersionMismatch, OutOfSpace.
        """
        if asked.mode is not None:
            check_mode(asked.mode)
        if not create and self._holds_no_broker():
            raise self._not_found(f"{self.path} has no file {RECORD_NAME!r}")
        made = False
        for _ in range(_ATTEMPTS):
            made = self._make_directory(asked.mode) if create else False
            with self.locked() as held:
                # Deleted while we waited for its lock: what we hold is no longer what the path names.
                if held is not None:
                    with suppress(_LockLost):
                        return self._open_locked(held, create, asked, made)
        raise self._not_found("its directory is deleted again and again")

    def _holds_no_broker(self) -> bool:
        """Says whether the directory holds no broker: then its owner does not matter. False where we may not look."""
        if not os.access(self.path, os.R_OK | os.X_OK) or not os.path.isdir(self.path):
            return False
        if any(os.path.lexists(os.path.join(self.path, name)) for name in (RECORD_NAME, LOCK_NAME)):
            return False
        return next(unrecorded(os.stat(self.path)), None) is None

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
            figures=f"{found} is not a directory",
            remedy="name a directory: a broker is one, with files of its own",
            filename=self.path,
        )

    def _not_made(self, error: OSError) -> OSError:
        if isinstance(error, PermissionError):
            return not_permitted(error.filename)
        return BrokerNotFound(
            "there is no broker, and none can be made",
            figures=f"{error.filename}: {error.strerror}",
            remedy="name a directory where you can make files",
            filename=self.path,
        )

    def _make_directory(self, mode: int | None) -> bool:
        """Makes the directory. True: it did not exist."""
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            return False
        except NotADirectoryError:
            raise self._no_directory() from None
        except FileNotFoundError as error:
            above = os.path.dirname(self.path)
            if os.path.isdir(above):
                raise self._not_made(error) from None
            raise BrokerNotFound(
                "there is no broker, and none can be made",
                figures=f"{above} does not exist",
                remedy="check the path, or make that directory",
                filename=self.path,
            ) from None
        except OSError as error:
            raise self._not_made(error) from None
        if mode is not None:
            # mkdir leaves out what the umask says. On what we made: others may rename things where it lies.
            dir_fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                check_owner(self.path, os.fstat(dir_fd))
                _change_mode(dir_fd, mode)
            finally:
                os.close(dir_fd)
        return True

    @contextmanager
    def locked(self) -> Iterator[HeldLock | None]:
        """Yields the checked directory with its lock held; None when it was deleted meanwhile."""
        try:
            dir_fd = open_directory(self.path)
        except FileNotFoundError:
            raise self._not_found(f"{self.path} does not exist") from None
        except NotADirectoryError:
            raise self._no_directory() from None
        try:
            check_owner(self.path, os.fstat(dir_fd))
            check_filesystem(self.path, dir_fd)
            with locked(self.path, dir_fd) as held:
                yield held
        finally:
            os.close(dir_fd)

    def _open_locked(self, held: HeldLock, create: bool, asked: BrokerSettings, made: bool) -> Member:
        try:
            record = read_record(self.path, held.dir_fd)
        except CorruptionError:
            found = self._join_unrecorded(held, None, asked) if has_begun_record(self.path, held.dir_fd) else None
            if found is None:
                raise
            return found
        if record is None:
            return self._join_unrecorded(held, None, asked) or self._open_first(held, create, asked, made)
        self._compare(held.dir_fd, record, asked)
        try:
            member = self._join(held.dir_fd, record.name, record.home(held.dir_fd))
        except BrokerNotFound:
            found = self._join_unrecorded(held, record.directory, asked)
            if found is not None:
                return found
            self.refuse_another_shm(held.dir_fd, record)
            return self._replace(held, record)
        return self._recorded(held, member, record)

    def _open_first(self, held: HeldLock, create: bool, asked: BrokerSettings, made: bool) -> Member:
        if not create:
            raise self._not_found(f"{self.path} has no file {RECORD_NAME!r}")
        if asked.mode is not None and not made:
            _change_mode(held.dir_fd, asked.mode)
            # The lock file was made when the directory still had its old mode.
            with locked_anew(self.path, held.dir_fd, asked.mode) as anew:
                return self._create_first(anew, asked)
        return self._create_first(held, asked)

    def _join_unrecorded(self, held: HeldLock, proof: UUID | None, asked: BrokerSettings) -> Member | None:
        """Joins the broker of this directory whose record was removed or replaced. None: there is no such broker.

        Arguments:
            proof: the directory's uuid, where a record says it.
        """
        for identity in unrecorded(os.fstat(held.dir_fd), proof):
            try:
                member = self._join(held.dir_fd, identity.name, (held.dir_fd, identity.directory_uuid.bytes))
            except (ShmqError, OSError):
                continue  # gone meanwhile, or shared in another way than the directory
            record = record_of(member, identity)
            try:
                self._compare(held.dir_fd, record, asked)
            except BaseException:
                member.close()
                raise
            return self._recorded(held, member, record, anew=True)
        return None

    def _recorded(self, held: HeldLock, member: Member, record: SegmentRecord, *, anew: bool = False) -> Member:
        """This member, when record and copy say what they should. Raises _LockLost if somebody else may write them.

        The member has its row by now: who gets the lock after us finds the segment by that, record or not.
        """
        try:
            if not held.is_named():
                raise _LockLost
            if not write_copy(self.path, held.dir_fd, held.lock_fd, record) or anew:
                mode, group = file_mode(record.mode), os.fstat(held.dir_fd).st_gid
                write_record(self.path, held.dir_fd, record, mode=mode, group=group)
                if record.name != self._new:
                    _LOG.warning(
                        "broker %s: its file %r was removed, replaced or cut off, and is written anew",
                        self.path,
                        RECORD_NAME,
                    )
        except BaseException:
            member.close()
            raise
        return member

    def _create_first(self, held: HeldLock, asked: BrokerSettings) -> Member:
        sweep_disk(held.dir_fd)
        unlink_disk(held.dir_fd)  # of a process that died while it made this broker
        return self._create(
            held,
            memory=segment.default_memory() if asked.memory is None else asked.memory,
            patience=PATIENCE if asked.patience is None else asked.patience,
            disk=asked.disk,
            check=b"" if asked.encryption_key is None else segment.check_of(asked.encryption_key.value),
            directory=segment.new_uuid(),
            disk_path=asked.disk_path,
        )

    @staticmethod
    def _join(dir_fd: int, name: str, home: Home) -> Member:
        member = segment.attach(name, home)
        # The lock is on the open directory, which the member keeps: processes with another /dev/shm see it, too.
        fcntl.flock(dir_fd, fcntl.LOCK_SH)
        return member

    def refuse_another_shm(self, dir_fd: int, record: SegmentRecord) -> None:
        """Raises BrokerError if the segment lies in another /dev/shm (of a container, perhaps), and in use."""
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

    def _compare(self, dir_fd: int, record: SegmentRecord, asked: BrokerSettings) -> None:
        memory, mode, disk = asked.memory, asked.mode, asked.disk
        linked = linked_disk(dir_fd)
        for option, given, has in (
            (
                "memory",
                None if memory is None else size_as_text(segment.whole_granules(memory)),
                size_as_text(record.memory),
            ),
            ("mode", None if mode is None else f"{mode:#o}", f"{record.mode:#o}"),
            ("patience", asked.patience, record.patience),
            (
                "disk",
                None if disk is None else size_as_text(disk),
                "none given" if record.disk is None else size_as_text(record.disk),
            ),
            ("disk_path", asked.disk_path, os.path.realpath(self.path if linked is None else os.path.dirname(linked))),
        ):
            if given is not None and given != has:
                raise OptionsMismatch(
                    f"the broker {self.path} has another {option}",
                    figures=f"{option}={given} here, {has} since it was made",
                    remedy=f"open it without {option}, or use another directory",
                )

    def _replace(self, held: HeldLock, record: SegmentRecord) -> Member:
        why = "is lost" if record.boot_id == segment.this_boot() else "was lost with a reboot"
        _LOG.warning("broker %s: its segment %s %s; its messages are gone", self.path, record.name, why)
        return self._create(
            held,
            memory=record.memory,
            patience=record.patience,
            disk=record.disk,
            check=record.key_check,
            directory=record.directory,
            epoch=record.epoch + 1,
        )

    def _create(
        self,
        held: HeldLock,
        *,
        memory: int,
        patience: float,
        disk: int | None,
        check: bytes,
        directory: UUID,
        disk_path: str | None = None,
        epoch: int = 0,
    ) -> Member:
        """Makes a segment, then its record. The next open joins or sweeps a segment whose maker died in between."""
        sweep_orphans()
        sweep_unjoined(self.path)
        sweep_disk(held.dir_fd)
        found = os.fstat(held.dir_fd)
        mode, uuid = mode_of(found), segment.new_uuid()
        self._new = name = segment.create(
            uuid,
            memory=memory,
            patience=patience,
            disk=disk,
            mode=file_mode(mode),
            path=self.path,
            directory=(found.st_dev, found.st_ino, directory.bytes),
            epoch=epoch,
            group=found.st_gid,
            check=check,
        )
        try:
            if disk_path is not None:
                link_disk(held.dir_fd, disk_path, directory)
            mend_linked_disk(held.dir_fd)
            # Before the record names the segment, so that a process that reads the name finds one that can be joined.
            member = self._join(held.dir_fd, name, (held.dir_fd, directory.bytes))
            record = SegmentRecord(
                name=name,
                uuid=uuid,
                directory=directory,
                boot_id=segment.this_boot(),
                memory=segment.whole_granules(memory),
                patience=patience,
                disk=disk,
                key_check=check,
                mode=mode,
                shm_device=segment.shm_device(),
                epoch=epoch,
            )
            return self._recorded(held, member, record, anew=True)
        except BrokerNotFound:
            raise _LockLost from None  # the segment had no member yet, and a process with another lock has swept it
        except BaseException:
            segment.unlink(name)
            if disk_path is not None:
                unlink_disk(held.dir_fd)
            raise


class _LockLost(Exception):
    """The lock file was removed while we held it: another process may hold a new lock file."""


def _change_mode(dir_fd: int, mode: int) -> None:
    """Changes the mode of a directory and keeps its setgid bit, by which files made in it get its group."""
    os.fchmod(dir_fd, mode | os.fstat(dir_fd).st_mode & stat.S_ISGID)
