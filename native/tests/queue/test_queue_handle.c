/* Queues by name and by handle: settings that agree or do not, deletion, forks, and offsets that lead nowhere. */
#include "scratch_queue.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
}

static void end(void) {
    CHECK_EQUAL(shmq_sweep_own(m), SHMQ_OK);
    scratch_detach(m);
    scratch_remove();
}

static shmq_status declare(shmq_queue **q, const shmq_declaration *d, int *differs) {
    return shmq_queue_declare(m, "jobs", 4, d, q, differs);
}

static shmq_declaration all_settings(void) {
    return (shmq_declaration){.given = (1u << SHMQ_SETTINGS) - 1,
                              .maxsize = 100,
                              .slot_size = 256,
                              .temporary = 1,
                              .max_attempts = 5,
                              .max_deaths = 2,
                              .checksum = 1,
                              .dead_letter = "dead",
                              .dead_letter_len = 4,
                              .max_bytes = 5000,
                              .overflow = SHMQ_OVERFLOW_REJECT,
                              .priorities = 1,
                              .grouping = SHMQ_GROUPS_SHARED,
                              .retry_delay_ns = {1, 10, 60},
                              .retry_steps = 3,
                              .max_ttl_ns = 0,
                              .dead_letter_expired = 1,
                              .lease_ns = 7,
                              .live_consumers = 2,
                              .expires_ns = 0,
                              .alerts = {1, 2, 3, 4, 5},
                              .create = true};
}

#define FIXED                                                                                                    \
    (1u << SHMQ_SET_SLOT_SIZE | 1u << SHMQ_SET_TEMPORARY | 1u << SHMQ_SET_CHECKSUM | 1u << SHMQ_SET_PRIORITIES | \
     1u << SHMQ_SET_GROUPS)

TEST(test_what_was_given_is_kept_and_another_value_is_refused) {
    begin();
    shmq_declaration d = all_settings();
    shmq_queue *q = NULL, *again = NULL;
    int differs = -1;
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(declare(&again, &d, &differs), SHMQ_OK);
    CHECK(again == q);
    CHECK_EQUAL(q->first.slot_size, 256);
    CHECK_EQUAL(shmq_load_seq(&q->page->maxsize), 100);
    shmq_declaration others[SHMQ_SETTINGS];
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        others[i] = d;
        others[i].given = 1u << i;
    }
    others[SHMQ_SET_MAXSIZE].maxsize = 7;
    others[SHMQ_SET_SLOT_SIZE].slot_size = 128;
    others[SHMQ_SET_TEMPORARY].temporary = 0;
    others[SHMQ_SET_MAX_ATTEMPTS].max_attempts = 9;
    others[SHMQ_SET_MAX_DEATHS].max_deaths = 9;
    others[SHMQ_SET_CHECKSUM].checksum = 0;
    others[SHMQ_SET_DEAD_LETTER].dead_letter = "gone";
    others[SHMQ_SET_MAX_BYTES].max_bytes = UINT64_C(5000) << 16;
    others[SHMQ_SET_OVERFLOW].overflow = SHMQ_OVERFLOW_WAIT;
    others[SHMQ_SET_PRIORITIES].priorities = 10;
    others[SHMQ_SET_GROUPS].grouping = SHMQ_GROUPS_NONE;
    others[SHMQ_SET_RETRY_DELAY].retry_delay_ns[2] = 61;
    others[SHMQ_SET_MAX_TTL].max_ttl_ns = SHMQ_NEVER;
    others[SHMQ_SET_DEAD_LETTER_EXPIRED].dead_letter_expired = 0;
    others[SHMQ_SET_LEASE].lease_ns = 8;
    others[SHMQ_SET_LIVE_CONSUMERS].live_consumers = 0;
    others[SHMQ_SET_EXPIRES].expires_ns = 1;
    others[SHMQ_SET_MAX_MEMORY].max_memory = 9;
    others[SHMQ_SET_ALERTS].alerts[SHMQ_ALERT_TERMS - 1] = 6;
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        CHECK_EQUAL(declare(&again, &others[i], &differs), SHMQ_EXISTS);
        CHECK_EQUAL(differs, i);
    }
    others[SHMQ_SET_DEAD_LETTER].dead_letter_len = 3;
    CHECK_EQUAL(declare(&again, &others[SHMQ_SET_DEAD_LETTER], &differs), SHMQ_EXISTS);
    others[SHMQ_SET_RETRY_DELAY].retry_steps = 2;
    CHECK_EQUAL(declare(&again, &others[SHMQ_SET_RETRY_DELAY], &differs), SHMQ_EXISTS);
    shmq_queue_unbind(q);
    shmq_queue_unbind(q);
    end();
}

