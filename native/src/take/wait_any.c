/* Waits for an entry: the taker announces itself, looks once more, sleeps, withdraws. A wait is for one queue or
 * several: the taker announces itself on all of them, and sleeps once. */
#include "take/wait_any.h"
#include "consumers/ranks.h"
#include "consumers/sleepers.h"
#include "flow/turn.h"
#include "groups/group.h"
#include "groups/row_close.h"
#include "limits/slot_free.h"
#include "look/census.h"
#include "queue/consumer_row.h"
#include "queue/level.h"
#include "selectors/row_selector.h"
#include "take/offer.h"
#include "wake/wait.h"
#include "wake/wake_word.h"
#include "wake/watch.h"

#include <sched.h>

typedef struct waiting {
    shmq_queue_wait *of;
    uint32_t count, first;
    shmq_member *m;
    shmq_a32 *word; /* on which the taker sleeps, whichever queue wakes it */
    uint32_t wake_word; /* of several: the number of the word that their rows share */
    uint64_t until_ns;
} waiting;

static shmq_status offer_to(const shmq_queue_wait *w, shmq_delivery *d) {
    return SHMQ_UNLIKELY(w->peek) ? shmq_peek_to(w->q, w->owner, w->by, d) : shmq_offer_to(w->q, w->owner, w->by, d);
}

shmq_status shmq_look(const shmq_queue_wait *w, bool *claimed, shmq_delivery *d) {
    shmq_status status = offer_to(w, d);
    *claimed = status == SHMQ_EMPTY && d->word != 0;
    shmq_ring *level = *claimed ? shmq_level(w->q, d->depth) : NULL;
    if (level != NULL && shmq_patience_over(level, &level->taking, d->position, d->word)) {
        shmq_notify(w->q);
        status = offer_to(w, d);
        *claimed = status == SHMQ_EMPTY && d->word != 0;
    }
    return status;
}

void shmq_rescue_count(shmq_queue *q, const shmq_delivery *d) {
    if ((int64_t)(shmq_now_ns() - d->enqueued_ns) > (int64_t)q->m->patience_ns / 2 && !shmq_reap_now(q->m)) {
        shmq_add_relaxed(&q->m->header->rescues, 1);
    }
}

/* The consumer publishes up to which version it has looked at everything, without finding an entry for itself. No
 * notifier need wake it for that again. 0: it has not. */
static void publish(const shmq_queue_wait *w) {
    if (w->version != 0 && w->by != NULL) {
        shmq_row_looked(w->q, w->consumer, w->by);
    }
    if (w->version != 0 || SHMQ_UNLIKELY(shmq_load_relaxed(&w->consumer->progress) != 0)) {
        shmq_store_seq(&w->consumer->progress, w->version);
    }
}

/* Does another thread close the consumer that this one waits for? */
static bool is_closing(const shmq_queue_wait *w) {
    shmq_consumer_shm *row = w->owner & SHMQ_OWNER_PROCESS ? NULL : shmq_row_at(w->q, w->owner);
    return row != NULL && shmq_row_state(shmq_load_acquire(&row->word)) != SHMQ_ROW_LIVE; /* SYNC row.owner */
}

/* How long the taker sleeps at most after a look that found nothing. Where it left an entry to others, it looks again
 * when those may be passed. */
static uint64_t look_limit(const shmq_queue_wait *w) {
    uint64_t limit = shmq_sleep_limit(w->q), passed = w->q->m->patience_ns + SHMQ_ROUNDING_NS;
    bool left = w->why == SHMQ_LEFT_TO_OTHER || w->why == SHMQ_NOT_SERVED;
    return SHMQ_UNLIKELY(left) && passed < limit ? passed : limit;
}

static uint32_t row_of(const shmq_queue_wait *w) { return w->row != 0 ? w->row : w->borrowed; }

static uint32_t state_of(const shmq_queue_wait *of) { return shmq_load_seq(&of->q->page->shut_down); }

/* Notes whether a mover is in the taker's way, and whether that mover gets on. */
static void note_lock(shmq_queue_wait *of) {
    bool taken = of->why == SHMQ_LOCK_TAKEN;
    if (SHMQ_LIKELY(!taken)) {
        of->turn.since_ns = 0;
    }
    of->awaited = taken && shmq_turn_goes_on(of->q, &of->turn);
}

