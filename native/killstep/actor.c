/* Processes that belong to a state. A dead one leaves only what it did to the segment; a holder lives, stopped as it
 * were; a sleeper sleeps in the kernel on its word, and tells when it was woken. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lifecycle/handle_bind.h"
#include "stage.h"
#include "virtual.h"

#define AWAKE_SECONDS 5

long __real_syscall(long number, ...);

static long futex(volatile uint32_t *word, int operation, uint32_t value, void *limit) {
    return __real_syscall(SYS_futex, (uint32_t *)(uintptr_t)word, operation, value, limit, NULL, 0);
}

void stage_join_as(act *a, const stage *s, uint8_t who, int pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    virtual_pid_set(pid);
    *a = s->survivor;
    a->who = who;
    a->held_count = 0;
    a->row = 0;
    shmq_status status;
    while ((status = shmq_member_after_fork(a->m)) == SHMQ_INTERRUPTED) {
    }
    for (unsigned i = 0; i < ACT_QUEUES && status == SHMQ_OK; i++) {
        status = a->q[i] != NULL ? shmq_queue_rebind(a->q[i]) : SHMQ_OK;
    }
    if (status != SHMQ_OK) {
        die("joining after a fork: %s %s", shmq_status_name(status), shmq_trail());
    }
}

_Noreturn static void sleep_for_ever(stage_actor *actor, board_actor *shared) {
    for (;;) {
        while (futex(&shared->arm, FUTEX_WAIT, shared->woken, NULL) != 0 && shared->arm == shared->woken) {
        }
        uint32_t seen = shmq_load_seq(actor->word);
        while (futex((volatile uint32_t *)actor->word, FUTEX_WAIT, seen, NULL) != 0 &&
               shmq_load_seq(actor->word) == seen) {
        }
        shared->woken = shared->arm;
        futex(&shared->woken, FUTEX_WAKE, 1, NULL);
    }
}

/* Which word an actor sleeps on, its part says. */
static shmq_a32 *word_of_actor;

void stage_actor_sleeps_on(shmq_a32 *word) { word_of_actor = word; }

void stage_actor_start(stage *s, actor_kind kind, void (*part)(act *), bool (*due)(act *)) {
    uint32_t index = s->actor_count++;
    stage_actor *actor = &s->actors[index];
    board_actor *shared = &the_board->actors[index];
    pid_t pid = fork();
    if (pid < 0) {
        die("fork");
    }
    if (pid == 0) {
        act a;
        stage_join_as(&a, s, WHO_ACTOR, 100 + (int)index);
        word_of_actor = NULL;
        part(&a);
        shared->row = a.m->row;
        shared->word = (uint64_t)(uintptr_t)word_of_actor; /* the same address here and in the driver: one mapping */
        shared->ready = 1;
        futex(&shared->ready, FUTEX_WAKE, 1, NULL);
        if (kind == ACTOR_DEAD) {
            _exit(0);
        }
        if (kind == ACTOR_SLEEPER) {
            actor->word = word_of_actor;
            sleep_for_ever(actor, shared);
        }
        for (;;) {
            pause();
        }
    }
    *actor = (stage_actor){.pid = pid, .kind = kind, .due = due};
    while (shared->ready == 0) {
        struct timespec limit = {.tv_nsec = 50000000};
        futex(&shared->ready, FUTEX_WAIT, 0, &limit);
        if (kill(pid, 0) != 0 || waitpid(pid, NULL, WNOHANG) == pid) {
            if (shared->ready == 0) {
                die("an actor of the state has failed");
            }
            return;
        }
    }
    actor->word = (shmq_a32 *)(uintptr_t)shared->word;
    if (kind == ACTOR_DEAD) {
        waitpid(pid, NULL, 0);
    }
}

void stage_mortals_kill(stage *s) {
    for (uint32_t i = 0; i < s->actor_count; i++) {
        if (s->actors[i].kind == ACTOR_MORTAL && s->actors[i].pid > 0) {
            kill(s->actors[i].pid, SIGKILL);
            waitpid(s->actors[i].pid, NULL, 0);
            s->actors[i].pid = 0;
        }
    }
}

/* Of a process that does nothing the lock is all that others see, besides the image. */
_Noreturn static void hold_row(const stage *s, uint32_t row, int tell) {
    char path[128];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof(path), "/dev/shm/%s", s->name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0 || write(tell, "", 1) != 1) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
}

void stage_mortals_revive(stage *s) {
    for (uint32_t i = 0; i < s->actor_count; i++) {
        int ends[2];
        char said;
        if (s->actors[i].kind != ACTOR_MORTAL || s->actors[i].pid != 0) {
            continue;
        }
        if (pipe(ends) != 0 || (s->actors[i].pid = fork()) < 0) {
            die("fork");
        }
        if (s->actors[i].pid == 0) {
            hold_row(s, the_board->actors[i].row, ends[1]);
        }
        close(ends[1]);
        if (read(ends[0], &said, 1) != 1) {
            die("an actor cannot come back");
        }
        close(ends[0]);
    }
}

/* How many sleep on this word: a requeue onto the word itself wakes nobody and counts them. */
static long sleepers_on(shmq_a32 *word) {
    return __real_syscall(SYS_futex, (uint32_t *)word, FUTEX_CMP_REQUEUE, 0, (void *)(uintptr_t)1000, (uint32_t *)word,
                          shmq_load_seq(word));
}

void stage_sleeper_lay_down(stage *s, uint32_t index) {
    stage_actor *actor = &s->actors[index];
    board_actor *shared = &the_board->actors[index];
    while (sleepers_on(actor->word) < 1) {
        if (shared->arm == shared->woken) {
            shared->arm += 1;
            futex(&shared->arm, FUTEX_WAKE, 1, NULL);
        }
        sched_yield();
    }
}

static double seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* One that is neither marked as woken nor asleep in the kernel is on its way. */
bool stage_sleepers_awake(stage *s, uint32_t count) {
    for (double end = seconds() + AWAKE_SECONDS; seconds() < end; sched_yield()) {
        uint32_t awake = 0;
        bool all_asleep = true;
        for (uint32_t i = 0; i < s->actor_count; i++) {
            const board_actor *shared = &the_board->actors[i];
            if (s->actors[i].kind == ACTOR_SLEEPER) {
                bool is_awake = shared->arm == shared->woken; /* once: it may be said between two looks */
                awake += is_awake;
                all_asleep = all_asleep && (is_awake || sleepers_on(s->actors[i].word) >= 1);
            }
        }
        if (awake >= count) {
            return true;
        }
        if (all_asleep) {
            return false;
        }
    }
    return false;
}

void stage_close(stage *s) {
    for (uint32_t i = 0; i < s->actor_count; i++) {
        if (s->actors[i].kind != ACTOR_DEAD && s->actors[i].pid > 0) {
            kill(s->actors[i].pid, SIGKILL);
            waitpid(s->actors[i].pid, NULL, 0);
        }
    }
    stage_unlink();
    shmq_member *m = s->survivor.m;
    m->handles = NULL; /* their memory goes with the driver; nobody is told */
    shmq_member_leave(m, true);
    shmq_member_free(m);
    free(s->reserved);
    free(s->hot);
    free(s->page_keys);
    own_memory_end(s->base, s->size);
    own_memory_end(s->origin, s->size);
}
