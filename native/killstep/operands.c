#include "operands.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include "stage.h"

operands *operands_read(const char *path) {
    static operands list;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    operand *records = bytes > 0 ? own_memory((uint64_t)bytes) : NULL;
    if (records == NULL || pread(fd, records, (size_t)bytes, 0) != bytes || bytes % (off_t)sizeof(operand) != 0) {
        die("cannot read %s", path);
    }
    close(fd);
    list = (operands){.first = records, .count = (uint64_t)bytes / sizeof(operand)};
    return &list;
}

static const operand *operand_of(const operands *list, uint64_t instruction) {
    uint64_t low = 0, high = list->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (list->first[middle].instruction < instruction) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < list->count && list->first[low].instruction == instruction ? &list->first[low] : NULL;
}

static uint64_t value_of(const struct user_regs_struct *registers, uint8_t number) {
    const unsigned long long values[OPERAND_REGISTERS] = {
        registers->rax, registers->rcx, registers->rdx, registers->rbx, registers->rsp, registers->rbp,
        registers->rsi, registers->rdi, registers->r8,  registers->r9,  registers->r10, registers->r11,
        registers->r12, registers->r13, registers->r14, registers->r15};
    return number < OPERAND_REGISTERS ? values[number] : 0;
}

bool operands_touched(const operands *list, pid_t pid, uint64_t instruction, uint64_t *address) {
    struct user_regs_struct registers;
    const operand *o = operand_of(list, instruction);
    if (o == NULL || ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0) {
        return false;
    }
    *address = value_of(&registers, o->base) + value_of(&registers, o->index) * o->scale + (uint64_t)o->displacement;
    return true;
}
