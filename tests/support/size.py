"""How much a test does: a part in the suite, all of it with SHMQ_FULL=1."""

import os

FULL = os.environ.get("SHMQ_FULL") == "1"


def sized(suite: int, full: int) -> int:
    return full if FULL else suite
