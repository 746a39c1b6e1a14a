/* The values that a load may answer, and the plain accesses that are not ordered. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weak.h"

#define HISTORY 12u
#define HASH 16384u
#define KEPT 64
#define CLEARED 200
#define ARENA_WORDS (UINT64_C(1) << 24)

/* A reader's view: per place the oldest value that it may still read, per thread how far it is ordered behind it. */
typedef struct view {
    uint32_t count;
    uint32_t clock[WEAK_THREADS];
    uint16_t seen[WEAK_PLACES];
} view;

typedef struct message {
    uint64_t value;
    const view *released; /* what comes with it for who acquires; NULL: nothing */
} message;

typedef struct place {
    uintptr_t at;
    uint32_t bytes;
    uint64_t initial;
    uint32_t count, last_seq; /* values ever; index of the last sequentially consistent one */
    message history[HISTORY];
    uint32_t wrote[WEAK_THREADS], read[WEAK_THREADS]; /* clocks of plain accesses */
    uint64_t looked[WEAK_THREADS];
} place;

static place places[WEAK_PLACES];
static uint32_t place_count;
static uint16_t hash[HASH];
static uintptr_t shared_from, shared_to;
static view known[WEAK_THREADS], pending[WEAK_THREADS], lock_view;
static const view *fenced[WEAK_THREADS];
static uint64_t *arena;
static uint64_t arena_used;
static bool in_run;
static struct {
    void *at, *copy;
    uint64_t bytes;
} kept[KEPT];
static int kept_count;
static struct {
    void *at, *copy;
    uint64_t bytes;
} cleared[CLEARED]; /* what stood where memory was cleared in this run, the first of them first */
static int cleared_count;

void weak_share(void *base, uint64_t bytes) {
    while (kept_count != 0) {
        free(kept[--kept_count].copy);
    }
    shared_from = (uintptr_t)base;
    shared_to = shared_from + bytes;
}

void weak_keep(void *at, uint64_t bytes) {
    if (kept_count == KEPT) {
        abort();
    }
    kept[kept_count].at = at;
    kept[kept_count].bytes = bytes;
    kept[kept_count].copy = memcpy(malloc(bytes), at, bytes);
    kept_count++;
}

bool weak_is_shared(const volatile void *at) { return (uintptr_t)at - shared_from < shared_to - shared_from; }

static uint64_t native_read(uintptr_t at, uint32_t bytes) {
    uint64_t value = 0;
    memcpy(&value, (const void *)at, bytes); /* little endian, as the segment */
    return value;
}

static void native_write(uintptr_t at, uint32_t bytes, uint64_t value) { memcpy((void *)at, &value, bytes); }

void weak_memory_begin(void) {
    if (arena == NULL) {
        arena = malloc(ARENA_WORDS * 8);
        memset(hash, 0xff, sizeof hash);
    }
    arena_used = 0;
    in_run = true;
    memset(known, 0, sizeof known);
    memset(pending, 0, sizeof pending);
    memset(&lock_view, 0, sizeof lock_view);
    memset(fenced, 0, sizeof fenced);
    for (int t = 0; t < WEAK_THREADS; t++) {
        known[t].clock[t] = 1;
    }
}

void weak_memory_end(void) {
    in_run = false;
    for (uint32_t i = 0; i < place_count; i++) {
        native_write(places[i].at, places[i].bytes, places[i].initial);
    }
    while (cleared_count != 0) {
        cleared_count--;
        memcpy(cleared[cleared_count].at, cleared[cleared_count].copy, cleared[cleared_count].bytes);
        free(cleared[cleared_count].copy);
    }
    memset(hash, 0xff, sizeof hash);
    place_count = 0;
    for (int i = 0; i < kept_count; i++) {
        memcpy(kept[i].at, kept[i].copy, kept[i].bytes);
    }
}

static void keep_cleared(void *at, uint64_t bytes) {
    if (cleared_count == CLEARED) {
        weak_fail("memory is cleared more than %d times", CLEARED);
        return;
    }
    cleared[cleared_count].at = at;
    cleared[cleared_count].bytes = bytes;
    cleared[cleared_count].copy = memcpy(malloc(bytes), at, bytes);
    cleared_count++;
}

