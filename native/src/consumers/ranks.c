#include "consumers/ranks.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "consumers/privilege.h"
#include "consumers/sleepers.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "ring/ring_memory.h"
#include "segment/structure.h"
#include "selectors/row_selector.h"
#include "wake/wake_word.h"
#include "wake/watch.h"

static int32_t priority_of(const shmq_consumer_shm *row) {
    return (int32_t)shmq_load_relaxed((shmq_a32 *)&row->priority);
}

static bool is_consumer(const shmq_consumer_shm *row, uint64_t word) {
    return shmq_row_state(word) != SHMQ_ROW_FREE && shmq_load_relaxed((shmq_a32 *)&row->kind) == SHMQ_CONSUMER;
}

static bool is_subscribed(const shmq_queue *q, const shmq_consumer_shm *row) {
    uint64_t word = shmq_load_acquire((shmq_a64 *)&row->word); /* SYNC row.owner */
    return is_consumer(row, word) && !shmq_process_dead(q->m, shmq_row_inner(word));
}

/* The next used consumer row from *row on, of a living or dead process. A dead consumer may hold messages until its row
 * is given back. NULL: there is none. */
static shmq_consumer_shm *next_consumer(const shmq_queue *q, uint32_t *row) {
    for (; *row < SHMQ_CONSUMER_ROWS; ++*row) {
        uint64_t used = shmq_load_seq(&q->page->sleepers[*row / 64].used) >> (*row & 63);
        if (used == 0) {
            *row |= 63; /* no further row of this chunk is in use */
            continue;
        }
        shmq_consumer_shm *consumer = used & 1 ? shmq_row_at(q, *row) : NULL;
        if (consumer != NULL && is_consumer(consumer, shmq_load_acquire(&consumer->word))) { /* SYNC row.owner */
            return consumer;
        }
    }
    return NULL;
}

/* Says whether consumer `a` is served before `b`. Priority decides, then age. */
static bool goes_before(const shmq_consumer_shm *a, const shmq_consumer_shm *b) {
    return priority_of(a) != priority_of(b)
               ? priority_of(a) > priority_of(b)
               : shmq_load_relaxed((shmq_a64 *)&a->order) < shmq_load_relaxed((shmq_a64 *)&b->order);
}

/* `awaited` of a row: times are rounded up, so that no consumer is passed before the patience is over. */
#define ROUND_BITS 24
#define ROUND_MASK ((UINT64_C(1) << ROUND_BITS) - 1)
#define AWAITED_SHIFT 20
static_assert(SHMQ_ROUNDING_NS >= UINT64_C(1) << AWAITED_SHIFT,
              "a sleep to the end of the patience ends after the rounding");

/* Have others waited for this row for the patience, in one round? *word is the row's word at present; *fresh the word
 * to write if nobody has waited in the present round, else 0. */
static bool is_waited_out(const shmq_queue *q, shmq_consumer_shm *row, uint64_t *word, uint64_t *fresh) {
    uint64_t round =
        shmq_load_seq(&row->rounds) & ROUND_MASK; /* first: what `awaited` says of an earlier round does not count */
    uint64_t now = shmq_now_ns(), rounded = (now >> AWAITED_SHIFT) + 1;
    *word = shmq_load_seq(&row->awaited);
    uint64_t since = *word >> ROUND_BITS << AWAITED_SHIFT;
    bool counts = *word != 0 && (*word & ROUND_MASK) == round && since <= rounded << AWAITED_SHIFT;
    *fresh = counts ? 0 : rounded << ROUND_BITS | round;
    if (!counts) {
        return false;
    }
    return now >= since && now - since >= q->m->patience_ns;
}

/* Notes that the caller waits for this row. True: others have waited for it long enough, for the patience in one round.
 * Then its consumer counts as stopped, and others pass it until it makes a step. Each caller writes `awaited`, so
 * consumers that are stopped at the same time are passed at the same time. */
static bool await_row(const shmq_queue *q, shmq_consumer_shm *row) {
    uint64_t word, fresh;
    bool passed = is_waited_out(q, row, &word, &fresh);
    if (fresh != 0) {
        shmq_cas_seq(&row->awaited, word, fresh);
    }
    return passed;
}

/* As await_row, but only asks. A consumer that was passed stays so until it is woken and makes a step. */
static bool was_passed(const shmq_queue *q, shmq_consumer_shm *row) {
    uint64_t word, fresh;
    return is_waited_out(q, row, &word, &fresh);
}

/* Says whether the consumer's process lives. False: it died, and makes no step any more. This process asks for its
 * reaping. */
