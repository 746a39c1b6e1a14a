/* Files of rows that were changed, deleted, or have something else in their place: what is lost is told once, with its number, and the
 * rest comes. */
#include <errno.h>
#include <fcntl.h>

#include "flow_pair.h"

#define MANY 12000

static char directory[200];

static void find_directory(void) {
    snprintf(directory, sizeof directory, "%s/%u.%u", scratch_spill, q->index, q->incarnation);
}

/* The file in the middle, by its name. */
static void middle_file(char path[700]) {
    char names[64][17];
    uint32_t count = 0;
    DIR *all = opendir(directory);
    for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
        if (strlen(e->d_name) == 16 && count < 64) {
            memcpy(names[count++], e->d_name, 17);
        }
    }
    closedir(all);
    CHECK(count > 4);
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = i; k > 0 && strcmp(names[k - 1], names[k]) > 0; k--) {
            char kept[17];
            memcpy(kept, names[k], 17);
            memcpy(names[k], names[k - 1], 17);
            memcpy(names[k - 1], kept, 17);
        }
    }
    snprintf(path, 700, "%s/%s", directory, names[count / 2]);
}

static void change(const char *path, long at, int byte) {
    FILE *f = fopen(path, "r+b");
    CHECK(f != NULL && fseek(f, at, SEEK_SET) == 0 && fputc(byte, f) != EOF && fclose(f) == 0);
}

static void delete(const char *path) { CHECK(unlink(path) == 0); }
static void empty(const char *path) { CHECK(truncate(path, 0) == 0); }
static void shorten(const char *path) { CHECK(truncate(path, 500) == 0); }
static void change_magic(const char *path) { change(path, 0, 'x'); }
static void change_count(const char *path) {
    change(path, 12, 0);
    change(path, 13, 0);
}
static void count_too_many(const char *path) { change(path, 14, 1); }
static void change_index(const char *path) { change(path, 16 + 5, 77); }

static void make_directory(const char *path) {
    delete(path);
    CHECK(mkdir(path, 0700) == 0);
}

static void make_link(const char *path) {
    delete(path);
    CHECK(symlink("/nonexistent", path) == 0);
}

static void make_pipe(const char *path) {
    delete(path);
    CHECK(mkfifo(path, 0600) == 0);
}

/* Of numbers from 0 on. Answers how many did not come, which somebody was told. */
static uint64_t take_all(uint64_t put) {
    uint64_t next = 0, missing = 0, told = 0, number;
    for (shmq_status status; (status = try_number(theirs, &number)) != SHMQ_EMPTY;) {
        if (status == SHMQ_CORRUPT) {
            unsigned long long rows, bytes;
            CHECK_EQUAL(sscanf(shmq_trail(), "messages on disk are lost\n%llu, of %llu bytes", &rows, &bytes), 2);
            CHECK_EQUAL(bytes, 8 * rows);
            told += rows;
            continue;
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK(number >= next);
        missing += number - next;
        next = number + 1;
    }
    missing += put - next;
    CHECK_EQUAL(told, missing);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    CHECK_EQUAL(scratch_spill_files(false), 0);
    return missing;
}

TEST(a_spoilt_file_costs_its_messages_which_are_told_once) {
    void (*const ways[])(const char *path) = {delete,         empty,        shorten,        change_magic, change_count,
                                              count_too_many, change_index, make_directory, make_link,    make_pipe};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin();
        put_numbers(q, 0, MANY);
        find_directory();
        uint64_t damage = shmq_load_seq(&m->header->damage);
        char path[700];
        middle_file(path);
        ways[i](path);
        uint64_t lost = take_all(MANY);
        CHECK(lost > 0 && lost <= SHMQ_TURN_ENTRIES);
        CHECK_EQUAL(shmq_load_seq(&m->header->damage), damage + 1);
        put_numbers(theirs, 0, MANY); /* and it is as before */
        get_numbers(q, 0, MANY);
        end();
    }
}

