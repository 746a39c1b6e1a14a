#include "verdict.h"

#include <stdio.h>
#include <string.h>

#include "stage.h"

#define VALUES 8192u
#define QUEUES 4u
#define FIRST_OF_VICTIM 2000u
#define FIRST_OF_SURVIVOR 5000u

enum certainty { NO = 0, MAYBE = 1, YES = 2 };

typedef struct fate {
    uint8_t put, settled, delivered, released, queue;
    uint8_t holder; /* WHO_... + 1 */
    uint8_t drained;
    uint8_t moving; /* to this queue + 1, maybe */
    uint8_t deaths_least, deaths_most;
} fate;

typedef struct pending {
    uint8_t kind, queue;
} pending;

typedef struct court {
    const verdict_rules *rules;
    fate fates[VALUES];
    pending open[WHO_SURVIVOR + 1][16]; /* puts of a batch are open together; only takes are kept here */
    bool purging[QUEUES];
    unsigned unfinished[QUEUES]; /* takes and purges: what they were about to get may come back as if delivered */
    uint64_t last[QUEUES][2]; /* by group, where there are some */
    char fault[160];
} court;

static void raise_to(uint8_t *what, uint8_t certainty) {
    if (*what < certainty) {
        *what = certainty;
    }
}

static bool dies(const court *t, uint8_t who) {
    return who == WHO_ACTOR ? t->rules->actors_die : who >= WHO_VICTIM && who < WHO_SURVIVOR && t->rules->victims_die;
}

/* The process that held it has died since, if it is one of those that die. */
static void count_death(const court *t, fate *f) {
    if (f->holder == 0 || !dies(t, (uint8_t)(f->holder - 1))) {
        return;
    }
    f->deaths_most += 1;
    f->deaths_least += f->settled == NO && f->released == NO;
    f->holder = 0;
}

static void set_fault(court *t, const char *text, uint64_t value) {
    if (t->fault[0] == 0) {
        snprintf(t->fault, sizeof(t->fault), "message %llu: %s", (unsigned long long)value, text);
    }
}

/* A message that is delivered later has a higher rank. */
static uint64_t rank_of(const court *t, const call *c) {
    uint64_t level = t->rules->levels && c->queue == 0 ? 2 - c->value / 100 % 10 % 3 : 0;
    return level * VALUES + c->value;
}

/* In another queue it is as if it had just been put there: nobody has had it. */
static void arrive(fate *f, uint8_t queue) {
    f->queue = queue;
    f->moving = 0;
    f->holder = 0;
    f->delivered = f->released = NO;
    f->deaths_least = f->deaths_most = 0;
}

static void delivered_to_survivor(court *t, const call *c) {
    fate *f = &t->fates[c->value];
    bool moved = f->moving == c->queue + 1;
    uint8_t holder = f->holder;
    if (moved) {
        arrive(f, c->queue);
    }
    count_death(t, f);
    bool could_be_redelivered = f->delivered != NO || t->unfinished[c->queue] != 0;
    if (f->put == NO) {
        set_fault(t, "delivered, and never put", c->value);
    } else if (f->settled == YES || f->drained != 0) {
        set_fault(t, "delivered again after it was settled", c->value);
    } else if (f->queue != c->queue) {
        set_fault(t, "delivered from another queue", c->value);
    } else if (f->delivered == YES && !c->redelivered) {
        set_fault(t, "delivered again without the redelivered flag", c->value);
    } else if (c->redelivered && !could_be_redelivered) {
        set_fault(t, "marked as redelivered, and never delivered", c->value);
    } else if (c->deaths < f->deaths_least || (c->deaths > f->deaths_most && t->unfinished[c->queue] == 0)) {
        set_fault(t, "its deaths are counted wrongly", c->value);
    }
    /* Messages that the stopped one puts, holds, or is about to hand back come when it goes on. */
    bool victims = c->value >= FIRST_OF_VICTIM && c->value < FIRST_OF_SURVIVOR;
    bool waits = t->rules->delayed && c->value < FIRST_OF_VICTIM;
    bool in_order = !t->rules->stopped_victim || (!waits && !victims && !moved && holder == 0 && f->released != MAYBE);
    uint64_t *last = &t->last[c->queue][(t->rules->groups >> c->queue & 1) != 0 && c->value / 100 % 10 == 1];
    if (in_order && rank_of(t, c) < *last) {
        set_fault(t, "delivered after a later one", c->value);
    }
    if (in_order) {
        *last = rank_of(t, c);
    }
    f->drained += 1;
}

static void begin_take(court *t, const call *c) {
    for (unsigned i = 0; i < 16; i++) {
        if (t->open[c->who][i].kind == 0) {
            t->open[c->who][i] = (pending){c->kind, c->queue};
            return;
        }
    }
}

static void end_take(court *t, const call *c) {
    memset(t->open[c->who], 0, sizeof(t->open[c->who])); /* one process takes one at a time */
    if (c->phase == CALL_FAILED) {
        return;
    }
    if (c->value >= VALUES) {
        set_fault(t, "its body is not what was put", c->value);
        return;
    }
    fate *f = &t->fates[c->value];
    if (c->who == WHO_SURVIVOR) {
        delivered_to_survivor(t, c);
    } else {
        if (f->put == NO || f->settled == YES) {
            set_fault(t, "delivered to a victim, and not there", c->value);
        }
        count_death(t, f);
    }
    f->delivered = YES;
    f->released = NO;
    f->holder = c->who + 1;
    if (c->kind == CALL_GET) {
        f->settled = YES;
    }
}

