/* The body of a lent message: copied, pinned in its block, or decoded. */
#include "py_consumer.h"
#include "py_json.h"

/* A checked copy; NULL without an exception: the checksum does not fit. */
static PyObject *body_copy(const py_message *self) {
    shmq_copied copied;
    py_queue plain = {.owner = self->consumer->owner, .q = self->q, .codec_kind = CODEC_BYTES};
    PyObject *body = delivery_body(&plain, &self->d, &copied);
    if (copied == SHMQ_COPIED_DAMAGE) {
        Py_CLEAR(body);
    }
    return body;
}

/* Pins the body in its block if it can, else copies it. False, with or without an exception, as for body_copy. */
static bool load(py_message *self) {
    if (self->view != NULL || self->bytes != NULL) {
        return true;
    }
    if (self->copied) {
        const char *body = (const char *)self->copy + self->d.headers_len;
        self->bytes = PyBytes_FromStringAndSize(body, (Py_ssize_t)self->d.body_len);
        return self->bytes != NULL;
    }
    bool usable = self->consumer != NULL && consumer_usable(self->consumer) == SHMQ_OK;
    PyObject *pinned = usable ? body_view(self->consumer->owner, self->q, &self->d) : NULL;
    if (pinned != NULL) {
        self->view = PyMemoryView_FromObject(pinned);
        Py_DECREF(pinned);
        return self->view != NULL;
    }
    if (!PyErr_Occurred()) {
        self->bytes = body_copy(self);
    }
    return self->bytes != NULL;
}

/* Before a settlement: keeps a body that was not read yet, so that it can be read afterwards. A body in a slot was
 * copied when the message came. Damage is told to the reader of the body later, and does not stop the settlement. */
void message_keep_body(py_message *self) {
    if (self->has_body) {
        Py_CLEAR(self->view); /* the block stays for views that the user has, not for the message */
    } else if (SHMQ_UNLIKELY(!self->copied) && !load(self)) {
        PyErr_Clear();
    }
}

/* _data() -> bytes or memoryview; None: the body is gone with its message; False: it is damaged. */
PyObject *message_data(PyObject *o, PyObject *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    bool held = self->link != NULL && !shmq_member_is_closed(self->q->m);
    bool kept = self->view != NULL || self->bytes != NULL || (self->copied && self->outcome != NULL);
    if (!held && !kept) {
        Py_RETURN_NONE;
    }
    if (!load(self)) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    }
    return Py_NewRef(self->view != NULL ? self->view : self->bytes);
}

/* A body of bytes, text or JSON that came with its slot, as most do. NULL without an exception: the body is another kind. */
static PyObject *small_body(const py_message *self) {
    bool there = self->link != NULL ? !shmq_member_is_closed(self->q->m) : self->outcome != NULL;
    if (!self->copied || !there) {
        return NULL;
    }
    const py_queue *queue = (const py_queue *)self->queue;
    const char *body = (const char *)self->copy + self->d.headers_len;
    if (self->d.content == CONTENT_TEXT && knows_text(queue)) {
        PyObject *text = PyUnicode_DecodeUTF8(body, (Py_ssize_t)self->d.body_len, "strict");
        PyErr_Clear(); /* not text: _decoded() says so */
        return text;
    }
    if (self->d.content == CONTENT_JSON && queue->codec_kind == CODEC_DEFAULT) {
        return json_read(body, (Py_ssize_t)self->d.body_len); /* NULL: _decoded() says what it is */
    }
    bool bytes = queue->codec_kind == CODEC_BYTES || (self->d.content == CONTENT_BYTES && knows_text(queue));
    return bytes ? PyBytes_FromStringAndSize(body, (Py_ssize_t)self->d.body_len) : NULL;
}

PyObject *message_body(PyObject *o, void *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    if (!self->has_body) {
        PyObject *body = small_body(self);
        if (body == NULL) {
            body = PyErr_Occurred() ? NULL : PyObject_CallMethod(o, "_decoded", NULL);
        }
        if (body == NULL) {
            return NULL;
        }
        shmq_py_set(&self->body, body);
        self->has_body = true;
    }
    return Py_NewRef(self->body);
}

/* Is the pinned body still what the producer put? The caller asks after decoding. */
PyObject *message_intact(PyObject *o, PyObject *unused) {
    py_message *self = (py_message *)o;
    bool intact = true;
    (void)unused;
    if (self->view != NULL) {
        /* The queue may be deleted, and its memory another's. */
        const shmq_queue plain = {.checksum = self->checksum, .checksum_start = self->checksum_start};
        Py_BEGIN_ALLOW_THREADS
        intact = shmq_delivery_intact(&plain, &self->d);
        Py_END_ALLOW_THREADS
    }
    return PyBool_FromLong(intact);
}

PyObject *message_headers(PyObject *o, void *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    if (self->headers == NULL) {
        self->headers = PyBytes_FromStringAndSize((const char *)self->copy, self->copied ? self->d.headers_len : 0);
    }
    return Py_XNewRef(self->headers);
}
