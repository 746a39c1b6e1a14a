/* The way to the disk that cannot be made, or is not what it should be: who puts is told why, and nothing is lost. */
#include "failing_calls.h"

static unsigned char bytes[100];

static void leave(shmq_member *m) {
    (void)shmq_sweep_own(m);
    (void)shmq_member_leave(m, true);
    shmq_member_free(m);
}

/* Until it is on disk, or cannot get there. Answers how many were accepted. */
static uint64_t put_until_refused(shmq_queue *q, uint64_t most, shmq_status *status) {
    uint64_t put = 0;
    *status = SHMQ_OK;
    while (put < most) {
        memcpy(bytes, &put, sizeof put);
        *status = put_bytes(q, bytes, sizeof bytes, 0);
        if (*status != SHMQ_OK) {
            break;
        }
        put++;
    }
    return put;
}

static void take_all(shmq_queue *q, uint64_t put) {
    shmq_delivery d;
    for (uint64_t i = 0; i < put; i++) {
        CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_OK);
        CHECK(memcmp(d.bytes, &i, sizeof i) == 0);
        CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_offer(q, shmq_self(q), &d), SHMQ_EMPTY);
    CHECK_EQUAL(shmq_load_seq(&q->m->header->damage), 0);
}

/* From the first call of the first flush on: no directory is there yet. Shows S202. */
TEST(test_a_first_flush_in_which_any_call_fails_is_told_and_made_good) {
    static const int numbers[] = {ENOSPC, EDQUOT, EACCES, EIO};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        long n = 0, told = 0;
        do {
            scratch_create_flowing();
            scratch_spill_begin();
            shmq_member *m = scratch_attach_flowing();
            shmq_queue *q = scratch_flowing(m, "backlog", 1000);
            shmq_status status;
            failure = numbers[i];
            calls = 0;
            countdown = n++;
            uint64_t put = put_until_refused(q, 60, &status);
            countdown = -1;
            bool full = numbers[i] == ENOSPC || numbers[i] == EDQUOT;
            if (status != SHMQ_OK) {
                CHECK(status == SHMQ_OS || status == SHMQ_NO_SPACE || status == SHMQ_FULL_MEMORY ||
                      status == SHMQ_INTERRUPTED);
                if (status == SHMQ_NO_SPACE && strstr(shmq_trail(), "no room on the disk") != NULL) {
                    CHECK(full && strstr(shmq_trail(), scratch_spill) != NULL);
                    CHECK(strstr(shmq_trail(), " 0 bytes are free there") == NULL); /* it lies where its parent does */
                    told++;
                }
            }
            take_all(q, put);
            put = put_until_refused(q, 60, &status);
            CHECK_EQUAL(status, SHMQ_OK);
            CHECK(shmq_flow_rows(q) != 0);
            take_all(q, put);
            shmq_queue_unbind(q);
            leave(m);
            scratch_spill_end();
            scratch_remove();
        } while (calls >= n && n < 100);
        CHECK(n > 8);
        CHECK(numbers[i] != ENOSPC || told > 2);
    }
}

/* Whose brokers have no directory keep their rows in one of their user's own, which nobody else may have made. */
TEST(test_rows_of_a_broker_without_a_directory_are_its_users_alone) {
    for (int way = 0; way < 4; way++) {
        shmq_segment_plan plan = scratch_plan(true);
        CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
        scratch_spill_begin();
        char all[64];
        snprintf(all, sizeof all, "%s/disk", scratch_broker);
        if (way == 1) {
            CHECK(mkdir(all, 0700) == 0 && chmod(all, 0755) == 0);
        } else if (way == 2) {
            int fd = open(all, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            CHECK(fd >= 0 && close(fd) == 0);
        } else if (way == 3) {
            CHECK(rmdir(scratch_broker) == 0);
        }
        shmq_member *m = scratch_attach();
        CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
        shmq_queue *q = scratch_flowing(m, "backlog", 1000);
        shmq_status status;
        uint64_t put = put_until_refused(q, 60, &status);
        CHECK_EQUAL(status, way == 0 ? SHMQ_OK : way == 3 ? SHMQ_OS : SHMQ_DENIED);
        CHECK(way == 0 || put < 60);
        CHECK(way == 0 || strstr(shmq_trail(), way == 3 ? "cannot make the directory" : "of this user alone") != NULL);
        if (way != 0) { /* put right, and all goes on */
            (void)(way == 1 ? rmdir(all) : way == 2 ? unlink(all) : mkdir(scratch_broker, 0700));
            take_all(q, put);
            put = put_until_refused(q, 60, &status);
            CHECK_EQUAL(status, SHMQ_OK);
        }
        struct stat made;
        CHECK(stat(all, &made) == 0 && (made.st_mode & 0777) == 0700);
        take_all(q, put);
        shmq_queue_unbind(q);
        leave(m);
        scratch_spill_end();
        scratch_remove();
    }
}

TEST(test_a_path_that_is_too_long_is_told) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    static char path[sizeof m->spill + 1];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    CHECK_EQUAL(shmq_flow_into(m, path), SHMQ_OS);
    CHECK(strstr(shmq_trail(), "too long") != NULL);
    path[sizeof path - 2] = '\0'; /* no file system has names of that length */
    CHECK_EQUAL(shmq_flow_into(m, path), SHMQ_OK);
    shmq_queue *q = scratch_flowing(m, "backlog", 1000);
    shmq_status status;
    uint64_t put = put_until_refused(q, 60, &status);
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK(strstr(shmq_trail(), "cannot make the directory") != NULL);
    CHECK_EQUAL(shmq_disk_bytes(q), 0);
    take_all(q, put);
    CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
    shmq_queue_unbind(q);
    leave(m);
    scratch_remove();
}