/* All of a queue may be gone, or is. A message in hand when its queue is deleted stays there, and never comes back. */
static void sweep_away(court *t, const call *c) {
    uint8_t certainty = c->phase == CALL_BEGUN ? MAYBE : YES;
    for (unsigned v = 0; v < VALUES; v++) {
        fate *f = &t->fates[v];
        bool deleted = c->kind == CALL_DELETE, held = f->holder != 0 && (deleted || f->holder != c->who + 1);
        if (f->put != NO && f->queue == c->queue && f->settled != YES && (!held || deleted)) {
            bool before = deleted || c->phase == CALL_BEGUN || f->settled == MAYBE; /* else it came meanwhile */
            raise_to(&f->settled, f->put == YES && !held && before ? certainty : MAYBE);
        }
    }
    t->purging[c->queue] = c->phase == CALL_BEGUN;
}

static void hear_of_value(court *t, const call *c) {
    fate *f = &t->fates[c->value];
    uint8_t certainty = c->phase == CALL_RETURNED ? YES : MAYBE;
    switch (c->kind) {
    case CALL_PUT:
        f->queue = c->queue;
        if (c->phase == CALL_FAILED) {
            f->put = NO;
        } else {
            raise_to(&f->put, certainty);
        }
        break;
    case CALL_SETTLE:
        raise_to(&f->settled, certainty);
        f->holder = certainty == YES ? 0 : f->holder;
        break;
    case CALL_RELEASE:
        raise_to(&f->released, certainty);
        f->holder = certainty == YES ? 0 : f->holder;
        break;
    case CALL_MOVE: /* amid it the message is in nobody's hands: a death is none of its own */
        if (c->phase == CALL_RETURNED) {
            arrive(f, c->queue);
        } else {
            f->moving = c->phase == CALL_BEGUN ? (uint8_t)(c->queue + 1) : 0;
            raise_to(&f->delivered, MAYBE); /* also out of nobody's hands: what comes back says that somebody had it */
            raise_to(&f->released, c->phase == CALL_BEGUN ? MAYBE : YES);
            f->holder = c->phase == CALL_BEGUN ? f->holder : 0;
        }
        break;
    default:
        break;
    }
}

static void hear(court *t, const call *c) {
    switch (c->kind) {
    case CALL_GET:
    case CALL_RECEIVE:
        if (c->phase == CALL_BEGUN) {
            begin_take(t, c);
            t->unfinished[c->queue] += c->who != WHO_SURVIVOR;
        } else {
            t->unfinished[c->queue] -= c->who != WHO_SURVIVOR;
            end_take(t, c);
        }
        break;
    case CALL_RESUMED: /* what it held comes back, maybe before what others have had meanwhile */
        if (!t->rules->in_turn) {
            memset(t->last, 0, sizeof(t->last));
        }
        break;
    case CALL_PURGE:
    case CALL_DELETE:
        t->unfinished[c->queue] += c->phase == CALL_BEGUN ? 1u : UINT32_MAX; /* -1 */
        if (c->phase != CALL_FAILED) {
            sweep_away(t, c);
        }
        break;
    case CALL_PUT:
    case CALL_SETTLE:
    case CALL_RELEASE:
    case CALL_MOVE:
        if (c->value < VALUES) {
            hear_of_value(t, c);
        } else {
            set_fault(t, "not a value", c->value);
        }
        break;
    default:
        break;
    }
}

/* A get that died may have taken one for good, and nobody knows which. */
static void allow_for_gets(const court *t, unsigned allowed[QUEUES]) {
    memset(allowed, 0, QUEUES * sizeof(allowed[0]));
    for (unsigned who = 0; who < WHO_SURVIVOR; who++) {
        for (unsigned i = 0; i < 16; i++) {
            if (t->open[who][i].kind == CALL_GET) {
                allowed[t->open[who][i].queue] += 1;
            }
        }
    }
}

static court *hear_all(board *b, const verdict_rules *rules) {
    static court *t;
    t = t != NULL ? t : own_memory(sizeof(*t));
    memset(t, 0, sizeof(*t));
    t->rules = rules;
    for (uint32_t i = 0; i < b->count && t->fault[0] == 0; i++) {
        if (b->calls[i].phase != CALL_UNWRITTEN) {
            hear(t, &b->calls[i]);
        }
    }
    return t;
}

static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return a ^ a >> 29;
}

uint64_t verdict_likeness(board *b, const verdict_rules *rules) {
    const court *t = hear_all(b, rules);
    uint64_t key = 1;
    for (unsigned v = 0; v < VALUES; v++) {
        const fate *f = &t->fates[v];
        if (f->put != NO) {
            key = mix(key, (uint64_t)v << 16 | (unsigned)f->queue << 8 | (f->settled == YES));
        }
    }
    return key;
}

const char *verdict_of(board *b, const verdict_rules *rules) {
    court *t = hear_all(b, rules);
    unsigned allowed[QUEUES];
    allow_for_gets(t, allowed);
    for (unsigned v = 0; v < VALUES && t->fault[0] == 0; v++) {
        const fate *f = &t->fates[v];
        if (f->put != YES || f->settled != NO || f->drained != 0 || t->purging[f->queue]) {
            continue;
        }
        if (allowed[f->queue] == 0) {
            set_fault(t, "lost: it was put, not settled, and is not there", v);
        } else {
            allowed[f->queue] -= 1;
        }
    }
    if (b->count >= BOARD_CALLS) {
        set_fault(t, "the history is too long", 0);
    }
    return t->fault[0] != 0 ? t->fault : NULL;
}
