/* Which waiting rows are due first. A write has its rows in the order of their times, so of each a process keeps when the
 * next one is due, and a window of those that follow; a look at what is due touches no other writes. Another process may have
 * had some of them meanwhile: their marks say so when they are picked. */
#include <stdlib.h>
#include <string.h>

#include "flow/waiting.h"

#define WINDOW 256u /* rows: the index of a write is read once for so many */

/* The head of one write. */
typedef struct head {
    uint64_t first, end; /* its keys */
    uint64_t due; /* no row that is left is due before it */
    shmq_row_life *window; /* those that are due first, from `next` on; NULL: they were not looked for */
    uint32_t next, count;
} head;

typedef struct at_its_time {
    uint64_t ends;
    uint32_t i;
} at_its_time;

struct shmq_heads {
    head *of; /* in the order of keys */
    uint32_t count, room;
    uint64_t end; /* keys below were looked at */
    uint64_t max_ttl_ns; /* by which it is known when a row is due */
    uint32_t most; /* there is room for so many in these: */
    shmq_row_life *lives; /* of the write that was looked at last */
    at_its_time *order;
};

static shmq_status no_memory(void) { return shmq_fail_errno("no memory to look at delayed messages on disk"); }

static void end_window(head *h) {
    free(h->window);
    h->window = NULL;
    h->next = h->count = 0;
}

void shmq_heads_free(shmq_ring *back) {
    for (uint32_t i = 0; back->heads != NULL && i < back->heads->count; i++) {
        free(back->heads->of[i].window);
    }
    if (back->heads != NULL) {
        free(back->heads->of);
        free(back->heads->lives);
        free(back->heads->order);
    }
    free(back->heads);
    back->heads = NULL;
}

static void forget(struct shmq_heads *heads, uint32_t i) {
    free(heads->of[i].window);
    memmove(&heads->of[i], &heads->of[i + 1], (--heads->count - i) * sizeof *heads->of);
}

/* The index of one write lists its rows with keys in [from, below), SHMQ_FILE_ROWS at most. SHMQ_EMPTY: none. */
static shmq_status list(shmq_mover *t, struct shmq_heads *heads, uint64_t from, uint64_t below, uint32_t *count) {
    *count = below - from < SHMQ_FILE_ROWS ? (uint32_t)(below - from) : SHMQ_FILE_ROWS;
    if (*count > heads->most) {
        shmq_row_life *lives = realloc(heads->lives, *count * sizeof *lives);
        heads->lives = lives != NULL ? lives : heads->lives;
        at_its_time *order = realloc(heads->order, *count * sizeof *order);
        heads->order = order != NULL ? order : heads->order;
        if (lives == NULL || order == NULL) {
            return no_memory();
        }
        heads->most = *count;
    }
    SHMQ_TRY(t->waiting->list(t->waiting->context, from, below, heads->lives, count));
    return *count != 0 ? SHMQ_OK : SHMQ_EMPTY;
}

/* This process's heads of the level: purged ones are left out, and the times are by the max_ttl in force. */
static shmq_status own(shmq_mover *t, struct shmq_heads **own) {
    shmq_ring *back = t->back;
    uint64_t max_ttl = shmq_load_relaxed(&t->q->page->settings.max_ttl_ns);
    uint64_t low = shmq_load_relaxed(&back->shm->waiting_low);
    if (back->heads == NULL && (back->heads = calloc(1, sizeof *back->heads)) == NULL) {
        return no_memory();
    }
    struct shmq_heads *heads = *own = back->heads;
    while (heads->count != 0 && heads->of[0].end <= low) { /* purged */
        forget(heads, 0);
    }
    heads->end = heads->end > low ? heads->end : low;
    for (uint32_t i = 0; heads->max_ttl_ns != max_ttl && i < heads->count; i++) {
        end_window(&heads->of[i]); /* all may be due at other times */
        heads->of[i].due = 0;
    }
    heads->max_ttl_ns = max_ttl;
    return SHMQ_OK;
}

static uint64_t ends_at(const shmq_mover *t, const shmq_row_life *life) {
    return shmq_life_end(t->q, life->enqueued_ns, life->expires_ns);
}

