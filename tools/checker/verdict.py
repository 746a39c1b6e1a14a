"""The judge: is there anything in this segment that must not be?"""

from collections.abc import Collection

from checker.blocks import judge_blocks
from checker.consumers import Consumers, count_held, judge_consumers, judge_held
from checker.directory import judge_directory
from checker.flow import judge_flow
from checker.granules import judge_granules
from checker.groups import judge_groups
from checker.header import judge_header
from checker.image import Image
from checker.layout import SEGMENT
from checker.limits import judge_limits
from checker.line import judge_line
from checker.messages import judge_all_ids, judge_messages
from checker.processes import judge_processes
from checker.queue import Queue, rings_of
from checker.quiet import Slack, judge_rest
from checker.slots import judge_ring
from checker.violation import Findings, Violation
from checker.words import ENTRY_LIVE, ROW_REAPING


def judge(image: Image, dead_rows: Collection[int] | None = None) -> list[Violation]:
    """Breaches of the rules that hold at any instant, amid any operation, and with dead processes not reaped yet.

    `dead_rows`: all process rows whose processes have died; None: not known. Only the dead are reaped.
    """
    return judge_and_tell(image, dead_rows)[0]


def judge_and_tell(image: Image, dead_rows: Collection[int] | None = None) -> tuple[list[Violation], list[Queue]]:
    """And the queues, for a caller that has more to ask."""
    findings = Findings()
    queues, _, _ = look(image, findings)
    if dead_rows is not None:
        judge_reaping(image, dead_rows, findings)
    return findings.violations, queues


def judge_quiet(image: Image, live_rows: Collection[int], threads: int = 1) -> list[Violation]:
    """The same, and what must hold besides when nobody is inside an operation and all dead have been reaped.

    `live_rows` are the process rows of the living; `threads`: how many any of the dead had at work at once.
    """
    return judge_quiet_and_tell(image, live_rows, threads)[0]


def judge_quiet_and_tell(
    image: Image, live_rows: Collection[int], threads: int = 1
) -> tuple[list[Violation], list[Queue]]:
    findings = Findings()
    queues, consumers, held = look(image, findings)
    judge_reaping(image, (), findings)
    slack = Slack(deaths=image.u64(SEGMENT["deaths"]), threads=threads)
    judge_rest(image, queues, consumers, held, live_rows, slack, findings)
    return findings.violations, queues


def judge_reaping(image: Image, dead: Collection[int], findings: Findings) -> None:
    for process in image.processes:
        if process.state == ROW_REAPING and process.row not in dead:
            findings.add("process.reaping", f"process row {process.row}", "is being reaped, and lives")


def look(image: Image, findings: Findings) -> tuple[list[Queue], list[Consumers], dict[int, int]]:
    judge_header(image, findings)
    judge_processes(image, findings)
    queues = judge_directory(image, findings)
    judge_granules(image, queues, findings)
    held: dict[int, int] = {}
    consumers = []
    for queue in queues:
        for ring in queue.rings:
            judge_ring(ring, findings)
            judge_messages(ring, findings)
        judge_flow(queue, findings)
        judge_limits(queue, findings)
        judge_line(queue, findings)
        judge_groups(queue, findings)
        found = judge_consumers(image, queue, findings)
        if queue.entry.state == ENTRY_LIVE:
            count_held(found, held)
        consumers.append(found)
    rings = rings_of(queues)
    judge_all_ids(rings, findings)
    judge_held(image, held, findings)
    judge_blocks(image, rings, findings)
    return queues, consumers, held
