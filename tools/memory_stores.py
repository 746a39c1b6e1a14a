"""Which instructions of a program may write to memory other than its stack: read from its disassembly."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy

INSTRUCTION = re.compile(
    r"^\s*([0-9a-f]+):\t(?:lock |rep[a-z]* |bnd |notrack |data16 |cs |ds )*([a-z][a-z0-9.]*)\s*(.*)$"
)
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


def disassembled(program: Path) -> list[tuple[int, str, str]] | None:
    """Address, name and operands of each instruction; None: there is no disassembler here."""
    tool = shutil.which("objdump")
    if tool is None:
        return None
    words = [tool, "-d", "--no-show-raw-insn", "--section=.text", str(program)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = map(INSTRUCTION.match, text.splitlines())
    return [(int(match.group(1), 16), match.group(2), match.group(3)) for match in found if match is not None]


def write_stores(instructions: Iterable[tuple[int, str, str]], to: Path) -> None:
    """Writes the addresses, 8 bytes each."""
    found = [address for address, name, operands in instructions if may_write(name, operands)]
    new = to.with_suffix(".new")
    numpy.array(found, numpy.uint64).tofile(new)
    new.replace(to)
