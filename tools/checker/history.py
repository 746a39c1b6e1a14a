"""The calls of all processes, killed ones among them, against what was in the queue at the end.

A call has begun, and has returned or failed, or its process was killed in it: then it has happened or not. The rules
for each message: accepted and not settled, it is there once; settled, it never comes again. A put or a settlement that
was cut off happened at most once. Messages of one producer stay in their order; one that was delivered before says so.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from checker.violation import Findings, Violation

BEGUN: Final = "begun"
RETURNED: Final = "returned"
FAILED: Final = "failed"

PUTS: Final = {"put", "put_many"}
GETS: Final = {"get", "get_many"}  # delivered and settled at once
RECEIVES: Final = {"receive"}
SETTLEMENTS: Final = {"ack", "reject"}
RELEASES: Final = {"release", "retry"}
REMOVALS: Final = {"purge", "delete"}
OPERATIONS: Final = PUTS | GETS | RECEIVES | SETTLEMENTS | RELEASES | REMOVALS


class Call(NamedTuple):
    """One call, in the order of the process's own calls; among processes in any order that they could have seen.

    `value`: the message, or a list of them (put_many: what was to be put; get_many: what was got; purge: nothing).
    None: a get or receive that returned nothing, or that never came to say what it got. `result` of a put_many that
    returned: how many were put, if not all; of a get or receive: whether the message said that it was redelivered.
    """

    process: Hashable
    op: str
    value: object
    phase: str
    result: object = None


class Drained(NamedTuple):
    """A message that was there at the end, in queue order; `redelivered`: None if nobody looked."""

    value: Hashable
    redelivered: bool | None = None


@dataclass
class Fate:
    """The known facts of one message."""

    producer: Hashable = None
    number: int = 0  # among all of its producer's
    accepted: bool = False
    perhaps: bool = False  # its put was cut off
    refused: bool = False
    delivered: int = 0
    settled: bool = False
    perhaps_settled: bool = False
    holder: Hashable = None  # in whose hands it is, at this point of the calls
    handed_back: bool = False


@dataclass
class Books:
    findings: Findings
    killed: Collection[Hashable]
    fates: dict[Hashable, Fate] = field(default_factory=dict)
    puts_of: dict[Hashable, int] = field(default_factory=lambda: defaultdict(int))
    swallowed: int = 0  # messages that gets which were cut off may have taken
    may_be_marked: bool = False  # somebody was cut off who may have had any message in hand
    batches: list[list[Hashable]] = field(default_factory=list)  # of put_many that were cut off

    def fate(self, value: Hashable) -> Fate:
        return self.fates.setdefault(value, Fate())


def judge_history(
    calls: Iterable[Call | tuple[object, ...]],
    drained: Iterable[Drained | Hashable],
    killed: Collection[Hashable] = (),
) -> list[Violation]:
    """`killed`: processes that died; what they had in hand comes back. Those whose last call did not end are added."""
    findings = Findings()
    history = [call if isinstance(call, Call) else Call._make(call) for call in calls]
    cut = unfinished(history)
    books = Books(findings, set(killed) | {call.process for call in cut})
    at_end = {id(call) for call in cut}
    for call in history:
        if call.op not in OPERATIONS:
            raise ValueError(f"no operation {call.op!r}")
        if call.phase != BEGUN:
            enter(books, call)
        elif id(call) in at_end:
            enter_cut(books, call)
    left = [item if isinstance(item, Drained) else Drained(item) for item in drained]
    judge_left(books, left)
    judge_missing(books, {item.value for item in left})
    judge_order(books, left)
    return findings.violations


def unfinished(history: list[Call]) -> list[Call]:
    """The last call of each process, where it has begun and not ended."""
    last: dict[Hashable, Call] = {}
    for call in history:
        last[call.process] = call
    return [call for call in last.values() if call.phase == BEGUN]


def values_of(call: Call) -> list[Hashable]:
    if call.value is None:
        return []
    return call.value if isinstance(call.value, list) else [call.value]


def enter(books: Books, call: Call) -> None:
    """A call that came to its end."""
    values = values_of(call)
    if call.op in PUTS:
        done = call.result if isinstance(call.result, int) and call.op == "put_many" else len(values)
        for i, value in enumerate(values):
            fate = put(books, call.process, value)
            fate.accepted = call.phase == RETURNED and i < done
            fate.refused = not fate.accepted
    elif call.phase == FAILED:
        return
    elif call.op in GETS or call.op in RECEIVES:
        for value in values:
            deliver(books, call, value)
    elif call.op in SETTLEMENTS or call.op in REMOVALS:
        for value in values:
            settle(books, call, value)
    else:
        for value in values:
            fate = books.fate(value)
            fate.holder, fate.handed_back = None, True


def put(books: Books, process: Hashable, value: Hashable) -> Fate:
    fate = books.fate(value)
    if fate.accepted or fate.perhaps:
        books.findings.add("history.input", f"message {value!r}", "put twice: the history is no use")
    books.puts_of[process] += 1
    fate.producer, fate.number = process, books.puts_of[process]
    return fate


def deliver(books: Books, call: Call, value: Hashable) -> None:
    fate, where = books.fate(value), f"message {value!r}"
    if fate.settled:
        books.findings.add("history.again", where, f"delivered to {call.process!r} after it was settled")
    if fate.holder is not None and fate.holder not in books.killed:
        text = f"delivered to {call.process!r} while {fate.holder!r} has it in hand"
        books.findings.add("history.double", where, text)
    if fate.delivered and call.result is False:
        text = f"delivered to {call.process!r} for the second time, and does not say so"
        books.findings.add("history.redelivered", where, text)
    fate.delivered += 1
    if call.op in GETS:
        fate.settled = True
    else:
        fate.holder = call.process


def settle(books: Books, call: Call, value: Hashable) -> None:
    fate = books.fate(value)
    if fate.settled and call.op in SETTLEMENTS:
        books.findings.add("history.settled", f"message {value!r}", f"settled by {call.process!r}, for the second time")
    fate.settled, fate.holder = True, None


def enter_cut(books: Books, call: Call) -> None:
    """A call in which its process was killed."""
    values = values_of(call)
    if call.op in PUTS:
        for value in values:
            put(books, call.process, value).perhaps = True
        if len(values) > 1:
            books.batches.append(values)
    elif call.op in GETS:
        books.swallowed += call.result if isinstance(call.result, int) and call.op == "get_many" else 1
        books.may_be_marked = True
    elif call.op in RECEIVES:
        books.may_be_marked = True
    elif call.op in SETTLEMENTS:
        for value in values:
            books.fate(value).perhaps_settled = True
    elif call.op in REMOVALS:
        books.may_be_marked = True
        for fate in books.fates.values():
            fate.perhaps_settled = True


def judge_left(books: Books, left: list[Drained]) -> None:
    """Messages that were there at the end: once each, put by somebody, not settled, and marked if delivered before."""
    seen: set[Hashable] = set()
    for item in left:
        where, fate = f"message {item.value!r}", books.fates.get(item.value)
        if item.value in seen:
            books.findings.add("history.twice", where, "there twice at the end")
        seen.add(item.value)
        if fate is None or fate.refused or not (fate.accepted or fate.perhaps):
            books.findings.add("history.foreign", where, "there at the end, and no put of it returned or was cut off")
            continue
        if fate.settled:
            books.findings.add("history.again", where, "there at the end, and was settled")
        if fate.holder is not None and fate.holder not in books.killed:
            books.findings.add("history.double", where, f"there at the end, while {fate.holder!r} has it in hand")
        if item.redelivered is False and fate.delivered:
            books.findings.add("history.redelivered", where, f"delivered {fate.delivered} times, and does not say so")
        if item.redelivered and not fate.delivered and not books.may_be_marked:
            books.findings.add("history.redelivered", where, "says so, and was never delivered")


def judge_missing(books: Books, left: set[Hashable]) -> None:
    """Each accepted message is settled, in somebody's hands, or there; a get that was cut off may have taken one."""
    missing = [
        value
        for value, fate in books.fates.items()
        if fate.accepted
        and not fate.settled
        and not fate.perhaps_settled
        and value not in left
        and (fate.holder is None or fate.holder in books.killed)
    ]
    # A process that had it in hand when it was killed was not in a get with it: that one comes back for certain.
    certain = [value for value in missing if books.fates[value].holder is not None and not books.swallowed]
    if len(missing) > books.swallowed:
        for value in certain or missing:
            text = f"accepted, and neither settled nor there; gets that were cut off can have {books.swallowed}"
            books.findings.add("history.lost", f"message {value!r}", text)


def judge_order(books: Books, left: list[Drained]) -> None:
    """Messages of one producer in the order of its puts; a batch that was cut off is there from its beginning on."""
    last: dict[Hashable, tuple[int, Hashable]] = {}
    for item in left:
        fate = books.fates.get(item.value)
        if fate is None or fate.producer is None:
            continue
        number, before = last.get(fate.producer, (0, None))
        if fate.number < number:
            text = f"comes after {before!r}, which {fate.producer!r} put later"
            books.findings.add("history.order", f"message {item.value!r}", text)
        else:
            last[fate.producer] = fate.number, item.value
    there = {item.value for item in left}
    for batch in books.batches:
        known = [value in there or books.fates[value].delivered > 0 for value in batch]
        missing = batch[known.index(False)] if False in known else None
        if True in known[batch.index(missing) if missing is not None else len(batch) :] and not books.swallowed:
            books.findings.add(
                "history.batch", f"message {missing!r}", "missing, and a later one of its batch is there"
            )
