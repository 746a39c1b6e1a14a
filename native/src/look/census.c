/* Looks at a whole ring: counts, questions, join. */
#include "look/census.h"
#include "flow/row_counts.h"
#include "flow/turn.h"
#include "layout/run.h"
#include "look/browse.h"
#include "queue/level.h"
#include "ring/ring.h"
#include "ring/ring_walk.h"
#include "wake/wait.h"

static void count_entry(const shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, shmq_census *c) {
    uint32_t state = (word & SHMQ_FLAG_WAITS) != 0 ? SHMQ_HELD : shmq_word_state(word);
    uint64_t since;
    uint64_t place = SHMQ_UNLIKELY(shmq_is_front(r))
                         ? shmq_place_at(shmq_depth_at(r), shmq_front_place(r, slot))
                         : shmq_place_at(r->depth, shmq_load_relaxed(&((shmq_slot_shm *)slot)->position));
    switch (state) {
    case SHMQ_AVAILABLE:
    case SHMQ_OFFERED:
    case SHMQ_MOVING:
        c->ready++;
        since = shmq_read_once(&slot->enqueued_ns);
        if (c->oldest_ns == 0 || since < c->oldest_ns) {
            c->oldest_ns = since;
        }
        break;
    case SHMQ_HELD:
        c->delayed++;
        break;
    case SHMQ_ACQUIRED:
    case SHMQ_LOCKED:
        c->unsettled++;
        break;
    case SHMQ_CLAIMED:
    case SHMQ_PENDING: /* not available yet; join() waits for it */
        c->claimed++;
        return;
    case SHMQ_QUARANTINED:
        c->holes++;
        return;
    case SHMQ_BROKEN:
        c->broken++;
        return;
    default:
        return;
    }
    uint64_t bytes = (uint64_t)shmq_summary_headers_len(shmq_load_relaxed((shmq_a64 *)&slot->summary)) +
                     shmq_read_once(&slot->body_len);
    c->bytes += bytes;
    c->memory_bytes += r->slot_size + (shmq_read_once(&slot->body) != 0 ? bytes : 0);
    c->first_position = place < c->first_position ? place : c->first_position;
}

/* From position `p` on, below `end`. Returns the first position that has an entry, or a claim; `end`: none has. */
static uint64_t count_positions(const shmq_ring *r, uint64_t p, uint64_t end, shmq_census *c) {
    uint64_t first = end;
    for (; p < end; p++) {
        const shmq_slot_shm *slot = shmq_slot_at(r, p);
        uint64_t word = shmq_load_seq(
            &((shmq_slot_shm *)slot)->word); /* SYNC ring.publish; seq: the last look of join() before it sleeps */
        if (shmq_lap_ahead(word, shmq_lap_of(r, p)) == 0 && !shmq_word_carried(word)) {
            first = p < first ? p : first;
            count_entry(r, slot, word, c);
        }
    }
    return first;
}

/* Of old entries in these slots. */
static void count_carried(const shmq_ring *r, uint64_t from, uint64_t end, shmq_census *c) {
    for (shmq_met e; shmq_walk_old(r, &from, end, &e);) {
        if (shmq_state_is_entry(shmq_word_state(e.word))) {
            count_entry(r, e.slot, e.word, c);
        }
    }
}

/* The lowest position that may be neither settled nor carried. */
static uint64_t lowest(const shmq_ring *r, uint64_t tail) {
    uint64_t low = shmq_load_seq(&r->shm->floor), count = shmq_slot_count(r);
    return tail > count && low < tail - count ? tail - count : low;
}

/* Counts one level. Returns the position below which every entry is settled or carried. */
static uint64_t count_level(const shmq_ring *r, shmq_census *c) {
    uint64_t tail = shmq_load_seq(&r->shm->tail);
    uint64_t settled = count_positions(r, lowest(r, tail), tail, c);
    count_carried(r, 0, shmq_slot_count(r), c);
    return settled;
}

void shmq_stretch_count(const shmq_ring *r, uint64_t stretch, shmq_census *c) {
    uint64_t begin = stretch << SHMQ_STRETCH_SHIFT, slots = shmq_slot_count(r);
    uint64_t many = UINT64_C(1) << SHMQ_STRETCH_SHIFT, tail = shmq_load_seq(&r->shm->tail), low = lowest(r, tail);
    many = many < slots ? many : slots;
    /* The slots of one lap from `low` on: those behind the one of `low` come first, those before it at the lap's end. */
    uint64_t from = low + ((begin - low) & r->mask), lap = low + slots;
    uint64_t end = from + many < lap ? from + many : lap;
    (void)count_positions(r, from, end < tail ? end : tail, c);
    end = low + (from + many - end);
    (void)count_positions(r, low, end < tail ? end : tail, c);
    count_carried(r, begin, begin + many, c);
}

