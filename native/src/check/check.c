/* Findings without the lock. The checker looks again at what looks wrong, until it is surely damage, surely none, or
 * cannot be decided.
 *
 * A look that finds nothing is believed at once: what it saw made sense. A look that finds something may have met a
 * half-done change. Damage stays, a half-done change does not. */
#include "check/check.h"
#include "base/clock.h"
#include "base/fault_text.h"
#include "base/wait_time.h"
#include "check/faults.h"
#include "queue/level.h"
#include "segment/structure.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define AGREED 3

/* The state that the structure must be in for a look's fault to count. */
enum needs { NOTHING, STILL, SETTLED };

typedef struct part {
    const char *name;
    const char *(*look)(shmq_member *m);
    enum needs needs;
} part;

static const char *look_at_blocks(shmq_member *m) { return shmq_blocks_fault(m); }

/* The look at references takes too long for a moment without changes. Its result holds beside them
 * (reference_fault.c). */
static const part parts[] = {
    {"map of the memory", shmq_structure_fault, SETTLED},
    {"processes", shmq_processes_fault, STILL},
    {"queue directory", shmq_directory_fault, STILL},
    {"counters", shmq_counters_fault, STILL},
    {"views of blocks", shmq_pins_fault, STILL},
    {"watch", shmq_watch_fault, STILL},
    {"blocks", look_at_blocks, STILL},
    {"references of blocks", shmq_references_fault, NOTHING},
};
_Static_assert(sizeof parts / sizeof parts[0] == SHMQ_PARTS, "the table has as many parts as the header says");

const char *shmq_part_name(int number) { return parts[number].name; }

static void pause_for(uint64_t ns) {
    struct timespec left = {.tv_nsec = (long)ns};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* The same text, but for decimal numbers, which change under load: "has 4 messages in hand, but counts 3". */
static bool same_words(const char *one, const char *other) {
    while (*one != 0 && *other != 0) {
        bool hex = one[0] == '0' && one[1] == 'x';
        if (!hex && isdigit((unsigned char)*one) && isdigit((unsigned char)*other)) {
            one += strspn(one, "0123456789");
            other += strspn(other, "0123456789");
            continue;
        }
        size_t length = hex ? 2 + strspn(one + 2, "0123456789abcdef") : 1;
        if (strncmp(one, other, length) != 0) {
            return false;
        }
        one += length;
        other += length;
    }
    return *one == *other;
}

/* How many looks have agreed, one after the other. */
typedef struct agreement {
    shmq_finding *finding;
    uint64_t word; /* of the slot */
    int count;
} agreement;

/* The fault that a look has found, where, and the word of the slot there. */
typedef struct finding {
    char fault[256]; /* "": no fault */
    uint32_t depth;
    uint64_t slot, word;
} finding;

static bool agrees(agreement *a, const finding *f) {
    shmq_finding *j = a->finding;
    bool same = a->count != 0 && f->slot == j->where && f->depth == j->depth && f->word == a->word &&
                same_words(f->fault, j->fault);
    a->count = same ? a->count + 1 : 1;
    a->word = f->word;
    j->where = f->slot;
    j->depth = f->depth;
    memcpy(j->fault, f->fault, sizeof j->fault);
    return a->count == AGREED;
}

static void undecided(shmq_finding *j, const char *why) {
    j->verdict = SHMQ_UNDECIDED;
    snprintf(j->why, sizeof j->why, "%s", why);
}

static void sound(shmq_finding *j) { *j = (shmq_finding){.verdict = SHMQ_SOUND, .where = SHMQ_NO_SLOT}; }

/* The time is over: the last look says why nothing was decided. */
static void give_up(shmq_finding *j, shmq_calm calm, uint32_t holder) {
    if (calm == SHMQ_BUSY) {
        undecided(j, "");
        snprintf(j->why, sizeof j->why, "process %u is changing the structure, or was stopped while it did", holder);
    } else {
        undecided(j, "each look found something else");
    }
}

void shmq_part_check(shmq_member *m, int number, shmq_finding *j) {
    const part *p = &parts[number];
    uint64_t until = shmq_now_ns() + SHMQ_CHECK_MOST_NS;
    agreement a = {.finding = j};
    sound(j);
    for (;;) {
        shmq_moment moment = shmq_moment_begin(m);
        bool counts = false;
        if (p->needs == SETTLED && moment.calm == SHMQ_LEFT) {
            undecided(j, "a process died while it changed the structure; the next reaper repairs that");
            return;
        }
        if (p->needs != SETTLED || moment.calm == SHMQ_CALM) {
            const char *found = p->look(m);
            if (found == NULL) {
                sound(j);
                return;
            }
            if (found == shmq_unlooked) {
                undecided(j, found);
                return;
            }
            finding f = {.slot = SHMQ_NO_SLOT};
            snprintf(f.fault, sizeof f.fault, "%s", found);
            counts = p->needs == NOTHING || shmq_moment_lasts(m, &moment);
            if (counts && agrees(&a, &f)) {
                j->verdict = SHMQ_DAMAGED;
                return;
            }
            memcpy(j->fault, f.fault, sizeof j->fault);
        }
        if (shmq_now_ns() >= until) {
            give_up(j, p->needs == NOTHING ? SHMQ_CALM : moment.calm, moment.holder);
            return;
        }
        pause_for(counts ? SHMQ_CHECK_LOOK_NS : SHMQ_NAP_NS);
    }
}

/* While the entry names this incarnation, the memory is the queue's: all that was read before was of this queue. */
static bool is_there(const shmq_queue *q) {
    shmq_fence_acquire(); /* SYNC directory.entry */
    return shmq_load_seq(&q->m->directory[q->index].word) == shmq_entry_word(q->incarnation, SHMQ_ENTRY_LIVE);
}

/* A look at one level: its fault, and at which slot; `context` is the caller's. */
typedef const char *level_look(shmq_ring *level, void *context, uint64_t *slot);

static void look_at_level(const shmq_queue *q, uint32_t depth, level_look *look, void *context, finding *f) {
    shmq_ring level;
    *f = (finding){.depth = depth, .slot = SHMQ_NO_SLOT};
    const char *wrong = shmq_level_look(q, depth, &level);
    if (wrong != NULL) {
        snprintf(f->fault, sizeof f->fault, "%s", wrong);
    } else if ((wrong = look(&level, context, &f->slot)) != NULL) {
        snprintf(f->fault, sizeof f->fault, "%s", wrong);
        f->word = f->slot != SHMQ_NO_SLOT ? shmq_load_seq(&shmq_slot_at(&level, f->slot)->word) : 0;
    }
}

/* The first fault counts; the look goes on over the other levels, since it may count something. */
static void look_at_levels(const shmq_queue *q, level_look *look, void *context, finding *first) {
    *first = (finding){.slot = SHMQ_NO_SLOT};
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        finding f;
        look_at_level(q, depth, look, context, &f);
        if (first->fault[0] == 0) {
            *first = f;
        }
    }
}

