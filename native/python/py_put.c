/* put and put_many. On the fast path, for bytes or text without options, there is one call into the core and none into
 * Python. */
#include <string.h>

#include "py_put_options.h"
#include "py_queue.h"

/* The try with the interpreter lock found no room: waits without the lock, as far as the caller allows. */
static SHMQ_NOINLINE shmq_status put_unlocked(py_queue *self, parcel *p, uint64_t until_ns, room_wait *wait,
                                              shmq_status status) {
    room_wait own = {0};
    wait = wait != NULL ? wait : &own;
    if (shmq_no_room(status) && p->out.body_len <= BIG_COPY) {
        until_ns = shmq_overflow_until(self->q, until_ns);
    }
    room_wait_begins(wait, until_ns);
    /* Moving entries to disk for room is done without the interpreter lock. */
    bool again = until_ns != 0 || p->out.body_len > BIG_COPY || shmq_may_flow(self->q);
    while (status == SHMQ_INTERRUPTED || (again && (shmq_no_room(status) || status == SHMQ_FULL_MEMORY ||
                                                    (status == SHMQ_NO_SPACE && shmq_may_flow(self->q))))) {
        BEGIN_WAIT(self)
        status = shmq_put(self->q, &p->out, until_ns);
        END_WAIT(self)
        if (status != SHMQ_INTERRUPTED || !room_wait_goes_on(self, wait, p->out.wait.lacking)) {
            break;
        }
    }
    if (status != SHMQ_OK) {
        shmq_unprepare(self->q, &p->out);
    }
    return status;
}

/* Puts one prepared parcel: first at once with the interpreter lock, then waiting without it. `wait`: of a call with
 * several parcels. */
static shmq_status put_parcel(py_queue *self, parcel *p, uint64_t until_ns, room_wait *wait) {
    shmq_status status = SHMQ_FULL_COUNT;
    if (SHMQ_LIKELY(p->out.body_len <= BIG_COPY && !p->out.wait.ticket.in_line)) { /* else it would lose its ticket */
        p->out.wait.brief = shmq_may_flow(self->q);
        status = shmq_put(self->q, &p->out, 0);
        p->out.wait.brief = false;
    }
    return SHMQ_LIKELY(status == SHMQ_OK) ? status : put_unlocked(self, p, until_ns, wait, status);
}

static PyObject *raise_returned(py_queue *self, const char *status) {
    PyObject *error = PyObject_CallMethod((PyObject *)self, "_failure", "ssi", status, "", 0);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    return NULL;
}

/* Waits until the message is taken, and withdraws it when the time is over. An exception of a handler withdraws it,
 * too. */
static shmq_status see_taken(py_queue *self, const parcel *p, uint64_t until_ns) {
    shmq_lock_seen seen = {0};
    shmq_status status;
    do {
        BEGIN_WAIT(self)
        status = shmq_immediate(self->q, &p->out, until_ns, &seen);
        END_WAIT(self)
        if (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() < 0) {
            until_ns = 0;
        }
    } while (status == SHMQ_INTERRUPTED);
    return status;
}

static PyObject *put_and_clear(py_queue *self, parcel *p, uint64_t until_ns) {
    uint64_t immediate = p->extras.immediate_ns, taken_by = 0;
    if (SHMQ_UNLIKELY(p->immediate)) {
        taken_by = immediate == 0 ? shmq_immediate_until(self->q) : 0;
        p->out.receipt = shmq_receipt_begin(self->q->m);
    }
    shmq_status status = put_parcel(self, p, until_ns, NULL);
    uint64_t id = p->out.made.message_id;
    if (SHMQ_UNLIKELY(p->immediate) && status == SHMQ_OK) {
        status = see_taken(self, p, taken_by != 0 ? taken_by : shmq_now_ns() + immediate);
        if (status != SHMQ_OK && !PyErr_Occurred()) {
            (void)raise_returned(self, status == SHMQ_EMPTY ? "RETURNED" : "TAKEN_OUT");
        }
    }
    shmq_receipt_end(self->q->m, p->out.receipt);
    parcel_clear(p);
    if (SHMQ_LIKELY(status == SHMQ_OK) && SHMQ_LIKELY(!p->immediate || !PyErr_Occurred())) {
        return PyLong_FromUnsignedLongLong(id);
    }
    return PyErr_Occurred() ? NULL : queue_raise(self, status);
}

