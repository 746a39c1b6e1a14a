"""Which instructions count as stores: one too few would let a death go untried; and which are instructions at all."""

import pytest

from steps.instructions import ANY, REPEATS, WRITES, Instruction, instruction_of

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


def kind_of(text: str) -> int:
    instruction = instruction_of(f"  401000:\t{text}")
    assert isinstance(instruction, Instruction), text
    assert instruction.address == 0x401000
    return instruction.kind


@pytest.mark.parametrize("instruction", WRITERS)
def test_what_may_write_to_memory_is_a_store(instruction: str) -> None:
    assert kind_of(instruction) & ~REPEATS == ANY | WRITES


@pytest.mark.parametrize("instruction", READERS)
def test_what_only_reads_or_writes_to_its_own_stack_is_none(instruction: str) -> None:
    assert kind_of(instruction) == ANY


def test_what_repeats_itself_is_known_by_its_prefix() -> None:
    assert kind_of("rep stos %al,%es:(%rdi)") & REPEATS
    assert kind_of("repnz scas %es:(%rdi),%al") & REPEATS
    assert not kind_of("lock xadd %rax,(%rdx)") & REPEATS


@pytest.mark.parametrize("line", ["", "0000000000401000 <main>:", "  401000:\t(bad)", "        ..."])
def test_what_is_no_instruction_is_passed_by(line: str) -> None:
    assert instruction_of(line) is None
