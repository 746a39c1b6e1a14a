"""Which memory an instruction touches: a wrong one would only make a kill dear, a right one makes it cheap."""

from pathlib import Path

import numpy
import pytest

from steps.instructions import instruction_of
from steps.memory_operands import NONE, RECORD, REGISTERS, operand_of, write_operands

RDI, RDX, RCX, RAX, R12 = (REGISTERS.index(name) for name in ("rdi", "rdx", "rcx", "rax", "r12"))
TOLD = {
    "mov    0x8(%rdx),%rax": (8, RDX, NONE, 0),
    "mov    %eax,(%rdi,%rcx,8)": (0, RDI, RCX, 8),
    "lock cmpxchg %rcx,-0x10(%rdx)": (-16, RDX, NONE, 0),
    "vmovdqu %ymm0,-0x20(%rdi,%rdx,1)": (-32, RDI, RDX, 1),
    "mov    0x4b2060(,%rax,8),%rdx": (0x4B2060, NONE, RAX, 8),
    "cmpq   $0x0,(%r12)": (0, R12, NONE, 0),
}
NOT_TOLD = [
    "mov    %rax,%rdx",
    "lea    0x8(%rdx),%rax",
    "nopw   0x0(%rax,%rax,1)",
    "call   *0x10(%rax)",
    "jmp    *0x4a0000(,%rax,8)",
    "push   0x8(%rdi)",
    "mov    0x2b8e(%rip),%rax        # 4b2060 <the_board>",
    "mov    %fs:0x10(%rax),%rdx",
    "rep stos %al,%es:(%rdi)",
    "movsq  %ds:(%rsi),%es:(%rdi)",
]


def told(instruction: str) -> tuple[int, int, int, int] | None:
    found = instruction_of(f"  401000:\t{instruction}")
    assert found is not None, instruction
    return operand_of(found.name, found.operands)


@pytest.mark.parametrize("instruction", TOLD)
def test_an_operand_in_memory_is_told_by_its_registers(instruction: str) -> None:
    assert told(instruction) == TOLD[instruction]


@pytest.mark.parametrize("instruction", NOT_TOLD)
def test_what_touches_no_memory_or_not_by_registers_alone_is_left_out(instruction: str) -> None:
    assert told(instruction) is None


def test_the_records_are_in_the_order_of_their_instructions_and_as_large_as_the_driver_reads_them(
    tmp_path: Path,
) -> None:
    lines = ["402000:\tmov (%rdi),%rax", "401000:\tmov 0x8(%rdx),%rax", "401004:\tret"]
    instructions = [found for line in lines if (found := instruction_of(line)) is not None]
    write_operands(instructions, tmp_path / "table")
    assert (tmp_path / "table").stat().st_size == 2 * 24
    records = numpy.fromfile(tmp_path / "table", RECORD)
    assert records["instruction"].tolist() == [0x401000, 0x402000]
    assert records["displacement"].tolist() == [8, 0]
