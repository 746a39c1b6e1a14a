#include "segment/process_table.h"
#include "base/clock.h"
#include "segment/descriptors.h"
#include "segment/proc_stat.h"
#include "segment/requests.h"
#include "segment/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t shmq_process_high(const shmq_member *m) {
    uint32_t high = shmq_load_seq(&m->header->process_high);
    return high < SHMQ_PROCESS_ROWS ? high : SHMQ_PROCESS_ROWS;
}

static uint32_t rows_used(const shmq_member *m) {
    uint32_t high = shmq_process_high(m);
    return high < SHMQ_PROCESS_ROWS ? high : SHMQ_PROCESS_ROWS;
}

uint32_t shmq_members_live(shmq_member *m) {
    uint32_t live = 0;
    for (uint32_t row = 0, high = rows_used(m); row < high; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) != SHMQ_ROW_FREE && shmq_rows_locked(m, row, row + 1)) {
            live += 1;
        }
    }
    return live;
}

shmq_process_page_shm *shmq_process_page(const shmq_member *m, uint32_t row) {
    uint64_t offset = shmq_copy_once(&m->rows[row].pins); /* read once: it may change between a check and a use */
    if (offset < m->data || offset % SHMQ_PAGE_BYTES != 0 || !shmq_inside(m, offset, SHMQ_PAGE_BYTES)) {
        return NULL;
    }
    return shmq_at(m, offset);
}

/* Locks the row's byte; true: this process has it now. The byte of a FREE row is held while a forked child of its last
 * owner has not closed its descriptor. */
static bool lock_row(shmq_member *m, uint32_t row) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1};
    return fcntl(m->lock_fd, F_OFD_SETLK, &lock) == 0;
}

static uint32_t find_free_row(shmq_member *m, uint64_t *word) {
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        *word = shmq_load_seq(&m->rows[row].word);
        if (shmq_row_state(*word) == SHMQ_ROW_FREE && lock_row(m, row)) {
            return row;
        }
    }
    return SHMQ_NO_ROW;
}

/* The page stays with the row, so that its counters go on growing. The rest of it is left from an earlier owner, and is
 * cleared. */
static shmq_status prepare_page(shmq_member *m, uint32_t row) {
    shmq_process_shm *process = &m->rows[row];
    shmq_process_page_shm *page = shmq_process_page(m, row);
    if (page == NULL) {
        if (process->pins != 0) {
            (void)shmq_damage(m, "the offset of a process's page makes no sense", process->pins);
        }
        uint64_t offset;
        SHMQ_TRY(shmq_page_take(m, &offset));
        process->pins = offset; /* the root: from here on the page belongs to this row */
        page = shmq_at(m, offset);
    }
    process->pin_cells = SHMQ_PINS;
    process->counters = process->pins + offsetof(shmq_process_page_shm, chunks);
    for (uint32_t i = 0; i < SHMQ_PINS; i++) {
        shmq_store_relaxed(&page->pins[i].cell, 0);
    }
    for (uint32_t queue = 0; queue < SHMQ_QUEUES; queue += 1) {
        shmq_counters_shm *counters = shmq_counters_at(m, row, queue);
        if (counters == NULL) {
            queue += SHMQ_COUNTERS_A_CHUNK - 1;
            continue;
        }
        shmq_store_relaxed(&counters->attached, 0);
        shmq_store_relaxed(&counters->moving, 0);
        shmq_store_relaxed(&counters->waiting, 0);
    }
    m->page = page;
    return SHMQ_OK;
}

/* This process as the system describes it. The process asks before it takes the structure lock: stopped in these calls,
 * it must not hold up all processes that join, leave or declare. */
typedef struct description {
    char name[sizeof(((shmq_process_shm *)NULL)->name)];
    uint64_t start_time, pid_namespace;
} description;

static description describe_self(void) {
    shmq_proc_stat stat = {0};
    (void)shmq_proc_stat_of(0,
                            &stat); /* else 0: a member that nobody can look for, which is dead once its lock is free */
    description self = {.start_time = stat.start_time, .pid_namespace = shmq_own_pid_namespace()};
    char name[64];
    shmq_read_small("/proc/self/comm", name, sizeof(name));
    name[strcspn(name, "\n")] = 0;
    memcpy(self.name, name, strnlen(name, sizeof(self.name) - 1));
    return self;
}