/* Looks at the queues in turn, from `first` on, until one has an entry. It leaves out queues that were stopped. */
static shmq_status look_at_all(const waiting *w, bool *claimed, uint32_t *from, shmq_delivery *d) {
    *claimed = false;
    for (uint32_t i = 0; i < w->count; i++) {
        w->of[i].looked = w->of[i].awaited = false;
        w->of[i].why = SHMQ_AT_END;
        w->of[i].version = 0;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t index = (w->first + i) % w->count;
        shmq_queue_wait *of = &w->of[index];
        bool behind_claim = false;
        if (state_of(of) != SHMQ_STOPPED) {
            shmq_status status = shmq_look(of, &behind_claim, d);
            if (status != SHMQ_EMPTY) {
                *from = index;
                return status;
            }
            of->version = behind_claim ? 0 : d->seen.version;
            of->why = d->seen.why;
            note_lock(of);
            *claimed = *claimed || behind_claim;
        }
        of->looked = true;
    }
    return SHMQ_EMPTY;
}

static bool all_shut(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (state_of(&w->of[i]) == SHMQ_OPEN) {
            return false;
        }
    }
    return true;
}

/* Says whether the taker could not look at an entry, or has left one to another consumer. Then an empty look is not the
 * last one: an inhaler is about to bring entries, or has brought them since; the other consumer may want nothing of
 * what was left. */
static bool any_partial(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (SHMQ_UNLIKELY(shmq_is_partial(&w->of[i]))) {
            return true;
        }
    }
    return false;
}

/* The look after which no new entry can come, by what was read before it; an empty one is the end. Not behind a claim:
 * an entry that was put before the shutdown comes when its producer goes on, dies, or is passed. */
static shmq_status look_for_last(const waiting *w, bool *claimed, uint32_t *from, shmq_delivery *d) {
    bool shut = all_shut(w);
    shmq_status status = look_at_all(w, claimed, from, d);
    return status == SHMQ_EMPTY && shut && !*claimed && !any_partial(w) ? SHMQ_SHUT_DOWN : status;
}

/* Says whether a mover is in the way that gets on. */
static bool any_awaited(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (SHMQ_UNLIKELY(w->of[i].awaited)) {
            return true;
        }
    }
    return false;
}

/* Does something else keep entries on disk for a moment? Not where all slots are in use, where another consumer may be
 * stopped, or a mover is. */
static bool any_to_come(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (SHMQ_UNLIKELY(w->of[i].why == SHMQ_MORE_TO_COME)) {
            return true;
        }
    }
    return false;
}

/* The last look of a taker that does not wait, or no longer. For movers it does, as long as they get on: the queue is
 * not empty. For what else keeps messages on disk it waits until `until_ns`. */
static shmq_status look_at_last(const waiting *w, uint64_t until_ns, uint32_t *from, shmq_delivery *d) {
    uint64_t slice_end = shmq_now_ns() + SHMQ_SLICE_NS;
    for (;;) {
        bool claimed;
        shmq_status status = look_for_last(w, &claimed, from, d);
        bool awaited = any_awaited(w);
        uint64_t now;
        if (status != SHMQ_EMPTY || !(awaited || any_to_come(w))) {
            return status;
        }
        if ((now = shmq_now_ns()) >= until_ns && !awaited) {
            return status;
        }
        if (now >= slice_end && awaited) {
            return shmq_slice_over(w->m); /* of->turn goes on in the next piece */
        }
        sched_yield();
    }
}

static shmq_status all_usable(const waiting *w, uint32_t *from) {
    for (uint32_t i = 0; i < w->count; i++) {
        *from = i;
        SHMQ_TRY(i == 0 ? shmq_queue_enter(w->of[i].q) : shmq_queue_usable(w->of[i].q)); /* one upkeep serves all */
    }
    *from = w->first;
    return SHMQ_OK;
}

static shmq_status spin(const waiting *w, uint32_t *from, shmq_delivery *d) {
    uint64_t start = shmq_now_ns(), end = start + SHMQ_SPIN_NS;
    end = w->until_ns != 0 && w->until_ns < end ? w->until_ns : end;
    bool claimed;
    for (;;) {
        shmq_status status = look_at_all(w, &claimed, from, d);
        if (status != SHMQ_EMPTY || shmq_now_ns() >= end) {
            return status;
        }
        for (int i = 0; i < 16; i++) {
            shmq_pause();
        }
    }
}

/* Announces the sleeper on its queues, but no consumer that stands by: no notifier is to wake it for an entry. */
static void announce_on_all(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_queue_wait *of = &w->of[i];
        of->served = shmq_ranks_take_up(of->q, of->owner);
        if (of->served) {
            (void)shmq_announce(of->q, row_of(of), false);
        }
    }
}

static void withdraw_from_all(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_queue_wait *of = &w->of[i];
        of->notified = of->served && shmq_withdraw(of->q, row_of(of), false);
        if (of->by != NULL) {
            shmq_row_catch_up(of->q, of->consumer, of->by);
        }
    }
}

