/* The steps of get and receive around their waits: interpreter lock, signal handlers, dead letters. */
#include "py_queue.h"

static void caller_leaves(void *self) {
    py_caller *c = self;
    shmq_py_enter(c->queue->owner);
    c->state = PyEval_SaveThread();
}

static void caller_enters(void *self) {
    py_caller *c = self;
    PyEval_RestoreThread(c->state);
    shmq_py_leave(c->queue->owner);
}

static bool caller_goes_on(void *self, bool offered) {
    py_caller *c = self;
    return offered ? PyErr_CheckSignals() == 0 : queue_goes_on(c->queue);
}

void caller_begins(py_caller *c, py_queue *queue) {
    c->queue = queue;
    c->c = (shmq_caller){.leave = caller_leaves, .enter = caller_enters, .goes_on = caller_goes_on, .self = c};
}

bool queue_dead_letter(py_queue *self, const shmq_delivery *d) {
    PyObject *delivery = delivery_new(self, d);
    PyObject *done = delivery != NULL ? PyObject_CallMethod((PyObject *)self, "_dead_letter", "O", delivery) : NULL;
    Py_XDECREF(delivery);
    Py_XDECREF(done);
    return done != NULL;
}

SHMQ_NOINLINE shmq_status queue_get_later(py_queue *self, shmq_getting *g, uint64_t until_ns, shmq_delivery *d) {
    py_caller caller;
    caller_begins(&caller, self);
    g->until_ns = until_ns;
    g->caller = &caller.c;
    shmq_status status = shmq_get_later(self->q, g, d);
    g->caller = NULL;
    return status;
}
