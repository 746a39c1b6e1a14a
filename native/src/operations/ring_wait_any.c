/* Waiting for an entry of several queues: announced on all of them, one sleep. */
#include "shmq/group.h"
#include "shmq/ranks.h"
#include "shmq/sleepers.h"
#include "shmq/target.h"
#include "shmq/wait.h"
#include "shmq/ring_wait.h"

typedef struct waiting {
    shmq_waiter_of *of;
    uint32_t count, first;
    shmq_member *m;
    shmq_a32 *word; /* on which we sleep, whichever queue it is that wakes us */
    uint64_t until_ns;
} waiting;

static uint32_t state_of(const shmq_waiter_of *of) { return shmq_load_seq(&of->q->page->shut_down); }

/* In turn, from the first on, until one has something. One that was stopped is left out. */
static shmq_status look_at_all(const waiting *w, bool *claimed, uint32_t *from, shmq_delivery *d) {
    *claimed = false;
    for (uint32_t i = 0; i < w->count; i++) {
        w->of[i].looked = w->of[i].left = false;
        w->of[i].version = 0;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t index = (w->first + i) % w->count;
        shmq_waiter_of *of = &w->of[index];
        bool behind_claim = false;
        if (state_of(of) != SHMQ_STOPPED) {
            shmq_status status = shmq_look(of->q, &of->w, &behind_claim, d);
            if (status != SHMQ_EMPTY) {
                *from = index;
                return status;
            }
            of->version = behind_claim ? 0 : d->version;
            of->left = d->left;
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

/* What was read before the look says that nothing new can come; so an empty look is the end. */
static shmq_status look_for_last(const waiting *w, uint32_t *from, shmq_delivery *d) {
    bool claimed, shut = all_shut(w);
    shmq_status status = look_at_all(w, &claimed, from, d);
    return status == SHMQ_EMPTY && shut ? SHMQ_SHUT_DOWN : status;
}

static shmq_status all_usable(const waiting *w, uint32_t *from) {
    for (uint32_t i = 0; i < w->count; i++) {
        *from = i;
        SHMQ_TRY(shmq_queue_usable(w->of[i].q));
    }
    *from = w->first;
    return SHMQ_OK;
}

static shmq_status spin(const waiting *w, uint32_t *from, shmq_delivery *d) {
    uint64_t start = shmq_now_ns(), end = start + SHMQ_SPIN_NS < w->until_ns ? start + SHMQ_SPIN_NS : w->until_ns;
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

/* One that stands by is not announced: nobody is to wake it for an entry. */
static void announce_on_all(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_waiter_of *of = &w->of[i];
        of->served = shmq_ranks_take_up(of->q, of->owner);
        if (of->served) {
            (void)shmq_announce(of->q, of->w.row, false);
        }
    }
}

static void withdraw_from_all(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_waiter_of *of = &w->of[i];
        of->notified = of->served && shmq_withdraw(of->q, of->w.row, false);
    }
}

static void publish_progress(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_progress_publish(&w->of[i].w, w->of[i].version);
        shmq_ranks_step(w->of[i].q, w->of[i].owner);
    }
}

/* The baton: who was notified on a queue and takes nothing from it passes the wake on. From the queue that gave us
 * something (`but`) that happens when the entry is taken. */
static void pass_on(const waiting *w, uint32_t but) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_waiter_of *of = &w->of[i];
        if (!of->notified || i == but) {
            continue;
        }
        if (of->looked) {
            shmq_progress_publish(&of->w, of->version);
        }
        shmq_wake_pass_on(of->q, &of->w, of->looked ? SHMQ_EMPTY : SHMQ_OK);
    }
}

static uint64_t sleep_limit(const waiting *w) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t limit = shmq_look_limit(w->of[i].q, w->of[i].left);
        least = limit < least ? limit : least;
    }
    return least;
}

static bool is_closing(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        if (shmq_is_closing(w->of[i].q, w->of[i].owner)) {
            return true;
        }
    }
    return false;
}

/* One round: announce, look, sleep, withdraw. SHMQ_TIMEOUT: go on with another round. */
static shmq_status wait_round(const waiting *w, uint32_t *from, shmq_delivery *d) {
    uint32_t seen = shmq_load_seq(w->word); /* before all that a wake may be for */
    bool claimed, claimed_late;
    if (is_closing(w)) {
        return SHMQ_CLOSED;
    }
    announce_on_all(w);
    shmq_status status = look_at_all(w, &claimed, from, d);
    uint64_t now = shmq_now_ns();
    shmq_status slept = SHMQ_OK;
    bool slept_at_all = false;
    publish_progress(w);
    if (status == SHMQ_EMPTY && now < w->until_ns && !all_shut(w)) {
        uint64_t limit = claimed ? SHMQ_SHORT_SLEEP_NS : sleep_limit(w);
        uint64_t until = w->until_ns - now > limit ? now + limit : w->until_ns;
        slept = shmq_sleep(w->m, w->word, seen, until);
        slept_at_all = true;
    }
    bool woken = shmq_load_seq(w->word) != seen;
    withdraw_from_all(w);
    if (status != SHMQ_EMPTY || slept == SHMQ_INTERRUPTED) {
        for (uint32_t i = 0; i < w->count; i++) {
            w->of[i].looked = false; /* what the wake was for may have come since */
        }
        pass_on(w, UINT32_MAX);
        return status != SHMQ_EMPTY ? status : SHMQ_INTERRUPTED;
    }
    status = look_at_all(w, &claimed_late, from, d);
    if (status == SHMQ_OK && w->of[*from].served && slept_at_all && !woken && slept == SHMQ_TIMEOUT && !claimed) {
        shmq_rescue_count(w->of[*from].q, d);
    }
    pass_on(w, status == SHMQ_OK ? *from : UINT32_MAX);
    return status == SHMQ_EMPTY ? SHMQ_TIMEOUT : status;
}

