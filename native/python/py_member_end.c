/* How a membership ends: a close waits for calls under way and for views. */
#include "py_shmq.h"

#include <time.h>

/* Counts from before a fork are of the parent's calls and views. */
static void count_anew(shmq_py_member *self) {
    if (self->serial != self->member->serial) {
        self->serial = self->member->serial;
        self->calls = self->views = 0;
    }
}

void shmq_py_enter(shmq_py_member *self) {
    count_anew(self);
    self->calls += 1;
}

void shmq_py_leave(shmq_py_member *self) { self->calls -= self->calls != 0; }

void shmq_py_view_added(shmq_py_member *self) {
    count_anew(self);
    self->views += 1;
}

void shmq_py_member_give_back(shmq_py_member *self) {
    shmq_member *m = self->member;
    if (shmq_member_is_closed(m) && !shmq_member_is_closing(m) && self->calls == 0 && self->views == 0) {
        shmq_member_give_back(m); /* with the GIL: no call can begin in between */
    }
}

void shmq_py_view_gone(shmq_py_member *self) {
    self->views -= self->views != 0;
    if (self->views == 0 && self->kept) {
        (void)shmq_member_leave(self->member, false); /* the last view of a closed member is gone */
        shmq_py_member_give_back(self);
    }
}

static void nap(void) {
    struct timespec moment = {.tv_nsec = (long)SHMQ_NAP_NS};
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS
}

/* Another thread ends the membership, or has. A thread that closes as well returns after that one: else the end of the
 * process would cut that one off. In a child of a fork no thread does it. */
static void wait_for_other_closer(const shmq_py_member *self) {
    while (shmq_member_is_closing(self->member) && !self->kept && !shmq_member_forked(self->member)) {
        nap();
    }
}

shmq_status shmq_py_member_end(shmq_py_member *self) {
    shmq_member *m = self->member;
    if (!shmq_member_close_begin(m)) {
        wait_for_other_closer(self);
        return shmq_member_is_lost(m) ? shmq_member_leave(m, false) : SHMQ_OK;
    }
    Py_BEGIN_ALLOW_THREADS
    shmq_member_await_rejoin(m);
    Py_END_ALLOW_THREADS
    if (shmq_member_forked(m) || m->process == NULL) {
        return shmq_member_leave(m, false);
    }
    count_anew(self);
    while (self->calls != 0) {
        shmq_queue_wake_threads(m);
        nap();
    }
    if (shmq_member_is_in_place(m)) { /* else others reap it, or have */
        (void)shmq_sweep_own(m); /* with the GIL: no thread of this process takes anything meanwhile */
        shmq_queue_close_handles(m);
        self->kept = self->views != 0;
    }
    return self->kept ? SHMQ_OK : shmq_member_leave(m, false);
}
