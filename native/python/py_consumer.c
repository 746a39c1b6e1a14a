/* A consumer: the messages that it has lent, and how one comes from its queue. shmq.engine.consumer.consumer.Consumer
 * is built on it. */
#include "py_consumer.h"

#include <stdlib.h>

#include "structmember.h"

PyTypeObject *consumer_type;

shmq_status consumer_usable(const py_consumer *self) {
    shmq_member *m = self->q->m;
    if (shmq_member_forked(m) || self->serial != m->serial) {
        return SHMQ_SETTLED;
    }
    return shmq_member_usable(m);
}

bool consumer_has_credit(py_consumer *whole) {
    if (whole->prefetch == 0 || whole->lent + whole->takers < whole->prefetch) {
        return true;
    }
    if (shmq_member_is_closed(whole->q->m)) {
        return true; /* whoever takes hears that */
    }
    uint32_t ours = 0; /* messages that others took from it give their credit back */
    for (const py_message *m = whole->first; m != NULL; m = m->next) {
        ours += shmq_own_word(m->q, &m->d) != 0;
    }
    return ours + whole->takers < whole->prefetch;
}

int consumer_credit_came(py_consumer *whole) {
    if (!whole->starved && !whole->watched) {
        return 0;
    }
    PyObject *done = PyObject_CallMethod((PyObject *)whole, "_credit_came", NULL);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

/* ---- giving back ---- */

static int by_place(const void *one, const void *other) {
    const py_message *a = *(py_message *const *)one, *b = *(py_message *const *)other;
    if (a->q != b->q) {
        return (uintptr_t)a->q < (uintptr_t)b->q ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

bool messages_go_back(py_message **all, uint32_t count) {
    if (count == 0) {
        return true;
    }
    shmq_delivery **some = PyMem_Malloc((count + (size_t)1) * sizeof *some);
    if (some == NULL) {
        return false;
    }
    qsort(all, count, sizeof(py_message *), by_place);
    for (uint32_t i = 0; i < count; i++) {
        message_unlink(all[i]);
    }
    for (uint32_t i = 0; i < count;) {
        shmq_queue *q = all[i]->q;
        uint32_t of_one = 0;
        for (; i < count && all[i]->q == q; i++) {
            some[of_one++] = &all[i]->d;
        }
        shmq_release_all(q, some, of_one);
    }
    PyMem_Free(some);
    return true;
}

/* _give_back(loop): gives back all messages lent in this loop (0: in any). */
static PyObject *consumer_give_back(PyObject *o, PyObject *loop) {
    py_consumer *self = (py_consumer *)o;
    unsigned long long number = PyLong_AsUnsignedLongLong(loop);
    if (PyErr_Occurred() || self->owner == NULL || consumer_usable(self) != SHMQ_OK) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    py_message **all = PyMem_Malloc((self->whole->lent + (size_t)1) * sizeof *all);
    uint32_t count = 0;
    if (all == NULL) {
        return PyErr_NoMemory();
    }
    for (py_message *m = self->whole->first; m != NULL; m = m->next) {
        if ((m->consumer == self || self->several) && (number == 0 || m->loop == number)) {
            all[count++] = m;
        }
    }
    bool done = messages_go_back(all, count);
    for (uint32_t i = 0; i < count; i++) {
        message_went_back(all[i]);
    }
    PyMem_Free(all);
    return done ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

/* _forget(): the consumer has nothing in hand any more: its broker was closed, or the messages are the parent's. */
static PyObject *consumer_forget(PyObject *o, PyObject *unused) {
    py_consumer *self = (py_consumer *)o;
    (void)unused;
    for (py_message *m = self->owner != NULL ? self->whole->first : NULL, *next; m != NULL; m = next) {
        next = m->next;
        if (m->consumer == self || self->several) {
            message_unlink(m);
            message_went_back(m);
        }
    }
    Py_RETURN_NONE;
}

/* _in_hand() -> the messages that it has lent */
static PyObject *consumer_in_hand(PyObject *o, PyObject *unused) {
    py_consumer *self = (py_consumer *)o;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (py_message *m = self->owner != NULL ? self->whole->first : NULL; list != NULL && m != NULL; m = m->next) {
        bool dying = Py_REFCNT((PyObject *)m) == 0; /* a callback of a weak reference to it runs just now */
        if (!dying && (m->consumer == self || self->several) && PyList_Append(list, (PyObject *)m) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* ---- taking ---- */

bool consumer_enters(py_consumer *whole, bool *own_row) {
    if (!consumer_has_credit(whole)) {
        return false;
    }
    whole->takers++;
    *own_row = !whole->sleeping;
    whole->sleeping = true;
    return true;
}

int consumer_leaves(py_consumer *whole, bool own_row) {
    whole->takers--;
    whole->sleeping = whole->sleeping && !own_row;
    return whole->prefetch == 0 ? 0 : consumer_credit_came(whole);
}

PyObject *consumer_left(py_consumer *self, PyObject *message) {
    if (SHMQ_LIKELY(!self->closed)) {
        return message;
    }
    /* Another thread has closed the consumer: the message goes back, the last taker gives the row back, and the caller
     * hears why. */
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    Py_XDECREF(message);
    PyObject *done = PyObject_CallMethod((PyObject *)self, "_give_row_back", NULL);
    if (done != NULL && kind == NULL) {
        shmq_py_set(&done, PyObject_CallMethod((PyObject *)self, "_check", NULL));
    }
    Py_XDECREF(done);
    if (kind != NULL) {
        PyErr_Clear();
        PyErr_Restore(kind, error, trace);
    }
    return NULL;
}

/* Acquires the next message. NULL: *status says why, unless an exception is set. */
static py_message *next_message(py_consumer *self, uint64_t until_ns, uint32_t row, shmq_status *status) {
    unsigned char copy[SHMQ_COPY_BYTES];
    py_caller caller;
    caller_begins(&caller, self->queue);
    const shmq_taking t = {.owner = self->row,
                           .row = row,
                           .by = &((py_subscription *)self->subscription)->s,
                           .until_ns = until_ns,
                           .copy = copy,
                           .caller = &caller.c};
    for (;;) {
        shmq_delivery d;
        *status = shmq_receive(self->q, &t, &d);
        if (SHMQ_LIKELY(*status == SHMQ_OK)) {
            py_message *message = message_new(self, &d, copy);
            if (SHMQ_LIKELY(message != NULL) || PyErr_Occurred()) {
                return message;
            }
        } else if (*status != SHMQ_POISONED || !queue_dead_letter(self->queue, &d)) {
            return NULL;
        }
    }
}

bool consumer_is_open(py_consumer *self) {
    if (SHMQ_LIKELY(!self->closed)) {
        return true;
    }
    Py_XDECREF(PyObject_CallMethod((PyObject *)self, "_check", NULL)); /* raises */
    return false;
}

/* None: there is no credit, or, with `quiet`, no message. */
static PyObject *take(py_consumer *self, uint64_t until_ns, bool quiet) {
    bool own_row;
    if (!queue_takes(self->queue) || !consumer_is_open(self->whole) || !queue_ready(self->queue)) {
        return NULL;
    }
    if (!consumer_enters(self->whole, &own_row)) {
        Py_RETURN_NONE;
    }
    shmq_status status;
    py_message *message = next_message(self, until_ns, own_row ? self->row : 0, &status);
    bool nothing = quiet && message == NULL && status == SHMQ_EMPTY && !PyErr_Occurred();
    if (message == NULL && !nothing && !PyErr_Occurred()) {
        (void)queue_raise(self->queue, status);
    }
    if (SHMQ_UNLIKELY(self->whole->prefetch != 0)) { /* if a handler raises, the message goes back */
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        if (consumer_leaves(self->whole, own_row) < 0) {
            Py_CLEAR(message);
            Py_CLEAR(kind);
            Py_CLEAR(error);
            Py_CLEAR(trace);
        } else {
            PyErr_Restore(kind, error, trace);
        }
    } else {
        (void)consumer_leaves(self->whole, own_row);
    }
    PyObject *answer = consumer_left(self, (PyObject *)message);
    return answer == NULL && nothing && !PyErr_Occurred() ? Py_NewRef(Py_None) : answer;
}

/* _take(timeout) -> Message, not delivered yet; None: no credit. */
static PyObject *consumer_take(PyObject *o, PyObject *timeout) {
    py_consumer *self = (py_consumer *)o;
    uint64_t until;
    if (self->owner == NULL || self->several) {
        PyErr_SetString(PyExc_RuntimeError, "a consumer of one queue, which has begun, is expected");
        return NULL;
    }
    return parse_timeout(timeout, &until) ? take(self, until, false) : NULL;
}

/* Is there nothing that Python has to do first? */
static bool is_plain(const py_consumer *self) {
    return self->owner != NULL && self->whole == self && !self->closed && !self->watched &&
           PySet_Size(self->dropped) == 0 && self->owner->dead_letters == 0 && consumer_usable(self) == SHMQ_OK;
}

PyObject *consumer_receive_until(PyObject *o, PyObject *timeout, uint64_t until_ns) {
    py_consumer *self = (py_consumer *)o;
    if (SHMQ_LIKELY(is_plain(self))) {
        PyObject *message = SHMQ_UNLIKELY(self->several) ? consumer_take_news(self) : take(self, until_ns, false);
        if (SHMQ_LIKELY(message != Py_None)) {
            return message;
        }
        Py_DECREF(message);
    }
    return PyObject_CallMethod(o, "_receive_slow", "O", timeout);
}

PyObject *consumer_receive(PyObject *o, PyObject *timeout) {
    uint64_t until;
    return parse_timeout(timeout, &until) ? consumer_receive_until(o, timeout, until) : NULL;
}

PyObject *consumer_one_more(PyObject *o) {
    py_consumer *self = (py_consumer *)o;
    if (is_plain(self)) {
        PyObject *message = self->several ? consumer_take_news(self) : take(self, 0, true);
        if (message != Py_None || !self->several) {
            return message;
        }
        Py_DECREF(message);
    }
    if (self->owner != NULL && !consumer_has_credit(self->whole)) {
        Py_RETURN_NONE;
    }
    return PyObject_CallMethod(o, "_receive_slow", "i", 0);
}

/* ---- the type ---- */

/* _begin(queue, Row, subscription, Message, prefetch, whole or None). None in place of a Row: a consumer of several
 * queues. */
static PyObject *consumer_begin(PyObject *o, PyObject *args) {
    py_consumer *self = (py_consumer *)o;
    PyObject *queue, *own, *subscription, *type, *whole;
    unsigned int prefetch;
    if (!PyArg_ParseTuple(args, "O!OOOIO", queue_type, &queue, &own, &subscription, &type, &prefetch, &whole)) {
        return NULL;
    }
    bool several = own == Py_None;
    if (self->owner != NULL || !PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, message_type) ||
        (!several && (Py_TYPE(own) != row_type || Py_TYPE(subscription) != subscription_type)) ||
        (whole != Py_None && !PyType_IsSubtype(Py_TYPE(whole), consumer_type))) {
        PyErr_SetString(PyExc_TypeError, "_begin(queue, Row, subscription, Message, prefetch, whole), once");
        return NULL;
    }
    if (!queue_ready((py_queue *)queue)) {
        return NULL;
    }
    self->queue = (py_queue *)Py_NewRef(queue);
    self->owner = (shmq_py_member *)Py_NewRef((PyObject *)self->queue->owner);
    self->q = self->queue->q;
    self->serial = self->q->serial;
    self->several = several;
    self->own = several ? NULL : Py_NewRef(own);
    self->row = several ? 0 : row_number(own);
    self->subscription = Py_NewRef(subscription);
    self->message_type = (PyTypeObject *)Py_NewRef(type);
    self->prefetch = prefetch;
    self->whole = whole == Py_None ? self : (py_consumer *)Py_NewRef(whole);
    pthread_mutex_lock(&self->q->m->handles_lock);
    self->q->refs++;
    pthread_mutex_unlock(&self->q->m->handles_lock);
    Py_RETURN_NONE;
}

static PyObject *consumer_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_consumer *self = (py_consumer *)alloc(type, 0);
    (void)args;
    (void)keywords;
    if (self != NULL) {
        self->closed = true; /* until it has begun, and has a row */
        self->whole = self;
        self->dropped = PySet_New(NULL);
        if (self->dropped == NULL) {
            Py_CLEAR(self);
        }
    }
    return (PyObject *)self;
}

static int consumer_traverse(PyObject *o, visitproc visit, void *arg) {
    py_consumer *self = (py_consumer *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT((PyObject *)self->queue);
    Py_VISIT((PyObject *)(self->whole != self ? self->whole : NULL));
    return 0;
}

static void consumer_dealloc(PyObject *o) {
    py_consumer *self = (py_consumer *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(o);
    if (self->owner != NULL) {
        shmq_queue_unbind(self->q);
    }
    if (self->whole != self) {
        Py_CLEAR(self->whole);
    }
    consumer_news_free(self->news);
    Py_CLEAR(self->queue);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->subscription);
    Py_CLEAR(self->own);
    Py_CLEAR(self->message_type);
    Py_CLEAR(self->dropped);
    release(o);
    Py_DECREF(type);
}

static PyObject *consumer_credit(PyObject *o, void *unused) {
    (void)unused;
    return PyBool_FromLong(consumer_has_credit(((py_consumer *)o)->whole));
}

static PyObject *consumer_taking(PyObject *o, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((py_consumer *)o)->whole->takers);
}

static PyMethodDef consumer_methods[] = {
    {"_begin", consumer_begin, METH_VARARGS, NULL},
    {"_receive", consumer_receive, METH_O, NULL},
    {"_receive_many", (PyCFunction)(void (*)(void))consumer_receive_many, METH_FASTCALL, NULL},
    {"_take", consumer_take, METH_O, NULL},
    {"_take_any", consumer_take_any, METH_VARARGS, NULL},
    {"_give_back", consumer_give_back, METH_O, NULL},
    {"_forget", consumer_forget, METH_NOARGS, NULL},
    {"_in_hand", consumer_in_hand, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef consumer_answers[] = {
    {"_can_take", consumer_credit, NULL, "Room for one more within its credit?", NULL},
    {"_takers", consumer_taking, NULL, "How many threads are taking just now.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
#define OWN(name, member, type, flags) {name, type, offsetof(py_consumer, member), flags, NULL}
static PyMemberDef consumer_members[] = {
    OWN("_closed", closed, T_BOOL, 0),
    OWN("_sleeping", sleeping, T_BOOL, 0),
    OWN("_watched", watched, T_BOOL, 0),
    OWN("_starved", starved, T_BOOL, 0),
    OWN("_dropped", dropped, T_OBJECT_EX, READONLY),
    OWN("_serial", serial, T_ULONGLONG, READONLY),
    OWN("_row", row, T_UINT, READONLY),
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot consumer_slots[] = {
    {Py_tp_new, (void *)consumer_new},
    {Py_tp_dealloc, (void *)consumer_dealloc},
    {Py_tp_traverse, (void *)consumer_traverse},
    {Py_tp_methods, consumer_methods},
    {Py_tp_getset, consumer_answers},
    {Py_tp_members, consumer_members},
    {Py_tp_doc, "A consumer: the part of it that is written in C."},
    {0, NULL},
};
PyType_Spec consumer_spec = {
    .name = "shmq._native.ConsumerHandle",
    .basicsize = sizeof(py_consumer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = consumer_slots,
};
