"""Far more messages than the broker has memory for, while producers and consumers are killed at random.

    tools/backlog [--messages N] [--seed S] [--producers P] [--consumers C] [--kill-every SECONDS] [--json]

Messages of 1 KiB go through one queue of a broker of 64 MiB, of which the queue may use a quarter. The rest
flows to disk. The producers put half of all messages; then the consumers begin, and receive and ack beside them until
nothing is left. All the while a producer or a consumer is killed (SIGKILL) and replaced. Every second victim is moving
messages to or from the disk: the movers are the same processes.

Rules that must hold: each message whose put had returned was acked once. A message that a killed consumer had in hand
comes again, and is marked so; nothing else comes twice. Each consumer sees the messages of a producer in their order.
The segment stays within 64 MiB, and no process grows by 32 MiB of memory of its own. A put that was killed may be done
or not, and so may an ack: both are counted.

Examples:
    tools/backlog                                    ten million messages
    tools/backlog --messages 1000000 --seed 7        a million, and the same choices again
    tools/backlog --messages 100000 --json           one object at the end

A failure prints the seed. Ctrl-C ends the run early, with the verdict on what was done until then. Exit code 1: failed.
"""

import argparse
import json
import os
import random
import secrets
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import shmq
from checker.image import Image
from checker.layout import QUEUE
from checker.queue import queues_of
from instruments import backlog_process
from instruments.arguments import positive, positive_time
from instruments.backlog_ledger import Fate, Ledger, Word
from instruments.resident import anonymous_bytes, resident_bytes
from instruments.soak_endings import forked
from shmq.cli.check import examine
from shmq.core.queue import reap

MIB = 1 << 20
BUDGET = 64 * MIB
IN_MEMORY = 16 * MIB
GROWTH = 32 * MIB
SILENCE = 30.0  # seconds in which somebody must have put or received something
LOOK_EVERY = 0.05
AIM = 0.01  # seconds until somebody begins a move
SAY_EVERY = 5.0
ENOUGH = 20  # faults


@dataclass
class Result:
    """The counts and findings of a run."""

    seed: int
    messages: int
    producers: int
    consumers: int
    seconds: float = 0.0
    killed_producers: int = 0
    killed_consumers: int = 0
    killed_movers: int = 0  # of both: those that were seen amid a move just before
    came: int = 0
    redelivered: int = 0
    puts_in_doubt: int = 0  # messages of killed puts
    puts_done: int = 0  # of these, those that came
    acks_in_doubt: int = 0
    deepest: int = 0  # messages at once
    disk_mib: float = 0.0
    segment_mib: float = 0.0
    growth_mib: float = 0.0
    interrupted: bool = False
    broken: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.broken += 1
        if len(self.faults) < ENOUGH:
            self.faults.append(text)
            print(f"FAULT: {text}", file=sys.stderr, flush=True)


