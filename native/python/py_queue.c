/* The queue type, on which shmq.engine.queue.queue.Queue is built. Methods without an underscore are the public fast
 * path. Options, codecs and errors are Python methods of the subclass, called from here by name. */
#include "py_consumer.h"

#include <string.h>

static void let_go(py_queue *self) {
    shmq_queue *q = self->q;
    self->q = NULL;
    if (q != NULL) {
        BEGIN_WAIT(self)
        shmq_queue_unbind(q);
        END_WAIT(self)
    }
    Py_CLEAR(self->owner);
}

static void queue_dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    let_go((py_queue *)o);
    Py_CLEAR(((py_queue *)o)->implicit);
    PyErr_Restore(kind, error, trace);
    release(o);
    Py_DECREF(type);
}

/* _bind(member, index, incarnation, codec_kind) */
static PyObject *queue_bind(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *member;
    unsigned int index, incarnation;
    int codec_kind;
    shmq_queue *q;
    if (!PyArg_ParseTuple(args, "O!IIi", shmq_py_member_type, &member, &index, &incarnation, &codec_kind)) {
        return NULL;
    }
    shmq_member *m = ((shmq_py_member *)member)->member;
    if (m == NULL || shmq_member_is_closed(m)) {
        return queue_raise(self, SHMQ_CLOSED);
    }
    shmq_status status;
    do {
        shmq_py_enter((shmq_py_member *)member);
        Py_BEGIN_ALLOW_THREADS
        status = shmq_queue_bind(m, index, incarnation, &q);
        Py_END_ALLOW_THREADS
        shmq_py_leave((shmq_py_member *)member);
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    let_go(self);
    Py_INCREF(member);
    self->owner = (shmq_py_member *)member;
    self->q = q;
    self->codec_kind = codec_kind;
    Py_RETURN_NONE;
}

static PyObject *queue_unbind(PyObject *o, PyObject *unused) {
    (void)unused;
    let_go((py_queue *)o);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    put_doc,
    "put($self, body, *, timeout=None, headers=None, priority=4, group=None, ttl=None, delay=0.0, "
    "immediate=False)\n--\n\n"
    "Put one message at the end of the queue and answer its id.\n"
    "\n"
    "body: what the handle's codec takes (by default bytes-like, str, JSON values and numpy arrays).\n"
    "timeout: seconds to wait for room; None waits for ever, 0 does not wait.\n"
    "options: those of shmq.PutOptions.\n"
    "    headers: {name: value}, names text, values str, int, float, bool, bytes or None.\n"
    "    priority: 0 to 9, larger goes first; 4 if not given. ValueError on a queue without priorities.\n"
    "    group: text; messages of one group are with one consumer at a time. ValueError on a queue without groups.\n"
    "    ttl: seconds until it expires, counted from now; None: never. 0: at once.\n"
    "    delay: seconds until it can be received. It keeps its place meanwhile.\n"
    "    immediate: True, or seconds: taken by a consumer by then, else withdrawn, and Returned is raised.\n"
    "\n"
    "Raises Full (with resource, limit, used), ShutDown, NotFound, Closed, MessageTooLarge, OutOfSpace. Raises TypeError\n"
    "for a body that the codec does not take, ValueError for an unfit option. When it raises, nothing was put; only an\n"
    "immediate put that a signal's handler ends leaves a message to the consumer that has it. Once it has returned,\n"
    "the message is delivered, dead-lettered or still there, whichever process dies.\n"
    "\n"
    "Example:\n"
    "    >>> queue.put({\"id\": 7}, timeout=1.0)\n"
    "    1\n"
    "    >>> queue.get()\n"
    "    {'id': 7}");
PyDoc_STRVAR(
    put_many_doc,
    "put_many($self, bodies, *, timeout=None, headers=None, priority=4, group=None, ttl=None, delay=0.0)\n--\n\n"
    "Put several messages in order; consumers are woken once for many.\n"
    "\n"
    "bodies: an iterable of what put() takes. One text, bytes or mapping is a TypeError: it is one body, for put().\n"
    "timeout: seconds, for each wait for room; None waits for ever, 0 does not wait.\n"
    "options: headers, priority, group, ttl, delay; as for put(), the same for all.\n"
    "Raises as put(), and what the iterable raises. Messages put before the error stay: its attribute `accepted` says\n"
    "how many are in.\n"
    "\n"
    "Example:\n"
    "    >>> queue.put_many(range(1000))\n"
    "    >>> queue.qsize()\n"
    "    1000");
PyDoc_STRVAR(
    get_doc,
    "get($self, *, timeout=None)\n--\n\n"
    "Take the first message for good and answer its body.\n"
    "\n"
    "timeout: seconds; None waits for ever, 0 does not wait.\n"
    "Raises Empty, ConsumerRefused (1,087 consumers and threads are there already), ShutDown (shut down and drained),\n"
    "NotFound, Closed, CorruptionError. Raises DecodeError, and the message stays in the queue: in its place when the\n"
    "handle does not know its content type, else the attempt counts. A call that a signal interrupts takes nothing.\n"
    "If this process dies before get() has returned, the message is still there.\n"
    "\n"
    "Example:\n"
    "    >>> queue.put(\"a\")\n"
    "    1\n"
    "    >>> queue.get(timeout=1.0)\n"
    "    'a'");
PyDoc_STRVAR(get_many_doc,
             "get_many($self, limit, *, timeout=None)\n--\n\n"
             "Wait for the first message, then take what is there, at most `limit`; [] after the timeout.\n"
             "\n"
             "limit: 1 or more.\n"
             "timeout: seconds to wait for the first one; None waits for ever, 0 does not wait.\n"
             "Raises ShutDown (shut down and drained), ValueError for an unfit limit, and otherwise as get().\n"
             "\n"
             "Example:\n"
             "    >>> queue.put_many([\"a\", \"b\", \"c\"])\n"
             "    >>> while batch := queue.get_many(2, timeout=0):\n"
             "    ...     print(batch)\n"
             "    ['a', 'b']\n"
             "    ['c']");

static PyMethodDef fast_methods[] = {
    {"put", (PyCFunction)(void (*)(void))queue_put, METH_FASTCALL | METH_KEYWORDS, put_doc},
    {"put_many", (PyCFunction)(void (*)(void))queue_put_many, METH_FASTCALL | METH_KEYWORDS, put_many_doc},
    {"get", (PyCFunction)(void (*)(void))queue_get, METH_FASTCALL | METH_KEYWORDS, get_doc},
    {"get_many", (PyCFunction)(void (*)(void))queue_get_many, METH_FASTCALL | METH_KEYWORDS, get_many_doc},
    {"_put_encoded", (PyCFunction)(void (*)(void))queue_put_encoded, METH_FASTCALL, NULL},
    {"_acquire", (PyCFunction)(void (*)(void))queue_acquire, METH_FASTCALL, NULL},
    {"_receive", queue_receive, METH_O, NULL},
    {"_receive_many", (PyCFunction)(void (*)(void))queue_receive_many, METH_FASTCALL, NULL},
    {"_bind", queue_bind, METH_VARARGS, NULL},
    {"_unbind", queue_unbind, METH_NOARGS, NULL},
};
#define FAST_METHODS (sizeof fast_methods / sizeof fast_methods[0])

static PyMethodDef queue_methods[64];

static PyType_Slot queue_slots[] = {
    {Py_tp_dealloc, (void *)queue_dealloc},
    {Py_tp_methods, queue_methods},
    {Py_tp_doc, "A handle on one queue: the part of it that is written in C."},
    {0, NULL},
};
PyType_Spec queue_spec = {
    .name = "shmq._native.QueueHandle",
    .basicsize = sizeof(py_queue),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = queue_slots,
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name) {
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL || PyModule_AddObjectRef(module, name, type) < 0) {
        Py_XDECREF(type);
        return NULL;
    }
    return (PyTypeObject *)type; /* the static pointer keeps one reference while the process lives */
}

