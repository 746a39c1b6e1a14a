/* A lent message: its fields, its body, and its settlement. shmq.engine.message.message.Message is built on it. */
#include "py_consumer.h"
#include "structmember.h"

PyTypeObject *message_type;
static PyObject *acked; /* interned */

/* ---- in the hands of its consumer ---- */

static void link_to(py_message *self, py_consumer *whole) {
    self->next = whole->first;
    self->link = &whole->first;
    if (self->next != NULL) {
        self->next->link = &self->next;
    }
    whole->first = self;
    whole->lent++;
}

void message_unlink(py_message *self) {
    *self->link = self->next;
    if (self->next != NULL) {
        self->next->link = self->link;
    }
    self->link = NULL;
    self->consumer->whole->lent--;
    self->state = ENDED;
}

void message_let_go(py_message *self) {
    self->q = NULL;
    Py_CLEAR(self->consumer);
}

void message_went_back(py_message *self) {
    message_let_go(self);
    Py_CLEAR(self->view);
}

py_message *message_new(py_consumer *consumer, const shmq_delivery *d, const unsigned char *copy) {
    allocfunc alloc = (allocfunc)PyType_GetSlot(consumer->message_type, Py_tp_alloc);
    py_message *self = (py_message *)alloc(consumer->message_type, 0);
    if (self == NULL) {
        (void)shmq_release(consumer->q, (shmq_delivery *)(uintptr_t)d, false);
        return NULL;
    }
    self->queue = Py_NewRef((PyObject *)consumer->queue);
    Py_INCREF((PyObject *)consumer);
    self->consumer = consumer;
    self->q = consumer->q;
    self->checksum_start = consumer->q->checksum_start;
    self->checksum = consumer->q->checksum;
    self->d = *d;
    self->d.as.by = NULL; /* the subscription may go before the message */
    self->place = shmq_place_of(consumer->q, d);
    self->failed = d->delivery;
    self->deaths = d->deaths;
    self->redelivered = (d->word & SHMQ_FLAG_REDELIVERED) != 0;
    uint32_t bytes = d->headers_len + d->body_len;
    self->copied = copy != NULL && d->body == 0 && bytes <= SHMQ_COPY_BYTES;
    link_to(self, consumer->whole);
    if (self->copied) {
        memcpy(self->copy, copy, bytes);
    } else if (d->headers_len != 0) {
        self->headers = PyBytes_FromStringAndSize((const char *)d->headers, d->headers_len);
        if (self->headers != NULL && shmq_own_word(self->q, d) == 0) {
            message_unlink(self); /* the queue was deleted meanwhile: the headers are another message's */
        }
        if (self->headers == NULL || self->link == NULL) {
            Py_DECREF((PyObject *)self);
            return NULL;
        }
    }
    return self;
}

static bool is_in_hand(const py_message *self) {
    return self->link != NULL && consumer_usable(self->consumer) == SHMQ_OK;
}

static PyObject *message_delivered(PyObject *o, void *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    self->state = self->state == IN_TRANSIT ? LENT : self->state;
    return Py_NewRef(o);
}

/* Dropped unsettled: the attempt counts, and the next call of the consumer tells of it. */
static void tell_of_drop(py_message *self) {
    PyObject *delivery = delivery_of(self->consumer->queue, self->q, &self->d, self->consumer->own);
    PyObject *callback = delivery != NULL ? PyObject_GetAttrString((PyObject *)self->consumer, "_forgot") : NULL;
    if (callback != NULL) {
        tell_in_destructor(callback, delivery, true);
    } else if (delivery == NULL) {
        (void)shmq_release(self->q, &self->d, true);
    }
    Py_XDECREF(callback);
    Py_XDECREF(delivery);
}

static int message_traverse(PyObject *o, visitproc visit, void *arg) {
    py_message *self = (py_message *)o;
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(self->queue);
    Py_VISIT((PyObject *)self->consumer);
    Py_VISIT(self->block);
    Py_VISIT(self->view);
    Py_VISIT(self->body);
    return 0;
}

static int message_clear(PyObject *o) {
    py_message *self = (py_message *)o;
    Py_CLEAR(self->block);
    Py_CLEAR(self->view);
    Py_CLEAR(self->body);
    return 0;
}