class Backlog:
    """One run.

    Arguments:
        home: a directory for the broker, the ledger and what lies on disk.
        fault: what the processes do wrong, on purpose.
    """

    def __init__(self, home: Path, result: Result, fault: str | None) -> None:
        self.result, self.fault = result, fault
        self.rng = random.Random(result.seed)
        self.url = str(home / "broker")
        each = result.messages // result.producers
        self.ledger = Ledger.create(home / "ledger", result.producers, result.consumers, each)
        self.faults = home / "faults"
        self.running: dict[int, int] = {}  # place by pid
        self.doubts: list[tuple[int, int, int]] = []  # producer, and the messages of a put that was killed
        self.broker = shmq.open(self.url, memory=BUDGET, patience=0.1)
        self.queue: Any = self.broker.queue(
            "backlog", codec="bytes", max_memory=IN_MEMORY, max_attempts=0, max_deaths=0
        )
        self.segment = Path("/dev/shm", json.loads(Path(self.url, "segment").read_text())["name"])
        self.bytes = os.open(self.segment, os.O_RDONLY)
        self.turn_at = self._turn_at()
        self.is_stuck = False
        self.changed = (0, time.monotonic())  # what had been put and received, and when that was seen first

    def _turn_at(self) -> int:
        """Where in the segment stands which process is amid a move."""
        (queue,) = queues_of(Image.of_file(self.segment))
        return queue.page + QUEUE["unfinished"]

    def mover(self) -> int:
        """Its pid; 0: nobody moves anything now."""
        return int(struct.unpack("<I", os.pread(self.bytes, 4, self.turn_at))[0])

    def victim(self) -> int:
        """Every second time the one that is amid a move, if somebody comes to that soon."""
        if self.rng.random() < 0.5:
            deadline = time.monotonic() + AIM
            while time.monotonic() < deadline:
                mover = self.mover()
                if mover in self.running:
                    return mover
        return self.rng.choice(sorted(self.running))

    # ---- the processes -----------------------------------------------------------------------------------------

    def start(self, place: int) -> None:
        seeds = (self.result.seed, self.rng.getrandbits(63))
        self.ledger.set(place, Word.FIRST_BYTES, 0)
        pid = forked(lambda: backlog_process.work(self.url, self.ledger, place, *seeds, self.faults, self.fault))
        self.running[pid] = place

    def disturb(self) -> None:
        """One is killed and replaced."""
        if not self.running:
            return
        pid = self.victim()
        place = self.running.pop(pid)
        self.result.killed_movers += self.mover() == pid
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status):  # a producer that had just put its last one
            return
        if place < self.ledger.producers:
            self.result.killed_producers += 1
            begun, done = self.ledger.word(place, Word.BEGUN), self.ledger.word(place, Word.DONE)
            if begun > done:
                self.doubts.append((place, done, begun))
        else:
            self.result.killed_consumers += 1
        self.start(place)

    def tend(self) -> None:
        """Notices who has ended, and how; looks at the memory of all."""
        for pid, place in list(self.running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[pid]
                if status != 0 or (place >= self.ledger.producers and not self.ledger.is_over):
                    self.result.fault(f"process {pid} ended by itself, status {os.waitstatus_to_exitcode(status)}")
                continue
            first, now = self.ledger.word(place, Word.FIRST_BYTES), anonymous_bytes(pid)
            if first and now:
                self.result.growth_mib = max(self.result.growth_mib, round((now - first) / MIB, 2))
        segment = resident_bytes(self.segment)
        self.result.segment_mib = max(self.result.segment_mib, round(segment / MIB, 2))

    def look(self) -> int:
        """How many messages are there."""
        seen = self.queue.statistics()
        there = int(seen.ready + seen.unsettled + seen.delayed)
        self.result.deepest = max(self.result.deepest, there)
        self.result.disk_mib = max(self.result.disk_mib, round(seen.disk_bytes / MIB, 1))
        done = self.ledger.total(Word.BEGUN) + self.ledger.total(Word.RECEIVED)
        if done != self.changed[0]:
            self.changed = (done, time.monotonic())
        elif time.monotonic() - self.changed[1] > SILENCE:
            self.is_stuck = True
            self.result.fault(f"nothing was put or received for {SILENCE:.0f} s; {there:,} messages are there")
        return there

    @property
    def are_all_put(self) -> bool:
        return all(place >= self.ledger.producers for place in self.running.values())

    def work(self, kill_every: float, say: Callable[[str], None]) -> None:
        """Until all was put and taken. A Ctrl-C comes through."""
        result, ledger = self.result, self.ledger
        said = disturbed = looked = time.monotonic()
        pause, consuming = kill_every, False
        for place in range(ledger.producers):
            self.start(place)
        while result.broken < ENOUGH and not self.is_stuck:
            time.sleep(0.005)
            now = time.monotonic()
            if now - disturbed > pause:
                self.disturb()
                disturbed, pause = now, self.rng.uniform(0.5, 1.5) * kill_every
            if now - looked < LOOK_EVERY:
                continue
            looked = now
            self.tend()
            were_all_put = self.are_all_put
            there = self.look()
            if not consuming and (were_all_put or ledger.total(Word.BEGUN) > result.messages // 2):
                consuming = True
                for place in range(ledger.producers, ledger.producers + ledger.consumers):
                    self.start(place)
            elif consuming and were_all_put and there == 0:
                return
            if now - said > SAY_EVERY:
                said = now
                kills = result.killed_producers + result.killed_consumers
                say(f"{ledger.total(Word.DONE):,} put, {there:,} there, {kills:,} kills, {result.broken} broken")

    # ---- the end -----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Lets everybody finish what is in hand, and go."""
        self.ledger.end()
        deadline = time.monotonic() + SILENCE
        while self.running:
            self.tend()
            if time.monotonic() > deadline:
                for pid in self.running:
                    self.result.fault(f"process {pid} does not end")
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                self.running.clear()
            time.sleep(0.002)

    def judge(self) -> None:
        """When all have gone: what came is what was put, memory was kept, and the broker is sound."""
        result, ledger = self.result, self.ledger
        if self.faults.exists():
            for line in self.faults.read_text().splitlines():
                result.fault(line)
        result.came = ledger.count(Fate.ACKED) + ledger.count(Fate.ACKING)
        result.redelivered = ledger.total(Word.REDELIVERED)
        result.acks_in_doubt = ledger.count(Fate.ACKING)
        if result.acks_in_doubt > result.killed_consumers:
            text = f"{result.acks_in_doubt} acks did not return, and {result.killed_consumers} consumers were killed"
            result.fault(text)
        if not result.interrupted:
            for producer in range(ledger.producers):
                self._judge_producer(producer)
            self._judge_rest()
        if result.segment_mib > BUDGET / MIB:
            result.fault(f"the segment has taken {result.segment_mib} MiB")
        if result.growth_mib > GROWTH / MIB:
            result.fault(f"a process has grown by {result.growth_mib} MiB")

    def _judge_producer(self, producer: int) -> None:
        result, ledger = self.result, self.ledger
        missing = set(ledger.with_fate(producer, Fate.NEW, Fate.TAKEN))
        for _, begin, end in (doubt for doubt in self.doubts if doubt[0] == producer):
            there = [number not in missing for number in range(begin, end)]
            result.puts_in_doubt += len(there)
            result.puts_done += sum(there)
            if sorted(there, reverse=True) != there:
                result.fault(f"of a killed put of {begin} to {end - 1} by {producer} not the first ones came: {there}")
            missing.difference_update(range(begin, end))
        if missing:
            some = ", ".join(map(str, sorted(missing)[:5]))
            result.fault(f"{len(missing):,} messages of producer {producer} were accepted, and are lost: {some}")
        if ledger.word(producer, Word.DONE) < ledger.each and self.are_all_put:
            begun = ledger.word(producer, Word.BEGUN)
            if begun < ledger.each:
                result.fault(f"producer {producer} has put {begun:,} of {ledger.each:,} messages")

    def _judge_rest(self) -> None:
        """Nothing may be left: no message, no block, no file, no damage."""
        member = self.broker._membership.live()
        reap(member)
        for finding in examine(self.url).findings:
            self.result.fault(f"at rest: {finding.text()}")
        used = member.usage()
        if used["blocks_used"] or used["blocks_building"]:
            self.result.fault(f"blocks leaked: {used['blocks_used']} in use, {used['blocks_building']} being built")
        census = self.queue._census()
        if any(census[key] for key in ("ready", "delayed", "unsettled", "claimed", "holes", "broken")):
            self.result.fault(f"the queue is not empty: {census}")
        seen = self.queue.statistics()
        if seen.flowed or seen.disk_bytes:
            self.result.fault(f"the queue is empty, and has {seen.disk_bytes:,} bytes on disk (flowed: {seen.flowed})")
        if seen.dead_lettered or seen.expired or seen.dropped:
            self.result.fault(f"messages went elsewhere: {seen}")


def run(result: Result, home: Path, kill_every: float, say: Callable[[str], None], fault: str | None) -> None:
    """All of it; a Ctrl-C ends the work at once, with a verdict."""
    backlog = Backlog(home, result, fault)
    began = time.monotonic()
    try:
        try:
            backlog.work(kill_every, say)
        except KeyboardInterrupt:
            print("interrupted; the verdict so far:", file=sys.stderr)
            result.interrupted = True
        result.seconds = round(time.monotonic() - began, 1)
        backlog.end()
        backlog.judge()
    finally:
        for pid in backlog.running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(backlog.bytes)
        backlog.broker.delete(force=True)


def main(words: list[str]) -> int:
    description, _, examples = (__doc__ or "").partition("Examples:")
    parser = argparse.ArgumentParser(
        prog="tools/backlog",
        description=description.partition("\n")[0],
        epilog=f"examples:{examples.partition('A failure')[0]}".rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--messages", type=positive, default=10_000_000, metavar="N", help="in all (10,000,000)")
    parser.add_argument("--seed", type=int, help="else at random")
    parser.add_argument("--producers", type=int, default=3, choices=range(1, 33), metavar="P", help="at a time (3)")
    parser.add_argument("--consumers", type=int, default=3, choices=range(1, 33), metavar="C", help="at a time (3)")
    parser.add_argument("--kill-every", type=positive_time, default=0.1, metavar="SECONDS", help="about (0.1)")
    parser.add_argument("--directory", type=Path, help="where the backlog lies (that of temporary files)")
    parser.add_argument("--json", action="store_true", help="one object at the end instead of lines")
    parser.add_argument(
        "--fault", choices=("lose", "double", "reorder", "grow"), help="a mistake on purpose, to be found"
    )
    arguments = parser.parse_args(words)
    if arguments.messages < arguments.producers:
        parser.error("--messages: give one to each producer")
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    messages = arguments.messages // arguments.producers * arguments.producers
    result = Result(seed, messages, arguments.producers, arguments.consumers)
    say: Callable[[str], None] = (lambda text: None) if arguments.json else partial(print, flush=True)
    say(f"seed {seed}, {messages:,} messages, {arguments.producers} producers, {arguments.consumers} consumers")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does, with what was done until then
    home = Path(tempfile.mkdtemp(prefix="shmq-backlog-", dir=arguments.directory))
    try:
        run(result, home, arguments.kill_every, say, arguments.fault)
    finally:
        shutil.rmtree(home)
    if result.broken:
        print(f"seed {seed}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(asdict(result)))
    else:
        say(
            f"{result.seconds} s; killed: {result.killed_producers:,} producers, "
            f"{result.killed_consumers:,} consumers, of them {result.killed_movers:,} amid a move; "
            f"{result.came:,} came, {result.redelivered:,} redelivered; "
            f"in doubt: {result.puts_in_doubt:,} puts ({result.puts_done:,} done), {result.acks_in_doubt:,} acks; "
            f"deepest {result.deepest:,}, {result.disk_mib} MiB on disk, segment {result.segment_mib} MiB, "
            f"growth {result.growth_mib} MiB; broken: {result.broken}"
        )
    return int(result.broken != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
