/* A browser looks at rows, which stay on disk. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shmq/flow.h"

typedef struct copy {
    uint64_t room;
    unsigned char bytes[];
} copy;

static pthread_once_t copies_once = PTHREAD_ONCE_INIT;
static pthread_key_t copies; /* one for each thread, freed when it ends */
static int copies_failed;

static void begin_copies(void) { copies_failed = pthread_key_create(&copies, free); }

/* Copies the row into memory of the calling thread. */
static shmq_status keep(const shmq_row *row, shmq_delivery *d) {
    pthread_once(&copies_once, begin_copies);
    copy *kept = copies_failed == 0 ? pthread_getspecific(copies) : NULL;
    if (copies_failed == 0 && (kept == NULL || row->length > kept->room)) {
        copy *longer = malloc(sizeof *longer + row->length);
        if (longer == NULL || pthread_setspecific(copies, longer) != 0) {
            free(longer);
            return shmq_fail_errno("no memory for a message on disk");
        }
        free(kept);
        kept = longer;
        kept->room = row->length;
    }
    if (kept == NULL) {
        return shmq_fail(SHMQ_OS, "no pthread key is left in this process, and browsing messages on disk needs one");
    }
    memcpy(kept->bytes, row->bytes, row->length);
    shmq_row own = {.place = row->place, .bytes = kept->bytes, .length = row->length};
    return shmq_row_parse(&own, d) ? SHMQ_OK : SHMQ_CORRUPT;
}

shmq_status shmq_row_peek(shmq_mover *t, uint64_t *place, shmq_delivery *d) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), low = shmq_load_relaxed(&ring->low), from = *place > low ? *place : low;
    shmq_row row;
    for (uint32_t count = 1; shmq_flow_is_on(flow) && from < shmq_flow_place(flow); count = 1) {
        SHMQ_TRY(shmq_read_rows(t, from, shmq_flow_place(flow), 0, &row, &count));
        if (count == 0) {
            break;
        }
        if (row.bytes == NULL) {
            from = row.place + 1;
            continue;
        }
        shmq_status status = keep(&row, d);
        if (status != SHMQ_CORRUPT) {
            *place = row.place;
            return status;
        }
        from = row.place + 1; /* the taker of a changed row is told */
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
    SHMQ_TRY(shmq_turn_await(&t, back));
    shmq_status status = shmq_row_peek(&t, place, d);
    shmq_turn_end(&t);
    return status;
}
