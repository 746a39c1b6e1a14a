/* Places of a queue: a browser looks at them; a stealer takes what lies there. */
#include "py_queue.h"

#include <time.h>

/* The level of a place, and the position in it; NULL with an exception set. */
static shmq_ring *level_of(py_queue *self, unsigned long long place, uint64_t *position) {
    shmq_ring *level = shmq_level_of_place(self->q, place, position);
    if (level == NULL) {
        PyErr_Format(PyExc_ValueError, "position %llu: this queue has %u levels", place, self->q->levels);
    }
    return level;
}

/* _purge() -> how many. Settles available entries; what consumers have in hand stays theirs. */
static PyObject *queue_purge(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    uint64_t purged = 0, now = 0;
    shmq_status status = SHMQ_OK;
    (void)unused;
    if (!queue_ready(self) || (status = shmq_queue_enter(self->q)) != SHMQ_OK) {
        return queue_raise(self, status);
    }
    do {
        BEGIN_WAIT(self)
        if (status == SHMQ_INTERRUPTED) {
            nanosleep(&(struct timespec){.tv_nsec = SHMQ_NAP_NS}, NULL);
        }
        status = shmq_purge(self->q, &now);
        purged += now;
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0); /* a mover's turn is short */
    if (status == SHMQ_INTERRUPTED) {
        return NULL;
    }
    return status == SHMQ_OK ? PyLong_FromUnsignedLongLong(purged) : queue_raise(self, status);
}

/* The entry may have to come back from disk. */
static shmq_status steal_at(py_queue *self, shmq_ring *level, uint64_t position, bool ready, shmq_delivery *d) {
    shmq_status status;
    do {
        BEGIN_WAIT(self)
        status = shmq_steal_at(level, position, ready, d);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return status;
}

/* _purge_at(place) -> was the entry available, and is it settled now? */
static PyObject *queue_purge_at(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long place;
    uint64_t position;
    shmq_delivery d = {0};
    shmq_ring *level;
    if (!PyArg_ParseTuple(args, "K", &place) || !queue_ready(self) ||
        (level = level_of(self, place, &position)) == NULL) {
        return NULL;
    }
    shmq_status status = steal_at(self, level, position, true, &d);
    if (status != SHMQ_OK && status != SHMQ_EMPTY) {
        return queue_raise(self, status);
    }
    bool purged = status == SHMQ_OK && shmq_entry_ends(shmq_level(self->q, d.depth), &d, SHMQ_END_PURGED) == SHMQ_OK;
    return PyBool_FromLong(purged);
}

/* _steal(place, ready) -> Delivery of the entry, whoever has it; with `ready` only if it is available. None: no entry
 * is there. */
static PyObject *queue_steal(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long place;
    uint64_t position;
    shmq_delivery d = {0};
    shmq_ring *level;
    int ready = false;
    if (!PyArg_ParseTuple(args, "K|p", &place, &ready) || !queue_ready(self) ||
        (level = level_of(self, place, &position)) == NULL) {
        return NULL;
    }
    shmq_status status = steal_at(self, level, position, ready != 0, &d);
    if (status == SHMQ_EMPTY) {
        Py_RETURN_NONE;
    }
    return status == SHMQ_OK ? delivery_new(self, &d) : queue_raise(self, status);
}

static PyObject *browsed(uint64_t place, const shmq_delivery *d, uint64_t own_expiry, PyObject *headers,
                         PyObject *body) {
    return Py_BuildValue("(K(KKKIIIIINNKK))", (unsigned long long)place + 1, (unsigned long long)place,
                         (unsigned long long)d->message_id, (unsigned long long)d->enqueued_ns, (unsigned)d->content,
                         (unsigned)d->delivery, (unsigned)d->deaths, (unsigned)((d->word & SHMQ_FLAG_REDELIVERED) != 0),
                         (unsigned)d->priority, headers, body, (unsigned long long)d->expires_ns,
                         (unsigned long long)own_expiry);
}

/* _browse(place, free=False) -> (next place, None) at the end of its level, else (place + 1, (place, id, enqueued_ns,
 * content, delivery, deaths, redelivered, priority, head, body, expires_ns, own_expires_ns)). The copy is sound: the slot's
 * word was the same before and after. With `free` what consumers hold is passed by. */
static PyObject *queue_browse(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long place;
    uint64_t position;
    shmq_ring *level;
    int free = false;
    if (!PyArg_ParseTuple(args, "K|p", &place, &free) || !queue_ready(self) ||
        (level = level_of(self, place, &position)) == NULL) {
        return NULL;
    }
    shmq_status status = shmq_queue_enter(self->q);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    for (;;) {
        shmq_delivery d;
        uint64_t at = position = free ? shmq_pass_held(level, position) : position;
        status = shmq_browse_place(level, &at, &d);
        if (SHMQ_UNLIKELY(status == SHMQ_INTERRUPTED)) { /* a mover is at work: not to be passed */
            BEGIN_WAIT(self)
            nanosleep(&(struct timespec){.tv_nsec = SHMQ_NAP_NS}, NULL);
            END_WAIT(self)
            if (!queue_goes_on(self)) {
                return NULL;
            }
            continue;
        }
        if (status == SHMQ_EMPTY) {
            return Py_BuildValue("(KO)", (unsigned long long)shmq_place_at(level->depth, at), Py_None);
        }
        if (SHMQ_UNLIKELY(status != SHMQ_OK)) {
            return queue_raise(self, status);
        }
        if (free && d.depth != SHMQ_ON_DISK && shmq_state_is_in_hand(shmq_word_state(d.word))) {
            position = at + 1;
            continue;
        }
        PyObject *headers = PyBytes_FromStringAndSize((const char *)d.headers, d.headers_len);
        PyObject *body = PyBytes_FromStringAndSize((const char *)d.bytes, (Py_ssize_t)d.body_len);
        uint64_t own_expiry = d.depth == SHMQ_ON_DISK ? d.expires_ns : shmq_own_expiry(self->q, &d);
        bool row = d.depth == SHMQ_ON_DISK; /* a copy, as sound as the row */
        if (row) {
            uint64_t end = shmq_life_end(self->q, d.enqueued_ns, own_expiry);
            d.expires_ns = end != SHMQ_NEVER ? end : 0; /* the row has what its put said, and not the queue's max_ttl */
        }
        if (headers != NULL && body != NULL && (row || shmq_browse_valid(shmq_level(self->q, d.depth), &d))) {
            d.headers =
                (unsigned char *)PyBytes_AsString(headers); /* the copies are checked: shared memory may change */
            d.bytes = (unsigned char *)PyBytes_AsString(body);
            if (SHMQ_UNLIKELY(!shmq_delivery_intact(level->queue, &d))) {
                Py_DECREF(headers);
                Py_DECREF(body);
                position = at + 1; /* damaged: its taker is told */
                continue;
            }
            return browsed(shmq_place_at(level->depth, at), &d, own_expiry, headers, body);
        }
        bool failed = headers == NULL || body == NULL;
        Py_XDECREF(headers);
        Py_XDECREF(body);
        if (failed) {
            return NULL;
        }
        position = at; /* the entry went during the copy: look at the same place again */
    }
}

/* _browse_wait((place, ...), timeout): waits until an entry may be at one of these places, one for each level. */
static PyObject *queue_browse_wait(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *places, *timeout;
    uint64_t until, positions[SHMQ_LEVELS_MAX] = {0};
    shmq_status status;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &places, &timeout) || !parse_timeout(timeout, &until) ||
        !queue_ready(self)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(places); i++) {
        unsigned long long place = PyLong_AsUnsignedLongLong(PyTuple_GetItem(places, i));
        uint64_t position;
        if (PyErr_Occurred()) {
            return NULL;
        }
        shmq_ring *level = level_of(self, place, &position);
        if (level == NULL) {
            return NULL;
        }
        positions[level->depth] = position;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_browse_wait(self->q, positions, until);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    Py_RETURN_NONE;
}

