"""Kills a real process at each machine step of an operation, lets survivors work, and judges what is left.

    tools/killstep [--pause | --two | --closure [--deaths N]] [--begin new|lap-end|wrap] [--only SCENARIO]...
                   [--kills N | --every K | --all] [--first] [--jobs N]
    tools/killstep --only SCENARIO --step K [--pause]     one again
    tools/killstep --only SCENARIO --path DEATHS          one again, of several deaths
    tools/killstep --list

Each step of the recorded run is a place to die.

    --kills N     spreads N deaths over the scenarios (20,000 by default): first the steps that are not one turn of a
                  loop among many
    --pause       stops the process there instead, and others have to get on within the patience
    --first       ends the search with the first step that breaks something
    --two         kills a second process, at each step that changes anything, on each distinct image that a first death
                  left
    --closure     goes on so, breadth first, until no death leaves an image that is not like one before (an hour for a
                  scenario); of the deaths that leave an image like one tried, it tries one in twenty all the same
    --deaths N    ends it after so many in turn
    --begin       how much has gone through the queues before: nothing (new, the default), up to the end of a lap, or
                  until positions and laps are about to begin with 0 again

The exit code is 1 if something is broken; it prints the command that shows it again. Ctrl-C ends it behind the steps
that are being tried. It reports the steps until then, and exits with 130; a second one ends it at once.

Examples:
    tools/killstep --only put-few --all
    tools/killstep --pause --kills 20000 --seed 7
    tools/killstep --begin wrap --kills 200000
    tools/killstep --two --only ack-block
"""

import argparse
import json
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from builds.native_build import BuildFailed
from instruments.arguments import not_negative, positive
from steps.driver import (
    History,
    Line,
    Outcome,
    Scenario,
    build,
    code_of,
    operands_of,
    read_frames,
    scenarios,
    start,
    stop,
    why_ptrace_is_forbidden,
)
from steps.judge import Bench, judge_calls

DEFAULT_KILLS = 20_000
MOST_DEATHS = 28
DEARER = 8  # times as much does a kill cost where the whole segment is in use
INTERRUPTED = 130  # exit code, as of any program that SIGINT ends
BEGINNINGS = ("new", "lap-end", "wrap")  # native/killstep/beginning.c
TOLD = 5  # failures of one scenario that are shown in full


@dataclass(frozen=True)
class Order:
    """The order for one scenario."""

    scenario: str
    mode: str  # kill, pause, deaths
    begin: str = BEGINNINGS[0]
    budget: int = 0
    every: int = 0
    step: int = -1
    depth: int = 0
    alike: bool = False
    path: str = ""
    seed: int = 0

    def arguments(self, program: Path, cpu: int) -> list[str]:
        words = [self.scenario, "--mode", self.mode, "--begin", self.begin]
        words += ["--seed", str(self.seed), "--cpu", str(cpu)]
        for name in ("budget", "every", "depth", "path"):
            if getattr(self, name):
                words += [f"--{name}", str(getattr(self, name))]
        if self.step >= 0:
            words += ["--step", str(self.step)]
        if self.alike:
            words += ["--alike", "yes"]
        for name, table in (("code", code_of(program)), ("operands", operands_of(program))):
            if table.exists():
                words += [f"--{name}", str(table)]
        return words


def again(where: dict[str, Any]) -> str:
    """The command that shows a failure again."""
    words = ["tools/killstep", "--only", where["scenario"]]
    if where.get("begin", BEGINNINGS[0]) != BEGINNINGS[0]:
        words += ["--begin", where["begin"]]
    if where.get("path"):
        words += ["--path", where["path"]]
    elif "step" in where:
        words += (["--pause"] if where.get("mode") == "pause" else []) + ["--step", str(where["step"])]
    return " ".join(words)


def line_of(program: Path, address: int) -> str:
    """Function and line of an address, where the tool for it is installed."""
    tool = shutil.which("addr2line")
    if tool is None or not address:
        return ""
    words = [tool, "-f", "-s", "-e", str(program), hex(address)]
    said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")
    return f"{said[0]} {said[1]}" if len(said) > 1 else ""


