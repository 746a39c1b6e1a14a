/* The inhaler brings the oldest rows back, in their order. Rows also end where they are: they are settled, or lost, and with
 * the last one the level's flow ends. */
#include "consumers/sleepers.h"
#include "flow/flow.h"
#include "queue/cold.h"
#include "segment/alert_time.h"

shmq_status shmq_read_rows(shmq_mover *t, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                           uint32_t *count) {
    return t->backing->read(t->backing->context, shmq_load_relaxed(&t->front->shm->fetched), from, below, bytes, rows,
                            count);
}

/* From here on the rows up to `last`, all of which lie below this place, are gone: one word decides it, and the mover sets
 * the words that follow from it. The answer: how many rows, and how many bytes of them, went. */
static shmq_ordinal drop(shmq_ring *back, uint64_t below, const shmq_ordinal *last) {
    shmq_ring_shm *ring = back->shm, *front = shmq_front_of(back)->shm;
    const shmq_ordinal before = shmq_last_pulled(back);
    shmq_ordinal gone = {shmq_left_of(last->count, before.count), shmq_left_of(last->bytes, before.bytes),
                         shmq_left_of(last->erased, before.erased),
                         shmq_left_of(last->erased_bytes, before.erased_bytes)};
    shmq_store_seq(&ring->dropping_count, last->count);
    shmq_store_seq(&ring->dropping_bytes, last->bytes);
    shmq_store_seq(&front->dropping_count, last->erased);
    shmq_store_seq(&front->dropping_bytes, last->erased_bytes);
    shmq_store_seq(&ring->dropping_at, below);
    shmq_drop_end(back);
    gone.count = shmq_left_of(gone.count, gone.erased);
    gone.bytes = shmq_left_of(gone.bytes, gone.erased_bytes);
    return gone;
}

static void pass(shmq_ordinal *last, uint64_t length, bool erased) {
    uint64_t weight = shmq_row_weight(length), less = erased ? weight : 0;
    *last = (shmq_ordinal){last->count + 1, last->bytes + weight, last->erased + erased, last->erased_bytes + less};
}

/* Fills as many slots as there is memory for, then shows them. SHMQ_NOT_FOUND: rows before the first one are lost;
 * *first is the ordinal of that one. Fetched rows are passed if another row follows, whose record counts them, or if
 * there is no other row. */
static shmq_status bring_in(shmq_mover *t, const shmq_row *rows, uint32_t count, uint64_t tail, shmq_ordinal *first) {
    static _Thread_local shmq_coming all[SHMQ_TURN_ENTRIES];
    shmq_ordinal last = shmq_last_pulled(t->back), said = last;
    shmq_status status = SHMQ_OK;
    uint32_t filled = 0, i = 0, end = 0;
    for (; i < count && status == SHMQ_OK; i++) {
        if (rows[i].bytes == NULL) {
            pass(&last, rows[i].length, true);
        } else if ((status = shmq_front_fill(t, &rows[i], tail + filled, &last, 0, &all[filled])) == SHMQ_OK) {
            last = said = all[filled++].ordinal;
            end = i + 1;
        }
    }
    for (uint32_t n = 0; n < filled; n++) {
        (void)shmq_front_show(t, tail + n, &all[n]);
    }
    if (filled != 0) {
        shmq_store_seq(&t->back->shm->low, rows[end - 1].place + 1);
        shmq_pulled_say(t->back, &said);
        return SHMQ_OK;
    }
    uint32_t erased = i - (status != SHMQ_OK);
    if (SHMQ_UNLIKELY(erased != 0)) {
        (void)drop(t->back, rows[erased - 1].place + 1, &last);
        return SHMQ_OK;
    }
    *first = all[0].ordinal;
    return status;
}

/* Rows below `low` are lost. The inhaler counts them out of the queue and tells the taker; the rows behind come in as
 * before. */
static shmq_status tell_lost(shmq_mover *t, uint64_t rows, uint64_t bytes) {
    uint64_t low = shmq_load_relaxed(&t->back->shm->low);
    (void)shmq_damage(t->q->m, "messages on disk are lost, before position", low);
    shmq_notify_starved(t->q); /* a taker may have waited for one of the lost rows */
    return shmq_fail(SHMQ_CORRUPT, "messages on disk are lost\n%llu, of %llu bytes in all, before position %llu",
                     (unsigned long long)rows, (unsigned long long)bytes, (unsigned long long)low);
}

