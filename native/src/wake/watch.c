#include "wake/watch.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/wait_time.h"
#include "segment/structure.h"
#include "wake/due.h"
#include "wake/wake_word.h"

#define TICKING (UINT64_C(1) << 16)
#define QUIET_TICKS 50 /* a second in which no process holds anything, before the watcher sleeps for long again */

static uint64_t watch_word(const shmq_member *m, uint64_t mode) {
    return (m->row + 1) | mode | ((uint64_t)m->row_generation << 32);
}

/* Is it this process's watch? By the generation: a word that an earlier owner of its row left is not. */
static bool is_ours(const shmq_member *m, uint64_t word) { return (word & ~TICKING) == watch_word(m, 0); }

/* Has the watch's process died, or has it ended long ago, and its row another owner? */
static bool is_stale(shmq_member *m, uint64_t word) {
    uint32_t row = shmq_watch_row(word);
    if (row >= SHMQ_PROCESS_ROWS) {
        return true;
    }
    uint64_t owner = shmq_load_acquire(&m->rows[row].word); /* SYNC row.owner */
    return shmq_row_state(owner) == SHMQ_ROW_FREE || shmq_row_generation(owner) != (uint32_t)(word >> 32) ||
           shmq_process_dead(m, row);
}

static bool is_vacant(shmq_member *m, uint64_t word) { return word == 0 || (!is_ours(m, word) && is_stale(m, word)); }

/* Would other processes wait for what this one has, if it died now? */
static bool is_worth_watching(const shmq_member *m, uint32_t row) {
    return shmq_load_seq(&m->rows[row].unsettled) != 0 || shmq_load_seq(&m->rows[row].privileges) != 0;
}

static bool is_duty(shmq_member *m, uint32_t except) {
    uint32_t high = shmq_process_high(m);
    for (uint32_t row = 0; row < high; row++) {
        if (row != except && is_worth_watching(m, row)) {
            return true;
        }
    }
    return false;
}

/* Is there something for the holder of this watch to look after? Watch 0: what any other process holds. Watch 1: the
 * watch itself, while watch 0 has something to look after, and what watch 0's process holds. */
static bool has_duty(shmq_member *m, int index) {
    uint64_t first = shmq_load_seq(&m->header->watch[0]);
    uint32_t row = shmq_watch_row(first);
    if (first == 0) { /* vacant: its last holder may have died before it summoned another */
        return is_duty(m, m->row);
    }
    if (index == 0) {
        return is_duty(m, row);
    }
    return row < SHMQ_PROCESS_ROWS && ((first & TICKING) != 0 || is_worth_watching(m, row));
}

/* Has the last look been longer ago than the patience? The process to which this says yes has to look: no other one
 * gets a yes for another patience. A time that lies in the future is damage. */
static bool claim_look(shmq_member *m, int index) {
    shmq_a64 *looked = &m->header->watch_looked[index];
    uint64_t seen = shmq_load_seq(looked), now = shmq_now_ns();
    return (now - seen >= m->patience_ns || seen > now) && shmq_cas_seq(looked, seen, now);
}

static bool is_due_late(const shmq_member *m) {
    uint64_t due = shmq_due_time(shmq_load_seq(&m->header->due));
    return SHMQ_UNLIKELY(due != SHMQ_DUE_NEVER) && due + m->patience_ns <= shmq_now_ns();
}

/* The holder had something to look after, and no process has looked for the patience: the holder is stopped. */
static bool is_silent(shmq_member *m, int index) { return has_duty(m, index) || (index == 0 && is_due_late(m)); }

static bool reap_holders(shmq_member *m, bool only_holders);

/* Wakes a thread that sleeps on the word at this offset. Its sleep was not over, but it looks at the watch anew. False:
 * no thread sleeps there. */
static bool wake_at(shmq_member *m, uint64_t offset) {
    if (!shmq_is_wake_word(m, offset)) {
        return false;
    }
    shmq_a32 *word = shmq_at(m, offset);
    shmq_add_seq(word, 1);
    return shmq_futex_wake_count(word, 1) > 0;
}

/* Wakes one that can take a watch: not of the process that has watch 0. Otherwise sleepers of a process that is alone
 * would wake each other without end, when they look at rows. For that each one holds something for a moment. */