void shmq_peek_pass_on(shmq_queue *q) {
    if (shmq_anybody_idle(q) && shmq_ring_ready(q)) {
        shmq_notify(q);
    }
}

/* A consumer that wants nothing of what there is tells others. As long as it wanted something, they left that to it, or
 * were not woken. */
static void publish_progress(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        const shmq_queue_wait *of = &w->of[i];
        publish(of);
        shmq_ranks_step(of->q, of->owner);
        if (of->version != 0 && SHMQ_UNLIKELY((shmq_load_relaxed(&of->q->page->terms) & SHMQ_TERM_RANKED) != 0)) {
            shmq_peek_pass_on(of->q);
        }
    }
}

/* The baton: a taker that was notified on a queue, and took nothing from it, passes the wake on. For the queue that
 * gave it an entry (`but`) that happens when it takes the entry. A taker that has looked at all that it may have gets
 * no wake, so this ends. */
static void pass_on(const waiting *w, uint32_t but) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_queue_wait *of = &w->of[i];
        if (!of->notified || i == but) {
            continue;
        }
        if (of->looked) {
            publish(of);
        }
        if (!of->looked) {
            shmq_notify(of->q);
        } else if (of->version != 0 || shmq_taker(of->q, of->by) != NULL) {
            shmq_peek_pass_on(of->q);
        }
    }
}

static uint64_t sleep_limit(const waiting *w) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t limit = look_limit(&w->of[i]);
        least = limit < least ? limit : least;
    }
    return least;
}

static bool any_closing(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (is_closing(&w->of[i])) {
            return true;
        }
    }
    return false;
}

/* Returns the piece of a taker's wait: of several queues, the piece of the queue with the fewest sleepers. */
static uint64_t slice_of(const waiting *w) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t slice = shmq_sleep_slice(w->of[i].q);
        least = slice < least ? slice : least;
    }
    return least;
}

/* Does one round: announces, looks, sleeps, withdraws. SHMQ_TIMEOUT: the caller goes on with another round. */
static shmq_status wait_round(const waiting *w, uint64_t *slice_end, uint32_t *from, shmq_delivery *d) {
    uint32_t seen = shmq_load_seq(w->word); /* read before all that a wake may be for */
    bool claimed, claimed_late;
    if (any_closing(w)) {
        return SHMQ_CLOSED;
    }
    announce_on_all(w);
    shmq_status status = look_at_all(w, &claimed, from, d);
    uint64_t now = shmq_now_ns();
    shmq_status slept = SHMQ_OK;
    bool slept_at_all = false;
    publish_progress(w);
    bool shut = all_shut(w);
    if (status == SHMQ_EMPTY && now < w->until_ns && (!shut || claimed || any_partial(w))) {
        uint64_t limit = claimed || shut ? SHMQ_SHORT_SLEEP_NS : sleep_limit(w);
        uint64_t until = w->until_ns - now > limit ? now + limit : w->until_ns;
        slept = shmq_sleep_long(w->m, w->word, seen, until, slice_end);
        slept_at_all = true;
    }
    bool woken = shmq_load_seq(w->word) != seen;
    withdraw_from_all(w);
    if (status != SHMQ_EMPTY || slept == SHMQ_INTERRUPTED) {
        for (uint32_t i = 0; i < w->count; i++) {
            w->of[i].looked = false; /* the wake may be for an entry that has come since */
        }
        pass_on(w, UINT32_MAX);
        return status != SHMQ_EMPTY ? status : SHMQ_INTERRUPTED;
    }
    status = look_at_all(w, &claimed_late, from, d);
    /* After a shutdown the taker looks by time: no process owes it a wake then. */
    if (status == SHMQ_OK && w->of[*from].served && slept_at_all && !woken && slept == SHMQ_TIMEOUT && !claimed &&
        !shut) {
        shmq_rescue_count(w->of[*from].q, d);
    }
    pass_on(w, status == SHMQ_OK ? *from : UINT32_MAX);
    return status == SHMQ_EMPTY ? SHMQ_TIMEOUT : status;
}

/* Rounds until an entry comes, the time is over, or there is a reason not to wait. */
static shmq_status wait_rounds(const waiting *w, uint32_t *from, shmq_delivery *d) {
    uint64_t slice_end = shmq_now_ns() + slice_of(w);
    for (;;) {
        shmq_status status = wait_round(w, &slice_end, from, d);
        if (status != SHMQ_TIMEOUT) {
            return status;
        }
        SHMQ_TRY(all_usable(w, from));
        bool claimed;
        if (all_shut(w) && (status = look_for_last(w, &claimed, from, d)) != SHMQ_EMPTY) {
            return status;
        }
        if (shmq_now_ns() >= w->until_ns) {
            return SHMQ_UNLIKELY(any_awaited(w)) ? look_at_last(w, 0, from, d) : SHMQ_EMPTY;
        }
        if (shmq_now_ns() >= slice_end) {
            return shmq_slice_over(w->m);
        }
    }
}

