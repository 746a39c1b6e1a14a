/* Descriptors that were closed beneath a membership, and whose numbers are other files' by now. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <signal.h>

#include "scratch_queue.h"

static shmq_member *m;

static void begin(void) {
    scratch_create(false);
    m = scratch_attach();
}

static void end(void) {
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    scratch_detach(m);
    scratch_remove();
}

/* The file of a stranger, which gets this number. */
static int stranger(int number) {
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    CHECK(fd >= 0);
    CHECK_EQUAL(dup2(fd, number), number);
    close(fd);
    return number;
}

static uint64_t size_of(int fd) {
    struct stat file;
    CHECK_EQUAL(fstat(fd, &file), 0);
    return (uint64_t)file.st_size;
}

static void nap(void) {
    struct timespec moment = {.tv_nsec = 1000000};
    nanosleep(&moment, NULL);
}

typedef struct child {
    pid_t pid;
    int told; /* the parent reads what the child says */
    uint32_t row;
} child;

static uint32_t hear(const child *c) {
    uint32_t word = UINT32_MAX;
    CHECK_EQUAL(read(c->told, &word, sizeof word), sizeof word);
    return word;
}

static void say(int to, uint32_t word) { CHECK_EQUAL(write(to, &word, sizeof word), sizeof word); }

/* A member that loses its lock and runs on: it says its row, then how its next call that may not go on has ended. */
static child lockless(void) {
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    child c = {.told = ends[0], .pid = fork()};
    CHECK(c.pid >= 0);
    if (c.pid == 0) {
        shmq_member *mine = scratch_attach();
        close(mine->lock_fd);
        say(ends[1], mine->row);
        while (shmq_member_usable(mine) == SHMQ_OK) {
            nap();
        }
        say(ends[1], (uint32_t)shmq_member_usable(mine));
        for (;;) {
            pause();
        }
    }
    close(ends[1]);
    c.row = hear(&c);
    return c;
}

static void kill_child(const child *c) {
    CHECK_EQUAL(kill(c->pid, SIGKILL), 0);
    CHECK_EQUAL(waitpid(c->pid, NULL, 0), c->pid);
    close(c->told);
}

static uint32_t state_of(uint32_t row) { return shmq_row_state(shmq_load_seq(&m->rows[row].word)); }

static void await_death(uint32_t row) {
    while (!shmq_process_dead(m, row)) {
        nap();
    }
}

/* Nobody may touch what is its own before it can have found out. Shows G1, G2. */
TEST(test_a_process_that_runs_without_its_lock_has_the_patience_to_find_out) {
    begin();
    child c = lockless();
    uint64_t since = shmq_now_ns();
    CHECK_EQUAL(shmq_process_life(m, c.row), SHMQ_LOCKLESS);
    CHECK_EQUAL(state_of(c.row), SHMQ_ROW_LIVE); /* a question changes nothing */
    shmq_lockless_begin(m, c.row);
    CHECK_EQUAL(state_of(c.row), SHMQ_ROW_REAPING);
    CHECK_EQUAL(hear(&c), SHMQ_MEMBERSHIP_LOST);
    await_death(c.row);
    CHECK(shmq_now_ns() - since >= m->patience_ns);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    CHECK_EQUAL(state_of(c.row), SHMQ_ROW_FREE);
    kill_child(&c);
    end();
}

TEST(test_of_several_such_processes_each_has_its_turn) {
    begin();
    child some[] = {lockless(), lockless(), lockless()};
    uint32_t reaped, all = 0;
    while (all < 3) {
        CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
        all += reaped;
        nap();
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(hear(&some[i]), SHMQ_MEMBERSHIP_LOST);
        CHECK_EQUAL(state_of(some[i].row), SHMQ_ROW_FREE);
        kill_child(&some[i]);
    }
    end();
}

