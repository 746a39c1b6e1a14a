/* queue.count, queue.weight and queue.resident: how many entries the queue has, how many bytes of headers and bodies
 * these have, and how many of these bytes are in memory. They are for queues with a maxsize, a max_bytes, a max_memory.
 * The first two count what is on disk, too.
 *
 * A producer raises the words before a claim, and the process that frees a slot lowers them afterwards; a word's
 * version changes with every step. A process that dies in between leaves a word that is too high. When a limit stops a
 * producer while `recount_due` is set, the producer counts slots and rows. It believes the result only if no process
 * was between a slot and the words (`moving`) before and after, no mover has left anything half done, and the versions
 * are the same. Then nothing was on its way. A mover is between a slot and the words for all of its turn. A claim does
 * not say yet what it weighs: while there is one, bytes are not counted. */
#include "limits/count.h"
#include "base/fault_text.h"
#include "layout/waiters.h"
#include "limits/room_wake.h"
#include "queue/level.h"
#include "ring/ring_memory.h"

#define TRIES 8

/* Values of recount_due. */
enum { SURE = 0, ASKED = 1, COUNTING = 2 };

/* One of the three words: the amount in its low bits, a version above them. */
typedef struct measure {
    shmq_a64 *word, *limit;
    uint64_t all; /* mask of the amount */
} measure;

static measure entries_of(shmq_queue *q) { return (measure){&q->page->count, &q->page->maxsize, SHMQ_COUNT_MASK}; }
static measure bytes_of(shmq_queue *q) {
    return (measure){&q->page->weight, &q->page->settings.max_bytes, SHMQ_WEIGHT_MASK};
}
static measure resident_of(shmq_queue *q) {
    return (measure){&q->page->resident, &q->page->settings.max_memory, SHMQ_WEIGHT_MASK};
}

static uint64_t stepped(const measure *m, uint64_t word, uint64_t amount) {
    return ((word | m->all) + 1) | (amount < m->all ? amount : m->all);
}

/* Does this amount fit? Up to exactly the limit. Into an empty queue any amount fits, since otherwise a message larger
 * than the limit would never get in. `theirs` is left for other producers. A limit of 0 was taken away just now. */
static bool fits(const measure *m, uint64_t word, uint64_t amount, uint64_t theirs) {
    uint64_t limit = shmq_load_relaxed(m->limit), used = word & m->all;
    return limit == 0 || used + theirs == 0 || used + theirs + amount <= limit;
}

static bool raise_word(const measure *m, uint64_t amount, uint64_t theirs) {
    for (;;) {
        uint64_t word = shmq_load_seq(m->word);
        if (!fits(m, word, amount, theirs)) {
            return false;
        }
        if (shmq_cas_seq(m->word, word, stepped(m, word, (word & m->all) + amount))) {
            return true;
        }
    }
}

static void lower_word(const measure *m, uint64_t amount) {
    for (;;) {
        uint64_t word = shmq_load_seq(m->word), used = word & m->all;
        if (shmq_cas_seq(m->word, word, stepped(m, word, used > amount ? used - amount : 0))) {
            return;
        }
    }
}

/* Adds without regard to the limit. A word that is too high is corrected by a recount when it matters; one that is too
 * low would let too much in. */
static void add_to_word(const measure *m, uint64_t amount) {
    uint64_t word;
    do {
        word = shmq_load_seq(m->word);
    } while (!shmq_cas_seq(m->word, word, stepped(m, word, (word & m->all) + amount)));
}

bool shmq_count_take(shmq_queue *q, uint32_t count) {
    measure entries = entries_of(q);
    return raise_word(&entries, count, 0);
}

void shmq_count_give(shmq_queue *q, uint32_t count) {
    measure entries = entries_of(q);
    lower_word(&entries, count);
}

