"""One random schedule: who is there, who is killed or stopped when, and what must hold at the end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.protocols.pump.others import Housekeeper, Producer, PurgeCaller, Reaper
from tests.protocols.pump.process import Queue
from tests.protocols.pump.rest import LONG, Rest
from tests.protocols.pump.seeker import Seeker, SleepingSeeker
from tests.protocols.pump.taker import Consumer, Sleeper
from tests.protocols.pump.words import FREE, HELD, QUARANTINED, Fault, Level, Steps

PRODUCERS, TAKERS, OTHERS, REAPERS, LATE = 1, 11, 21, 31, 91
MOST_STEPS = 9000


@dataclass(frozen=True)
class Plan:
    """How schedules are biased; each field is a range, or how likely something is in a schedule."""

    back: tuple[int, ...] = (2, 3, 4, 6)
    front: tuple[int, ...] = (2, 3, 4)
    puts: tuple[int, ...] = (4, 6, 9)
    producers: tuple[int, ...] = (1, 2)
    takers: tuple[int, ...] = (1, 2, 3)
    levels: tuple[int, ...] = (1,)
    keepers: tuple[int, ...] = (0, 0, 1, 2)
    keeping: tuple[int, ...] = (2, 8)
    kills: tuple[int, ...] = (0, 0, 1, 2)
    sleeping: float = 0.35
    purging: float = 0.15
    delays: float = 0.0
    failing: float = 0.05
    crossing: float = 0.1
    oldest_first: bool = True
    handing: float = 0.5
    leaving: float = 0.05
    working: float = 0.02
    releasing: float = 0.25
    stops: float = 0.004
    dawdling: float = 0.0
    seeking: float = 0.0
    groups: tuple[int, ...] = (0,)
    stop_in_turn: float = 0.01
    kill: float = 0.003
    kill_in_turn: float = 0.01
    bursts: tuple[int, ...] = (1, 1, 2, 5, 20, 60)


@dataclass
class Schedule:
    """The processes of one run, and the order of their steps, which follow from plan and seed."""

    plan: Plan
    seed: int
    fault: str = ""
    steps: int = 0
    running: dict[int, Steps[None]] = field(default_factory=dict)
    stopped: dict[int, int] = field(default_factory=dict)
    next_reaper: int = REAPERS
    reaped: dict[int, tuple[int, ...]] = field(default_factory=dict)
    searchers: dict[int, SleepingSeeker] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        plan, choice = self.plan, self.chance.choice
        count = choice(plan.levels)
        levels = [Level(number, choice(plan.back), choice(plan.front)) for number in range(count)]
        groups = plan.groups[0] if len(plan.groups) == 1 else choice(plan.groups)
        self.queue = Queue(self.chance, self.fault, levels, groups)
        self.queue.failing = plan.failing
        self.queue.crossing = plan.crossing
        self.queue.oldest_first = plan.oldest_first
        self.queue.handing = plan.handing
        self.is_sleeping = self.chance.random() < plan.sleeping
        self.queue.delays = 0.0 if self.is_sleeping else plan.delays
        self.queue.leaving = plan.leaving
        self.queue.dawdling = plan.dawdling
        self.queue.working = plan.working
        self.queue.releasing = plan.releasing
        self.kills = choice(plan.kills)
        for number in range(choice(plan.producers)):
            mine = [100 * (number + 1) + message for message in range(choice(plan.puts))]
            self.running[PRODUCERS + number] = Producer(self.queue, PRODUCERS + number).run(mine)
        for number in range(TAKERS, TAKERS + choice(plan.takers)):
            if self.is_sleeping:
                self.running[number] = self.sleeper(number).run()
                self.queue.sleepers.add(number)
            else:
                self.running[number] = self.consumer(number).run(choice((8, 20)))
        for number in range(OTHERS, OTHERS + choice(plan.keepers)):
            self.running[number] = Housekeeper(self.queue, number).run(choice(plan.keeping))
        if self.chance.random() < plan.purging:
            self.running[OTHERS + 5] = PurgeCaller(self.queue, OTHERS + 5).run(2)

    def is_choosy(self) -> bool:
        return self.plan.seeking > 0 and self.chance.random() < self.plan.seeking

    def consumer(self, number: int) -> Seeker | Consumer:
        """One that wants all, or some only."""
        is_choosy = self.is_choosy()
        return Seeker(self.queue, number, is_choosy) if is_choosy or self.queue.groups else Consumer(self.queue, number)

    def sleeper(self, number: int) -> SleepingSeeker | Sleeper:
        is_choosy = self.is_choosy()
        if not is_choosy and not self.queue.groups:
            return Sleeper(self.queue, number)
        self.searchers[number] = SleepingSeeker(self.queue, number, is_choosy)
        return self.searchers[number]

    def run(self) -> dict[str, int]:
        """Raises Fault where a promise is broken."""
        resting = 0
        while self.goes_on(resting) and self.steps < MOST_STEPS:
            number = self.chance.choice(list(self.running))
            if self.stopped.get(number, 0) > self.steps:
                self.steps += 1
                resting = 0
                continue
            resting = 0 if self.burst(number) else resting + 1
        if self.is_sleeping and not self.goes_on(resting) and self.queue.asleep & set(self.running):
            self.look_at_rest()
        elif self.steps >= MOST_STEPS and self.queue.judge.clock - self.queue.judge.last > LONG and self.all_choosy():
            raise Fault("nothing is got, and nobody rests")
        self.drain()
        return self.queue.counts

    def all_asleep(self) -> bool:
        its = [self.searchers[number] for number in self.running if number in self.searchers]
        asleep = self.queue.asleep - self.queue.awake
        return all(searcher.works_on or searcher.number in asleep for searcher in its)

    def all_choosy(self) -> bool:
        """Only these say what they have looked at, whatever they have found."""
        is_searching = self.queue.sleepers == set(self.searchers)
        return self.is_sleeping and is_searching and all(its.is_choosy for its in self.searchers.values())

    def look_at_rest(self) -> None:
        asleep = self.queue.asleep & set(self.running)
        if asleep - set(self.searchers):
            starved = [level.number for level in self.queue.levels if level.is_starved()]
            self.queue.judge.is_at_rest(starved)
            self.queue.count("starved rests", bool(starved))
            self.queue.count("rests")
        searchers = [searcher for number, searcher in self.searchers.items() if number in asleep]
        self.queue.count("starved searchers", Rest(self.queue, searchers).look())

    def goes_on(self, resting: int) -> bool:
        if not self.is_sleeping:
            return bool(self.running)
        return resting < 40 * len(self.running)

    def burst(self, number: int) -> bool:
        """Some steps of one process. False: it sleeps."""
        judge, plan = self.queue.judge, self.plan
        if number not in self.searchers or self.all_asleep():
            judge.last = judge.clock  # as long as others go on, nobody need rest
        for _ in range(self.chance.choice(plan.bursts)):
            self.steps += 1
            judge.clock += 1
            if self.kills > 0:
                likely = plan.kill_in_turn if self.queue.lock == number else plan.kill
                if self.chance.random() < likely:
                    self.kill(number)
                    return True
            if self.chance.random() < (plan.stop_in_turn if self.queue.lock == number else plan.stops):
                self.stopped[number] = self.steps + self.chance.choice((30, 300, 800))
                return True
            try:
                if next(self.running[number]):
                    return False
            except StopIteration:
                del self.running[number]
                return True
        return True

    def kill(self, number: int) -> None:
        self.kills -= 1
        self.queue.judge.dead.add(number)
        del self.running[number]
        self.queue.count("kills")
        for dead in (number, *self.reaped.pop(number, ())):
            self.running[self.next_reaper] = self.reaping(self.next_reaper, dead)
            self.reaped[self.next_reaper] = (dead,)
            self.next_reaper += 1

    def reaping(self, number: int, dead: int) -> Steps[None]:
        return Reaper(self.queue, number).run(dead)

    def finish(self, steps: Steps[None]) -> None:
        for _ in steps:
            self.queue.judge.clock += 1

    def drain(self) -> None:
        """All processes that are left die; then puts find room, and a consumer gets all there is."""
        judge = self.queue.judge
        last = list(self.running)
        judge.dead |= set(last)
        for dead in [*(number for number in last if number >= REAPERS), *sorted(judge.dead)]:
            self.finish(self.reaping(LATE, dead))
        for level in self.queue.levels:
            self.put_more(level)
        for _ in range(80):
            self.finish(self.late_consumer().run(12))
            judge.clock += 50
            if judge.put <= judge.settled:
                break
        judge.ends()
        self.queue.releasing = 0.0
        self.finish(self.late_consumer().run(30))  # what was put by those who died before their put returned
        for level in self.queue.levels:
            for ring in level.rings:
                left = [word for word in ring.words if word.state not in (FREE, QUARANTINED)]
                if left:
                    raise Fault(f"left in a ring: {left}")

    def late_consumer(self) -> Seeker | Consumer:
        number = LATE + 1
        return Seeker(self.queue, number, False) if self.queue.groups else Consumer(self.queue, number)

    def put_more(self, level: Level) -> None:
        producer = Producer(self.queue, LATE + 2)
        self.queue.delays = self.queue.crossing = 0.0
        for number in range(3):
            message = 9000 + 10 * level.number + number
            steps = producer.put(level, message, 60)
            while True:
                try:
                    next(steps)
                    self.queue.judge.clock += 1
                except StopIteration as end:
                    if end.value:
                        break
                    self.explain_full(level)
                    return

    def explain_full(self, level: Level) -> None:
        """It is full, whatever room there is on disk, where most of it was in hands, or not due, when it was passed."""
        back = level.back
        passed = [word.state == HELD or back.position[index] in level.passed for index, word in enumerate(back.words)]
        if passed.count(False) > back.slots // 2:
            raise Fault(f"full, with room on disk: {back.words}, {level.flow}")
        self.queue.count("full of what was passed")