static bool find_alive(shmq_queue *q, const shmq_consumer_shm *consumer) {
    if (is_subscribed(q, consumer)) {
        return true;
    }
    uint64_t word = shmq_load_acquire((shmq_a64 *)&consumer->word); /* SYNC row.owner */
    if (shmq_row_state(word) != SHMQ_ROW_FREE && q->m->process != NULL) {
        shmq_met_dead(q->m, shmq_row_inner(word));
    }
    return false;
}

static bool await_place(shmq_queue *q, shmq_consumer_shm *row) { return await_row(q, row) || !find_alive(q, row); }

/* The consumers with a live place; one of them that did not take up its place in time; and the first of those that
 * stand by: among those that make steps when they are called, and among those that did not. */
typedef struct line_up {
    uint32_t live;
    shmq_consumer_shm *late, *first, *silent;
} line_up;

static line_up look_at_places(shmq_queue *q, bool waited) {
    line_up l = {0};
    shmq_consumer_shm *row;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        uint32_t place = shmq_load_seq(&row->live);
        shmq_consumer_shm **best = was_passed(q, row) ? &l.silent : &l.first;
        if (place != SHMQ_LIVE_NONE) {
            l.live++;
            l.late = waited && place == SHMQ_LIVE_OFFERED && await_place(q, row) ? row : l.late;
        } else if ((*best == NULL || goes_before(row, *best)) && is_subscribed(q, row)) {
            *best = row;
        }
    }
    return l;
}

/* Wakes this consumer. From here on others wait for it. */
static void call(shmq_queue *q, shmq_consumer_shm *row) {
    (void)await_row(q, row);
    shmq_row_wake(q->m, row);
}

/* Takes the offered place away from a consumer that is late, and calls all that stand by. Those that make no step now
 * need not be waited for one after the other, so many stopped consumers cost no more time than two. */
static void pass(shmq_queue *q, shmq_consumer_shm *late) {
    if (!shmq_cas32_seq(&late->live, SHMQ_LIVE_OFFERED, SHMQ_LIVE_NONE)) {
        return; /* it has taken up its place after all */
    }
    shmq_consumer_shm *row;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        if (shmq_load_seq(&row->live) == SHMQ_LIVE_NONE) {
            call(q, row);
        }
    }
}

/* One step towards `limit` live consumers: offers a place to the first consumer that stands by. A consumer keeps a
 * place that it has taken up, also when the limit is lowered. Then places that come free are not offered again until
 * there are fewer. A dead consumer counts as live until it is reaped: the next one is to get its messages before later
 * ones. `waited`: the caller stands by itself, and passes late consumers, if another one can have the place. */
static bool settle_one(shmq_queue *q, uint32_t limit, bool waited) {
    line_up l = look_at_places(q, waited);
    shmq_consumer_shm *heir = l.first != NULL ? l.first : l.silent;
    if (l.live < limit && heir != NULL) {
        (void)await_row(q, heir); /* its patience begins before it has the place */
        shmq_store_seq(&heir->live, SHMQ_LIVE_OFFERED);
        shmq_row_wake(q->m, heir);
        return true;
    }
    if (l.live == limit && l.late != NULL && l.first != NULL) {
        pass(q, l.late);
        return true;
    }
    return false;
}

static void settle_places(shmq_queue *q, uint32_t limit, bool waited) {
    for (uint32_t steps = 0; steps < 2 * SHMQ_CONSUMER_ROWS && settle_one(q, limit, waited); steps++) {
    }
}

/* Gives each consumer a live place: the limit is gone. */
static void end_reserve(shmq_queue *q) {
    shmq_consumer_shm *row;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        if (shmq_load_seq(&row->live) != SHMQ_LIVE_TAKEN) {
            shmq_store_seq(&row->live, SHMQ_LIVE_TAKEN);
            shmq_row_wake(q->m, row);
        }
    }
}

/* Says whether no consumer uses or used a rank: then rows come and go without a look at other rows. */
bool shmq_ranks_are_plain(const shmq_queue *q) {
    return shmq_load_relaxed(&q->page->terms) == 0 && shmq_load_relaxed(&q->page->settings.live_consumers) == 0;
}