/* A first look, so that producers seldom raise words in vain. */
static shmq_status look_for_room(shmq_queue *q, uint32_t limited, uint64_t bytes, const shmq_room *theirs) {
    measure weight = bytes_of(q), resident = resident_of(q);
    if (limited & SHMQ_LIMITED_BYTES && !fits(&weight, shmq_load_seq(weight.word), bytes, theirs->bytes)) {
        return SHMQ_FULL_BYTES;
    }
    bool full = limited & SHMQ_LIMITED_RESIDENT && !fits(&resident, shmq_load_seq(resident.word), bytes, theirs->bytes);
    return full ? SHMQ_FULL_RESIDENT : SHMQ_OK;
}

shmq_status shmq_room_take(shmq_queue *q, uint32_t limited, uint64_t bytes, const shmq_room *theirs) {
    measure entries = entries_of(q), weight = bytes_of(q), resident = resident_of(q);
    uint32_t taken = 0;
    if (SHMQ_LIKELY((limited & SHMQ_WEIGHED) == 0)) {
        return limited == 0 || raise_word(&entries, 1, theirs->entries) ? SHMQ_OK : SHMQ_FULL_COUNT;
    }
    SHMQ_TRY(look_for_room(q, limited, bytes, theirs));
    if (limited & SHMQ_LIMITED_COUNT && !raise_word(&entries, 1, theirs->entries)) {
        return SHMQ_FULL_COUNT;
    }
    taken |= limited & SHMQ_LIMITED_COUNT;
    shmq_status status = SHMQ_OK;
    if (limited & SHMQ_LIMITED_BYTES && !raise_word(&weight, bytes, theirs->bytes)) {
        status = SHMQ_FULL_BYTES;
    } else {
        taken |= limited & SHMQ_LIMITED_BYTES;
        status = limited & SHMQ_LIMITED_RESIDENT && !raise_word(&resident, bytes, theirs->bytes) ? SHMQ_FULL_RESIDENT
                                                                                                 : SHMQ_OK;
    }
    if (status != SHMQ_OK && taken != 0) {
        shmq_room_give(q, taken, 1, bytes);
        shmq_wake_waiters(q); /* another producer may have waited because of what was raised */
    }
    return status;
}

static void lower_weights(shmq_queue *q, uint32_t limited, uint64_t bytes) {
    measure weight = bytes_of(q), resident = resident_of(q);
    if (limited & SHMQ_LIMITED_RESIDENT) {
        lower_word(&resident, bytes);
    }
    if (limited & SHMQ_LIMITED_BYTES) {
        lower_word(&weight, bytes);
    }
}

void shmq_room_give(shmq_queue *q, uint32_t limited, uint32_t count, uint64_t bytes) {
    if (SHMQ_UNLIKELY((limited & SHMQ_WEIGHED) != 0)) {
        lower_weights(q, limited, bytes);
    }
    if (limited & SHMQ_LIMITED_COUNT) {
        shmq_count_give(q, count);
    }
}

bool shmq_room_beyond(shmq_queue *q, const shmq_room *theirs) {
    measure entries = entries_of(q), weight = bytes_of(q), resident = resident_of(q);
    return fits(&entries, shmq_load_seq(entries.word), 1, theirs->entries) &&
           fits(&weight, shmq_load_seq(weight.word), 1, theirs->bytes) &&
           fits(&resident, shmq_load_seq(resident.word), 1, theirs->bytes);
}

bool shmq_room_left(shmq_queue *q) {
    return shmq_load_seq(&q->page->recount_due) != SURE || shmq_room_beyond(q, &(shmq_room){0});
}

void shmq_wake_waiters(shmq_queue *q) {
    if (shmq_waiters_in(shmq_load_seq(&q->page->ring.waiters)) != 0) {
        shmq_wake_producers(q);
    }
}

/* The process asks first, then looks at the waiters. A producer that waits counts itself first, then looks whether a
 * recount is asked for. */
void shmq_recount_ask(shmq_queue *q) {
    (void)shmq_swap_seq(&q->page->recount_due, ASKED);
    shmq_wake_waiters(q);
}

void shmq_resident_add(shmq_queue *q, uint64_t bytes) {
    measure resident = resident_of(q);
    add_to_word(&resident, bytes);
}

