/* Creation, the checks of attach, rows, fork, leaving. */
#include <signal.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "check/check.h"
#include "segment/inspect.h"
#include "segment/structure.h"
#include "scratch_segment.h"

TEST(test_a_segment_has_the_mode_that_was_asked_for) {
    mode_t before = umask(0077);
    shmq_segment_plan plan = scratch_plan(false);
    plan.mode = 0660;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    umask(before);
    char path[128];
    struct stat file;
    scratch_path(path, sizeof(path));
    CHECK_EQUAL(stat(path, &file), 0);
    CHECK_EQUAL(file.st_mode & 07777, 0660);
    CHECK_EQUAL(file.st_size, SCRATCH_MEMORY);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_EXISTS);
    scratch_remove();
}

TEST(test_a_budget_out_of_range_makes_no_segment) {
    shmq_segment_plan plan = scratch_plan(false);
    plan.memory = SHMQ_MEMORY_MIN - 1;
    plan.room = 0;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_LIMIT);
    CHECK(!scratch_exists());
}

TEST(test_every_size_has_room_for_its_regions) {
    for (uint64_t memory = SHMQ_MEMORY_MIN; memory <= UINT64_C(40) << 20; memory += 5 * SHMQ_GRANULE_BYTES) {
        shmq_segment_plan plan = scratch_plan(false);
        plan.memory = memory + 1234;
        plan.room = memory;
        CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
        shmq_member *m = scratch_attach();
        CHECK_EQUAL(m->size, memory);
        CHECK(m->data + (uint64_t)m->granule_count * SHMQ_GRANULE_BYTES <= m->size);
        CHECK(m->granule_count > (m->size - m->data) / SHMQ_GRANULE_BYTES - 2);
        CHECK(m->data % SHMQ_GRANULE_BYTES == 0);
        CHECK(m->class_bitmap_bytes % SHMQ_APART == 0 && m->class_bitmap_bytes * 8 >= m->granule_count);
        shmq_member_free(m);
        scratch_remove();
    }
}

static void alter(uint64_t offset, const void *bytes, size_t count) {
    char path[128];
    scratch_path(path, sizeof(path));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQUAL(pwrite(fd, bytes, count, (off_t)offset), count);
    close(fd);
}

static void expect_refusal(shmq_status expected, const char *in_trail) {
    shmq_member *m = NULL;
    shmq_status status = shmq_member_attach(scratch_name, NULL, &m);
    if (status != expected || strstr(shmq_trail(), in_trail) == NULL) {
        fprintf(stderr, "found %s: %s\nexpected %s: ...%s...\n", shmq_status_name(status), shmq_trail(),
                shmq_status_name(expected), in_trail);
        exit(1);
    }
    CHECK(m == NULL);
}

/* One field wrong, all behind it right: the answer must be of that field. */
static void refuse_field(uint64_t offset, uint64_t value, size_t bytes, bool mend_crc, shmq_status status,
                         const char *field) {
    scratch_create(false);
    shmq_segment_shm header;
    char path[128];
    scratch_path(path, sizeof(path));
    alter(offset, &value, bytes);
    if (mend_crc) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_EQUAL(pread(fd, &header, sizeof(header), 0), sizeof(header));
        const unsigned char *at = (const unsigned char *)&header;
        uint32_t crc = shmq_crc32c(shmq_crc32c(0, at, 120), at + 128, 1280 - 128);
        CHECK_EQUAL(pwrite(fd, &crc, 4, offsetof(shmq_segment_shm, header_crc)), 4);
        close(fd);
    }
    expect_refusal(status, field);
    scratch_remove();
}