void shmq_ranks_settle(shmq_queue *q) {
    SHMQ_ASSERT(q->m->structure_locked);
    uint32_t wanted = shmq_load_relaxed(&q->page->settings.live_consumers), terms = 0;
    shmq_consumer_shm *row;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        terms |= priority_of(row) != 0 ? SHMQ_TERM_RANKED : 0;
        terms |= shmq_load_relaxed(&row->exclusive) != 0 ? SHMQ_TERM_EXCLUSIVE : 0;
    }
    terms |= wanted != 0 ? SHMQ_TERM_LIMITED : 0;
    if (wanted != 0) {
        settle_places(q, wanted, false);
    } else if ((shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_LIMITED) != 0) {
        end_reserve(q);
    }
    uint32_t before = shmq_load_relaxed(&q->page->terms);
    shmq_store_seq(&q->page->terms, terms);
    if (before != terms) {
        shmq_notify_consumers(q); /* consumers that the old terms held back look again */
    }
}

static bool is_level_in_hand(const shmq_ring *r, uint32_t owner) {
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        uint64_t word = shmq_load_seq(&shmq_slot_at(r, i)->word);
        uint32_t state = shmq_word_state(word);
        bool in_hand = state == SHMQ_OFFERED || state == SHMQ_ACQUIRED || state == SHMQ_LOCKED;
        if (in_hand && shmq_word_owner(word) == owner) {
            return true;
        }
    }
    return false;
}

/* Says whether this consumer is implicit and holds no message: then another consumer may be exclusive beside it. */
static bool is_idle_implicit(shmq_queue *q, uint32_t r, const shmq_consumer_shm *row) {
    bool idle = shmq_load_relaxed((shmq_a32 *)&row->implicit) != 0;
    shmq_ring level;
    for (uint32_t depth = 0; idle && depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        idle = !is_level_in_hand(&level, r);
    }
    return idle;
}

/* Checks that the terms of a new consumer allow the present ones. The caller holds the structure lock. */
static shmq_status check_alone(shmq_queue *q, const shmq_row_terms *terms) {
    shmq_consumer_shm *row;
    if (!terms->exclusive && (shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_EXCLUSIVE) == 0) {
        return SHMQ_OK;
    }
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        bool exclusive = shmq_load_relaxed(&row->exclusive) != 0;
        if ((exclusive || terms->exclusive) && is_subscribed(q, row) && !is_idle_implicit(q, r, row)) {
            uint32_t inner = shmq_row_inner(shmq_load_relaxed(&row->word));
            return shmq_fail(SHMQ_REFUSED, "%s of pid %u",
                             exclusive ? "it has an exclusive consumer," : "it has another consumer,",
                             inner < SHMQ_PROCESS_ROWS ? q->m->rows[inner].pid : 0);
        }
    }
    return SHMQ_OK;
}

/* Threads that wait without a consumer may use rows that consumers leave over; some rows are theirs in any case. */
static shmq_status check_number(const shmq_queue *q) {
    uint32_t rows = 0, consumers = 0;
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        rows += (uint32_t)__builtin_popcountll(shmq_load_seq(&q->page->sleepers[chunk].used));
    }
    for (uint32_t r = 1; rows >= SHMQ_CONSUMERS && next_consumer(q, &r) != NULL; r++) {
        consumers++;
    }
    return consumers < SHMQ_CONSUMERS
               ? SHMQ_OK
               : shmq_fail(SHMQ_LIMIT,
                           "the queue cannot have another consumer\n%u consumers are all that it can have\n"
                           "close consumers, or use more queues",
                           consumers);
}

static void take_privilege(shmq_queue *q, uint32_t row) {
    if ((shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_LIMITED) != 0 && shmq_ranks_take_up(q, row)) {
        shmq_privilege_take(q, row);
    }
}

static shmq_status open_as(shmq_queue *q, const shmq_row_terms *terms, uint32_t *row) {
    SHMQ_TRY(shmq_structure_lock(q->m));
    shmq_status status = terms->kind == SHMQ_CONSUMER ? check_alone(q, terms) : SHMQ_OK;
    if (status == SHMQ_OK && terms->kind == SHMQ_CONSUMER) {
        status = check_number(q);
    }
    if (status == SHMQ_OK) {
        status = shmq_row_fill(q, terms, row);
    }
    if (status == SHMQ_OK && terms->kind == SHMQ_CONSUMER &&
        (terms->priority != 0 || terms->exclusive || !shmq_ranks_are_plain(q))) {
        shmq_ranks_settle(q);
    }
    shmq_structure_unlock(q->m);
    if (status == SHMQ_OK && terms->kind == SHMQ_CONSUMER) {
        take_privilege(q, *row); /* a live consumer has its privilege, whether it receives or not */
    }
    return status;
}

