/* A look without a row, a lock or a write: what it says while others are inside the structure lock, have died there, or
 * change what it looks at. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "check/check.h"
#include "scratch_queue.h"

static shmq_member *a, *b, *eye;
static shmq_queue *qa;
static shmq_finding finding;

static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 1024, true);
    for (uint64_t i = 0; i < 10; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
}

static void leave(shmq_member *m) { scratch_detach(m); }

static void end(void) {
    shmq_observer_close(eye);
    shmq_queue_unbind(qa);
    leave(a);
    if (b->lock_fd >= 0) {
        leave(b);
    }
    scratch_remove();
}

static int part_called(const char *name) {
    for (int i = 0; i < SHMQ_PARTS; i++) {
        if (strcmp(shmq_part_name(i), name) == 0) {
            return i;
        }
    }
    return -1;
}

static shmq_verdict_kind verdict_of(const char *name) {
    shmq_part_check(eye, part_called(name), &finding);
    return finding.verdict;
}

static shmq_verdict_kind verdict_of_queue(void) {
    shmq_queue view;
    CHECK(shmq_queue_look(eye, qa->index, &view) == NULL);
    view.index = qa->index;
    shmq_queue_check(&view, &finding);
    return finding.verdict;
}

static void all_sound(void) {
    for (int i = 0; i < SHMQ_PARTS; i++) {
        shmq_part_check(eye, i, &finding);
        CHECK_EQUAL(finding.verdict, SHMQ_SOUND);
        CHECK(finding.fault[0] == 0);
    }
    CHECK_EQUAL(verdict_of_queue(), SHMQ_SOUND);
}

TEST(it_has_no_row_and_cannot_write) {
    begin();
    all_sound();
    CHECK_EQUAL(shmq_members_live(eye), 2);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        shmq_add_seq(&eye->header->damage, 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status)); /* or a sanitizer's report, which ends it as well */
    CHECK_EQUAL(shmq_load_seq(&a->header->damage), 0);
    end();
}

TEST(a_moment_ends_when_somebody_takes_the_lock) {
    begin();
    shmq_moment moment = shmq_moment_begin(eye);
    CHECK_EQUAL(moment.calm, SHMQ_CALM);
    CHECK(shmq_moment_lasts(eye, &moment));
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    CHECK(!shmq_moment_lasts(eye, &moment));
    moment = shmq_moment_begin(eye);
    CHECK_EQUAL(moment.calm, SHMQ_BUSY);
    CHECK_EQUAL(moment.holder, getpid());
    CHECK(!shmq_moment_lasts(eye, &moment)); /* whoever is inside may change anything without another turn */
    shmq_structure_unlock(a);
    moment = shmq_moment_begin(eye);
    CHECK_EQUAL(moment.calm, SHMQ_CALM);
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    scratch_kill(a);
    a = scratch_attach(); /* and the lock was taken again: rebuilt */
    CHECK(!shmq_moment_lasts(eye, &moment));
    CHECK_EQUAL(shmq_moment_begin(eye).calm, SHMQ_CALM);
    qa = scratch_queue(a, "jobs", 1024, true);
    end();
}

TEST(beside_a_holder_the_map_is_left_open_and_the_rest_is_looked_at) {
    begin();
    shmq_directory_shm *entry = &a->directory[qa->index];
    uint64_t hash = entry->name_hash;
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    CHECK_EQUAL(verdict_of("map of the memory"), SHMQ_UNDECIDED);
    CHECK(strstr(finding.why, "is changing the structure, or was stopped while it did") != NULL);
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_SOUND);
    CHECK_EQUAL(verdict_of_queue(), SHMQ_SOUND);
    entry->name_hash ^= 1;
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_UNDECIDED); /* it may be half of the holder's change */
    CHECK(strstr(finding.fault, "its name does not match the hash by which processes look it up") != NULL);
    shmq_structure_unlock(b);
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_DAMAGED);
    entry->name_hash = hash;
    all_sound();
    end();
}

