/* The queue duty "rows", and files that cannot be read, are lost, or make no sense. */
#include "wake/due.h"
#include "mortal_rows.h"

/* Nothing has failed for who called; when the disk works again, it is done. */
TEST(a_disk_that_fails_only_delays_it) {
    begin_still();
    for (uint64_t i = 0; i < MANY; i++) {
        put_timed(q, i, i % 100 == 50 ? stands_at + MS : 0);
    }
    stands_at += 2 * MS;
    faulty_begin(m);
    for (int fault = 0; fault < 4; fault++) {
        faulty.lists = fault == 0;
        faulty.reads = fault == 1;
        faulty.erasures = fault == 2 ? 2 : 0;
        faulty.openings = fault == 3;
        shmq_due_look(m);
        CHECK_EQUAL(strlen(shmq_trail()), 0);
        stands_at += SHMQ_DEAD_LETTER_NS;
    }
    look();
    faulty_end(m);
    CHECK_EQUAL(expired(), MANY / 100);
    CHECK_EQUAL(census_of(q).ready, MANY - MANY / 100);
    for (uint64_t i = 0; i < MANY; i++) {
        get_numbers(theirs, i, i % 100 != 50);
    }
    end();
}

static void files_path(char path[300]) { snprintf(path, 300, "%s/%u.%u", scratch_spill, q->index, q->incarnation); }

/* Names of all files, in order. */
static uint32_t files_of(char names[64][17]) {
    char path[300];
    uint32_t count = 0;
    files_path(path);
    DIR *all = opendir(path);
    CHECK(all != NULL);
    for (struct dirent *e; (e = readdir(all)) != NULL && count < 64;) {
        if (strlen(e->d_name) == 16) {
            uint32_t i = count++;
            for (; i > 0 && strcmp(names[i - 1], e->d_name) > 0; i--) {
                strcpy(names[i], names[i - 1]);
            }
            strcpy(names[i], e->d_name);
        }
    }
    closedir(all);
    return count;
}

/* A file that has got lost is no message that has expired: the next taker is told. Shows G5. */
TEST(what_is_lost_is_told_and_has_not_expired) {
    begin_still();
    put_many(0, MANY, stands_at + MS);
    put_many(MANY, 2 * MANY, 0);
    uint64_t rows = shmq_flow_rows(q), number;
    char names[64][17], path[300], file[400];
    CHECK(files_of(names) > 10);
    files_path(path);
    snprintf(file, sizeof file, "%s/%s", path, names[0]);
    CHECK(unlink(file) == 0);
    stands_at += 2 * MS;
    shmq_due_look(m);
    CHECK(expired() < MANY && expired() > MANY / 2);
    uint64_t lost = MANY - expired();
    CHECK(shmq_flow_rows(q) < rows && lost <= SHMQ_TURN_ENTRIES);
    unsigned long long told, bytes;
    CHECK_EQUAL(try_number(q, &number), SHMQ_CORRUPT);
    CHECK_EQUAL(sscanf(shmq_trail(), "messages on disk are lost\n%llu, of %llu bytes", &told, &bytes), 2);
    CHECK_EQUAL(told, lost);
    get_numbers(theirs, MANY, MANY);
    shmq_store_seq(&m->header->damage, 0); /* it was told */
    end();
}

/* Garbage lies in a file's place: nothing of it is settled, and the messages of the file are told as lost. */
TEST(what_is_no_file_of_rows_is_passed) {
    for (int kind = 0; kind < 5; kind++) {
        begin_still();
        put_many(0, 2 * MANY, stands_at + MS);
        char names[64][17], path[300], file[400];
        CHECK(files_of(names) > 8);
        files_path(path);
        snprintf(file, sizeof file, "%s/%s", path, names[3]);
        if (kind == 0) {
            CHECK(truncate(file, 10) == 0);
        } else if (kind == 1) {
            FILE *f = fopen(file, "r+");
            CHECK(f != NULL && fseek(f, 16 + 5, SEEK_SET) == 0 && fputc(77, f) == 77 && fclose(f) == 0);
        } else {
            CHECK(unlink(file) == 0);
            CHECK((kind == 2 ? mkdir(file, 0700) : kind == 3 ? symlink("elsewhere", file) : mkfifo(file, 0600)) == 0);
        }
        stands_at += 2 * MS;
        shmq_due_look(m);
        shmq_due_look(m);
        uint64_t lost = 2 * MANY - expired(), number;
        CHECK(lost > 0 && lost <= SHMQ_TURN_ENTRIES && flows());
        unsigned long long told, bytes;
        CHECK_EQUAL(try_number(theirs, &number), SHMQ_CORRUPT);
        CHECK_EQUAL(sscanf(shmq_trail(), "messages on disk are lost\n%llu, of %llu bytes", &told, &bytes), 2);
        CHECK_EQUAL(told, lost);
        CHECK(!flows());
        shmq_store_seq(&m->header->damage, 0);
        end();
    }
}

/* Of a process whose list of files is old. */
TEST(what_another_process_has_dropped_is_passed) {
    begin_still();
    put_many(0, MANY, stands_at + 1000 * MS);
    put_many(MANY, 2 * MANY, stands_at + 2000 * MS);
    put_many(2 * MANY, 3 * MANY, 0);
    (void)shmq_due_at(&words()->rows_due, 1);
    (void)shmq_due_at(&m->header->due, 1);
    look(); /* now it knows all files */
    stands_at += 1000 * MS;
    shmq_due_look(other);
    shmq_due_look(other);
    CHECK_EQUAL(expired(), MANY);
    stands_at += 1000 * MS;
    look();
    CHECK_EQUAL(expired(), 2 * MANY);
    get_numbers(q, 2 * MANY, MANY);
    end();
}

/* It has no directory for rows: others have. */
TEST(who_may_not_flow_leaves_it_to_others) {
    begin_still();
    put_many(0, MANY, stands_at + MS);
    stands_at += 2 * MS;
    faulty.real_of = m->backing_of;
    m->backing_of = NULL;
    shmq_due_look(m);
    CHECK(flows());
    m->backing_of = faulty.real_of;
    CHECK(shmq_due_time(shmq_load_seq(&m->header->due)) <= stands_at + SHMQ_DEAD_LETTER_NS);
    stands_at += SHMQ_DEAD_LETTER_NS;
    shmq_due_look(other);
    CHECK(expired() == MANY && !flows());
    end();
}

int main(void) { return run_tests(); }