static uint32_t place_of(const volatile void *at, uint32_t bytes) {
    uint32_t slot = (uint32_t)(((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15)) >> 50) % HASH;
    for (; hash[slot] != 0xffff; slot = (slot + 1) % HASH) {
        if (places[hash[slot]].at == (uintptr_t)at) {
            return hash[slot];
        }
    }
    if (place_count == WEAK_PLACES) {
        weak_fail("more than %u places: the scenario touches too much", WEAK_PLACES);
    }
    place *p = &places[place_count];
    memset(p, 0, sizeof *p);
    p->at = (uintptr_t)at;
    p->bytes = bytes;
    p->initial = native_read(p->at, bytes);
    p->count = 1;
    p->history[0].value = p->initial;
    hash[slot] = (uint16_t)place_count;
    return place_count++;
}

/* A write before or after the simulation of a run: all threads know it, and it is taken back, too. */
static void write_outside(volatile void *at, uint32_t bytes, uint64_t value) {
    bool kept = in_run && weak_is_shared(at);
    place *p = kept ? &places[place_of(at, bytes)] : NULL;
    native_write((uintptr_t)at, bytes, value);
    if (kept) {
        p->history[(p->count - 1) % HISTORY].value = value;
    }
}

static void join(view *to, const view *from) {
    for (int t = 0; t < WEAK_THREADS; t++) {
        to->clock[t] = to->clock[t] > from->clock[t] ? to->clock[t] : from->clock[t];
    }
    for (uint32_t i = 0; i < from->count; i++) {
        to->seen[i] = to->seen[i] > from->seen[i] ? to->seen[i] : from->seen[i];
    }
    to->count = to->count > from->count ? to->count : from->count;
}

static void see(view *v, uint32_t i, uint32_t index) {
    v->count = v->count > i ? v->count : i + 1;
    v->seen[i] = v->seen[i] > index ? v->seen[i] : (uint16_t)index;
}

/* A copy of what this thread knows now; what it does later is not in it. */
static const view *released_view(int t, const view *also) {
    view *now = &known[t];
    uint32_t count = also != NULL && also->count > now->count ? also->count : now->count;
    uint64_t words = (offsetof(view, seen) + count * 2 + 7) / 8;
    if (arena_used + words > ARENA_WORDS) {
        weak_fail("out of room for views");
    }
    view *copy = (view *)&arena[arena_used];
    arena_used += words;
    memset(copy, 0, words * 8);
    join(copy, now);
    if (also != NULL) {
        join(copy, also);
    }
    now->clock[t]++;
    return copy;
}

static bool acquires(enum weak_order o) { return o == WEAK_acquire || o == WEAK_acq_rel || o == WEAK_seq_cst; }
static bool releases(enum weak_order o) { return o == WEAK_release || o == WEAK_acq_rel || o == WEAK_seq_cst; }

static void take_over(int t, const message *m, enum weak_order order) {
    if (m->released != NULL) {
        join(acquires(order) ? &known[t] : &pending[t], m->released);
    }
}

/* Each step of a run, for people: weak --first SEED --seeds 1 --trace. */
bool weak_tracing;
static void trace(const char *what, const char *function, const place *p, uint64_t value, uint32_t index) {
    if (weak_tracing) {
        printf("%6llu thread %d %-5s %-22s +0x%-8llx %016llx, value %u of %u\n", (unsigned long long)weak_event(),
               weak_thread(), what, function, (unsigned long long)(p->at - shared_from), (unsigned long long)value,
               index, p->count - 1);
    }
}

static const message *message_at(const place *p, uint32_t index) { return &p->history[index % HISTORY]; }

static void append(uint32_t i, int t, uint64_t value, enum weak_order order, const view *before, const char *function) {
    place *p = &places[i];
    if (p->count >= UINT16_MAX) {
        weak_fail("too many values of one place");
    }
    uint32_t index = p->count++;
    see(&known[t], i, index);
    const view *released = releases(order) ? released_view(t, before) : fenced[t];
    if (!releases(order) && before != NULL) {
        released = before; /* a read-modify-write goes on with the release that it found */
    }
    p->history[index % HISTORY] = (message){value, released};
    if (order == WEAK_seq_cst) {
        p->last_seq = index;
    }
    native_write(p->at, p->bytes, value);
    trace("write", function, p, value, index);
}