shmq_status shmq_row_open_as(shmq_queue *q, const shmq_row_terms *terms, uint32_t *row) {
    if (terms->exclusive || !shmq_ranks_are_plain(q)) {
        (void)shmq_reap_now(q->m); /* messages of a dead consumer go back to their places first */
    }
    shmq_status status = open_as(q, terms, row);
    uint32_t reaped = 0;
    if (SHMQ_UNLIKELY(status == SHMQ_LIMIT) && shmq_upkeep.reap_dead(q->m, &reaped) == SHMQ_OK && reaped != 0) {
        status = open_as(q, terms, row); /* dead consumers had some of the rows */
    }
    return status;
}

bool shmq_is_served(const shmq_queue *q, uint32_t owner) {
    if (SHMQ_LIKELY((shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_LIMITED) == 0)) {
        return true;
    }
    shmq_consumer_shm *row = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    return row == NULL || shmq_load_seq(&row->live) != SHMQ_LIVE_NONE;
}

bool shmq_ranks_take_up(shmq_queue *q, uint32_t owner) {
    shmq_consumer_shm *row = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    if (SHMQ_LIKELY((shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_LIMITED) == 0) || row == NULL) {
        return true;
    }
    uint32_t place;
    while ((place = shmq_load_seq(&row->live)) == SHMQ_LIVE_OFFERED) {
        if (shmq_cas32_seq(&row->live, SHMQ_LIVE_OFFERED, SHMQ_LIVE_TAKEN)) {
            return true;
        }
    }
    return place != SHMQ_LIVE_NONE;
}

/* A consumer that stands by passes those that do not take up an offered place. *left: a place is offered to another
 * one. It asks for the lock only after the patience, and does not wait for it, since a stopped process may have it.
 * True: it has settled the places. */
static bool pass_late(shmq_queue *q, const shmq_consumer_shm *own, bool *left) {
    shmq_consumer_shm *row;
    bool late = false;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        if (row != own && shmq_load_seq(&row->live) == SHMQ_LIVE_OFFERED) {
            late = await_place(q, row) || late; /* each one is waited for: see await_row */
            *left = true;
        }
    }
    if (SHMQ_LIKELY(!late)) {
        return false;
    }
    if (shmq_structure_try(q->m) != SHMQ_OK) {
        shmq_trail_clear(); /* for the caller nothing has failed */
        return false;
    }
    uint32_t wanted = shmq_load_relaxed(&q->page->settings.live_consumers);
    if (wanted != 0) {
        settle_places(q, wanted, true);
    }
    shmq_structure_unlock(q->m);
    return true;
}

/* Looks whether the consumer may take now. This look counts as its step: it is not stopped. */
static bool serve_now(shmq_queue *q, uint32_t owner, shmq_consumer_shm *row, bool *left) {
    if (SHMQ_LIKELY(shmq_ranks_take_up(q, owner))) {
        return true;
    }
    shmq_add_seq(&row->rounds, 1);
    return pass_late(q, row, left) && shmq_ranks_take_up(q, owner);
}

/* The terms say that an exclusive consumer exists; it may be dead and not reaped yet. */
static shmq_status check_nobody_exclusive(const shmq_queue *q) {
    shmq_consumer_shm *row;
    for (uint32_t r = 1; (row = next_consumer(q, &r)) != NULL; r++) {
        if (shmq_load_relaxed(&row->exclusive) != 0 && is_subscribed(q, row)) {
            uint32_t inner = shmq_row_inner(shmq_load_relaxed(&row->word));
            return shmq_fail(SHMQ_REFUSED, "it has an exclusive consumer, of pid %u",
                             inner < SHMQ_PROCESS_ROWS ? q->m->rows[inner].pid : 0);
        }
    }
    return SHMQ_OK;
}

shmq_status shmq_ranks_admit(shmq_queue *q, uint32_t owner, bool *left) {
    uint32_t terms = shmq_load_relaxed(&q->page->terms);
    shmq_consumer_shm *row = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    if ((terms & SHMQ_TERM_EXCLUSIVE) != 0 && (row == NULL || shmq_load_relaxed(&row->exclusive) == 0)) {
        return check_nobody_exclusive(q);
    }
    if ((terms & SHMQ_TERM_LIMITED) != 0 && row != NULL) {
        if (!serve_now(q, owner, row, left)) {
            return SHMQ_EMPTY;
        }
        shmq_privilege_take(q, owner);
    }
    if ((terms & SHMQ_TERM_RANKED) != 0 && row != NULL) {
        shmq_add_seq(&row->rounds, 1);
    }
    return SHMQ_OK;
}

