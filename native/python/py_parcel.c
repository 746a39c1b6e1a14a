/* Messages on their way in: makes outgoing messages of Python objects, and points into their memory. */
#include <stdlib.h>
#include <string.h>

#include "py_json.h"
#include "py_queue.h"

/* A body that is neither bytes nor text: as JSON. */
static SHMQ_NOINLINE bool parcel_json(parcel *p, PyObject *body) {
    column text = {0};
    if (!json_written(&text, body)) {
        columns_free(&text, 1);
        return false;
    }
    p->text = text.at;
    p->one = (struct iovec){.iov_base = text.at, .iov_len = text.used};
    p->out.content = CONTENT_JSON;
    p->out.pieces = &p->one;
    p->out.piece_count = 1;
    p->out.body_len = text.used;
    return true;
}

bool parcel_simple(parcel *p, const py_queue *self, PyObject *body) {
    char *bytes;
    Py_ssize_t size;
    p->out.priority = DEFAULT_PRIORITY;
    if (self->codec_kind == CODEC_OTHER) {
        return false;
    }
    if (PyBytes_CheckExact(body)) {
        if (PyBytes_AsStringAndSize(body, &bytes, &size) < 0) {
            PyErr_Clear();
            return false;
        }
        p->out.content = CONTENT_BYTES;
    } else if (knows_text(self) && PyUnicode_CheckExact(body)) {
        bytes = (char *)PyUnicode_AsUTF8AndSize(body, &size);
        if (bytes == NULL) {
            PyErr_Clear(); /* lone surrogates: the encoder explains them */
            return false;
        }
        p->out.content = CONTENT_TEXT;
    } else {
        return self->codec_kind == CODEC_DEFAULT && parcel_json(p, body);
    }
    p->one.iov_base = bytes;
    p->one.iov_len = (size_t)size;
    p->out.pieces = &p->one;
    p->out.piece_count = 1;
    p->out.body_len = (uint64_t)size;
    p->held = body;
    Py_INCREF(body);
    return true;
}

static bool add_pieces(parcel *p, PyObject *pieces, Py_ssize_t count) {
    p->many = calloc((size_t)count + 1, sizeof *p->many);
    p->buffers = calloc((size_t)count + 1, sizeof *p->buffers);
    if (p->many == NULL || p->buffers == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(pieces, i), &p->buffers[i], PyBUF_SIMPLE) < 0) {
            return false;
        }
        p->buffer_count++;
        p->many[i].iov_base = p->buffers[i].buf;
        p->many[i].iov_len = (size_t)p->buffers[i].len;
        p->out.body_len += (uint64_t)p->buffers[i].len;
    }
    p->out.pieces = p->many;
    p->out.piece_count = (uint32_t)count;
    return true;
}

bool parcel_encoded(parcel *p, PyObject *content, PyObject *headers, PyObject *pieces) {
    long code = PyLong_AsLong(content);
    if (code < 0 || code > 255 || !PyTuple_Check(pieces)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "content code 0 to 255 and a tuple of buffers expected");
        }
        return false;
    }
    p->out.content = (uint8_t)code;
    p->out.priority = DEFAULT_PRIORITY;
    p->held = pieces;
    Py_INCREF(pieces);
    if (headers != Py_None) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(headers, &bytes, &size) < 0) {
            return false;
        }
        p->headers = headers;
        Py_INCREF(headers);
        p->out.headers = (const unsigned char *)bytes;
        p->out.headers_len = (uint32_t)size;
    }
    return add_pieces(p, pieces, PyTuple_Size(pieces));
}

bool extras_parsed(PyObject *extras, put_extras *x) {
    *x = NO_EXTRAS;
    if (extras == Py_None) {
        return true;
    }
    unsigned long long ttl, delay, immediate;
    Py_ssize_t group_len = 0;
    if (!PyTuple_Check(extras) ||
        !PyArg_ParseTuple(extras, "bKKz#K", &x->priority, &ttl, &delay, &x->group, &group_len, &immediate)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "extras: None, or (priority, ttl_ns, delay_ns, group, immediate_ns)");
        }
        return false;
    }
    x->ttl_ns = ttl;
    x->delay_ns = delay;
    x->immediate_ns = immediate;
    x->group_len = (uint32_t)group_len;
    return true;
}