/* self.<method>(body, {keyword: value}) */
static PyObject *call_slow(PyObject *o, const char *method, PyObject *body, PyObject *const *values, PyObject *names) {
    PyObject *options = PyDict_New();
    Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; options != NULL && i < count; i++) {
        if (PyDict_SetItem(options, PyTuple_GetItem(names, i), values[i]) < 0) {
            Py_CLEAR(options);
        }
    }
    if (options == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_CallMethod(o, method, "OO", body, options);
    Py_DECREF(options);
    return result;
}

/* Gives a parcel of a simple body its options; `o` has to outlive it. */
static void parcel_opted(parcel *p, const put_options *o) {
    p->extras = o->extras;
    p->out.priority = o->extras.priority;
    p->out.headers = o->block.at;
    p->out.headers_len = (uint32_t)o->block.used;
    parcel_timed(&p->out, &p->extras);
}

PyObject *queue_put(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    py_queue *self = (py_queue *)o;
    parcel p = {0};
    put_options options = {0};
    uint64_t until = SHMQ_FOR_EVER;
    if (nargs != 1) {
        PyErr_Format(PyExc_TypeError, "put() takes one positional argument, the body (%zd given); options are keywords",
                     nargs);
        return NULL;
    }
    bool plain =
        (names == NULL || put_options_plain(&options, args + nargs, names)) && parcel_simple(&p, self, args[0]);
    if (plain && ((options.timeout != NULL && !parse_timeout(options.timeout, &until)) || !queue_begins(self))) {
        parcel_clear(&p);
        put_options_clear(&options);
        return NULL;
    }
    if (SHMQ_LIKELY(plain && !options.others)) {
        return put_and_clear(self, &p, until);
    }
    PyObject *id;
    if (plain && put_options_fit(&options, self->q)) {
        parcel_opted(&p, &options);
        id = put_and_clear(self, &p, until);
    } else {
        parcel_clear(&p);
        id = call_slow(o, "_put_slow", args[0], args + nargs, names);
    }
    put_options_clear(&options);
    return id;
}

/* _put_encoded(content, head, pieces, timeout, extras): the slow path calls it with the encoded body. */
PyObject *queue_put_encoded(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_queue *self = (py_queue *)o;
    parcel p = {0};
    uint64_t until;
    if (nargs != 5) {
        PyErr_SetString(PyExc_TypeError, "_put_encoded(content, head, pieces, timeout, extras)");
        return NULL;
    }
    if (!parse_timeout(args[3], &until) || !queue_begins(self) || !parcel_encoded(&p, args[0], args[1], args[2]) ||
        !extras_parsed(args[4], &p.extras)) {
        parcel_clear(&p);
        return NULL;
    }
    parcel_timed(&p.out, &p.extras);
    p.out.priority = p.extras.priority;
    p.immediate = p.extras.immediate_ns != SHMQ_NEVER;
    return put_and_clear(self, &p, until);
}

/* The part that all bodies of a batch have in common. */
typedef struct batch {
    put_options plain;
    bool is_plain;
    PyObject *const *values; /* of the call, with their `names` */
    PyObject *names;
    PyObject *headers, *extras; /* None or not, of `options`; once a body needs them */
    PyObject *options;          /* strong or NULL */
} batch;

/* The options as Python reads them. False with an exception set. */
static bool batch_options(py_queue *self, batch *b, PyObject *bodies) {
    if (!b->plain.others || b->options != NULL) {
        return true;
    }
    b->options = call_slow((PyObject *)self, "_batch_options", bodies, b->values, b->names);
    return b->options != NULL && PyArg_ParseTuple(b->options, "OO", &b->headers, &b->extras);
}

/* One body of a batch: simple, or the answer of self._encode(body). */
static bool batch_parcel(py_queue *self, parcel *p, PyObject *body, batch *b) {
    if (b->is_plain && parcel_simple(p, self, body)) {
        parcel_opted(p, &b->plain);
        return true;
    }
    if (!batch_options(self, b, body) || !extras_parsed(b->extras, &p->extras)) {
        return false;
    }
    PyObject *encoded = PyObject_CallMethod((PyObject *)self, "_encode", "OO", body, b->headers);
    if (encoded == NULL) {
        return false;
    }
    PyObject *content, *full_headers, *pieces;
    bool ok = PyArg_ParseTuple(encoded, "OOO", &content, &full_headers, &pieces) &&
              parcel_encoded(p, content, full_headers, pieces);
    p->out.priority = p->extras.priority;
    parcel_timed(&p->out, &p->extras);
    Py_DECREF(encoded);
    return ok;
}

