"""Real processes doing everything at random, one killed or stopped every 50 to 200 ms: nothing may be lost or doubled.

    tools/soak [--minutes N] [--seed S] [--processes P] [--json] [--keep DIRECTORY]

Each process puts, gets, receives and settles in all ways, also with priorities and delays. It browses, counts, lends
views and loans, opens and closes consumers, makes and deletes queues. It joins, leaves, comes back and forks. Each
writes down each call before and after it. Every second another process runs what `shmq check` runs, which must find
nothing. Every minute, and at the end, all go, the queues are drained, and the histories are compared. Every message
that was accepted has come out once, or more often only where it said so. Each consumer saw each producer's order. No
block is in use, and the counts are right.

Two of the queues may have 64 KiB in memory. They fill and empty in turn, every 3 s, so that their messages go to disk
and come back all the time. Processes that put and take move them, and are killed amid that. The report says how many
went there; none, or a file left at the end, is a failure, as is a segment beyond its memory. Two seeds of three have so
little room on disk (`disk=`) that movers find it full; the files then never take more.

A failure prints the seed and keeps the histories. Ctrl-C ends the run early, with its verdict. Exit code 1: failed.
"""

import argparse
import json
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import shmq
from instruments import soak_process
from instruments.arguments import positive_time
from instruments.history import AGAIN, History, Kind
from instruments.soak_audit import Audit
from instruments.soak_disk import Disk
from instruments.soak_endings import forked
from instruments.soak_process import QUEUES, TIDE, declare, named, shared_numbers
from shmq.cli.check import examine
from shmq.core.queue import reap

TOOLS = Path(__file__).resolve().parents[1]
SILENCE = 60.0  # seconds in which a process that is not stopped must have done something
CHECK_EVERY = 1.0
SAY_EVERY = 5.0
LAP = 60.0
AIM = 0.01  # seconds until somebody begins a move
MIB = 1 << 20
MEMORY = 192 * MIB
UNRELATED = 0.1  # share of the processes that are new interpreters
ENOUGH = 20  # faults
ROOMS = (None, 64 * 1024, 128 * 1024)  # bytes of the disk budget, by the seed; None: a part of the file system


@dataclass
class Result:
    """The counts and findings of a run."""

    seed: int
    processes: int
    seconds: float = 0.0
    kills: int = 0
    stops: int = 0
    checks: int = 0
    calls: int = 0
    messages: int = 0
    drained: int = 0
    uncertain: int = 0  # messages that killed calls of get() may have taken
    killed_movers: int = 0  # of the kills: those amid a move to or from disk
    on_disk: int = 0  # messages that went there
    most_on_disk: int = 0  # at once, of all queues
    came_back: int = 0  # how often a queue that had messages on disk had none any more
    disk_budget: int | None = None
    disk_full: int = 0  # how often of the times that were looked, each second, a mover had found no room
    segment_mib: float = 0.0
    broken: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.broken += 1
        if len(self.faults) < ENOUGH:
            self.faults.append(text)
            print(f"FAULT: {text}", file=sys.stderr, flush=True)


@dataclass
class Running:
    """One process of the soak, as its parent sees it."""

    pid: int
    slot: int
    stopped_until: float = 0.0
    beats: int = 0
    heard: float = 0.0