/* Damage turns no checksum off: a setting that says no is believed where the seal of the settings says so, too. */
TEST(test_a_damaged_setting_takes_the_checksum_from_no_message) {
    for (uint32_t given = 0; given <= 1; given++) {
        begin();
        shmq_declaration d = {.given = 1u << SHMQ_SET_CHECKSUM, .checksum = given, .create = true};
        shmq_queue *q = NULL;
        int differs = -1;
        CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
        shmq_queue_shm *page = q->page;
        shmq_queue_unbind(q);
        shmq_store_relaxed(&page->checksum, 0);
        d = (shmq_declaration){0};
        CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
        CHECK(!q->checksum);
        CHECK_EQUAL(q->crc_at_put, given != 0);
        CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
        CHECK_EQUAL(shmq_slot_at(&q->first, 0)->crc != 0, given != 0);
        shmq_queue_unbind(q);
        end();
    }
}

TEST(test_what_nobody_gave_is_set_by_the_first_who_does) {
    begin();
    shmq_declaration d = {.create = true};
    shmq_queue *q = NULL, *again = NULL;
    int differs = -1;
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    d = all_settings();
    d.given &= ~FIXED;
    d.maxsize = 2;
    CHECK_EQUAL(shmq_setting_value(q->page, SHMQ_SET_EXPIRES), SHMQ_NEVER);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 1), 0);
    CHECK_EQUAL(declare(&again, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(shmq_load_seq(&q->page->max_attempts), 5);
    CHECK_EQUAL(shmq_load_seq(&q->page->max_deaths), 2);
    char dead_letter[SHMQ_NAME_MAX];
    CHECK_EQUAL(shmq_dead_letter(q->page, dead_letter), 4);
    CHECK(memcmp(dead_letter, "dead", 4) == 0);
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        if (d.given >> i & 1 && shmq_setting_is_number(i)) {
            CHECK_EQUAL(shmq_setting_value(q->page, i), shmq_declared(&d, i));
        }
        CHECK_EQUAL(q->page->settings.given_by[i], d.given >> i & 1 ? (uint32_t)getpid() : 0);
    }
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 1), 1);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 2), 10);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 3), 60);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 4), 60); /* the last one repeats */
    CHECK(shmq_settings_fault(q->page) == NULL);
    /* Sealed, they fit; while somebody changes them nobody can say. */
    uint64_t lease = shmq_load_seq(&q->page->settings.lease_ns);
    CHECK_EQUAL(shmq_settings_check(q->m, q->page), SHMQ_OK);
    shmq_store_seq(&q->page->settings.lease_ns, lease + 1);
    CHECK_EQUAL(shmq_settings_check(q->m, q->page), SHMQ_CORRUPT);
    shmq_store_seq(&q->page->settings.overflow, 77);
    CHECK_EQUAL(shmq_settings_check(q->m, q->page), SHMQ_CORRUPT);
    shmq_store_seq(&q->page->settings.overflow, (uint32_t)d.overflow);
    shmq_settings_unseal(q->page);
    CHECK(shmq_settings_sealed(q->page));
    shmq_store_seq(&q->page->settings.lease_ns, lease);
    shmq_settings_seal(q->page);
    CHECK_EQUAL(shmq_settings_check(q->m, q->page), SHMQ_OK);
    shmq_store_seq(&q->m->header->damage, 0);
    CHECK_EQUAL(put_number(q, 2), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 3), SHMQ_FULL_COUNT); /* what was there before is counted */
    shmq_queue_unbind(q);
    shmq_queue_unbind(q);
    end();
}

