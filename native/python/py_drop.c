/* A Python function that is called when an object goes.
 *
 * A Message has no __del__: that would be Python code at the end of each message, in which a signal handler may run.
 * And a KeyboardInterrupt raised in a destructor is printed and lost. So Python runs here only after a message was
 * dropped unsettled, or a loop was left.
 *
 * An exception that a handler raises here is kept until all is done. Only then the interpreter gets it, and raises it
 * in the main thread a moment later. At once, the very next try would raise it, at the entry of the callback: one
 * signal would use up all tries. */
#include "py_queue.h"

#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 5 /* each signal whose handler raises uses up one try, perhaps before the callback has done anything */

PyTypeObject *drop_type;

typedef struct py_drop {
    PyObject_HEAD PyObject *callback; /* strong; NULL: disarmed */
    PyObject *argument;               /* strong */
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

static int raise_again(void *error) {
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)error), (PyObject *)error);
    Py_DECREF((PyObject *)error);
    return -1;
}

/* Passes on what a handler raised: the interpreter raises it before it continues the caller's code. Handlers run in the
 * main thread only. So an exception in another thread comes from no handler, and is printed like any exception in a
 * destructor. */
static void pass_on(PyObject *error, PyObject *callback) {
    if (syscall(SYS_gettid) == getpid() && Py_AddPendingCall(raise_again, error) == 0) {
        return; /* the pending call owns the error now */
    }
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    PyErr_WriteUnraisable(callback);
}

/* The exception that is set, with its traceback. Afterwards none is set. */
static PyObject *caught(void) {
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (error != NULL && trace != NULL) {
        (void)PyException_SetTraceback(error, trace);
    }
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    return error;
}

/* Calls until the callback has done its work, or handlers have ended all tries. Then the message goes back without it:
 * the attempt counts, and the next taker decides what becomes of the message. */
void tell_in_destructor(PyObject *callback, PyObject *argument, bool fails) {
    PyObject *raised[TRIES], *done = NULL;
    int count = 0;
    while (done == NULL && count < TRIES) {
        done = PyObject_CallFunctionObjArgs(callback, argument, NULL);
        if (done == NULL) {
            raised[count++] = caught();
        }
    }
    if (done == NULL && fails) {
        delivery_fails(argument);
    }
    Py_XDECREF(done);
    for (int i = 0; i < count; i++) {
        pass_on(raised[i], callback);
    }
}

static void drop_dealloc(PyObject *o) {
    py_drop *self = (py_drop *)o;
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    tell_in_destructor(self->callback, self->argument, false);
    PyErr_Restore(kind, error, trace);
    Py_CLEAR(self->callback);
    Py_CLEAR(self->argument);
    release(o);
    Py_DECREF(type);
}

static PyType_Slot drop_slots[] = {
    {Py_tp_new, (void *)drop_new},
    {Py_tp_dealloc, (void *)drop_dealloc},
    {Py_tp_doc, "Drop(callback, argument): calls callback(argument) when it goes."},
    {0, NULL},
};
PyType_Spec drop_spec = {
    .name = "shmq._native.Drop",
    .basicsize = sizeof(py_drop),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = drop_slots,
};

/* if_free(lock, callback): calls callback() with the lock, or nothing if another thread has the lock, since a
 * destructor must not wait. In C, so that no handler can raise between taking the lock and its release. */
static PyObject *if_free(PyObject *module, PyObject *args) {
    PyObject *lock, *callback;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:if_free", &lock, &callback)) {
        return NULL;
    }
    PyObject *taken = PyObject_CallMethod(lock, "acquire", "i", 0);
    int free = taken == NULL ? -1 : PyObject_IsTrue(taken);
    Py_XDECREF(taken);
    if (free <= 0) {
        return free < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *kind, *error, *trace;
    PyObject *done = PyObject_CallNoArgs(callback);
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *given = PyObject_CallMethod(lock, "release", NULL);
    PyErr_Clear(); /* this thread has the lock, so the release cannot fail */
    Py_XDECREF(given);
    PyErr_Restore(kind, error, trace);
    return done;
}

PyMethodDef drop_functions[] = {
    {"if_free", if_free, METH_VARARGS, "if_free(lock, callback): callback() with the lock, if no other thread has it."},
    {NULL, NULL, 0, NULL},
};
