/* Statuses of the core as exceptions, which a factory of Python makes. */
#include "py_shmq.h"

static PyObject *exception_factory;

PyObject *shmq_py_raise(shmq_status status) {
    if (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() != 0) {
        return NULL;
    }
    const char *name = shmq_status_name(status);
    if (exception_factory == NULL) {
        return PyErr_Format(PyExc_RuntimeError, "%s: %s", name, shmq_trail());
    }
    /* The trail quotes names of files and queues, which may not be text. */
    const char *trail = shmq_trail();
    PyObject *text = PyUnicode_DecodeUTF8(trail, (Py_ssize_t)strlen(trail), "backslashreplace");
    if (text == NULL) {
        return NULL;
    }
    PyObject *error = PyObject_CallFunction(exception_factory, "sNi", name, text, shmq_trail_errno());
    shmq_trail_clear();
    if (error == NULL) {
        return NULL;
    }
    if (PyExceptionInstance_Check(error)) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    } else {
        PyErr_Format(PyExc_TypeError, "the exception factory answered %R, not an exception", error);
    }
    Py_DECREF(error);
    return NULL;
}

PyObject *shmq_py_set_exception_factory(PyObject *module, PyObject *factory) {
    (void)module;
    if (factory != Py_None && !PyCallable_Check(factory)) {
        return PyErr_Format(PyExc_TypeError, "the factory must be callable or None, not %R", factory);
    }
    PyObject *before = exception_factory;
    exception_factory = factory == Py_None ? NULL : Py_NewRef(factory);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
