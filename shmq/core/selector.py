"""Types for selectors in the native core: a loaded program, run on one message or on many heads."""

from __future__ import annotations

import shmq.core.status  # noqa: F401  - so that a program that is refused raises the right exception
from shmq._native import Selector

__all__ = ["Selector"]
