/* The directory in which a process has rows: it is renamed, removed, made again, or its descriptor is another file's. */
#include <errno.h>

#include "flow/rows_base.h"
#include "flow_pair.h"

#define MANY UINT64_C(6000)

static char moved[40]; /* where the directory is then */

/* A broker of this directory, with one member. */
static void begin_at_home(void) {
    struct stat found;
    shmq_home home = {.uuid = {7}};
    scratch_spill_begin();
    snprintf(moved, sizeof moved, "%s.moved", scratch_broker);
    CHECK(stat(scratch_broker, &found) == 0);
    shmq_segment_plan plan = scratch_plan(false);
    plan.directory_device = found.st_dev;
    plan.directory_inode = found.st_ino;
    plan.directory_uuid[0] = 7;
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    home.dir_fd = open(scratch_broker, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(shmq_member_attach(scratch_name, &home, &m), SHMQ_OK);
    CHECK(close(home.dir_fd) == 0);
    CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
    q = scratch_flowing(m, "jobs", MEMORY);
}

static void begin_without_home(void) {
    scratch_spill_begin();
    shmq_segment_plan plan = scratch_plan(true);
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
    m = scratch_attach_flowing();
    q = scratch_flowing(m, "jobs", MEMORY);
}

static void end_alone(void) {
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    check_ring(q);
    shmq_queue_unbind(q);
    shmq_member_leave(m, true);
    shmq_member_free(m);
    scratch_remove();
    scratch_spill_end();
}

static const char *told(const char *path) {
    static char text[PATH_MAX];
    shmq_rows_base_text(m, path, text);
    return text;
}

/* Until the queue is full in memory. Answers how many were put. */
static uint64_t put_until_refused(shmq_status *status) {
    uint64_t put = 0;
    while (put < MANY && (*status = put_number(q, put)) == SHMQ_OK) {
        put++;
    }
    return put;
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

TEST(rows_of_a_directory_that_was_renamed_lie_in_it_and_errors_say_where) {
    char path[100];
    begin_at_home();
    CHECK(m->rows_fd < 0); /* the descriptor that the membership has is enough */
    CHECK(rename(scratch_broker, moved) == 0);
    put_numbers(q, 0, MANY);
    CHECK(shmq_flow_rows(q) > 1000);
    CHECK(!is_there(scratch_broker));
    snprintf(path, sizeof path, "%s/disk/segment/%u.%u", moved, q->index, q->incarnation);
    CHECK(is_there(path));
    CHECK(strcmp(told(shmq_rows_base_path(m)) + strlen(moved), "/disk/segment") == 0);
    CHECK(strncmp(told(shmq_rows_base_path(m)), moved, strlen(moved)) == 0);
    CHECK(shmq_disk_room(m) != UINT64_MAX);
    get_numbers(q, 0, MANY / 2);
    CHECK(rename(moved, scratch_broker) == 0);
    get_numbers(q, MANY / 2, MANY / 2);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end_alone();
}

/* It is gone with the broker: nobody makes it again, and another one at its path is another broker's. */
TEST(a_broker_s_directory_that_was_removed_is_not_found_again) {
    begin_at_home();
    put_numbers(q, 0, 100);
    CHECK(rmdir(scratch_broker) == 0 && mkdir(scratch_broker, 0700) == 0);
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OS);
    CHECK_EQUAL(shmq_rows_base(m), m->dir_fd);
    CHECK_EQUAL(shmq_flow_rows(q), 0);
    char disk[64];
    snprintf(disk, sizeof disk, "%s/disk", scratch_broker);
    CHECK(!is_there(disk));
    CHECK(shmq_member_gone(m));
    end_alone();
}

TEST(a_temporary_directory_that_is_made_again_has_rows_again) {
    begin_without_home();
    int fd = m->rows_fd;
    CHECK(fd >= 0 && shmq_rows_base(m) == fd);
    CHECK(rmdir(scratch_broker) == 0);
    shmq_status status;
    uint64_t put = put_until_refused(&status);
    CHECK(put < MANY);
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK(strstr(shmq_trail(), scratch_broker) != NULL);
    CHECK_EQUAL(shmq_rows_base(m), fd);
    CHECK(mkdir(scratch_broker, 0700) == 0);
    put_numbers(q, put, MANY - put);
    CHECK_EQUAL(m->rows_fd, fd); /* others may have read the number just now */
    CHECK(shmq_flow_rows(q) > 1000);
    CHECK(scratch_spill_files(false) > 0);
    CHECK(strcmp(told(shmq_rows_base_path(m)), scratch_spill) == 0);
    get_numbers(q, 0, MANY);
    end_alone();
}

/* A file at its path is no directory. */
TEST(a_temporary_directory_that_is_something_else_now_has_no_rows) {
    begin_without_home();
    CHECK(rmdir(scratch_broker) == 0);
    int file = open(scratch_broker, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && close(file) == 0);
    shmq_status status;
    uint64_t put = put_until_refused(&status);
    CHECK_EQUAL(status, SHMQ_OS);
    CHECK(unlink(scratch_broker) == 0 && mkdir(scratch_broker, 0700) == 0);
    put_numbers(q, put, MANY - put);
    get_numbers(q, 0, MANY);
    end_alone();
}

/* Its number leads to a stranger's directory, or to nothing: no row goes there, none is lost, and the error has the path as it was
 * called. */
TEST(a_stranger_s_directory_gets_no_rows) {
    for (int way = 0; way < 2; way++) {
        char strange[] = "/tmp/shmq-strange-XXXXXX";
        CHECK(mkdtemp(strange) != NULL);
        begin_without_home();
        int fd = m->rows_fd, kept = dup(fd), stranger = open(strange, O_PATH | O_DIRECTORY | O_CLOEXEC);
        CHECK(kept >= 0 && stranger >= 0);
        CHECK(way == 0 ? dup2(stranger, fd) == fd : close(fd) == 0);
        errno = 0;
        CHECK_EQUAL(shmq_rows_base(m), -1);
        CHECK_EQUAL(errno, EBADF);
        m->disk = SHMQ_DISK_SHARE;
        CHECK_EQUAL(shmq_disk_room(m), UINT64_MAX); /* nobody knows */
        m->disk = SCRATCH_DISK;
        shmq_status status;
        uint64_t put = put_until_refused(&status);
        CHECK_EQUAL(status, SHMQ_OS);
        CHECK(strstr(shmq_trail(), scratch_spill) != NULL);
        errno = EIO;
        CHECK(strcmp(told(shmq_rows_base_path(m)), scratch_spill) == 0);
        CHECK_EQUAL(errno, EIO); /* of the call that the text is about */
        CHECK(dup2(kept, fd) == fd && close(kept) == 0);
        put_numbers(q, put, MANY - put);
        get_numbers(q, 0, MANY);
        end_alone();
        CHECK(close(stranger) == 0);
        CHECK(rmdir(strange) == 0); /* it is empty */
    }
}

/* There is no directory that all of them lie below: they are found by the whole path. */
TEST(a_short_path_is_found_from_the_root) {
    begin_without_home();
    static const char *const paths[] = {"/one", "/one/two", "one", "one/two", "/no-such-directory/one/two"};
    for (uint32_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        CHECK_EQUAL(shmq_flow_into(m, paths[i]), SHMQ_OK);
        CHECK_EQUAL(m->spill_base, 0);
        CHECK_EQUAL(shmq_rows_base(m), AT_FDCWD);
        CHECK(strcmp(shmq_rows_base_path(m), paths[i]) == 0);
        CHECK(strcmp(told(shmq_rows_base_path(m)), paths[i]) == 0);
    }
    CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
    CHECK(shmq_rows_base(m) >= 0);
    CHECK(strcmp(shmq_rows_base_path(m), "disk/segment") == 0);
    end_alone();
}

int main(void) { return run_tests(); }
