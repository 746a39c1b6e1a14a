/* The type Selector: a loaded program, run over one message or over many heads. */

#include "py_shmq.h"

static PyTypeObject *selector_type;

typedef struct py_selector {
    PyObject_HEAD shmq_selector *selector;
} py_selector;

const shmq_selector *shmq_py_selector(PyObject *o) {
    if (!PyObject_TypeCheck(o, selector_type)) {
        PyErr_Format(PyExc_TypeError, "expected a Selector, not %R", (PyObject *)Py_TYPE(o));
        return NULL;
    }
    return ((py_selector *)o)->selector;
}

static PyObject *selector_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    Py_buffer program;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "y*:Selector", &program)) {
        return NULL;
    }
    shmq_selector *selector;
    shmq_status status = shmq_selector_load(program.buf, (size_t)program.len, &selector);
    PyBuffer_Release(&program);
    if (status != SHMQ_OK) {
        return shmq_py_raise(status);
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_selector *self = (py_selector *)alloc(type, 0);
    if (self == NULL) {
        shmq_selector_free(selector);
        return NULL;
    }
    self->selector = selector;
    return (PyObject *)self;
}

static void selector_dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    shmq_selector_free(((py_selector *)o)->selector);
    release(o);
    Py_DECREF(type);
}

static PyObject *selector_selects(PyObject *o, PyObject *arguments) {
    Py_buffer headers;
    unsigned long long message_id, enqueued_wall_ms;
    unsigned char priority;
    int redelivered;
    unsigned int delivery_count;
    if (!PyArg_ParseTuple(arguments, "y*KKbpI:selects", &headers, &message_id, &enqueued_wall_ms, &priority,
                          &redelivered, &delivery_count)) {
        return NULL;
    }
    bool selected = false;
    if (headers.len <= UINT32_MAX) {
        shmq_fields fields = {
            .headers = headers.buf,
            .headers_len = (uint32_t)headers.len,
            .message_id = message_id,
            .enqueued_wall_ms = enqueued_wall_ms,
            .priority = priority,
            .redelivered = redelivered != 0,
            .delivery_count = delivery_count,
        };
        selected = shmq_selects(((py_selector *)o)->selector, &fields);
    }
    PyBuffer_Release(&headers);
    return PyBool_FromLong(selected);
}

static PyObject *selector_count(PyObject *o, PyObject *all_headers) {
    Py_ssize_t many = PyList_Size(all_headers), selected = 0;
    if (many < 0) {
        return NULL;
    }
    shmq_fields fields = {.priority = 4, .delivery_count = 1};
    for (Py_ssize_t i = 0; i < many; i++) {
        char *headers;
        Py_ssize_t bytes;
        if (PyBytes_AsStringAndSize(PyList_GetItem(all_headers, i), &headers, &bytes) != 0) {
            return NULL;
        }
        fields.headers = (unsigned char *)headers;
        fields.headers_len = bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
        fields.message_id = (uint64_t)i + 1;
        selected += shmq_selects(((py_selector *)o)->selector, &fields);
    }
    return PyLong_FromSsize_t(selected);
}

static PyMethodDef methods[] = {
    {"selects", selector_selects, METH_VARARGS,
     "selects(head, message_id, enqueued_wall_ms, priority, redelivered, delivery_count)\n\nIs it true for such a "
     "message?"},
    {"count", selector_count, METH_O,
     "count(heads)\n\nFor how many of a list of header blocks is it true, the message's own fields being those of new ones?"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, (void *)selector_new},
    {Py_tp_dealloc, (void *)selector_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Selector(program): a program of shmq.selector, checked."},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "shmq._native.Selector",
    .basicsize = sizeof(py_selector),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int shmq_py_add_selector(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type == NULL) {
        return -1;
    }
    selector_type = (PyTypeObject *)type;
    return PyModule_AddType(module, selector_type); /* the static pointer keeps its own reference */
}