/* Index of the value that this load answers. */
static uint32_t choose(const place *p, uint32_t i, int t, enum weak_order order) {
    uint32_t latest = p->count - 1, oldest = p->count > HISTORY ? p->count - HISTORY : 0;
    oldest = known[t].seen[i] > oldest ? known[t].seen[i] : oldest;
    oldest = order == WEAK_seq_cst && p->last_seq > oldest ? p->last_seq : oldest;
    while (latest > oldest && weak_chance(weak_stale_chance())) {
        latest--;
    }
    return latest;
}

static uint64_t load(const volatile void *at, uint32_t bytes, enum weak_order order, const char *function) {
    int t = weak_thread();
    uint32_t i = place_of(at, bytes);
    place *p = &places[i];
    uint32_t index = choose(p, i, t, order);
    see(&known[t], i, index);
    take_over(t, message_at(p, index), order);
    p->looked[t] = weak_event();
    trace("load", function, p, message_at(p, index)->value, index);
    return message_at(p, index)->value;
}

uint64_t weak_load(const volatile void *at, uint32_t bytes, enum weak_order order, const char *function) {
    if (!weak_running || !weak_is_shared(at)) {
        return native_read((uintptr_t)at, bytes);
    }
    weak_step();
    return load(at, bytes, weak_order_now(order, "load", function), function);
}

void weak_store(volatile void *at, uint32_t bytes, uint64_t value, enum weak_order order, const char *function) {
    if (!weak_running || !weak_is_shared(at)) {
        write_outside(at, bytes, value);
        return;
    }
    weak_step();
    append(place_of(at, bytes), weak_thread(), value, weak_order_now(order, "store", function), NULL, function);
}

static uint64_t stepped(enum weak_step step, uint64_t old, uint64_t value) {
    switch (step) {
    case WEAK_fetch_add:
        return old + value;
    case WEAK_fetch_sub:
        return old - value;
    case WEAK_fetch_or:
        return old | value;
    case WEAK_fetch_and:
        return old & value;
    default:
        return value;
    }
}

uint64_t weak_rmw(volatile void *at, uint32_t bytes, enum weak_step step, uint64_t value, enum weak_order order,
                  const char *function) {
    uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (bytes * 8)) - 1;
    if (!weak_running || !weak_is_shared(at)) {
        uint64_t old = native_read((uintptr_t)at, bytes);
        write_outside(at, bytes, stepped(step, old, value) & mask);
        return old;
    }
    weak_step();
    order = weak_order_now(order, "rmw", function);
    int t = weak_thread();
    uint32_t i = place_of(at, bytes);
    const message found = *message_at(&places[i], places[i].count - 1);
    take_over(t, &found, order);
    append(i, t, stepped(step, found.value, value) & mask, order, found.released, function);
    return found.value;
}

bool weak_cas(volatile void *at, uint32_t bytes, uint64_t expected, uint64_t wanted, enum weak_order order,
              const char *function) {
    if (!weak_running || !weak_is_shared(at)) {
        bool same = native_read((uintptr_t)at, bytes) == expected;
        if (same) {
            write_outside(at, bytes, wanted);
        }
        return same;
    }
    weak_step();
    order = weak_order_now(order, "cas", function);
    int t = weak_thread();
    uint32_t i = place_of(at, bytes);
    place *p = &places[i];
    uint32_t index = choose(p, i, t, order);
    const message found = *message_at(p, index);
    if (found.value != expected || index != p->count - 1) {
        if (found.value == expected) { /* it would have to come behind a value that is not the last: read that one */
            index = p->count - 1;
        }
        const message last = *message_at(p, index);
        if (last.value != expected) {
            see(&known[t], i, index);
            take_over(t, &last, order);
            return false;
        }
    }
    const message last = *message_at(p, p->count - 1);
    take_over(t, &last, order);
    append(i, t, wanted, order, last.released, function);
    return true;
}

