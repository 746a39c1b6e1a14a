"""Memory of the machine that processes and a segment take, as the kernel counts it."""

from pathlib import Path


def anonymous_bytes(pid: int) -> int:
    """Memory of a process's own: neither shared memory nor pages of files. 0 when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def resident_bytes(segment: Path) -> int:
    """Bytes of /dev/shm that a segment has taken; its file is larger, and mostly holes."""
    return segment.stat().st_blocks * 512
