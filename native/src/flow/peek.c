/* A browser looks at rows, which stay on disk. One that goes on reads many in one turn of the mover's lock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "flow/flow.h"

#define AT_ONCE 512u /* rows of a read by a browser that goes on */
#define BYTES_AT_ONCE (UINT64_C(1) << 18)

/* Rows that a thread has read last, of one level: the first ones at or above `from`. */
typedef struct block {
    const shmq_ring *level;
    uint64_t serial, from, erased;
    uint32_t incarnation, index, count;
    uint32_t next; /* all rows before it lie below the place at which the browser looks, if it goes on */
    shmq_row rows[AT_ONCE];
    uint64_t room;
    unsigned char *bytes;
} block;

static pthread_once_t blocks_once = PTHREAD_ONCE_INIT;
static pthread_key_t blocks; /* one for each thread, freed when it ends */
static int blocks_failed;

static void end_block(void *kept) {
    free(((block *)kept)->bytes);
    free(kept);
}

static void begin_blocks(void) { blocks_failed = pthread_key_create(&blocks, end_block); }

/* Finds the calling thread's own block. SHMQ_OK: it is *kept. */
static shmq_status own_block(block **kept) {
    pthread_once(&blocks_once, begin_blocks);
    if (blocks_failed != 0) {
        return shmq_fail(SHMQ_OS, "no pthread key is left in this process, and browsing messages on disk needs one");
    }
    *kept = pthread_getspecific(blocks);
    if (*kept == NULL && ((*kept = calloc(1, sizeof **kept)) == NULL || pthread_setspecific(blocks, *kept) != 0)) {
        free(*kept);
        return shmq_fail_errno("no memory for a message on disk");
    }
    return SHMQ_OK;
}

static bool is_of(const block *k, const shmq_ring *back) {
    const shmq_queue *q = back->queue;
    return k->count != 0 && k->level == back && k->serial == q->serial && k->index == q->index &&
           k->incarnation == q->incarnation;
}

/* Are the rows of the block still those from `place` on? Rows leave by a rise of `low`, or of how many were fetched by
 * themselves, and no row comes in between. Where a mover is at work, only its lock says. */
static bool stands(const block *k, const shmq_ring *back, uint64_t *place) {
    shmq_a32 *unfinished = &back->queue->page->unfinished;
    uint64_t low = shmq_load_seq(&back->shm->low), from = *place > low ? *place : low;
    bool there = is_of(k, back) && k->from <= from && from <= k->rows[k->count - 1].place &&
                 shmq_load_seq(unfinished) == 0 && shmq_flow_is_on(shmq_flow_at(back)) &&
                 shmq_load_seq(&shmq_front_of(back)->shm->fetched) == k->erased &&
                 shmq_load_seq(&back->shm->low) == low;
    *place = there ? from : *place;
    return there;
}

/* Finds the first sound row of the block at or above *place. */
static shmq_status first_of(block *k, uint64_t *place, shmq_delivery *d) {
    bool goes_on = k->next != 0 && k->rows[k->next - 1].place < *place;
    for (uint32_t i = goes_on ? k->next : 0; i < k->count; i++) {
        if (k->rows[i].place >= *place && k->rows[i].bytes != NULL && shmq_row_parse(&k->rows[i], d)) {
            *place = k->rows[i].place;
            k->next = i; /* a browser that lost its copy looks at the same place again */
            return SHMQ_OK;
        }
    }
    return SHMQ_EMPTY; /* the taker of a changed row is told */
}

/* Reads rows from `from` on into memory of the calling thread: one, or many if its last look ended just before. */
static shmq_status read_block(shmq_mover *t, uint64_t from, block *k) {
    const shmq_queue *q = t->q;
    uint64_t used = 0, end = shmq_flow_place(shmq_load_seq(&t->back->shm->flow));
    bool goes_on = is_of(k, t->back) && k->rows[k->count - 1].place + 1 == from;
    uint32_t count = goes_on ? AT_ONCE : 1;
    k->count = k->next = 0;
    SHMQ_TRY(shmq_read_rows(t, from, end, goes_on ? BYTES_AT_ONCE : 0, k->rows, &count));
    for (uint32_t i = 0; i < count; i++) {
        used += k->rows[i].bytes != NULL ? k->rows[i].length : 0;
    }
    if (used > k->room) {
        free(k->bytes);
        k->bytes = malloc(used);
        k->room = k->bytes != NULL ? used : 0;
        if (k->bytes == NULL) {
            return shmq_fail_errno("no memory for a message on disk");
        }
    }
    unsigned char *at = k->bytes;
    for (uint32_t i = 0; i < count; i++) {
        if (k->rows[i].bytes != NULL) {
            memcpy(at, k->rows[i].bytes, k->rows[i].length);
            k->rows[i].bytes = at;
            at += k->rows[i].length;
        }
    }
    k->level = t->back;
    k->serial = q->serial;
    k->index = q->index;
    k->incarnation = q->incarnation;
    k->from = from;
    k->erased = shmq_load_seq(&t->front->shm->fetched);
    k->count = count;
    return SHMQ_OK;
}

shmq_status shmq_row_peek(shmq_mover *t, uint64_t *place, shmq_delivery *d) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), low = shmq_load_relaxed(&ring->low), from = *place > low ? *place : low;
    block *k;
    SHMQ_TRY(own_block(&k));
    while (shmq_flow_is_on(flow) && from < shmq_flow_place(flow)) {
        SHMQ_TRY(read_block(t, from, k));
        if (k->count == 0) {
            break;
        }
        if (first_of(k, &from, d) == SHMQ_OK) {
            *place = from;
            return SHMQ_OK;
        }
        from = k->rows[k->count - 1].place + 1;
    }
    return SHMQ_EMPTY;
}

uint64_t shmq_flow_oldest(shmq_queue *q) {
    uint64_t oldest = 0;
    for (uint32_t depth = 0; depth < q->levels && q->m->backing_of != NULL; depth++) {
        shmq_delivery d;
        uint64_t place = 0;
        if (shmq_flow_is_on(shmq_flow_at(shmq_level(q, depth))) &&
            shmq_flow_peek(shmq_level(q, depth), &place, &d) == SHMQ_OK && (oldest == 0 || d.enqueued_ns < oldest)) {
            oldest = d.enqueued_ns;
        }
    }
    shmq_trail_clear(); /* whoever takes the row is told what is wrong with it */
    return oldest;
}

shmq_status shmq_flow_peek(shmq_ring *back, uint64_t *place, shmq_delivery *d) {
    shmq_mover t;
    block *k;
    SHMQ_TRY(own_block(&k));
    uint64_t from = *place;
    if (stands(k, back, &from) && first_of(k, &from, d) == SHMQ_OK) {
        *place = from;
        return SHMQ_OK;
    }
    SHMQ_TRY(shmq_turn_await(&t, back));
    shmq_status status = shmq_row_peek(&t, place, d);
    shmq_turn_end(&t);
    return status;
}
