/* Values that many calls are given, or answer: a home, a timeout, a dict. */
#include "py_queue.h"

#include <math.h>

int shmq_py_home_from(PyObject *object, void *result) {
    shmq_py_home *home = result;
    const char *uuid;
    Py_ssize_t bytes;
    home->given = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (!PyTuple_Check(object) || !PyArg_ParseTuple(object, "iy#:home", &home->home.dir_fd, &uuid, &bytes)) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_TypeError, "a home is (descriptor, uuid) or None, not %R", object);
        }
        return 0;
    }
    if (bytes != sizeof(home->home.uuid)) {
        PyErr_Format(PyExc_ValueError, "a uuid has 16 bytes, not %zd", bytes);
        return 0;
    }
    memcpy(home->home.uuid, uuid, sizeof(home->home.uuid));
    home->given = &home->home;
    return 1;
}

int shmq_py_put(PyObject *dict, const char *name, PyObject *value) {
    if (value == NULL) {
        return -1;
    }
    int answer = PyDict_SetItemString(dict, name, value);
    Py_DECREF(value);
    return answer;
}

bool parse_timeout(PyObject *timeout, uint64_t *until_ns) {
    if (timeout == NULL || timeout == Py_None) {
        *until_ns = SHMQ_FOR_EVER;
        return true;
    }
    double seconds = PyBool_Check(timeout) ? 0 : PyFloat_AsDouble(timeout);
    if (PyBool_Check(timeout) || (seconds == -1.0 && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))) {
        PyObject *name = PyType_GetName(Py_TYPE(timeout));
        if (name != NULL) {
            PyErr_Format(PyExc_TypeError,
                         "timeout=%R is of the type %U; give seconds, 0 not to wait, or None to wait for ever", timeout,
                         name);
            Py_DECREF(name);
        }
        return false;
    }
    if (seconds == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return false;
        }
        PyErr_Clear(); /* an int beyond all floats: a positive one means for ever */
        PyObject *zero = PyLong_FromLong(0);
        int negative = zero != NULL ? PyObject_RichCompareBool(timeout, zero, Py_LT) : -1;
        Py_XDECREF(zero);
        if (negative < 0) {
            return false;
        }
        seconds = negative ? -1.0 : HUGE_VAL;
    }
    if (!(seconds >= 0)) {
        PyErr_Format(PyExc_ValueError, "timeout=%R is out of range; give seconds >= 0, or None to wait for ever",
                     timeout);
        return false;
    }
    *until_ns = seconds == 0 ? 0 : seconds > 1e9 ? SHMQ_FOR_EVER : shmq_now_ns() + (uint64_t)(seconds * 1e9);
    return true;
}
