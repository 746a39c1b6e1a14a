"""Where the instructions of a program are, which of them may write to memory other than its stack, and which repeat
themselves: read from its disassembly."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy

INSTRUCTION = re.compile(
    r"^\s*([0-9a-f]+):\t((?:lock |rep[a-z]* |bnd |notrack |data16 |cs |ds )*)([a-z][a-z0-9.]*)\s*(.*)$"
)
# As native/killstep/code.h has them: in the upper byte of the address.
KIND_SHIFT, ANY, WRITES, REPEATS = 56, 1, 2, 4
# They have a memory operand at their end, and only read it.
READERS = re.compile(
    r"^(cmp[bwlq]?|test[bwlq]?|lea[lq]?|nop[wlq]?|bt[wlq]?|jmp|call|push|prefetch\w*|v?u?comis[sd]|v?ptest|"
    r"i?mul[bwlq]?|i?div[bwlq]?|fld\w*|fild\w*|v?ldmxcsr|endbr64|ret|fcom\w*)$"
)
STACK = re.compile(r"^-?(?:0x[0-9a-f]+)?\(%rsp\)$")


def last_operand(operands: str) -> str:
    """Commas inside parentheses part nothing."""
    depth, start = 0, 0
    for i, character in enumerate(operands):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            start = i + 1
    return operands[start:].strip()


def may_write(name: str, operands: str) -> bool:
    """Rather one too many: what is not known as a reader counts."""
    if name == "syscall":
        return True
    target = last_operand(operands.split("#")[0].split("<")[0].strip())
    is_memory = "(" in target or re.fullmatch(r"(%[a-z]s:)?0x[0-9a-f]+", target) is not None
    return is_memory and not READERS.match(name) and not STACK.match(target) and not name.startswith("j")


class Instruction(NamedTuple):
    address: int
    prefixes: str
    name: str
    operands: str

    @property
    def kind(self) -> int:
        writes = WRITES if may_write(self.name, self.operands) else 0
        return ANY | writes | (REPEATS if "rep" in self.prefixes else 0)


def instruction_of(line: str) -> Instruction | None:
    """Of a line of the disassembly."""
    match = INSTRUCTION.match(line)
    return Instruction(int(match.group(1), 16), *match.group(2, 3, 4)) if match is not None else None


def disassembled(program: Path) -> list[Instruction] | None:
    """In the order of their addresses; None: there is no disassembler here."""
    tool = shutil.which("objdump")
    if tool is None:
        return None
    words = [tool, "-d", "--no-show-raw-insn", str(program)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = [instruction for line in text.splitlines() if (instruction := instruction_of(line)) is not None]
    return sorted(found)


def write_instructions(instructions: Iterable[Instruction], to: Path) -> None:
    """Writes the addresses, 8 bytes each, with their kinds."""
    words = [instruction.kind << KIND_SHIFT | instruction.address for instruction in instructions]
    new = to.with_suffix(".new")
    numpy.array(words, numpy.uint64).tofile(new)
    new.replace(to)
