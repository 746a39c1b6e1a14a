/* Views of queues, as one looks who has no handle: which queue it is, and what it has in memory. */
#include "check/memory_use.h"
#include "scratch_queue.h"

static shmq_member *m;
static shmq_queue *q, *other;
static unsigned char large[5000];

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
    other = scratch_queue(m, "others", 0, true);
}

static void end(void) {
    shmq_queue_unbind(other);
    scratch_close(m, q);
    scratch_remove();
}

static shmq_status look(uint32_t index, uint32_t incarnation, const char **wrong) {
    shmq_queue view;
    *wrong = "";
    shmq_status status = shmq_queue_look_as(m, index, incarnation, &view, wrong);
    if (status == SHMQ_OK) {
        CHECK(*wrong == NULL);
        CHECK_EQUAL(view.index, index);
        CHECK_EQUAL(view.incarnation, incarnation);
    }
    return status;
}

TEST(a_queue_is_looked_at_as_the_one_that_is_meant) {
    const char *wrong;
    begin();
    CHECK_EQUAL(look(q->index, q->incarnation, &wrong), SHMQ_OK);
    CHECK_EQUAL(look(q->index, q->incarnation + 1, &wrong), SHMQ_NOT_FOUND);
    CHECK_EQUAL(look(SHMQ_QUEUES, q->incarnation, &wrong), SHMQ_NOT_FOUND);
    CHECK_EQUAL(look(7, 1, &wrong), SHMQ_NOT_FOUND); /* nobody has made it */
    uint32_t index = q->index, incarnation = q->incarnation;
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(look(index, incarnation, &wrong), SHMQ_NOT_FOUND);
    end();
}

TEST(a_page_that_leads_elsewhere_is_told) {
    const char *wrong;
    begin();
    shmq_directory_shm *entry = &m->directory[q->index];
    uint64_t page = shmq_load_seq(&entry->page);
    shmq_store_seq(&entry->page, page + 8);
    CHECK_EQUAL(look(q->index, q->incarnation, &wrong), SHMQ_CORRUPT);
    CHECK(strstr(wrong, "the offset of the queue's page makes no sense") != NULL);
    shmq_store_seq(&entry->page, shmq_load_seq(&m->directory[other->index].page));
    CHECK_EQUAL(look(q->index, q->incarnation, &wrong), SHMQ_CORRUPT);
    CHECK(strstr(wrong, "that of another queue") != NULL);
    shmq_store_seq(&entry->page, page);
    q->page->incarnation++; /* an earlier one's, in the same place */
    CHECK_EQUAL(look(q->index, q->incarnation, &wrong), SHMQ_CORRUPT);
    CHECK(strstr(wrong, "that of another queue") != NULL);
    q->page->incarnation--;
    CHECK_EQUAL(look(q->index, q->incarnation, &wrong), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0); /* who looks counts nothing */
    end();
}

TEST(groups_that_make_no_sense_are_none) {
    shmq_queue view;
    begin();
    shmq_store_seq(&q->page->settings.grouping, SHMQ_GROUPS_STICKY + 1);
    CHECK(shmq_queue_look(m, q->index, &view) == NULL);
    CHECK_EQUAL(view.grouping, SHMQ_GROUPS_NONE);
    shmq_store_seq(&q->page->settings.grouping, SHMQ_GROUPS_STICKY);
    CHECK(shmq_queue_look(m, q->index, &view) == NULL);
    CHECK_EQUAL(view.grouping, SHMQ_GROUPS_STICKY);
    shmq_store_seq(&q->page->settings.grouping, SHMQ_GROUPS_NONE);
    end();
}

static bool use_of(uint32_t index, shmq_memory_use *use) {
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    bool there = shmq_memory_use_of(m, index, use);
    shmq_structure_unlock(m);
    return there;
}

TEST(bodies_count_until_their_slots_are_free) {
    shmq_memory_use use;
    begin();
    CHECK(use_of(q->index, &use));
    CHECK(strcmp(use.name, "jobs") == 0);
    CHECK(use.slots != 0);
    CHECK_EQUAL(use.bodies, 0);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK); /* lies in its slot */
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    CHECK(use_of(q->index, &use));
    uint64_t one = use.bodies / 2;
    CHECK(one >= sizeof large);
    shmq_slot_shm *slot = shmq_slot_at(&q->first, 1);
    uint64_t body = slot->body, word = shmq_load_seq(&slot->word);
    slot->body = body + 1; /* leads nowhere */
    CHECK(use_of(q->index, &use));
    CHECK_EQUAL(use.bodies, one);
    slot->body = body;
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_DEQUEUED, shmq_self(q), 1)); /* a settle half done */
    CHECK(use_of(q->index, &use));
    CHECK_EQUAL(use.bodies, 2 * one);
    shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_CLAIMED, shmq_self(q), 0)); /* its body is no message's */
    CHECK(use_of(q->index, &use));
    CHECK_EQUAL(use.bodies, one);
    shmq_store_seq(&slot->word, word);
    end();
}

TEST(what_is_not_in_service_has_no_name) {
    shmq_memory_use use;
    begin();
    CHECK(!use_of(9, &use)); /* nobody has made it */
    shmq_directory_shm *entry = &m->directory[q->index];
    uint64_t page = shmq_load_seq(&entry->page);
    shmq_store_seq(&entry->page, 8);
    CHECK(!use_of(q->index, &use));
    shmq_store_seq(&entry->page, page);
    q->page->name_len = SHMQ_NAME_MAX + 1;
    CHECK(use_of(q->index, &use));
    CHECK(use.name[0] == '\0');
    q->page->name_len = 4;
    CHECK_EQUAL(put_bytes(q, large, sizeof large, 0), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK); /* what is in a hand stays, and so does its memory */
    CHECK(use_of(q->index, &use));
    CHECK(use.name[0] == '\0');
    CHECK(use.slots != 0 && use.bodies >= sizeof large);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    end();
}

int main(void) { return run_tests(); }
