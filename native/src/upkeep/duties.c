/* The list of duties, and the one call that does them. */
#include "base/wait_time.h"
#include "recovery/reap.h"
#include "segment/alert_time.h"
#include "segment/descriptors.h"
#include "segment/structure.h"
#include "upkeep/duty.h"
#include "wake/watch.h"

static bool has_met(const shmq_member *m, uint64_t now) {
    (void)now;
    return shmq_load_relaxed(&m->met) != 0;
}

static bool reap_met(shmq_member *m, uint64_t now, shmq_budget *b) {
    (void)now;
    shmq_budget_spend_all(b);
    shmq_reap_met(m);
    return false;
}

/* Is `then` at least `ns` before `now`? Signed, so that a `then` in the future is not taken for a long time ago. */
static bool is_past(uint64_t then, uint64_t now, uint64_t ns) { return (int64_t)(now - then) >= (int64_t)ns; }

static bool may_be_dead(const shmq_member *m, uint64_t now) {
    return shmq_load_relaxed(&m->rounds.row) != 0 || is_past(shmq_load_relaxed(&m->looked_ns), now, SHMQ_TICK_NS);
}

static bool is_other(const shmq_member *m, uint32_t row) {
    return row != m->row && shmq_row_state(shmq_load_acquire(&m->rows[row].word)) != SHMQ_ROW_FREE; /* SYNC row.owner */
}

/* Looks at process rows from where the last step ended. Reaps one dead process at most. */
static bool look_for_dead(shmq_member *m, uint64_t now, shmq_budget *b) {
    shmq_rounds *u = &m->rounds;
    uint32_t high = shmq_process_high(m), row = shmq_load_relaxed(&u->row);
    if (row == 0) {
        shmq_store_relaxed(&m->looked_ns, now);
    }
    for (; row < high && b->left != 0; row++) {
        if (!is_other(m, row)) {
            continue;
        }
        shmq_budget_spend(b, SHMQ_PRICE_ROW);
        shmq_life life = shmq_process_life(m, row);
        if (life == SHMQ_LOCKLESS) {
            shmq_lockless_begin(m, row);
        } else if (life == SHMQ_DEAD) {
            shmq_budget_spend_all(b); /* a reaper looks at all slots of all queues that the dead process used */
            (void)shmq_reap_row(m, row); /* if it was not reaped now, the next look does it */
        }
    }
    bool left = row < high;
    shmq_store_relaxed(&u->row, left ? row : 0);
    if (!left) {
        shmq_structure_mend(m);
    }
    return left;
}

static bool may_be_gone(const shmq_member *m, uint64_t now) {
    return is_past(shmq_load_relaxed(&m->gone_looked_ns), now, SHMQ_TICK_NS);
}

static bool look_whether_gone(shmq_member *m, uint64_t now, shmq_budget *b) {
    shmq_budget_spend(b, 2 * SHMQ_PRICE_ROW); /* a few system calls */
    shmq_store_relaxed(&m->gone_looked_ns, now);
    if (shmq_segment_fd(m) < 0 || !shmq_has_locks(m)) {
        (void)shmq_member_lost(m);
        shmq_trail_clear(); /* the call that comes next tells */
    } else if (!shmq_member_gone(m)) {
        shmq_files_touch(m, now, b);
    }
    return false;
}

static bool are_dead_letters_due(const shmq_member *m, uint64_t now) {
    (void)now;
    return shmq_is_upcall_due(m, SHMQ_UPCALL_DEAD_LETTERS);
}

static bool may_be_told(const shmq_member *m, uint64_t now) {
    uint64_t next = shmq_load_relaxed(&m->alerts_ns);
    return next != 0 && now >= next;
}

static bool look_for_alerts(shmq_member *m, uint64_t now, shmq_budget *b) {
    (void)now;
    shmq_budget_spend(b, SHMQ_PRICE_ENTRY);
    shmq_alerts_tick(m);
    return false;
}

