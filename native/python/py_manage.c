/* What the Python face needs of a queue besides messages: settings, counts, rows, browsing, shutdown. */
#include <string.h>

#include "py_queue.h"

#include "shmq/examine.h"
#include "shmq/structure.h"

static PyObject *none_or(py_queue *self, shmq_status status) {
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    Py_RETURN_NONE;
}

static PyObject *queue_loan(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *head, *timeout;
    unsigned long long bytes;
    uint64_t until;
    if (!PyArg_ParseTuple(args, "OKO", &head, &bytes, &timeout) || !parse_timeout(timeout, &until) ||
        !queue_ready(self)) {
        return NULL;
    }
    return loan_new(self, head, bytes, until);
}

static PyObject *queue_census(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_census c;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_usable(self->q);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    BEGIN_WAIT(self)
    shmq_ring_census(self->q, &c);
    END_WAIT(self)
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsK}", "ready", c.ready, "unsettled", c.unsettled, "claimed", c.claimed,
                         "holes", c.holes, "broken", c.broken, "bytes", c.bytes, "memory_bytes", c.memory_bytes,
                         "oldest_ns", c.oldest_ns, "first_position", c.first_position, "next_position",
                         c.next_position);
}

static PyObject *queue_counters(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    unsigned long long put = 0, got = 0, received = 0, acked = 0, redelivered = 0, dead = 0, died = 0;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_member *m = self->q->m;
    uint32_t high = shmq_load_seq(&m->header->process_high);
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS; row++) {
        shmq_counters_shm *line = shmq_counters_at(m, row, self->q->index);
        if (line != NULL) {
            put += shmq_load_relaxed(&line->put);
            got += shmq_load_relaxed(&line->got);
            received += shmq_load_relaxed(&line->received);
            acked += shmq_load_relaxed(&line->acked);
            redelivered += shmq_load_relaxed(&line->redelivered);
            dead += shmq_load_relaxed(&line->dead_lettered);
            died += shmq_load_relaxed(&line->died);
        }
    }
    return Py_BuildValue("{sKsKsKsKsKsKsK}", "put", put, "got", got, "received", received, "acked", acked,
                         "redelivered", redelivered, "dead_lettered", dead, "died", died);
}

static PyObject *queue_settings(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_queue_shm *page = self->q->page;
    uint32_t letters = page->dead_letter_len <= SHMQ_NAME_MAX ? page->dead_letter_len : 0;
    PyObject *setters = PyList_New(0);
    for (int i = 0; setters != NULL && i < SHMQ_SETTINGS; i++) {
        PyObject *pid = PyLong_FromUnsignedLong(page->given_by[i]);
        if (pid == NULL || PyList_Append(setters, pid) < 0) {
            Py_CLEAR(setters);
        }
        Py_XDECREF(pid);
    }
    return setters == NULL
               ? NULL
               : Py_BuildValue(
                     "{sKsIsNsIsIsNsy#sKsKsIsKsIsN}", "maxsize", shmq_load_relaxed(&page->maxsize), "slot_size",
                     self->q->slot_size, "temporary", PyBool_FromLong((long)shmq_load_relaxed(&page->temporary)),
                     "max_deliveries", shmq_load_relaxed(&page->max_deliveries), "max_deaths",
                     shmq_load_relaxed(&page->max_deaths), "checksum", PyBool_FromLong(self->q->checksum),
                     "dead_letter", page->dead_letter, (Py_ssize_t)letters, "given", shmq_load_relaxed(&page->given),
                     "slots", (unsigned long long)shmq_slot_count(self->q), "shut_down",
                     shmq_load_seq(&page->shut_down), "created_ns", (unsigned long long)page->created_ns, "created_by",
                     page->created_by, "given_by", setters);
}

static PyObject *queue_crowd(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    unsigned long consumers = 0, asleep = 0;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    for (uint32_t group = 0; group < SHMQ_CHUNKS; group++) {
        uint64_t used = shmq_load_seq(&self->q->page->sleepers[group].used);
        asleep += (unsigned long)__builtin_popcountll(shmq_load_seq(&self->q->page->sleepers[group].idle));
        for (; used != 0; used &= used - 1) {
            shmq_consumer_shm *row = shmq_row_at(self->q, group * 64 + (uint32_t)__builtin_ctzll(used));
            consumers += row != NULL && shmq_load_relaxed(&row->kind) == SHMQ_CONSUMER;
        }
    }
    return Py_BuildValue("{sksksI}", "consumers", consumers, "asleep", asleep, "producers_waiting",
                         shmq_load_seq(&self->q->ring->waiters));
}

static PyObject *queue_row_open(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    uint32_t row;
    shmq_status status;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_usable(self->q);
        if (status == SHMQ_OK) {
            status = shmq_row_open(self->q, SHMQ_CONSUMER, &row);
        }
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return status == SHMQ_OK ? PyLong_FromUnsignedLong(row) : queue_raise(self, status);
}