#define REFUSE(field, value, mend, status)                                                                         \
    refuse_field(offsetof(shmq_segment_shm, field), (value), sizeof(((shmq_segment_shm *)0)->field), mend, status, \
                 #field)

TEST(test_each_differing_field_is_named) {
    REFUSE(magic, 7, true, SHMQ_NO_MAGIC);
    REFUSE(version, 99, true, SHMQ_VERSION);
    REFUSE(byte_order, 0x04030201, true, SHMQ_VERSION);
    REFUSE(fingerprint, 1, true, SHMQ_VERSION);
    REFUSE(features_required, 1u << 20, true, SHMQ_VERSION);
    refuse_field(offsetof(shmq_segment_shm, patience_ns), 5, 8, false, SHMQ_CORRUPT, "header_crc");
    REFUSE(size, SCRATCH_MEMORY * 2, true, SHMQ_CORRUPT);
    REFUSE(granule_count, 0xffffffff, true, SHMQ_CORRUPT);
    REFUSE(process_rows, 2048, true, SHMQ_CORRUPT);
    REFUSE(queue_count, 1, true, SHMQ_CORRUPT);
    REFUSE(processes, UINT64_MAX - 100, true, SHMQ_CORRUPT);
    REFUSE(directory, 8192, true, SHMQ_CORRUPT);
    REFUSE(granules, 1, true, SHMQ_CORRUPT);
    REFUSE(class_bitmaps, SCRATCH_MEMORY, true, SHMQ_CORRUPT);
    REFUSE(slabs, 0, true, SHMQ_CORRUPT);
    REFUSE(data, SCRATCH_MEMORY - 1, true, SHMQ_CORRUPT);
    REFUSE(anonymous, 2, true, SHMQ_CORRUPT);
    REFUSE(memory, SHMQ_MEMORY_MIN - 1, true, SHMQ_CORRUPT);
    REFUSE(memory, SCRATCH_MEMORY + 1, true, SHMQ_CORRUPT);
}

TEST(test_a_path_without_end_is_refused) {
    scratch_create(false);
    char path[SHMQ_PATH_MAX];
    memset(path, 'x', sizeof(path));
    alter(offsetof(shmq_segment_shm, path), path, sizeof(path));
    expect_refusal(SHMQ_CORRUPT, "header_crc");
    scratch_remove();
}

TEST(test_a_truncated_segment_is_refused) {
    static const off_t sizes[] = {
        0, 1, 4096, 8191, 8192, 65536, (off_t)SCRATCH_MEMORY - 1, (off_t)SCRATCH_MEMORY + 4096};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        scratch_create(false);
        char path[128];
        scratch_path(path, sizeof(path));
        CHECK_EQUAL(truncate(path, sizes[i]), 0);
        expect_refusal(SHMQ_CORRUPT, "size of the file");
        scratch_remove();
    }
}

TEST(test_what_is_no_file_of_ours_is_refused) {
    char path[128];
    scratch_plan(false);
    scratch_path(path, sizeof(path));
    expect_refusal(SHMQ_GONE, "does not exist");
    CHECK_EQUAL(symlink("/dev/zero", path), 0);
    expect_refusal(SHMQ_DENIED, "not a regular file");
    CHECK_EQUAL(unlink(path), 0);
    CHECK_EQUAL(mkfifo(path, 0600), 0);
    expect_refusal(SHMQ_DENIED, "not a regular file");
    CHECK_EQUAL(unlink(path), 0);
    scratch_create(false);
    scratch_path(path, sizeof(path));
    CHECK_EQUAL(chmod(path, 0666), 0);
    expect_refusal(SHMQ_DENIED, "everybody");
    if (geteuid() == 0) {
        CHECK_EQUAL(chmod(path, 0600), 0);
        CHECK_EQUAL(chown(path, 12345, 12345), 0);
        expect_refusal(SHMQ_DENIED, "12345");
    }
    scratch_remove();
}

TEST(test_members_have_rows_of_their_own) {
    scratch_create(false);
    shmq_member *a = scratch_attach(), *b = scratch_attach();
    CHECK(a->row != b->row);
    CHECK_EQUAL(shmq_members_live(a), 2);
    CHECK(!shmq_process_dead(a, b->row) && !shmq_process_dead(a, a->row) && !shmq_process_dead(a, 1000));
    CHECK_EQUAL(b->process->pid, getpid());
    CHECK(b->process->start_time != 0 && b->process->pid_namespace != 0);
    uint32_t row = b->row, generation = b->row_generation;
    shmq_member_free(b);
    CHECK_EQUAL(shmq_members_live(a), 1);
    CHECK(!shmq_process_dead(a, row));
    b = scratch_attach();
    CHECK_EQUAL(b->row, row);
    CHECK_EQUAL(b->row_generation, generation + 1);
    scratch_kill(b);
    CHECK(shmq_process_dead(a, row));
    CHECK_EQUAL(shmq_members_live(a), 1);
    shmq_member *c = scratch_attach();
    CHECK(c->row != row); /* nobody has settled the dead one's affairs yet */
    shmq_member_free(c);
    shmq_member_free(a);
    shmq_member_free(b);
    scratch_remove();
}

