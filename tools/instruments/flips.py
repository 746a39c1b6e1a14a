"""Damages words of a live segment under several processes: nothing may crash, hang, or show a wrong body.

    tools/flips [--count N] [--seed S] [--round R] [--processes P] [--json]

Each round puts the same sound segment back. It has messages in four queues, a dead process that held some, and one that
died amid a move. Several processes join it and call everything that users call. Between calls they damage a word: a bit
of it, all of it, a near number, another word's content. In some rounds damage comes before they join. Each call must
come back in time, with an answer or one of shmq's errors. A body that comes out must be one that was put. Failures are
a process that ends by a signal, an exception of another kind, a wrong body and a hang. Each is printed with its round.

--round does one round alone, for a repeat: the same damage and the same calls, but not the same timing.
The exit code is 1 if anything failed. Ctrl-C ends the run early, with its verdict.
"""

import argparse
import faulthandler
import gc
import json
import mmap
import os
import random
import secrets
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import shmq
from checker.directory import judge_directory
from checker.image import Image
from checker.queue import rings_of
from checker.violation import Findings
from checker.words import PENDING
from instruments.arguments import not_negative, positive, positive_time
from instruments.segment_image import Damage, SegmentImage
from instruments.victim import Victim, body_of

FLIPS = 8  # of one process in one round
CALLS = 6  # between two flips
STOPS = 10_000  # of a mover at most, until it is amid a move
WARM_CALLS = 500
LOOK_SECONDS = 0.05
BEFORE = 0.25  # share of the rounds in which the damage is there before anybody joins
WRONG, FOREIGN = 3, 4  # exit codes of a process
INTERRUPTS = {signal.SIGINT, signal.SIGTERM}


@dataclass
class Result:
    """The counts and findings of a run."""

    seed: int
    flips: int = 0
    rounds: int = 0
    calls: int = 0
    seconds: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, object]] = field(default_factory=list)


