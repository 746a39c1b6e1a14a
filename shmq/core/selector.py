"""Selectors as the native core runs them: a loaded program, asked of one message or of many heads."""

from __future__ import annotations

import shmq.core.status  # noqa: F401  - so that a program that is refused raises the right exception
from shmq._native import Selector

__all__ = ["Selector"]