shmq_status queue_put_batch(py_queue *self, parcel *parcels, shmq_outgoing *out, uint32_t count, uint64_t until_ns,
                            room_wait *wait, uint32_t *done) {
    shmq_status status = shmq_queue_enter(self->q);
    *done = 0;
    if (count != 0) {
        parcels[count - 1].out.wait.more = false;
    }
    while (*done < count && status == SHMQ_OK) {
        if (*done != 0) { /* a producer that has waited once stays in line until all are in */
            shmq_line_hand_on(&parcels[*done - 1].out.wait.ticket, &parcels[*done].out.wait.ticket);
        }
        uint32_t ready = *done, put = 0;
        for (; ready < count && parcels[ready].out.body_len <= self->q->first.inline_bytes; ready++) {
            parcels[ready].out.wait.brief =
                true; /* a block for its headers: with the interpreter lock nobody waits for one */
            shmq_status prepared = shmq_prepare(self->q, &parcels[ready].out, 0);
            parcels[ready].out.wait.brief = false;
            if (prepared != SHMQ_OK) {
                break;
            }
            out[ready] = parcels[ready].out;
        }
        if (ready > *done && (status = shmq_queue_usable(self->q)) == SHMQ_OK && shmq_is_open(self->q)) {
            status = shmq_put_some(self->q, out + *done, ready - *done, &put);
            for (uint32_t i = *done; i < ready; i++) {
                parcels[i].out = out[i];
            }
        }
        *done += put;
        if (*done < count && (status != SHMQ_OK || put == 0)) {
            /* One by itself, with waiting: there is no room, or its body is large. */
            status = put_parcel(self, &parcels[*done], until_ns, wait);
            *done += status == SHMQ_OK;
        }
    }
    for (uint32_t i = *done; i < count; i++) {
        shmq_unprepare(self->q, &parcels[i].out);
    }
    return status;
}

void queue_tell_accepted(unsigned long long accepted) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    PyObject *count = PyLong_FromUnsignedLongLong(accepted);
    if (count == NULL || PyObject_SetAttrString(error, "accepted", count) < 0) {
        PyErr_Clear(); /* an exception of the iterator that takes no attributes is raised as it is */
    }
    Py_XDECREF(count);
    PyErr_Restore(kind, error, trace);
}

/* A codec that refuses a body knows nothing of the others. Our TypeError says it in its text, what a user's codec raises
 * stays as it is, with a note. */
static void name_the_body(unsigned long long number) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    PyObject *which = PyUnicode_FromFormat("put_many(), body number %llu, counted from 0", number);
    PyObject *text = which != NULL && kind == PyExc_TypeError ? PyObject_Str(error) : NULL;
    if (text != NULL) {
        PyErr_Format(PyExc_TypeError, "%U: %U", which, text);
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    } else {
        PyObject *noted = which != NULL ? PyObject_CallMethod(error, "add_note", "O", which) : NULL;
        Py_XDECREF(noted);
        PyErr_Clear();
        PyErr_Restore(kind, error, trace);
    }
    Py_XDECREF(text);
    Py_XDECREF(which);
}

/* -1 with an exception set. */
static int is_mapping(PyObject *o) {
    if (PyDict_Check(o) || PyList_Check(o) || PyTuple_Check(o) || PyIter_Check(o)) {
        return PyDict_Check(o);
    }
    PyObject *module = PyImport_ImportModule("collections.abc");
    PyObject *mapping = module != NULL ? PyObject_GetAttrString(module, "Mapping") : NULL;
    int answer = mapping != NULL ? PyObject_IsInstance(o, mapping) : -1;
    Py_XDECREF(mapping);
    Py_XDECREF(module);
    return answer;
}