/* Gives up all rows up to this one, which has not come in: they are lost. */
static shmq_status lose(shmq_mover *t, const shmq_ordinal *last) {
    const shmq_ordinal before = shmq_last_pulled(t->back);
    uint64_t rows = last->count - before.count, bytes = shmq_left_of(last->bytes, before.bytes);
    shmq_pulled_say(t->back, last);
    shmq_rows_gone(t->q, rows, bytes);
    return tell_lost(t, rows, bytes);
}

/* Gives up a row that was changed on disk: it is lost. */
static shmq_status lose_damaged(shmq_mover *t, const shmq_row *row) {
    shmq_ordinal its = shmq_last_pulled(t->back);
    pass(&its, row->length, false);
    shmq_store_seq(&t->back->shm->low, row->place + 1);
    return lose(t, &its);
}

/* Gives up all rows before this one, which is not in the queue yet: they are lost. */
static shmq_status lose_before(shmq_mover *t, const shmq_row *row, const shmq_ordinal *ordinal) {
    shmq_ordinal last = shmq_last_pulled(t->back);
    last.count = ordinal->count - 1;
    last.bytes = ordinal->bytes - shmq_row_weight(row->length);
    return lose(t, &last);
}

/* Finds the ordinal of the last row below a place: the first row from there on says it. *last: on entry of what has
 * come in; then of what lies below. Fetched rows have to be counted one by one. SHMQ_NOT_FOUND: no row lies at or above
 * the place. */
static shmq_status count_below(shmq_mover *t, uint64_t below, shmq_ordinal *last) {
    shmq_ordinal its;
    uint64_t end = shmq_flow_place(shmq_load_seq(&t->back->shm->flow)), behind = 0, weight = 0;
    bool any = shmq_load_relaxed(&t->front->shm->fetched) != last->erased;
    uint64_t from = any ? shmq_load_relaxed(&t->back->shm->low) : below;
    for (;;) {
        shmq_row row;
        uint32_t count = from < end ? 1 : 0;
        if (count != 0) {
            SHMQ_TRY(shmq_read_rows(t, from, end, 0, &row, &count));
        }
        if (count == 0) {
            return SHMQ_NOT_FOUND;
        }
        from = row.place + 1;
        if (row.bytes == NULL && row.place < below) {
            last->erased++;
            last->erased_bytes += shmq_row_weight(row.length);
        } else if (row.bytes == NULL) {
            behind++;
            weight += shmq_row_weight(row.length);
        } else if (row.place >= below) {
            const shmq_ordinal before = shmq_last_pulled(t->back);
            bool says = shmq_row_ordinal(&row, &its) && its.count > last->count + behind;
            last->count = says ? its.count - 1 - behind : last->count;
            last->bytes = says ? its.bytes - shmq_row_weight(row.length) - weight : last->bytes;
            if (!says) {
                *last = before;
            }
            return SHMQ_OK; /* if the row was changed, the pull that reads it says how many are lost */
        }
    }
}

shmq_status shmq_rows_drop(shmq_mover *t, uint64_t below, uint64_t *dropped) {
    shmq_ring_shm *ring = t->back->shm;
    uint64_t flow = shmq_load_seq(&ring->flow), place = shmq_flow_place(flow);
    *dropped = 0;
    shmq_store_seq(&t->q->page->unswept, shmq_load_relaxed(&t->q->page->unswept) | SHMQ_UNSWEPT_ROWS);
    if (!shmq_flow_is_on(flow) || below <= shmq_load_relaxed(&ring->low)) {
        return SHMQ_OK;
    }
    shmq_ordinal last = shmq_last_pulled(t->back);
    shmq_status status = count_below(t, below, &last);
    if (status == SHMQ_NOT_FOUND) {
        last = (shmq_ordinal){shmq_load_relaxed(&ring->flushed), shmq_load_relaxed(&ring->flushed_bytes),
                              shmq_load_relaxed(&t->front->shm->fetched),
                              shmq_load_relaxed(&t->front->shm->fetched_bytes)};
        below = place;
    } else if (status != SHMQ_OK) {
        return status;
    }
    const shmq_ordinal gone = drop(t->back, below, &last);
    shmq_rows_gone(t->q, gone.count, gone.bytes);
    shmq_disk_settle(t);
    *dropped = gone.count;
    return SHMQ_OK;
}

