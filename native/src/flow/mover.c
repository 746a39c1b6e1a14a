/* The mover's turn: a process takes the lock, ends what a dead mover has left half done, and moves some entries. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flow/file_backing.h"
#include "flow/rows_base.h"
#include "shmq/descriptors.h"
#include "shmq/alert.h"
#include "shmq/cipher.h"
#include "shmq/cold.h"
#include "shmq/due.h"
#include "shmq/flow.h"
#include "shmq/ring.h"
#include "shmq/ring_memory.h"
#include "shmq/sleepers.h"
#include "shmq/upkeep.h"
#include "shmq/waiting.h"
#include "shmq/watch.h"

#define MOVER_BYTE (UINT64_C(1) << 41) /* offset of the first queue's lock byte in the segment's file */

bool shmq_may_flow(const shmq_queue *q) { return q->m->backing_of != NULL; }

void shmq_rows_gone(shmq_queue *q, uint64_t rows, uint64_t bytes) {
    uint32_t limited = shmq_load_seq(&q->page->limited) & (SHMQ_LIMITED_COUNT | SHMQ_LIMITED_BYTES);
    if (rows != 0 && limited != 0) {
        shmq_room_give(q, limited, rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX, bytes);
        shmq_wake_waiters(q);
    }
}

shmq_ordinal shmq_rows_end(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    shmq_ordinal rows = shmq_rows_of(ring, front);
    shmq_pulled_say(back, &(shmq_ordinal){.count = shmq_load_relaxed(&ring->flushed),
                                          .bytes = shmq_load_relaxed(&ring->flushed_bytes),
                                          .erased = shmq_load_relaxed(&front->flushed),
                                          .erased_bytes = shmq_load_relaxed(&front->flushed_bytes)});
    shmq_rows_gone(back->queue, rows.count, rows.bytes);
    return rows;
}

static int lock_mover(const shmq_queue *q, short how) {
    struct flock lock = {.l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)(MOVER_BYTE + q->index), .l_len = 1};
    return shmq_has_locks(q->m) ? fcntl(q->m->lock_fd, F_OFD_SETLK, &lock) : -1;
}

static bool try_lock(shmq_queue *q) {
    shmq_a64 *word = &q->m->movers[q->index / 64]; /* for other threads of this process */
    uint64_t bit = UINT64_C(1) << q->index % 64;
    if ((shmq_or_seq(word, bit) & bit) != 0) {
        return false;
    }
    if (lock_mover(q, F_WRLCK) == 0) {
        shmq_after_kernel(&q->page->unfinished);
        shmq_store_seq(&q->page->turns_begun, shmq_load_relaxed(&q->page->turns_begun) + 1);
        return true;
    }
    shmq_and_seq(word, ~bit);
    return false;
}

static void unlock(shmq_queue *q) {
    shmq_before_kernel(&q->page->unfinished);
    (void)lock_mover(q, F_UNLCK);
    shmq_and_seq(&q->m->movers[q->index / 64], ~(UINT64_C(1) << q->index % 64));
    if (shmq_load_seq(&q->page->missed) != 0) { /* a process that missed the lock has set it before the unlock */
        shmq_store_seq(&q->page->missed, 0);
        shmq_notify_starved(q);
        shmq_wake_waiters(q);
        sched_yield(); /* its turn is next: a process that moves all the time would have the lock whenever others look */
    }
}

/* If a mover that died has filled the slot before the front ring's tail, its row has come in, but words are behind: the
 * tail after a death behind T22, `pulled` after a death behind `low`. The next mover sets them. */
