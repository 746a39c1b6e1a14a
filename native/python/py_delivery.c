/* A delivery: an acquired entry, and views of its body. */
#include <string.h>

#include "py_queue.h"
#include "structmember.h"

PyTypeObject *delivery_type, *view_type;

/* Why a message is moved to another queue: its source counts each reason. */
enum { MOVED = 0, DEAD = 1, EXPIRED = 2 };

typedef struct py_delivery {
    PyObject_HEAD py_queue *queue; /* strong */
    shmq_queue *q;   /* the binding at delivery: `queue` may be closed and bound anew */
    uint64_t serial; /* of the member: another one after a fork */
    bool over;       /* settled, given back, or lost to another owner */
    bool ended;      /* this process has applied an outcome */
    uint64_t place;  /* in the order of the queue */
    PyObject *row; /* held until it is over: the Row of the consumer that had it; NULL: it is the process's, or over */
    shmq_delivery d;
} py_delivery;

/* A read-only buffer over a block, pinned until the last memoryview of it is gone. */
typedef struct py_view {
    PyObject_HEAD shmq_py_member *owner; /* strong: keeps the mapping */
    shmq_member *m;
    uint64_t serial;
    const unsigned char *bytes;
    uint64_t size;
    uint64_t pinned;
    uint32_t pin;
} py_view;

PyObject *delivery_new(py_queue *self, const shmq_delivery *d) { return delivery_of(self, self->q, d, NULL); }

PyObject *delivery_of(py_queue *self, shmq_queue *q, const shmq_delivery *d, PyObject *row) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(delivery_type, Py_tp_alloc);
    py_delivery *delivery = (py_delivery *)alloc(delivery_type, 0);
    if (delivery != NULL) {
        Py_INCREF((PyObject *)self);
        delivery->queue = self;
        delivery->q = q;
        delivery->serial = q->serial;
        delivery->d = *d;
        delivery->d.as.by = NULL; /* the subscription may go before the delivery */
        delivery->place = shmq_place_of(q, d);
        delivery->row = row;
        if (row != NULL) {
            row_hold(row);
        }
        pthread_mutex_lock(&q->m->handles_lock);
        q->refs++;
        pthread_mutex_unlock(&q->m->handles_lock);
    }
    return (PyObject *)delivery;
}

