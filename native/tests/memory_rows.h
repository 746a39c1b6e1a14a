/* A store of rows in memory of this process, which can be put back as it was. */
#ifndef SHMQ_TESTS_MEMORY_ROWS_H
#define SHMQ_TESTS_MEMORY_ROWS_H

#include <stdlib.h>
#include <string.h>

#include "flow/flow.h"
#include "check.h"

#define MEMORY_ROWS_MAX 16384u

static shmq_row memory_rows[MEMORY_ROWS_MAX];
static uint32_t memory_row_count;
static unsigned char *memory_kept, *memory_kept_end; /* bytes of rows that are never freed */
static bool (*memory_rows_full)(void); /* is there no room for this write? NULL: there is for all */

static inline void memory_rows_drop(uint32_t i) {
    if (memory_rows[i].bytes < memory_kept || memory_rows[i].bytes >= memory_kept_end) {
        free((void *)(uintptr_t)memory_rows[i].bytes);
    }
}

/* All rows as they are now, for memory_rows_restore. Once. */
static inline uint32_t memory_rows_keep(shmq_row kept[MEMORY_ROWS_MAX]) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory_row_count; i++) {
        bytes += memory_rows[i].length;
    }
    memory_kept_end = malloc(bytes);
    CHECK(memory_kept_end != NULL);
    unsigned char *first = memory_kept_end;
    for (uint32_t i = 0; i < memory_row_count; i++) {
        memcpy(memory_kept_end, memory_rows[i].bytes, memory_rows[i].length);
        free((void *)(uintptr_t)memory_rows[i].bytes);
        memory_rows[i].bytes = memory_kept_end;
        memory_kept_end += memory_rows[i].length;
    }
    memory_kept = first;
    memcpy(kept, memory_rows, sizeof memory_rows);
    return memory_row_count;
}

static inline void memory_rows_restore(const shmq_row kept[MEMORY_ROWS_MAX], uint32_t count) {
    for (uint32_t i = 0; i < memory_row_count; i++) {
        memory_rows_drop(i);
    }
    memcpy(memory_rows, kept, sizeof memory_rows);
    memory_row_count = count;
}

static inline shmq_status memory_rows_write(void *context, bool sweeps, uint64_t low, uint64_t from,
                                            const shmq_row *added, uint32_t count) {
    uint32_t left = 0;
    (void)context;
    if (memory_rows_full != NULL && memory_rows_full()) {
        return shmq_fail(SHMQ_NO_SPACE, "the disk is full");
    }
    for (uint32_t i = 0; i < memory_row_count; i++) {
        if ((sweeps && memory_rows[i].place >= from) || memory_rows[i].place < low) {
            memory_rows_drop(i);
        } else {
            memory_rows[left++] = memory_rows[i];
        }
    }
    memory_row_count = left;
    for (uint32_t i = 0; i < count && memory_row_count < MEMORY_ROWS_MAX; i++) {
        unsigned char *bytes = malloc(added[i].length);
        CHECK(bytes != NULL);
        memcpy(bytes, added[i].bytes, added[i].length);
        memory_rows[memory_row_count++] = (shmq_row){.place = added[i].place,
                                                     .bytes = bytes,
                                                     .length = added[i].length,
                                                     .enqueued_ns = added[i].enqueued_ns,
                                                     .expires_ns = added[i].expires_ns};
    }
    return SHMQ_OK;
}

static inline shmq_status memory_rows_read(void *context, uint64_t erased, uint64_t from, uint64_t below,
                                           uint64_t bytes, shmq_row *found, uint32_t *count) {
    uint32_t most = *count;
    uint64_t used = 0;
    (void)context, (void)erased;
    *count = 0;
    for (uint32_t i = 0; i < memory_row_count && *count < most && (used < bytes || *count == 0); i++) {
        if (memory_rows[i].place >= from && memory_rows[i].place < below) {
            used += memory_rows[i].length;
            found[(*count)++] = memory_rows[i];
        }
    }
    return SHMQ_OK;
}

static inline shmq_status memory_rows_list(void *context, uint64_t from, uint64_t below, shmq_row_life *found,
                                           uint32_t *count) {
    uint32_t most = *count;
    (void)context;
    *count = 0;
    for (uint32_t i = 0; i < memory_row_count && *count < most; i++) {
        const shmq_row *row = &memory_rows[i];
        if (row->place >= from && row->place < below) {
            found[(*count)++] = (shmq_row_life){.place = row->place,
                                                .length = row->length,
                                                .enqueued_ns = row->enqueued_ns,
                                                .expires_ns = row->expires_ns};
        }
    }
    return SHMQ_OK;
}

static inline shmq_status memory_rows_erase(void *context, uint64_t erased, uint64_t place) {
    uint32_t left = 0;
    (void)context, (void)erased;
    for (uint32_t i = 0; i < memory_row_count; i++) {
        if (memory_rows[i].place == place) {
            memory_rows_drop(i);
        } else {
            memory_rows[left++] = memory_rows[i];
        }
    }
    memory_row_count = left;
    return SHMQ_OK;
}

static inline shmq_status memory_rows_clear(void *context) {
    (void)context;
    for (uint32_t i = 0; i < memory_row_count; i++) {
        memory_rows_drop(i);
    }
    memory_row_count = 0;
    return SHMQ_OK;
}

static inline shmq_status memory_rows_of(shmq_queue *of, uint32_t depth, const shmq_backing **backing) {
    static const shmq_backing calls = {.write = memory_rows_write,
                                       .read = memory_rows_read,
                                       .list = memory_rows_list,
                                       .erase = memory_rows_erase,
                                       .clear = memory_rows_clear};
    (void)of, (void)depth;
    *backing = &calls;
    return SHMQ_OK;
}

#endif
