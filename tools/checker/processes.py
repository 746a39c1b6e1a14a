"""Rules for the process table, which hold at any moment: rows, pins, counters."""

from collections.abc import Iterator
from dataclasses import dataclass

from checker.image import Image, Process
from checker.layout import COUNTERS, PINS, PROCESS, PROCESS_PAGE, SEGMENT
from checker.violation import Findings
from checker.words import ROW_CLOSING, ROW_FREE, ROW_LIVE, ROW_REAPING, TENTATIVE, VIEW_BITS, VIEW_SHIFT


@dataclass(frozen=True)
class Pin:
    """A cell of a process's pin table that is not empty."""

    process: Process
    number: int
    cell: int
    generation: int

    @property
    def offset(self) -> int:
        return (self.cell & (1 << 40) - 1) << 6

    @property
    def view(self) -> int:
        """View bit + 1."""
        return self.cell >> 40 & 0xFF

    @property
    def mark(self) -> int:
        return self.cell >> 48

    @property
    def where(self) -> str:
        return f"process row {self.process.row} pin {self.number}"


def pins_of(image: Image, process: Process) -> Iterator[Pin]:
    if image.is_page(process.pins):
        pairs = image.words_at(process.pins, 2 * PINS)
        for number in pairs[0::2].nonzero()[0].tolist():
            yield Pin(process, number, int(pairs[2 * number]), int(pairs[2 * number + 1]))


def judge_processes(image: Image, findings: Findings) -> None:
    memory_waiting = 0
    named: dict[tuple[int, int, int], str] = {}
    for process in image.processes:
        judge_row(image, findings, process)
        memory_waiting += image.u32(process.offset + PROCESS["memory_waiting"])
        for pin in pins_of(image, process):
            judge_pin(image, findings, pin, named)
    waiters = image.u32(SEGMENT["memory_waiters"])
    findings.expect(
        waiters >= memory_waiting,
        "header.memory_waiters",
        "header",
        f"{waiters} waiters for memory, the rows say {memory_waiting}",
    )


def judge_row(image: Image, findings: Findings, process: Process) -> None:
    where = f"process row {process.row}"
    good = process.state <= ROW_REAPING and process.word >> 8 & 0xFFFFFF == 0
    findings.expect(good, "process.word", where, f"0x{process.word:016x}")
    page = process.pins
    if page == 0:
        never = process.state not in (ROW_LIVE, ROW_CLOSING)
        findings.expect(never, "process.page", where, "in use without a page of its own")
        return
    if not findings.expect(image.is_page(page), "process.page", where, f"0x{page:x} is no page"):
        return
    if process.state in (ROW_LIVE, ROW_CLOSING):
        cells = image.u32(process.offset + PROCESS["pin_cells"])
        findings.expect(cells == PINS, "process.page", where, f"{cells} pin cells")
        counters = image.u64(process.offset + PROCESS["counters"])
        wanted = page + PROCESS_PAGE["chunks"]
        findings.expect(counters == wanted, "process.page", where, f"counters at 0x{counters:x}, not 0x{wanted:x}")
    for i, chunk in enumerate(image.words_at(page + PROCESS_PAGE["chunks"], 64).tolist()):
        if chunk != 0:
            findings.expect(image.is_page(chunk), "process.chunk", where, f"chunk {i} at 0x{chunk:x} is no page")
    for entry in image.entries:
        line = image.line(process, entry.index)
        attached = image.u64(line + COUNTERS["attached"]) if line is not None else 0
        findings.expect(
            attached <= entry.incarnation + 1,
            "process.attached",
            where,
            f"uses incarnation {attached - 1} of queue {entry.index}, which has come to {entry.incarnation}",
        )
        unused = process.state != ROW_FREE or attached == 0
        findings.expect(unused, "process.free", where, f"FREE, and says that it uses queue {entry.index}")


def judge_pin(image: Image, findings: Findings, pin: Pin, named: dict[tuple[int, int, int], str]) -> None:
    """A cell is cleared before its bit is dropped, and says which bit only after that was taken."""
    state, generation = pin.process.state, pin.process.generation
    if state not in (ROW_LIVE, ROW_CLOSING, ROW_REAPING):
        findings.expect(state != ROW_FREE, "pin.row", pin.where, "a pin in a row that is FREE")
        return
    findings.expect(pin.mark == generation & 0xFFFF, "pin.row", pin.where, f"of generation {pin.mark} of the row")
    if pin.view == TENTATIVE:
        return
    if not findings.expect(1 <= pin.view <= VIEW_BITS, "pin.cell", pin.where, f"0x{pin.cell:016x}"):
        return
    place = image.block_at(pin.offset)
    if not findings.expect(place is not None, "pin.block", pin.where, f"no block begins at 0x{pin.offset:x}"):
        return
    assert place is not None
    word = int(place[0].words[place[1]])
    there = word >> 32 == pin.generation and word >> (VIEW_SHIFT + pin.view - 1) & 1
    findings.expect(
        there,
        "pin.block",
        pin.where,
        f"view {pin.view - 1} of generation {pin.generation} at 0x{pin.offset:x}, whose word is 0x{word:016x}",
    )
    other = named.setdefault((pin.offset, pin.generation, pin.view), pin.where)
    findings.expect(other == pin.where, "pin.twice", pin.where, f"the same view of 0x{pin.offset:x} as {other}")
