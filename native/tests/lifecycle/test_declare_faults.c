/* Declarations where the directory, a page or the memory is not as it should be: no second queue of a name, nothing half made. */
#include "scratch_flow.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
}

static void end(void) {
    scratch_detach(m);
    scratch_remove();
}

static shmq_status declare(const char *name, shmq_declaration d, shmq_queue **q) {
    int differs = -1;
    return shmq_queue_declare(m, name, (uint32_t)strlen(name), &d, q, &differs);
}

static uint64_t damage(void) { return shmq_load_seq(&m->header->damage); }

TEST(a_name_that_does_not_match_its_hash_is_told) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true);
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation = 0;
    CHECK(shmq_queue_name(m, q->index, name, &incarnation));
    CHECK(strcmp(name, "jobs") == 0);
    CHECK_EQUAL(incarnation, q->incarnation);
    CHECK(!shmq_queue_name(m, q->index + 1, name, &incarnation));
    CHECK_EQUAL(damage(), 0);
    uint64_t hash = m->directory[q->index].name_hash;
    m->directory[q->index].name_hash = hash + 1;
    CHECK(shmq_queue_name(m, q->index, name, &incarnation)); /* it is there, whatever its name */
    CHECK(name[0] == '\0');
    CHECK_EQUAL(damage(), 1);
    shmq_member *eye;
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
    CHECK(shmq_queue_name(eye, q->index, name, &incarnation));
    CHECK(strcmp(name, "jobs") == 0);
    shmq_observer_close(eye);
    CHECK_EQUAL(damage(), 1); /* who only looks counts nothing */
    m->directory[q->index].name_hash = hash;
    shmq_queue_unbind(q);
    end();
}

TEST(no_other_queue_is_made_beside_one_that_damage_hides) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true), *none = NULL, *fine;
    shmq_declaration d = {.create = true};
    m->directory[q->index].name_hash++;
    CHECK_EQUAL(declare("jobs", d, &none), SHMQ_CORRUPT);
    CHECK(strstr(shmq_trail(), "does not match its hash") != NULL);
    m->directory[q->index].name_hash--;
    q->page->name[0] = 'J';
    CHECK_EQUAL(declare("jobs", d, &none), SHMQ_CORRUPT);
    CHECK_EQUAL(declare("Jobs", d, &none), SHMQ_CORRUPT);
    CHECK_EQUAL(declare("others", d, &fine), SHMQ_OK);
    shmq_queue_unbind(fine);
    q->page->name[0] = 'j';
    q->page->name_len = SHMQ_NAME_MAX + 1;
    CHECK_EQUAL(declare("jobs", d, &none), SHMQ_CORRUPT);
    q->page->name_len = 3;
    CHECK_EQUAL(declare("jobs", d, &none), SHMQ_CORRUPT);
    q->page->name_len = 4;
    CHECK(none == NULL);
    CHECK_EQUAL(declare("jobs", d, &none), SHMQ_OK);
    CHECK(none == q);
    shmq_queue_unbind(none);
    shmq_queue_unbind(q);
    end();
}

TEST(settings_that_are_damaged_are_agreed_with_by_nobody) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 10, true), *again = NULL;
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAXSIZE, .maxsize = 10, .create = true};
    int differs = -1;
    shmq_store_seq(&q->page->settings.lease_ns, 5); /* its seal says otherwise */
    CHECK_EQUAL(declare("jobs", d, &again), SHMQ_CORRUPT);
    CHECK(again == NULL);
    d.maxsize = 20;
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_CORRUPT);
    shmq_store_seq(&q->page->settings.lease_ns, SHMQ_NEVER);
    CHECK_EQUAL(shmq_load_seq(&q->page->maxsize), 10);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&q->page->maxsize), 20);
    shmq_queue_unbind(q);
    end();
}

TEST(what_is_not_there_or_closed_is_not_altered) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 10, true);
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAXSIZE, .maxsize = 20};
    int differs = -1;
    shmq_store_seq(&m->closed, SHMQ_MEMBER_CLOSING);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_CLOSED);
    shmq_store_seq(&m->closed, 0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery held = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_load_seq(&q->page->maxsize), 10);
    CHECK_EQUAL(shmq_settle(q, &held), SHMQ_OK);
    shmq_queue_unbind(q);
    end();
}

/* One that stays in memory has a slot for each. One that may flow has as many as memory allows, and the rest on disk. */
TEST(a_maxsize_beyond_all_rings_is_for_queues_that_flow) {
    begin();
    shmq_queue *q = NULL;
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAXSIZE, .maxsize = UINT64_C(1) << 40, .create = true};
    CHECK_EQUAL(declare("deep", d, &q), SHMQ_FULL_MEMORY);
    CHECK(strstr(shmq_trail(), "at most 16777216") != NULL);
    CHECK(q == NULL);
    d.maxsize = 1;
    CHECK_EQUAL(declare("one", d, &q), SHMQ_OK);
    CHECK_EQUAL(shmq_slot_count(&q->first), SHMQ_RING_MIN);
    shmq_queue_unbind(q);
    scratch_spill_begin();
    CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
    d.maxsize = UINT64_C(1) << 40;
    CHECK_EQUAL(declare("deep", d, &q), SHMQ_OK);
    CHECK(shmq_slot_count(&q->first) >= SHMQ_RING_MIN);
    CHECK_EQUAL(shmq_load_seq(&q->page->maxsize), d.maxsize);
    for (uint64_t i = 0; i < 20000; i++) {
        CHECK_EQUAL(put_number(q, i), SHMQ_OK);
    }
    CHECK(shmq_flow_rows(q) != 0);
    for (uint64_t i = 0; i < 20000; i++) {
        CHECK_EQUAL(get_number(q), i);
    }
    shmq_queue_unbind(q);
    end();
    scratch_spill_end();
}

/* Of the levels of a queue: each ring has to lie in the run of the first. */
TEST(a_run_that_leads_elsewhere_is_refused) {
    begin();
    shmq_queue *before = scratch_queue(m, "before", 0, true), *q = scratch_queue(m, "jobs", 0, true), view;
    shmq_ring_shm *ring = q->first.shm;
    const uint64_t run = ring->run, granules = ring->run_granules;
    const uint64_t runs[] = {run + 8, m->data - SHMQ_GRANULE_BYTES, run + SHMQ_GRANULE_BYTES, ring->carried, m->size};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        ring->run = runs[i];
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
        CHECK(strstr(shmq_trail(), "the offset of the queue's ring makes no sense") != NULL);
    }
    ring->run = run;
    ring->run_granules = m->granule_count + 1;
    CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
    ring->run_granules = 1;
    CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
    ring->run_granules = m->granule_count; /* more than there is behind it */
    CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
    ring->run_granules = (uint32_t)granules;
    CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_OK);
    shmq_queue_unbind(before);
    shmq_queue_unbind(q);
    end();
}

int main(void) { return run_tests(); }
