/* How each call of a queue begins, goes on between pieces of a wait, and fails. Options, codecs and errors are Python methods
 * of the subclass, called from here by name. */
#include "py_queue.h"

PyTypeObject *queue_type;

/* Asked after each part of a call in which Python ran. Another thread may have closed the broker meanwhile, and given
 * the row back in whose name this call would write. */
static bool is_usable(py_queue *self) {
    shmq_status status = shmq_member_usable(self->q->m);
    if (SHMQ_UNLIKELY(status != SHMQ_OK)) {
        queue_raise(self, status);
    }
    return status == SHMQ_OK;
}

/* Bound by this process. False with an exception set. */
static bool is_bound(py_queue *self) {
    if (SHMQ_UNLIKELY(self->q == NULL)) {
        PyObject *bound = PyObject_CallMethod((PyObject *)self, "_attach", NULL); /* unpickled or closed */
        Py_XDECREF(bound);
        if (bound == NULL) {
            return false;
        }
        if (self->q == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "_attach() did not bind the queue");
            return false;
        }
    }
    shmq_member *m = self->q->m;
    if (SHMQ_LIKELY(!shmq_member_forked(m) && self->q->serial == m->serial)) {
        return true;
    }
    shmq_status status = shmq_member_is_closed(m) ? shmq_member_refused(m) : shmq_member_after_fork(m);
    if (status == SHMQ_OK) {
        status = shmq_queue_rebind(self->q);
    }
    if (status != SHMQ_OK) {
        queue_raise(self, status);
    }
    return status == SHMQ_OK;
}

bool queue_ready(py_queue *self) { return is_bound(self) && is_usable(self); }

static bool do_upkeep(py_queue *self) {
    if (SHMQ_LIKELY(!shmq_is_upcall_due(self->q->m, SHMQ_ANY_UPCALL))) {
        return true;
    }
    PyObject *done = PyObject_CallMethod((PyObject *)self, "_do_upkeep", NULL);
    Py_XDECREF(done);
    return done != NULL && is_usable(self);
}

/* While a put waits: perhaps only this process can log that the queue is full of old messages. */
static bool tell_alerts(py_queue *self) {
    if (!shmq_is_upcall_due(self->q->m, SHMQ_UPCALL_ALERTS)) {
        return true;
    }
    PyObject *told = PyObject_CallMethod((PyObject *)self, "_tell_alerts", NULL);
    Py_XDECREF(told);
    return told != NULL;
}

bool queue_begins(py_queue *self) { return is_bound(self) && do_upkeep(self); }

bool queue_goes_on(py_queue *self) { return PyErr_CheckSignals() == 0 && is_usable(self) && do_upkeep(self); }

void room_wait_begins(room_wait *w, uint64_t until_ns) {
    w->since_ns = shmq_now_ns();
    w->endless = until_ns == SHMQ_FOR_EVER;
}

bool room_wait_goes_on(py_queue *self, room_wait *w, shmq_status lacking) {
    if (PyErr_CheckSignals() < 0 || !tell_alerts(self)) {
        return false;
    }
    if (!w->endless || w->told || lacking == SHMQ_OK) {
        return is_usable(self);
    }
    PyObject *told = PyObject_CallMethod((PyObject *)self, "_waits_for_room", "sd", shmq_status_name(lacking),
                                         (double)(shmq_now_ns() - w->since_ns) / 1e9);
    w->told = told == Py_True;
    Py_XDECREF(told);
    return told != NULL && is_usable(self);
}

PyObject *queue_raise(py_queue *self, shmq_status status) {
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *error = PyObject_CallMethod((PyObject *)self, "_failure", "ssi", shmq_status_name(status), shmq_trail(),
                                          shmq_trail_errno());
    shmq_trail_clear();
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}