/* Its memory is gone before its lock: no patience for the dead. Shows G4. */
TEST(test_a_killed_process_is_dead_at_once) {
    scratch_create_patient();
    m = scratch_attach();
    child c = lockless();
    uint64_t since = shmq_now_ns();
    CHECK(!shmq_process_dead(m, c.row));
    CHECK_EQUAL(kill(c.pid, SIGKILL), 0);
    siginfo_t info;
    CHECK_EQUAL(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
    CHECK(shmq_process_dead(m, c.row)); /* a zombie */
    kill_child(&c);
    CHECK(shmq_process_dead(m, c.row));
    CHECK(shmq_now_ns() - since < m->patience_ns);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    end();
}

/* Shows G2. */
TEST(test_a_stranger_s_file_proves_no_death_and_gets_no_memory) {
    begin();
    shmq_member *other = scratch_attach();
    int was = stranger(m->map_fd);
    CHECK_EQUAL(shmq_process_life(m, other->row), SHMQ_ALIVE);
    CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
    uint64_t run;
    CHECK_EQUAL(shmq_run_take(m, 40, SHMQ_GRANULE_RING, &run), SHMQ_OK); /* by a descriptor that it has opened anew */
    shmq_run_give(m, run);
    shmq_structure_unlock(m);
    CHECK(m->map_fd != was);
    CHECK_EQUAL(size_of(was), 0);
    scratch_detach(other);
    end();
    CHECK_EQUAL(size_of(was), 0); /* and it is still open */
    close(was);
}

TEST(test_a_stranger_s_file_is_not_locked) {
    begin();
    shmq_member *other = scratch_attach();
    uint32_t row = other->row;
    int was = stranger(other->lock_fd);
    CHECK_EQUAL(shmq_structure_lock(other), SHMQ_MEMBERSHIP_LOST);
    CHECK_EQUAL(shmq_member_usable(other), SHMQ_MEMBERSHIP_LOST);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_EQUAL(fcntl(was, F_OFD_GETLK, &all), 0);
    CHECK_EQUAL(all.l_type, F_UNLCK);
    CHECK_EQUAL(shmq_member_leave(other, true), SHMQ_OK);
    CHECK(state_of(row) != SHMQ_ROW_FREE); /* it is the reaper's */
    shmq_member_free(other);
    CHECK_EQUAL(size_of(was), 0);
    close(was);
    uint32_t reaped = 0;
    while (reaped == 0) { /* this process runs: it gets the patience */
        CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
        nap();
    }
    end();
}

TEST(test_a_number_that_another_membership_has_now_is_left_to_it) {
    begin();
    shmq_member *other = scratch_attach();
    int lock = other->lock_fd, map = other->map_fd;
    close(lock);
    close(map);
    shmq_member *next = scratch_attach(); /* with these numbers */
    CHECK((next->lock_fd == lock || next->lock_fd == map) && (next->map_fd == lock || next->map_fd == map));
    CHECK_EQUAL(shmq_structure_lock(other), SHMQ_MEMBERSHIP_LOST);
    scratch_detach(other);
    CHECK_EQUAL(shmq_structure_lock(next), SHMQ_OK);
    shmq_structure_unlock(next);
    scratch_detach(next);
    uint32_t reaped = 0;
    while (reaped == 0) {
        CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
        nap();
    }
    end();
}

/* As many as there are: no descriptor is left. Answers how many it has taken. */
static uint32_t take_all_descriptors(int taken[64]) {
    struct rlimit limit;
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(next >= 0 && close(next) == 0);
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)next + 32;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint32_t count = 0;
    while (count < 64 && (taken[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        count++;
    }
    CHECK(count > 0 && count < 64 && errno == EMFILE);
    return count;
}

static void give_descriptors(const int *taken, uint32_t count) {
    while (count-- > 0) {
        CHECK_EQUAL(close(taken[count]), 0);
    }
}

/* It may close some, and try again. */
TEST(test_a_child_without_a_descriptor_left_is_told_and_joins_later) {
    begin();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int taken[64];
        uint32_t count = take_all_descriptors(taken);
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OS);
        CHECK(shmq_trail_errno() == EMFILE && strstr(shmq_trail(), scratch_name) != NULL);
        CHECK(m->lock_fd < 0 && shmq_member_forked(m));
        CHECK_EQUAL(close(taken[--count]), 0);
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK); /* one is enough */
        CHECK(m->lock_fd >= 0 && !shmq_member_forked(m));
        give_descriptors(taken, count);
        CHECK_EQUAL(shmq_structure_lock(m), SHMQ_OK);
        shmq_structure_unlock(m);
        CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
        exit(0);
    }
    scratch_wait(pid);
    end();
}

/* Neither a descriptor nor the name leads to the segment: whatever has its name now is another file. */
TEST(test_a_child_that_finds_no_way_to_the_segment_is_told) {
    for (int way = 0; way < 3; way++) {
        begin();
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            char path[128];
            scratch_path(path, sizeof path);
            CHECK_EQUAL(close(m->map_fd), 0);
            if (way == 0) {
                CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK); /* by its name */
                CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
                exit(0);
            }
            CHECK_EQUAL(unlink(path), 0);
            if (way == 2) {
                int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
                CHECK(fd >= 0 && close(fd) == 0);
            }
            CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_MEMBERSHIP_LOST);
            CHECK(strstr(shmq_trail(), "cannot be opened again") != NULL);
            CHECK(m->lock_fd < 0);
            exit(0);
        }
        scratch_wait(pid);
        end();
    }
}

TEST(test_without_a_descriptor_left_nobody_is_taken_for_dead) {
    begin();
    shmq_member *other = scratch_attach();
    pid_t pid = fork(); /* which has limits of its own */
    CHECK(pid >= 0);
    if (pid == 0) {
        int taken[64];
        CHECK_EQUAL(shmq_member_after_fork(m), SHMQ_OK);
        uint32_t count = take_all_descriptors(taken);
        int was = m->map_fd;
        CHECK_EQUAL(dup2(taken[0], was), was); /* a stranger's file has its number now */
        CHECK_EQUAL(shmq_segment_fd(m), -1);
        CHECK(!shmq_process_dead(m, other->row));
        give_descriptors(taken, count);
        CHECK(shmq_segment_fd(m) >= 0);
        CHECK_EQUAL(shmq_process_life(m, other->row), SHMQ_ALIVE);
        CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
        exit(0);
    }
    scratch_wait(pid);
    scratch_detach(other);
    end();
}

int main(void) { return run_tests(); }
