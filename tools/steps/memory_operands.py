"""Which memory the instructions of a program touch, as base, index, scale and displacement: from its disassembly."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy

from steps.instructions import Instruction

# In the order in which instructions number them.
REGISTERS = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16))]
NONE = len(REGISTERS)
OPERAND = re.compile(r"(?<![\w:*])(-?0x[0-9a-f]+)?\((?:%(\w+))?(?:,%(\w+),([1248]))?\)")
# They only compute an address, hint at one, or touch the stack as well.
NO_ACCESS = re.compile(r"^(lea[lq]?|nop[wlq]?|prefetch\w*|call|push|pop|jmp|v?maskmov\w*|v?p?gather\w*)$")

# As native/killstep/operands.h has it.
RECORD = numpy.dtype(
    [
        ("instruction", numpy.uint64),
        ("displacement", numpy.int64),
        ("base", numpy.uint8),
        ("index", numpy.uint8),
        ("scale", numpy.uint8),
        ("unused", numpy.uint8, 5),
    ]
)
Operand = tuple[int, int, int, int]  # displacement, base, index, scale


def number_of(register: str | None) -> int | None:
    """Only whole registers: nothing else makes an address of shared memory."""
    if register is None:
        return NONE
    return REGISTERS.index(register) if register in REGISTERS else None


def operand_of(name: str, operands: str) -> Operand | None:
    """The one operand in memory that is given by registers; None: none, or not one that can be told."""
    found = OPERAND.findall(operands.split("#")[0])
    if len(found) != 1 or NO_ACCESS.match(name) or "%es:" in operands:
        return None
    displacement, base, index, scale = found[0]
    numbers = number_of(base or None), number_of(index or None)
    if numbers[0] is None or numbers[1] is None or numbers == (NONE, NONE):
        return None
    return int(displacement or "0", 16), numbers[0], numbers[1], int(scale or "0")


def write_operands(instructions: Iterable[Instruction], to: Path) -> None:
    """Writes a record for each instruction with such an operand, in the order of their addresses."""
    found = [
        (instruction.address, *operand, (0,) * 5)
        for instruction in instructions
        if (operand := operand_of(instruction.name, instruction.operands)) is not None
    ]
    new = to.with_suffix(".new")
    numpy.sort(numpy.array(found, RECORD), order="instruction").tofile(new)
    new.replace(to)
