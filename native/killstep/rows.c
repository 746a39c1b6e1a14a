#include "rows.h"

#include <stdio.h>
#include <string.h>

#include "stage.h"

typedef struct row {
    uint64_t place, at; /* `at` in the table's bytes */
    uint32_t length, tried;
    uint64_t enqueued_ns, expires_ns;
    shmq_a64 gone; /* 1: erased */
} row;

typedef struct table {
    uint64_t count, used;
    row rows[ROWS_MOST];
    unsigned char bytes[ROWS_ROOM];
} table;

typedef struct rows_shm {
    shmq_a64 current; /* which of the two is in force */
    uint64_t pad[7];
    table tables[2];
} rows_shm;

static_assert(sizeof(rows_shm) <= ROWS_BYTES && ROWS_BYTES % STAGE_PAGE == 0, "whole pages");

static rows_shm *all;
void (*rows_stop)(bool committed);
bool rows_full;

void rows_open(void) {
    if (all == NULL) {
        all = shared_memory(ROWS_BYTES);
    }
    memset(all, 0, ROWS_BYTES);
    rows_full = false;
}

unsigned char *rows_bytes(void) { return (unsigned char *)all; }

static table *in_force(void) { return &all->tables[shmq_load_seq(&all->current) & 1]; }

static bool is_gone(const row *r) { return shmq_load_seq((shmq_a64 *)(uintptr_t)&r->gone) != 0; }

/* Waiting rows lie among the others, with this bit in their keys. */
static uint64_t bit_of(const void *context) { return context != NULL ? ROWS_WAITING : 0; }

static bool append(table *to, const shmq_row *r, bool gone) {
    if (to->count == ROWS_MOST || r->length > ROWS_ROOM - to->used) {
        return false;
    }
    memcpy(to->bytes + to->used, r->bytes, r->length);
    to->rows[to->count++] = (row){.place = r->place,
                                  .at = to->used,
                                  .length = (uint32_t)r->length,
                                  .enqueued_ns = r->enqueued_ns,
                                  .expires_ns = r->expires_ns,
                                  .tried = r->tried,
                                  .gone = gone};
    to->used += r->length;
    return true;
}

static bool append_again(table *to, const table *from, const row *r) {
    const shmq_row as = {.place = r->place,
                         .bytes = from->bytes + r->at,
                         .length = r->length,
                         .enqueued_ns = r->enqueued_ns,
                         .expires_ns = r->expires_ns,
                         .tried = r->tried != 0};
    return append(to, &as, is_gone(r));
}

static shmq_status write_rows(void *context, bool sweeps, uint64_t low, uint64_t from, const shmq_row *rows,
                              uint32_t count) {
    uint64_t other = shmq_load_seq(&all->current) ^ 1, bit = bit_of(context);
    const table *now = in_force();
    table *next = &all->tables[other];
    if (rows_stop != NULL) {
        rows_stop(false);
    }
    next->count = next->used = 0;
    bool fits = count == 0 || !rows_full;
    for (uint64_t i = 0; i < now->count && fits; i++) {
        const row *r = &now->rows[i];
        bool ours =
            (r->place & ROWS_WAITING) == bit; /* a file of waiting rows has the name of one that a dead mover left */
        bool goes = ours && (r->place < (low | bit) || ((sweeps || bit != 0) && r->place >= (from | bit)));
        fits = goes || append_again(next, now, r);
    }
    for (uint32_t i = 0; i < count && fits; i++) {
        shmq_row added = rows[i];
        added.place |= bit;
        fits = append(next, &added, false);
    }
    if (!fits) {
        return shmq_fail(SHMQ_NO_SPACE, "no room for so many rows");
    }
    shmq_store_seq(&all->current, other); /* the commit */
    if (rows_stop != NULL) {
        rows_stop(true);
    }
    return SHMQ_OK;
}

static shmq_status read_rows(void *context, uint64_t erased, uint64_t from, uint64_t below, uint64_t bytes,
                             shmq_row *rows, uint32_t *count) {
    (void)erased;
    const table *now = in_force();
    uint64_t used = 0, bit = bit_of(context);
    uint32_t most = *count;
    *count = 0;
    for (uint64_t i = 0; i < now->count && *count < most && (used < bytes || *count == 0); i++) {
        const row *r = &now->rows[i];
        if (r->place >= (from | bit) && r->place < (below | bit)) {
            const unsigned char *bytes_of_it = !is_gone(r) ? now->bytes + r->at : NULL;
            rows[(*count)++] = (shmq_row){.place = r->place & ~bit, .bytes = bytes_of_it, .length = r->length};
            used += r->length;
        }
    }
    return SHMQ_OK;
}