def broken(program: Path, wrong: str, where: dict[str, Any]) -> dict[str, Any]:
    return {
        "wrong": wrong,
        "where": where,
        "at": line_of(program, int(where.get("address", 0))),
        "again": again(where) if "scenario" in where else "",
    }


def note(outcome: Outcome, event: dict[str, Any], program: Path) -> None:
    if event["event"] == "broken":
        outcome.broken.append(broken(program, event["wrong"], event["where"]))
    elif event["event"] == "trace":
        outcome.steps = event["steps"]
    elif event["event"] == "nodes":
        outcome.nodes, outcome.pairs, outcome.spared = event["nodes"], event["pairs"], event["spared"]
        outcome.depth, outcome.whole = event["depth"], event["whole"]
    elif event["event"] == "end":
        outcome.tried, outcome.left_path = event["tried"], event["left_path"]
        outcome.images = event["deaths"] + event["quiet"]
        outcome.interrupted = event["interrupted"]


class Work:
    """The drivers that are running, and the effect of an interrupt on them. They are in sessions of their own, so that
    a terminal's Ctrl-C reaches this process alone and none of the processes of a state.
    """

    def __init__(self) -> None:
        self.interrupts = 0
        self.found = False  # what was looked for: the one interrupt that nobody sent
        self.drivers: set[subprocess.Popen[bytes]] = set()
        self.lock = threading.RLock()

    def begin(self, driver: subprocess.Popen[bytes]) -> None:
        with self.lock:
            self.drivers.add(driver)
            if self.interrupts:
                driver.send_signal(signal.SIGINT)

    def end(self, driver: subprocess.Popen[bytes]) -> None:
        with self.lock:
            self.drivers.discard(driver)

    def interrupt(self, *_: object) -> None:
        with self.lock:
            self.interrupts += 1
            for driver in self.drivers:
                driver.send_signal(signal.SIGINT)

    def end_found(self) -> None:
        with self.lock:
            if not self.interrupts:
                self.found = True
                self.interrupt()

    def heed_interrupts(self) -> None:
        """Not where they are ignored: in the background of a script."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self.interrupt)


def show_line(text: str) -> None:
    """In place of the one before."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run(program: Path, order: Order, cpu: int, work: Work, progress: bool, first: bool) -> Outcome:
    """One driver from start to end; every frame is judged as it comes."""
    outcome = Outcome(order.scenario)
    begin = time.monotonic()
    bench = Bench()
    driver = start(program, order.arguments(program, cpu))
    work.begin(driver)
    ended = False
    assert driver.stdout is not None
    try:
        for frame in read_frames(driver.stdout):
            if isinstance(frame, Line):
                note(outcome, frame.event, program)
                if progress and frame.event["event"] == "progress":
                    show_line(f"{order.scenario}: {frame.event['done']} of {frame.event['nodes']} images gone into")
                ended = ended or frame.event["event"] == "end"
            else:
                wrong = judge_calls(frame) if isinstance(frame, History) else bench.judge(frame)
                where = frame.where if isinstance(frame, History) else frame.meta.get("where", {})
                outcome.broken += [broken(program, text, where) for text in wrong[:TOLD]]
            if first and any({"step", "path"} & one["where"].keys() for one in outcome.broken):
                work.end_found()
    finally:
        said = stop(driver)
        work.end(driver)
    if not ended and work.interrupts:
        outcome.interrupted = True
    elif not ended and not outcome.broken:
        outcome.broken.append(
            broken(program, said or f"the driver ended with {driver.returncode}", {"scenario": order.scenario})
        )
    outcome.seconds = time.monotonic() - begin
    return outcome


