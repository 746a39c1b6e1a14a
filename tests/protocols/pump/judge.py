"""What every schedule must keep: nothing lost or doubled, order of places, no false Empty, no sleep beside entries."""

from __future__ import annotations

from collections.abc import Callable

from tests.protocols.pump.words import ENDLESS, NOTHING, Fault


class Judge:
    """Knows of each message what its producer and its holders have been told, and when."""

    def __init__(self) -> None:
        self.clock = 0
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

    def appears(self, message: int, by: int) -> None:
        """Who gave it up has told everybody; unless another has had it meanwhile."""
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
        holder = self.holder.get(message)
        if holder is not None and holder not in self.dead:
            raise Fault(f"two hold {message}")
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
        self.settled.add(message)
        self.holder.pop(message, None)
        self.since.pop(message, None)
        self.coming.pop(message, None)

    def says_empty(self, began: int, wants: Callable[[int], bool]) -> None:
        for message, since in self.since.items():
            if since < began and wants(message):
                raise Fault(f"false Empty beside {message}")

    def is_at_rest(self, starved: list[int]) -> None:
        """Nobody moves any more. A starved level waits for who holds its front, and less important ones, too."""
        beside = sorted(message for message in self.since if self.level[message] < min(starved, default=ENDLESS))
        if beside:
            raise Fault(f"asleep beside {beside}")

    def ends(self) -> None:
        lost = sorted(self.put - self.settled)
        if lost:
            raise Fault(f"lost: {lost}")
