/* Directories of rows: which names are theirs, the mode that they have, what a killed process has left there, and what stays. */
#include <errno.h>
#include <sys/stat.h>

#include "flow/rows_directory.h"
#include "scratch_segment.h"

#define NOBODY 65534

static char top[40], all[64], parent[80], path[100];

static void begin(mode_t mode) {
    strcpy(top, "/tmp/shmq-rows-XXXXXX");
    CHECK(mkdtemp(top) != NULL);
    CHECK(chmod(top, mode) == 0);
    snprintf(all, sizeof all, "%s/disk", top);
    snprintf(parent, sizeof parent, "%s/segment", all);
    snprintf(path, sizeof path, "%s/3.1", parent);
}

static void end(void) {
    (void)rmdir(path);
    (void)rmdir(parent);
    (void)rmdir(all);
    CHECK(rmdir(top) == 0); /* nothing else is left */
}

static mode_t mode_of(const char *of) {
    struct stat found;
    CHECK(stat(of, &found) == 0);
    return found.st_mode & 0777;
}

static void make_file(const char *directory, const char *name, mode_t mode) {
    char file[200];
    snprintf(file, sizeof file, "%s/%s", directory, name);
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && fchmod(fd, mode) == 0 && close(fd) == 0);
}

static bool has(const char *directory, const char *name) {
    char file[200];
    snprintf(file, sizeof file, "%s/%s", directory, name);
    return access(file, F_OK) == 0;
}

static void remove_file(const char *directory, const char *name) {
    char file[200];
    snprintf(file, sizeof file, "%s/%s", directory, name);
    CHECK(unlink(file) == 0);
}

TEST(names_are_a_queue_s_only_as_they_are_written) {
    static const char *const theirs[] = {"3.1", "0.0", "4095.4294967295", "3.1.9"};
    static const char *const others[] = {"",     "3",       "3.",   "x.1",  "03.1",      "3.1x",
                                         "3.1.", "3.1.2.4", "3 .1", "+3.1", "unfinished"};
    unsigned index, incarnation;
    uint64_t place;
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        CHECK(shmq_rows_is_of_queue(theirs[i], &index, &incarnation));
    }
    CHECK(shmq_rows_is_of_queue("7.5.2", &index, &incarnation) && index == 7 && incarnation == 5);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK(!shmq_rows_is_of_queue(others[i], &index, &incarnation));
        CHECK(!shmq_rows_file_place(others[i], &place));
    }
    CHECK(shmq_rows_file_place("00000000000000ff", &place) && place == 255);
    CHECK(!shmq_rows_file_place("00000000000000FF", &place));
}

TEST(all_of_them_have_the_mode_of_the_broker_s_directory) {
    static const mode_t modes[] = {0700, 0770, 0750};
    mode_t mask = umask(077);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct stat as;
        begin(modes[i]);
        CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, true));
        CHECK_EQUAL(mode_of(all), modes[i]);
        CHECK_EQUAL(mode_of(parent), modes[i]);
        CHECK_EQUAL(mode_of(path), modes[i]);
        CHECK_EQUAL(as.st_mode & 0777, modes[i]);
        end();
    }
    umask(mask);
}

/* A process was killed before it gave a directory its mode. It is empty, and made anew; else it stays as it is. */
TEST(one_that_has_not_got_its_mode_is_made_anew_while_it_is_empty) {
    struct stat as;
    begin(0770);
    CHECK(mkdir(all, 0700) == 0 && mkdir(parent, 0700) == 0);
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, false)); /* by one that looks at no mode */
    CHECK_EQUAL(mode_of(parent), 0700);
    CHECK_EQUAL(mode_of(path), 0770);
    CHECK(rmdir(path) == 0 && mkdir(path, 0700) == 0);
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    CHECK_EQUAL(mode_of(all), 0700); /* it has others in it */
    CHECK_EQUAL(mode_of(path), 0770);
    CHECK(rmdir(path) == 0 && rmdir(parent) == 0);
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    CHECK_EQUAL(mode_of(all), 0770);
    end();
}

