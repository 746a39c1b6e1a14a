"""Checks a broker's directory, its owner and its file system, before anything in it is opened or mapped."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from shmq.core.segment import filesystem_type
from shmq.errors import BrokerError

__all__ = [
    "GROUP_MODE",
    "PRIVATE_MODE",
    "check_filesystem",
    "check_mode",
    "check_owner",
    "file_mode",
    "is_directory",
    "mode_of",
    "mounted_type",
    "not_permitted",
    "open_directory",
]

PRIVATE_MODE: Final = 0o700
GROUP_MODE: Final = 0o770

# f_type of file systems whose files other hosts may change, or whose locks other hosts do not see.
_REMOTE: Final = {
    0x00000000517B: "SMB",
    0x0000FF534D42: "CIFS",
    0x0000FE534D42: "SMB2",
    0x000000006969: "NFS",
    0x00000000564C: "NCP",
    0x000073757245: "Coda",
    0x00005346414F: "AFS",
    0x00006B414653: "AFS",
    0x000001021997: "9P",
    0x000000C36400: "Ceph",
    0x00000BD00BD0: "Lustre",
    0x000047504653: "GPFS",
    0x00007461636F: "OCFS2",
    0x000001161970: "GFS2",
    0x0000A501FCF5: "VxFS",
    0x0000786F4256: "VirtualBox shared folder",
    0x0000BACBACBC: "VMware shared folder",
}
_FUSE: Final = 0x65735546
_LOCAL_FUSE: Final = {"fuseblk", "fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.gocryptfs", "fuse.encfs", "fuse.lxcfs"}


def check_mode(mode: int) -> int:
    """Checks the mode of a broker's directory: 0o700, or 0o770 for a group. Raises ValueError for another mode."""
    if mode not in (PRIVATE_MODE, GROUP_MODE):
        raise ValueError(f"mode is {mode:#05o}; a broker is its owner's (mode=0o700) or a group's (mode=0o770)")
    return mode


def file_mode(mode: int) -> int:
    """Returns the mode of a file in a directory of this mode."""
    return mode & 0o666


def mode_of(found: os.stat_result) -> int:
    """Returns the broker's mode that this directory allows: a group's if the group may do everything in it."""
    return GROUP_MODE if found.st_mode & 0o070 == 0o070 else PRIVATE_MODE


def _name_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _owner_name(uid: int) -> str:
    name = _name_of(uid)
    return f"{name} (uid {uid})" if name else f"uid {uid}"


def _group_name(gid: int) -> str:
    import grp

    try:
        return f"{grp.getgrgid(gid).gr_name} (gid {gid})"
    except KeyError:
        return f"gid {gid}"


def check_owner(path: str, found: os.stat_result) -> None:
    """Refuses a directory that another user owns and does not share with a group of ours, or that everybody may change.

    Raises PermissionError naming owner, mode and remedy. For root, too: what it made there, the owner could not use.
    """
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o002:
        raise PermissionError(
            errno.EACCES,
            f"everybody may change the broker's directory: owner {_owner_name(found.st_uid)}, mode {mode:#05o}; "
            "take that right away (chmod o-w), and share a broker with a group by mode=0o770",
            path,
        )
    if found.st_uid == os.geteuid():
        return
    if mode & 0o070 == 0o070 and (found.st_gid == os.getegid() or found.st_gid in os.getgroups()):
        return
    remedy = "its owner can share one with a group by mode=0o770"
    if mode & 0o070 == 0o070:
        remedy = (
            "it is shared with that group, in which we are not: join it, or let its owner make one for another group"
        )
    if os.geteuid() == 0:  # what root made there, its owner could not use
        user = _name_of(found.st_uid) or found.st_uid
        remedy = f"run this as that user (runuser -u {user} -- ...); shmq check needs the right to read only; {remedy}"
    raise PermissionError(
        errno.EACCES,
        f"the broker is another user's: owner {_owner_name(found.st_uid)}, group {_group_name(found.st_gid)}, "
        f"mode {mode:#05o}, and we are {_owner_name(os.geteuid())}; {remedy}. A broker gets the group of its maker, "
        "or of the directory above it if that has setgid: newgrp GROUP, or chgrp GROUP and chmod g+s on that one, "
        "then shmq init --mode 0770",
        path,
    )


def open_directory(path: str) -> int:
    """Opens the broker's directory. Raises PermissionError that names the directory that this user may not enter."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        raise _closed(path) from None


def is_directory(path: str) -> bool:
    """Does what os.path.isdir() does, but raises PermissionError where this user may not look."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except PermissionError:
        raise _closed(path) from None
    except OSError:
        return False


def _closed(path: str) -> PermissionError:
    """Makes the error for a path that this user may not enter: names the closed directory, its rights, the remedy."""
    door = path
    while not os.access(door, os.F_OK):
        door = os.path.dirname(door)
    found = os.stat(door)
    if door == path:
        check_owner(path, found)
    way = "give it the mode 0700" if door == path else f"open the way to others (chmod o+x {door})"
    return PermissionError(
        errno.EACCES,
        f"we may not look whether a broker is there: {door} is closed to us: owner {_owner_name(found.st_uid)}, "
        f"group {_group_name(found.st_gid)}, mode {stat.S_IMODE(found.st_mode):#05o}, and we are "
        f"{_owner_name(os.geteuid())}; run this as its owner, or let the owner {way}",
        path,
    )


def mounted_type(device: int) -> str:
    """Type of the file system of this device number, as the kernel names it; "" if it is not to be found."""
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            place, _, source = line.partition(" - ")
            if place.split(" ", 3)[2] == number:
                return source.split(" ", 1)[0]
    return ""


def check_filesystem(path: str, dir_fd: int) -> None:
    """Refuses a remote file system: a broker belongs to one host. Raises BrokerError naming it."""
    number = filesystem_type(dir_fd)
    kind = _REMOTE.get(number, "")
    if number == _FUSE:
        mounted = mounted_type(os.fstat(dir_fd).st_dev)
        kind = "" if mounted in _LOCAL_FUSE else mounted or "FUSE"
    if kind:
        raise BrokerError(
            "a broker cannot lie on a remote file system",
            figures=f"{path} is on {kind} (type {number:#x})",
            remedy="use a directory on a disk of this host, or /dev/shm, /run",
            errno=errno.EREMOTE,
            filename=path,
        )


def not_permitted(path: str) -> PermissionError:
    """Makes the error for a directory that cannot be made: names the parent, its owner and the remedy.

    Raises the error of open_directory() where we may not look whether it is there.
    """
    is_directory(path)
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    found = os.stat(above)
    return PermissionError(
        errno.EACCES,
        f"there is no broker, and none can be made: {above} belongs to {_owner_name(found.st_uid)}, "
        f"{_group_name(found.st_gid)}, with mode {stat.S_IMODE(found.st_mode):#05o}, and we are "
        f"{_owner_name(os.geteuid())}; name a directory where you can make files",
        path,
    )
