/* Entries older than a lap, beside a model: whoever takes gets the lowest position that is available, whatever came back
 * since its last look, in whatever order, by one process or another. */
#include "ring/ring_old.h"
#include "scratch_queue.h"

#define MOST 900u
#define STEPS 200000u

static shmq_member *m[2];
static shmq_queue *q[2];

typedef struct model_entry {
    uint64_t position;
    shmq_delivery d;
    uint32_t by; /* 0: available; 1 + process: it has it */
} model_entry;

static model_entry all[MOST];
static uint32_t count;

static uint32_t looked; /* rounds in which both looked for old entries */
static uint64_t state;
static uint32_t draw(uint32_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static void begin(void) {
    scratch_create(false);
    for (uint32_t i = 0; i < 2; i++) {
        m[i] = scratch_attach();
        q[i] = scratch_queue(m[i], "jobs", 1000, false);
    }
    count = 0;
}

static void end(void) {
    uint64_t where = 0;
    CHECK(shmq_ring_fault(&q[0]->first, &where) == NULL);
    for (uint32_t i = 2; i-- != 0;) {
        CHECK_EQUAL(shmq_load_seq(&m[i]->header->damage), 0);
        shmq_queue_unbind(q[i]);
        shmq_member_leave(m[i], i == 0);
    }
    scratch_remove();
}

static void put_one(uint32_t by) {
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    shmq_outgoing o = {.pieces = &piece, .piece_count = 1, .body_len = 1};
    if (count < MOST && shmq_put(q[by], &o, 0) == SHMQ_OK) {
        all[count++] = (model_entry){.position = o.made.position};
    } else {
        shmq_unprepare(q[by], &o);
    }
}

static model_entry *lowest(void) {
    model_entry *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].by == 0 && (found == NULL || all[i].position < found->position)) {
            found = &all[i];
        }
    }
    return found;
}

static void take_lowest(uint32_t by) {
    model_entry *e = lowest();
    shmq_delivery d;
    shmq_status status = shmq_offer(q[by], shmq_self(q[by]), &d);
    CHECK_EQUAL(status, e != NULL ? SHMQ_OK : SHMQ_EMPTY);
    if (e != NULL) {
        CHECK_EQUAL(d.position, e->position);
        CHECK_EQUAL(shmq_offer_acquire(q[by], &d), SHMQ_OK);
        e->d = d;
        e->by = 1 + by;
    }
}

static void settle(model_entry *e) {
    CHECK_EQUAL(shmq_settle(q[e->by - 1], &e->d), SHMQ_OK);
    *e = all[--count];
}

static void release(model_entry *e) {
    CHECK_EQUAL(shmq_release(q[e->by - 1], &e->d, false), SHMQ_OK);
    e->by = 0;
}

static void release_some(uint32_t by, uint32_t one_in) {
    static shmq_delivery *some[MOST];
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].by == 1 + by && draw(one_in) == 0) {
            all[i].by = 0;
            some[n++] = &all[i].d;
        }
    }
    shmq_release_all(q[by], some, n);
}

static int compare(const void *a, const void *b) {
    uint64_t left = ((const model_entry *)a)->position, right = ((const model_entry *)b)->position;
    return left < right ? -1 : left > right;
}

static void browse(uint32_t by) {
    uint64_t p = 0;
    shmq_delivery d;
    qsort(all, count, sizeof all[0], compare);
    for (uint32_t i = 0; i < count; i++, p++) {
        CHECK_EQUAL(shmq_browse(&q[by]->first, &p, &d), SHMQ_OK);
        CHECK_EQUAL(p, all[i].position);
    }
    CHECK_EQUAL(shmq_browse(&q[by]->first, &p, &d), SHMQ_EMPTY);
}

/* Any entry in hand, or the newest one: the others grow older than a lap. */
static model_entry *in_hand(bool newest) {
    model_entry *found = NULL;
    for (uint32_t i = 0, first = count != 0 ? draw(count) : 0; i < count; i++) {
        model_entry *e = &all[(first + i) % count];
        if (e->by != 0 && (found == NULL || (newest && e->position > found->position))) {
            found = e;
        }
    }
    return found;
}

