/* The broker's memory is used up, or its disk: who makes room, where, and for whom. */
#include <errno.h>
#include <sys/stat.h>

#include "flow/rows_directory.h"
#include "upkeep/relief.h"
#include "flow_pair.h"

#define LARGE UINT64_C(4000)
#define FILLING (SCRATCH_MEMORY / LARGE)

static unsigned char large[LARGE];

static shmq_status put_large(shmq_queue *to, uint64_t number) {
    memcpy(large, &number, sizeof number);
    return put_bytes(to, large, LARGE, 0);
}

static void put_many_large(shmq_queue *to, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) {
        CHECK_EQUAL(put_large(to, i), SHMQ_OK);
    }
}

static void get_many_large(shmq_queue *of, uint64_t from, uint64_t count) {
    for (uint64_t i = from; i < from + count; i++) {
        shmq_delivery d = receive(of, shmq_self(of));
        uint64_t number;
        CHECK_EQUAL(d.body_len, LARGE);
        memcpy(&number, d.bytes, sizeof number);
        CHECK_EQUAL(number, i);
        CHECK_EQUAL(shmq_settle(of, &d), SHMQ_OK);
    }
}

TEST(a_queue_flows_where_the_memory_is_used_up) {
    begin();
    shmq_queue *plain = scratch_queue(m, "plain", 0, true);
    put_many_large(plain, 0, 2 * FILLING);
    CHECK(shmq_flow_rows(plain) > FILLING / 2);
    get_many_large(plain, 0, 2 * FILLING);
    CHECK_EQUAL(census_of(plain).ready, 0);
    shmq_queue_unbind(plain);
    end();
}

/* Six that are full, of which it tries the deepest first; and those that cannot flow, or have gone. */
TEST(a_queue_that_stays_in_memory_gets_that_of_others) {
    begin();
    char name[] = "plain-0";
    shmq_queue *gone = scratch_queue(m, "gone", 0, true);
    shmq_queue *full[6], *levels = scratch_levels(m, "levels", 0, 2);
    for (unsigned i = 0; i < 6; i++) {
        name[6] = (char)('0' + i);
        full[i] = scratch_queue(m, name, 0, true);
    }
    CHECK_EQUAL(shmq_queue_delete(gone), SHMQ_OK);
    shmq_queue_unbind(gone);
    for (unsigned i = 0; i < 6; i++) {
        put_many_large(full[i], 0, FILLING / 8 - 50 * i);
    }
    put_many_large(levels, 0, 500);
    uint64_t rows = 0;
    for (unsigned i = 0; i < 6; i++) {
        rows += shmq_flow_rows(full[i]);
    }
    CHECK(rows > 100);
    get_many_large(levels, 0, 500);
    for (unsigned i = 0; i < 6; i++) {
        get_many_large(full[i], 0, FILLING / 8 - 50 * i);
        shmq_queue_unbind(full[i]);
    }
    CHECK_EQUAL(shmq_relieve(m, levels, false), SHMQ_EMPTY);
    shmq_queue_unbind(levels);
    end();
}

/* Its slots are of one piece, in memory that bodies have. Shows S120. */
TEST(a_new_queue_gets_memory_that_messages_have) {
    begin();
    shmq_queue *full = scratch_queue(m, "plain", 0, true);
    put_many_large(full, 0, 2 * FILLING);
    uint64_t rows = shmq_flow_rows(full);
    shmq_queue *levels = scratch_levels(m, "levels", 0, 10);
    CHECK(shmq_flow_rows(full) > rows);
    CHECK_EQUAL(put_large(levels, 0), SHMQ_OK);
    get_many_large(levels, 0, 1);
    get_many_large(full, 0, 2 * FILLING);
    shmq_queue_unbind(levels);
    shmq_queue_unbind(full);
    end();
}

/* The mover's lock of a queue, held by another process. */
static void lock_by_another(const shmq_queue *of, short how) {
    struct flock lock = {
        .l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)(UINT64_C(1) << 41) + of->index, .l_len = 1};
    CHECK(fcntl(other->lock_fd, F_OFD_SETLK, &lock) == 0);
}