class Beats:
    """Shared with the children: what each is calling, how often it called, and how often it got which answer."""

    NAMES = ("right", "CorruptionError", "Empty", "Full", "NotFound", "ShutDown", "Timeout", "SettlementError", "other")

    def __init__(self, processes: int) -> None:
        self.width = 2 + len(self.NAMES)
        self.numbers = memoryview(mmap.mmap(-1, 8 * processes * self.width)).cast("Q")

    def beat(self, process: int, call: int) -> None:
        self.numbers[process * self.width] = call
        self.numbers[process * self.width + 1] += 1

    def last(self, process: int) -> tuple[int, int]:
        return self.numbers[process * self.width], self.numbers[process * self.width + 1]

    def answer(self, process: int, answers: Counter[str]) -> None:
        for name, count in answers.items():
            place = self.NAMES.index(name) if name in self.NAMES else len(self.NAMES) - 1
            self.numbers[process * self.width + 2 + place] += count

    def totals(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for start in range(2, len(self.numbers), self.width):
            found.update(dict(zip(self.NAMES, self.numbers[start : start + len(self.NAMES)], strict=True)))
        return dict(found)

    def calls(self) -> int:
        return sum(self.numbers[1 :: self.width])


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Signals that end this tool come after it: hooks that run at a fork, as logging's, swallow a KeyboardInterrupt."""
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def forked(work: Callable[[], None]) -> int:
    """Runs the work in a child; its pid. The child ends without any closing: what would be closed is damaged."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            work()
        except BaseException as error:
            traceback.print_exc()
            sys.stderr.flush()
            code = WRONG if type(error).__name__ == "WrongBody" else FOREIGN
        finally:
            os._exit(code)
    return pid


def fill(directory: Path, seed: int, checksum: bool) -> None:
    """Messages of all kinds, some with a process that dies with them, and rings that have been used before."""
    numbers = random.Random(seed)
    broker = shmq.open(directory, memory="8MiB", patience=0.01)
    for name, maxsize, sizes in (
        ("small", 0, [0, 20, 60]),
        ("large", 0, [300, 3000, 30000]),
        ("limited", 40, [20, 900]),
    ):
        queue = broker.queue(name, codec="bytes", maxsize=maxsize, slot_size=192, checksum=checksum)
        for _ in range(1100 if name == "limited" else 60):
            queue.put(body_of(numbers, numbers.choice(sizes), name), timeout=5)
            queue.get(timeout=5)
        for number in range(25):
            body = body_of(numbers, numbers.choice(sizes), name)
            queue.put(body, timeout=5, headers={"digest": body[:12].hex()} if number % 3 == 0 else None)
        for _ in range(3):
            queue.put(body_of(numbers, 20, name), timeout=5, delay=0.05, ttl=3600)
            queue.put(body_of(numbers, 20, name), timeout=5, ttl=0.1)
        queue.receive(timeout=5).release()
        queue.receive(timeout=5).retry(delay=0.02)
    broker.queue("small", codec="bytes").alter(lease=0.05)
    fill_beyond_memory(broker, numbers, checksum)
    names = ("small", "large", "limited", "flowing") * 2
    held = [broker.queue(name, codec="bytes").receive(timeout=5) for name in names]
    view = held[1].view()
    leave_a_move_half_done(directory, name_of_segment(directory))
    os._exit(len(view) == 0)  # it dies with what it holds


def fill_beyond_memory(broker: shmq.Broker, numbers: random.Random, checksum: bool) -> None:
    """A queue of which some is on disk, and some came back."""
    queue = broker.queue("flowing", codec="bytes", max_memory="8KiB", slot_size=192, checksum=checksum)
    for number in range(400):
        queue.put(body_of(numbers, 2000 if number % 50 == 0 else 40, "flowing"), timeout=5)
    queue.get_many(200, timeout=5)
    if not queue.statistics().flowed:
        raise RuntimeError("nothing is on disk")


def move_to_and_fro(directory: Path) -> None:
    broker = shmq.open(directory, create=False)
    small, moved = (broker.queue(name, codec="bytes") for name in ("small", "moved"))
    while True:
        small.move(moved, limit=5)
        moved.move(small)


def leave_a_move_half_done(directory: Path, segment: Path) -> None:
    """Stops a mover again and again, until it has a message that is in neither queue yet; and kills it there."""
    pauses = random.Random(1)
    mover = forked(partial(move_to_and_fro, directory))
    for _ in range(STOPS):
        time.sleep(pauses.random() * 0.01)
        os.kill(mover, signal.SIGSTOP)
        os.waitpid(mover, os.WUNTRACED)
        if any((ring.state == PENDING).any() for ring in rings_of(judge_directory(Image.of_file(segment), Findings()))):
            break
        os.kill(mover, signal.SIGCONT)
    else:
        raise RuntimeError(f"a mover was stopped {STOPS:,} times, never amid a move")
    os.kill(mover, signal.SIGKILL)
    os.waitpid(mover, 0)


def name_of_segment(directory: Path) -> Path:
    name = next(word for word in (directory / "segment").read_text().split() if "shmq-" in word)
    return Path("/dev/shm") / name.strip('",')


def warm_up(directory: Path) -> None:
    """Calls everything once here, on a sound broker. Else each of thousands of children imports, compiles patterns, and
    makes its interpreter quick for itself. And its collector writes to each page that it has from here."""
    try:
        with shmq.open(directory, memory="8MiB"):
            victim = Victim(str(directory), random.Random(1), lambda call: None)
            for _ in range(WARM_CALLS):
                victim.turn()
            victim.end()
    finally:
        name_of_segment(directory).unlink(missing_ok=True)
    del victim
    gc.collect()
    gc.freeze()


class Range:
    """One broker that is damaged and put back, round by round."""

    def __init__(self, directory: Path, seed: int, processes: int, limit: float, checksum: bool) -> None:
        self.limit = limit
        self.directory = directory
        self.seed = seed
        self.processes = processes
        warm_up(directory.with_name("warm"))
        pid = forked(lambda: fill(directory, seed, checksum))
        if os.waitpid(pid, 0)[1] != 0:
            raise RuntimeError("the segment could not be filled")
        self.path = name_of_segment(directory)
        self.image = SegmentImage(self.path)
        self.disk = directory / "disk"
        self.files = {path: path.read_bytes() for path in self.disk.rglob("*") if path.is_file()}
        self.beats = Beats(processes)

    def _memory(self) -> memoryview:
        with self.path.open("r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), self.image.size))

    def _work(self, process: int, numbers: random.Random, flips: int) -> None:
        faulthandler.register(signal.SIGUSR1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches all; the parent ends this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        damage = Damage(self.image, random.Random(numbers.getrandbits(64)))
        memory = self._memory()
        victim = Victim(str(self.directory), numbers, lambda call: self.beats.beat(process, call))
        try:
            for _ in range(CALLS):
                victim.turn()
            for _ in range(flips):
                damage.strike(memory)
                for _ in range(CALLS):
                    victim.turn()
            victim.end()
        finally:
            self.beats.answer(process, victim.answers)

    def _restore(self) -> None:
        """The segment, and what is on disk."""
        self.image.restore()
        shutil.rmtree(self.disk, ignore_errors=True)
        for path, content in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def round(self, number: int, flips: int) -> list[dict[str, object]]:
        """Damages so many words; what failed."""
        numbers = random.Random(f"{self.seed} {number}")
        self._restore()
        if numbers.random() < BEFORE:
            damage, memory = Damage(self.image, random.Random(numbers.getrandbits(64))), self._memory()
            for _ in range(flips // 2):
                damage.strike(memory)
            memory.release()
            flips -= flips // 2
        pids: dict[int, int] = {}
        try:
            with interrupts_wait():
                for process in range(self.processes):
                    own = flips // self.processes + (process < flips % self.processes)
                    pids[forked(partial(self._work, process, random.Random(numbers.getrandbits(64)), own))] = process
            return self._wait(number, pids)
        except KeyboardInterrupt:
            for pid in pids:
                with suppress(ProcessLookupError, ChildProcessError):  # it has ended, and has been waited for
                    if os.waitpid(pid, os.WNOHANG) == (0, 0):
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
            raise

    def _wait(self, number: int, pids: dict[int, int]) -> list[dict[str, object]]:
        failures = []
        seen = {pid: (self.beats.last(process), time.monotonic()) for pid, process in pids.items()}
        hung: set[int] = set()
        ends = {os.pidfd_open(pid): pid for pid in pids}  # readable when it has ended
        while ends:
            over = select.select(ends, (), (), LOOK_SECONDS)[0]
            if not over:
                self._end_hung({pid: pids[pid] for pid in ends.values()}, seen, hung)
            for descriptor in over:
                os.close(descriptor)
                pid = ends.pop(descriptor)
                process = pids[pid]
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if code != 0:
                    hangs = "hang", f"no answer within {self.limit:g} s"
                    kind, what = hangs if pid in hung else self._meaning(code)
                    failures.append({"round": number, "process": process, "kind": kind, "what": what})
                    failures[-1]["call"] = self._call(process)
        return failures

    def _end_hung(self, pids: dict[int, int], seen: dict[int, tuple[tuple[int, int], float]], hung: set[int]) -> None:
        """Ends each that is still in the same call after the limit."""
        for pid, process in pids.items():
            beat = self.beats.last(process)
            if beat != seen[pid][0]:
                seen[pid] = (beat, time.monotonic())
            elif time.monotonic() - seen[pid][1] > self.limit and pid not in hung:
                hung.add(pid)
                os.kill(pid, signal.SIGUSR1)  # it prints where it is, if it still can
                time.sleep(0.2)
                os.kill(pid, signal.SIGKILL)

    def _call(self, process: int) -> str:
        names = [name for name in sorted(dir(Victim)) if name.startswith("call_")]
        last = self.beats.last(process)[0]
        return names[last] if last < len(names) else "end"

    @staticmethod
    def _meaning(code: int) -> tuple[str, str]:
        if code < 0:
            return "signal", f"ended by {signal.Signals(-code).name}"
        return ("wrong", "a body that nobody put") if code == WRONG else ("exception", "one that is none of shmq's")


def run(arguments: argparse.Namespace) -> Result:
    result = Result(arguments.seed)
    start = said = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="shmq-flips-") as directory:
        target = Range(
            Path(directory, "broker"),
            arguments.seed,
            arguments.processes,
            arguments.limit,
            not arguments.without_checksums,
        )
        try:
            number = arguments.round or 0
            while result.flips < arguments.count:
                flips = min(FLIPS * arguments.processes, arguments.count - result.flips)
                for failure in target.round(number, flips):
                    result.failures.append(failure)
                    print(f"FAILED: {failure}", file=sys.stderr, flush=True)
                result.flips += flips
                result.rounds += 1
                number += 1
                if time.monotonic() - said > 5 and not arguments.json:
                    said = time.monotonic()
                    print(f"{result.flips:,} of {arguments.count:,} flips, {len(result.failures)} failures", flush=True)
                if arguments.round is not None:
                    break
        except KeyboardInterrupt:
            print("interrupted; the verdict so far:", file=sys.stderr)
        finally:
            target.path.unlink(missing_ok=True)
            result.seconds = round(time.monotonic() - start, 1)
            result.answers, result.calls = target.beats.totals(), target.beats.calls()
    return result


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/flips", description="Damages a live segment under several processes.")
    parser.add_argument("--count", type=positive, default=20_000, help="words to damage (20000)")
    parser.add_argument("--seed", type=int, help="for a repeat; else at random")
    parser.add_argument("--round", type=not_negative, help="this round alone")
    parser.add_argument("--processes", type=positive, default=3, help="at work at a time (3)")
    parser.add_argument(
        "--limit", type=positive_time, default=20.0, help="seconds for a call; undisturbed it takes a few ms (20)"
    )
    parser.add_argument(
        "--without-checksums", action="store_true", help="queues with checksum=False: wrong bodies will be found"
    )
    parser.add_argument("--json", action="store_true", help="one object at the end instead of lines")
    arguments = parser.parse_args(words)
    if arguments.seed is None:
        arguments.seed = secrets.randbits(32)
    if not arguments.json:
        print(f"seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does, with the verdict so far
    result = run(arguments)
    if arguments.json:
        print(json.dumps(asdict(result)))
    else:
        answers = ", ".join(f"{name} {count:,}" for name, count in result.answers.items() if count)
        print(f"{result.flips:,} flips in {result.rounds:,} rounds, {result.calls:,} calls, {result.seconds} s")
        print(f"answers: {answers}")
        print(
            f"failures: {len(result.failures)}"
            + (f"; repeat with --seed {arguments.seed} --round R" if result.failures else "")
        )
    return int(bool(result.failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