static void wake_volunteer(shmq_member *m) {
    uint64_t first = shmq_load_seq(&m->header->watch[0]);
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS; i++) {
        uint64_t word = shmq_load_seq(&m->header->volunteers[i]);
        if (word == 0 || (first != 0 && shmq_volunteer_row(word) == shmq_watch_row(first))) {
            continue;
        }
        /* Off the list first: a volunteer that is stopped counts as woken, and must not get the next call, too. */
        if (shmq_cas_seq(&m->header->volunteers[i], word, 0) && wake_at(m, shmq_volunteer_offset(word))) {
            return;
        }
    }
}

/* A watch is vacant while a process holds something: gets a sleeper to take it. */
static void summon(shmq_member *m) {
    shmq_segment_shm *header = m->header;
    uint64_t second = shmq_load_seq(&header->watch[1]);
    if (shmq_load_seq(&header->watch[0]) == 0 && second != 0 && wake_at(m, shmq_load_seq(&header->watch_wake[1]))) {
        return; /* it moves up to watch 0 */
    }
    wake_volunteer(m);
}

static uint64_t sleeps_on(const shmq_watcher *w) { return (uint64_t)((unsigned char *)w->word - w->m->base); }

static uint64_t volunteer_word(const shmq_watcher *w) { return sleeps_on(w) | (uint64_t)(w->m->row + 1) << 48; }

/* Takes a watch. Its last holder may have died or been stopped, and others may have died meanwhile: so the new watcher
 * looks at once. */
static bool take(shmq_watcher *w, int index, uint64_t seen) {
    shmq_segment_shm *header = w->m->header;
    bool late = claim_look(w->m, index);
    if (!is_vacant(w->m, seen) && !(late && is_silent(w->m, index))) {
        return false;
    }
    if (!shmq_cas_seq(&header->watch[index], seen, watch_word(w->m, 0))) {
        return false;
    }
    shmq_store_seq(&header->watch_wake[index], sleeps_on(w));
    w->index = index;
    if (index == 0 && (late || seen != 0)) {
        (void)shmq_upkeep.reap_row(w->m, shmq_watch_row(seen));
        (void)reap_holders(w->m, true);
    }
    return true;
}

/* Does this watcher have its watch still? Another process may have taken it while this one was stopped, or another
 * thread of this process has it. */
static bool has_watch(const shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    return w->index >= 0 && is_ours(w->m, shmq_load_seq(&header->watch[w->index])) &&
           shmq_load_seq(&header->watch_wake[w->index]) == sleeps_on(w);
}

/* Takes a watch that is vacant, or whose holder is dead or silent. */
static bool take_watch(shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    if (take(w, 0, shmq_load_seq(&header->watch[0]))) {
        return true;
    }
    /* Watch 1 looks after the process of watch 0, so its holder must be another process. */
    return !is_ours(w->m, shmq_load_seq(&header->watch[0])) && take(w, 1, shmq_load_seq(&header->watch[1]));
}

static void volunteer(shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    uint64_t word = volunteer_word(w);
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS; i++) {
        if (shmq_load_relaxed(&header->volunteers[i]) != 0 || !shmq_cas_seq(&header->volunteers[i], 0, word)) {
            continue;
        }
        /* A watcher that leaves a watch clears it, then looks for volunteers. A volunteer puts itself on the list, then
         * looks at the watches again: one of the two sees the other. */
        if (take_watch(w)) {
            shmq_cas_seq(&header->volunteers[i], word, 0);
        } else {
            w->volunteer = i;
        }
        return;
    }
}

void shmq_watch_enter(shmq_watcher *w, shmq_member *m, shmq_a32 *word) {
    *w = (shmq_watcher){.m = m, .word = word, .index = -1, .volunteer = -1};
    w->spare = (shmq_spare_time){.word = word, .seen = shmq_load_seq(word), .until_ns = UINT64_MAX};
    if (!take_watch(w)) {
        volunteer(w);
    }
}