shmq_status shmq_heads_extend(shmq_mover *t, uint32_t *count) {
    struct shmq_heads *heads;
    uint64_t end = shmq_load_relaxed(&t->back->shm->waiting);
    SHMQ_TRY(own(t, &heads));
    if (heads->end >= end) {
        return SHMQ_EMPTY;
    }
    if (heads->count == heads->room) {
        uint32_t room = heads->room != 0 ? 2 * heads->room : 64;
        head *of = realloc(heads->of, room * sizeof *of);
        if (of == NULL) {
            return no_memory();
        }
        heads->of = of;
        heads->room = room;
    }
    shmq_status status = list(t, heads, heads->end, end, count);
    if (status != SHMQ_OK) {
        heads->end = status == SHMQ_EMPTY ? end : heads->end;
        return status;
    }
    head *h = &heads->of[heads->count];
    *h = (head){.first = heads->lives[0].place, .end = heads->lives[*count - 1].place + 1, .due = SHMQ_NEVER};
    bool left = false;
    for (uint32_t i = 0; i < *count; i++) {
        uint64_t ends = heads->lives[i].gone ? SHMQ_NEVER : ends_at(t, &heads->lives[i]);
        h->due = ends < h->due ? ends : h->due;
        left = left || !heads->lives[i].gone;
    }
    h->due = left ? h->due : 0; /* the next look settles it */
    heads->end = h->end;
    heads->count++;
    return SHMQ_OK;
}

static int by_time(const void *a, const void *b) {
    const at_its_time *left = a, *right = b;
    return left->ends != right->ends ? (left->ends < right->ends ? -1 : 1) : (left->i < right->i ? -1 : 1);
}

/* Those that are left, in the order of their times. They lie in it, unless max_ttl was changed. */
static uint32_t sort_lives(const shmq_mover *t, struct shmq_heads *heads, uint32_t count) {
    uint32_t left = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!heads->lives[i].gone) {
            heads->order[left] = (at_its_time){.ends = ends_at(t, &heads->lives[i]), .i = i};
            sorted = sorted && (left == 0 || heads->order[left - 1].ends <= heads->order[left].ends);
            left++;
        }
    }
    if (!sorted) {
        qsort(heads->order, left, sizeof heads->order[0], by_time);
    }
    return left;
}

/* The next rows of a write. SHMQ_EMPTY: none is left, and it is settled. */
static shmq_status look_into(shmq_mover *t, struct shmq_heads *heads, head *h) {
    uint32_t count;
    end_window(h);
    SHMQ_TRY(list(t, heads, h->first, h->end, &count));
    uint32_t left = sort_lives(t, heads, count);
    if (left == 0) {
        shmq_waiting_settle(t, heads->lives, count);
        return SHMQ_EMPTY;
    }
    h->count = left < WINDOW ? left : WINDOW;
    h->window = malloc(h->count * sizeof *h->window);
    if (h->window == NULL) {
        h->count = 0;
        return no_memory();
    }
    for (uint32_t i = 0; i < h->count; i++) {
        h->window[i] = heads->lives[heads->order[i].i];
    }
    h->due = heads->order[0].ends;
    return SHMQ_OK;
}

shmq_status shmq_heads_due(shmq_mover *t, uint64_t *from, uint64_t now, const shmq_row_life **lives, uint32_t *count) {
    struct shmq_heads *heads;
    const uint32_t most = *count;
    SHMQ_TRY(own(t, &heads));
    for (uint32_t i = 0; i < heads->count;) {
        head *h = &heads->of[i];
        if (h->end <= *from || h->due > now) {
            i++;
            continue;
        }
        *from = h->first;
        if (h->next == h->count) {
            shmq_status status = look_into(t, heads, h);
            if (status == SHMQ_EMPTY) {
                forget(heads, i);
            } else if (status != SHMQ_OK) {
                return status;
            }
            continue;
        }
        const shmq_row_life *its = *lives = h->window + h->next;
        uint32_t there = h->count - h->next;
        for (*count = 1; *count < there && *count < most && ends_at(t, &its[*count]) <= now;) {
            ++*count;
        }
        return SHMQ_OK;
    }
    return SHMQ_NOT_FOUND;
}

void shmq_heads_pass(shmq_mover *t, uint64_t first, uint32_t count) {
    struct shmq_heads *heads = t->back->heads;
    for (uint32_t i = 0; i < heads->count; i++) {
        head *h = &heads->of[i];
        if (h->first == first && h->count - h->next >= count) {
            h->next += count;
            h->due = h->next < h->count ? ends_at(t, &h->window[h->next]) : 0;
        }
    }
}

bool shmq_heads_earliest(const shmq_mover *t, uint64_t *earliest) {
    const struct shmq_heads *heads = t->back->heads;
    *earliest = SHMQ_NEVER;
    for (uint32_t i = 0; heads != NULL && i < heads->count; i++) {
        *earliest = heads->of[i].due < *earliest ? heads->of[i].due : *earliest;
    }
    return heads != NULL && heads->count != 0;
}
