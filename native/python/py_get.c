/* get, get_many and receive. */
#include "py_subscription.h"
#include "shmq/ranks.h"
#include "shmq/ring_time.h"

/* The next entry, OFFERED to `owner`: at once with the interpreter lock, then waiting without it. */
static shmq_status next_offer(py_queue *self, uint32_t owner, shmq_subscription *by, uint32_t row, uint64_t until_ns,
                              shmq_delivery *d) {
    shmq_status status = shmq_queue_usable(self->q);
    if (SHMQ_UNLIKELY(status != SHMQ_OK)) {
        return status;
    }
    if (SHMQ_LIKELY(shmq_load_relaxed(&self->q->page->shut_down) != SHMQ_STOPPED)) {
        status = shmq_offer_to(self->q, owner, by, d);
        if (SHMQ_LIKELY(status != SHMQ_EMPTY)) {
            return status;
        }
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_offer_wait_to(self->q, owner, by, row, until_ns, d);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    if (status == SHMQ_OK && PyErr_CheckSignals() < 0) { /* the signal came while we waited: then nothing was taken */
        shmq_offer_cancel(self->q, d);
        status = SHMQ_INTERRUPTED;
    }
    return status;
}

enum got { GOT, GOT_AGAIN, GOT_ERROR };

/* The checksum does not fit. GOT_AGAIN: it was taken away from us meanwhile, for the queue was deleted, and what we have
 * read is another message's. GOT_ERROR: damage; the entry is taken out of service, its reference dropped, and the caller
 * told once. */
static enum got damaged(py_queue *self, shmq_delivery *d) {
    uint64_t word;
    shmq_queue *level = shmq_level(self->q, d->depth);
    do {
        word = shmq_own_word(self->q, d);
        if (word == 0) {
            return GOT_AGAIN;
        } /* a loop: the tail may carry it under us */
    } while (shmq_mark_broken(level, shmq_slot_at(level, d->position), word, shmq_word_lap(word)) == SHMQ_OK);
    shmq_let_go(level, d);
    if (d->body != 0) {
        shmq_block_drop(self->q->m, shmq_body_offset(d->body), d->body_gen, shmq_body_bit(d->body));
    }
    shmq_fail(SHMQ_CORRUPT, "the checksum of the message at position %llu does not fit its %u bytes",
              (unsigned long long)d->position, d->body_len);
    (void)queue_raise(self, SHMQ_CORRUPT);
    return GOT_ERROR;
}

static inline bool is_to_be_buried(const py_queue *self, const shmq_delivery *d) {
    return (SHMQ_UNLIKELY((d->deaths | d->delivery) != 0) && shmq_is_poisoned(self->q, d)) ||
           shmq_is_for_the_grave(self->q, d);
}

/* An acquired entry that has died too often: self._bury(delivery). */
static bool bury(py_queue *self, const shmq_delivery *d) {
    PyObject *delivery = delivery_new(self, d);
    PyObject *done = delivery != NULL ? PyObject_CallMethod((PyObject *)self, "_bury", "O", delivery) : NULL;
    Py_XDECREF(delivery);
    Py_XDECREF(done);
    return done != NULL;
}

/* An inline body of bytes or text: copied while OFFERED, then taken and settled by one CAS. */
static enum got get_inline(py_queue *self, shmq_delivery *d, PyObject **body) {
    bool intact;
    *body = delivery_body(self, d, &intact);
    if (*body == NULL) {
        shmq_offer_cancel(self->q, d);
        return GOT_ERROR;
    }
    if (SHMQ_UNLIKELY(!intact)) {
        Py_CLEAR(*body);
        if (shmq_offer_acquire(self->q, d) == SHMQ_SETTLED) {
            return GOT_AGAIN; /* taken over meanwhile: the copy was of another message */
        }
        return damaged(self, d);
    }
    if (SHMQ_UNLIKELY(shmq_offer_finish(self->q, d) != SHMQ_OK)) {
        Py_CLEAR(*body);
        return GOT_AGAIN;
    }
    return GOT;
}

/* Everything else: acquired first, so that a long copy or a decoder is not taken over. */
static enum got get_acquired(py_queue *self, shmq_delivery *d, PyObject **body) {
    shmq_status status = shmq_offer_acquire(self->q, d);
    if (status == SHMQ_SETTLED) {
        return GOT_AGAIN;
    }
    if (status == SHMQ_POISONED) {
        return bury(self, d) ? GOT_AGAIN : GOT_ERROR;
    }
    if (!is_direct(self, d->content)) {
        shmq_add_relaxed(&self->q->counters->received, 1);
        PyObject *delivery = delivery_new(self, d);
        PyObject *taken = delivery != NULL ? PyObject_CallMethod((PyObject *)self, "_take", "O", delivery) : NULL;
        Py_XDECREF(delivery);
        if (taken == NULL ||
            taken == Py_None) { /* None: it was taken away from us, for its time or its place was over */
            Py_XDECREF(taken);
            return taken == NULL ? GOT_ERROR : GOT_AGAIN;
        }
        *body = PySequence_GetItem(taken, 0);
        Py_DECREF(taken);
        return *body != NULL ? GOT : GOT_ERROR;
    }
    bool intact;
    *body = delivery_body(self, d, &intact);
    if (*body != NULL && !intact) {
        Py_CLEAR(*body);
        return damaged(self, d);
    }
    if (*body == NULL) {
        (void)shmq_release(self->q, d, false);
        return GOT_ERROR;
    }
    if (shmq_settle(self->q, d) != SHMQ_OK) {
        Py_CLEAR(*body); /* stolen: purged or deleted under us */
        return GOT_AGAIN;
    }
    shmq_add_relaxed(&self->q->counters->got, 1);
    return GOT;
}

static enum got get_one(py_queue *self, uint64_t until_ns, PyObject **body, shmq_status *status) {
    shmq_delivery d;
    *status = next_offer(self, shmq_self(self->q), NULL, 0, until_ns, &d);
    if (*status != SHMQ_OK) {
        return GOT_ERROR;
    }
    bool simple = d.body == 0 && is_direct(self, d.content);
    if (SHMQ_LIKELY(simple) && !is_to_be_buried(self, &d)) {
        return get_inline(self, &d, body);
    }
    return get_acquired(self, &d, body);
}

static bool timeout_of(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t wanted, PyObject *names, const char *what,
                       uint64_t *until_ns) {
    Py_ssize_t keywords = names != NULL ? PyTuple_Size(names) : 0;
    *until_ns = SHMQ_FOR_EVER;
    if (nargs != wanted || keywords > 1 ||
        (keywords == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "timeout") != 0)) {
        PyErr_Format(PyExc_TypeError, "%s expected; timeout is its only keyword", what);
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
    if (!queue_begins(self)) {
        return NULL;
    }
    for (;;) {
        PyObject *body = NULL;
        shmq_status status;
        enum got got = get_one(self, until, &body, &status);
        if (SHMQ_LIKELY(got == GOT)) {
            return body;
        }
        if (got == GOT_ERROR) {
            return status == SHMQ_OK || PyErr_Occurred() ? NULL : queue_raise(self, status);
        }
    }
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
    PyObject *list = queue_begins(self) ? PyList_New(0) : NULL;
    while (list != NULL && PyList_Size(list) < limit) {
        PyObject *body = NULL;
        shmq_status status;
        bool first = PyList_Size(list) == 0;
        enum got got = get_one(self, first ? until : 0, &body, &status);
        if (got == GOT) {
            int failed = PyList_Append(list, body);
            Py_DECREF(body);
            if (failed) {
                Py_CLEAR(list);
            }
        } else if (got == GOT_ERROR) {
            bool interrupted = PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception);
            if (!first && !interrupted) {
                PyErr_Clear(); /* what was taken is handed over; the next call meets the reason again */
                return list;
            }
            if (status == SHMQ_EMPTY && !PyErr_Occurred()) {
                return list;
            }
            if (status != SHMQ_OK && !PyErr_Occurred()) {
                queue_raise(self, status);
            }
            Py_CLEAR(list);
        }
    }
    return list;
}