/* Takes a row on each queue. A taker of one queue sleeps on that row's own word, a taker of several on a word that its
 * rows share. */
static shmq_status lay_down(waiting *w, uint32_t *from) {
    if (w->count > 1) {
        w->wake_word = shmq_wake_word_take(w->m, &w->word);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_queue_wait *of = &w->of[i];
        *from = i;
        if (of->row == 0) {
            SHMQ_TRY(shmq_row_borrow(of->q, &of->borrowed));
        }
        of->consumer = shmq_row_at(of->q, row_of(of));
        if (of->consumer == NULL) {
            return shmq_damage(w->m, "the offset of a chunk of consumer rows makes no sense, at row", row_of(of));
        }
        if (w->count > 1) {
            shmq_row_share(w->m, of->consumer, w->word);
        } else {
            w->word = &of->consumer->wake;
        }
    }
    *from = w->first;
    return SHMQ_OK;
}

static void get_up(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_queue_wait *of = &w->of[i];
        if (w->count > 1 && of->consumer != NULL) {
            shmq_row_share(w->m, of->consumer, NULL);
        }
        if (of->borrowed != 0) {
            shmq_row_return(of->q, of->borrowed);
        }
    }
    if (w->count > 1) {
        shmq_wake_word_give(w->m, w->wake_word);
    }
}

static waiting begin(shmq_queue_wait *of, uint32_t count, uint32_t first, uint64_t until_ns, bool peek) {
    for (uint32_t i = 0; i < count; i++) {
        of[i].peek = peek;
        of[i].borrowed = 0;
        of[i].consumer = NULL;
        of[i].notified = false;
    }
    return (waiting){.of = of, .count = count, .first = first % count, .m = of->q->m, .until_ns = until_ns};
}

static shmq_status wait_as(waiting *w, bool peek, uint32_t *from, shmq_delivery *d) {
    bool claimed;
    SHMQ_TRY(all_usable(w, from));
    shmq_status status = look_for_last(w, &claimed, from, d);
    if (status == SHMQ_EMPTY && !peek && (w->until_ns != 0 || claimed)) { /* a peek is in no hurry */
        status = spin(w, from, d);
    }
    if (status != SHMQ_EMPTY) {
        return status;
    }
    if (w->until_ns == 0 || shmq_now_ns() >= w->until_ns) {
        shmq_upkeep.thorough(w->m); /* a taker that only polls never sleeps */
        return look_at_last(w, shmq_now_ns() + w->m->patience_ns, from, d);
    }
    status = lay_down(w, from);
    if (status == SHMQ_OK) {
        status = wait_rounds(w, from, d);
    }
    get_up(w);
    return status;
}

shmq_status shmq_offer_any(shmq_queue_wait *of, uint32_t count, uint32_t first, uint32_t *from, shmq_delivery *d) {
    waiting w = begin(of, count, first, 0, false);
    bool claimed;
    SHMQ_TRY(all_usable(&w, from));
    return look_for_last(&w, &claimed, from, d);
}

shmq_status shmq_offer_wait_any(shmq_queue_wait *of, uint32_t count, uint32_t first, uint64_t until_ns, uint32_t *from,
                                shmq_delivery *d) {
    waiting w = begin(of, count, first, until_ns, false);
    return wait_as(&w, false, from, d);
}

shmq_status shmq_peek_wait_any(shmq_queue_wait *of, uint32_t count, uint64_t until_ns, uint32_t *from) {
    shmq_delivery d;
    waiting w = begin(of, count, 0, until_ns, true);
    return wait_as(&w, true, from, &d);
}

shmq_status shmq_offer_wait(shmq_queue *q, uint32_t owner, uint32_t consumer_row, uint64_t until_ns, shmq_delivery *d) {
    return shmq_offer_wait_to(q, owner, NULL, consumer_row, until_ns, d);
}

shmq_status shmq_offer_wait_to(shmq_queue *q, uint32_t owner, shmq_subscription *by, uint32_t consumer_row,
                               uint64_t until_ns, shmq_delivery *d) {
    shmq_queue_wait w = {.q = q, .owner = owner, .row = consumer_row, .by = by};
    uint32_t from;
    return shmq_offer_wait_any(&w, 1, 0, until_ns, &from, d);
}