static void check(shmq_queue *q, level_look *look, void *context, size_t context_bytes, shmq_finding *j) {
    uint64_t until = shmq_now_ns() + SHMQ_CHECK_MOST_NS;
    agreement a = {.finding = j};
    sound(j);
    for (;;) {
        finding f;
        memset(context, 0, context_bytes); /* only the last look counts */
        look_at_levels(q, look, context, &f);
        bool there = is_there(q);
        if (f.fault[0] == 0 || !there) {
            sound(j);
            j->verdict = there ? SHMQ_SOUND : SHMQ_GONE_MEANWHILE;
            return;
        }
        if (agrees(&a, &f)) {
            j->verdict = SHMQ_DAMAGED;
            return;
        }
        if (shmq_now_ns() >= until) {
            undecided(j, "each look found something else");
            return;
        }
        pause_for(SHMQ_CHECK_LOOK_NS);
    }
}

static const char *look_at_words(shmq_ring *level, void *context, uint64_t *slot) {
    shmq_stray stray;
    (void)context;
    const char *found = shmq_ring_fault(level, slot);
    if (found == NULL) {
        *slot = SHMQ_NO_SLOT;
        found = shmq_entries_fault(level, slot, &stray);
    }
    if (found == NULL && stray.found && shmq_stray_is_lost(level, &stray)) {
        *slot = stray.slot;
        found = "the message is available, but no consumer will be offered it";
    }
    return found;
}

static const char *look_at_bodies(shmq_ring *level, void *context, uint64_t *slot) {
    shmq_bodies *all = context, own;
    const char *found = shmq_bodies_fault(level, &own);
    *slot = own.slot;
    all->entries += own.entries;
    all->verified += own.verified;
    all->unsigned_ones += own.unsigned_ones;
    all->moved += own.moved;
    all->damaged += own.damaged;
    return found;
}

void shmq_queue_check(shmq_queue *q, shmq_finding *j) {
    char none;
    check(q, look_at_words, &none, sizeof none, j);
}

void shmq_bodies_check(shmq_queue *q, shmq_bodies *bodies, shmq_finding *j) {
    check(q, look_at_bodies, bodies, sizeof *bodies, j);
}