static shmq_status list_rows(void *context, uint64_t from, uint64_t below, shmq_row_life *lives, uint32_t *count) {
    const table *now = in_force();
    uint64_t bit = bit_of(context);
    uint32_t most = *count;
    *count = 0;
    for (uint64_t i = 0; i < now->count && *count < most; i++) {
        const row *r = &now->rows[i];
        if (r->place >= (from | bit) && r->place < (below | bit)) {
            lives[(*count)++] = (shmq_row_life){.place = r->place & ~bit,
                                                .length = r->length,
                                                .enqueued_ns = r->enqueued_ns,
                                                .expires_ns = r->expires_ns,
                                                .gone = is_gone(r)};
        }
    }
    return SHMQ_OK;
}

static shmq_status erase_row(void *context, uint64_t erased, uint64_t place) {
    (void)erased;
    table *now = in_force();
    for (uint64_t i = 0; i < now->count; i++) {
        if (now->rows[i].place == (place | bit_of(context))) {
            shmq_store_seq(&now->rows[i].gone, 1);
        }
    }
    return SHMQ_OK;
}

static shmq_status clear_rows(void *context) { return write_rows(context, true, 0, 0, NULL, 0); }

shmq_status rows_backing_of(shmq_queue *q, uint32_t depth, const shmq_backing **backing) {
    static const shmq_backing calls = {
        .write = write_rows, .read = read_rows, .list = list_rows, .erase = erase_row, .clear = clear_rows};
    static shmq_backing waiting;
    waiting = calls;
    waiting.context = &waiting;
    *backing = q == NULL || depth < q->levels ? &calls : &waiting; /* of "a": the limited one has no front ring */
    return SHMQ_OK;
}

uint32_t rows_count(uint64_t from, uint64_t below) {
    const table *now = in_force();
    uint32_t count = 0;
    for (uint64_t i = 0; i < now->count; i++) {
        count += now->rows[i].place >= from && now->rows[i].place < below && !is_gone(&now->rows[i]);
    }
    return count;
}

uint64_t rows_life_end(const shmq_queue *q, uint64_t from, uint64_t below) {
    const table *now = in_force();
    uint64_t earliest = SHMQ_NEVER;
    for (uint64_t i = 0; i < now->count; i++) {
        const row *r = &now->rows[i];
        uint64_t end = r->place >= from && r->place < below && !is_gone(r)
                           ? shmq_life_end(q, r->enqueued_ns, r->expires_ns)
                           : SHMQ_NEVER;
        earliest = end < earliest ? end : earliest;
    }
    return earliest;
}

uint64_t rows_tried_end(uint64_t from, uint64_t below) {
    const table *now = in_force();
    uint64_t end = 0;
    for (uint64_t i = 0; i < now->count; i++) {
        const row *r = &now->rows[i];
        bool among = r->place >= from && r->place < below && !is_gone(r) && r->tried != 0;
        end = among && r->place >= end ? r->place + 1 : end;
    }
    return end;
}

uint64_t rows_weight(uint64_t from, uint64_t below) {
    const table *now = in_force();
    uint64_t weight = 0;
    for (uint64_t i = 0; i < now->count; i++) {
        bool among = now->rows[i].place >= from && now->rows[i].place < below && !is_gone(&now->rows[i]);
        weight += among ? shmq_row_weight(now->rows[i].length) : 0;
    }
    return weight;
}

uint64_t rows_key(void) {
    const table *now = in_force();
    uint64_t key = now->count;
    for (uint64_t i = 0; i < now->count; i++) {
        uint64_t end;
        memcpy(&end, now->bytes + now->rows[i].at + now->rows[i].length - sizeof(end), sizeof(end));
        key = (key ^ (now->rows[i].place << 1 | is_gone(&now->rows[i])) ^ end << 32) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 29;
    }
    return key;
}

static bool goes_on(const table *t, uint64_t i) {
    return i < t->count && t->rows[i].place == t->rows[i - 1].place + 1 && !is_gone(&t->rows[i]);
}

void rows_list(char *text, size_t room) {
    const table *now = in_force();
    const char *between = "";
    int at = snprintf(text, room, "[");
    for (uint64_t i = 0, end; i < now->count && (size_t)at < room; i = end) {
        end = i + 1;
        if (is_gone(&now->rows[i])) {
            continue;
        }
        while (goes_on(now, end)) {
            end++;
        }
        at += snprintf(text + at, room - (size_t)at, "%s[%llu, %llu]", between, (unsigned long long)now->rows[i].place,
                       (unsigned long long)now->rows[end - 1].place + 1);
        between = ", ";
    }
    if ((size_t)at + 2 > room) {
        die("too many rows to tell of");
    }
    (void)snprintf(text + at, room - (size_t)at, "]");
}