TEST(what_is_no_directory_stays_and_is_told) {
    struct stat as;
    begin(0700);
    make_file(top, "disk", 0600);
    CHECK(!shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    CHECK_EQUAL(errno, ENOTDIR);
    CHECK(has(top, "disk"));
    remove_file(top, "disk");
    CHECK(mkdir(all, 0700) == 0);
    make_file(all, "segment", 0600);
    CHECK(!shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    CHECK_EQUAL(errno, ENOTDIR);
    remove_file(all, "segment");
    CHECK(rmdir(all) == 0 && rmdir(top) == 0);
    CHECK(!shmq_rows_directory_make(AT_FDCWD, path, &as, true)); /* the broker is gone: it is not made again */
    CHECK(errno == ENOENT && access(top, F_OK) != 0);
    CHECK(mkdir(top, 0700) == 0);
    end();
}

/* Of this index. Those of other queues are in use, and what is named otherwise is another program's. */
TEST(the_next_queue_of_an_index_deletes_what_earlier_ones_have_left) {
    static const char *const left[] = {"3.1", "3.1.2", "3.4"}, *const others[] = {"4.1", "33.1", "3.x", "notes"};
    struct stat as;
    char one[200];
    begin(0700);
    CHECK(mkdir(all, 0700) == 0 && mkdir(parent, 0700) == 0);
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        snprintf(one, sizeof one, "%s/%s", parent, left[i]);
        CHECK(mkdir(one, 0700) == 0);
        make_file(one, "0000000000000400", 0600);
        make_file(one, SHMQ_ROWS_UNFINISHED, 0600);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(one, sizeof one, "%s/%s", parent, others[i]);
        CHECK(mkdir(one, 0700) == 0);
    }
    snprintf(path, sizeof path, "%s/3.7", parent);
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, false));
    CHECK(has(parent, "3.1"));
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        CHECK(!has(parent, left[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(one, sizeof one, "%s/%s", parent, others[i]);
        CHECK(rmdir(one) == 0);
    }
    end();
}

TEST(a_file_of_another_program_stays_with_its_directory) {
    struct stat as;
    begin(0700);
    CHECK(shmq_rows_directory_make(AT_FDCWD, path, &as, true));
    make_file(path, "0000000000000400", 0600);
    make_file(path, "notes", 0600);
    shmq_rows_directory_delete(AT_FDCWD, path);
    CHECK(!has(path, "0000000000000400") && has(path, "notes"));
    remove_file(path, "notes");
    shmq_rows_directory_delete(AT_FDCWD, path);
    CHECK(!has(parent, "3.1"));
    shmq_rows_directory_delete(AT_FDCWD, path); /* again: nothing is there */
    end();
}

TEST(a_private_directory_of_another_user_is_refused) {
    struct stat as;
    if (geteuid() == 0) { /* else nobody can make one */
        begin(0700);
        CHECK(mkdir(all, 0700) == 0 && chown(all, NOBODY, NOBODY) == 0);
        CHECK(!shmq_rows_directory_make_private(AT_FDCWD, path, &as, true));
        CHECK_EQUAL(errno, EEXIST);
        CHECK(!has(all, "segment"));
        end();
    }
}

/* As a user to whom modes mean something. */
TEST(a_file_that_another_user_s_process_has_begun_is_begun_anew) {
    struct stat as = {.st_mode = 0660, .st_gid = getegid()};
    bool root = geteuid() == 0;
    begin(0700);
    make_file(top, SHMQ_ROWS_UNFINISHED, 0);
    CHECK(!root || (chown(top, NOBODY, (gid_t)-1) == 0 && seteuid(NOBODY) == 0));
    int directory = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(directory >= 0);
    int fd = shmq_rows_file_begin(directory, &as);
    CHECK(fd >= 0);
    CHECK_EQUAL(write(fd, "x", 1), 1);
    struct stat found;
    CHECK(fstat(fd, &found) == 0 && (found.st_mode & 0777) == 0660 && close(fd) == 0);
    CHECK(unlinkat(directory, SHMQ_ROWS_UNFINISHED, 0) == 0);
    CHECK(chmod(top, 0500) == 0); /* neither it nor another one can be begun */
    CHECK_EQUAL(shmq_rows_file_begin(directory, &as), -1);
    CHECK_EQUAL(errno, EACCES);
    CHECK(chmod(top, 0700) == 0 && mkdirat(directory, SHMQ_ROWS_UNFINISHED, 0700) == 0);
    CHECK_EQUAL(shmq_rows_file_begin(directory, &as), -1);
    CHECK_EQUAL(errno, EISDIR);
    CHECK(unlinkat(directory, SHMQ_ROWS_UNFINISHED, AT_REMOVEDIR) == 0 && close(directory) == 0);
    CHECK(!root || seteuid(0) == 0);
    end();
}

int main(void) { return run_tests(); }
