/* Faults of the process table. */
#include "base/fault_text.h"
#include "check/faults.h"
#include "layout/waiters.h"
#include "segment/process_table.h"

static bool has_unused_fields(const shmq_process_shm *row) {
    uint64_t sum = row->magazines | row->reserved_92 | row->flags;
    for (uint32_t i = 0; i < sizeof(row->ops) / sizeof(row->ops[0]); i++) {
        sum |= shmq_load_relaxed((shmq_a64 *)&row->ops[i].word) | shmq_load_relaxed((shmq_a64 *)&row->ops[i].lsn);
    }
    return sum != 0 || shmq_load_relaxed((shmq_a64 *)&row->log_io) != 0 ||
           shmq_load_relaxed((shmq_a64 *)&row->env_io) != 0;
}

/* A process sets all of this before LIVE. It stays until the row is taken again, for which one needs the lock that the
 * checker holds. */
static const char *check_live(const shmq_member *m, uint32_t row) {
    const shmq_process_shm *process = &m->rows[row];
    if (shmq_process_page(m, row) == NULL || process->pin_cells != SHMQ_PINS ||
        process->counters != process->pins + offsetof(shmq_process_page_shm, chunks)) {
        return shmq_fault_text("process row %u is in use, but has no page", row);
    }
    if (process->pid == 0 || process->name[sizeof(process->name) - 1] != 0) {
        return shmq_fault_text("process row %u is in use, but names no process", row);
    }
    /* each view and each loan counts its bytes, at most a segment each */
    if (shmq_load_relaxed((shmq_a64 *)&process->pinned_bytes) > m->size * (SHMQ_PINS + 1u)) {
        return shmq_fault_text("process row %u has views of more bytes than the segment can lend", row);
    }
    return has_unused_fields(process)
               ? shmq_fault_text("process row %u has a value in a field that this version does not use", row)
               : NULL;
}

static const char *check_row(const shmq_member *m, uint32_t row, uint32_t high) {
    uint64_t word = shmq_load_seq(&m->rows[row].word);
    if (row >= high && (word != 0 || m->rows[row].pins != 0)) {
        return shmq_fault_text("process row %u was used, but the header counts only %u rows", row, high);
    }
    if (shmq_row_state(word) > SHMQ_ROW_REAPING || shmq_row_inner(word) != 0) {
        return shmq_fault_text("the state word of process row %u makes no sense: 0x%llx", row,
                               (unsigned long long)word);
    }
    return shmq_row_state(word) == SHMQ_ROW_LIVE ? check_live(m, row) : NULL;
}

/* A process raises the sum before its part, and lowers it after: the sum is never too low, except between two reads. */
static const char *check_memory_waiters(const shmq_member *m) {
    uint32_t sum = 0, parts = 0;
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        parts = 0;
        sum = shmq_waiters_in(shmq_load_seq(&m->header->memory_waiters));
        for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
            parts += shmq_load_seq(&m->rows[row].memory_waiting);
        }
        if (parts <= sum || shmq_waiters_in(shmq_load_seq(&m->header->memory_waiters)) != sum) {
            return NULL;
        }
        shmq_pause();
    }
    return shmq_fault_text("%u threads wait for memory, but only %u are counted", parts, sum);
}

const char *shmq_processes_fault(shmq_member *m) {
    uint32_t high = shmq_load_seq(&m->header->process_high);
    if (high > SHMQ_PROCESS_ROWS) {
        return shmq_fault_text("the header counts %u process rows, but there are only %u", high, SHMQ_PROCESS_ROWS);
    }
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        const char *wrong = check_row(m, row, high);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return check_memory_waiters(m);
}
