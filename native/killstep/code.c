#include "code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "stage.h"

#define BREAKPOINT 0xccu
#define KIND_SHIFT 56
#define ADDRESS_MASK ((UINT64_C(1) << KIND_SHIFT) - 1)

code *code_read(const char *path) {
    static code list;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    uint64_t *words = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (words == NULL || pread(fd, words, (size_t)bytes, 0) != bytes || bytes % 8 != 0) {
        die("cannot read %s", path);
    }
    close(fd);
    uint64_t count = (uint64_t)bytes / 8, page = STAGE_PAGE;
    list.first = (words[0] & ADDRESS_MASK) / page * page;
    list.end = (words[count - 1] & ADDRESS_MASK) / page * page + page;
    list.kinds = own_memory(list.end - list.first);
    for (uint64_t i = 0; i < count; i++) {
        list.kinds[(words[i] & ADDRESS_MASK) - list.first] = (uint8_t)(words[i] >> KIND_SHIFT);
    }
    list.original = (const unsigned char *)(uintptr_t)list.first;
    free(words);
    return &list;
}

uint8_t code_kind(const code *c, uint64_t address) {
    return address >= c->first && address < c->end ? c->kinds[address - c->first] : 0;
}

void code_has_changed(code *c, uint64_t address) {
    uint8_t *kind = &c->kinds[address - c->first];
    if ((*kind & CODE_CHANGES) == 0) {
        *kind |= CODE_CHANGES;
        c->broken_kinds = 0; /* breakpoints are to be laid out anew */
    }
}

uint64_t code_behind(const code *c, uint64_t address) {
    do {
        address += 1;
    } while (address < c->end && code_kind(c, address) == 0);
    return address;
}

static bool is_broken(const breakpoints *b, uint64_t address) {
    return address == b->extra || (address != b->open && (code_kind(b->code, address) & b->kinds) != 0);
}

static void poke(pid_t pid, uint64_t at, const unsigned char bytes[8]) {
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    if (ptrace(PTRACE_POKEDATA, pid, (void *)(uintptr_t)at, (void *)(uintptr_t)value) != 0) {
        die("cannot write to a victim's code: %s", strerror(errno));
    }
}

/* The word of code around an address, as it is to be now. */
static void write_word(const breakpoints *b, uint64_t address) {
    uint64_t at = address & ~UINT64_C(7);
    unsigned char bytes[8];
    memcpy(bytes, (const void *)(uintptr_t)at, 8);
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = is_broken(b, at + i) ? BREAKPOINT : bytes[i];
    }
    poke(b->pid, at, bytes);
}

static void break_all(code *c, uint8_t kinds) {
    uint64_t bytes = c->end - c->first;
    if (c->broken == NULL) {
        c->broken = own_memory(bytes);
        c->has_broken = own_memory(bytes / STAGE_PAGE);
    }
    c->broken_kinds = kinds;
    memcpy(c->broken, c->original, bytes);
    memset(c->has_broken, 0, bytes / STAGE_PAGE);
    for (uint64_t i = 0; i < bytes; i++) {
        if ((c->kinds[i] & kinds) != 0) {
            c->broken[i] = BREAKPOINT;
            c->has_broken[i / STAGE_PAGE] = 1;
        }
    }
}

void breakpoints_set(breakpoints *b, code *c, pid_t pid, uint8_t kinds) {
    char path[64];
    *b = (breakpoints){.code = c, .pid = pid, .kinds = kinds};
    if (c->broken_kinds != kinds) {
        break_all(c, kinds);
    }
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        die("cannot open %s", path);
    }
    for (uint64_t at = 0; at < c->end - c->first; at += STAGE_PAGE) {
        if (c->has_broken[at / STAGE_PAGE] &&
            pwrite(fd, c->broken + at, STAGE_PAGE, (off_t)(c->first + at)) != STAGE_PAGE) {
            die("cannot write to a victim's code: %s", strerror(errno));
        }
    }
    close(fd);
}

void breakpoints_move(breakpoints *b, uint64_t open, uint64_t extra) {
    uint64_t changed[] = {b->open, b->extra, open, extra};
    b->open = open;
    b->extra = extra;
    for (unsigned i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        bool written = changed[i] == 0;
        for (unsigned before = 0; before < i; before++) {
            written = written || changed[before] >> 3 == changed[i] >> 3;
        }
        if (!written) {
            write_word(b, changed[i]);
        }
    }
}

static void write_one(pid_t pid, uint64_t address, bool broken) {
    uint64_t at = address & ~UINT64_C(7);
    unsigned char bytes[8];
    memcpy(bytes, (const void *)(uintptr_t)at, 8);
    bytes[address - at] = broken ? BREAKPOINT : bytes[address - at];
    poke(pid, at, bytes);
}

void breakpoint_put(pid_t pid, uint64_t address) { write_one(pid, address, true); }

void breakpoint_take(pid_t pid, uint64_t address) { write_one(pid, address, false); }
