#include "stores.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#define BREAKPOINT 0xccu

struct stores {
    uint64_t first, end;     /* of the pages that hold any */
    unsigned char *original; /* the code from first to end */
    unsigned char *patched;  /* the same with the breakpoints */
    uint64_t count;
};

stores *stores_read(const char *path) {
    static stores list;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    uint64_t *addresses = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (addresses == NULL || pread(fd, addresses, (size_t)bytes, 0) != bytes || bytes % 8 != 0) {
        die("cannot read %s", path);
    }
    close(fd);
    list.count = (uint64_t)bytes / 8;
    list.first = UINT64_MAX;
    for (uint64_t i = 0; i < list.count; i++) {
        uint64_t page = addresses[i] & ~(uint64_t)(STAGE_PAGE - 1);
        list.first = page < list.first ? page : list.first;
        list.end = page + STAGE_PAGE > list.end ? page + STAGE_PAGE : list.end;
    }
    size_t length = list.end - list.first;
    list.original = own_memory(length);
    list.patched = own_memory(length);
    memcpy(list.original, (const void *)(uintptr_t)list.first, length); /* our code is the victim's */
    memcpy(list.patched, list.original, length);
    for (uint64_t i = 0; i < list.count; i++) {
        list.patched[addresses[i] - list.first] = BREAKPOINT;
    }
    free(addresses);
    return &list;
}

bool stores_may_write(const stores *list, uint64_t address) {
    return address < list->first || address >= list->end || list->patched[address - list->first] == BREAKPOINT;
}

static void patch_all(pid_t pid, const stores *list) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (uint64_t at = list->first; fd >= 0 && at < list->end; at += STAGE_PAGE) {
        const unsigned char *page = list->patched + (at - list->first);
        if (memcmp(page, list->original + (at - list->first), STAGE_PAGE) != 0 &&
            pwrite(fd, page, STAGE_PAGE, (off_t)at) != STAGE_PAGE) {
            die("cannot write to a victim's code: %s", strerror(errno));
        }
    }
    if (fd < 0) {
        die("cannot open %s", path);
    }
    close(fd);
}

/* The word of code around an address, with or without the breakpoint at that address. */
static void write_code(pid_t pid, const stores *list, uint64_t address, bool with_breakpoint) {
    uint64_t at = address & ~UINT64_C(7);
    unsigned char word[8];
    memcpy(word, list->patched + (at - list->first), 8);
    if (!with_breakpoint) {
        word[address - at] = list->original[address - list->first];
    }
    uint64_t value;
    memcpy(&value, word, 8);
    if (ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)at, (void *)(uintptr_t)value) != 0) {
        die("cannot write to a victim's code: %s", strerror(errno));
    }
}

/* Executes the one instruction at the breakpoint; one that repeats itself, to its end. */
static bool step_over(pid_t pid, const stores *list, uint64_t address) {
    void *rip = (void *)offsetof(struct user, regs.rip);
    write_code(pid, list, address, false);
    if (ptrace(PTRACE_POKEUSER, pid, rip, (void *)(uintptr_t)address) != 0) {
        return false;
    }
    do {
        if (!tracee_single_step(pid)) {
            return false;
        }
    } while (the_board->finished == 0 && tracee_address(pid) == address);
    write_code(pid, list, address, true);
    return true;
}

void stores_record(stage *s, const victim_plan *plan, const stores *list, trace *t) {
    trace_begin(t, true);
    stage_restore(s);
    pid_t pid = tracee_start(s, plan);
    patch_all(pid, list);
    uint64_t before = tracee_state_key(s, 0);
    uint8_t changed = 1;
    for (;;) {
        if (!tracee_continue(pid)) {
            die("a victim has ended amid its operation, after %u stores", t->steps);
        }
        if (the_board->finished != 0) {
            break;
        }
        uint64_t address = tracee_address(pid) - 1;
        if (address < list->first || address >= list->end || list->patched[address - list->first] != BREAKPOINT) {
            die("a victim stops where no breakpoint is");
        }
        trace_add(t, address, 0, changed);
        if (!step_over(pid, list, address)) {
            die("a victim has ended amid its operation, at store %u", t->steps);
        }
        uint64_t now = tracee_state_key(s, t->steps);
        changed = now != before;
        before = now;
        if (the_board->finished != 0) {
            break;
        }
    }
    trace_end(t, 0);
    tracee_kill(pid);
}
