/* get and get_many. */
#include "py_queue.h"

/* Where get() copies a body to. */
typedef struct copier {
    py_queue *queue;
    PyObject *body; /* strong or NULL */
} copier;

static shmq_copied copy_body(void *to, const shmq_queue *q, const shmq_delivery *d) {
    copier *c = to;
    shmq_copied copied;
    (void)q;
    Py_CLEAR(c->body); /* of a message that another process took meanwhile */
    c->body = delivery_body(c->queue, d, &copied);
    return copied;
}

/* self._take(delivery): decodes, then settles. NULL without an exception: the message was taken away meanwhile. */
static PyObject *taken(py_queue *self, const shmq_delivery *d) {
    PyObject *delivery = delivery_new(self, d);
    PyObject *found = delivery != NULL ? PyObject_CallMethod((PyObject *)self, "_take", "O", delivery) : NULL;
    Py_XDECREF(delivery);
    PyObject *body = found != NULL && found != Py_None ? PySequence_GetItem(found, 0) : NULL;
    Py_XDECREF(found);
    return body;
}

/* The next body. NULL: *status says why, unless an exception is set. */
static PyObject *get_one(py_queue *self, uint64_t until_ns, shmq_status *status) {
    copier to = {.queue = self};
    shmq_getting g = {.contents = self->codec_kind == CODEC_BYTES     ? CONTENT_END
                                  : self->codec_kind == CODEC_DEFAULT ? CONTENT_JSON + 1
                                  : knows_text(self)                  ? CONTENT_TEXT + 1
                                                                      : 0,
                      .copy = copy_body,
                      .to = &to};
    for (;;) {
        shmq_delivery d;
        *status = shmq_get_at_once(self->q, &g, &d);
        if (SHMQ_UNLIKELY(*status == SHMQ_EMPTY)) {
            *status = queue_get_later(self, &g, until_ns, &d);
        }
        if (SHMQ_LIKELY(*status == SHMQ_OK)) {
            if (SHMQ_LIKELY(!d.counted)) {
                return to.body;
            }
            Py_CLEAR(to.body); /* of a message that another process took meanwhile */
            PyObject *body = taken(self, &d);
            if (body != NULL || PyErr_Occurred()) {
                return body;
            }
            continue;
        }
        Py_CLEAR(to.body);
        if (*status != SHMQ_POISONED || !queue_dead_letter(self, &d)) {
            return NULL;
        }
    }
}

static bool timeout_of(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t wanted, PyObject *names, const char *what,
                       uint64_t *until_ns) {
    Py_ssize_t keywords = names != NULL ? PyTuple_Size(names) : 0;
    *until_ns = SHMQ_FOR_EVER;
    if (nargs != wanted || keywords > 1 ||
        (keywords == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "timeout") != 0)) {
        PyErr_Format(PyExc_TypeError, "%s expected; timeout is its only keyword, and timeout=0 does not wait", what);
        return false;
    }
    return keywords == 0 || parse_timeout(args[nargs], until_ns);
}

PyObject *queue_get(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    py_queue *self = (py_queue *)o;
    uint64_t until = SHMQ_FOR_EVER;
    if ((nargs != 0 || names != NULL) && !timeout_of(args, nargs, 0, names, "get(*, timeout=None)", &until)) {
        return NULL;
    }
    if (!queue_takes(self)) {
        return NULL;
    }
    shmq_status status;
    PyObject *body = get_one(self, until, &status);
    return body != NULL || PyErr_Occurred() ? body : queue_raise(self, status);
}

PyObject *queue_get_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    py_queue *self = (py_queue *)o;
    uint64_t until;
    if (!timeout_of(args, nargs, 1, names, "get_many(limit, *, timeout=None)", &until)) {
        return NULL;
    }
    if (PyBool_Check(args[0]) || !PyIndex_Check(args[0])) {
        PyErr_Format(PyExc_TypeError, "get_many(%R): a number of messages is expected", args[0]);
        return NULL;
    }
    Py_ssize_t limit = PyNumber_AsSsize_t(args[0], PyExc_OverflowError);
    if (limit < 1) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "get_many(%zd): a limit of 1 or more is expected", limit);
        }
        return NULL;
    }
    PyObject *list = queue_takes(self) ? PyList_New(0) : NULL;
    while (list != NULL && PyList_Size(list) < limit) {
        shmq_status status;
        bool first = PyList_Size(list) == 0;
        PyObject *body = get_one(self, first ? until : 0, &status);
        if (body != NULL) {
            int failed = PyList_Append(list, body);
            Py_DECREF(body);
            if (failed) {
                Py_CLEAR(list);
            }
            continue;
        }
        if (status == SHMQ_EMPTY && !PyErr_Occurred()) {
            return list;
        }
        if (!PyErr_Occurred()) {
            queue_raise(self, status);
        }
        if (!first && PyErr_ExceptionMatches(PyExc_Exception)) {
            queue_keep_untold(self); /* what was taken is handed over; the next call tells, or meets the error again */
            return list;
        }
        Py_CLEAR(list);
    }
    return list;
}

/* _acquire(consumer row, row to sleep on or 0, timeout) -> Delivery, acquired for that consumer row. */
PyObject *queue_acquire(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_queue *self = (py_queue *)o;
    uint64_t until;
    long owner = nargs == 3 ? PyLong_AsLong(args[0]) : -1, row = nargs == 3 ? PyLong_AsLong(args[1]) : -1;
    if (PyErr_Occurred() || owner < 1 || owner >= (long)SHMQ_CONSUMER_ROWS || row < 0 ||
        row >= (long)SHMQ_CONSUMER_ROWS) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "_acquire(consumer row, row to sleep on or 0, timeout)");
        }
        return NULL;
    }
    if (!parse_timeout(args[2], &until) || !queue_takes(self)) {
        return NULL;
    }
    py_caller caller;
    caller_begins(&caller, self);
    const shmq_taking t = {.owner = (uint32_t)owner, .row = (uint32_t)row, .until_ns = until, .caller = &caller.c};
    for (;;) {
        shmq_delivery d;
        shmq_status status = shmq_receive(self->q, &t, &d);
        if (status == SHMQ_OK) {
            PyObject *delivery = delivery_new(self, &d);
            if (delivery == NULL) {
                (void)shmq_release(self->q, &d, false);
            }
            return delivery;
        }
        if (status != SHMQ_POISONED || !queue_dead_letter(self, &d)) {
            return queue_raise(self, status);
        }
    }
}
