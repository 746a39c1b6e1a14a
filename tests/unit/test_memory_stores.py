"""Which instructions count as stores: one too few would let a death go untried."""

import pytest
from memory_stores import INSTRUCTION, may_write

WRITERS = [
    "mov    %rax,0x8(%rdx)",
    "mov    %eax,(%rdi,%rcx,8)",
    "lock cmpxchg %rcx,(%rdx)",
    "lock or %rax,0x40(%rbx)",
    "xchg   %rax,(%rbx)",
    "vmovdqu %ymm0,-0x20(%rdi,%rdx,1)",
    "rep stos %al,%es:(%rdi)",
    "movl   $0x0,0x2b8e(%rip)        # 4b2060 <the_board>",
    "syscall",
    "addq   $0x1,%fs:0x10",
    "sete   0x1(%rbx)",
    "incl   (%rax)",
]
READERS = [
    "mov    0x8(%rdx),%rax",
    "cmp    %rax,(%rdx)",
    "test   %al,0x8(%rdi)",
    "lea    0x8(%rdx),%rax",
    "nopw   0x0(%rax,%rax,1)",
    "mov    %rax,0x18(%rsp)",
    "call   *0x10(%rax)",
    "jmp    *0x4a0000(,%rax,8)",
    "push   0x8(%rdi)",
    "prefetcht0 (%rdi)",
    "ret",
    "vpcmpeqb (%rdi),%ymm16,%k0",
]


def verdict(instruction: str) -> bool:
    match = INSTRUCTION.match(f"  401000:\t{instruction}")
    assert match is not None, instruction
    return may_write(match.group(2), match.group(3))


@pytest.mark.parametrize("instruction", WRITERS)
def test_what_may_write_to_memory_is_a_store(instruction: str) -> None:
    assert verdict(instruction)


@pytest.mark.parametrize("instruction", READERS)
def test_what_only_reads_or_writes_to_its_own_stack_is_none(instruction: str) -> None:
    assert not verdict(instruction)