static void message_dealloc(PyObject *o) {
    py_message *self = (py_message *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(o);
    if (SHMQ_UNLIKELY(self->link != NULL)) {
        PyObject *kind, *error, *trace;
        bool delivered = self->state == LENT;
        PyErr_Fetch(&kind, &error, &trace);
        message_unlink(self);
        if (consumer_usable(self->consumer) != SHMQ_OK) {
            /* of a parent process, or its broker was closed */
        } else if (delivered) {
            tell_of_drop(self);
        } else {
            (void)shmq_release(self->q, &self->d, false); /* a handler raised before it came to the caller */
        }
        PyErr_Restore(kind, error, trace);
    }
    (void)message_clear(o);
    Py_CLEAR(self->headers);
    Py_CLEAR(self->bytes);
    Py_CLEAR(self->outcome);
    Py_CLEAR(self->queue);
    Py_CLEAR(self->consumer);
    release(o);
    Py_DECREF(type);
}

/* ---- settlement ---- */

/* This call gets the right to settle. The thread has the interpreter lock, and no Python runs: one thread gets the
 * right, once. */
static void claim(py_message *self) {
    message_keep_body(self);
    message_unlink(self);
}

static void mark(py_message *self, PyObject *outcome) {
    shmq_py_set(&self->outcome, Py_NewRef(outcome));
    self->settled_at = (double)shmq_about_now_ns() / 1e9;
    self->settled_by = PyThread_get_thread_ident();
}

/* A message has left its consumer's hands. */
static int credit_came(const py_message *self) {
    py_consumer *whole = self->consumer->whole;
    return SHMQ_LIKELY(whole->prefetch == 0) ? 0 : consumer_credit_came(whole);
}

PyDoc_STRVAR(ack_doc,
             "ack($self, /)\n--\n\n"
             "Done: the message is gone. AMQP 1.0: accepted.\n"
             "\n"
             "Raises SettlementError for a second or late one; nothing changes then.\n"
             "\n"
             "Example:\n"
             "    >>> _ = queue.put(\"a\")\n"
             "    >>> m = queue.receive()\n"
             "    >>> m.ack()\n"
             "    >>> m.ack()\n"
             "    Traceback (most recent call last):\n"
             "    shmq.errors.SettlementError: message 1 of queue 'jobs' was acked by thread MainThread ... s ago...");

static PyObject *message_ack(PyObject *o, PyObject *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    if (SHMQ_UNLIKELY(!is_in_hand(self))) {
        return PyObject_CallMethod(o, "_cannot", "O", acked); /* raises */
    }
    claim(self);
    bool done = shmq_settle(self->q, &self->d) == SHMQ_OK;
    mark(self, acked);
    int told = credit_came(self);
    message_let_go(self);
    if (told < 0) {
        return NULL;
    }
    if (SHMQ_UNLIKELY(!done)) {
        return PyObject_CallMethod(o, "_late", "O", acked); /* raises */
    }
    Py_RETURN_NONE;
}

/* _claimed() -> Delivery, for an outcome that Python applies; None: this call has no right to settle. */
static PyObject *message_claimed(PyObject *o, PyObject *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    if (!is_in_hand(self)) {
        Py_RETURN_NONE;
    }
    PyObject *delivery = delivery_of(self->consumer->queue, self->q, &self->d, self->consumer->own);
    if (delivery == NULL) {
        return NULL;
    }
    claim(self);
    if (credit_came(self) < 0) {
        Py_CLEAR(delivery);
    }
    message_let_go(self);
    return delivery;
}

/* _mark(outcome): notes this outcome, this thread and this time. */
static PyObject *message_mark(PyObject *o, PyObject *outcome) {
    mark((py_message *)o, outcome);
    Py_RETURN_NONE;
}

static PyObject *message_enter(PyObject *o, PyObject *unused) {
    (void)unused;
    if (((py_message *)o)->browsed) {
        return PyObject_CallMethod(o, "_cannot", "s",
                                   "settled"); /* before the caller does work that nothing would settle */
    }
    return Py_NewRef(o);
}

static PyObject *message_exit(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_message *self = (py_message *)o;
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "__exit__(kind, error, trace)");
        return NULL;
    }
    if (self->outcome != NULL && PyUnicode_CompareWithASCIIString(self->outcome, "taken away") != 0) {
        Py_RETURN_NONE;
    }
    return args[1] == Py_None ? message_ack(o, NULL) : PyObject_CallMethod(o, "_leave_by", "O", args[1]);
}

