"""Judges a segment: tools/judge IMAGE|NAME [--quiet] [--dead ROWS] [--entries QUEUE] [--json]

IMAGE is a file that holds the bytes of a segment, NAME a segment below /dev/shm. A segment in use changes while it is
read, so what is found there is certain only if its processes stand still. Exit code 1 if anything was found, 2 if there
is no such segment.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from checker import Image, Unreadable, Violation, entries, judge, judge_quiet
from checker.words import ROW_LIVE

SHARED_MEMORY = Path("/dev/shm")


def rows(text: str) -> set[int]:
    try:
        return {int(part) for part in text.split(",") if part}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of row numbers such as 3,4") from None


def arguments_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/judge", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("segment", metavar="IMAGE|NAME", help="a file, or the name of a segment below /dev/shm")
    parser.add_argument("--dead", type=rows, metavar="ROWS", help="process rows whose processes have died: 3,4")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="nobody is inside an operation, and the dead have been reaped: stricter. Every row that is LIVE lives",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads at work in each that died (1)")
    parser.add_argument("--entries", metavar="QUEUE", help="show the messages of a queue instead")
    parser.add_argument("--repeat", type=int, metavar="N", help="judge N times and say how long one takes, on stderr")
    parser.add_argument("--json", action="store_true", help="one JSON document on the standard output")
    return parser.parse_args(arguments)


def path_of(segment: str) -> Path:
    path = Path(segment)
    return path if "/" in segment or path.exists() else SHARED_MEMORY / segment


def show_violations(violations: list[Violation], as_json: bool) -> int:
    if as_json:
        print(json.dumps([dataclasses.asdict(violation) for violation in violations], indent=1))
    else:
        for violation in violations:
            print(violation)
        print(f"{len(violations)} violations" if violations else "nothing found")
    return int(bool(violations))


def show_entries(image: Image, queue: str, as_json: bool) -> int:
    try:
        messages = entries(image, queue)
    except KeyError:
        print(f"judge: no queue {queue!r}", file=sys.stderr)
        return 2
    if as_json:
        plain = [dataclasses.asdict(m) | {"headers": m.headers.hex(), "body": m.body.hex()} for m in messages]
        print(json.dumps(plain, indent=1))
    else:
        for m in messages:
            marks = "R" if m.redelivered else "-"
            print(f"{m.position:>12} {m.state:10} {marks} attempts {m.delivery} deaths {m.deaths} {m.body[:40]!r}")
    return 0


def main(arguments: Sequence[str]) -> int:
    options = arguments_of(arguments)
    try:
        image = Image.of_file(path_of(options.segment))
    except (OSError, Unreadable) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    if options.entries is not None:
        return show_entries(image, options.entries, options.json)
    if options.repeat:
        seconds = sorted(timed(image, options) for _ in range(options.repeat))
        print(f"judge: {seconds[len(seconds) // 2] * 1e3:.2f} ms, median of {len(seconds)}", file=sys.stderr)
    return show_violations(verdict(image, options), options.json)


def verdict(image: Image, options: argparse.Namespace) -> list[Violation]:
    if options.quiet:
        live = {process.row for process in image.processes if process.state == ROW_LIVE}
        return judge_quiet(image, live, options.threads)
    return judge(image, options.dead)


def timed(image: Image, options: argparse.Namespace) -> float:
    """Of the same bytes, read anew: as one more image of a series that differs in little."""
    begin = time.perf_counter()
    verdict(Image(image.bytes), options)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
