/* Moves many entries at once from one queue to another. */
#include "py_subscription.h"

static bool is_target(py_queue *self, py_queue *to) {
    if (self->q->m != to->q->m || self->q == to->q) {
        PyErr_SetString(PyExc_ValueError, "another queue of the same broker is expected");
        return false;
    }
    return true;
}

/* Between two pieces of a claim. False: it has ended, or an exception is set. */
static bool goes_on(py_queue *self, shmq_status status, shmq_claimed *result) {
    if (status == SHMQ_POISONED && !queue_dead_letter(self, &result->dead)) {
        return false;
    }
    return (status == SHMQ_INTERRUPTED || status == SHMQ_POISONED) && queue_goes_on(self);
}

static PyObject *claimed(py_queue *self, py_queue *to, const shmq_claim_limits *limits, shmq_subscription *by) {
    shmq_claimed result = {0};
    shmq_status status;
    do {
        BEGIN_WAIT(self)
        status = shmq_claim(self->q, to->q, limits, by, &result);
        END_WAIT(self)
    } while (goes_on(self, status, &result));
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (status != SHMQ_OK) {
        bool own = status == SHMQ_REFUSED || status == SHMQ_CORRUPT || shmq_queue_usable(self->q) != SHMQ_OK;
        return queue_raise(own ? self : to, status);
    }
    bool full =
        result.ended != SHMQ_OK && result.ended != SHMQ_EMPTY; /* or the queue cannot be used: the next call says why */
    return Py_BuildValue("(KKO)", (unsigned long long)result.entries, (unsigned long long)result.bytes,
                         full ? Py_True : Py_False);
}

/* _claim(to, limit, max_bytes, subscription or None) -> (entries, bytes, was there no room for more?) */
static PyObject *queue_claim(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *target, *subscription;
    unsigned long long entries, bytes;
    shmq_subscription *by, own;
    if (!PyArg_ParseTuple(args, "O!KKO", queue_type, &target, &entries, &bytes, &subscription) ||
        !subscription_of(subscription, &by) || !queue_takes(self) || !queue_ready((py_queue *)target) ||
        !is_target(self, (py_queue *)target)) {
        return NULL;
    }
    shmq_claim_limits limits = {.entries = entries, .bytes = bytes};
    if (by != NULL) {
        return claimed(self, (py_queue *)target, &limits, by);
    }
    shmq_subscription_begin(&own, NULL, NULL);
    PyObject *answer = claimed(self, (py_queue *)target, &limits, &own);
    shmq_subscription_end(&own);
    return answer;
}

PyMethodDef queue_claim_methods[] = {
    {"_claim", queue_claim, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
