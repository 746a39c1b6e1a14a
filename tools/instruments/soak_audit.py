"""All histories of a soak against each other: what was accepted came out, once, and in order.

A call in which its process was killed is uncertain, and is counted as such. A put that did not return may have put, a
get that did not return may have taken as much as it was allowed to. A settlement that did not return may have counted.
Nothing else is forgiven.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from instruments.history import AGAIN, OUTCOMES, SETTLES, Kind, Record, read
from instruments.soak_process import DEAD, FAST, FLOWING, LATER, RANKED, WITH_LEVELS, WORK, is_delayed, priority_of

Name = tuple[int, int, int]  # process, queue, number
BORROWED = (WORK, RANKED, *FLOWING)  # received and settled; what is got from FAST is settled by the getting
ACK, REJECT = OUTCOMES.index("ack"), OUTCOMES.index("reject")


@dataclass
class Fate:
    """The known facts of one message."""

    accepted: bool = False
    fresh: int = 0  # deliveries that did not say that there had been one before
    done: int = 0  # taken for good: acked, or got
    maybe_done: int = 0  # by a call that did not return
    rejected: int = 0  # by calls that returned or not
    drained: int = 0
    dead_done: int = 0  # its copy among the dead was acked, for sure or perhaps, or drained


@dataclass
class Audit:
    """Reads histories and says what does not fit."""

    fates: dict[Name, Fate] = field(default_factory=lambda: defaultdict(Fate))
    allowance: int = 0  # messages that killed calls of get may have taken
    killed_gets: int = 0
    late: dict[Name, str] = field(default_factory=dict)  # of get(), which does not say whether it came again
    calls: int = 0
    processes: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        if len(self.faults) < 50:
            self.faults.append(text)

    def read(self, path: Path) -> None:
        """One process' history."""
        process = int(path.name)
        self.processes += 1
        begun: Record | None = None
        taken = 0
        newest: dict[tuple[int, int, int], int] = {}
        for record in read(path):
            kind = record.kind
            self.calls += kind in (Kind.PUT, Kind.TAKE, Kind.SETTLE, Kind.OTHER)
            if kind == Kind.PUT:
                self._put(process, record, record.amount, accepted=False)
            elif kind == Kind.PUT_DONE:
                self._put(process, record, record.amount, accepted=True)
            elif kind == Kind.TAKE:
                taken = 0
            elif kind == Kind.TOOK:
                taken += 1
                self._took(process, record, newest)
            elif kind in (Kind.SETTLE, Kind.SETTLED):
                self._settle(record)
            if kind in (Kind.PUT, Kind.TAKE, Kind.SETTLE):
                begun = record
            elif kind in (Kind.PUT_DONE, Kind.TAKE_DONE, Kind.SETTLED):
                begun = None
        if begun is not None and begun.kind == Kind.TAKE and begun.flags & SETTLES:
            self.allowance += begun.amount - taken
            self.killed_gets += 1

    def _put(self, process: int, record: Record, count: int, accepted: bool) -> None:
        for number in range(record.number, record.number + count):
            fate = self.fates[process, record.queue, number]
            fate.accepted = fate.accepted or accepted

    def _took(self, process: int, record: Record, newest: dict[tuple[int, int, int], int]) -> None:
        queue = WORK if record.queue == DEAD else record.queue
        name = (record.amount, queue, record.number)
        if name not in self.fates:
            self.fates[name] = Fate()  # its producer's history may be read later; see check()
        fate = self.fates[name]
        if record.flags & SETTLES:
            fate.done += 1
            fate.fresh += 1
        elif record.queue in BORROWED and not record.flags & AGAIN:
            fate.fresh += 1
        if record.queue == DEAD or record.flags & AGAIN:
            return
        has_levels = record.queue in WITH_LEVELS
        if record.queue == LATER or (has_levels and is_delayed(record.number)):
            return
        key = (record.queue, record.amount, priority_of(record.number) if has_levels else 0)
        if record.number <= newest.get(key, -1):
            text = f"process {process} took {name} after number {newest[key]} of the same producer"
            if record.queue == FAST:
                self.late[name] = text
            else:
                self.fault(text)
        newest[key] = max(record.number, newest.get(key, -1))

    def _settle(self, record: Record) -> None:
        queue = WORK if record.queue == DEAD else record.queue
        fate = self.fates[record.amount, queue, record.number]
        begins = record.kind == Kind.SETTLE
        if record.queue == DEAD:
            fate.dead_done += begins
        elif record.outcome == ACK:
            fate.maybe_done += 1 if begins else -1
            fate.done += not begins
        elif record.outcome == REJECT:
            fate.rejected += begins

    def drained(self, name: Name, index: int, again: bool) -> None:
        """Taken out at the end, when everybody had gone."""
        fate = self.fates[name]
        if index == DEAD:
            fate.dead_done += 1
            return
        fate.drained += 1
        fate.fresh += not again and index in BORROWED

    def check(self, put_known: set[int]) -> None:
        """Every message, when all has been read."""
        lost: Counter[int] = Counter()
        for name, fate in self.fates.items():
            if name[0] not in put_known:
                self.fault(f"{name} came out, and no such process put anything")
            ends = fate.done + fate.drained
            gone = ends + fate.maybe_done + fate.dead_done
            if fate.accepted and gone == 0:
                lost[name[1]] += 1
                if name[1] in BORROWED:
                    self.fault(f"{name} was accepted, and is lost" + (" (rejected)" if fate.rejected else ""))
            # Its copy among the dead may stay beside it when a rejecting process is killed: said so in the guarantees.
            if ends > 1 or (ends + fate.dead_done > 1 and fate.rejected == 0):
                self.fault(f"{name} was taken for good {ends} times, and {fate.dead_done} times from the dead")
            if fate.fresh > 1:
                self.fault(f"{name} was delivered {fate.fresh} times as if for the first time")
        # A process that is killed in get() may hold one message, which comes back to its place when others have passed
        # it.
        if len(self.late) > self.killed_gets:
            for text in self.late.values():
                self.fault(f"{text}; calls of get() that were killed: {self.killed_gets}")
        if lost[FAST] > self.allowance:
            self.fault(f"{lost[FAST]} messages of get() lost; calls that were killed account for {self.allowance}")