/* Counts the rows on disk, and says where the next newcomer comes to. The first row is first in order if nothing lies below it in memory. */
static void count_rows(const shmq_queue *q, shmq_census *c) {
    uint32_t last = q->levels - 1;
    c->next_position = shmq_place_at(last, shmq_load_seq((shmq_a64 *)&shmq_level_ring(q, last)->tail));
    if (SHMQ_LIKELY(!shmq_has_flowed(q))) {
        return;
    }
    uint64_t rows = shmq_flow_rows(q);
    const shmq_ordinal waiting = shmq_waiting_rows(q);
    c->flowed = rows + waiting.count;
    c->delayed += waiting.count;
    c->bytes += waiting.bytes;
    c->ready += rows;
    c->bytes += rows != 0 ? shmq_flow_bytes(q) : 0;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        const shmq_ring_shm *ring = shmq_level_ring(q, depth);
        const shmq_ring_shm *front = shmq_level_ring(q, q->levels + depth);
        uint64_t alone = shmq_load_seq((shmq_a64 *)&front->fetched) - shmq_load_seq((shmq_a64 *)&front->passed);
        bool any = shmq_load_seq((shmq_a64 *)&ring->flushed) > shmq_load_seq((shmq_a64 *)&ring->pulled) + alone;
        uint64_t low = shmq_place_at(depth, shmq_load_seq((shmq_a64 *)&ring->low));
        c->first_position = any && low < c->first_position ? low : c->first_position;
    }
}

void shmq_ring_count(const shmq_queue *q, shmq_census *c) {
    shmq_ring level;
    *c = (shmq_census){.first_position = UINT64_MAX};
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        (void)count_level(&level, c);
    }
    count_rows(q, c);
}

void shmq_ring_sizes(shmq_queue *q, shmq_census *c) {
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->unfinished) != 0)) {
        shmq_flow_mend(q);
    }
    *c = (shmq_census){.first_position = UINT64_MAX};
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        shmq_ring_known(shmq_level(q, depth), c);
    }
    count_rows(q, c);
}

void shmq_ring_census(shmq_queue *q, shmq_census *c) {
    shmq_ring level;
    if (SHMQ_UNLIKELY(shmq_load_relaxed(&q->page->unfinished) != 0)) {
        shmq_flow_mend(q);
    }
    *c = (shmq_census){.first_position = UINT64_MAX};
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        shmq_raise_seq(&level.shm->floor, count_level(&level, c));
    }
    count_rows(q, c);
}

static bool can_be_taken(uint64_t word) {
    return shmq_word_state(word) == SHMQ_AVAILABLE || shmq_word_state(word) == SHMQ_OFFERED;
}

static bool any_carried(const shmq_ring *r) {
    uint64_t index = 0;
    for (shmq_met e; shmq_walk_old(r, &index, shmq_slot_count(r), &e);) {
        if (can_be_taken(e.word)) {
            return true;
        }
    }
    return false;
}

/* Reads the head, then the tail: a head that is below that tail less N is below each later tail less N. The head says
 * nothing of the entries there, as in a scan. */
static bool find_ready(shmq_ring *r) {
    uint64_t head = shmq_load_seq(&r->shm->head);
    uint64_t tail = shmq_load_seq(&r->shm->tail), count = shmq_slot_count(r);
    uint64_t position = shmq_position_near(tail, head);
    if (tail > count && position < tail - count) {
        if (any_carried(r)) {
            return true;
        }
        position = tail - count;
    }
    shmq_delivery d;
    for (;;) {
        if (shmq_browse(r, &position, &d) != SHMQ_OK) {
            return false;
        }
        if (can_be_taken(d.word)) {
            return true;
        }
        position++;
    }
}

bool shmq_ring_ready(shmq_queue *q) {
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        if (find_ready(&level)) {
            return true;
        }
    }
    return SHMQ_UNLIKELY(shmq_has_flowed(q)) && shmq_flow_rows(q) != 0;
}

/* A waiting thread arms the flag before each look; a process that frees a slot and finds it armed disarms it and wakes
 * the thread. While many entries are left a look costs more than it tells, so the thread leaves the flag unarmed and
 * looks again after a time. */
shmq_status shmq_ring_join(shmq_queue *q, uint64_t until_ns) {
    shmq_status slept = SHMQ_OK;
    bool arm = false;
    uint64_t slice_end = shmq_slice_end(q->m);
    for (;;) {
        SHMQ_TRY(shmq_queue_enter(q));
        uint32_t seen = shmq_load_seq(&q->page->ring.drained);
        if (arm) {
            (void)shmq_swap_seq(&q->page->ring.joiners, 1); /* before the look, for other processes too */
        }
        shmq_census c;
        shmq_ring_census(q, &c);
        uint64_t left = c.ready + c.unsettled + c.delayed + c.claimed, now = shmq_now_ns();
        if (left == 0) {
            return shmq_queue_usable(q); /* a deleted queue is empty, too */
        }
        if (now >= until_ns) {
            return SHMQ_TIMEOUT;
        }
        if (slept == SHMQ_INTERRUPTED || now >= slice_end) {
            return shmq_slice_over(q->m);
        }
        uint64_t piece = arm ? q->m->patience_ns : SHMQ_JOIN_LOOK_NS;
        slept = shmq_sleep(q->m, &q->page->ring.drained, seen, until_ns - now < piece ? until_ns : now + piece);
        arm = left <= 64;
        shmq_upkeep.thorough(q->m);
    }
}