TEST(test_counters_survive_their_process_and_go_on) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    shmq_counters_shm *counters;
    CHECK(shmq_counters_at(m, m->row, 130) == NULL);
    CHECK_EQUAL(shmq_counters_of(m, 130, &counters), SHMQ_OK);
    shmq_add_relaxed(&counters->put, 5);
    shmq_store_seq(&counters->attached, 9);
    uint32_t row = m->row;
    shmq_member_free(m);
    m = scratch_attach();
    CHECK_EQUAL(m->row, row);
    CHECK_EQUAL(shmq_counters_of(m, 130, &counters), SHMQ_OK);
    CHECK_EQUAL(shmq_load_relaxed(&counters->put), 5);
    CHECK_EQUAL(shmq_load_relaxed(&counters->attached), 0);
    CHECK(shmq_counters_at(m, SHMQ_PROCESS_ROWS, 130) == NULL && shmq_counters_at(m, row, SHMQ_QUEUES) == NULL);
    m->process->pins = m->size - 1; /* hostile */
    CHECK(shmq_counters_at(m, row, 130) == NULL);
    shmq_member_free(m);
    scratch_remove();
}

TEST(test_ids_are_never_handed_out_twice) {
    scratch_create(false);
    shmq_member *a = scratch_attach(), *b = scratch_attach();
    uint64_t last = 0;
    for (int i = 0; i < 140000; i++) {
        uint64_t id = shmq_new_id(a);
        CHECK(id > last);
        last = id;
    }
    CHECK(shmq_new_id(b) > last || shmq_new_id(b) / 65536 != shmq_new_id(a) / 65536);
    shmq_member_free(a);
    shmq_member_free(b);
    scratch_remove();
}

static void child_of(shmq_member *m, uint32_t parents_row, int depth) {
    CHECK(shmq_member_forked(m));
    CHECK_EQUAL(m->lock_fd, -1);
    uint64_t serial = m->serial;
    CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
    CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
    CHECK(!shmq_member_forked(m));
    CHECK_EQUAL(m->serial, serial + 1);
    CHECK(m->row != parents_row);
    CHECK_EQUAL(m->process->pid, getpid());
    CHECK(!shmq_process_dead(m, parents_row));
    if (depth > 0) {
        uint32_t row = m->row;
        pid_t grandchild = fork();
        if (grandchild == 0) {
            child_of(m, row, depth - 1);
            exit(0);
        }
        scratch_wait(grandchild);
    }
    shmq_member_free(m);
}

TEST(test_a_forked_child_becomes_a_member_of_its_own) {
    scratch_create(false);
    shmq_member *m = scratch_attach();
    pid_t child = fork();
    if (child == 0) {
        child_of(m, m->row, 2);
        exit(0);
    }
    scratch_wait(child);
    CHECK(!shmq_member_forked(m));
    CHECK_EQUAL(shmq_members_live(m), 1);
    shmq_member_free(m);
    scratch_remove();
}

/* The child never calls the library: it must neither keep its parent alive nor take its claim away. */
TEST(test_an_idle_child_does_not_keep_its_dead_parent_alive) {
    scratch_create(false);
    shmq_member *watcher = scratch_attach();
    int up[2], down[2];
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        shmq_member *m = scratch_attach();
        pid_t idle = fork();
        if (idle == 0) {
            close(down[1]);
            char byte;
            CHECK(write(up[1], "i", 1) == 1);
            CHECK(read(down[0], &byte, 1) == 0); /* until the test closes its end */
            _exit(0);
        }
        CHECK(write(up[1], &m->row, sizeof(m->row)) == sizeof(m->row));
        pause();
    }
    char first[5];
    for (size_t got = 0; got < sizeof(first);) {
        ssize_t n = read(up[0], first + got, sizeof(first) - got);
        CHECK(n > 0);
        got += (size_t)n;
    }
    uint32_t row;
    memcpy(&row, first[0] == 'i' ? first + 1 : first, sizeof(row));
    CHECK(!shmq_process_dead(watcher, row));
    CHECK_EQUAL(kill(parent, 9), 0);
    CHECK(waitpid(parent, NULL, 0) == parent);
    CHECK(shmq_process_dead(watcher, row));
    close(down[1]);
    close(down[0]);
    shmq_member_free(watcher);
    scratch_remove();
}