static void recover_front(shmq_ring *back, shmq_ring *front) {
    shmq_ring_shm *ring = back->shm;
    uint64_t last = shmq_front_tail(front);
    if (last == 0) {
        return;
    }
    const shmq_slot_shm *slot = shmq_slot_at(front, last - 1);
    shmq_cold_shm *cold = shmq_cold_at(front, slot);
    if (cold == NULL) {
        return;
    }
    if (SHMQ_UNLIKELY(shmq_is_fetched(slot))) { /* all that came in before it did so in turns that have ended */
        shmq_erased_say(front, slot);
        shmq_rewind_all(front); /* takers may have passed its place, */
        shmq_make_due(front, 1); /* and a look at what is due this slot, at the tail */
        shmq_notify(front->queue);
    } else if (shmq_read_once(&cold->back) + 1 >= shmq_load_relaxed(&ring->low)) {
        const shmq_ordinal its = shmq_front_ordinal(front, slot);
        shmq_store_seq(&ring->low, shmq_read_once(&cold->back) + 1);
        shmq_pulled_say(back, &its);
    }
}

/* A mover that died while it handed entries over has put them into the front ring, at or above P: they have left the back
 * ring, and their slots must not be made available. Answers the flow word. */
static uint64_t derive_place(shmq_ring *back) {
    shmq_ring_shm *ring = back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), low = shmq_load_relaxed(&ring->low), place = shmq_flow_place(flow);
    if (shmq_flow_is_on(flow) && low > place && low - place <= SHMQ_TURN_ENTRIES) { /* else `low` is damaged */
        flow = shmq_flow_word(low, true);
        shmq_store_seq(&ring->flow, flow);
    }
    return flow;
}

/* T20 or T21 of each slot that a dead or failed mover has left MOVING, and the words that follow from others. */
void shmq_flow_recover(shmq_ring *back, shmq_ring *front) {
    shmq_ring_shm *ring = back->shm;
    shmq_waiting_recover(back, front);
    recover_front(back, front);
    shmq_drop_end(back); /* no entry of the front ring lay beyond `low`, so this place is higher */
    uint64_t flow = derive_place(back), place = shmq_flow_place(flow), lowest = place;
    uint32_t back_again = 0;
    uint64_t from = place > SHMQ_TURN_ENTRIES ? place - SHMQ_TURN_ENTRIES : 0, laid = shmq_slots_laid(back);
    for (uint64_t p = from; p < place + SHMQ_TURN_ENTRIES; p++) {
        if ((p & back->mask) >= laid) {
            continue; /* the slot has no memory, and a look would lay it */
        }
        shmq_slot_shm *slot = shmq_slot_at(back, p);
        uint64_t word = shmq_load_seq(&slot->word);
        while (shmq_word_state(word) == SHMQ_MOVING &&
               shmq_load_acquire(&slot->position) == p) { /* SYNC ring.publish */
            if (p < place) {
                shmq_moved_free(back, p);
            } else if (shmq_cas_seq(&slot->word, word,
                                    shmq_word_to(word, SHMQ_AVAILABLE, 0, shmq_word_tag(word)))) { /* T21 */
                lowest = back_again++ == 0 ? p : lowest;
            }
            word = shmq_load_seq(&slot->word);
        }
    }
    if (back_again > 1) {
        shmq_rewind_all(back); /* a cell can name one old entry only (ring_old.h) */
    } else {
        shmq_rewind(back, lowest);
    }
    if (shmq_load_relaxed(&ring->flushing_at) == place) {
        shmq_store_seq(&ring->flushed, shmq_load_relaxed(&ring->flushing_count));
        shmq_store_seq(&ring->flushed_bytes, shmq_load_relaxed(&ring->flushing_bytes));
    }
    if (!shmq_flow_is_on(flow) || shmq_load_relaxed(&ring->low) >= place) {
        (void)shmq_rows_end(back);
    }
}

/* Processes that count the slots meanwhile must count anew: each turn makes a new version of the counts. */
static void turn_over(shmq_queue *q) {
    shmq_room_give(q, shmq_load_seq(&q->page->limited), 0, 0);
    shmq_store_seq(&q->page->unfinished, 0);
}