void shmq_room_late(shmq_queue *q, uint32_t limited, uint64_t bytes) {
    measure entries = entries_of(q), weight = bytes_of(q), resident = resident_of(q);
    if (limited & SHMQ_LIMITED_COUNT) {
        add_to_word(&entries, 1);
    }
    if (limited & SHMQ_LIMITED_BYTES) {
        add_to_word(&weight, bytes);
    }
    if (limited & SHMQ_LIMITED_RESIDENT) {
        add_to_word(&resident, bytes);
    }
    shmq_recount_ask(q);
}

uint64_t shmq_slot_bytes(const shmq_slot_shm *slot, uint64_t word) {
    uint32_t state = shmq_word_state(word);
    if (state == SHMQ_CLAIMED || state == SHMQ_QUARANTINED) {
        return SHMQ_UNWEIGHED;
    }
    return (uint64_t)shmq_read_once(&slot->headers_len) + shmq_read_once(&slot->body_len);
}

void shmq_moving_unseen(shmq_queue *q) { shmq_store_seq(&q->page->recount_due, ASKED); }

static bool anybody_moves(shmq_queue *q) {
    uint32_t high = shmq_process_high(q->m);
    if (shmq_load_seq(&q->page->unfinished) != 0) {
        return true; /* a mover, or a dead one's work, which the next mover ends */
    }
    for (uint32_t row = 0; row < high; row++) {
        shmq_counters_shm *counters = shmq_counters_at(q->m, row, q->index);
        if (counters != NULL && shmq_load_seq(&counters->moving) != 0) {
            return true;
        }
    }
    return false;
}

typedef struct usage {
    uint64_t entries, bytes, resident;
    bool unweighed; /* a claim that is not filled yet */
} usage;

static void count_level(const shmq_ring *r, usage *used) {
    for (uint64_t i = 0; i < shmq_slots_laid(r); i++) {
        shmq_slot_shm *slot = shmq_slot_at(r, i);
        uint64_t word = shmq_load_seq(&slot->word);
        if (shmq_word_state(word) == SHMQ_FREE || shmq_word_state(word) == SHMQ_BROKEN) {
            continue;
        }
        uint64_t bytes = shmq_slot_bytes(slot, word);
        used->entries++;
        used->unweighed |= bytes == SHMQ_UNWEIGHED;
        used->resident += bytes == SHMQ_UNWEIGHED ? 0 : bytes;
    }
}

static usage count_slots(const shmq_queue *q) {
    usage used = {0};
    shmq_ring level;
    for (uint32_t depth = 0; depth < q->rings && shmq_level_look(q, depth, &level) == NULL; depth++) {
        count_level(&level, &used);
    }
    used.bytes = used.resident;
    for (uint32_t depth = 0; depth < q->levels; depth++) {
        const shmq_ring_shm *ring = shmq_level_ring(q, depth); /* a count during a mover's change is not believed */
        used.entries += shmq_load_seq((shmq_a64 *)&ring->flushed) - shmq_load_seq((shmq_a64 *)&ring->pulled);
        used.bytes += shmq_load_seq((shmq_a64 *)&ring->flushed_bytes) - shmq_load_seq((shmq_a64 *)&ring->pulled_bytes);
        const shmq_ring_shm *front =
            shmq_level_ring(q, q->levels + depth); /* entries that came in by themselves are in a slot, or gone */
        used.entries -= shmq_load_seq((shmq_a64 *)&front->fetched) - shmq_load_seq((shmq_a64 *)&front->passed);
        used.bytes -=
            shmq_load_seq((shmq_a64 *)&front->fetched_bytes) - shmq_load_seq((shmq_a64 *)&front->passed_bytes);
        used.entries += shmq_load_seq((shmq_a64 *)&ring->waiting) - shmq_load_seq((shmq_a64 *)&ring->came);
        used.bytes += shmq_load_seq((shmq_a64 *)&ring->waiting_bytes) - shmq_load_seq((shmq_a64 *)&ring->came_bytes);
    }
    return used;
}