/* Lost rows among these are not counted here: the next row's ordinal tells its taker. */
void shmq_rows_drop_first(shmq_mover *t, const shmq_row_life *lives, uint32_t count) {
    shmq_ordinal last = shmq_last_pulled(t->back);
    for (uint32_t i = 0; i < count; i++) {
        pass(&last, lives[i].length, lives[i].gone);
    }
    const shmq_ordinal gone = drop(t->back, lives[count - 1].place + 1, &last);
    shmq_rows_gone(t->q, gone.count, gone.bytes);
    shmq_disk_settle(t);
}

/* Ends the level's flow: the back ring is the whole level again. Rows that should still be there are lost. */
static shmq_status leave(shmq_mover *t, uint64_t place) {
    shmq_ring_shm *ring = t->back->shm;
    shmq_ordinal rows = shmq_rows_end(t->back);
    shmq_store_seq(&ring->low, place);
    shmq_store_seq(&ring->flow, shmq_flow_word(place, false));
    if (t->backing->clear(t->backing->context) == SHMQ_OK) { /* garbage by now: a failure does no harm */
        shmq_disk_settle(t);
        (void)shmq_disk_claim(t, 0);
    }
    shmq_alerts_hurry(t->q->m);
    return SHMQ_UNLIKELY(rows.count != 0) ? tell_lost(t, rows.count, rows.bytes) : SHMQ_OK;
}

void shmq_rows_end_flow(shmq_mover *t) {
    uint64_t flow = shmq_load_seq(&t->back->shm->flow);
    bool any = shmq_rows_of(t->back->shm, t->front->shm).count != 0;
    if (shmq_flow_is_on(flow) && !any && t->backing != NULL) { /* else a member with a backing does it */
        (void)leave(t, shmq_flow_place(flow));
    }
}

uint64_t shmq_bytes_free(const shmq_queue *q) {
    uint64_t most = shmq_load_relaxed(&q->page->settings.max_memory);
    uint64_t used = shmq_load_relaxed(&q->page->resident) & SHMQ_WEIGHT_MASK;
    uint64_t share = shmq_flow_share(q->m), left = most == 0 ? share : most > used ? most - used : 0;
    return left < share ? left : share;
}

shmq_status shmq_pull(shmq_mover *t) {
    static _Thread_local shmq_row rows[SHMQ_TURN_ENTRIES];
    shmq_ring_shm *ring = t->back->shm;
    uint64_t below = shmq_flow_place(shmq_load_seq(&ring->flow)), tail;
    uint32_t count;
    SHMQ_TRY(shmq_front_order_room(t, true, &tail, &count));
    if (count == 0) {
        return SHMQ_EMPTY;
    }
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&t->front->shm->cold) == 0) && tail == 0) { /* it began without memory */
        SHMQ_TRY(shmq_cold_need(t->front));
    }
    count = count < SHMQ_TURN_ENTRIES ? count : SHMQ_TURN_ENTRIES;
    SHMQ_TRY(shmq_read_rows(t, shmq_load_relaxed(&ring->low), below, shmq_bytes_free(t->q), rows, &count));
    if (count == 0) {
        return leave(t, below);
    }
    if (shmq_cold_at(t->front, shmq_slot_at(t->front, tail)) == NULL) { /* the rows are sound, and stay on disk */
        return shmq_damage(t->q->m, "the cold records of a front ring make no sense, at offset",
                           shmq_load_relaxed(&t->front->shm->cold));
    }
    shmq_store_seq(&ring->low, rows[0].place); /* rows below it are in: the front ring needs no room for them */
    shmq_ordinal first;
    shmq_status status = bring_in(t, rows, count, tail, &first);
    if (SHMQ_UNLIKELY(status == SHMQ_NOT_FOUND)) {
        return lose_before(t, &rows[0], &first);
    }
    if (SHMQ_UNLIKELY(status == SHMQ_CORRUPT)) {
        return lose_damaged(t, &rows[0]);
    }
    if (status == SHMQ_OK) {
        shmq_disk_settle(t);
        shmq_rows_end_flow(t);
    }
    return status;
}