TEST(test_the_last_member_takes_an_anonymous_segment_along) {
    scratch_create(true);
    shmq_member *a = scratch_attach(), *b = scratch_attach();
    shmq_member_free(a);
    CHECK(scratch_exists());
    shmq_member_free(b);
    CHECK(!scratch_exists());
    scratch_create(true);
    a = scratch_attach();
    b = scratch_attach();
    scratch_kill(a);
    CHECK_EQUAL(shmq_member_leave(b, false), SHMQ_OK);
    CHECK_EQUAL(shmq_member_leave(b, true), SHMQ_OK);
    CHECK(!scratch_exists());
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_CLOSED);
    shmq_member_free(a);
    shmq_member_free(b);
}

TEST(test_an_unlinked_anonymous_segment_takes_no_new_member) {
    scratch_create(true);
    shmq_member *m = scratch_attach();
    pid_t child = fork();
    if (child == 0) {
        char path[128];
        scratch_path(path, sizeof(path));
        CHECK_EQUAL(unlink(path), 0);
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_GONE);
        CHECK(shmq_member_forked(m));
        shmq_member_free(m);
        exit(0);
    }
    scratch_wait(child);
    shmq_member_free(m);
}

/* A segment of this directory, and what asks for it. */
static void create_in(const char *directory, shmq_home *home) {
    shmq_segment_plan plan = scratch_plan(false);
    struct stat found;
    CHECK(stat(directory, &found) == 0);
    plan.directory_device = found.st_dev;
    plan.directory_inode = found.st_ino;
    memset(plan.directory_uuid, 7, sizeof(plan.directory_uuid));
    memcpy(home->uuid, plan.directory_uuid, sizeof(home->uuid));
    home->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
}

TEST(test_a_deleted_directory_is_noticed_by_all) {
    char directory[] = "/tmp/shmq-ctest-XXXXXX";
    CHECK(mkdtemp(directory) != NULL);
    shmq_home home;
    create_in(directory, &home);
    shmq_member *a = NULL, *b = scratch_attach();
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &a), SHMQ_OK);
    CHECK(!shmq_member_gone(a) && !shmq_member_gone(b));
    CHECK_EQUAL(rmdir(directory), 0);
    CHECK(!shmq_member_gone(b)); /* it has no descriptor to see it by */
    CHECK(shmq_member_gone(a));
    CHECK(shmq_member_gone(b));
    close(home.dir_fd);
    shmq_member_free(a);
    CHECK(scratch_exists());
    shmq_member_free(b);
    CHECK(!scratch_exists());
}

/* Shows G8. */
TEST(test_a_segment_is_joined_and_removed_only_for_the_directory_that_it_names) {
    char ours[] = "/tmp/shmq-ctest-XXXXXX", other[] = "/tmp/shmq-ctest-XXXXXX";
    CHECK(mkdtemp(ours) != NULL && mkdtemp(other) != NULL);
    shmq_home home;
    create_in(ours, &home);
    shmq_home elsewhere = home, stranger = home, nowhere = {.dir_fd = -1};
    elsewhere.dir_fd = open(other, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stranger.uuid[15] ^= 1;
    shmq_member *m = NULL;
    const shmq_home *wrong[] = {&elsewhere, &stranger, &nowhere};
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(shmq_member_attach(scratch_name, wrong[i], &m), SHMQ_FOREIGN);
        CHECK_EQUAL(shmq_observer_open(scratch_name, wrong[i], &m), SHMQ_FOREIGN);
    }
    CHECK_EQUAL(shmq_segment_remove(scratch_name, &elsewhere, false), SHMQ_FOREIGN);
    CHECK_EQUAL(shmq_segment_remove(scratch_name, &stranger, false), SHMQ_FOREIGN);
    /* The directory and the segment must allow the same. */
    CHECK(chmod(ours, 0770) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_DENIED);
    char path[300];
    snprintf(path, sizeof path, "/dev/shm/%s", scratch_name);
    CHECK(chmod(path, 0660) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_OK);
    shmq_member_free(m);
    if (geteuid() == 0) { /* another group's, or another user's */
        CHECK(chown(path, 0, 4711) == 0);
        CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_DENIED);
        CHECK(chown(path, 4711, 0) == 0 && chmod(path, 0600) == 0 && chmod(ours, 0700) == 0);
        CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_DENIED);
        CHECK(chown(path, 0, 0) == 0 && chmod(path, 0660) == 0);
    }
    CHECK(chmod(ours, 0700) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_DENIED);
    CHECK(chmod(path, 0600) == 0);
    CHECK_EQUAL(shmq_member_attach(scratch_name, NULL, &m), SHMQ_OK); /* who asks for no directory */
    shmq_member_free(m);
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_OK);
    CHECK_EQUAL(shmq_segment_remove(scratch_name, &home, false), SHMQ_IN_USE);
    shmq_member_free(m);
    CHECK(scratch_exists());
    CHECK_EQUAL(shmq_segment_remove(scratch_name, &home, false), SHMQ_OK);
    CHECK(!scratch_exists());
    CHECK_EQUAL(shmq_segment_remove(scratch_name, &home, false), SHMQ_GONE);
    close(home.dir_fd);
    close(elsewhere.dir_fd);
    CHECK(rmdir(ours) == 0 && rmdir(other) == 0);
}