/* Another process moves its messages just now, so there is hope. */
TEST(who_finds_all_queues_locked_is_told_so) {
    begin();
    shmq_queue *plain = scratch_queue(m, "plain", 0, true), *levels = scratch_levels(m, "levels", 0, 2);
    put_many_large(plain, 0, 500);
    lock_by_another(plain, F_WRLCK);
    CHECK_EQUAL(shmq_relieve(m, NULL, false), SHMQ_IN_USE);
    CHECK_EQUAL(put_as(levels, 0, 0), SHMQ_OK); /* one that stays in memory */
    CHECK_EQUAL(shmq_relieve(m, NULL, false), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_relieve(m, levels, false), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_relieve(m, plain, false), SHMQ_IN_USE);
    CHECK_EQUAL(shmq_relieve(m, plain, true), SHMQ_EMPTY); /* by its mover, which has nobody else to ask */
    CHECK(strcmp(shmq_trail(), "") == 0);
    lock_by_another(plain, F_UNLCK);
    CHECK_EQUAL(shmq_relieve(m, levels, false), SHMQ_OK);
    CHECK(shmq_flow_rows(plain) > 0);
    get_many_large(plain, 0, 500);
    get_numbers(levels, 0, 1);
    shmq_queue_unbind(levels);
    shmq_queue_unbind(plain);
    end();
}

/* It is passed, and the others make room all the same. Nobody sums up what it says. */
TEST(a_queue_that_is_damaged_keeps_nobody_from_relief) {
    begin();
    shmq_queue *damaged = scratch_queue(m, "damaged", 0, true), *plain = scratch_queue(m, "plain", 0, true);
    put_many_large(plain, 0, 500);
    put_many_large(damaged, 0, 800);
    uint64_t lack = shmq_fronts_lack(m), used = shmq_disk_used(m), ring = damaged->page->level_rings;
    damaged->page->level_rings = ring + 1;
    CHECK(shmq_fronts_lack(m) <= lack);
    CHECK_EQUAL(shmq_relieve(m, NULL, false), SHMQ_OK);
    CHECK(shmq_flow_rows(plain) > 0 && shmq_disk_used(m) > used);
    damaged->page->level_rings = ring;
    CHECK_EQUAL(shmq_flow_rows(damaged), 0);
    get_many_large(damaged, 0, 800);
    get_many_large(plain, 0, 500);
    shmq_queue_unbind(damaged);
    shmq_queue_unbind(plain);
    end();
}

TEST(without_a_disk_nobody_makes_room) {
    begin();
    m->backing_of = NULL;
    shmq_queue *plain = scratch_queue(m, "plain", 0, true);
    uint64_t put = 0;
    shmq_status status;
    while ((status = put_large(plain, put)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_MEMORY);
    CHECK_EQUAL(shmq_relieve(m, plain, false), SHMQ_EMPTY);
    CHECK(put < FILLING);
    CHECK_EQUAL(census_of(plain).ready, put);
    get_many_large(plain, 0, put);
    shmq_queue_unbind(plain);
    end();
}

TEST(a_budget_ends_puts_and_nothing_else) {
    begin();
    shmq_queue *plain = scratch_queue(m, "plain", 0, true);
    m->disk = UINT64_C(1) << 20;
    uint64_t put = 0;
    shmq_status status;
    while ((status = put_large(plain, put)) == SHMQ_OK) {
        put++;
    }
    CHECK_EQUAL(status, SHMQ_FULL_DISK);
    uint64_t size = shmq_rows_size(m, shmq_flow_rows(plain), shmq_flow_bytes(plain));
    CHECK(size > m->disk / 2 && size <= m->disk);
    CHECK(shmq_disk_room(m) < 2 * LARGE);
    struct iovec piece = {.iov_base = large, .iov_len = LARGE};
    shmq_outgoing brief = {.pieces = &piece, .piece_count = 1, .body_len = LARGE, .wait.brief = true};
    CHECK_EQUAL(shmq_put(plain, &brief, 0), SHMQ_FULL_MEMORY);
    shmq_unprepare(plain, &brief);
    CHECK_EQUAL(put_patiently(plain, large, LARGE, shmq_now_ns() + 1000000), SHMQ_FULL_DISK);
    CHECK_EQUAL(put_number(plain, 0), SHMQ_OK); /* which needs no block */
    m->disk = SCRATCH_DISK;
    put_many_large(plain, put, 300);
    get_many_large(plain, 0, put);
    CHECK_EQUAL(get_number(plain), 0);
    get_many_large(plain, put, 300);
    shmq_queue_unbind(plain);
    end();
}

/* A ring that is full, and one message that is larger than what is left of the budget. */
TEST(a_full_ring_asks_for_the_disk_too) {
    begin();
    m->disk = 1;
    shmq_declaration d = {.given = (1u << SHMQ_SET_OVERFLOW), .overflow = SHMQ_OVERFLOW_DROP_OLDEST, .create = true};
    shmq_queue *plain = scratch_queue(m, "plain", 0, false), *dropping = scratch_declare(m, "dropping", d, 0);
    uint64_t put = 0;
    while (put_number(plain, put) == SHMQ_OK) {
        put++;
    }
    uint64_t room = shmq_slot_count(&plain->first) + shmq_slot_count(shmq_front_of(&plain->first)) / 4;
    CHECK_EQUAL(put, room);
    CHECK_EQUAL(put_number(plain, put), SHMQ_FULL_DISK);
    CHECK_EQUAL(put_patiently(plain, &put, sizeof put, shmq_now_ns() + 1000000), SHMQ_FULL_DISK);
    put_numbers(dropping, 0, room + 100);
    get_numbers(dropping, 100, room);
    get_numbers(plain, 0, put);
    shmq_queue_unbind(plain);
    shmq_queue_unbind(dropping);
    end();
}

TEST(room_is_asked_of_what_is_there) {
    begin();
    CHECK(shmq_disk_room(m) != 0 && shmq_disk_room(m) != UINT64_MAX);
    m->disk = SHMQ_DISK_SHARE;
    CHECK_EQUAL(shmq_flow_into(m, "/dev/shm/no/such/directory"), SHMQ_OK);
    CHECK(shmq_disk_room(m) != UINT64_MAX);
    CHECK_EQUAL(shmq_flow_into(m, "/no-such-directory"), SHMQ_OK);
    CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX);
    CHECK_EQUAL(shmq_flow_into(m, "nowhere"), SHMQ_OK);
    CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX);
    CHECK_EQUAL(shmq_flow_into(m, "/proc/self"), SHMQ_OK);
    CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX); /* of no size */
    CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
    end();
}