class Pool:
    """Drivers side by side, each on a processor of its own."""

    def __init__(self, program: Path, jobs: int, progress: bool, first: bool) -> None:
        self.program = program
        self.jobs = jobs
        self.progress = progress
        self.first = first
        self.work = Work()
        self.cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
        usable = sorted(os.sched_getaffinity(0))
        for i in range(jobs):
            self.cpus.put(usable[i % len(usable)])

    def one(self, order: Order) -> Outcome | None:
        """None: it was not begun."""
        cpu = self.cpus.get()
        try:
            if self.work.interrupts:
                return None
            return run(self.program, order, cpu, self.work, self.progress, self.first)
        finally:
            self.cpus.put(cpu)

    def run(self, orders: Sequence[Order]) -> list[Outcome]:
        done: list[Outcome] = []
        with ThreadPoolExecutor(self.jobs) as threads:
            futures = {threads.submit(self.one, order) for order in orders}
            try:
                while futures:
                    # In pieces: an interrupt that comes just before the wait is seen behind it.
                    ended, futures = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
                    done += [outcome for future in ended if (outcome := future.result()) is not None]
                    if ended:
                        self.show(done, len(orders))
            except BaseException:
                threads.shutdown(wait=True, cancel_futures=True)
                raise
        if self.progress:
            show_line("")
        return done

    def show(self, done: Sequence[Outcome], of: int) -> None:
        if self.progress:
            tried, wrong = sum(one.tried for one in done), sum(len(one.broken) for one in done)
            show_line(f"{len(done)} of {of} scenarios, {tried} tried, {wrong} broken")