TEST(test_a_deleted_segment_is_gone_for_its_members_whose_memory_stays) {
    scratch_create(false);
    shmq_member *a = scratch_attach(), *b = scratch_attach();
    CHECK_EQUAL(shmq_member_delete(a, false), SHMQ_IN_USE);
    CHECK(scratch_exists() && !shmq_member_gone(a) && !shmq_member_gone(b));
    CHECK_EQUAL(shmq_member_delete(a, true), SHMQ_OK);
    CHECK(!scratch_exists());
    CHECK(shmq_member_gone(a) && shmq_member_gone(b));
    CHECK_EQUAL(shmq_member_delete(b, true), SHMQ_OK); /* a second time: nothing to do */
    /* One that died between the two steps of it. */
    shmq_store_seq(&b->header->state, SHMQ_SEGMENT_LIVE);
    CHECK(shmq_member_gone(b));
    CHECK_EQUAL(shmq_load_seq(&a->header->state), SHMQ_SEGMENT_GONE);
    shmq_member_free(a);
    shmq_member_free(b);
    scratch_create(false);
    a = scratch_attach();
    CHECK_EQUAL(shmq_member_delete(a, false), SHMQ_OK);
    CHECK(!scratch_exists());
    shmq_member_free(a);
}

TEST(test_a_segment_is_swept_only_without_members) {
    scratch_create(true);
    shmq_identity identity;
    CHECK_EQUAL(shmq_segment_inspect(scratch_name, &identity), SHMQ_OK);
    CHECK(!identity.has_members && identity.anonymous && identity.size == SCRATCH_MEMORY && identity.uuid[2] == 3);
    shmq_member *m = scratch_attach();
    CHECK_EQUAL(shmq_segment_inspect(scratch_name, &identity), SHMQ_OK);
    CHECK(identity.has_members);
    bool removed = true;
    CHECK_EQUAL(shmq_segment_sweep(scratch_name, &removed), SHMQ_OK);
    CHECK(!removed && scratch_exists());
    scratch_kill(m);
    /* Somebody who holds the structure lock is about to become a member. */
    shmq_member *other = scratch_attach();
    CHECK_EQUAL(shmq_structure_lock(other), SHMQ_OK);
    CHECK_EQUAL(shmq_segment_sweep(scratch_name, &removed), SHMQ_OK);
    CHECK(!removed);
    shmq_structure_unlock(other);
    scratch_kill(other);
    CHECK_EQUAL(shmq_segment_sweep(scratch_name, &removed), SHMQ_OK);
    CHECK(removed && !scratch_exists());
    CHECK_EQUAL(shmq_segment_sweep(scratch_name, &removed), SHMQ_GONE);
    shmq_member_free(m);
    shmq_member_free(other);
}

TEST(test_a_segment_with_a_name_that_cannot_be_is_not_made) {
    static char longest[SHMQ_PATH_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    for (int way = 0; way < 3; way++) {
        shmq_segment_plan plan = scratch_plan(false);
        plan.name = way == 0 ? longest : way == 1 ? "a/b" : plan.name;
        plan.path = way == 2 ? longest : plan.path;
        CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_LIMIT);
    }
    CHECK(!scratch_exists());
}

int main(void) { return run_tests(); }