static PyObject *queue_row_closing(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned int row;
    if (!PyArg_ParseTuple(args, "I", &row) || !queue_ready(self)) {
        return NULL;
    }
    if (shmq_row_at(self->q, row) != NULL) {
        shmq_row_closing(self->q, row);
        shmq_notify_all(self->q); /* those of its threads that wait on other rows look, too */
    }
    Py_RETURN_NONE;
}

static PyObject *queue_row_close(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned int row;
    shmq_status status;
    if (!PyArg_ParseTuple(args, "I", &row) || !queue_ready(self)) {
        return NULL;
    }
    if (shmq_row_at(self->q, row) == NULL) {
        Py_RETURN_NONE;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_row_close(self->q, row);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    shmq_notify(self->q); /* the baton: a wake-up that was meant for this row */
    return none_or(self, status);
}

static PyObject *queue_is_ready(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_usable(self->q);
    return status == SHMQ_OK ? PyBool_FromLong(shmq_ring_ready(self->q)) : queue_raise(self, status);
}

/* Is there room for one more, as far as one can see? */
static PyObject *queue_used(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyLong_FromUnsignedLongLong(shmq_load_seq(&self->q->page->count) & UINT32_MAX) : NULL;
}

static PyObject *queue_join(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *timeout;
    uint64_t until;
    shmq_status status;
    if (!PyArg_ParseTuple(args, "O", &timeout) || !parse_timeout(timeout, &until) || !queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_ring_join(self->q, until);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return none_or(self, status);
}

static PyObject *queue_shut_down(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned int how;
    if (!PyArg_ParseTuple(args, "I", &how) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_usable(self->q);
    return none_or(self, status == SHMQ_OK ? shmq_queue_shut_down(self->q, how) : status);
}

static PyObject *queue_delete(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_status status;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_delete(self->q);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return none_or(self, status);
}

/* _purge() -> how many: what is ready is settled; what consumers hold stays theirs. */
static PyObject *queue_purge(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    unsigned long long purged = 0;
    shmq_status status = SHMQ_OK;
    (void)unused;
    if (!queue_ready(self) || (status = shmq_queue_usable(self->q)) != SHMQ_OK) {
        return queue_raise(self, status);
    }
    BEGIN_WAIT(self)
    uint64_t end = shmq_load_seq(&self->q->ring->tail); /* newcomers stay: else a busy queue is never done */
    for (;;) {
        shmq_delivery d;
        status = shmq_offer(self->q, shmq_self(self->q), &d);
        if (status != SHMQ_OK) {
            break;
        }
        if (d.position >= end) {
            shmq_offer_cancel(self->q, &d);
            break;
        }
        shmq_status acquired = shmq_offer_acquire(self->q, &d);
        if (acquired != SHMQ_SETTLED && shmq_settle(self->q, &d) == SHMQ_OK) {
            purged++;
        }
    }
    shmq_add_relaxed(&self->q->counters->purged, purged);
    END_WAIT(self)
    return status == SHMQ_OK || status == SHMQ_EMPTY ? PyLong_FromUnsignedLongLong(purged) : queue_raise(self, status);
}

/* _purge_at(position) -> was it ready, and is settled now? */
static PyObject *queue_purge_at(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long position;
    shmq_delivery d = {0};
    if (!PyArg_ParseTuple(args, "K", &position) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_steal(self->q, position, true, &d);
    if (status != SHMQ_OK && status != SHMQ_EMPTY) {
        return queue_raise(self, status);
    }
    bool purged = status == SHMQ_OK && shmq_settle(self->q, &d) == SHMQ_OK;
    shmq_add_relaxed(&self->q->counters->purged, purged);
    return PyBool_FromLong(purged);
}

/* _browse(position) -> (next position, None) at the end, else (position + 1, (position, id, enqueued_ns, content, delivery,
 * deaths, redelivered, head, body)). What was copied is good: the slot said the same before and after. */
static PyObject *queue_browse(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long position;
    if (!PyArg_ParseTuple(args, "K", &position) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_usable(self->q);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    for (;;) {
        shmq_delivery d;
        uint64_t at = position;
        if (shmq_browse(self->q, &at, &d) != SHMQ_OK) {
            return Py_BuildValue("(KO)", (unsigned long long)at, Py_None);
        }
        PyObject *head = PyBytes_FromStringAndSize((const char *)d.head, d.head_len);
        PyObject *body = PyBytes_FromStringAndSize((const char *)d.bytes, (Py_ssize_t)d.body_len);
        if (head != NULL && body != NULL && shmq_browse_valid(self->q, &d)) {
            d.head = (unsigned char *)PyBytes_AsString(head); /* the copies are judged: what is shared may change */
            d.bytes = (unsigned char *)PyBytes_AsString(body);
            if (SHMQ_UNLIKELY(!shmq_delivery_intact(self->q, &d))) {
                Py_DECREF(head);
                Py_DECREF(body);
                position = at + 1; /* damaged: whoever takes it is told */
                continue;
            }
            return Py_BuildValue("(K(KKKIIIINN))", (unsigned long long)at + 1, (unsigned long long)d.position,
                                 (unsigned long long)d.message_id, (unsigned long long)d.enqueued_ns,
                                 (unsigned)d.content, (unsigned)d.delivery, (unsigned)d.deaths,
                                 (unsigned)((d.word & SHMQ_FLAG_REDELIVERED) != 0), head, body);
        }
        bool failed = head == NULL || body == NULL;
        Py_XDECREF(head);
        Py_XDECREF(body);
        if (failed) {
            return NULL;
        }
        position = at; /* it went while it was being copied: look at the same place again */
    }
}

static PyObject *queue_browse_wait(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long position;
    PyObject *timeout;
    uint64_t until;
    shmq_status status;
    if (!PyArg_ParseTuple(args, "KO", &position, &timeout) || !parse_timeout(timeout, &until) || !queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_browse_wait(self->q, position, until);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return none_or(self, status);
}

/* Words, pointers and count; then entries against rows and blocks, which needs rows that stay; then, without the lock again,
 * whether a release is under way. `where` is SHMQ_NO_SLOT for what is no slot's. */
static shmq_status examine(shmq_queue *q, const char **fault, uint64_t *where) {
    shmq_stray stray = {.found = false};
    *fault = shmq_ring_valid(q, where);
    if (*fault == NULL) {
        shmq_status status = shmq_structure_lock(q->m);
        if (status != SHMQ_OK) {
            return status;
        }
        *fault = shmq_entries_valid(q, where, &stray);
        shmq_structure_unlock(q->m);
    }
    if (*fault == NULL && stray.found && shmq_stray_is_lost(q, &stray)) {
        *where = stray.slot;
        *fault = "an available message that nobody will be offered";
    }
    return SHMQ_OK;
}

static PyObject *queue_check(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    uint64_t where = 0;
    const char *fault = NULL;
    shmq_status status;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = examine(self->q, &fault, &where);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    if (status != SHMQ_OK) {
        return PyErr_Occurred() ? NULL : queue_raise(self, status);
    }
    if (fault == NULL) {
        Py_RETURN_NONE;
    }
    if (where == SHMQ_NO_SLOT) {
        return Py_BuildValue("(sO)", fault, Py_None);
    }
    return Py_BuildValue("(sK)", fault, (unsigned long long)where);
}

/* _verify() -> (entries, verified, without checksum, moved, damaged, fault or None, slot) */
static PyObject *queue_verify(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_bodies found;
    const char *fault;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    BEGIN_WAIT(self)
    fault = shmq_bodies_valid(self->q, &found);
    END_WAIT(self)
    return Py_BuildValue("(KKKKKzK)", (unsigned long long)found.entries, (unsigned long long)found.verified,
                         (unsigned long long)found.unsigned_ones, (unsigned long long)found.moved,
                         (unsigned long long)found.damaged, fault, (unsigned long long)found.slot);
}

static PyObject *queue_tail(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyLong_FromUnsignedLongLong(shmq_load_seq(&self->q->ring->tail)) : NULL;
}

/* _steal(position) -> Delivery, taken from whoever had it; None: nothing there any more. */
static PyObject *queue_steal(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long position;
    shmq_delivery d = {0};
    if (!PyArg_ParseTuple(args, "K", &position) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_steal(self->q, position, false, &d);
    if (status == SHMQ_EMPTY) {
        Py_RETURN_NONE;
    }
    return status == SHMQ_OK ? delivery_new(self, &d) : queue_raise(self, status);
}

static PyObject *queue_identity(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? Py_BuildValue("(II)", self->q->index, self->q->incarnation) : NULL;
}

PyMethodDef queue_manage_methods[] = {
    {"_loan", queue_loan, METH_VARARGS, NULL},
    {"_census", queue_census, METH_NOARGS, NULL},
    {"_counters", queue_counters, METH_NOARGS, NULL},
    {"_settings", queue_settings, METH_NOARGS, NULL},
    {"_crowd", queue_crowd, METH_NOARGS, NULL},
    {"_row_open", queue_row_open, METH_NOARGS, NULL},
    {"_row_closing", queue_row_closing, METH_VARARGS, NULL},
    {"_row_close", queue_row_close, METH_VARARGS, NULL},
    {"_is_ready", queue_is_ready, METH_NOARGS, NULL},
    {"_used", queue_used, METH_NOARGS, NULL},
    {"_join", queue_join, METH_VARARGS, NULL},
    {"_shut_down", queue_shut_down, METH_VARARGS, NULL},
    {"_delete", queue_delete, METH_NOARGS, NULL},
    {"_purge", queue_purge, METH_NOARGS, NULL},
    {"_purge_at", queue_purge_at, METH_VARARGS, NULL},
    {"_browse", queue_browse, METH_VARARGS, NULL},
    {"_browse_wait", queue_browse_wait, METH_VARARGS, NULL},
    {"_check", queue_check, METH_NOARGS, NULL},
    {"_verify", queue_verify, METH_NOARGS, NULL},
    {"_tail", queue_tail, METH_NOARGS, NULL},
    {"_steal", queue_steal, METH_VARARGS, NULL},
    {"_identity", queue_identity, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