static shmq_status turn_to(shmq_mover *t, shmq_ring *back) {
    shmq_queue *q = back->queue;
    t->back = back;
    t->front = shmq_front_of(back);
    t->waiting = NULL; /* until it is wanted */
    t->fetched = 0;
    return q->m->backing_of != NULL ? q->m->backing_of(q, back->depth, &t->backing) : SHMQ_OK;
}

/* A member without a backing recovers, too; `unswept` tells the next mover with a backing to clean up the disk. */
static void recover(shmq_queue *q) {
    shmq_store_seq(&q->page->unswept, UINT32_MAX); /* before `unfinished` says that all is well */
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        shmq_mover t = {.q = q};
        shmq_ring *back = shmq_level(q, depth);
        shmq_flow_recover(back, shmq_front_of(back));
        if (q->m->backing_of != NULL && turn_to(&t, back) == SHMQ_OK) {
            (void)shmq_erase_last(&t);
        }
    }
}

/* For a caller that settles all rows, so that no row has to be marked first. */
static shmq_status begin_anyhow(shmq_mover *t, shmq_ring *back) {
    shmq_queue *q = back->queue;
    *t = (shmq_mover){.q = q};
    if (!try_lock(q)) {
        shmq_store_seq(&q->page->missed, 1);
        if (!try_lock(q)) {
            return SHMQ_IN_USE;
        }
    }
    shmq_status status = turn_to(t, back);
    if (status != SHMQ_OK) {
        unlock(q);
        return status;
    }
    shmq_add_unsettled(q->m, 1); /* so that the watcher notices soon if this process dies */
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        recover(q);
    }
    shmq_store_seq(&q->page->unfinished, (uint32_t)getpid());
    return SHMQ_OK;
}

void shmq_turn_end(shmq_mover *t) {
    shmq_queue *q = t->q;
    free(t->buffer);
    turn_over(q);
    shmq_add_unsettled(q->m, -1);
    unlock(q);
}

shmq_status shmq_turn_begin(shmq_mover *t, shmq_ring *back) {
    SHMQ_TRY(begin_anyhow(t, back));
    bool unswept = (shmq_load_seq(&t->q->page->unswept) & (SHMQ_UNMARKED | 1) << back->depth) != 0;
    shmq_status status = SHMQ_UNLIKELY(unswept) && t->backing != NULL ? shmq_erase_last(t) : SHMQ_OK;
    if (status != SHMQ_OK) {
        shmq_turn_end(t);
    }
    return status;
}

/* A front ring has its memory before there are rows, so that each of them can come back whatever has all other memory,
 * and no taker waits for the structure lock. Bodies leave that memory free (kept_for_rings), but for many queues of a
 * small broker. Then a flush has to free it, which needs as much room on disk as the broker has memory. */
static shmq_status need_front(shmq_mover *t) {
    SHMQ_TRY(shmq_cold_need(t->front));
    return shmq_load_relaxed(&t->front->shm->laid) <= t->front->mask ? shmq_ring_lay(t->front, t->front->mask)
                                                                     : SHMQ_OK;
}

shmq_status shmq_front_ready(shmq_mover *t) {
    shmq_status status = need_front(t);
    bool later = shmq_is_short(status) && shmq_disk_room(t->q->m) >= t->q->m->memory;
    return status == SHMQ_OK || later ? SHMQ_OK : shmq_is_short(status) ? SHMQ_EMPTY : status;
}

void shmq_flow_named(shmq_ring *back) {
    if (shmq_load_relaxed(&back->shm->flow) == 0) {
        shmq_store_seq(&back->shm->low, 1);
        shmq_store_seq(&back->shm->flow, shmq_flow_word(1, false));
    }
}

/* From here on the level flows, and its oldest entries go first: the slots that come free are those under the tail,
 * which need not be carried over what waits for takers. */
