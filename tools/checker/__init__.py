"""An independent judge of segments: reads the bytes of one by the documented layout, and says what must not be.

It takes part in no protocol and shares no code with the engine. It was written from docs/memory-layout.md and the
docs/protocol pages, so that it does not make the same mistakes.

    violations = judge(Image(data), dead_rows={3})

`judge`: what holds at any instant. `judge_quiet`: what holds besides when nobody is inside an operation. `entries`: the
messages of a queue. `judge_history`: the calls of processes against what was there at the end.
"""

from checker.entries import Message, entries
from checker.history import Call, Drained, judge_history
from checker.image import Image, Unreadable
from checker.verdict import judge, judge_quiet
from checker.violation import Violation

__all__ = [
    "Call",
    "Drained",
    "Image",
    "Message",
    "Unreadable",
    "Violation",
    "entries",
    "judge",
    "judge_history",
    "judge_quiet",
]