/* `most` stay in hand. */
static void step(uint32_t most) {
    uint32_t by = draw(2), what = draw(64);
    model_entry *e = in_hand(what >= 3);
    if (what == 0) {
        release_some(by, draw(40) == 0 ? 1 : 2 + draw(300));
    } else if (what == 4 && draw(60) == 0) { /* more epochs than there are cells */
        for (uint32_t i = 0; i < SHMQ_CELLS + 6 && (e = in_hand(false)) != NULL; i++) {
            release(e);
        }
    } else if (what <= 2 && e != NULL) {
        release(e);
    } else if (what == 3 && draw(5) == 0) {
        browse(by);
    } else if (what < 24 && e != NULL && count > most) {
        settle(e);
    } else if (what < 44) {
        take_lowest(by);
    } else {
        put_one(by);
    }
}

static void test_takers_and_browsers_find_old_entries_in_the_order_of_their_positions(uint64_t seed) {
    printf("seed %llu\n", (unsigned long long)seed);
    state = seed;
    begin();
    uint64_t slots = shmq_slot_count(&q[0]->first);
    for (uint32_t i = 0; i < STEPS; i++) {
        step(i / 20000 % 2 == 0 ? 20 : 700); /* more than a list has room for, and fewer */
    }
    CHECK(shmq_load_seq(&q[0]->first.shm->tail) > 4 * slots);
    looked += shmq_load_seq(&q[0]->first.old[true]) != 0 && shmq_load_seq(&q[1]->first.old[true]) != 0;
    while (count != 0) {
        if (lowest() != NULL) {
            take_lowest(draw(2));
        }
        for (uint32_t i = count; i-- != 0;) {
            if (all[i].by != 0 && draw(3) != 0) {
                settle(&all[i]);
            }
        }
        release_some(0, 1);
        release_some(1, 1);
    }
    take_lowest(0);
    end();
}

static void pass_laps(uint64_t laps) {
    for (uint64_t i = 0; i < laps * shmq_slot_count(&q[0]->first); i++) {
        put_one(0);
        take_lowest(0);
        settle(&all[count - 1]);
    }
}

/* A hundred that a consumer of process 0 holds, older than two laps. */
static void hold_old_ones(void) {
    while (count < 100) {
        put_one(0);
    }
    for (uint32_t i = 0; i < 100; i++) {
        take_lowest(0);
    }
    pass_laps(2);
}

/* Also in the middle of a word of the bitmap, whose next entry lies behind it: that belongs to another walk. */
static void test_a_walk_over_old_entries_ends_at_its_end(void) {
    begin();
    hold_old_ones();
    for (uint32_t i = count; i-- != 0;) {
        if (all[i].position >= 66 && all[i].position < 80) {
            settle(&all[i]);
        }
    }
    pass_laps(1); /* takes their bits */
    uint64_t index = 0, met = 0;
    shmq_met e;
    for (; shmq_walk_old(&q[0]->first, &index, 70, &e); met++) {
        CHECK_EQUAL(e.position, met);
    }
    CHECK_EQUAL(met, 66);
    for (index = 70; shmq_walk_old(&q[0]->first, &index, shmq_slot_count(&q[0]->first), &e); met++) {
        CHECK_EQUAL(e.position, met + 14);
    }
    CHECK_EQUAL(met, 86);
    end();
}

/* Another thread has the list: the taker looks with a small one of its own. */
static void test_a_taker_without_its_list_finds_the_lowest_one(void) {
    begin();
    hold_old_ones();
    release_some(0, 1);
    take_lowest(0);
    shmq_old_small small;
    shmq_old_list *list = shmq_old_begin(&q[0]->first, true, &small);
    CHECK(list != &small.list);
    for (uint32_t i = 0; i < 50; i++) {
        take_lowest(0);
    }
    shmq_old_end(list);
    shmq_old_reset(&q[0]->first);
    for (uint32_t i = 0; i < 40; i++) {
        take_lowest(0);
    }
    end();
}

int main(void) {
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_takers_and_browsers_find_old_entries_in_the_order_of_their_positions(seed);
    }
    printf("looked %u\n", looked);
    CHECK(looked >= 1);
    test_a_walk_over_old_entries_ends_at_its_end();
    test_a_taker_without_its_list_finds_the_lowest_one();
    return 0;
}
