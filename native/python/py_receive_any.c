/* receive_any: the next message of several queues; peek_any: whether there is one. */
#include "py_subscription.h"
#include "shmq/ranks.h"
#include "shmq/waiter.h"

#define QUEUES_MAX 1024

/* The arguments as C has them; what they point to the caller's tuple holds. */
typedef struct several {
    py_queue **queues;
    shmq_waiter_of *of;
    uint32_t count;
    bool own_rows;
} several;

static void several_clear(several *s) {
    PyMem_Free(s->queues);
    PyMem_Free(s->of);
}

/* From a tuple of (queue, row, subscription or None). False with an exception set. */
static bool several_of(PyObject *parts, several *s) {
    Py_ssize_t count = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0;
    if (count < 1 || count > QUEUES_MAX) {
        PyErr_Format(PyExc_ValueError, "a tuple of 1 to %d parts is expected", QUEUES_MAX);
        return false;
    }
    s->queues = PyMem_Calloc((size_t)count, sizeof(py_queue *));
    s->of = PyMem_Calloc((size_t)count, sizeof(shmq_waiter_of));
    if (s->queues == NULL || s->of == NULL) {
        PyErr_NoMemory();
        return false;
    }
    s->count = (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *queue, *subscription;
        unsigned int row;
        shmq_waiter_of *of = &s->of[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(parts, i), "O!IO", queue_type, &queue, &row, &subscription) ||
            !subscription_of(subscription, &of->by) || !queue_begins((py_queue *)queue)) {
            return false;
        }
        s->queues[i] = (py_queue *)queue;
        of->q = s->queues[i]->q;
        if (row < 1 || row >= SHMQ_CONSUMER_ROWS || of->q->m != s->of[0].q->m) {
            PyErr_SetString(PyExc_ValueError, "no such consumer row, or queues of several brokers");
            return false;
        }
        of->owner = row;
        of->row = s->own_rows ? row : 0;
    }
    return true;
}

/* Those of its queues whose consumers differ in priority know that it wants something. */
static void want_begins(several *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        s->of[i].wants = SHMQ_UNLIKELY((shmq_load_relaxed(&s->of[i].q->page->terms) & SHMQ_TERM_RANKED) != 0);
        if (s->of[i].wants) {
            shmq_want(s->of[i].q, s->of[i].owner);
        }
    }
}

static void want_ends(several *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->of[i].wants) {
            shmq_want_end(s->of[i].q, s->of[i].owner);
        }
    }
}

/* OFFERED to us: at once with the interpreter lock, then waiting without it. */
static shmq_status next_of_any(several *s, uint32_t first, uint64_t until_ns, uint32_t *from, shmq_delivery *d) {
    py_queue *self = s->queues[0];
    shmq_status status = shmq_offer_any(s->of, s->count, first, from, d);
    if (status != SHMQ_EMPTY) {
        return status;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_offer_wait_any(s->of, s->count, first, until_ns, from, d);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    if (status == SHMQ_OK && PyErr_CheckSignals() < 0) { /* the signal came while we waited: then nothing was taken */
        shmq_offer_cancel(s->of[*from].q, d);
        status = SHMQ_INTERRUPTED;
    }
    return status;
}

/* receive_any(((queue, row, subscription), ...), own rows, first, timeout) -> (which queue, Delivery); None: nothing came */
static PyObject *receive_any(PyObject *module, PyObject *args) {
    PyObject *parts, *timeout;
    int own_rows;
    unsigned int first;
    uint64_t until;
    several s = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OpIO", &parts, &own_rows, &first, &timeout) || !parse_timeout(timeout, &until)) {
        return NULL;
    }
    s.own_rows = own_rows != 0;
    PyObject *answer = NULL;
    bool again = several_of(parts, &s);
    while (again) {
        shmq_delivery d;
        uint32_t from = 0;
        want_begins(&s);
        shmq_status status = next_of_any(&s, first, until, &from, &d);
        py_queue *self = s.queues[from];
        bool offered = status == SHMQ_OK;
        if (offered) {
            status = shmq_offer_acquire(self->q, &d);
        }
        want_ends(&s);
        if (!offered) {
            answer = status == SHMQ_EMPTY && !PyErr_Occurred() ? Py_NewRef(Py_None) : queue_raise(self, status);
            break;
        }
        PyObject *delivery = NULL;
        again = queue_acquired(self, status, &d, &delivery);
        answer = delivery != NULL ? Py_BuildValue("(IN)", from, delivery) : NULL;
    }
    several_clear(&s);
    return answer;
}

/* Without the interpreter lock, until one of them has something. */
static shmq_status peek(several *s, uint32_t *from) {
    py_queue *self = s->queues[0];
    shmq_waiter_of *one = s->of;
    shmq_status status;
    do {
        BEGIN_WAIT(self)
        status = s->count == 1 ? shmq_peek_wait(one->q, one->owner, one->by, one->row, SHMQ_FOR_EVER)
                               : shmq_peek_wait_any(s->of, s->count, SHMQ_FOR_EVER, from);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    return status;
}

/* peek_any(((queue, row, subscription), ...), own rows): returns when a receive is worth a try, and raises what it would
 * raise. Whoever was told takes, or calls peek_pass_on(). */
static PyObject *peek_any(PyObject *module, PyObject *args) {
    PyObject *parts;
    int own_rows;
    several s = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &parts, &own_rows)) {
        return NULL;
    }
    s.own_rows = own_rows != 0;
    PyObject *answer = NULL;
    if (several_of(parts, &s)) {
        uint32_t from = 0;
        want_begins(&s);
        shmq_status status = peek(&s, &from);
        if (status == SHMQ_OK) {
            answer = Py_NewRef(Py_None); /* it still wants: others leave the entry to who will take it */
        } else {
            want_ends(&s);
            (void)queue_raise(s.queues[from], status);
        }
    }
    several_clear(&s);
    return answer;
}

static bool is_wanting(const shmq_waiter_of *of) {
    return shmq_load_seq(&of->q->page->sleepers[of->owner / 64].want) >> (of->owner & 63) & 1;
}

/* peek_pass_on(((queue, row, subscription), ...)): nobody came to take what peek_any() told of; others may. */
static PyObject *peek_pass_on(PyObject *module, PyObject *parts) {
    several s = {0};
    (void)module;
    bool good = several_of(parts, &s);
    for (uint32_t i = 0; good && i < s.count; i++) {
        if (shmq_queue_usable(s.of[i].q) != SHMQ_OK) {
            shmq_trail_clear();
        } else if (is_wanting(&s.of[i])) {
            shmq_want_end(s.of[i].q, s.of[i].owner);
        } else {
            shmq_peek_pass_on(s.of[i].q);
        }
    }
    several_clear(&s);
    return good ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef receive_any_functions[] = {
    {"receive_any", receive_any, METH_VARARGS, "The next message of several queues."},
    {"peek_any", peek_any, METH_VARARGS, "Wait until one of several queues has something."},
    {"peek_pass_on", peek_pass_on, METH_O, "What peek_any() told of is for others, too."},
    {NULL, NULL, 0, NULL},
};