class Soak:
    """One run.

    Arguments:
        home: a directory for the broker and the histories.
        rng: decides who is killed or stopped, and when.
        fault: what the processes do wrong now and then, on purpose; "stay": nothing goes to disk.
    """

    def __init__(self, home: Path, result: Result, rng: random.Random, fault: str | None) -> None:
        self.home, self.result, self.rng = home, result, rng
        self.fault = None if fault == "stay" else fault
        self.histories = home / "histories"
        self.histories.mkdir()
        self.url = str(home / "broker")
        self.beats_path = home / "beats"
        self.beats_path.write_bytes(bytes(8 * (result.processes + 1)))
        self.beats = shared_numbers(self.beats_path)
        self.running: dict[int, Running] = {}
        self.checking = 0
        self.check_began = 0.0
        result.disk_budget = 0 if fault == "stay" else ROOMS[result.seed % len(ROOMS)]
        pid = forked(lambda: self._make(disk=result.disk_budget))
        if os.waitpid(pid, 0)[1] != 0:
            raise RuntimeError("the broker could not be made")
        self.segment = Path("/dev/shm", json.loads((home / "broker" / "segment").read_text())["name"])
        self.disk = Disk(self.segment, home / "broker")
        self.on_disk = self.disk.there()

    def _make(self, disk: int | None) -> None:
        with shmq.open(self.url, memory=MEMORY, patience=0.1, disk=disk) as broker:
            for index in range(len(QUEUES)):
                declare(broker, index)

    # ---- the processes -----------------------------------------------------------------------------------------

    def start(self, slot: int) -> None:
        """Most are forked from here; some are programs that inherit nothing, which takes them longer."""
        seed = self.rng.getrandbits(63)
        arguments = (self.url, self.histories, self.beats_path, slot, seed, self.fault)
        if self.rng.random() < UNRELATED:
            given = [str(word) for word in arguments if word is not None]
            words = [sys.executable, str(TOOLS), "instruments.soak_process", *given]
            pid = forked(lambda: os.execv(sys.executable, words))
        else:
            pid = forked(lambda: soak_process.work(*arguments))
        self.running[pid] = Running(pid, slot, beats=self.beats[slot], heard=time.monotonic())

    def _victim(self) -> Running:
        """Every third time one that is amid a move, if somebody comes to that soon."""
        if self.rng.random() < 1 / 3:
            deadline = time.monotonic() + AIM
            while time.monotonic() < deadline:
                for pid in self.disk.movers():
                    if pid in self.running:
                        return self.running[pid]
        return self.rng.choice(list(self.running.values()))

    def disturb(self) -> None:
        """One is killed and replaced, or stopped for a while."""
        victim = self._victim()
        if self.rng.random() < 0.6:
            os.kill(victim.pid, signal.SIGKILL)
            os.waitpid(victim.pid, 0)
            del self.running[victim.pid]
            self.result.kills += 1
            self.result.killed_movers += victim.pid in self.disk.movers()
            self.start(victim.slot)
        elif victim.stopped_until == 0:
            os.kill(victim.pid, signal.SIGSTOP)
            victim.stopped_until = time.monotonic() + self.rng.choice((0.02, 0.1, 0.3, 0.8))
            self.result.stops += 1

    def tend(self) -> None:
        """Wakes those whose time has come; notices who has failed, hangs, or found damage."""
        now = time.monotonic()
        for each in list(self.running.values()):
            if 0 < each.stopped_until < now:
                os.kill(each.pid, signal.SIGCONT)
                each.stopped_until = 0
            if self.beats[each.slot] != each.beats or each.stopped_until:
                each.beats, each.heard = self.beats[each.slot], now
            elif now - each.heard > SILENCE:
                self.result.fault(f"process {each.pid} has done nothing for {SILENCE:.0f} s")
                each.heard = now
            pid, status = os.waitpid(each.pid, os.WNOHANG)
            if pid:
                del self.running[pid]
                self.result.fault(f"process {pid} ended by itself, status {os.waitstatus_to_exitcode(status)}")
                self.start(each.slot)
        self._tend_check(now)
        self._tend_disk()

    def _check(self) -> None:
        """In a child: what `shmq check` does. The parent opens nothing, as it must not wait for one that it stopped."""
        report = examine(self.url)
        for finding in report.findings:
            print(f"check: {finding.text()}", file=sys.stderr, flush=True)
        if report.findings:
            raise SystemExit("check has found damage")

    def _tend_check(self, now: float) -> None:
        if self.checking:
            pid, status = os.waitpid(self.checking, os.WNOHANG)
            if pid:
                self.checking = 0
                self.result.checks += 1
                if status != 0:
                    self.result.fault("check has found something in use")
            elif now - self.check_began > SILENCE:
                self.result.fault(f"check has not come back for {SILENCE:.0f} s")
                self.check_began = now
        elif now - self.check_began > CHECK_EVERY:
            self.check_began = now
            self.checking = forked(self._check)
            self.result.disk_full += self.disk.is_full()

    def _tend_disk(self) -> None:
        result, before, self.on_disk = self.result, self.on_disk, self.disk.there()
        result.came_back += sum(before[name] > 0 and there == 0 for name, there in self.on_disk.items())
        result.most_on_disk = max(result.most_on_disk, sum(self.on_disk.values()))
        result.segment_mib = max(result.segment_mib, round(self.disk.segment_bytes() / MIB, 2))

    # ---- the end -----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Before a lap: the histories of the last one, in which all was well, are not needed any more."""
        for path in self.histories.iterdir():
            path.unlink()
        self.beats[self.result.processes] = 0

    def end(self) -> None:
        """Lets everybody finish what is in hand, and go."""
        self.beats[self.result.processes] = 1
        for each in self.running.values():
            os.kill(each.pid, signal.SIGCONT)
        deadline = time.monotonic() + SILENCE
        left = [*self.running, *([self.checking] if self.checking else [])]
        for pid in left:
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    self.result.fault(f"process {pid} does not end")
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    break
                time.sleep(0.002)
        self.running.clear()
        self.checking = 0

    def settle(self) -> None:
        """Drains what is left, looks at the broker at rest, and compares the histories."""
        audit = Audit()
        self.result.on_disk = sum(self.disk.ever().values())
        with shmq.open(self.url, create=False) as broker:
            member = broker._membership.live()
            deadline = time.monotonic() + SILENCE
            while len(member.processes()) > 1 and time.monotonic() < deadline:
                reap(member)  # forked ones of those that were killed end by themselves
                time.sleep(0.05)
            self._examine("all have gone")
            paths = sorted(self.histories.iterdir())
            for path in paths:
                audit.read(path)
            history = History(self.histories)
            for index in range(len(QUEUES)):
                self._drain(broker, index, audit, history)
            audit.check({int(path.name) for path in paths})
            self._check_at_rest(broker)
        for text in audit.faults:
            self.result.fault(text)
        self.result.calls += audit.calls
        self.result.messages += len(audit.fates)
        self.result.uncertain += audit.allowance

    def _drain(self, broker: shmq.Broker, index: int, audit: Audit, history: History) -> None:
        queue = declare(broker, index)
        seen = queue.statistics()
        count = 0
        while True:
            try:
                message = queue.receive(timeout=0.3)
            except shmq.Empty:
                if queue.statistics().delayed:
                    continue
                break
            name = named(message.body)
            history.note(Kind.TOOK, index, AGAIN if message.redelivered else 0, amount=name[0], number=name[2])
            audit.drained(name, index, message.redelivered)
            message.ack()
            count += 1
        self.result.drained += count
        if (seen.ready + seen.delayed, seen.unsettled) != (count, 0):
            text = f"{seen.ready} ready, {seen.delayed} delayed, {seen.unsettled} unsettled; {count} came"
            self.result.fault(f"queue {queue.name!r} counts wrong: {text}")

    def _examine(self, when: str) -> None:
        for finding in examine(self.url).findings:
            self.result.fault(f"{when}: {finding.text()}")

    def _check_at_rest(self, broker: shmq.Broker) -> None:
        for queue in broker.queues():
            if queue.name.startswith("brief-"):
                queue.reopen()
                queue.purge()
        member = broker._membership.live()
        self._examine("at rest")
        used = member.usage()
        if used["blocks_used"] or used["blocks_building"]:
            self.result.fault(f"blocks leaked: {used['blocks_used']} in use, {used['blocks_building']} being built")
        for queue in broker.queues():
            census = queue._census()
            if any(census[key] for key in ("ready", "delayed", "unsettled", "claimed", "holes", "broken")):
                self.result.fault(f"queue {queue.name!r} is not empty: {census}")
        if len(member.processes()) != 1:
            self.result.fault(f"still in the table: {member.processes()}")
        self._check_disk()

    def _check_disk(self) -> None:
        left = {name: there for name, there in self.disk.there().items() if there}
        if left or self.disk.files():
            self.result.fault(f"still on disk: {left}, {len(self.disk.files())} files")
        for name, count in self.disk.ever().items():
            if count == 0 and self.result.seconds > TIDE:
                self.result.fault(f"nothing of queue {name!r} went to disk")
        if self.result.segment_mib * MIB > MEMORY:
            self.result.fault(f"the segment has taken {self.result.segment_mib} MiB")