TEST(a_private_directory_is_this_users_alone) {
    char top[] = "/tmp/shmq-private-XXXXXX", all[64], parent[80], path[96], link_to[96];
    struct stat as;
    CHECK(mkdtemp(top) != NULL);
    snprintf(all, sizeof all, "%s/all", top);
    snprintf(parent, sizeof parent, "%s/segment", all);
    snprintf(path, sizeof path, "%s/3.1", parent);
    snprintf(link_to, sizeof link_to, "%s/other", top);
    CHECK(shmq_rows_directory_make_private(AT_FDCWD, path, &as, true));
    CHECK_EQUAL(as.st_mode & 0777, 0700);
    CHECK(shmq_rows_directory_make_private(AT_FDCWD, path, &as, false));
    CHECK(chmod(all, 0750) == 0);
    CHECK(!shmq_rows_directory_make_private(AT_FDCWD, path, &as, true) && errno == EEXIST);
    CHECK(chmod(all, 0700) == 0 && rename(all, link_to) == 0 && symlink(link_to, all) == 0);
    CHECK(!shmq_rows_directory_make_private(AT_FDCWD, path, &as, true) && errno == EEXIST);
    CHECK(unlink(all) == 0 && rename(link_to, all) == 0);
    snprintf(path, sizeof path, "%s/3.2", parent); /* a later queue of this index sweeps what an earlier one has left */
    CHECK(shmq_rows_directory_make_private(AT_FDCWD, path, &as, true));
    snprintf(link_to, sizeof link_to, "%s/3.1", parent);
    CHECK(rmdir(link_to) != 0);
    shmq_rows_directory_delete(AT_FDCWD, path);
    shmq_rows_directory_delete(AT_FDCWD, path);
    CHECK(rmdir(parent) == 0 && rmdir(all) == 0);
    int file = open(all, O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0 && close(file) == 0);
    CHECK(!shmq_rows_directory_make_private(AT_FDCWD, path, &as, true) && errno == EEXIST);
    CHECK(!shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    CHECK(unlink(all) == 0 && rmdir(top) == 0);
    CHECK(!shmq_rows_directory_make_private(AT_FDCWD, "/no/such/directory/at/all", &as, true) && errno == ENOENT);
}

int main(void) { return run_tests(); }