const shmq_duty shmq_duties[SHMQ_DUTIES] = {
    [SHMQ_DUTY_MET] = {"met", has_met, reap_met},
    [SHMQ_DUTY_DEATHS] = {"deaths", may_be_dead, look_for_dead},
    [SHMQ_DUTY_SEGMENT] = {"segment", may_be_gone, look_whether_gone},
    [SHMQ_DUTY_TIMES] = {"times", shmq_is_time, shmq_times_step},
    [SHMQ_DUTY_DEAD_LETTERS] = {"dead letters", are_dead_letters_due, NULL},
    [SHMQ_DUTY_ALERTS] = {"alerts", may_be_told, look_for_alerts},
};

/* The next call of this process is a round of all duties. The header's word says already when timed ones are due. */
static void hurry(shmq_member *m, uint32_t number) {
    if (number != SHMQ_DUTY_TIMES) {
        shmq_store_relaxed(&m->ops, 1023);
    }
}

static bool is_asked_for(const shmq_member *m, uint32_t number, uint32_t duties, uint64_t now) {
    const shmq_duty *duty = &shmq_duties[number];
    return (duties & SHMQ_DUTY(number)) != 0 && duty->step != NULL && duty->is_due(m, now);
}

/* One round. The duty that would come next when the budget is spent is the first of the next round: no duty waits for
 * ever. */
static bool run(shmq_member *m, uint32_t duties, uint64_t now, shmq_budget *b) {
    uint32_t first = m->rounds.turn;
    bool left = false;
    for (uint32_t i = 0; i < SHMQ_DUTIES; i++) {
        uint32_t number = (first + i) % SHMQ_DUTIES;
        if (!is_asked_for(m, number, duties, now)) {
            continue;
        }
        if (b->left == 0) {
            m->rounds.turn = number;
            hurry(m, number);
            return true;
        }
        if (shmq_duties[number].step(m, now, b)) {
            hurry(m, number);
            left = true;
        }
    }
    return left;
}

/* Most calls find nothing due: they ask the questions only. */
static bool is_any_due(const shmq_member *m, uint32_t duties, uint64_t now) {
    for (uint32_t rest = duties; rest != 0; rest &= rest - 1) {
        if (is_asked_for(m, (uint32_t)__builtin_ctz(rest), duties, now)) {
            return true;
        }
    }
    return false;
}

static bool may_be_done(const shmq_member *m) { return m->process != NULL && shmq_load_relaxed(&m->closed) == 0; }

/* False: another thread of this process does it, or nothing is left to do. */
static bool run_alone(shmq_member *m, uint32_t duties, uint64_t now, const shmq_spare_time *spare) {
    if (!shmq_cas32_seq(&m->rounds.busy, 0, 1)) {
        return false;
    }
    shmq_budget budget = {.left = SHMQ_ROUND_BUDGET, .spare = spare};
    bool left = run(m, duties, now, &budget);
    shmq_store_seq(&m->rounds.busy, 0);
    return left;
}

bool shmq_upkeep_round(shmq_member *m, uint32_t duties) {
    /* Each call asks for what has its time, if there is such a time at all. It is far off mostly: a cheap clock says so. */
    if (duties == SHMQ_DUTY(SHMQ_DUTY_TIMES) && !shmq_is_time(m, shmq_about_now_ns() + SHMQ_CLOCK_LATE_NS)) {
        return false;
    }
    uint64_t now = shmq_now_ns();
    return may_be_done(m) && is_any_due(m, duties, now) && run_alone(m, duties, now, NULL);
}

void shmq_upkeep_finish(shmq_member *m, uint32_t duties, const shmq_spare_time *spare) {
    static const shmq_spare_time endless = {.until_ns = UINT64_MAX};
    uint64_t now = shmq_now_ns();
    if (may_be_done(m) && is_any_due(m, duties, now)) {
        (void)run_alone(m, duties, now, spare != NULL ? spare : &endless);
    }
}

void shmq_upkeep_thorough(shmq_member *m) {
    uint64_t now = shmq_now_ns();
    shmq_spare_time spare = {.until_ns = now + m->patience_ns};
    if (may_be_done(m) && is_any_due(m, SHMQ_EVERY_DUTY, now)) {
        (void)run_alone(m, SHMQ_EVERY_DUTY, now, &spare);
    }
}

void shmq_due_look(shmq_member *m) { shmq_upkeep_finish(m, SHMQ_DUTY(SHMQ_DUTY_TIMES), NULL); }