TEST(all_files_deleted_cost_all_that_was_on_disk) {
    begin();
    put_numbers(q, 0, MANY);
    uint64_t rows = shmq_flow_rows(q);
    (void)scratch_spill_files(true);
    put_numbers(q, MANY, MANY); /* the directory is made again */
    CHECK_EQUAL(take_all(2 * MANY), rows);
    end();
}

/* A browser sees the rest, and is told nothing. */
TEST(a_browser_passes_what_is_lost) {
    begin();
    put_numbers(q, 0, MANY);
    find_directory();
    char path[700];
    middle_file(path);
    delete(path);
    uint64_t seen = 0, place = 0;
    shmq_delivery d;
    for (; shmq_browse_place(&theirs->first, &place, &d) == SHMQ_OK; place++) {
        seen++;
    }
    CHECK(seen < MANY && seen >= MANY - SHMQ_TURN_ENTRIES);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    CHECK_EQUAL(take_all(MANY), MANY - seen);
    end();
}

/* Out of reach is not lost. */
TEST(a_file_that_cannot_be_read_stays) {
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) {
        return; /* root reads everything */
    }
    begin();
    put_numbers(q, 0, MANY);
    find_directory();
    char path[700];
    uint64_t number, next = 0;
    middle_file(path);
    CHECK(chmod(path, 0) == 0);
    shmq_status status;
    while ((status = try_number(theirs, &number)) == SHMQ_OK) {
        CHECK_EQUAL(number, next++);
    }
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK_EQUAL(try_number(q, &number), SHMQ_OS);
    CHECK(chmod(path, 0600) == 0);
    get_numbers(q, next, MANY - next);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    end();
    if (getuid() == 0) {
        CHECK(seteuid(0) == 0 && setegid(0) == 0);
    }
}

/* Something else lies in the place of the directory: all is told, and goes on when it is put right. */
TEST(a_directory_out_of_reach_is_told_and_nothing_is_lost) {
    begin();
    put_numbers(q, 0, MANY);
    find_directory();
    char aside[220];
    snprintf(aside, sizeof aside, "%s.aside", directory);
    CHECK(rename(directory, aside) == 0);
    FILE *f = fopen(directory, "w");
    CHECK(f != NULL && fclose(f) == 0);
    uint64_t put = MANY, next = 0, number;
    shmq_status status;
    while ((status = put_number(q, put)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK(strstr(shmq_trail(), "remove the cause") != NULL);
    while ((status = try_number(theirs, &number)) == SHMQ_OK) {
        CHECK_EQUAL(number, next++);
    }
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK_EQUAL(shmq_disk_bytes(q), 0);
    CHECK(unlink(directory) == 0 && rename(aside, directory) == 0);
    CHECK(shmq_disk_bytes(q) > 0);
    put_numbers(q, put, 10);
    get_numbers(q, next, put + 10 - next);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    end();
}

/* Garbage that cannot be deleted, and may be taken for rows. */
TEST(garbage_that_stays_keeps_messages_in_memory) {
    begin();
    put_numbers(q, 0, MANY);
    find_directory();
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(q, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, MANY);
    char path[300], inside[310];
    snprintf(path, sizeof path, "%s/%016llx", directory, 1ull << 40);
    snprintf(inside, sizeof inside, "%s/x", path);
    CHECK(mkdir(directory, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(path, 0700) == 0 && mkdir(inside, 0700) == 0);
    uint64_t put = 0;
    shmq_status status;
    while ((status = put_number(q, put)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK(put >= shmq_slot_count(&q->first) - 1 && shmq_flow_rows(q) == 0);
    CHECK(rmdir(inside) == 0);
    put_numbers(q, put, MANY); /* an empty one goes */
    get_numbers(theirs, 0, put + MANY);
    end();
}

int main(void) { return run_tests(); }
