"""Images of the segment and histories, which the step killer's driver hands to the independent judge."""

from typing import Any, Final

import numpy

from checker import Call, Drained, Image, judge_history
from checker.queue import Queue
from checker.verdict import judge_and_tell, judge_quiet_and_tell
from steps.driver import PAGE, Bytes, History, Snapshot

# Kinds, processes and phases of a mark, as in native/killstep/board.h.
OPERATIONS: Final = {1: "put", 2: "get", 3: "receive", 4: "ack", 5: "release", 6: "purge", 7: "delete"}
REMOVALS: Final = {6, 7}
TAKEN: Final = ("expire", "flow-expire", "lease", "move-all", "claim")  # how names of such scenarios begin
ROBBED: Final = frozenset(
    (
        "group-steal",
        "group-robbed",
        "group-lease-end",
        "group-reap-stealer",
        "sticky-lease-end",
        "sticky-lease-kept",
        "flow-front-wakes",
        "flow-front-wakes-starved",
    )
)
PUT, GET, RECEIVE, SETTLE, RELEASE, MOVE = 1, 2, 3, 4, 5, 10
SURVIVOR: Final = 31
MORTAL: Final = frozenset(range(1, SURVIVOR))  # actors of the state, victims
KIND, WHO, PHASE, QUEUE, VALUE = 0, 1, 2, 3, 7  # places in a mark
PHASES: Final = {1: "begun", 2: "returned", 3: "failed"}
BEGUN, RETURNED = 1, 2


class Bench:
    """Judges the images of one scenario: each is the prepared one with some other pages."""

    def __init__(self) -> None:
        self.base: Bytes = numpy.zeros(0, numpy.uint8)

    def judge(self, snapshot: Snapshot) -> list[str]:
        if snapshot.kind == "B":
            self.base = numpy.zeros(snapshot.meta["size"], numpy.uint8)
            self.base.reshape(-1, PAGE)[snapshot.pages] = snapshot.content
            return []
        pages = self.base.reshape(-1, PAGE)
        if snapshot.kind == "S":
            pages[snapshot.pages] = snapshot.content
            return []
        kept = pages[snapshot.pages]
        pages[snapshot.pages] = snapshot.content
        image = Image(self.base)
        if snapshot.kind == "D":
            found, queues = judge_and_tell(image, set(snapshot.meta["dead"]))
        else:
            found, queues = judge_quiet_and_tell(image, set(snapshot.meta["live"]))
        wrong = [str(violation) for violation in found] + judge_rows(queues, snapshot.meta["rows"])
        pages[snapshot.pages] = kept
        return wrong


def judge_rows(queues: list[Queue], runs: list[list[int]]) -> list[str]:
    """The rows of the queue that flows, which lie in no segment, beside what the segment says of them. Amid a turn a
    message may be both, or its count be late."""
    wrong: list[str] = []
    for queue in queues:
        flow = queue.flow
        if flow.is_amid:
            continue
        rows = {place for first, end in runs for place in range(first, end) if flow.low <= place < flow.place}
        rows = rows if flow.is_on else set()
        if len(rows) != flow.rows:
            wrong.append(f"{queue.title}: {len(rows)} rows between low and P, and by its words {flow.rows}")
        for ring in (queue.backs[0], queue.fronts[0]):
            twice = [] if ring.is_unused else rows.intersection(ring.places[ring.use.is_entry].tolist())
            wrong += [f"{ring.title}: the entry of place {place} is a row, too" for place in sorted(twice)]
    return wrong


def judge_calls(history: History) -> list[str]:
    """The same history that the driver has judged by its own rules, before other eyes; queue by queue."""
    wrong: list[str] = []
    calls = in_halves(history.calls)
    for queue in sorted({mark[QUEUE] for mark in calls}):
        marks = [mark for mark in calls if mark[QUEUE] == queue and mark[KIND] in OPERATIONS]
        if not is_strange(history, marks):
            wrong += [f"queue {queue}: {violation}" for violation in judge_history(*translated(marks), MORTAL)]
    return wrong


def in_halves(calls: list[list[int]]) -> list[list[int]]:
    """A move as its queues see it: settled in one, put into the other. That it was both or neither the driver asks."""
    halves: list[list[int]] = []
    queue_of: dict[int, int] = {}
    for mark in calls:
        value = mark[VALUE]
        if mark[KIND] != MOVE:
            halves.append(mark)
        else:
            settled, arrived = list(mark), list(mark)
            settled[KIND], settled[QUEUE], arrived[KIND] = SETTLE, queue_of[value], PUT
            halves += [settled, arrived]
        if mark[KIND] == PUT or (mark[KIND] == MOVE and mark[PHASE] == RETURNED):
            queue_of[value] = mark[QUEUE]
    return halves


def is_strange(history: History, marks: list[list[int]]) -> bool:
    """The judge has no words for such a history, and the driver's own verdict has to do. It has a purge that does not
    say what it took, or entries taken from a living holder (by time, too). Or a process that leaves releases several at
    once, or one moves entries again that the dead may have moved already."""
    released = [mark for mark in marks if mark[KIND] == RELEASE and mark[PHASE] == BEGUN]
    leaving = history.where.get("scenario", "").startswith("leave") and bool(released)
    scenario = history.where.get("scenario", "")
    taken = scenario == "steal" or scenario.startswith(TAKEN) or scenario in ROBBED
    return leaving or taken or any(mark[KIND] in REMOVALS for mark in marks)


def translated(marks: list[list[int]]) -> tuple[list[Call], list[Drained]]:
    """As the judge wants them: batches as one call, what the survivor took out at the end as what was there."""
    calls: list[Call] = []
    drained: list[Drained] = []
    at = 0
    while at < len(marks):
        kind, who, phase, _, redelivered, _, _, value = marks[at]
        if kind == PUT and phase == BEGUN:
            at = put(marks, at, calls)
            continue
        at += 1
        if who == SURVIVOR and kind in (GET, RECEIVE):
            if phase == RETURNED:
                drained.append(Drained(value, bool(redelivered)))
        elif not (who == SURVIVOR and kind == SETTLE and any(item.value == value for item in drained)):
            taking = kind in (GET, RECEIVE)
            known = value if not taking or phase == RETURNED else None
            result = bool(redelivered) if taking and phase == RETURNED else None
            calls.append(Call(who, OPERATIONS[kind], known, PHASES[phase], result))
    return calls, drained


def put(marks: list[list[int]], at: int, calls: list[Call]) -> int:
    """One put or a batch, whose puts begin together. Killed amid the marks of its end it counts as cut off."""
    who = marks[at][WHO]
    end = at
    while end < len(marks) and marks[end][KIND] == PUT and marks[end][WHO] == who and marks[end][PHASE] == BEGUN:
        end += 1
    values: Any = [mark[VALUE] for mark in marks[at:end]]
    ended = marks[end : end + len(values)]
    whole = len(ended) == len(values) and all(mark[KIND] == PUT and mark[WHO] == who for mark in ended)
    done = sum(mark[PHASE] == RETURNED for mark in ended)
    if len(values) == 1:
        calls.append(Call(who, "put", values[0], "begun"))
        if whole:
            calls.append(Call(who, "put", values[0], PHASES[ended[0][PHASE]]))
    else:
        calls.append(Call(who, "put_many", values, "begun"))
        if whole:
            calls.append(Call(who, "put_many", values, "returned", done))
    return end + sum(mark[KIND] == PUT and mark[WHO] == who for mark in ended)
