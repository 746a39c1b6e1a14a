/* A subscription that takes some entries only, and keeps how far it has looked. */
#include "py_subscription.h"

PyTypeObject *subscription_type;

/* Called within a scan, without the interpreter lock: the entry lies in the segment, and may be torn. */
static bool is_selected(void *context, const shmq_ring *level, const shmq_delivery *d) {
    return shmq_delivery_selected(context, level, d);
}

static PyObject *subscription_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"selector", NULL};
    PyObject *selector = Py_None;
    const shmq_selector *loaded = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O", names, &selector) ||
        (selector != Py_None && (loaded = shmq_py_selector(selector)) == NULL)) {
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_subscription *self = (py_subscription *)alloc(type, 0);
    if (self != NULL) {
        shmq_subscription_begin(&self->s, loaded != NULL ? is_selected : NULL, (void *)(uintptr_t)loaded);
        Py_INCREF(selector);
        self->selector = selector;
    }
    return (PyObject *)self;
}

static void subscription_dealloc(PyObject *o) {
    py_subscription *self = (py_subscription *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    shmq_subscription_end(&self->s);
    Py_CLEAR(self->selector);
    release(o);
    Py_DECREF(type);
}

/* refuse(queue, place): this subscription never gets the entry there again. */
static PyObject *subscription_refuse(PyObject *o, PyObject *args) {
    py_subscription *self = (py_subscription *)o;
    PyObject *queue;
    unsigned long long place;
    if (!PyArg_ParseTuple(args, "O!K", queue_type, &queue, &place) || !queue_ready((py_queue *)queue)) {
        return NULL;
    }
    if (!shmq_refuse(&self->s, ((py_queue *)queue)->q, place)) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

static PyMethodDef subscription_methods[] = {
    {"refuse", subscription_refuse, METH_VARARGS, "refuse(queue, position): never again this entry."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot subscription_slots[] = {
    {Py_tp_new, (void *)subscription_new},
    {Py_tp_dealloc, (void *)subscription_dealloc},
    {Py_tp_methods, subscription_methods},
    {Py_tp_doc, "The messages that a consumer takes, and how far it has looked."},
    {0, NULL},
};
PyType_Spec subscription_spec = {
    .name = "shmq._native.Subscription",
    .basicsize = sizeof(py_subscription),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = subscription_slots,
};

bool subscription_of(PyObject *object, shmq_subscription **by) {
    *by = NULL;
    if (object == Py_None) {
        return true;
    }
    int is_one = PyObject_IsInstance(object, (PyObject *)subscription_type);
    if (is_one > 0) {
        *by = &((py_subscription *)object)->s;
    } else if (is_one == 0) {
        PyErr_SetString(PyExc_TypeError, "a Subscription or None is expected");
    }
    return is_one > 0;
}