def lap(soak: Soak, until: float, say: Callable[[str], None]) -> None:
    """Starts everybody and disturbs them for so long. A Ctrl-C comes through."""
    result, rng = soak.result, soak.rng
    began = said = disturbed = time.monotonic()
    pause = 0.1
    for slot in range(result.processes):
        soak.start(slot)
    while time.monotonic() < until and result.broken < ENOUGH:
        time.sleep(0.01)
        soak.tend()
        now = time.monotonic()
        if now - disturbed > pause:
            soak.disturb()
            disturbed, pause = now, rng.uniform(0.05, 0.2)
        if now - said > SAY_EVERY:
            said = now
            say(
                f"{result.seconds + now - began:,.0f} s: {result.kills:,} kills, {result.stops:,} stops, "
                f"{result.checks:,} checks, {sum(soak.beats[:-1]):,} calls, {result.broken} broken"
            )


def run(result: Result, home: Path, seconds: float, say: Callable[[str], None], fault: str | None) -> None:
    """Laps of a minute, with everything drained and compared after each; a Ctrl-C ends the last one at once."""
    soak = Soak(home, result, random.Random(result.seed), fault)
    interrupted = False
    try:
        while result.seconds < seconds and result.broken == 0 and not interrupted:
            soak.clear()
            began = time.monotonic()
            try:
                lap(soak, began + min(LAP, seconds - result.seconds), say)
            except KeyboardInterrupt:
                print("interrupted; the verdict so far:", file=sys.stderr)
                interrupted = True
            result.seconds = round(result.seconds + time.monotonic() - began, 1)
            soak.end()
            soak.settle()
    finally:
        soak.disk.close()
        soak.segment.unlink(missing_ok=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/soak", description="Processes killed and stopped: nothing is lost.")
    parser.add_argument("--minutes", type=positive_time, default=1.0, help="how long (1)")
    parser.add_argument("--seed", type=int, help="else at random")
    parser.add_argument("--processes", type=int, default=8, choices=range(2, 65), metavar="P", help="at a time (8)")
    parser.add_argument("--json", action="store_true", help="one object at the end instead of lines")
    parser.add_argument("--keep", type=Path, help="where the histories of a failure go (a new directory below /tmp)")
    parser.add_argument(
        "--latest", type=positive_time, default=5.0, metavar="SECONDS", help="the longest delay of a message (5)"
    )
    parser.add_argument(
        "--fault", choices=("lose", "double", "reorder", "stay"), help="a mistake on purpose, to be found"
    )
    arguments = parser.parse_args(words)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    result = Result(seed, arguments.processes)
    say: Callable[[str], None] = (lambda text: None) if arguments.json else partial(print, flush=True)
    say(f"seed {seed}, {arguments.processes} processes")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does, with what was done until then
    home = Path(tempfile.mkdtemp(prefix="shmq-soak-"))
    os.environ["SHMQ_SOAK_LATEST"] = str(arguments.latest)
    soak_process.LATEST = arguments.latest
    run(result, home, arguments.minutes * 60, say, arguments.fault)
    if result.broken:
        kept = arguments.keep or home
        if kept != home:
            shutil.copytree(home / "histories", kept, dirs_exist_ok=True)
            shutil.rmtree(home)
        print(f"seed {seed}; the histories are in {kept}", file=sys.stderr)
    else:
        shutil.rmtree(home)
    if arguments.json:
        print(json.dumps(asdict(result)))
    else:
        say(
            f"{result.seconds} s, {result.kills:,} kills, {result.stops:,} stops, {result.calls:,} calls, "
            f"{result.messages:,} messages, {result.checks:,} checks, {result.drained:,} drained, "
            f"{result.uncertain:,} uncertain; {result.on_disk:,} to disk, {result.most_on_disk:,} at once, "
            f"{result.came_back:,} times all was back in memory, {result.killed_movers:,} killed amid a move, "
            f"{result.disk_full:,} times full, "
            f"segment {result.segment_mib} MiB; broken: {result.broken}"
        )
    return int(result.broken != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