static shmq_status enter(shmq_mover *t) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t tail = shmq_load_seq(&ring->tail), place = shmq_flow_place(shmq_load_seq(&ring->flow));
    uint64_t head = shmq_head_position(t->back, shmq_load_seq(&ring->head));
    uint64_t from = head < tail ? head : tail;
    SHMQ_TRY(shmq_front_ready(t));
    from = from > place ? from : place;
    /* Overwrites what a dead mover's flush has left, which may name the same place. */
    shmq_flushing_say(ring, from, shmq_load_relaxed(&ring->flushed), shmq_load_relaxed(&ring->flushed_bytes));
    shmq_store_seq(&ring->low, from);
    shmq_store_seq(&ring->flow, shmq_flow_word(from, true));
    shmq_alerts_hurry(t->q->m);
    return SHMQ_OK;
}

static bool flows(const shmq_ring *back) { return shmq_flow_is_on(shmq_load_seq(&back->shm->flow)); }

static shmq_status move_oldest(shmq_mover *t, bool ring_full) {
    shmq_ring_shm *ring = t->back->shm;
    shmq_status status = flows(t->back) ? SHMQ_OK : enter(t);
    bool rows = shmq_load_relaxed(&ring->low) < shmq_flow_place(shmq_load_seq(&ring->flow));
    if (status == SHMQ_OK && ring_full && !rows && shmq_hand_over(t) == SHMQ_OK) {
        return SHMQ_OK;
    }
    if (status == SHMQ_OK && (status = shmq_flush(t)) == SHMQ_OK && SHMQ_UNLIKELY(shmq_front_lacks(t->front) != 0)) {
        (void)need_front(t);
        shmq_trail_clear(); /* a later flush tries it again */
    }
    return status;
}

/* For the turn's level. Delayed entries go first, since they are wanted last: those in the producer's way; where nothing
 * else can go, all. */
static shmq_status make_room(shmq_mover *t, bool ring_full) {
    if (shmq_waiting_flush(t, t->back, SHMQ_TURN_ENTRIES) == SHMQ_OK) {
        return SHMQ_OK;
    }
    shmq_trail_clear(); /* of a disk that fails: what follows meets it, too */
    shmq_status status = move_oldest(t, ring_full);
    return status == SHMQ_EMPTY ? shmq_waiting_flush(t, t->back, UINT64_MAX) : status;
}

uint64_t shmq_could_go(const shmq_ring *back) {
    uint64_t tail = shmq_load_seq(&back->shm->tail), place = shmq_flow_place(shmq_load_seq(&back->shm->flow));
    uint64_t head = shmq_head_position(back, shmq_load_seq(&back->shm->head)), from = head > place ? head : place;
    return tail > from ? tail - from : 0;
}

/* The least important level goes first, since it is taken last. In a queue with one level all may go. */
static shmq_status make_room_anywhere(shmq_mover *t) {
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = t->q->levels; depth-- > 0 && status == SHMQ_EMPTY;) {
        shmq_ring *back = shmq_level(t->q, depth);
        if (t->q->levels == 1 || shmq_could_go(back) > 1 || shmq_load_relaxed(&back->shm->due) != 0) {
            SHMQ_TRY(turn_to(t, back));
            status = make_room(t, false);
        }
    }
    return status;
}

shmq_status shmq_flow_make_room(shmq_queue *q, shmq_ring *full) {
    shmq_mover t;
    if (!shmq_may_flow(q)) {
        return SHMQ_EMPTY;
    }
    SHMQ_TRY(shmq_turn_begin(&t, full != NULL ? full : &q->first));
    shmq_status status = full != NULL ? make_room(&t, true) : make_room_anywhere(&t);
    shmq_turn_end(&t);
    if (status == SHMQ_OK) {
        shmq_wake_waiters(q);
    }
    return status;
}

/* The mover makes memory free for rows: it flushes less important levels, then newer entries of this one. If neither
 * helps, it brings in as many rows as memory allows. */
