/* Receives the next message of several queues; peek_any says whether there is one. */
#include "py_consumer.h"

#define QUEUES_MAX 1024

/* The arguments as C has them. The caller's tuple holds what they point to. */
typedef struct several {
    py_queue **queues;
    shmq_queue_wait *of;
    uint32_t count;
    bool own_rows;
} several;

static void several_clear(several *s) {
    PyMem_Free(s->queues);
    PyMem_Free(s->of);
}

static bool several_room(several *s, Py_ssize_t count) {
    if (count < 1 || count > QUEUES_MAX) {
        PyErr_Format(PyExc_ValueError, "a tuple of 1 to %d parts is expected", QUEUES_MAX);
        return false;
    }
    s->queues = PyMem_Calloc((size_t)count, sizeof(py_queue *));
    s->of = PyMem_Calloc((size_t)count, sizeof(shmq_queue_wait));
    s->count = (uint32_t)count;
    if (s->queues == NULL || s->of == NULL) {
        PyErr_NoMemory();
        return false;
    }
    return true;
}

/* From a tuple of (queue, row, subscription or None). False with an exception set. */
static bool several_of(PyObject *parts, several *s) {
    Py_ssize_t count = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0;
    if (!several_room(s, count)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *queue, *subscription;
        unsigned int row;
        shmq_queue_wait *of = &s->of[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(parts, i), "O!IO", queue_type, &queue, &row, &subscription) ||
            !subscription_of(subscription, &of->by) || !queue_begins((py_queue *)queue) ||
            !queue_ready((py_queue *)queue)) {
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

/* From a tuple of consumers, parts of one whole. False with an exception set. */
static bool several_parts(PyObject *parts, several *s) {
    Py_ssize_t count = PyTuple_Check(parts) ? PyTuple_Size(parts) : 0;
    if (!several_room(s, count)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        py_consumer *part = (py_consumer *)PyTuple_GetItem(parts, i);
        if (!PyType_IsSubtype(Py_TYPE((PyObject *)part), consumer_type) || part->owner == NULL || part->several) {
            PyErr_SetString(PyExc_TypeError, "a consumer of one queue is expected");
            return false;
        }
        if (!queue_takes(part->queue) || !queue_ready(part->queue)) {
            return false;
        }
        s->queues[i] = part->queue;
        s->of[i] = (shmq_queue_wait){.q = part->q,
                                     .owner = part->row,
                                     .row = s->own_rows ? part->row : 0,
                                     .by = &((py_subscription *)part->subscription)->s};
    }
    return true;
}

/* The message of an entry that part `from` has acquired; the next one is looked for behind its queue first. NULL: as
 * message_new(). */
static PyObject *message_of(py_consumer *whole, PyObject *parts, uint32_t from, const shmq_delivery *d) {
    py_message *message = message_new((py_consumer *)PyTuple_GetItem(parts, from), d, NULL);
    whole->turn = message != NULL ? from + 1 : whole->turn;
    return (PyObject *)message;
}

/* A Message, or an exception. */
static PyObject *next_of_any(py_consumer *whole, PyObject *parts, several *s, uint64_t until_ns) {
    py_caller caller;
    caller_begins(&caller, s->queues[0]);
    const shmq_taking t = {.until_ns = until_ns, .caller = &caller.c};
    for (;;) {
        shmq_delivery d;
        uint32_t from = 0;
        shmq_status status = shmq_receive_any(s->of, s->count, whole->turn, &t, &from, &d);
        if (status == SHMQ_OK) {
            PyObject *message = message_of(whole, parts, from, &d);
            if (message != NULL || PyErr_Occurred()) {
                return message;
            }
        } else if (status != SHMQ_POISONED || !queue_dead_letter(s->queues[from], &d)) {
            return queue_raise(s->queues[from], status);
        }
    }
}

/* ---- what has news ---- */

/* A consumer of several queues remembers this between its calls. The consumer has its parts, which keep all that this
 * points to. */
struct consumer_news {
    PyObject *parts; /* borrowed */
    several s;
    shmq_news *of;
    uint64_t since_ns; /* of all that is remembered */
};

void consumer_news_free(consumer_news *n) {
    if (n != NULL) {
        several_clear(&n->s);
        PyMem_Free(n->of);
        PyMem_Free(n);
    }
}

/* NULL with an exception set. */
static consumer_news *news_of(py_consumer *whole, PyObject *parts) {
    consumer_news *n = whole->news;
    if (SHMQ_LIKELY(n != NULL)) {
        return n;
    }
    n = PyMem_Calloc(1, sizeof *n);
    if (n == NULL) {
        return (consumer_news *)PyErr_NoMemory();
    }
    if (!several_parts(parts, &n->s) || (n->of = PyMem_Calloc(n->s.count, sizeof *n->of)) == NULL) {
        consumer_news_free(n);
        return PyErr_Occurred() ? NULL : (consumer_news *)PyErr_NoMemory();
    }
    shmq_news_begin(n->of, n->s.of, n->s.count);
    n->parts = parts;
    return whole->news = n;
}

static void forget_in_time(const py_consumer *whole, consumer_news *n) {
    uint64_t now = shmq_about_now_ns();
    if (SHMQ_UNLIKELY(now - n->since_ns >= whole->q->m->patience_ns)) {
        n->since_ns = now;
        shmq_news_forget(n->of, n->s.count);
    }
}

/* A Message of a queue that has news. NULL without an exception: the whole call has to look. */
static PyObject *next_of_news(py_consumer *whole, PyObject *parts) {
    consumer_news *n = whole->owner->untold == NULL && consumer_usable(whole) == SHMQ_OK ? news_of(whole, parts) : NULL;
    if (n == NULL || !queue_begins(n->s.queues[0])) {
        return NULL;
    }
    py_caller caller;
    caller_begins(&caller, n->s.queues[0]);
    const shmq_taking t = {.caller = &caller.c};
    forget_in_time(whole, n);
    for (;;) {
        shmq_delivery d;
        uint32_t from = 0;
        shmq_status status = shmq_receive_news(n->s.of, n->of, n->s.count, whole->turn, &t, &from, &d);
        if (status == SHMQ_OK) {
            PyObject *message = message_of(whole, parts, from, &d);
            if (message != NULL || PyErr_Occurred()) {
                return message;
            }
        } else if (status == SHMQ_EMPTY) {
            return NULL;
        } else if (status != SHMQ_POISONED || !queue_dead_letter(n->s.queues[from], &d)) {
            return queue_raise(n->s.queues[from], status);
        }
    }
}

/* Behind the look of a thread that has entered. */
static PyObject *left_with(py_consumer *whole, bool own_rows, PyObject *found) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    if (consumer_leaves(whole, own_rows) < 0) { /* if a handler raises, the message goes back */
        Py_CLEAR(found);
        Py_CLEAR(kind);
        Py_CLEAR(error);
        Py_CLEAR(trace);
    } else {
        PyErr_Restore(kind, error, trace);
    }
    return consumer_left(whole, found);
}

PyObject *consumer_take_news(py_consumer *whole) {
    bool own_rows;
    if (whole->news == NULL || !consumer_enters(whole, &own_rows)) {
        Py_RETURN_NONE;
    }
    PyObject *found = left_with(whole, own_rows, next_of_news(whole, whole->news->parts));
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

PyObject *consumer_take_any(PyObject *o, PyObject *args) {
    py_consumer *whole = (py_consumer *)o;
    PyObject *parts, *timeout;
    uint64_t until;
    several s = {0};
    if (!PyArg_ParseTuple(args, "OO", &parts, &timeout) || !parse_timeout(timeout, &until)) {
        return NULL;
    }
    if (!consumer_is_open(whole)) {
        return NULL;
    }
    if (!consumer_enters(whole, &s.own_rows)) {
        Py_RETURN_NONE;
    }
    PyObject *found = next_of_news(whole, parts);
    if (found == NULL && !PyErr_Occurred() && several_parts(parts, &s)) {
        found = next_of_any(whole, parts, &s, until);
    }
    several_clear(&s);
    return left_with(whole, s.own_rows, found);
}

/* Waits without the interpreter lock until a queue has something. */
static shmq_status peek(several *s, uint32_t *from) {
    py_queue *self = s->queues[0];
    shmq_status status;
    do {
        BEGIN_WAIT(self)
        status = shmq_peek_wait_any(s->of, s->count, SHMQ_FOR_EVER, from);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    return status;
}

/* peek_any(((queue, row, subscription), ...), own rows): returns when a receive is worth a try, and raises what the
 * receive would raise. After it the caller receives, or calls peek_pass_on(). */
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
        shmq_want_any(s.of, s.count);
        shmq_status status = peek(&s, &from);
        if (status == SHMQ_OK) {
            answer = Py_NewRef(Py_None); /* it still wants: others leave the entry to the taker to come */
        } else {
            shmq_want_any_end(s.of, s.count);
            (void)queue_raise(s.queues[from], status);
        }
    }
    several_clear(&s);
    return answer;
}

/* peek_pass_on(((queue, row, subscription), ...)): no thread came to take the entry; wakes others for it. */
static PyObject *peek_pass_on(PyObject *module, PyObject *parts) {
    several s = {0};
    (void)module;
    bool good = several_of(parts, &s);
    for (uint32_t i = 0; good && i < s.count; i++) {
        if (shmq_queue_enter(s.of[i].q) != SHMQ_OK) { /* without credit a thread does its upkeep here */
            shmq_trail_clear();
        } else if (shmq_is_wanting(s.of[i].q, s.of[i].owner)) {
            shmq_want_end(s.of[i].q, s.of[i].owner);
        } else {
            shmq_peek_pass_on(s.of[i].q);
        }
    }
    several_clear(&s);
    return good ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef receive_any_functions[] = {
    {"peek_any", peek_any, METH_VARARGS, "Wait until one of several queues has something."},
    {"peek_pass_on", peek_pass_on, METH_O, "Others may take what peek_any() has found."},
    {NULL, NULL, 0, NULL},
};