TEST(test_settings_are_altered_but_for_those_that_are_fixed) {
    begin();
    shmq_declaration d = all_settings(), change = {0};
    shmq_queue *q = NULL;
    int differs = -1;
    char dead_letter[SHMQ_NAME_MAX];
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_alter(q, &d, &differs), SHMQ_OK); /* the same: nothing to be refused */
    shmq_declaration_give(&change, SHMQ_SET_MAX_DEATHS, 9);
    shmq_declaration_give(&change, SHMQ_SET_PRIORITIES, 3);
    CHECK_EQUAL(shmq_queue_alter(q, &change, &differs), SHMQ_EXISTS);
    CHECK_EQUAL(differs, SHMQ_SET_PRIORITIES);
    CHECK_EQUAL(shmq_setting_value(q->page, SHMQ_SET_MAX_DEATHS), 2); /* refused as a whole */
    change = (shmq_declaration){.given = 1u << SHMQ_SET_DEAD_LETTER | 1u << SHMQ_SET_RETRY_DELAY,
                                .dead_letter = "elsewhere",
                                .dead_letter_len = 9,
                                .retry_delay_ns = {5},
                                .retry_steps = 1};
    shmq_declaration_give(&change, SHMQ_SET_LEASE, SHMQ_NEVER);
    CHECK_EQUAL(shmq_queue_alter(q, &change, &differs), SHMQ_OK);
    CHECK_EQUAL(shmq_dead_letter(q->page, dead_letter), 9);
    CHECK(memcmp(dead_letter, "elsewhere", 9) == 0);
    CHECK_EQUAL(shmq_retry_delay_ns(q->page, 3), 5);
    CHECK_EQUAL(shmq_setting_value(q->page, SHMQ_SET_LEASE), SHMQ_NEVER);
    CHECK_EQUAL(shmq_setting_value(q->page, SHMQ_SET_MAXSIZE), 100);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_alter(q, &change, &differs), SHMQ_NOT_FOUND);
    shmq_queue_unbind(q);
    end();
}

TEST(test_a_maxsize_that_is_altered_is_in_force_at_once) {
    begin();
    shmq_declaration d = {.create = true}, change = {0};
    shmq_queue *q = NULL;
    int differs = -1;
    shmq_declaration_give(&d, SHMQ_SET_MAXSIZE, 2);
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 0), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    CHECK_EQUAL(put_number(q, 2), SHMQ_FULL_COUNT);
    static const uint64_t limits[] = {3, 1, 0, 4, 5};
    static const uint64_t allowed[] = {1, 0, 2, 0, 0}; /* after them: 3, 3, 5, 5, 5 */
    for (int i = 0, n = 2; i < 5; i++) {
        shmq_declaration_give(&change, SHMQ_SET_MAXSIZE, limits[i]);
        CHECK_EQUAL(shmq_queue_alter(q, &change, &differs), SHMQ_OK);
        for (uint64_t k = 0; k < allowed[i]; k++) {
            CHECK_EQUAL(put_number(q, (uint32_t)n++), SHMQ_OK);
        }
        CHECK(limits[i] == 0 || put_number(q, 99) == SHMQ_FULL_COUNT);
        CHECK(shmq_count_fault(q) == NULL);
    }
    shmq_queue_unbind(q);
    end();
}

TEST(test_a_queue_that_is_not_there_is_not_found) {
    begin();
    shmq_declaration d = {0};
    shmq_queue *q = NULL;
    int differs;
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_NOT_FOUND);
    d.given = 1u << SHMQ_SET_MAX_DEATHS;
    CHECK_EQUAL(declare(&q, &d, &differs), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_bind(m, 0, 0, &q), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_bind(m, SHMQ_QUEUES, 0, &q), SHMQ_NOT_FOUND);
    CHECK(!shmq_queue_named(m, 0, name, &incarnation));
    shmq_queue *made = scratch_queue(m, "jobs", 0, true);
    CHECK(shmq_queue_named(m, made->index, name, &incarnation));
    CHECK(strcmp(name, "jobs") == 0 && incarnation == made->incarnation);
    CHECK_EQUAL(shmq_queue_bind(m, made->index, incarnation + 1, &q), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_bind(m, made->index, incarnation, &q), SHMQ_OK);
    CHECK(q == made);
    shmq_queue_unbind(q);
    shmq_queue_unbind(q);
    end();
}