static void write_description(shmq_process_shm *process, const description *self) {
    memcpy(process->name, self->name, sizeof(process->name));
    process->pid = (uint32_t)getpid();
    process->flags = 0;
    process->start_time = self->start_time;
    process->pid_namespace = self->pid_namespace;
    process->attached_ns = shmq_wall_ns();
    process->magazines = 0;
    shmq_store_relaxed(&process->progress, 0);
    shmq_store_relaxed(&process->inside, 0);
    shmq_store_relaxed(&process->unsettled, 0);
    shmq_store_relaxed(&process->privileges, 0);
    shmq_store_relaxed(&process->pinned_bytes, 0);
    shmq_store_relaxed(&process->memory_waiting, 0);
    shmq_store_relaxed(&process->memory_changing, 0);
}

/* Makes the row LIVE. Under the structure lock. */
static shmq_status occupy(shmq_member *m, uint32_t row, uint64_t word, const description *self) {
    shmq_process_shm *process = &m->rows[row];
    uint32_t generation = shmq_row_generation(word);
    /* First: reapers look at no rows above it, and a death after the next step must be found. */
    if (shmq_process_high(m) <= row) {
        shmq_store_seq(&m->header->process_high, row + 1);
    }
    if (!shmq_cas_seq(&process->word, word, shmq_row_word(generation, 0, SHMQ_ROW_ATTACHING))) {
        return shmq_damage(m, "the state word of a free process row makes no sense, at row", row);
    }
    shmq_status status = prepare_page(m, row);
    if (status != SHMQ_OK) {
        shmq_store_seq(&process->word, shmq_row_word(generation + 1, 0, SHMQ_ROW_FREE));
        return status;
    }
    write_description(process, self);
    m->row = row;
    m->row_generation = generation;
    m->row_word = shmq_row_word(generation, 0, SHMQ_ROW_LIVE);
    m->process = process;
    shmq_store_seq(&process->word, m->row_word);
    return SHMQ_OK;
}

/* A process unlinks a segment under the structure lock, after a look at all row bytes. So after this check the segment
 * of a new member stays. */
static shmq_status check_linked(shmq_member *m, bool allow_unlinked) {
    struct stat file;
    if (!shmq_leads_to(m->map_fd, &m->segment, &file)) {
        return shmq_member_lost(m);
    }
    if (file.st_nlink == 0 && !(allow_unlinked && !m->anonymous)) {
        return shmq_fail(SHMQ_GONE, "the segment %s does not exist any more\nits last member has left", m->name);
    }
    return SHMQ_OK;
}

shmq_status shmq_row_take(shmq_member *m, bool allow_unlinked) {
    m->row = SHMQ_NO_ROW;
    description self = describe_self();
    for (bool last_try = false;;) {
        SHMQ_TRY(shmq_structure_lock(m));
        uint64_t word = 0;
        shmq_status status = check_linked(m, allow_unlinked);
        uint32_t row = status == SHMQ_OK ? find_free_row(m, &word) : SHMQ_NO_ROW;
        if (row != SHMQ_NO_ROW) {
            status = occupy(m, row, word, &self);
        }
        shmq_structure_unlock(m);
        if (status != SHMQ_OK || row != SHMQ_NO_ROW) {
            return status;
        }
        uint32_t reaped = 0;
        SHMQ_TRY(shmq_upkeep.reap_dead(m, &reaped));
        if (reaped == 0 && last_try) {
            return shmq_fail(SHMQ_LIMIT,
                             "the broker has no room for another process\n%u members of at most %u\n"
                             "close brokers that are not in use, or spread the processes over more brokers",
                             shmq_members_live(m), SHMQ_PROCESS_ROWS);
        }
        last_try = reaped == 0; /* another process may have reaped them all just now: one more look */
    }
}

void shmq_row_give(shmq_member *m) {
    shmq_process_shm *process = m->process;
    if (!shmq_has_locks(m) ||
        !shmq_cas_seq(&process->word, m->row_word, shmq_row_word(m->row_generation, 0, SHMQ_ROW_CLOSING))) {
        return; /* others reap it, or have: by now it may be another process's */
    }
    for (uint32_t queue = 0; queue < SHMQ_QUEUES; queue += 1) {
        shmq_counters_shm *counters = shmq_counters_at(m, m->row, queue);
        if (counters == NULL) {
            queue += SHMQ_COUNTERS_A_CHUNK - 1;
            continue;
        }
        shmq_store_seq(&counters->attached, 0);
    }
    shmq_store_seq(&process->unsettled, 0);
    shmq_store_seq(&process->privileges, 0);
    shmq_store_seq(&process->pinned_bytes, 0);
    shmq_store_seq(&process->word, shmq_row_word(m->row_generation + 1, 0, SHMQ_ROW_FREE));
}