shmq_status shmq_make_way(shmq_mover *t) {
    shmq_ring *back = t->back;
    shmq_status status = SHMQ_EMPTY;
    for (uint32_t depth = t->q->levels - 1; depth > back->depth && status == SHMQ_EMPTY; depth--) {
        shmq_ring *other = shmq_level(t->q, depth);
        if (shmq_could_go(other) > 1) {
            status = turn_to(t, other);
            status = status == SHMQ_OK ? make_room(t, false) : status;
        }
    }
    SHMQ_TRY(turn_to(t, back));
    return status == SHMQ_EMPTY ? move_oldest(t, false) : status;
}

shmq_status shmq_flow_bring(shmq_ring *back) {
    shmq_mover t;
    SHMQ_TRY(shmq_turn_begin(&t, back));
    shmq_status status = SHMQ_OK;
    if (flows(back)) {
        if (shmq_bytes_free(t.q) < shmq_flow_share(t.q->m)) {
            (void)shmq_make_way(&t);
        }
        status = shmq_pull(&t);
    }
    if (status == SHMQ_EMPTY && shmq_waiting_flush(&t, t.front, UINT64_MAX) == SHMQ_OK) { /* they had its slots */
        status = shmq_pull(&t);
    }
    if (SHMQ_UNLIKELY(shmq_is_short(status)) &&
        (shmq_make_way(&t) == SHMQ_OK || shmq_upkeep.relieve(t.q->m, t.q, true) == SHMQ_OK)) {
        status = shmq_pull(&t);
    }
    if (SHMQ_UNLIKELY(shmq_is_short(status) || status == SHMQ_IN_USE)) { /* memory and disk are full, or locked */
        t.has_kept = true;
        status = shmq_pull(&t);
    }
    shmq_turn_end(&t);
    return shmq_is_short(status) ? SHMQ_FULL_MEMORY : status;
}

/* No row is left: the files go at once, since their space counts, and nobody may ever look at the queue again. */
static void end_flows(shmq_mover *t) {
    for (uint32_t depth = 0; depth < t->q->levels; depth++) {
        if (turn_to(t, shmq_level(t->q, depth)) == SHMQ_OK) {
            shmq_rows_end_flow(t);
            shmq_waiting_clear(t);
        }
    }
}

shmq_status shmq_flow_purge(shmq_queue *q, shmq_purge_memory *rings, uint64_t *purged) {
    shmq_mover t;
    uint64_t rows = 0;
    SHMQ_TRY(begin_anyhow(&t, &q->first));
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

void shmq_flow_remove(shmq_queue *q) {
    shmq_mover t;
    if (shmq_may_flow(q) && shmq_has_flowed(q) && begin_anyhow(&t, &q->first) == SHMQ_OK) {
        shmq_file_backing_remove(q);
        for (uint32_t depth = 0; depth < q->levels; depth++) { /* what was there counts no more, from here on */
            (void)shmq_rows_end(shmq_level(q, depth));
            (void)shmq_waiting_end(shmq_level(q, depth));
            if (turn_to(&t, shmq_level(q, depth)) == SHMQ_OK) {
                shmq_disk_settle(&t);
                shmq_waiting_clear(&t);
                (void)shmq_disk_claim(&t, 0);
            }
        }
        shmq_turn_end(&t);
    }
}

uint64_t shmq_disk_bytes(const shmq_queue *q) {
    bool any = shmq_flow_rows(q) != 0 || shmq_waiting_rows(q).count != 0;
    return q->m->backing_of != NULL && any ? shmq_file_backing_bytes(q) : 0;
}

void shmq_flow_mend(shmq_queue *q) {
    if (shmq_load_seq(&q->page->unfinished) == 0 || !try_lock(q)) {
        return; /* else a living mover holds the lock, and recovers by itself */
    }
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        recover(q);
        turn_over(q);
    }
    unlock(q);
    shmq_notify_starved(q);
}