TEST(test_a_deleted_queue_is_gone_for_every_handle_and_its_name_is_free) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true), *more = scratch_queue(m, "more", 0, true);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    shmq_delivery d = receive(q, shmq_self(q));
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK); /* what is in hand stays there */
    CHECK_EQUAL(put_number(q, 2), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_usable(q), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_browse_wait(q, &(uint64_t){0}, shmq_now_ns() + SECOND), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_ring_join(q, shmq_now_ns() + SECOND), SHMQ_NOT_FOUND);
    shmq_queue *anew = scratch_queue(m, "jobs", 0, true);
    CHECK(anew != q && anew->incarnation != 0);
    CHECK_EQUAL(put_number(anew, 3), SHMQ_OK);
    shmq_queue_unbind(q);
    shmq_queue_unbind(anew);
    shmq_queue_unbind(more);
    end();
}

TEST(test_a_closed_membership_refuses) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true);
    uint32_t row;
    CHECK_EQUAL(shmq_row_borrow(q, &row), SHMQ_OK);
    shmq_row_return(q, row);
    shmq_queue_wake_threads(m);
    shmq_queue_close_handles(m);
    CHECK_EQUAL(shmq_load_seq(&q->counters->attached), 0);
    shmq_store_seq(&m->closed, SHMQ_MEMBER_CLOSING);
    shmq_delivery d;
    CHECK_EQUAL(put_number(q, 1), SHMQ_CLOSED);
    CHECK_EQUAL(shmq_offer_wait(q, shmq_self(q), 0, 0, &d), SHMQ_CLOSED);
    shmq_store_seq(&m->closed, 0);
    shmq_queue_unbind(q);
    end();
}

TEST(test_a_forked_child_binds_its_handles_anew) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true), *gone = scratch_queue(m, "gone", 0, true);
    CHECK_EQUAL(shmq_queue_rebind(q), SHMQ_OK); /* nothing to do */
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
        CHECK(m->row != 0);
        CHECK_EQUAL(shmq_queue_rebind(q), SHMQ_OK);
        CHECK_EQUAL(shmq_queue_rebind(gone), SHMQ_NOT_FOUND);
        CHECK_EQUAL(put_number(q, 7), SHMQ_OK);
        CHECK(scratch_queue(m, "jobs", 0, true) == q);
        shmq_queue_unbind(q);
        shmq_queue_wake_threads(m);
        shmq_queue_close_handles(m);
        exit(0); /* counts for coverage; the segment is its parent's */
    }
    scratch_wait(child);
    CHECK_EQUAL(get_number(q), 7);
    reap_all(m, 1);
    shmq_queue_unbind(q);
    shmq_queue_unbind(gone);
    end();
}

TEST(test_a_temporary_queue_goes_with_its_process) {
    begin();
    shmq_member *other = scratch_attach();
    shmq_declaration d = {.given = 1u << SHMQ_SET_TEMPORARY, .temporary = 1, .create = true};
    shmq_queue *q = NULL;
    int differs;
    CHECK_EQUAL(shmq_queue_declare(other, "passing", 7, &d, &q, &differs), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, &d, sizeof d, 0), SHMQ_OK);
    shmq_delivery taken = receive(q, shmq_self(q));
    CHECK(taken.position == 0);
    scratch_kill(other);
    reap_all(m, 1);
    CHECK_EQUAL(shmq_queue_bind(m, q->index, 0, &q), SHMQ_NOT_FOUND);
    end();
}

/* Every word that leads to a queue's memory, with values that lead nowhere: refused, and nothing is touched. */
TEST(test_damaged_geometry_is_refused) {
    begin();
    shmq_queue *q = scratch_queue(m, "jobs", 0, true), view;
    shmq_directory_shm *entry = &m->directory[q->index];
    uint64_t page = shmq_load_seq(&entry->page);
    const uint64_t pages[] = {0, page + 8, m->size, m->size - 8, UINT64_MAX & ~UINT64_C(8191), 8192};
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    shmq_declaration d = {.given = 1u << SHMQ_SET_MAX_DEATHS, .max_deaths = 3, .create = false};
    int differs;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        shmq_store_seq(&entry->page, pages[i]);
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
        CHECK(!shmq_queue_named(m, q->index, name, &incarnation));
        shmq_queue *again;
        CHECK(declare(&again, &d, &differs) != SHMQ_OK);
    }
    shmq_store_seq(&entry->page, page);
    shmq_ring_shm *ring = q->first.shm, good = *ring;
    const uint32_t shifts[] = {32, 63, 25, 24}, sizes[] = {0, 64, 127, 200, 8192};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        ring->shift = shifts[i];
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
    }
    ring->shift = good.shift;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ring->slot_size = sizes[i];
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
    }
    ring->slot_size = good.slot_size;
    const uint64_t places[] = {0, 1, 64, m->size, m->size - 64, UINT64_MAX - 63, good.slots + 32};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        ring->slots = places[i];
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
        ring->slots = good.slots;
        ring->carried = places[i];
        CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_CORRUPT);
        ring->carried = good.carried;
    }
    CHECK_EQUAL(shmq_queue_view(m, q->index, &view), SHMQ_OK);
    q->page->name_len = 0;
    CHECK(!shmq_queue_named(m, q->index, name, &incarnation));
    q->page->name_len = SHMQ_NAME_MAX + 1;
    CHECK(!shmq_queue_named(m, q->index, name, &incarnation));
    q->page->name_len = 4;
    CHECK(shmq_load_seq(&m->header->damage) > 10);
    shmq_queue_unbind(q);
    end();
}