void parcel_timed(shmq_outgoing *out, const put_extras *x) {
    if (x->delay_ns == 0 && x->ttl_ns == SHMQ_NEVER) {
        return;
    }
    uint64_t now = shmq_now_ns();
    out->not_before_ns = x->delay_ns != 0 ? now + x->delay_ns : 0;
    out->expires_ns = x->ttl_ns != SHMQ_NEVER ? now + x->ttl_ns : 0;
}

void parcel_clear(parcel *p) {
    if (p->many != NULL) {
        for (uint32_t i = 0; i < p->buffer_count; i++) {
            PyBuffer_Release(&p->buffers[i]);
        }
        free(p->buffers);
        free(p->many);
        p->buffers = NULL;
        p->many = NULL;
        p->buffer_count = 0;
    }
    free(p->text);
    p->text = NULL;
    Py_CLEAR(p->held);
    Py_CLEAR(p->headers);
}

static PyObject *body_object(const py_queue *self, const shmq_delivery *d) {
    if (d->content == CONTENT_TEXT && knows_text(self)) {
        return PyUnicode_DecodeUTF8((const char *)d->bytes, (Py_ssize_t)d->body_len, "strict");
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)d->body_len);
    if (bytes == NULL) {
        return NULL;
    }
    char *to = PyBytes_AsString(bytes);
    if (d->body_len > BIG_COPY) {
        BEGIN_WAIT(self)
        memcpy(to, d->bytes, d->body_len);
        END_WAIT(self)
    } else {
        memcpy(to, d->bytes, d->body_len);
    }
    return bytes;
}

/* A body that is not decoded: its producer put no text, or it is damaged, or another message's by now. */
static SHMQ_NOINLINE PyObject *strange_body(const py_queue *self, const shmq_delivery *d, shmq_copied *copied_as) {
    *copied_as = SHMQ_COPIED_NOTHING;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        return NULL;
    }
    PyErr_Clear();
    PyObject *body = PyBytes_FromStringAndSize((const char *)d->bytes, (Py_ssize_t)d->body_len);
    if (body != NULL) {
        shmq_delivery copied = *d;
        copied.bytes = (unsigned char *)PyBytes_AsString(body);
        *copied_as = shmq_delivery_intact(self->q, &copied) ? SHMQ_COPIED_STRANGE : SHMQ_COPIED_DAMAGE;
    }
    return body;
}

/* The value that the copy stands for. The copy itself where Python has to look: it says what is wrong with it. */
static PyObject *json_body(PyObject *copy, shmq_copied *copied_as) {
    PyObject *value = json_read(PyBytes_AsString(copy), PyBytes_Size(copy));
    if (value == NULL && !PyErr_Occurred()) {
        *copied_as = SHMQ_COPIED_STRANGE;
        return copy;
    }
    *copied_as = value != NULL ? SHMQ_COPIED : SHMQ_COPIED_NOTHING;
    Py_DECREF(copy);
    return value;
}

/* The body is copied first, then the copy is checked: what is handed out is what was checked. */
PyObject *delivery_body(const py_queue *self, const shmq_delivery *d, shmq_copied *copied_as) {
    PyObject *body = body_object(self, d);
    if (SHMQ_UNLIKELY(body == NULL)) {
        return strange_body(self, d, copied_as);
    }
    bool intact;
    shmq_delivery copied = *d;
    if (PyBytes_CheckExact(body)) {
        copied.bytes = (unsigned char *)PyBytes_AsString(body);
    }
    if (d->body_len > BIG_COPY) {
        BEGIN_WAIT(self)
        intact = shmq_delivery_intact(self->q, &copied);
        END_WAIT(self)
    } else {
        intact = shmq_delivery_intact(self->q, &copied);
    }
    *copied_as = SHMQ_LIKELY(intact) ? SHMQ_COPIED : SHMQ_COPIED_DAMAGE;
    return SHMQ_UNLIKELY(intact && d->content == CONTENT_JSON && self->codec_kind == CODEC_DEFAULT)
               ? json_body(body, copied_as)
               : body;
}