/* _ends() -> for each level the place of the next put, the most important level first. */
static PyObject *queue_ends(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    PyObject *ends = queue_ready(self) ? PyTuple_New((Py_ssize_t)self->q->levels) : NULL;
    for (uint32_t depth = 0; ends != NULL && depth < self->q->levels; depth++) {
        PyObject *end = PyLong_FromUnsignedLongLong(shmq_place_at(depth, shmq_level_end(self->q, depth)));
        if (end == NULL || PyTuple_SetItem(ends, (Py_ssize_t)depth, end) < 0) {
            Py_CLEAR(ends);
        }
    }
    return ends;
}

/* _discard_below(position) -> how many entries below it were available and are settled now. For a queue with one
 * level. */
static PyObject *queue_discard_below(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long position;
    uint64_t discarded = 0;
    shmq_status status;
    if (!PyArg_ParseTuple(args, "K", &position) || !queue_ready(self)) {
        return NULL;
    }
    if (self->q->levels != 1) {
        PyErr_Format(PyExc_ValueError, "this queue has %u levels, and positions of each", self->q->levels);
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_enter(self->q);
        if (status == SHMQ_OK) {
            status = shmq_discard_below(&self->q->first, position, &discarded);
        }
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    return status == SHMQ_OK ? PyLong_FromUnsignedLongLong(discarded) : queue_raise(self, status);
}

PyMethodDef queue_browse_methods[] = {
    {"_purge", queue_purge, METH_NOARGS, NULL},
    {"_purge_at", queue_purge_at, METH_VARARGS, NULL},
    {"_discard_below", queue_discard_below, METH_VARARGS, NULL},
    {"_steal", queue_steal, METH_VARARGS, NULL},
    {"_browse", queue_browse, METH_VARARGS, NULL},
    {"_put_column", queue_put_column, METH_VARARGS, NULL},
    {"_browse_columns", queue_browse_columns, METH_VARARGS, NULL},
    {"_get_columns", queue_get_columns, METH_VARARGS, NULL},
    {"_browse_wait", queue_browse_wait, METH_VARARGS, NULL},
    {"_ends", queue_ends, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