/* Its changes stop where they are: only the map may be wrong, and the next holder rebuilds that. */
TEST(behind_a_dead_holder_all_but_the_map_is_judged) {
    begin();
    shmq_directory_shm *entry = &a->directory[qa->index];
    uint64_t hash = entry->name_hash, offset;
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    CHECK_EQUAL(shmq_run_take(b, 3, SHMQ_GRANULE_RING, &offset), SHMQ_OK); /* no root names it yet */
    scratch_kill(b);
    CHECK_EQUAL(shmq_moment_begin(eye).calm, SHMQ_LEFT);
    CHECK_EQUAL(verdict_of("map of the memory"), SHMQ_UNDECIDED);
    CHECK(strstr(finding.why, "died") != NULL);
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_SOUND);
    entry->name_hash ^= 1;
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_DAMAGED);
    entry->name_hash = hash;
    CHECK_EQUAL(shmq_structure_lock(a), SHMQ_OK);
    shmq_structure_unlock(a);
    all_sound();
    end();
}

TEST(a_wrong_map_is_damage_when_nobody_is_at_it) {
    begin();
    uint64_t word = shmq_load_seq(&a->granules[100]);
    shmq_store_seq(&a->granules[100], shmq_granule_word(word, SHMQ_GRANULE_PAGES, 1, 1));
    CHECK_EQUAL(verdict_of("map of the memory"), SHMQ_DAMAGED);
    CHECK(strstr(finding.fault, "granule 100") != NULL);
    shmq_store_seq(&a->granules[100], word);
    all_sound();
    end();
}

static shmq_a64 *moving;

/* In the place of the C library's, for the judge rests here: what moves does so between two looks and never under one, which
 * would see that it moved and let it be. */
int nanosleep(const struct timespec *rest, struct timespec *left) {
    if (moving != NULL) {
        shmq_add_seq(moving, UINT64_C(1) << 21); /* its tag */
    }
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, rest, left);
    errno = error;
    return error == 0 ? 0 : -1;
}

TEST(what_is_wrong_in_another_way_at_each_look_is_left_open) {
    begin();
    shmq_slot_shm *slot = shmq_slot_at(&qa->first, 5);
    uint64_t word = shmq_load_seq(&slot->word);
    shmq_store_seq(&slot->word, word | 15);
    CHECK_EQUAL(verdict_of_queue(), SHMQ_DAMAGED);
    CHECK_EQUAL(finding.where, 5);
    moving = &slot->word;
    CHECK_EQUAL(verdict_of_queue(), SHMQ_UNDECIDED);
    moving = NULL;
    shmq_store_seq(&slot->word, word);
    all_sound();
    end();
}

TEST(a_queue_that_goes_under_the_look_is_no_damage) {
    begin();
    shmq_queue view;
    shmq_bodies bodies;
    CHECK(shmq_queue_look(eye, qa->index, &view) == NULL);
    view.index = qa->index;
    shmq_slot_at(&qa->first, 3)->inline_area[0] ^= 1;
    shmq_bodies_check(&view, &bodies, &finding);
    CHECK_EQUAL(finding.verdict, SHMQ_DAMAGED);
    CHECK_EQUAL(finding.where, 3);
    CHECK_EQUAL(bodies.verified, 9);
    shmq_store_seq(&shmq_slot_at(&qa->first, 3)->word, ~UINT64_C(0)); /* its memory is something else by now */
    CHECK_EQUAL(verdict_of_queue(), SHMQ_DAMAGED);
    shmq_store_seq(&a->directory[qa->index].word, shmq_entry_word(view.incarnation, SHMQ_ENTRY_DELETED));
    shmq_queue_check(&view, &finding);
    CHECK_EQUAL(finding.verdict, SHMQ_GONE_MEANWHILE);
    shmq_bodies_check(&view, &bodies, &finding);
    CHECK_EQUAL(finding.verdict, SHMQ_GONE_MEANWHILE);
    end();
}

TEST(a_name_that_leads_nowhere_is_not_counted) {
    begin();
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    uint64_t page = shmq_load_seq(&a->directory[qa->index].page);
    CHECK(shmq_queue_named(eye, qa->index, name, &incarnation));
    CHECK(strcmp(name, "jobs") == 0);
    shmq_store_seq(&a->directory[qa->index].page, page + 1);
    CHECK(!shmq_queue_named(eye, qa->index, name, &incarnation));
    CHECK_EQUAL(verdict_of("queue directory"), SHMQ_DAMAGED);
    shmq_store_seq(&a->directory[qa->index].page, page);
    end();
    CHECK_EQUAL(shmq_observer_open("shmq-nobody", NULL, &eye), SHMQ_GONE);
}

int main(void) { return run_tests(); }