void weak_fence(enum weak_order order, const char *function) {
    if (!weak_running) {
        return;
    }
    weak_step();
    int t = weak_thread();
    order = weak_order_now(order, "fence", function);
    if (acquires(order)) {
        join(&known[t], &pending[t]);
    }
    if (releases(order)) {
        fenced[t] = released_view(t, NULL);
    }
}

static void check_order(const place *p, int t, bool writes) {
    for (int other = 0; other < WEAK_THREADS; other++) {
        if (other == t) {
            continue;
        }
        uint32_t clock = known[t].clock[other];
        if (p->wrote[other] > clock || (writes && p->read[other] > clock)) {
            weak_fail("thread %d %s byte 0x%llx of the segment, which thread %d %s: not ordered", t,
                      writes ? "writes" : "reads", (unsigned long long)(p->at - shared_from), other,
                      p->wrote[other] > clock ? "wrote" : "reads");
        }
    }
}

static void touch(const volatile void *at, uint64_t bytes, bool writes) {
    if (!weak_running || bytes == 0 || !weak_is_shared(at)) {
        return;
    }
    int t = weak_thread();
    for (uintptr_t granule = (uintptr_t)at & ~(uintptr_t)7; granule < (uintptr_t)at + bytes; granule += 8) {
        place *p = &places[place_of((const void *)granule, 8)];
        check_order(p, t, writes);
        (writes ? p->wrote : p->read)[t] = known[t].clock[t];
    }
}

void weak_read_plain(const volatile void *at, uint64_t bytes) { touch(at, bytes, false); }
void weak_write_plain(const volatile void *at, uint64_t bytes) { touch(at, bytes, true); }

/* Copies of the core end here: bytes of messages have a history, since they are read under a sequence lock, too. */
void *weak_memcpy(void *to, const void *from, size_t bytes);
void *weak_memcpy(void *to, const void *from, size_t bytes) {
    weak_read_plain(from, bytes);
    weak_write_plain(to, bytes);
    memcpy(to, from, bytes);
    if (weak_running && weak_is_shared(to)) {
        uintptr_t first = (uintptr_t)to & ~(uintptr_t)7;
        for (uintptr_t granule = first; granule < (uintptr_t)to + bytes; granule += 8) {
            append(place_of((void *)granule, 8), weak_thread(), native_read(granule, 8), WEAK_relaxed, NULL, "memcpy");
        }
    }
    return to;
}

/* Whole pages and runs, when they are handed out. Only places that this run has met have a history; what stands in the
 * others is nobody's by then. */
void *weak_memset(void *to, int byte, size_t bytes);
void *weak_memset(void *to, int byte, size_t bytes) {
    if (!in_run || !weak_is_shared(to)) {
        return memset(to, byte, bytes);
    }
    keep_cleared(to, bytes);
    memset(to, byte, bytes);
    for (uint32_t i = 0; weak_running && i < place_count; i++) {
        place *p = &places[i];
        if (p->at - (uintptr_t)to < bytes) {
            int t = weak_thread();
            check_order(p, t, true);
            p->wrote[t] = known[t].clock[t];
            append(i, t, native_read(p->at, p->bytes), WEAK_relaxed, NULL, "memset");
        }
    }
    return to;
}

void weak_copy_racing(void *to, const void *from, uint64_t bytes) {
    if (!weak_running) {
        memcpy(to, from, bytes);
        return;
    }
    for (uint64_t i = 0; i < bytes; i += 8) {
        weak_step();
        uint64_t value = load((const unsigned char *)from + i, 8, WEAK_relaxed, "copy");
        memcpy((unsigned char *)to + i, &value, 8);
    }
}

uint64_t weak_last_look(const volatile void *at) { return places[place_of(at, 8)].looked[weak_thread()]; }

void weak_know_all_of(int thread) { join(&known[weak_thread()], &known[thread]); }

void weak_join_everything(void) {
    for (int t = 1; t < WEAK_THREADS; t++) {
        join(&known[0], &known[t]);
    }
}

void weak_lock_passes_on(bool taken) {
    int t = weak_thread();
    if (taken) {
        join(&known[t], &lock_view);
    } else {
        join(&lock_view, &known[t]);
        known[t].clock[t]++;
    }
}