static void free_object(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

/* SHMQ_OK: the delivery is of this process, and its broker is open. */
static shmq_status usable(const py_delivery *self) {
    shmq_member *m = self->q->m;
    if (shmq_member_forked(m) || self->serial != m->serial) {
        return shmq_member_is_closed(m) ? SHMQ_CLOSED : SHMQ_SETTLED;
    }
    return shmq_member_usable(m);
}

/* It has its outcome: no slot names the consumer's row for it any more. */
static void is_over(py_delivery *self) {
    PyObject *row = self->row;
    self->over = true;
    self->row = NULL;
    if (row != NULL) {
        row_let_go(row);
    }
}

/* The same for what only reads: a forked child may. False with an exception set. */
static bool readable(const py_delivery *self) {
    if (SHMQ_UNLIKELY(shmq_member_is_closed(self->q->m))) {
        queue_raise(self->queue, SHMQ_CLOSED);
        return false;
    }
    return true;
}

static void delivery_dealloc(PyObject *o) {
    py_delivery *self = (py_delivery *)o;
    /* After a signal between take and lend, or within a settlement, only this object knows of the entry. */
    if (!self->over && usable(self) == SHMQ_OK) {
        (void)shmq_release(self->q, &self->d, false);
    }
    is_over(self);
    shmq_queue_unbind(self->q);
    Py_CLEAR(self->queue);
    free_object(o);
}

void delivery_fails(PyObject *o) {
    py_delivery *self = (py_delivery *)o;
    if (!self->over && usable(self) == SHMQ_OK) {
        self->ended = shmq_release(self->q, &self->d, true) == SHMQ_OK;
        is_over(self);
    }
}

static PyObject *answer(py_delivery *self, shmq_status status) {
    if (status == SHMQ_OK || status == SHMQ_SETTLED) {
        is_over(self);
    }
    self->ended = self->ended || status == SHMQ_OK;
    if (status == SHMQ_OK) {
        Py_RETURN_TRUE;
    }
    if (status == SHMQ_SETTLED) {
        Py_RETURN_FALSE; /* settled before, or taken by another: the Message says by whom */
    }
    return queue_raise(self->queue, status);
}

static PyObject *delivery_settle(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    shmq_status status = usable(self);
    return answer(self, status == SHMQ_OK ? shmq_settle(self->q, &self->d) : status);
}

/* An outgoing message of the delivery's own body, where it lies: it is read when the mover owns the entry. A damaged one
 * goes among the dead without its body. */
static void make_outgoing(const py_delivery *self, bool dead, struct iovec *body, shmq_outgoing *out) {
    bool bare = dead && !shmq_delivery_intact(self->q, &self->d);
    *body = (struct iovec){.iov_base = (void *)self->d.bytes, .iov_len = bare ? 0 : self->d.body_len};
    out->content = self->d.content;
    out->priority = self->d.priority;
    out->pieces = body;
    out->piece_count = 1;
    out->body_len = body->iov_len;
    if (!dead) {
        shmq_move_times(self->q, &self->d, out);
    }
}

static shmq_status moved(py_delivery *self, py_queue *to, bool dead, shmq_outgoing *out) {
    struct iovec body;
    shmq_status status;
    BEGIN_WAIT(self->queue)
    make_outgoing(self, dead, &body, out);
    status = shmq_move(self->q, &self->d, to->q, out);
    END_WAIT(self->queue)
    return status;
}

/* move(to, head, why) -> True; False: another process has the entry. If `to` has no room or refuses it, raises, and the
 * entry stays LOCKED by this process. The queue is in use meanwhile: close() waits. */
static PyObject *delivery_move(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_delivery *self = (py_delivery *)o;
    shmq_outgoing out = {0};
    char *headers;
    Py_ssize_t headers_len;
    if (nargs != 3 || !PyObject_TypeCheck(args[0], queue_type)) {
        PyErr_SetString(PyExc_TypeError, "move(Queue, head, why)");
        return NULL;
    }
    py_queue *to = (py_queue *)args[0];
    unsigned long why = PyLong_AsUnsignedLong(args[2]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(args[1], &headers, &headers_len) < 0 || !queue_ready(to)) {
        return NULL;
    }
    out.headers = (const unsigned char *)headers;
    out.headers_len = (uint32_t)headers_len;
    out.source_end = why == MOVED ? SHMQ_END_MOVED : why == EXPIRED ? SHMQ_END_EXPIRED_DEAD : SHMQ_END_DEAD;
    shmq_status status = usable(self);
    while (status == SHMQ_OK) {
        status = moved(self, to, why != MOVED, &out);
        if (status != SHMQ_INTERRUPTED || PyErr_CheckSignals() < 0) {
            break;
        }
        status = usable(self);
    }
    shmq_unprepare(to->q, &out);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (status == SHMQ_OK || status == SHMQ_SETTLED) {
        is_over(self);
    }
    self->ended = self->ended || status == SHMQ_OK;
    if (status != SHMQ_OK && status != SHMQ_SETTLED) {
        return queue_raise(to, status);
    }
    return PyBool_FromLong(status == SHMQ_OK);
}

static PyObject *delivery_expire(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    shmq_status status = usable(self);
    return answer(self, status == SHMQ_OK ? shmq_expire(self->q, &self->d) : status);
}

static PyObject *delivery_touch(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    shmq_status status = usable(self);
    if (status == SHMQ_OK && (status = shmq_touch(self->q, &self->d)) == SHMQ_OK) {
        Py_RETURN_TRUE; /* the move goes on */
    }
    return answer(self, status);
}

/* release(attempt, delay in ns) */
static PyObject *delivery_release(PyObject *o, PyObject *args) {
    py_delivery *self = (py_delivery *)o;
    int attempt;
    unsigned long long delay = 0;
    if (!PyArg_ParseTuple(args, "p|K", &attempt, &delay)) {
        return NULL;
    }
    shmq_status status = usable(self);
    if (status == SHMQ_OK && delay != 0) {
        do { /* the first release in a ring may have to lay memory */
            BEGIN_WAIT(self->queue)
            status = shmq_release_until(self->q, &self->d, attempt != 0, shmq_now_ns() + delay);
            END_WAIT(self->queue)
        } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
        if (PyErr_Occurred()) {
            return NULL;
        }
    } else if (status == SHMQ_OK) {
        status = shmq_release(self->q, &self->d, attempt != 0);
    }
    return answer(self, status);
}

static PyObject *delivery_lock(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    shmq_status status = usable(self);
    if (status == SHMQ_OK && (status = shmq_lock(self->q, &self->d)) == SHMQ_OK) {
        Py_RETURN_TRUE;
    }
    return answer(self, status);
}

static PyObject *delivery_headers(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    const char *bytes = (const char *)self->d.headers;
    PyObject *headers = readable(self) ? PyBytes_FromStringAndSize(bytes, self->d.headers_len) : NULL;
    if (headers != NULL && self->d.headers_len != 0 && !self->over && shmq_own_word(self->q, &self->d) == 0) {
        Py_DECREF(headers); /* the queue was deleted meanwhile: the headers are another message's */
        shmq_status status = usable(self);
        return queue_raise(self->queue, status != SHMQ_OK ? status : SHMQ_NOT_FOUND);
    }
    return headers;
}

/* body() -> bytes: a checked copy. False: the checksum does not fit. */
static PyObject *delivery_bytes(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    py_queue plain = *self->queue;
    shmq_copied copied;
    (void)unused;
    plain.codec_kind = CODEC_BYTES;
    plain.q = self->q;
    PyObject *body = readable(self) ? delivery_body(&plain, &self->d, &copied) : NULL;
    if (body != NULL && copied == SHMQ_COPIED_DAMAGE) {
        Py_DECREF(body);
        Py_RETURN_FALSE;
    }
    return body;
}

static PyObject *delivery_intact(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    bool intact;
    (void)unused;
    if (!readable(self)) {
        return NULL;
    }
    BEGIN_WAIT(self->queue)
    intact = shmq_delivery_intact(self->q, &self->d);
    END_WAIT(self->queue)
    return PyBool_FromLong(intact);
}

static PyObject *delivery_ours(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    return PyBool_FromLong(!self->over && !shmq_member_is_closed(self->q->m) && shmq_own_word(self->q, &self->d) != 0);
}

PyObject *body_view(shmq_py_member *owner, shmq_queue *q, const shmq_delivery *d) {
    uint32_t pin;
    if (d->body == 0 || !shmq_block_pin(q->m, shmq_body_offset(d->body), d->body_gen, d->body_len, &pin)) {
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(view_type, Py_tp_alloc);
    py_view *view = (py_view *)alloc(view_type, 0);
    if (view == NULL) {
        shmq_block_unpin(q->m, pin, d->body_len);
        return NULL;
    }
    Py_INCREF((PyObject *)owner);
    view->owner = owner;
    view->m = q->m;
    view->serial = q->m->serial;
    view->bytes = d->bytes;
    view->size = view->pinned = d->body_len;
    view->pin = pin;
    shmq_py_view_added(owner);
    return (PyObject *)view;
}

/* view() -> View, or None: the body is in the slot, or no pin is free, so the caller copies. Valid while this process
 * has the entry. */
static PyObject *delivery_view(PyObject *o, PyObject *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    PyObject *view = usable(self) == SHMQ_OK ? body_view(self->queue->owner, self->q, &self->d) : NULL;
    return view != NULL || PyErr_Occurred() ? view : Py_NewRef(Py_None);
}

/* Deliveries of one queue that are to be given back, from item `*at` of the list on. Answers how many. */
static uint32_t next_of_one_queue(PyObject *list, Py_ssize_t *at, shmq_delivery **all, shmq_queue **q) {
    uint32_t count = 0;
    for (*q = NULL; *at < PyList_Size(list); ++*at) {
        py_delivery *one = (py_delivery *)PyList_GetItem(list, *at);
        if (*q != NULL && one->q != *q) {
            break;
        }
        if (!one->over && usable(one) == SHMQ_OK) {
            *q = one->q;
            one->over = true;
            all[count++] = &one->d;
        }
    }
    return count;
}

/* Gives them all back to their places together; no attempt is counted. `list`: Deliveries in the order of their
 * places. */
static PyObject *released(PyObject *list) {
    Py_ssize_t size = PyList_Size(list);
    for (Py_ssize_t i = 0; i < size; i++) {
        if (Py_TYPE(PyList_GetItem(list, i)) != delivery_type) {
            PyErr_SetString(PyExc_TypeError, "a Delivery is expected");
            return NULL;
        }
    }
    shmq_delivery **all = PyMem_Malloc(((size_t)size + 1) * sizeof *all);
    if (all == NULL) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < size;) {
        shmq_queue *q;
        uint32_t count = next_of_one_queue(list, &at, all, &q);
        if (count != 0) {
            shmq_release_all(q, all, count);
        }
    }
    PyMem_Free(all);
    Py_RETURN_NONE;
}

static PyObject *release_all(PyObject *module, PyObject *list) {
    (void)module;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "release_all([Delivery, ...])");
        return NULL;
    }
    return released(list);
}

