"""Rules for the line of blocked producers, which hold at any moment."""

from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from checker.image import Image
from checker.layout import QUEUE, TICKET, TICKETS
from checker.queue import Queue
from checker.violation import Findings
from checker.words import ENTRY_LIVE, ROW_FREE

FREE, STATES = 0, 4
LAP_BITS = 24


@dataclass(frozen=True)
class Ticket:
    number: int  # of it among the tickets
    state: int
    row: int


@dataclass(frozen=True)
class Line:
    """The line of one queue: its word, and the words of its tickets, which lie at the beginning of the queue's run."""

    front: int
    end: int
    words: NDArray[numpy.uint64]

    @property
    def length(self) -> int:
        return (self.end - self.front) % (1 << 32)

    @property
    def held(self) -> list[Ticket]:
        words = self.words
        return [
            Ticket(i, int(words[i]) & 0xFF, int(words[i]) >> 8 & 0xFFFF) for i in (words & 0xFF).nonzero()[0].tolist()
        ]


def line_of(queue: Queue) -> Line:
    image, word = queue.image, queue.image.u64(queue.page + QUEUE["line"])
    words = image.words_at(queue.rings[0].geometry.run, TICKETS * TICKET.bytes // 8)
    return Line(word >> 32, word & 0xFFFFFFFF, words[:: TICKET.bytes // 8])


def judge_line(queue: Queue, findings: Findings) -> None:
    line = line_of(queue)
    if line.front == line.end == 0 and not numpy.count_nonzero(line.words):
        return  # nobody ever stood in it
    good = findings.expect(line.length <= TICKETS, "line.length", queue.title, f"{line.length} in line")
    low = line.words & 0xFFFFFFFF
    odd = (low >= STATES) & ((low & 0xFF == FREE) | (low & 0xFF >= STATES) | (low >> 24 != 0))
    for number in numpy.flatnonzero(odd | (line.words >> (32 + LAP_BITS) != 0)):
        findings.add("line.ticket", queue.title, f"ticket {number} is 0x{int(line.words[number]):016x}")
    if good:
        judge_laps(queue, line, findings)
    if queue.entry.state == ENTRY_LIVE:
        judge_holders(queue.image, queue, line, findings)


def judge_laps(queue: Queue, line: Line, findings: Findings) -> None:
    """A ticket in line was used at its lap, and no other one but that under the end, which may lag behind it."""
    places = numpy.arange(TICKETS, dtype=numpy.int64)
    laps, free = (line.words >> 32).astype(numpy.int64), line.words & 0xFF == FREE
    coming = line.end + (places - line.end) % TICKETS
    in_line = line.end - (coming - TICKETS) <= line.length
    ahead = (laps - ((coming - TICKETS * in_line) % (1 << 32)) // TICKETS) % (1 << LAP_BITS)
    used = ((ahead == 0) & ~free) | ((ahead == 1) & free)
    unused = (ahead == 0) & free
    under_end = coming == line.end
    good = numpy.where(in_line, used, unused | (under_end & used))
    for number in numpy.flatnonzero(~good):
        text = f"ticket {number}, 0x{int(line.words[number]):016x}, {line.front} to {line.end}"
        findings.add("line.lap", queue.title, text)


def judge_holders(image: Image, queue: Queue, line: Line, findings: Findings) -> None:
    """The holder of a ticket has a row, and says that it uses the queue: else no reaper takes the ticket back."""
    for ticket in line.held:
        known = ticket.row < image.process_high and image.processes[ticket.row].state != ROW_FREE
        text = f"ticket {ticket.number} of process row {ticket.row}"
        if findings.expect(known, "line.holder", queue.title, f"{text}, which is in nobody's use"):
            attached = image.is_attached(ticket.row, queue.entry.index, queue.entry.incarnation)
            findings.expect(attached, "line.holder", queue.title, f"{text}, which does not say that it uses the queue")
