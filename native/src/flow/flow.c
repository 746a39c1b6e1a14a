/* Ends of a flow from outside: a purge, a discard up to a place, a deletion. And the directory for rows. */
#include <string.h>

#include "flow/flow.h"
#include "base/cipher.h"
#include "consumers/sleepers.h"
#include "flow/file_backing.h"
#include "flow/rows_base.h"
#include "flow/waiting.h"
#include "ring/ring.h"

shmq_status shmq_flow_into(shmq_member *m, const char *directory) {
    if (strlen(directory) >= sizeof m->spill) {
        return shmq_fail(SHMQ_OS, "the path of the directory for messages on disk is too long: %s", directory);
    }
    strcpy(m->spill, directory);
    shmq_rows_base_open(m);
    m->backing_of = shmq_file_backing_of;
    return SHMQ_OK;
}

shmq_status shmq_flow_encrypted(shmq_member *m, shmq_cipher *cipher) {
    if (!m->encrypts || memcmp(cipher->check, m->header->key_check, sizeof cipher->check) != 0) {
        return shmq_fail(SHMQ_DENIED, m->encrypts ? "this is not the key of the broker" : "the broker has no key");
    }
    m->cipher = cipher;
    return SHMQ_OK;
}

/* Ends flows without rows: deletes their files at once, since their space counts, and nobody may ever look at the queue
 * again. */
static void end_flows(shmq_mover *t) {
    for (uint32_t depth = 0; depth < t->q->levels; depth++) {
        if (shmq_turn_to(t, shmq_level(t->q, depth)) == SHMQ_OK) {
            shmq_rows_end_flow(t);
            shmq_waiting_clear(t);
        }
    }
}

shmq_status shmq_flow_purge(shmq_queue *q, shmq_purge_memory *rings, uint64_t *purged) {
    shmq_mover t;
    uint64_t rows = 0;
    SHMQ_TRY(shmq_turn_begin_anyhow(&t, &q->first));
    shmq_store_seq(&q->page->unswept, shmq_load_relaxed(&q->page->unswept) | SHMQ_UNSWEPT_ROWS);
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_ring *back = shmq_level(q, depth);
        shmq_store_seq(&back->shm->low, shmq_flow_place(shmq_load_seq(&back->shm->flow)));
        rows += shmq_rows_end(back).count + shmq_waiting_end(back).count;
    }
    shmq_entries_ended(q, rows, SHMQ_END_PURGED);
    *purged += rows;
    shmq_status status = rings(q, purged); /* here no slot is MOVING, and nothing comes in or goes to disk */
    end_flows(&t);
    shmq_turn_end(&t);
    shmq_notify_starved(q); /* takers that wait for a slot of the front ring: no row is left to bring */
    return status;
}

shmq_status shmq_flow_discard(shmq_ring *back, uint64_t place, shmq_discard_memory *rings, uint64_t *discarded) {
    shmq_mover t;
    uint64_t dropped;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    shmq_status status = shmq_rows_drop(&t, place, &dropped);
    shmq_entries_ended(back->queue, dropped, SHMQ_END_PURGED);
    *discarded += dropped;
    status = status == SHMQ_OK ? rings(back, place, discarded) : status;
    shmq_rows_end_flow(&t);
    shmq_turn_end(&t);
    shmq_notify_starved(back->queue); /* takers that wait for a slot of the front ring: some rows are gone */
    return status;
}

void shmq_flow_remove(shmq_queue *q) {
    shmq_mover t;
    if (shmq_may_flow(q) && shmq_has_flowed(q) && shmq_turn_begin_anyhow(&t, &q->first) == SHMQ_OK) {
        shmq_file_backing_remove(q);
        for (uint32_t depth = 0; depth < q->levels; depth++) { /* what was there counts no more, from here on */
            (void)shmq_rows_end(shmq_level(q, depth));
            (void)shmq_waiting_end(shmq_level(q, depth));
            if (shmq_turn_to(&t, shmq_level(q, depth)) == SHMQ_OK) {
                shmq_disk_settle(&t);
                shmq_waiting_clear(&t);
                (void)shmq_disk_claim(&t, 0);
            }
        }
        shmq_turn_end(&t);
    }
}