PyMethodDef delivery_functions[] = {
    {"release_all", release_all, METH_O, "release_all([Delivery, ...]) Back in their places, as one."},
    {NULL, NULL, 0, NULL},
};

/* "expired", "max_deaths" or "max_attempts": why no consumer may get the message; None: one may. */
static PyObject *delivery_why_dead(PyObject *o, void *unused) {
    static const char *const reasons[] = {NULL, "expired", "max_deaths", "max_attempts"};
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    return readable(self) ? Py_BuildValue("z", reasons[shmq_why_dead(self->q, &self->d)]) : NULL;
}

static PyObject *delivery_is_last(PyObject *o, void *unused) {
    py_delivery *self = (py_delivery *)o;
    (void)unused;
    return readable(self) ? PyBool_FromLong(shmq_is_last_attempt(self->q, &self->d)) : NULL;
}

static PyGetSetDef delivery_answers[] = {
    {"why_dead", delivery_why_dead, NULL, "Why it is handed out no more; None: it is.", NULL},
    {"is_last_attempt", delivery_is_last, NULL, "Does one more failure make it dead?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef delivery_methods[] = {
    {"settle", delivery_settle, METH_NOARGS, "Settled for good. False: not ours any more."},
    {"move", (PyCFunction)(void (*)(void))delivery_move, METH_FASTCALL,
     "move(to, head, why) It is there now, not here."},
    {"expire", delivery_expire, METH_NOARGS, "Settled, for its time is over."},
    {"touch", delivery_touch, METH_NOARGS, "Its lease begins anew."},
    {"release", delivery_release, METH_VARARGS, "release(attempt, delay in ns) Back in its place."},
    {"lock", delivery_lock, METH_NOARGS, "Still ours, and about to be settled elsewhere."},
    {"head", delivery_headers, METH_NOARGS, "The encoded headers."},
    {"body", delivery_bytes, METH_NOARGS, "The encoded body as bytes; False: damaged."},
    {"intact", delivery_intact, METH_NOARGS, "Does the checksum fit?"},
    {"ours", delivery_ours, METH_NOARGS, "Is it still in our hands, neither settled nor taken away?"},
    {"view", delivery_view, METH_NOARGS, "A pinned View of the body; None: copy it."},
    {NULL, NULL, 0, NULL},
};

#define FIELD(name, member, type) \
    {name, type, offsetof(py_delivery, d) + offsetof(shmq_delivery, member), READONLY, NULL}
static PyMemberDef delivery_members[] = {
    {"position", T_ULONGLONG, offsetof(py_delivery, place), READONLY, NULL},
    FIELD("message_id", message_id, T_ULONGLONG),
    FIELD("size", body_len, T_UINT),
    FIELD("content", content, T_UBYTE),
    FIELD("delivery", delivery, T_USHORT),
    FIELD("deaths", deaths, T_USHORT),
    FIELD("expires_ns", expires_ns, T_ULONGLONG),
    FIELD("held_until_ns", held_until_ns, T_ULONGLONG),
    {"ended", T_BOOL, offsetof(py_delivery, ended), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot delivery_slots[] = {
    {Py_tp_dealloc, (void *)delivery_dealloc},
    {Py_tp_methods, delivery_methods},
    {Py_tp_members, delivery_members},
    {Py_tp_getset, delivery_answers},
    {Py_tp_doc, "One acquired entry. Dropped without an outcome it goes back in its place, uncounted."},
    {0, NULL},
};
PyType_Spec delivery_spec = {
    .name = "shmq._native.Delivery",
    .basicsize = sizeof(py_delivery),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = delivery_slots,
};

static int view_getbuffer(PyObject *o, Py_buffer *buffer, int flags) {
    py_view *self = (py_view *)o;
    return PyBuffer_FillInfo(buffer, o, (void *)self->bytes, (Py_ssize_t)self->size, 1, flags);
}

static void view_dealloc(PyObject *o) {
    py_view *self = (py_view *)o;
    if (!shmq_member_forked(self->m) && self->serial == self->m->serial) { /* in a child the pins are the parent's */
        shmq_block_unpin(self->m, self->pin, self->pinned);
        shmq_py_view_gone(self->owner);
    }
    Py_CLEAR(self->owner);
    free_object(o);
}

static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, (void *)view_dealloc},
    {Py_bf_getbuffer, (void *)view_getbuffer},
    {Py_tp_doc, "A body where it lies, read-only. The block stays for as long as this does."},
    {0, NULL},
};
PyType_Spec view_spec = {
    .name = "shmq._native.View",
    .basicsize = sizeof(py_view),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = view_slots,
};
