/* A notice that somebody let go of something: a call of Python that is made when this object goes, unless disarmed.
 *
 * Not a __del__ of the Message itself: that would be Python code at the end of every message, in which a signal's handler
 * may run - and a KeyboardInterrupt that is raised in a destructor is printed and forgotten. A settled message disarms its
 * notice, so Python runs here only after a message was dropped unsettled; and what a handler raises there is raised again
 * in the main thread, a moment later. */
#include "py_queue.h"

#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 3 /* a handler that raises may do so before the callback has done anything */

PyTypeObject *drop_type;

typedef struct py_drop {
    PyObject_HEAD PyObject *callback; /* strong; NULL: disarmed */
    PyObject *argument;
} py_drop;

static PyObject *drop_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *callback, *argument;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OO:Drop", &callback, &argument)) {
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    py_drop *self = (py_drop *)alloc(type, 0);
    if (self != NULL) {
        self->callback = Py_NewRef(callback);
        self->argument = Py_NewRef(argument);
    }
    return (PyObject *)self;
}

static PyObject *drop_disarm(PyObject *o, PyObject *unused) {
    py_drop *self = (py_drop *)o;
    (void)unused;
    Py_CLEAR(self->callback);
    Py_CLEAR(self->argument);
    Py_RETURN_NONE;
}

static int raise_again(void *error) {
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), (PyObject *)error);
    Py_DECREF((PyObject *)error);
    return -1;
}

/* What a handler has raised: the interpreter raises it before it goes on with the caller's code. Handlers run in the main
 * thread alone, so what is raised in another is none of theirs, and is printed, as all that is raised in a destructor. */
static void pass_on(PyObject *callback) {
    PyObject *kind, *error, *trace;
    if (syscall(SYS_gettid) == getpid()) {
        PyErr_Fetch(&kind, &error, &trace);
        PyErr_NormalizeException(&kind, &error, &trace);
        if (error != NULL && trace != NULL) {
            (void)PyException_SetTraceback(error, trace);
        }
        if (error != NULL && Py_AddPendingCall(raise_again, error) == 0) {
            Py_XDECREF(kind); /* the error is the call's now */
            Py_XDECREF(trace);
            return;
        }
        PyErr_Restore(kind, error, trace);
    }
    PyErr_WriteUnraisable(callback);
}

static void drop_dealloc(PyObject *o) {
    py_drop *self = (py_drop *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (self->callback != NULL) {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        PyObject *done = NULL;
        for (int tries = 0; done == NULL && tries < TRIES; tries++) {
            done = PyObject_CallFunctionObjArgs(self->callback, self->argument, NULL);
            if (done == NULL) {
                pass_on(self->callback);
            }
        }
        Py_XDECREF(done);
        PyErr_Restore(kind, error, trace);
    }
    Py_CLEAR(self->callback);
    Py_CLEAR(self->argument);
    release(o);
    Py_DECREF(type);
}

static PyMethodDef drop_methods[] = {
    {"disarm", drop_disarm, METH_NOARGS, "Nobody need be told any more."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot drop_slots[] = {
    {Py_tp_new, (void *)drop_new},
    {Py_tp_dealloc, (void *)drop_dealloc},
    {Py_tp_methods, drop_methods},
    {Py_tp_doc, "Drop(callback, argument): calls callback(argument) when it goes, unless disarmed."},
    {0, NULL},
};
PyType_Spec drop_spec = {
    .name = "shmq._native.Drop",
    .basicsize = sizeof(py_drop),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = drop_slots,
};