static bool reap_holders(shmq_member *m, bool only_holders) {
    uint32_t high = shmq_process_high(m);
    bool found = false;
    for (uint32_t row = 0; row < high; row++) {
        if (row == m->row ||
            shmq_row_state(shmq_load_acquire(&m->rows[row].word)) == SHMQ_ROW_FREE) { /* SYNC row.owner */
            continue;
        }
        shmq_life life = !only_holders || is_worth_watching(m, row) ? shmq_process_life(m, row) : SHMQ_ALIVE;
        if (life == SHMQ_LOCKLESS) {
            shmq_lockless_begin(m, row);
        } else if (life == SHMQ_DEAD) {
            (void)shmq_upkeep.reap_row(m, row); /* if it fails, the next process that looks reaps */
            found = true;
        }
    }
    shmq_structure_mend(m);
    return found;
}

bool shmq_reap_now(shmq_member *m) { return reap_holders(m, false); }

/* Moves from watch 1 to watch 0 when that has become vacant or silent. */
static void move_up(shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    uint64_t first = shmq_load_seq(&header->watch[0]), mine = shmq_load_seq(&header->watch[1]);
    bool same_process = is_ours(w->m, first);
    if (!same_process && !take(w, 0, first)) {
        return;
    }
    if (is_ours(w->m, mine)) {
        shmq_cas_seq(&header->watch[1], mine, 0);
    }
    if (same_process) {
        w->index = -1; /* another thread of this process holds watch 0: watch 1 is for another process */
    }
    if (is_duty(w->m, SHMQ_PROCESS_ROWS)) {
        wake_volunteer(w->m); /* to take watch 1 */
    }
}

/* A process that watched a moment ago goes on ticking when it sleeps again. Otherwise each message of a trickle, held
 * for microseconds, would first have to wake the watcher. */
static bool watched_lately(const shmq_watcher *w) {
    uint64_t watched = shmq_load_relaxed(&w->m->watched_ns);
    return watched != 0 && shmq_now_ns() - watched < QUIET_TICKS * SHMQ_TICK_NS;
}

/* How long the watcher sleeps: to what is due, if that is sooner than the limit. The second watcher comes a tick later:
 * what is due still was left by the first. While a process looks, the word does not say yet what is next, and the
 * watcher gets no wake. So it reads the word again after a tick. While another thread of this process does upkeep, this
 * one cannot. */
static uint64_t until_due(const shmq_watcher *w, uint64_t limit_ns) {
    uint64_t word = shmq_load_seq(&w->m->header->due), due = shmq_due_time(word);
    if (SHMQ_LIKELY(due == SHMQ_DUE_NEVER)) {
        return limit_ns;
    }
    uint64_t now = shmq_now_ns(), late = w->index == 0 ? 0 : SHMQ_TICK_NS;
    uint64_t left = due + late > now ? due + late - now : 0;
    uint64_t most = (word & SHMQ_DUE_LOOKING) != 0 && limit_ns > SHMQ_TICK_NS ? SHMQ_TICK_NS : limit_ns;
    uint64_t least = shmq_load_relaxed(&w->m->rounds.busy) != 0 ? SHMQ_SHORT_SLEEP_NS : 0;
    left = left > least ? left : least;
    return left < most ? left : most;
}

uint64_t shmq_watch_slice(shmq_watcher *w, uint64_t limit_ns) {
    if (SHMQ_UNLIKELY(w->index >= 0 && !has_watch(w))) {
        w->index = -1;
    }
    if (w->index == 1) {
        move_up(w);
    }
    if (w->index < 0) {
        return limit_ns;
    }
    limit_ns = until_due(w, limit_ns); /* after the watch was taken: a process looks for the watch after its due word */
    /* The watcher sets the mode first, then looks. A process that begins to hold something raises `unsettled` first,
     * then looks at the mode. One of the two sees the other. */
    shmq_a64 *word = &w->m->header->watch[w->index];
    bool ticking = w->quiet != 0 ? w->quiet <= QUIET_TICKS : watched_lately(w);
    if (!ticking) {
        shmq_cas_seq(word, watch_word(w->m, TICKING), watch_word(w->m, 0));
    }
    if (has_duty(w->m, w->index)) {
        w->quiet = 1;
        ticking = true;
        shmq_store_relaxed(&w->m->watched_ns, shmq_now_ns());
    }
    if (!ticking) {
        w->quiet = 0;
        return limit_ns;
    }
    w->quiet += w->quiet == 0;
    if (shmq_cas_seq(word, watch_word(w->m, 0), watch_word(w->m, TICKING)) && w->index == 0) {
        uint64_t second = shmq_load_seq(&w->m->header->watch[1]);
        if (second == 0) {
            wake_volunteer(w->m);
        } else if ((second & TICKING) == 0) {
            (void)wake_at(w->m, shmq_load_seq(&w->m->header->watch_wake[1])); /* the second one watches this one */
        }
    }
    return limit_ns < SHMQ_TICK_NS ? limit_ns : SHMQ_TICK_NS;
}