void shmq_ranks_step(shmq_queue *q, uint32_t owner) {
    bool ranked = (shmq_load_relaxed(&q->page->terms) & SHMQ_TERM_RANKED) != 0;
    shmq_consumer_shm *row = SHMQ_UNLIKELY(ranked) && !(owner & SHMQ_OWNER_PROCESS) ? shmq_row_at(q, owner) : NULL;
    if (row != NULL) {
        shmq_add_seq(&row->rounds, 1);
    }
}

/* Says whether this consumer may take, and has not looked at everything yet. If not, no entry is left to it. */
static bool may_take(shmq_queue *q, uint32_t row) { return shmq_is_served(q, row) && !shmq_wants_nothing(q, row); }

bool shmq_defer_to_rank(shmq_queue *q, uint32_t owner) {
    shmq_consumer_shm *own = owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(q, owner);
    int32_t priority = own != NULL ? priority_of(own) : 0;
    bool outranked = false;
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        uint64_t want = shmq_load_seq(&q->page->sleepers[chunk].want);
        for (; want != 0; want &= want - 1) {
            uint32_t row = chunk * 64 + (uint32_t)__builtin_ctzll(want);
            shmq_consumer_shm *other = shmq_row_at(q, row);
            if (other != NULL && other != own && priority_of(other) > priority && may_take(q, row) &&
                !await_row(q, other)) { /* each one is waited for, also when one is enough: see await_row */
                outranked = outranked || is_subscribed(q, other);
            }
        }
    }
    return outranked;
}

/* The row of highest priority among consumers that sleep and have not looked at everything; 0: none. Of equals it is
 * the first one behind the sleeper that was woken last. The chunk of that one is looked at twice, for the two sides of
 * it. */
static uint32_t highest_idle(shmq_queue *q, int32_t *priority) {
    uint32_t best = 0, rotation = shmq_load_relaxed(&q->rotation);
    uint64_t later = ~UINT64_C(0) << (rotation & 63);
    for (uint32_t i = 0; i <= SHMQ_CHUNKS; i++) {
        uint32_t chunk = (rotation / 64 + i) % SHMQ_CHUNKS;
        uint64_t idle = shmq_load_seq(&q->page->sleepers[chunk].idle);
        idle &= i == 0 ? later : i == SHMQ_CHUNKS ? ~later : ~UINT64_C(0);
        for (; idle != 0; idle &= idle - 1) {
            uint32_t row = chunk * 64 + (uint32_t)__builtin_ctzll(idle);
            shmq_consumer_shm *consumer = shmq_row_at(q, row);
            if (consumer != NULL && (best == 0 || priority_of(consumer) > *priority) && !shmq_has_looked(q, row) &&
                !shmq_look_for(q, row)) {
                best = row;
                *priority = priority_of(consumer);
            }
        }
    }
    return best;
}

/* Says whether a consumer above this priority is awake, wants an entry and has not looked at everything. Then the
 * caller waits for it. False: there is none, or none that has to be waited for any longer. */
static bool await_above(shmq_queue *q, int32_t priority) {
    for (uint32_t chunk = 0; chunk < SHMQ_CHUNKS; chunk++) {
        shmq_sleepers_shm *sleepers = &q->page->sleepers[chunk];
        uint64_t idle = shmq_load_seq(&sleepers->idle), bits = shmq_load_seq(&sleepers->want) & ~idle;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t row = chunk * 64 + (uint32_t)__builtin_ctzll(bits);
            shmq_consumer_shm *consumer = shmq_row_at(q, row);
            if (consumer != NULL && priority_of(consumer) > priority && may_take(q, row) && !await_row(q, consumer) &&
                find_alive(q, consumer)) {
                return true;
            }
        }
    }
    return false;
}

void shmq_notify_ranked(shmq_queue *q) {
    for (uint32_t tries = 0; tries < SHMQ_CONSUMER_ROWS; tries++) {
        int32_t priority = 0;
        uint32_t row = highest_idle(q, &priority);
        if (row == 0 || await_above(q, priority)) {
            return; /* none sleeps; or one above is awake, and looks before it sleeps */
        }
        shmq_consumer_shm *consumer = shmq_row_at(q, row);
        bool passed = consumer != NULL && await_row(q, consumer);
        shmq_store_relaxed(&q->rotation, row + 1);
        if (shmq_wake_idle(q, row) && !passed) {
            return; /* a passed consumer is woken, since it may go on again, and so is the next one */
        }
    }
}
