/* Several messages in one call; and the consumer of a process, whose messages Queue.receive lends. */
#include "py_consumer.h"

PyTypeObject *batch_type;

/* Messages on their way to the caller, who has them from `_delivered` on. Before that they go back together. */
typedef struct py_batch {
    PyObject_HEAD PyObject *list; /* strong; of messages IN_TRANSIT */
} py_batch;

static PyObject *batch_delivered(PyObject *o, void *unused) {
    py_batch *self = (py_batch *)o;
    (void)unused;
    for (Py_ssize_t i = 0; i < PyList_Size(self->list); i++) {
        py_message *m = (py_message *)PyList_GetItem(self->list, i);
        m->state = m->state == IN_TRANSIT ? LENT : m->state;
    }
    return Py_NewRef(self->list);
}

static void batch_dealloc(PyObject *o) {
    py_batch *self = (py_batch *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_ssize_t size = self->list != NULL ? PyList_Size(self->list) : 0;
    py_message **all = size != 0 ? PyMem_Malloc((size_t)size * sizeof *all) : NULL;
    uint32_t count = 0;
    for (Py_ssize_t i = 0; all != NULL && i < size; i++) { /* without memory each goes back by itself */
        py_message *m = (py_message *)PyList_GetItem(self->list, i);
        if (m->link != NULL && m->state == IN_TRANSIT && consumer_usable(m->consumer) == SHMQ_OK) {
            all[count++] = m;
        }
    }
    (void)messages_go_back(all, count);
    PyMem_Free(all);
    Py_CLEAR(self->list);
    release(o);
    Py_DECREF(type);
}

/* Is the exception that is set the one of shmq with this name, or one derived from it, and none that a handler
 * raised? */
static bool is_error(const char *name) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *module = PyImport_ImportModule("shmq.errors");
    PyObject *wanted = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    bool answer = wanted != NULL && type != NULL && PyErr_GivenExceptionMatches(type, wanted);
    Py_XDECREF(wanted);
    Py_XDECREF(module);
    PyErr_Clear();
    PyErr_Restore(type, error, trace);
    return answer;
}

/* The first message is there or is waited for; then all that are there are taken. False with an exception set: nothing
 * is to be handed over. */
static bool fill(PyObject *o, PyObject *list, Py_ssize_t limit, PyObject *timeout) {
    for (bool first = true; PyList_Size(list) < limit; first = false) {
        PyObject *message = first ? consumer_receive(o, timeout) : consumer_one_more(o);
        if (message == NULL && is_error(first ? "Empty" : "ShmqError")) {
            if (first) {
                PyErr_Clear();
            } else {
                queue_keep_untold(((py_consumer *)o)->queue); /* what was taken is handed over; the next call tells */
            }
            return true;
        }
        if (message == NULL || message == Py_None) {
            Py_XDECREF(message);
            return message != NULL;
        }
        int failed = PyList_Append(list, message);
        Py_DECREF(message);
        if (failed) {
            return false;
        }
    }
    return true;
}

PyObject *consumer_receive_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    Py_ssize_t limit = nargs == 2 ? PyNumber_AsSsize_t(args[0], PyExc_OverflowError) : -1;
    if (limit < 1) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "_receive_many(limit, timeout)");
        }
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(batch_type, Py_tp_alloc);
    py_batch *batch = (py_batch *)alloc(batch_type, 0);
    if (batch != NULL && ((batch->list = PyList_New(0)) == NULL || !fill(o, batch->list, limit, args[1]))) {
        Py_CLEAR(batch);
    }
    return (PyObject *)batch;
}

/* ---- the consumer of a process, whose messages Queue.receive lends ---- */

static py_consumer *implicit_of(py_queue *self) {
    PyObject *found = self->implicit != NULL ? PyWeakref_GetObject(self->implicit) : Py_None;
    if (found != Py_None) {
        py_consumer *consumer = (py_consumer *)found;
        if (!consumer->closed && consumer->q == self->q && consumer_usable(consumer) == SHMQ_OK) {
            return (py_consumer *)Py_NewRef(found);
        }
    }
    found = PyObject_CallMethod((PyObject *)self, "_implicit", NULL);
    if (found != NULL) {
        shmq_py_set(&self->implicit, PyWeakref_NewRef(found, NULL));
        if (self->implicit == NULL) {
            Py_CLEAR(found);
        }
    }
    return (py_consumer *)found;
}

/* From here on the handle's codec decodes the message. */
static void belongs_to(py_message *message, py_queue *queue) {
    if (message->queue != (PyObject *)queue) {
        shmq_py_set(&message->queue, Py_NewRef((PyObject *)queue));
    }
}

PyObject *queue_receive(PyObject *o, PyObject *timeout) {
    uint64_t until;
    py_consumer *consumer = parse_timeout(timeout, &until) ? implicit_of((py_queue *)o) : NULL;
    PyObject *message = consumer != NULL ? consumer_receive_until((PyObject *)consumer, timeout, until) : NULL;
    if (message != NULL) {
        belongs_to((py_message *)message, (py_queue *)o);
    }
    Py_XDECREF((PyObject *)consumer);
    return message;
}

PyObject *queue_receive_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
    py_consumer *consumer = implicit_of((py_queue *)o);
    PyObject *batch = consumer != NULL ? consumer_receive_many((PyObject *)consumer, args, nargs) : NULL;
    for (Py_ssize_t i = 0; batch != NULL && i < PyList_Size(((py_batch *)batch)->list); i++) {
        belongs_to((py_message *)PyList_GetItem(((py_batch *)batch)->list, i), (py_queue *)o);
    }
    Py_XDECREF((PyObject *)consumer);
    return batch;
}

static PyGetSetDef batch_answers[] = {
    {"_delivered", batch_delivered, NULL, "The list, which its caller has from now on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, (void *)batch_dealloc},
    {Py_tp_getset, batch_answers},
    {Py_tp_doc, "Messages on their way to the caller."},
    {0, NULL},
};
PyType_Spec batch_spec = {
    .name = "shmq._native.Batch",
    .basicsize = sizeof(py_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = batch_slots,
};