int shmq_py_add_queue(PyObject *module) {
    size_t n = 0;
    for (; n < FAST_METHODS; n++) {
        queue_methods[n] = fast_methods[n];
    }
    for (PyMethodDef *m = queue_manage_methods; m->ml_name != NULL; m++) {
        queue_methods[n++] = *m;
    }
    for (PyMethodDef *m = queue_browse_methods; m->ml_name != NULL; m++) {
        queue_methods[n++] = *m;
    }
    for (PyMethodDef *m = queue_claim_methods; m->ml_name != NULL; m++) {
        queue_methods[n++] = *m;
    }
    queue_methods[n] = (PyMethodDef){0};
    queue_type = add_type(module, &queue_spec, "QueueHandle");
    if (queue_type == NULL || PyModule_AddFunctions(module, broker_functions) < 0) {
        return -1;
    }
    if (PyModule_AddFunctions(module, receive_any_functions) < 0) {
        return -1;
    }
    if (PyModule_AddFunctions(module, header_functions) < 0 ||
        PyModule_AddFunctions(module, header_writer_functions) < 0) {
        return -1;
    }
    if (PyModule_AddFunctions(module, drop_functions) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, delivery_functions);
}

int shmq_py_add_delivery(PyObject *module) {
    delivery_type = add_type(module, &delivery_spec, "Delivery");
    view_type = add_type(module, &view_spec, "View");
    loan_type = add_type(module, &loan_spec, "LoanBuffer");
    drop_type = add_type(module, &drop_spec, "Drop");
    row_type = add_type(module, &row_spec, "Row");
    message_type = add_type(module, &message_spec, "MessageHandle");
    consumer_type = add_type(module, &consumer_spec, "ConsumerHandle");
    batch_type = add_type(module, &batch_spec, "Batch");
    subscription_type = add_type(module, &subscription_spec, "Subscription");
    if (message_type == NULL || consumer_type == NULL || batch_type == NULL || shmq_py_add_message(module) < 0) {
        return -1;
    }
    return subscription_type != NULL && delivery_type != NULL && view_type != NULL && loan_type != NULL &&
                   drop_type != NULL && row_type != NULL
               ? 0
               : -1;
}
