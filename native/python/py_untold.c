/* Lost and damaged messages are told of once, to whoever would have taken them next. A call that takes several, and has
 * some by then, hands these over. The next call of this process that takes from the queue tells of the damage. All
 * other errors are met again. */
#include "py_queue.h"

static PyObject *key_of(const py_queue *self) {
    return PyLong_FromUnsignedLongLong((unsigned long long)self->q->index << 32 | self->q->incarnation);
}

static bool is_told_once(PyObject *error) {
    PyObject *module = PyImport_ImportModule("shmq.errors");
    PyObject *wanted = module != NULL ? PyObject_GetAttrString(module, "CorruptionError") : NULL;
    bool answer = wanted != NULL && PyErr_GivenExceptionMatches(error, wanted);
    Py_XDECREF(wanted);
    Py_XDECREF(module);
    return answer;
}

/* Behind those that were met before: each call tells one. Without memory it is not kept; the segment has counted
 * the damage all the same. */
static void keep(py_queue *self, PyObject *error) {
    PyObject **untold = &self->owner->untold, *key = key_of(self);
    if (*untold == NULL) {
        *untold = PyDict_New();
    }
    PyObject *list = *untold != NULL && key != NULL ? PyDict_GetItemWithError(*untold, key) : NULL;
    if (list != NULL) {
        (void)PyList_Append(list, error);
    } else if (*untold != NULL && key != NULL && !PyErr_Occurred()) {
        list = PyList_New(0);
        if (list != NULL && PyList_Append(list, error) == 0) {
            (void)PyDict_SetItem(*untold, key, list);
        }
        Py_XDECREF(list);
    }
    Py_XDECREF(key);
}

void queue_keep_untold(py_queue *self) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (error != NULL && self->q != NULL && is_told_once(error)) {
        keep(self, error);
    }
    PyErr_Clear();
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
}

bool queue_tell(py_queue *self) {
    PyObject *untold = self->owner->untold, *key = key_of(self);
    PyObject *list = key != NULL ? PyDict_GetItemWithError(untold, key) : NULL;
    PyObject *error = list != NULL ? PyList_GetItem(list, 0) : NULL;
    if (error != NULL) {
        Py_INCREF(error);
        (void)PyList_SetSlice(list, 0, 1, NULL);
        if (PyList_Size(list) == 0) {
            (void)PyDict_DelItem(untold, key);
        }
        if (PyDict_Size(untold) == 0) {
            Py_CLEAR(self->owner->untold);
        }
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
    Py_XDECREF(key);
    return !PyErr_Occurred();
}