/* Where nobody knows how much is free, nothing is kept free. */
TEST(test_a_disk_that_says_nothing_has_room) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    m->disk = SHMQ_DISK_SHARE;
    CHECK_EQUAL(shmq_flow_into(m, "/tmp/not/there/yet"), SHMQ_OK);
    CHECK(shmq_disk_room(m) != UINT64_MAX);
    CHECK_EQUAL(shmq_flow_into(m, "not-there-either"), SHMQ_OK);
    CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX);
    CHECK_EQUAL(shmq_flow_into(m, "/proc"), SHMQ_OK);
    CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX);
    leave(m);
    scratch_remove();
}

typedef struct browse {
    shmq_queue *of;
    uint64_t place;
    long fails_at;
    shmq_status status;
    uint64_t length;
    char trail[400];
} browse;

static browse at_longest;

static void *browse_once(void *ignored) {
    shmq_delivery d = {0};
    uint64_t place = at_longest.place;
    countdown = at_longest.fails_at;
    at_longest.status = shmq_browse_place(&at_longest.of->first, &place, &d);
    countdown = -1;
    at_longest.length = d.body_len;
    snprintf(at_longest.trail, sizeof at_longest.trail, "%s", shmq_trail());
    return ignored;
}

/* A thread keeps what it looked at last; a longer one needs more memory. */
TEST(test_who_has_no_memory_to_browse_the_disk_is_told_and_sees_all_later) {
    static unsigned char longer[3000];
    scratch_create_flowing();
    scratch_spill_begin();
    shmq_member *m = scratch_attach_flowing();
    shmq_queue *q = scratch_flowing(m, "backlog", 1000);
    shmq_status status;
    uint64_t put = put_until_refused(q, 60, &status), place = 0, seen = 0;
    CHECK_EQUAL(put_bytes(q, longer, sizeof longer, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    shmq_delivery d;
    bool told = false;
    for (; (status = shmq_browse_place(&q->first, &place, &d)) != SHMQ_EMPTY; place++, seen++) {
        CHECK_EQUAL(status, SHMQ_OK);
    }
    CHECK_EQUAL(seen, put + 3);
    static unsigned char longest[9000];
    CHECK_EQUAL(put_bytes(q, longest, sizeof longest, 0), SHMQ_OK);
    for (int i = 0; i < 60; i++) {
        CHECK_EQUAL(put_bytes(q, bytes, sizeof bytes, 0), SHMQ_OK);
    }
    at_longest = (browse){.of = q, .place = put + 3};
    failure = ENOMEM;
    for (long n = 0; n < 20 && !told; n++) {
        pthread_t thread; /* another one each time: it has no copy yet */
        at_longest.fails_at = n;
        CHECK(pthread_create(&thread, NULL, browse_once, NULL) == 0 && pthread_join(thread, NULL) == 0);
        status = at_longest.status;
        told = status == SHMQ_OS && strstr(at_longest.trail, "no memory for a message on disk") != NULL;
        CHECK(status == SHMQ_OS || status == SHMQ_OK || status == SHMQ_INTERRUPTED);
        CHECK(status != SHMQ_OK || at_longest.length == sizeof longest);
    }
    CHECK(told);
    place = put + 3;
    CHECK_EQUAL(shmq_browse_place(&q->first, &place, &d), SHMQ_OK);
    CHECK_EQUAL(d.body_len, sizeof longest);
    CHECK_EQUAL(d.depth, SHMQ_ON_DISK);
    CHECK_EQUAL(place, put + 3);
    shmq_queue_unbind(q);
    leave(m);
    scratch_spill_end();
    scratch_remove();
}

int main(void) { return run_tests(); }
