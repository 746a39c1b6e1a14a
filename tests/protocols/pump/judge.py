"""The promises of a schedule: nothing lost or doubled, order of places, no false Empty, no sleep beside entries."""

from __future__ import annotations

from collections.abc import Callable

from tests.protocols.pump.words import ENDLESS, NOTHING, Fault


class Judge:
    """Knows of each message what its producer and its holders have been told, and when."""

    def __init__(self, groups: int = 0) -> None:
        self.groups = groups
        self.owner: dict[int, int] = {}  # of a group; nobody: it is free
        self.owned_since: dict[int, int] = {}
        self.free_since: dict[int, int] = {}  # and whoever was refused has been turned back
        self.clock = 0
        self.last = 0  # when something was put, taken or settled last, or the lock was missed
        self.dead: set[int] = set()
        self.level: dict[int, int] = {}
        self.place: dict[int, int] = {}
        self.due: dict[int, int] = {}  # of what is HELD, or about to be
        self.floor: dict[int, int] = {}  # the highest place of a put that had returned when this one began
        self.top: dict[int, int] = {}  # of a level
        self.put: set[int] = set()
        self.holder: dict[int, int] = {}
        self.settled: set[int] = set()
        # Since when a message can be had, for certain; and what is about to be, by whose steps.
        self.since: dict[int, int] = {}
        self.coming: dict[int, int] = {}
        self.could: dict[int, int] = {}  # since when it can be had at all

    def begins(self, message: int, level: int) -> None:
        self.level[message] = level
        self.floor[message] = self.top.get(level, NOTHING)

    def returns(self, message: int) -> None:
        level, place = self.level[message], self.place[message]
        if place <= self.floor[message]:
            raise Fault(f"place of {message} is {place}, below that of an earlier put")
        self.top[level] = max(self.top.get(level, NOTHING), place)
        self.put.add(message)
        self.last = self.clock

    def appears(self, message: int, by: int) -> None:
        """The process that gave it up has told everybody, unless another has had it meanwhile."""
        if self.coming.get(message) == by:
            del self.coming[message]
            if message not in self.due:
                self.since[message] = self.clock

    def is_coming(self, message: int, by: int) -> None:
        """The holder gives it up: from now on anybody may have it, from `appears` on everybody must see it."""
        self.holder.pop(message, None)
        self.since.pop(message, None)
        self.coming[message] = by
        self.could[message] = self.clock

    def buried(self, process: int) -> None:
        for message in [message for message, by in self.coming.items() if by == process]:
            self.appears(message, process)

    def has_due(self) -> bool:
        return any(due <= self.clock for due in self.due.values())

    def takes(self, message: int, process: int, began: int, wants: Callable[[int], bool]) -> None:
        if message == NOTHING:
            raise Fault("half-written")
        if message in self.settled:
            raise Fault(f"{message} is taken after its settlement")
        self.last = self.clock
        holder = self.holder.get(message)
        if holder is not None and holder not in self.dead:
            raise Fault(f"two hold {message}")
        for other, its in self.holder.items():
            if self.groups and self.is_same_group(message, other) and its != process and its not in self.dead:
                raise Fault(f"{process} has {message} while {its} has {other} of its group")
        began = max(began, self.could[message])  # the get happened behind both
        for other, since in self.since.items():
            if since >= began or other == message or not wants(other):
                continue
            if self.level[other] < self.level[message]:
                raise Fault(f"{message} before {other} of a more important level")
            if self.level[other] == self.level[message] and self.place[other] < self.place[message]:
                raise Fault(f"{message} at {self.place[message]} before {other} at {self.place[other]}")
        self.holder[message] = process
        self.since.pop(message, None)
        self.coming.pop(message, None)

    def settles(self, message: int) -> None:
        if message in self.settled:
            raise Fault(f"{message} is settled twice")
        self.last = self.clock
        self.settled.add(message)
        self.holder.pop(message, None)
        self.since.pop(message, None)
        self.coming.pop(message, None)

    def says_empty(self, began: int, wants: Callable[[int], bool]) -> None:
        for message, since in self.since.items():
            if since < began and wants(message):
                raise Fault(f"false Empty beside {message}")

    # ---- groups

    def is_same_group(self, message: int, other: int) -> bool:
        return message % self.groups == other % self.groups

    def is_owned(self, group: int, process: int) -> None:
        self.owner[group] = process
        self.owned_since[group] = self.clock

    def is_given_up(self, group: int) -> None:
        """Those who were refused are still to be turned back."""
        self.owned_since[group] = ENDLESS

    def is_free(self, group: int) -> None:
        if self.owner.pop(group, None) is not None:
            self.free_since[group] = self.clock

    def was_open(self, message: int, process: int, began: int) -> bool:
        """Could the process have this message for all of the time since then, as far as groups say?"""
        if not self.groups:
            return True
        group = message % self.groups
        return self.owner.get(group, process) == process and self.free_since.get(group, NOTHING) < began

    def comes_too_soon(self, message: int, process: int, wants: Callable[[int], bool]) -> str:
        """An earlier one of the group is there to be had: this one must not be taken."""
        for other in self.since:
            is_earlier = self.level[other] == self.level[message] and self.place[other] < self.place[message]
            if is_earlier and self.is_same_group(message, other) and wants(other):
                return f"{process} takes {message} before {other} of its group"
        return ""

    def fetches(self, message: int, before: list[int], process: int, began: int, wants: Callable[[int], bool]) -> None:
        """A row comes in by itself: it must be one that this process could have next of its group."""
        if not self.groups:
            return
        owner = self.owner.get(message % self.groups, process)
        if owner != process and owner not in self.dead and self.owned_since[message % self.groups] < began:
            raise Fault(f"{message} comes in for {process}, while {owner} has its group")
        for other in before:
            if self.is_same_group(message, other) and wants(other):
                raise Fault(f"{message} comes in before {other} of its group")

    def is_at_rest(self, starved: list[int]) -> None:
        """Nobody moves any more. A starved level waits for who holds its front, and less important ones, too."""
        beside = sorted(message for message in self.since if self.level[message] < min(starved, default=ENDLESS))
        if beside:
            raise Fault(f"asleep beside {beside}")

    def ends(self) -> None:
        lost = sorted(self.put - self.settled)
        if lost:
            raise Fault(f"lost: {lost}")
