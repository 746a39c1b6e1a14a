/* A row of a queue: what other processes see of a consumer. The last reference gives it back at the latest. So no
 * exception of a signal handler, wherever raised, leaves a row that nobody can give back. */
#include "py_queue.h"
#include "structmember.h"

#define TRIES 10 /* in a destructor no handler can run, so nothing could end a longer wait */

PyTypeObject *row_type;

typedef struct py_row {
    PyObject_HEAD py_queue *queue; /* strong */
    shmq_queue *q; /* the binding at open; NULL: given back */
    uint64_t serial; /* of the member: another one after a fork */
    unsigned int number;
    uint32_t holds; /* deliveries on the way to their outcome: slots name the row until then */
    bool leaving; /* to be given back with the last of them */
} py_row;

PyObject *row_new(py_queue *queue, uint32_t number) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(row_type, Py_tp_alloc);
    py_row *self = (py_row *)alloc(row_type, 0);
    if (self == NULL) {
        (void)shmq_row_close(queue->q, number);
        return NULL;
    }
    Py_INCREF((PyObject *)queue);
    self->queue = queue;
    self->q = queue->q;
    self->serial = queue->q->serial;
    self->number = number;
    pthread_mutex_lock(&self->q->m->handles_lock);
    self->q->refs++;
    pthread_mutex_unlock(&self->q->m->handles_lock);
    return (PyObject *)self;
}

/* The row is of this process, its broker is open, and its word is sound. */
static bool is_ours(const py_row *self) {
    shmq_member *m = self->q->m;
    return !shmq_member_is_closed(m) && !shmq_member_forked(m) && self->serial == m->serial &&
           shmq_row_at(self->q, self->number) != NULL;
}

static PyObject *row_closing(PyObject *o, PyObject *unused) {
    py_row *self = (py_row *)o;
    (void)unused;
    if (self->q != NULL && is_ours(self)) {
        shmq_row_closing(self->q, self->number);
        shmq_notify_all(self->q); /* threads of the consumer that wait on other rows look, too */
    }
    Py_RETURN_NONE;
}

/* Gives the row back, once, whichever thread comes. False: a signal came while another process kept the structure lock
 * for long, and nothing was done. After another failure the row ends with the queue or the process. */
static bool given_back(py_row *self) {
    shmq_queue *q = self->q;
    shmq_status status = SHMQ_OK;
    if (q == NULL) {
        return true;
    }
    if (is_ours(self)) {
        self->q = NULL; /* of two threads at once one does it */
        BEGIN_WAIT(self->queue)
        status = shmq_row_close(q, self->number);
        END_WAIT(self->queue)
        if (status == SHMQ_INTERRUPTED) {
            self->q = q;
            return false;
        }
        shmq_notify(q); /* passes on a wake that was meant for this row */
    }
    self->q = NULL;
    shmq_queue_unbind(q);
    return true;
}

uint32_t row_number(PyObject *o) { return ((py_row *)o)->number; }

void row_hold(PyObject *o) {
    Py_INCREF(o);
    ((py_row *)o)->holds++;
}

void row_let_go(PyObject *o) {
    py_row *self = (py_row *)o;
    self->holds--;
    if (self->leaving && self->holds == 0) {
        (void)given_back(self); /* or, after a signal, the destructor does it */
    }
    Py_DECREF(o);
}

static PyObject *row_close(PyObject *o, PyObject *unused) {
    py_row *self = (py_row *)o;
    (void)unused;
    self->leaving = true;
    while (self->holds == 0 && !given_back(self)) {
        if (PyErr_CheckSignals() < 0) {
            return NULL; /* the next close tries again, or the destructor */
        }
    }
    Py_RETURN_NONE;
}

static PyObject *row_keep(PyObject *o, PyObject *unused) {
    py_row *self = (py_row *)o;
    (void)unused;
    if (self->q != NULL) {
        shmq_queue_unbind(self->q);
        self->q = NULL;
    }
    Py_RETURN_NONE;
}

static void row_dealloc(PyObject *o) {
    py_row *self = (py_row *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (int tries = 0; tries < TRIES && !given_back(self); tries++) {
    }
    Py_CLEAR(self->queue);
    release(o);
    Py_DECREF(type);
}

static PyMethodDef row_methods[] = {
    {"closing", row_closing, METH_NOARGS, "Threads that wait there come back with Closed."},
    {"close", row_close, METH_NOARGS, "Given back, for others. Twice is fine."},
    {"keep", row_keep, METH_NOARGS, "A thread may sleep there: no other one gets the row before this process ends."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef row_members[] = {
    {"number", T_UINT, offsetof(py_row, number), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot row_slots[] = {
    {Py_tp_dealloc, (void *)row_dealloc},
    {Py_tp_methods, row_methods},
    {Py_tp_members, row_members},
    {Py_tp_doc, "A row of a queue, given back when this goes."},
    {0, NULL},
};
PyType_Spec row_spec = {
    .name = "shmq._native.Row",
    .basicsize = sizeof(py_row),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = row_slots,
};