void shmq_watch_tick(shmq_watcher *w) {
    if (w->index < 0 && is_due_late(w->m)) {
        (void)take_watch(w); /* before the look, which hides that the watcher was late */
    }
    shmq_upkeep.finish(w->m, SHMQ_DUTY(SHMQ_DUTY_TIMES), &w->spare);
    if (w->index < 0) {
        return;
    }
    if (w->quiet > 0) {
        w->quiet++;
        if (w->index == 0) {
            (void)reap_holders(w->m, true);
        }
    } else {
        shmq_upkeep.finish(w->m, SHMQ_DUTY(SHMQ_DUTY_DEATHS) | SHMQ_DUTY(SHMQ_DUTY_SEGMENT),
                           NULL); /* a death is noticed in 50 ms */
    }
    shmq_store_seq(&w->m->header->watch_looked[w->index], shmq_now_ns());
}

void shmq_watch_leave(shmq_watcher *w) {
    shmq_segment_shm *header = w->m->header;
    if (w->volunteer >= 0) {
        shmq_cas_seq(&header->volunteers[w->volunteer], volunteer_word(w), 0);
    }
    if (w->index < 0) {
        return;
    }
    uint64_t seen = shmq_load_seq(&header->watch[w->index]);
    if (has_watch(w)) {
        shmq_cas_seq(&header->watch[w->index], seen, 0);
    }
    if (is_duty(w->m, SHMQ_PROCESS_ROWS) || shmq_load_seq(&header->due) != 0) {
        summon(w->m);
    }
}

/* From now on this process is worth watching: a watcher has to tick. */
static void be_watched(shmq_member *m) {
    shmq_segment_shm *header = m->header;
    uint64_t first = shmq_load_seq(&header->watch[0]);
    int index = is_ours(m, first) ? 1 : 0; /* a watcher cannot watch its own process: the second one does */
    uint64_t word = index == 0 ? first : shmq_load_seq(&header->watch[1]);
    if (word == 0) {
        summon(m);
    } else if ((word & TICKING) == 0 && !wake_at(m, shmq_load_seq(&header->watch_wake[index])) && is_stale(m, word)) {
        /* The watcher is dead, and no process noticed, since there was nothing to watch. */
        shmq_cas_seq(&header->watch[index], word, 0);
        summon(m);
    }
}

static void change(shmq_member *m, shmq_a32 *count, int32_t by) {
    if (by < 0) {
        shmq_less(count, 1);
    } else if (shmq_add_seq(count, (uint32_t)by) == 0) {
        be_watched(m);
    }
}

void shmq_add_unsettled(shmq_member *m, int32_t by) { change(m, &m->process->unsettled, by); }

void shmq_add_privileges(shmq_member *m, int32_t by) { change(m, &m->process->privileges, by); }

void shmq_watch_hurry(shmq_member *m) {
    uint64_t word = shmq_load_seq(&m->header->watch[0]);
    if (word == 0) {
        summon(m);
    } else if (!wake_at(m, shmq_load_seq(&m->header->watch_wake[0])) && !is_ours(m, word) && is_stale(m, word)) {
        shmq_cas_seq(&m->header->watch[0], word, 0);
        summon(m);
    }
}

/* The process reaps later: a notifier may hold locks, or reap already. */
void shmq_met_dead(shmq_member *m, uint32_t row) {
    shmq_store_relaxed(&m->met, row + 1);
    shmq_store_relaxed(&m->ops, 1023); /* the next shmq_upkeep_look looks at `met` */
}

void shmq_reap_met(shmq_member *m) {
    uint32_t met = shmq_load_relaxed(&m->met);
    if (met != 0 && shmq_cas32_seq(&m->met, met, 0) && met <= SHMQ_PROCESS_ROWS && met - 1 != m->row) {
        (void)shmq_upkeep.reap_row(m, met - 1); /* if it fails, the next process that looks reaps */
    }
}
