/* The contract of backings (backing_contract.h), held by each store that there is: files, plain and
 * encrypted, the step killer's, and the one of test_flow_flips.
 *
 *   test_backing [SEED [FLIPS]] */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/uio.h>

#include "../killstep/rows.h"
#include "../killstep/stage.h"
#include "backing_contract.h"
#include "memory_rows.h"
#include "scratch_flow.h"

#define FLIPS 20000u

/* ---- files ------------------------------------------------------------------------------------------------------------- */

static shmq_member *members[2];
static shmq_queue *queues[2];
static uint32_t depths[2];
static bool disk_is_full;

ssize_t __real_writev(int fd, const struct iovec *pieces, int count);
ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count);
/* A part of it still fits. */
ssize_t __wrap_writev(int fd, const struct iovec *pieces, int count) {
    static bool some;
    some = disk_is_full && !some;
    if (!disk_is_full) {
        return __real_writev(fd, pieces, count);
    }
    if (some) {
        return __real_writev(fd, pieces, 1);
    }
    errno = ENOSPC;
    return -1;
}

static void bind(uint32_t which) {
    shmq_declaration d = {.given = (1u << SHMQ_SET_MAX_MEMORY) | (1u << SHMQ_SET_PRIORITIES),
                          .max_memory = 1 << 20,
                          .priorities = 2,
                          .create = true};
    queues[which] = scratch_declare(members[which], "jobs", d, 0);
}

static void files_begin(void) {
    scratch_create_flowing();
    scratch_spill_begin();
    for (uint32_t i = 0; i < 2; i++) {
        members[i] = scratch_attach_flowing();
        depths[i] = 0;
        bind(i);
    }
}

static void files_end(void) {
    for (uint32_t i = 0; i < 2; i++) {
        shmq_queue_unbind(queues[i]);
        shmq_member_leave(members[i], true);
        shmq_member_free(members[i]);
    }
    scratch_remove();
    scratch_spill_end();
}

static const shmq_backing *files_view(uint32_t which) {
    const shmq_backing *calls;
    CHECK_EQUAL(members[which]->backing_of(queues[which], depths[which], &calls), SHMQ_OK);
    return calls;
}

static void files_forget(uint32_t which) {
    shmq_queue_unbind(queues[which]);
    bind(which);
}

static void files_fill(bool full) { disk_is_full = full; }

static bool files_other_level(void) {
    depths[0] = 1;
    return true;
}

/* One after the other, in the order of their names. */
static uint64_t files_walk(uint64_t byte, uint8_t bits) {
    char path[200], file[500];
    uint64_t bytes = 0;
    struct dirent **names;
    snprintf(path, sizeof path, "%s/%u.%u", scratch_spill, queues[0]->index, queues[0]->incarnation);
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        int fd = names[i]->d_name[0] != '.' ? open(file, O_RDWR | O_CLOEXEC) : -1;
        off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
        if (fd >= 0 && byte - bytes < (uint64_t)size) {
            uint8_t it;
            CHECK(pread(fd, &it, 1, (off_t)(byte - bytes)) == 1);
            it ^= bits;
            CHECK(pwrite(fd, &it, 1, (off_t)(byte - bytes)) == 1);
        }
        bytes += (uint64_t)size;
        if (fd >= 0) {
            close(fd);
        }
        free(names[i]);
    }
    if (count >= 0) {
        free(names);
    }
    return bytes;
}

static uint64_t files_bytes(void) { return files_walk(UINT64_MAX, 0); }
static void files_flip(uint64_t byte, uint8_t bits) { (void)files_walk(byte, bits); }

static uint64_t files_counted(uint64_t rows, uint64_t weight) { return shmq_rows_size(members[0], rows, weight); }

/* The next file begins at the next place. */
static void a_file_of_one_row_that_makes_no_sense_hides_none_behind_it(void) {
    shmq_row rows[7];
    shmq_row_life lives[7];
    uint32_t count = 7;
    files_begin();
    views[0] = files_view(0);
    erased = lowest = 0;
    contract_put(0, 100, 1, 1);
    contract_put(0, 101, 1, 1);
    files_flip(0, 0xff);
    files_forget(0);
    views[0] = files_view(0);
    CHECK_EQUAL(contract_read(0, 100, 200, UINT64_MAX, 7, rows), 1);
    CHECK_EQUAL(rows[0].place, 101);
    CHECK_EQUAL(views[0]->list(views[0]->context, 100, 200, lives, &count), SHMQ_OK);
    CHECK(count == 1 && lives[0].place == 101);
    files_end();
}

static void encrypted_begin(void) {
    static const uint8_t key[SHMQ_KEY_BYTES] = {7, 1, 9};
    scratch_key = key;
    files_begin();
}

static void encrypted_end(void) {
    files_end();
    scratch_key = NULL;
}

/* Files, plain and encrypted, are one store: only how a test begins and ends with them differs. */
static contract_subject of_files(const char *name, void (*begin_with)(void), void (*end_with)(void)) {
    return (contract_subject){.name = name,
                              .begin = begin_with,
                              .end = end_with,
                              .view = files_view,
                              .forget = files_forget,
                              .fill = files_fill,
                              .other_level = files_other_level,
                              .bytes = files_bytes,
                              .counted = files_counted,
                              .byte_count = files_bytes,
                              .flip = files_flip};
}

/* ---- the step killer's ------------------------------------------------------------------------------------------------- */

void *shared_memory(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

_Noreturn void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    exit(1);
}

static void nothing(void) {}
static bool one_level(void) { return false; }

static const shmq_backing *killers_view(uint32_t which) {
    const shmq_backing *calls;
    (void)which;
    CHECK_EQUAL(rows_backing_of(NULL, 0, &calls), SHMQ_OK);
    return calls;
}

static void killers_fill(bool full) { rows_full = full; }

static const contract_subject killers = {.name = "the step killer's",
                                         .begin = rows_open,
                                         .end = nothing,
                                         .view = killers_view,
                                         .fill = killers_fill,
                                         .other_level = one_level};

/* ---- that of random damage --------------------------------------------------------------------------------------------- */

static void memory_begin(void) { (void)memory_rows_clear(NULL); }

static const shmq_backing *memory_view(uint32_t which) {
    const shmq_backing *calls;
    (void)which;
    CHECK_EQUAL(memory_rows_of(NULL, 0, &calls), SHMQ_OK);
    return calls;
}

static bool always(void) { return true; }
static void memory_fill(bool full) { memory_rows_full = full ? always : NULL; }

static const contract_subject memory = {.name = "that of random damage",
                                        .begin = memory_begin,
                                        .end = memory_begin,
                                        .view = memory_view,
                                        .fill = memory_fill,
                                        .other_level = one_level};

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20260101,
             flips = argc > 2 ? strtoull(argv[2], NULL, 10) : FLIPS;
    contract_subject files = of_files("files", files_begin, files_end),
                     encrypted = of_files("encrypted files", encrypted_begin, encrypted_end);
    const contract_subject *all[] = {&files, &encrypted, &killers, &memory};
    printf("seed %llu, %llu flips\n", (unsigned long long)seed, (unsigned long long)flips);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        printf("%s\n", all[i]->name);
        fflush(stdout);
        contract_hold(all[i], seed, flips);
    }
    a_file_of_one_row_that_makes_no_sense_hides_none_behind_it();
    return 0;
}