/* _touch() -> True: its lease began anew; False: it was taken away; None: it is not in hand. */
static PyObject *message_touch(PyObject *o, PyObject *unused) {
    py_message *self = (py_message *)o;
    (void)unused;
    if (!is_in_hand(self)) {
        Py_RETURN_NONE;
    }
    if (shmq_touch(self->q, &self->d) == SHMQ_OK) {
        Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

/* Neither settled nor given back; also in a forked child. */
static PyObject *message_is_held(PyObject *o, void *unused) {
    const py_message *self = (py_message *)o;
    (void)unused;
    return PyBool_FromLong(self->link != NULL && !shmq_member_is_closed(self->q->m));
}

/* Held, and not taken away? */
static PyObject *message_is_ours(PyObject *o, void *unused) {
    const py_message *self = (py_message *)o;
    (void)unused;
    bool held = self->link != NULL && !shmq_member_is_closed(self->q->m);
    return PyBool_FromLong(held && shmq_own_word(self->q, &self->d) != 0);
}

/* ---- the type ---- */

/* browsed(Message, queue, answer of _browse()) -> a Message that is only shown. */
static PyObject *browsed(PyObject *module, PyObject *args) {
    PyObject *type, *queue, *headers, *body;
    unsigned long long place, id, enqueued, expires, own_expires;
    unsigned int content, failed, deaths, priority;
    int redelivered;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO(KKKIIIpISSKK)", &type, &queue, &place, &id, &enqueued, &content, &failed, &deaths,
                          &redelivered, &priority, &headers, &body, &expires, &own_expires)) {
        return NULL;
    }
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, message_type)) {
        PyErr_SetString(PyExc_TypeError, "a type of messages is expected");
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    py_message *self = (py_message *)alloc((PyTypeObject *)type, 0);
    if (self != NULL) {
        self->queue = Py_NewRef(queue);
        self->headers = Py_NewRef(headers);
        self->bytes = Py_NewRef(body);
        self->outcome = PyUnicode_InternFromString("browsed");
        self->state = ENDED;
        self->browsed = true;
        self->redelivered = redelivered != 0;
        self->place = place;
        self->failed = failed;
        self->deaths = deaths;
        self->own_expires_ns = own_expires;
        self->d.message_id = id;
        self->d.enqueued_ns = enqueued;
        self->d.expires_ns = expires;
        self->d.content = (uint8_t)content;
        self->d.priority = (uint8_t)priority;
        self->d.body_len = (uint32_t)PyBytes_Size(body);
    }
    return (PyObject *)self;
}

PyMethodDef message_functions[] = {
    {"browsed", browsed, METH_VARARGS, "browsed(Message, queue, seen) A Message that is only shown."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef message_methods[] = {
    {"ack", message_ack, METH_NOARGS, ack_doc},
    {"__enter__", message_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nItself."},
    {"__exit__", (PyCFunction)(void (*)(void))message_exit, METH_FASTCALL,
     "__exit__($self, kind, error, trace, /)\n--\n\nSettles it, as the class says."},
    {"_data", message_data, METH_NOARGS, NULL},
    {"_intact", message_intact, METH_NOARGS, NULL},
    {"_claimed", message_claimed, METH_NOARGS, NULL},
    {"_mark", message_mark, METH_O, NULL},
    {"_touch", message_touch, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef message_answers[] = {
    {"body", message_body, NULL,
     "Decoded on first use, an own copy. Raises DecodeError, CorruptionError for one that was damaged meanwhile.",
     NULL},
    {"_delivered", message_delivered, NULL, "Itself, which its caller has from now on.", NULL},
    {"_head", message_headers, NULL, "The encoded headers.", NULL},
    {"_is_held", message_is_held, NULL, "Neither settled nor given back.", NULL},
    {"_is_ours", message_is_ours, NULL, "Nor taken away.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define OF_DELIVERY(name, member, type) \
    {name, type, offsetof(py_message, d) + offsetof(shmq_delivery, member), READONLY, NULL}
#define OWN(name, member, type, flags) {name, type, offsetof(py_message, member), flags, NULL}
static PyMemberDef message_members[] = {
    OF_DELIVERY("_id", message_id, T_ULONGLONG),
    OF_DELIVERY("_size", body_len, T_UINT),
    OF_DELIVERY("_content", content, T_UBYTE),
    OF_DELIVERY("_enqueued_ns", enqueued_ns, T_ULONGLONG),
    OF_DELIVERY("_expires_ns", expires_ns, T_ULONGLONG),
    OF_DELIVERY("_priority", priority, T_UBYTE),
    OWN("_position", place, T_ULONGLONG, READONLY),
    OWN("_failed", failed, T_UINT, READONLY),
    OWN("_deaths", deaths, T_UINT, READONLY),
    OWN("_redelivered", redelivered, T_BOOL, READONLY),
    OWN("_browsed", browsed, T_BOOL, READONLY),
    OWN("_own_expires_ns", own_expires_ns, T_ULONGLONG, READONLY),
    OWN("_queue", queue, T_OBJECT_EX, 0),
    OWN("_consumer", consumer, T_OBJECT, READONLY),
    OWN("_loop", loop, T_ULONGLONG, 0),
    OWN("_block", block, T_OBJECT, 0),
    OWN("_outcome", outcome, T_OBJECT, 0),
    OWN("_settled_at", settled_at, T_DOUBLE, READONLY),
    OWN("_settled_by", settled_by, T_ULONG, READONLY),
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot message_slots[] = {
    {Py_tp_dealloc, (void *)message_dealloc},
    {Py_tp_traverse, (void *)message_traverse},
    {Py_tp_clear, (void *)message_clear},
    {Py_tp_methods, message_methods},
    {Py_tp_getset, message_answers},
    {Py_tp_members, message_members},
    {Py_tp_doc, "A message that was lent, or shown: the part of it that is written in C."},
    {0, NULL},
};
PyType_Spec message_spec = {
    .name = "shmq._native.MessageHandle",
    .basicsize = sizeof(py_message),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = message_slots,
};

int shmq_py_add_message(PyObject *module) {
    acked = PyUnicode_InternFromString("acked");
    return acked != NULL ? PyModule_AddFunctions(module, message_functions) : -1;
}