/* Shows S137. */
TEST(test_rings_are_of_one_size_whatever_was_made_before_and_the_end_of_memory_is_told) {
    scratch_room = 0;
    begin();
    scratch_room = SCRATCH_MEMORY;
    shmq_declaration d = {.create = true};
    static shmq_queue *queues[2000];
    int differs, made = 0;
    shmq_status status = SHMQ_OK;
    while (made < 2000) {
        char name[16];
        int length = snprintf(name, sizeof name, "q%d", made);
        status = shmq_queue_declare(m, name, (uint32_t)length, &d, &queues[made], &differs);
        if (status != SHMQ_OK) {
            break;
        }
        CHECK_EQUAL(shmq_slot_count(&queues[made++]->first), 4096); /* of 192 bytes: a sixteenth of 16 MiB */
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    CHECK(made > 400);
    static unsigned char bytes[100000];
    CHECK_EQUAL(put_bytes(queues[0], bytes, sizeof bytes, 0), SHMQ_FULL_MEMORY);
    uint64_t start = shmq_now_ns();
    do { /* interrupted: where the machine is slow, a piece of the wait is over before all of it is */
        status = put_bytes(queues[0], bytes, sizeof bytes, start + 20000000);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    CHECK(shmq_now_ns() - start >= 20000000);
    CHECK_EQUAL(put_bytes(queues[0], bytes, sizeof bytes, start + 600 * SECOND), SHMQ_INTERRUPTED); /* a piece of it */
    CHECK_EQUAL(shmq_waiters_in(shmq_load_seq(&m->header->memory_waiters)), 0);
    for (int i = 0; i < made; i++) {
        CHECK_EQUAL(shmq_queue_delete(queues[i]), SHMQ_OK);
        shmq_queue_unbind(queues[i]);
    }
    shmq_queue *q = scratch_queue(m, "after", 0, true); /* what was deleted is used again */
    CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    shmq_queue_unbind(q);
    end();
}

/* Shows G5. */
TEST(test_who_comes_to_take_out_what_fills_the_memory_finds_room) {
    begin();
    shmq_queue *q = scratch_queue(m, "full", 0, true);
    shmq_queue *empty = scratch_queue(m, "empty", 0, true);
    static unsigned char bytes[300000];
    uint32_t count = 0;
    for (uint64_t size = sizeof bytes; size > 1000; size /= 2) {
        while (put_bytes(q, bytes, size, 0) == SHMQ_OK) {
            count++;
        }
    }
    shmq_member *other = scratch_attach(); /* a process page */
    shmq_queue *theirs = scratch_queue(other, "empty", 0, true), *same = scratch_queue(other, "full", 0, true);
    shmq_delivery d;
    CHECK_EQUAL(shmq_offer_wait(theirs, shmq_self(theirs), 0, shmq_now_ns() + 1000000, &d), SHMQ_EMPTY); /* it slept */
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQUAL(shmq_offer(same, shmq_self(same), &d), SHMQ_OK);
        CHECK_EQUAL(shmq_offer_acquire(same, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(same, &d), SHMQ_OK);
    }
    CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    shmq_queue_unbind(theirs);
    scratch_close(other, same);
    shmq_queue_unbind(q);
    shmq_queue_unbind(empty);
    end();
}

int main(void) { return run_tests(); }