def spread(pool: Pool, orders: Sequence[Order], long: set[str], dear: set[str], kills: int) -> list[Outcome]:
    """So many steps over all scenarios: what the short and the dear ones cannot use goes to the long ones."""
    short = [order for order in orders if order.scenario not in long]
    rest = [order for order in orders if order.scenario in long]
    share = max(kills // len(orders), 1)

    def part(order: Order) -> int:
        whole = share if rest else kills
        return max(whole // DEARER, 1) if order.scenario in dear and len(orders) > 1 else whole

    outcomes = pool.run([replace(order, budget=part(order)) for order in short])
    left = kills - sum(one.tried for one in outcomes)
    if rest and not pool.work.interrupts:
        outcomes += pool.run([replace(order, budget=max(left // len(rest), 1)) for order in rest])
    return outcomes


def print_table(outcomes: Sequence[Outcome], mode: str) -> None:
    what = {"kill": "kills", "pause": "pauses", "deaths": "deaths"}[mode]
    print(f"{'scenario':22} {'steps':>7} {what:>7} {'images':>7} {'left path':>9} {'broken':>6} {'seconds':>8}")
    for one in outcomes:
        row = f"{one.scenario:22} {one.steps:7} {one.tried:7} {one.images:7} {one.left_path:9}"
        print(f"{row} {len(one.broken):6} {one.seconds:8.1f}")
    sums = [sum(getattr(one, name) for one in outcomes) for name in ("steps", "tried", "images", "left_path")]
    wrong = sum(len(one.broken) for one in outcomes)
    print(f"{'all':22} {sums[0]:7} {sums[1]:7} {sums[2]:7} {sums[3]:9} {wrong:6}")
    if mode == "deaths":
        print(f"{sum(one.nodes for one in outcomes)} distinct images and histories to go on from, ", end="")
        deepest = max((one.depth for one in outcomes), default=0)
        print(f"{sum(one.pairs for one in outcomes)} deaths on them, up to {deepest} in turn")
        spared = sum(one.spared for one in outcomes)
        if spared:
            print(f"{spared} more were not tried: what they leave is like what another death left")
        for one in outcomes:
            if not one.whole:
                print(f"{one.scenario}: more images than are kept; not all of them were gone into")
    if sums[3]:
        print("left path: runs that took another way than the recorded one; they were not tested")


def print_broken(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        for failure in one.broken[:TOLD]:
            print(f"\n{one.scenario}: {failure['wrong']}")
            if failure["at"]:
                print(f"  before {failure['at']}")
            print(f"  again: {failure['again']}")
        if len(one.broken) > TOLD:
            print(f"\n{one.scenario}: {len(one.broken) - TOLD} more")


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/killstep", usage=__doc__, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--pause", action="store_true")
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--closure", action="store_true")
    parser.add_argument("--deaths", type=int, default=MOST_DEATHS)
    parser.add_argument("--begin", choices=BEGINNINGS, default=BEGINNINGS[0])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--slots", action="store_true")
    parser.add_argument("--kills", type=positive, default=DEFAULT_KILLS)
    parser.add_argument("--every", type=not_negative, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--step", type=not_negative, default=-1)
    parser.add_argument("--path", default="")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--source", type=Path, default=None)  # another tree, with a mistake in its core
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def orders_of(options: argparse.Namespace, table: Sequence[Scenario], seed: int) -> list[Order]:
    several = options.two or options.closure or bool(options.path)
    mode = "pause" if options.pause else "deaths" if several else "kill"
    chosen = [one for one in table if not options.only or one.name in options.only]
    if not options.only and (options.slots or several):
        chosen = [one for one in chosen if one.on_slots]
    if not options.only and mode == "pause":
        chosen = [one for one in chosen if not one.steady]
    depth = options.path.count("/") + 1 if options.path else options.deaths if options.closure else 2
    return [
        Order(
            one.name,
            mode,
            options.begin,
            every=options.every,
            step=options.step,
            depth=depth if several else 0,
            alike=options.closure,
            path=options.path,
            seed=seed,
        )
        for one in chosen
    ]


def what_is_wrong(options: argparse.Namespace, table: Sequence[Scenario]) -> str | None:
    """With what was asked for."""
    unknown = set(options.only) - {one.name for one in table}
    if unknown:
        return f"no scenario {', '.join(sorted(unknown))}; --list names all"
    if not 2 <= options.deaths <= MOST_DEATHS:
        return f"--deaths {options.deaths}: give 2 to {MOST_DEATHS}"
    if options.deaths != MOST_DEATHS and not options.closure:
        return f"--deaths {options.deaths} is for --closure; --two is for two"
    if options.pause + options.two + options.closure > 1:
        return "--pause, --two and --closure are three ways to try; give one"
    if options.step >= 0 and len(options.only) != 1:
        return f"--step {options.step} is a step of one scenario; name it with --only"
    if options.pause:
        steady = sorted(one.name for one in table if one.steady and one.name in options.only)
        return f"{', '.join(steady)}: others are kept out on purpose; not with --pause" if steady else None
    return None


def outcomes_of(
    options: argparse.Namespace, pool: Pool, orders: Sequence[Order], table: Sequence[Scenario]
) -> list[Outcome]:
    long, dear = {one.name for one in table if one.long}, {one.name for one in table if one.dear}
    whole = orders[0].mode == "deaths" or options.all or options.every or options.step >= 0
    outcomes = pool.run(orders) if whole else spread(pool, orders, long, dear, options.kills)
    place = {order.scenario: i for i, order in enumerate(orders)}
    return sorted(outcomes, key=lambda one: place[one.scenario])


def main(arguments: Sequence[str]) -> int:
    options = options_of(arguments)
    if options.help:
        print(__doc__)
        return 0
    try:
        program = build() if options.source is None else build(options.source, options.source / "build")
    except BuildFailed as error:
        print(f"killstep: {error}", file=sys.stderr)
        return 2
    table = scenarios(program)
    if options.list:
        print("\n".join(one.name for one in table))
        return 0
    reason = what_is_wrong(options, table) or why_ptrace_is_forbidden(program)
    if reason is not None:
        print(f"killstep: {reason}", file=sys.stderr)
        return 2
    seed = options.seed if options.seed is not None else secrets.randbits(32)
    orders = orders_of(options, table, seed)
    pool = Pool(program, options.jobs, sys.stderr.isatty(), options.first)
    pool.work.heed_interrupts()
    outcomes = outcomes_of(options, pool, orders, table)
    interrupted = pool.work.interrupts > pool.work.found
    if options.step > outcomes[0].steps > 0:
        print(f"killstep: {outcomes[0].scenario} has the steps 0 to {outcomes[0].steps}", file=sys.stderr)
        return 2
    if options.json:
        results = {"seed": seed, "interrupted": interrupted, "outcomes": [asdict(one) for one in outcomes]}
        print(json.dumps(results))
    else:
        print_table(outcomes, orders[0].mode)
        print(f"seed {seed}")
        print_broken(outcomes)
    if interrupted:
        whole = sum(not one.interrupted for one in outcomes)
        print(f"killstep: interrupted; {whole} of {len(orders)} scenarios were finished", file=sys.stderr)
        return INTERRUPTED
    return int(any(one.broken for one in outcomes))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # before there was anything to tell
        print("killstep: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
