/* A loan: the block of a message to come. The producer writes it in place; no other process sees it before its
 * commit. */
#include <string.h>

#include "py_queue.h"
#include "structmember.h"

PyTypeObject *loan_type;

enum loan_state { LOAN_OPEN, LOAN_COMMITTED, LOAN_ABANDONED };

typedef struct py_loan {
    PyObject_HEAD py_queue *queue; /* strong */
    shmq_queue *q;
    shmq_py_member *owner; /* strong */
    uint64_t serial;
    shmq_block block;
    uint32_t headers_len;
    uint64_t size; /* of the requested body */
    int state;
    int exports;
    bool pinned;
    bool viewed; /* it counts as a view: the mapping stays */
    uint32_t pin;
    uint64_t pinned_bytes;
} py_loan;

static bool ours(const py_loan *self) { return !shmq_member_forked(self->q->m) && self->serial == self->q->m->serial; }

static unsigned char *body_of(const py_loan *self) {
    return (unsigned char *)shmq_at(self->q->m, self->block.offset) + shmq_body_start(self->headers_len);
}

/* _loan(head: bytes | None, nbytes, timeout) */
PyObject *loan_new(py_queue *self, PyObject *headers, uint64_t bytes, uint64_t until_ns) {
    char *headers_bytes = NULL;
    Py_ssize_t headers_len = 0;
    if (headers != Py_None && PyBytes_AsStringAndSize(headers, &headers_bytes, &headers_len) < 0) {
        return NULL;
    }
    shmq_block block;
    shmq_status status;
    uint64_t total = shmq_body_start((uint32_t)headers_len) + bytes;
    room_wait wait = {0};
    shmq_relief relief = {0};
    room_wait_begins(&wait, until_ns);
    do {
        BEGIN_WAIT(self)
        status = shmq_take_block(self->q, total, until_ns, &relief, &block);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && room_wait_goes_on(self, &wait, SHMQ_FULL_MEMORY));
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(loan_type, Py_tp_alloc);
    py_loan *loan = (py_loan *)alloc(loan_type, 0);
    if (loan == NULL) {
        shmq_block_drop(self->q->m, block.offset, block.generation, 0);
        return NULL;
    }
    Py_INCREF((PyObject *)self);
    Py_INCREF((PyObject *)self->owner);
    loan->queue = self;
    loan->owner = self->owner;
    loan->q = self->q;
    pthread_mutex_lock(&self->q->m->handles_lock);
    self->q->refs++;
    pthread_mutex_unlock(&self->q->m->handles_lock);
    loan->serial = self->q->serial;
    loan->block = block;
    loan->headers_len = (uint32_t)headers_len;
    loan->size = bytes;
    loan->pinned_bytes = total;
    if (headers_len != 0) {
        memcpy(shmq_at(self->q->m, block.offset), headers_bytes, (size_t)headers_len);
    }
    shmq_pinned_count(loan->q->m, (int64_t)total);
    shmq_py_view_added(loan->owner);
    loan->viewed = true;
    return (PyObject *)loan;
}

/* Nobody writes or reads in it any more, now or when the last export goes. */
static void end_view(py_loan *self) {
    if (self->viewed && self->exports == 0 && self->state != LOAN_OPEN && ours(self)) {
        self->viewed = false;
        if (self->pinned) {
            self->pinned = false;
            shmq_block_unpin(self->q->m, self->pin, self->pinned_bytes);
        }
        shmq_py_view_gone(self->owner);
    }
}

static void give_up(py_loan *self) {
    if (self->state == LOAN_OPEN && ours(self)) {
        shmq_block_drop(self->q->m, self->block.offset, self->block.generation, 0);
        shmq_pinned_count(self->q->m, -(int64_t)self->pinned_bytes);
    }
    self->state = LOAN_ABANDONED;
}

static PyObject *loan_abandon(PyObject *o, PyObject *unused) {
    py_loan *self = (py_loan *)o;
    (void)unused;
    if (self->exports != 0) {
        PyErr_SetString(PyExc_BufferError, "parts of loan.view or loan.array are still in use; drop them first");
        return NULL;
    }
    give_up(self);
    end_view(self);
    Py_RETURN_NONE;
}

/* Views (loan.array) may still exist: the block stays for them, read-only, until they are gone. */
static bool pin_for_exports(py_loan *self) {
    if (self->exports == 0 || self->pinned) {
        return true;
    }
    self->pinned =
        shmq_block_pin(self->q->m, self->block.offset, self->block.generation, self->pinned_bytes, &self->pin);
    return self->pinned;
}

/* commit(content, nbytes, timeout, keep, extras) -> message id. keep: buffers may stay; the caller promises not to
 * write to them. */