/* One body, meant for put(): as an iterable it gives its characters, numbers or keys. True: an exception is set. */
static bool is_one_body(PyObject *bodies) {
    const char *parts = PyUnicode_Check(bodies) ? "characters" : "bytes as numbers";
    if (!PyUnicode_Check(bodies) && !PyBytes_Check(bodies) && !PyByteArray_Check(bodies) &&
        !PyMemoryView_Check(bodies)) {
        int answer = is_mapping(bodies);
        if (answer <= 0) {
            return answer < 0;
        }
        parts = "keys";
    }
    PyObject *type = PyType_GetName(Py_TYPE(bodies));
    if (type != NULL) {
        PyErr_Format(PyExc_TypeError,
                     "put_many() of one %U, which would put its %s one by one: put() puts one message; "
                     "put_many(list(...)) if that was meant",
                     type, parts);
        Py_DECREF(type);
    }
    return true;
}

/* False: an exception is set. *total: how many were put, in both cases. */
static bool put_iterator(py_queue *self, PyObject *iterator, batch *b, uint64_t until_ns, unsigned long long *total) {
    parcel parcels[BATCH];
    shmq_outgoing out[BATCH];
    room_wait wait = {0};
    bool more = true, failed = false;
    while (more && !failed) {
        uint32_t count = 0, done = 0;
        memset(parcels, 0, sizeof parcels);
        uint64_t now = shmq_put_ns(self->q->m); /* one time for the whole batch */
        while (count < BATCH) {
            PyObject *body = PyIter_Next(iterator);
            if (body == NULL) {
                more = false;
                failed = PyErr_Occurred() != NULL;
                break;
            }
            parcels[count].out.enqueued_ns = now;
            bool ok = batch_parcel(self, &parcels[count], body, b);
            parcels[count].out.wait.more = true;
            count++;
            Py_DECREF(body);
            if (!ok) {
                failed = true;
                count--;
                parcel_clear(&parcels[count]);
                name_the_body(*total + count);
                break;
            }
        }
        PyObject *kind = NULL, *error = NULL, *trace = NULL;
        PyErr_Fetch(&kind, &error, &trace); /* bodies before the faulty one are put: they were accepted in order */
        shmq_status status = queue_put_batch(self, parcels, out, count, until_ns, &wait, &done);
        *total += done;
        for (uint32_t i = 0; i < count; i++) {
            parcel_clear(&parcels[i]);
        }
        if (status != SHMQ_OK) {
            Py_XDECREF(kind);
            Py_XDECREF(error);
            Py_XDECREF(trace);
            failed = true;
            queue_raise(self, status);
        } else {
            PyErr_Restore(kind, error, trace);
        }
        if (!failed && PyErr_CheckSignals() < 0) {
            failed = true;
        }
    }
    return !failed;
}

static bool put_many(py_queue *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                     unsigned long long *total) {
    uint64_t until = SHMQ_FOR_EVER;
    batch b = {.values = args + nargs, .names = names, .headers = Py_None, .extras = Py_None};
    if (nargs != 1) {
        PyErr_Format(PyExc_TypeError, "put_many() takes one positional argument, the bodies (%zd given)", nargs);
        return false;
    }
    if (is_one_body(args[0])) {
        return false;
    }
    b.is_plain = put_options_plain(&b.plain, b.values, names);
    PyObject *timeout = b.plain.timeout;
    bool done = false, begun = (timeout == NULL || parse_timeout(timeout, &until)) && queue_begins(self);
    b.is_plain = b.is_plain && begun && put_options_fit(&b.plain, self->q);
    if (begun && (b.is_plain || batch_options(self, &b, args[0]))) {
        PyObject *iterator = PyObject_GetIter(args[0]);
        if (iterator != NULL) {
            done = put_iterator(self, iterator, &b, until, total);
            Py_DECREF(iterator);
        } else if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Format(PyExc_TypeError,
                         "put_many(%R): several bodies are expected, in a list or another iterable; "
                         "put() takes one",
                         args[0]);
        }
    }
    Py_XDECREF(b.options);
    put_options_clear(&b.plain);
    return done;
}

PyObject *queue_put_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    unsigned long long total = 0;
    if (!put_many((py_queue *)o, args, nargs, names, &total)) {
        queue_tell_accepted(total);
        return NULL;
    }
    Py_RETURN_NONE;
}
