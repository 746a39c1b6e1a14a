/* Rows that came in by themselves and are to be marked as gone: a disk that fails, movers that die before or behind it, marks that were
 * changed. Shows G5. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faulty_backing.h"
#include "flow_select.h"

/* Until it can be written nobody brings anything back. */
TEST(a_row_that_cannot_be_marked_is_marked_before_anything_else) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = place_of(6000);
    faulty_begin(m);
    faulty.erasures = 3;
    CHECK_EQUAL(shmq_flow_fetch(&q->first, place), SHMQ_OK);
    CHECK_EQUAL(shmq_inhaler_bring(&q->first), SHMQ_OS);
    CHECK_EQUAL(shmq_inhaler_bring(&q->first), SHMQ_OS);
    CHECK_EQUAL(shmq_inhaler_bring(&q->first), SHMQ_OK);
    faulty_end(m);
    get_numbers(theirs, 0, MANY);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Its level flushes meanwhile, and the queue is counted: what is not marked yet is neither forgotten nor brought twice. */
TEST(a_flush_marks_first_what_could_not_be_marked) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = place_of(6000);
    faulty_begin(m);
    faulty.erasures = 2;
    CHECK_EQUAL(shmq_flow_fetch(&q->first, place), SHMQ_OK);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OS);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OK);
    faulty_end(m);
    get_numbers(theirs, 0, MANY);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* One wants them all, one by one, and the disk fails now and then. */
TEST(a_search_goes_on_behind_a_disk_that_fails) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t asked = 0;
    shmq_subscription by;
    shmq_delivery d;
    shmq_subscription_begin(&by, is_any, &asked);
    faulty_begin(m);
    for (uint64_t i = 0; i < MANY; i++) {
        faulty.erasures = i % 50 == 0;
        shmq_status status;
        while ((status = select_now(q, &by, &d)) == SHMQ_OS) {
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK_EQUAL(number_of(&d), i);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    faulty_end(m);
    CHECK_EQUAL(select_now(theirs, &by, &d), SHMQ_EMPTY);
    CHECK_EQUAL(census_of(q).ready, 0);
    shmq_subscription_end(&by);
    end();
}

/* The tail has come round, and stands behind an older one that was fetched: the count stays what it was. */
TEST(recovery_believes_no_older_slot) {
    begin();
    put_numbers(q, 0, MANY);
    shmq_ring *front = shmq_front_of(&q->first);
    uint64_t place = place_of(5000), slots = shmq_slot_count(front), tail;
    shmq_delivery first, d;
    CHECK_EQUAL(shmq_steal_at(&q->first, place, true, &first), SHMQ_OK);
    for (uint64_t i = 1; i < slots; i++) {
        CHECK_EQUAL(shmq_steal_at(&q->first, place + i, true, &d), SHMQ_OK);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    uint32_t room = UINT32_MAX;
    CHECK_EQUAL(shmq_front_room(front, &tail, &room), SHMQ_OK); /* carries the first one */
    uint64_t rows = shmq_flow_rows(q);
    shmq_store_seq(&q->page->unfinished, 1); /* as one that died before it did anything */
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OK);
    CHECK(shmq_flow_rows(q) >= rows);
    CHECK_EQUAL(shmq_load_seq(&front->shm->fetched), slots);
    CHECK_EQUAL(shmq_release(q, &first, false), SHMQ_OK);
    uint64_t last = 0, count = 0, number;
    while ((number = get_number(q)) != UINT64_MAX) {
        CHECK(count == 0 || number > last);
        last = number;
        count++;
    }
    CHECK_EQUAL(count, MANY - slots + 1);
    end();
}

static void a_mover_dies_at(uint64_t place, enum faulty_death when) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        shmq_member *own = scratch_attach_flowing();
        shmq_queue *queue = scratch_flowing(own, "jobs", MEMORY);
        faulty_begin(own);
        faulty.at_erase = when;
        (void)shmq_flow_fetch(&queue->first, place);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

TEST(a_mover_that_dies_before_or_behind_the_mark_doubles_nothing) {
    for (int behind = 0; behind < 2; behind++) {
        begin();
        put_numbers(q, 0, MANY);
        for (uint64_t number = 7000; number > 4000; number -= 1000) {
            a_mover_dies_at(place_of(number), behind != 0 ? FAULTY_DIES_BEHIND : FAULTY_DIES_BEFORE);
            uint32_t reaped;
            CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
            CHECK_EQUAL(census_of(q).ready, MANY);
        }
        get_numbers(theirs, 0, MANY);
        CHECK_EQUAL(get_number(q), UINT64_MAX);
        end();
    }
}

/* Another process' mark is seen in a file that was read before; one that makes no sense loses the file, and is told. */
TEST(a_changed_mark_is_told_and_doubles_nothing) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t place = place_of(8000), first = 0;
    shmq_delivery d;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &place, &d), SHMQ_OK); /* our own copy of the file */
    CHECK_EQUAL(shmq_flow_fetch(&theirs->first, place), SHMQ_OK);
    uint64_t next = place;
    CHECK_EQUAL(shmq_flow_peek(&q->first, &next, &d), SHMQ_OK);
    CHECK_EQUAL(number_of(&d), 8001);
    char path[400], file[700];
    snprintf(path, sizeof path, "%s/%u.%u", scratch_spill, q->index, q->incarnation);
    DIR *directory = opendir(path);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        uint64_t begins = strtoull(e->d_name, NULL, 16);
        if (e->d_name[0] != '.' && begins <= place && begins > first) {
            first = begins;
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        }
    }
    closedir(directory);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    uint32_t rows;
    CHECK(fd >= 0 && pread(fd, &rows, sizeof rows, 12) == sizeof rows);
    CHECK(pwrite(fd, "\x01", 1, (off_t)(16 + 16 * (uint64_t)rows)) == 1);
    close(fd);
    uint64_t lost = 0, number, last = UINT64_MAX, got = 0;
    shmq_status status;
    while ((status = try_number(q, &number)) != SHMQ_EMPTY) {
        lost += status == SHMQ_CORRUPT;
        if (status == SHMQ_CORRUPT) {
            continue;
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK(last == UINT64_MAX || number > last);
        last = number;
        got++;
    }
    CHECK_EQUAL(last, MANY - 1);
    CHECK_EQUAL(lost, 1);
    CHECK(got < MANY && got >= MANY - SHMQ_TURN_ENTRIES);
    end();
}

int main(void) { return run_tests(); }