static PyObject *loan_commit(PyObject *o, PyObject *args) {
    py_loan *self = (py_loan *)o;
    unsigned char content;
    unsigned long long nbytes;
    PyObject *timeout, *extras;
    int keep;
    uint64_t until;
    put_extras x;
    if (!PyArg_ParseTuple(args, "bKOpO", &content, &nbytes, &timeout, &keep, &extras) ||
        !parse_timeout(timeout, &until) || !extras_parsed(extras, &x)) {
        return NULL;
    }
    if (self->state != LOAN_OPEN || !ours(self)) {
        return queue_raise(self->queue, SHMQ_SETTLED);
    }
    if (nbytes > self->size) {
        return PyErr_Format(PyExc_ValueError, "nbytes=%llu: this loan has %llu bytes", nbytes,
                            (unsigned long long)self->size);
    }
    if (self->exports != 0 && (!keep || !pin_for_exports(self))) {
        PyErr_SetString(PyExc_BufferError,
                        "parts of loan.view are still in use; drop them before the commit (the loan is "
                        "still open)");
        return NULL;
    }
    struct iovec piece = {.iov_base = body_of(self), .iov_len = nbytes};
    shmq_outgoing out = {.priority = x.priority,
                         .headers = shmq_at(self->q->m, self->block.offset),
                         .headers_len = self->headers_len,
                         .pieces = &piece,
                         .piece_count = 1,
                         .body_len = nbytes,
                         .content = content,
                         .block = self->block};
    parcel_timed(&out, &x);
    shmq_status status;
    room_wait wait = {0};
    until = shmq_overflow_until(self->q, until);
    room_wait_begins(&wait, until);
    do {
        BEGIN_WAIT(self)
        status = shmq_put(self->q, &out, until);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && room_wait_goes_on(self->queue, &wait, out.wait.lacking));
    if (status != SHMQ_OK) {
        shmq_line_leave(self->q, &out.wait.ticket); /* an interrupted wait has kept the ticket */
        if (self->pinned) {
            shmq_block_unpin(self->q->m, self->pin, self->pinned_bytes);
            self->pinned = false;
        }
        return queue_raise(self->queue, status); /* the loan is still open */
    }
    self->state = LOAN_COMMITTED;
    shmq_pinned_count(self->q->m, -(int64_t)self->pinned_bytes);
    end_view(self);
    return PyLong_FromUnsignedLongLong(out.made.message_id);
}

static int loan_getbuffer(PyObject *o, Py_buffer *buffer, int flags) {
    py_loan *self = (py_loan *)o;
    if (self->state != LOAN_OPEN && !(self->state == LOAN_COMMITTED && self->pinned)) {
        PyErr_SetString(PyExc_BufferError, "this loan was committed or abandoned");
        buffer->obj = NULL;
        return -1;
    }
    if (PyBuffer_FillInfo(buffer, o, body_of(self), (Py_ssize_t)self->size, self->state != LOAN_OPEN, flags) < 0) {
        return -1;
    }
    self->exports++;
    return 0;
}

static void loan_releasebuffer(PyObject *o, Py_buffer *buffer) {
    (void)buffer;
    ((py_loan *)o)->exports--;
    end_view((py_loan *)o);
}

static void loan_dealloc(PyObject *o) {
    py_loan *self = (py_loan *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    give_up(self);
    end_view(self);
    shmq_queue_unbind(self->q);
    Py_CLEAR(self->queue);
    Py_CLEAR(self->owner);
    release(o);
    Py_DECREF(type);
}

static PyMethodDef loan_methods[] = {
    {"commit", loan_commit, METH_VARARGS, "commit(content, nbytes, timeout, keep, extras) -> message id"},
    {"abandon", loan_abandon, METH_NOARGS, "Give the block back."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef loan_members[] = {
    {"size", T_ULONGLONG, offsetof(py_loan, size), READONLY, NULL},
    {"state", T_INT, offsetof(py_loan, state), READONLY, NULL},
    {"exports", T_INT, offsetof(py_loan, exports), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot loan_slots[] = {
    {Py_tp_dealloc, (void *)loan_dealloc},
    {Py_tp_methods, loan_methods},
    {Py_tp_members, loan_members},
    {Py_bf_getbuffer, (void *)loan_getbuffer},
    {Py_bf_releasebuffer, (void *)loan_releasebuffer},
    {Py_tp_doc, "A block that no other process sees."},
    {0, NULL},
};
PyType_Spec loan_spec = {
    .name = "shmq._native.LoanBuffer",
    .basicsize = sizeof(py_loan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = loan_slots,
};