bool queue_acquired(py_queue *self, shmq_status status, shmq_delivery *d, PyObject **delivery) {
    *delivery = NULL;
    if (status == SHMQ_SETTLED) {
        return true;
    }
    if (status != SHMQ_OK) {
        return bury(self, d);
    }
    shmq_add_relaxed(&self->q->counters->received, 1);
    bool intact = true;
    if (d->body_len > BIG_COPY) {
        BEGIN_WAIT(self)
        intact = shmq_delivery_intact(self->q, d);
        END_WAIT(self)
    } else {
        intact = shmq_delivery_intact(self->q, d);
    }
    if (!intact) {
        return damaged(self, d) == GOT_AGAIN;
    }
    *delivery = delivery_new(self, d);
    if (*delivery == NULL) {
        (void)shmq_release(self->q, d, false);
    }
    return false;
}

/* _receive(owner row, wait row, timeout, subscription or None) -> Delivery, acquired by that consumer. Bodies that died too often are buried on the way. */
PyObject *queue_receive(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_queue *self = (py_queue *)o;
    uint64_t until;
    shmq_subscription *by;
    if (nargs != 4) {
        PyErr_SetString(PyExc_TypeError, "_receive(owner row, wait row, timeout, subscription)");
        return NULL;
    }
    long owner = PyLong_AsLong(args[0]), row = PyLong_AsLong(args[1]);
    if (PyErr_Occurred() || !parse_timeout(args[2], &until) || !subscription_of(args[3], &by) || !queue_begins(self)) {
        return NULL;
    }
    if (owner < 1 || owner >= (long)SHMQ_CONSUMER_ROWS || row < 0 || row >= (long)SHMQ_CONSUMER_ROWS) {
        PyErr_SetString(PyExc_ValueError, "no such consumer row");
        return NULL;
    }
    for (;;) {
        shmq_delivery d;
        bool ranked = SHMQ_UNLIKELY((shmq_load_relaxed(&self->q->page->terms) & SHMQ_TERM_RANKED) != 0);
        if (ranked) {
            shmq_want(self->q, (uint32_t)owner);
        }
        shmq_status status = next_offer(self, (uint32_t)owner, by, (uint32_t)row, until, &d);
        if (ranked && status != SHMQ_OK) {
            shmq_want_end(self->q, (uint32_t)owner);
        }
        if (status == SHMQ_OK) {
            status = shmq_offer_acquire(self->q, &d);
            if (ranked) {
                shmq_want_end(self->q, (uint32_t)owner);
            }
            PyObject *delivery = NULL;
            if (queue_acquired(self, status, &d, &delivery)) {
                continue;
            }
            return delivery;
        }
        return PyErr_Occurred() ? NULL : queue_raise(self, status);
    }
}
