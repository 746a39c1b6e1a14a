/* A queue that flows and is deleted: its rows go with it, or, where its dead go to another queue, come back one after the other. */
#include "wake/due.h"
#include "scratch_flow.h"

#define MANY 3000

static shmq_member *m, *other;
static shmq_queue *q;

static void begin(const char *dead_letter, uint32_t levels) {
    scratch_create_flowing();
    scratch_spill_begin();
    m = scratch_attach_flowing();
    other = scratch_attach();
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_MEMORY | 1u << SHMQ_SET_PRIORITIES,
                          .max_memory = 100,
                          .priorities = levels,
                          .create = true};
    if (dead_letter != NULL) {
        d.given |= 1u << SHMQ_SET_DEAD_LETTER;
        d.dead_letter = dead_letter;
        d.dead_letter_len = (uint32_t)strlen(dead_letter);
    }
    q = scratch_declare(m, "jobs", d, 0);
    for (uint64_t i = 0; i < MANY; i++) {
        CHECK_EQUAL(put_as(q, i, (uint8_t)(i < MANY / 2 ? levels - 1 : 0)), SHMQ_OK);
    }
    CHECK(shmq_flow_rows(q) != 0);
    CHECK(scratch_spill_files(false) != 0);
}

static void end(void) {
    CHECK_EQUAL(scratch_spill_files(false), 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    scratch_close(other, q);
    scratch_detach(m);
    scratch_remove();
    scratch_spill_end();
}

static uint32_t root(void) { return shmq_entry_state(shmq_load_seq(&m->directory[q->index].word)); }

static void rows_go_with_their_queue(void) {
    begin(NULL, 1);
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(root(), SHMQ_ENTRY_DELETED);
    CHECK(!shmq_queue_ending(m, q->index, name, &incarnation));
    end();
}

/* In memory nothing is left, and the queue waits all the same. */
static void rows_wait_for_their_burial(uint32_t levels) {
    begin("dead", levels);
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation, buried[MANY] = {0};
    uint64_t count = 0;
    shmq_delivery d;
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(root(), SHMQ_ENTRY_LIVE);
    CHECK((shmq_load_seq(&m->upcalls) & SHMQ_UPCALL_DEAD_LETTERS) != 0);
    for (shmq_status status; (status = shmq_steal_left(q, &d)) != SHMQ_EMPTY;) {
        CHECK_EQUAL(status, SHMQ_OK);
        if (count % 500 == 0) {
            uint64_t now = shmq_now_ns();
            CHECK(shmq_queue_ending(m, q->index, name, &incarnation) || count + 1 == MANY);
            CHECK(strcmp(name, "jobs") == 0);
            CHECK_EQUAL(shmq_ending_due(q, now), now);
            CHECK_EQUAL(shmq_ending_look(q, now), now + 10 * SHMQ_TICK_NS);
        }
        CHECK_EQUAL(buried[number_of(&d)]++, 0);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        count++;
    }
    CHECK_EQUAL(count, MANY);
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    CHECK(!shmq_queue_ending(m, q->index, name, &incarnation));
    CHECK_EQUAL(shmq_ending_due(q, shmq_now_ns()), SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_ending_look(q, shmq_now_ns()), SHMQ_DUE_NEVER);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    shmq_queues_end_deleted(m);
    shmq_structure_unlock(m);
    CHECK_EQUAL(root(), SHMQ_ENTRY_DELETED);
    end();
}

/* A process that has no way to the disk buries what is in memory, and leaves the rest to one that has. */
static void who_cannot_reach_the_disk_leaves_the_rows_to_others(void) {
    begin("dead", 1);
    shmq_queue *theirs = NULL;
    shmq_delivery d;
    uint64_t count = 0;
    CHECK_EQUAL(shmq_queue_bind(other, q->index, q->incarnation, &theirs), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    uint64_t rows = shmq_flow_rows(q);
    while (shmq_steal_left(theirs, &d) == SHMQ_OK) {
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
        count++;
    }
    CHECK_EQUAL(count, MANY - rows);
    CHECK_EQUAL(shmq_flow_rows(q), rows);
    while (shmq_steal_left(q, &d) == SHMQ_OK) {
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
        count++;
    }
    CHECK_EQUAL(count, MANY);
    shmq_queue_unbind(theirs);
    end();
}

/* A queue that ends is as its page says; an entry that leads to no page is no such queue. */
static void an_ending_queue_that_is_damaged_is_left_alone(void) {
    begin("dead", 1);
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    shmq_delivery d;
    CHECK(!shmq_queue_ending(m, q->index, name, &incarnation)); /* it is in service */
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK(shmq_queue_ending(m, q->index, name, &incarnation));
    CHECK(shmq_is_ending(m, q->index));
    q->page->name_len = SHMQ_NAME_MAX + 1;
    CHECK(shmq_queue_ending(m, q->index, name, &incarnation));
    CHECK(name[0] == '\0');
    q->page->name_len = 4;
    uint64_t page = shmq_load_seq(&m->directory[q->index].page);
    shmq_store_seq(&m->directory[q->index].page, page + 8);
    CHECK(!shmq_queue_ending(m, q->index, name, &incarnation));
    CHECK(!shmq_is_ending(m, q->index));
    shmq_store_seq(&m->directory[q->index].page, page);
    while (shmq_steal_left(q, &d) == SHMQ_OK) {
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    end();
}

int main(void) {
    rows_go_with_their_queue();
    rows_wait_for_their_burial(1);
    rows_wait_for_their_burial(3);
    who_cannot_reach_the_disk_leaves_the_rows_to_others();
    an_ending_queue_that_is_damaged_is_left_alone();
    return 0;
}