/* Rounds until something comes, the time is over, or there is a reason not to wait. */
static shmq_status wait_rounds(const waiting *w, uint32_t *from, shmq_delivery *d) {
    uint64_t slice_end = shmq_slice_end(w->m);
    for (;;) {
        shmq_status status = wait_round(w, from, d);
        if (status != SHMQ_TIMEOUT) {
            return status;
        }
        SHMQ_TRY(all_usable(w, from));
        if (all_shut(w)) {
            return look_for_last(w, from, d);
        }
        if (shmq_now_ns() >= w->until_ns) {
            return SHMQ_EMPTY;
        }
        if (shmq_now_ns() >= slice_end) {
            return shmq_slice_over(w->m);
        }
    }
}

/* A row on each queue, all of which sleep on one word. */
static shmq_status lay_down(const waiting *w, uint32_t *from) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_waiter_of *of = &w->of[i];
        *from = i;
        if (of->w.row == 0) {
            SHMQ_TRY(shmq_row_borrow(of->q, &of->w.row));
        }
        of->w.consumer = shmq_row_at(of->q, of->w.row);
        if (of->w.consumer == NULL) {
            return shmq_damage(w->m, "offset of a chunk of consumer rows", of->w.row);
        }
        shmq_row_share(w->m, of->w.consumer, w->word);
    }
    *from = w->first;
    return SHMQ_OK;
}

static void get_up(const waiting *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        shmq_waiter_of *of = &w->of[i];
        if (of->w.consumer != NULL) {
            shmq_row_share(w->m, of->w.consumer, NULL);
        }
        if (of->row == 0 && of->w.row != 0) {
            shmq_row_return(of->q, of->w.row);
        }
    }
}

static waiting begin(shmq_waiter_of *of, uint32_t count, uint32_t first, uint64_t until_ns, bool peek) {
    for (uint32_t i = 0; i < count; i++) {
        of[i].w =
            (shmq_waiter){.owner = of[i].owner, .by = of[i].by, .row = of[i].row, .until_ns = until_ns, .peek = peek};
        of[i].notified = false;
    }
    return (waiting){.of = of, .count = count, .first = first % count, .m = of->q->m, .until_ns = until_ns};
}

shmq_status shmq_offer_any(shmq_waiter_of *of, uint32_t count, uint32_t first, uint32_t *from, shmq_delivery *d) {
    waiting w = begin(of, count, first, 0, false);
    SHMQ_TRY(all_usable(&w, from));
    return look_for_last(&w, from, d);
}

static shmq_status wait_as(waiting *w, bool peek, uint32_t *from, shmq_delivery *d) {
    SHMQ_TRY(all_usable(w, from));
    shmq_status status = look_for_last(w, from, d);
    if (status == SHMQ_EMPTY && !peek && w->until_ns != 0) {
        status = spin(w, from, d);
    }
    if (status != SHMQ_EMPTY) {
        return status;
    }
    if (w->until_ns == 0 || shmq_now_ns() >= w->until_ns) {
        shmq_look_for_dead(w->m); /* who only polls never sleeps, so it does here what sleepers do */
        return look_for_last(w, from, d);
    }
    uint32_t number = shmq_target_take(w->m, &w->word);
    status = lay_down(w, from);
    if (status == SHMQ_OK) {
        status = wait_rounds(w, from, d);
    }
    get_up(w);
    shmq_target_give(w->m, number);
    return status;
}

shmq_status shmq_offer_wait_any(shmq_waiter_of *of, uint32_t count, uint32_t first, uint64_t until_ns, uint32_t *from,
                                shmq_delivery *d) {
    waiting w = begin(of, count, first, until_ns, false);
    return wait_as(&w, false, from, d);
}

shmq_status shmq_peek_wait_any(shmq_waiter_of *of, uint32_t count, uint64_t until_ns, uint32_t *from) {
    shmq_delivery d;
    waiting w = begin(of, count, 0, until_ns, true);
    return wait_as(&w, true, from, &d);
}
