/* Queues are made, found and deleted, and their memory becomes other queues' at once: who has found one has that one, all of
 * it, and keeps its memory until he lets go. */
#include "small_ring.h"

#define TIMES 2
#define NAMES 2u

static const char *const names[NAMES] = {"alpha", "beta"};

static void set_up(void) {
    ring_set_up_members();
    for (int t = 0; t < WEAK_THREADS; t++) { /* counters, and granules that were used before */
        shmq_queue *q = scratch_queue(ring_members[t], names[t % 2], SHMQ_RING_MIN, false);
        shmq_queue_unbind(q);
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        shmq_queue *q = scratch_queue(ring_members[0], names[i], SHMQ_RING_MIN, false);
        CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
        shmq_queue_unbind(q);
    }
    for (int t = 0; t < WEAK_THREADS; t++) {
        weak_keep(ring_members[t], sizeof *ring_members[t]);
    }
}

/* The kind that the map has for this place now, read without a step: for a thread that must not see it change. */
static uint32_t kind_at(const shmq_member *m, const void *place) {
    uint64_t word, granule = ((uint64_t)((const unsigned char *)place - m->base) - m->data) >> SHMQ_GRANULE_SHIFT;
    __builtin_memcpy(&word, (const void *)&m->granules[granule], 8);
    return shmq_granule_kind(word);
}

static void check_is_ours(const shmq_queue *q, const char *name) {
    const shmq_queue_shm *page = q->page;
    WEAK_CHECK(page->name_len == strlen(name) && memcmp(page->name, name, strlen(name)) == 0);
    WEAK_CHECK(page->index == q->index && page->incarnation == q->incarnation);
    WEAK_CHECK(q->first.mask + 1 == SHMQ_RING_MIN && page->ring.run_granules != 0);
    WEAK_CHECK(kind_at(q->m, page) == SHMQ_GRANULE_PAGES && kind_at(q->m, q->first.slots) == SHMQ_GRANULE_RING);
}

static shmq_queue *find(int t, const char *name, bool create) {
    shmq_declaration d = {.create = create};
    shmq_queue *q = NULL;
    int differs = -1;
    shmq_status status;
    shmq_declaration_give(&d, SHMQ_SET_MAXSIZE, SHMQ_RING_MIN);
    d.given = create ? d.given : 0;
    while ((status = shmq_queue_declare(ring_members[t], name, (uint32_t)strlen(name), &d, &q, &differs)) ==
           SHMQ_INTERRUPTED) {
        weak_yield();
    }
    WEAK_CHECK(status == SHMQ_OK || (!create && status == SHMQ_NOT_FOUND));
    return status == SHMQ_OK ? q : NULL;
}

static void use(int t, const char *name, bool create) {
    shmq_queue *q = find(t, name, create);
    if (q == NULL) {
        return;
    }
    check_is_ours(q, name);
    weak_yield();
    check_is_ours(q, name);
    while (t < 2 && shmq_queue_delete(q) == SHMQ_INTERRUPTED) {
        weak_yield();
    }
    check_is_ours(q, name);
    shmq_queue_unbind(q);
}

static void thread(int t) {
    for (uint32_t i = 0; i < TIMES; i++) {
        use(t, names[(i + (uint32_t)t) % NAMES], t != 2);
        weak_yield();
    }
}

static bool is_there(shmq_directory_shm *entry, const char *name) {
    if (shmq_entry_state(shmq_load_seq(&entry->word)) != SHMQ_ENTRY_LIVE ||
        entry->name_hash != shmq_name_hash(name, (uint32_t)strlen(name))) {
        return false;
    }
    shmq_queue_shm *page = shmq_at(ring_members[0], shmq_load_seq(&entry->page));
    return shmq_load_seq(&page->state) == SHMQ_QUEUE_LIVE;
}

static void end(void) {
    for (uint32_t i = 0; i < NAMES; i++) {
        uint32_t live = 0;
        for (uint32_t index = 0; index < shmq_queue_high(ring_members[0]); index++) {
            live += is_there(&ring_members[0]->directory[index], names[i]);
        }
        shmq_queue *q = find(0, names[i], false);
        WEAK_CHECK(live == (q != NULL));
        if (q != NULL) {
            check_is_ours(q, names[i]);
            shmq_queue_unbind(q);
        }
    }
    WEAK_CHECK(shmq_load_seq(&ring_members[0]->header->damage) == 0);
}

const weak_scenario weak_directory = {
    "directory", "queues are made, found, deleted", 4, false, set_up, ring_begin, thread, end};