static bool correct(const measure *m, uint64_t before, uint64_t amount) {
    return shmq_cas_seq(m->word, before, stepped(m, before, amount));
}

static bool recount_once(shmq_queue *q) {
    measure entries = entries_of(q), weight = bytes_of(q), resident = resident_of(q);
    uint32_t limited = shmq_load_seq(&q->page->limited);
    uint64_t count = shmq_load_seq(entries.word), bytes = shmq_load_seq(weight.word);
    uint64_t in_memory = shmq_load_seq(resident.word);
    if (anybody_moves(q)) {
        return false;
    }
    usage used = count_slots(q);
    if (anybody_moves(q) || (limited & SHMQ_WEIGHED && used.unweighed)) {
        return false;
    }
    return (!(limited & SHMQ_LIMITED_COUNT) || correct(&entries, count, used.entries)) &&
           (!(limited & SHMQ_LIMITED_BYTES) || correct(&weight, bytes, used.bytes)) &&
           (!(limited & SHMQ_LIMITED_RESIDENT) || correct(&resident, in_memory, used.resident));
}

bool shmq_recount(shmq_queue *q) {
    uint32_t due;
    /* Changed before the count, so that a later request for a recount is not forgotten. Not to SURE, since other
     * processes rely on the count when it says so. */
    do {
        due = shmq_load_seq(&q->page->recount_due);
        if (due == SURE) {
            return false;
        }
    } while (!shmq_cas32_seq(&q->page->recount_due, due, COUNTING));
    for (int i = 0; i < TRIES; i++) {
        if (recount_once(q)) {
            shmq_cas32_seq(&q->page->recount_due, COUNTING, SURE);
            shmq_wake_producers(q); /* the wrong count may have stopped other producers, too */
            return true;
        }
        shmq_pause();
    }
    shmq_store_seq(&q->page->recount_due, ASKED); /* too much traffic: again when it matters */
    return false;
}

static const char *check_word(const measure *m, uint64_t word, uint64_t found, const char *what) {
    uint64_t said = word & m->all;
    return shmq_load_seq(m->limit) == 0 || said == found
               ? NULL
               : shmq_fault_text("the count says %llu %s, the slots say %llu", (unsigned long long)said, what,
                                 (unsigned long long)found);
}

/* Compares as a recount does: no process is between a slot and the words before and after, and the versions are the
 * same. A death in between shows in `moving` until a reaper has asked for a recount. */
const char *shmq_count_fault(shmq_queue *q) {
    measure all[] = {entries_of(q), bytes_of(q), resident_of(q)};
    if (shmq_load_seq(&q->page->recount_due) > COUNTING) {
        return "the request for a recount has a value that no process writes";
    }
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        uint32_t limited = shmq_load_seq(&q->page->limited);
        uint64_t words[] = {shmq_load_seq(all[0].word), shmq_load_seq(all[1].word), shmq_load_seq(all[2].word)};
        if (limited == 0 || shmq_load_seq(&q->page->recount_due) != SURE) {
            return NULL;
        }
        if (anybody_moves(q)) {
            shmq_pause();
            continue;
        }
        usage used = count_slots(q);
        bool same = !anybody_moves(q) && shmq_load_seq(&q->page->recount_due) == SURE &&
                    shmq_load_seq(&q->page->limited) == limited;
        for (int i = 0; i < 3; i++) {
            same = same && shmq_load_seq(all[i].word) == words[i];
        }
        if (!same) {
            continue;
        }
        const char *why = limited & SHMQ_LIMITED_COUNT ? check_word(&all[0], words[0], used.entries, "entries") : NULL;
        if (why == NULL && limited & SHMQ_LIMITED_BYTES && !used.unweighed) {
            why = check_word(&all[1], words[1], used.bytes, "bytes");
        }
        if (why == NULL && limited & SHMQ_LIMITED_RESIDENT && !used.unweighed) {
            why = check_word(&all[2], words[2], used.resident, "bytes in memory");
        }
        return why;
    }
    return NULL; /* too much traffic to compare */
}
