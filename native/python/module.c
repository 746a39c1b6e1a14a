/* The extension module shmq._native: exceptions, constants, clocks, checksums. */
#include "py_shmq.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Types and the factory of exceptions are static pointers, since statuses are raised in functions that know no module. So
 * only one interpreter of a process may load the module. */
static int64_t interpreter = -1;

static PyObject *crc32c(PyObject *module, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"data", "start", NULL};
    Py_buffer data;
    unsigned int start = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "y*|I:crc32c", names, &data, &start)) {
        return NULL;
    }
    uint32_t crc;
    Py_BEGIN_ALLOW_THREADS
    crc = shmq_crc32c(start, data.buf, (size_t)data.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

static PyObject *monotonic_ns(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyLong_FromUnsignedLongLong(shmq_now_ns());
}

static void *run_thread(void *callable) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *done = PyObject_CallNoArgs(callable);
    if (done == NULL) {
        PyErr_WriteUnraisable(callable);
    }
    Py_XDECREF(done);
    Py_DECREF((PyObject *)callable);
    PyGILState_Release(state);
    return NULL;
}

static PyObject *start_thread(PyObject *module, PyObject *callable) {
    pthread_t thread;
    (void)module;
    errno = pthread_create(&thread, NULL, run_thread, Py_NewRef(callable));
    if (errno != 0) {
        Py_DECREF(callable);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    pthread_detach(thread);
    Py_RETURN_NONE;
}

static PyObject *thread_id(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLong(syscall(SYS_gettid));
}

static PyObject *wall_ns(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyLong_FromUnsignedLongLong(shmq_wall_ns());
}

static PyMethodDef functions[] = {
    {"set_exception_factory", shmq_py_set_exception_factory, METH_O,
     "set_exception_factory(factory)\n\nfactory(status, trail, errno) answers the exception to be raised."},
    {"crc32c", (PyCFunction)(void (*)(void))crc32c, METH_VARARGS | METH_KEYWORDS,
     "crc32c(data, start=0)\n\nCRC-32C of the bytes, going on from `start`."},
    {"monotonic_ns", monotonic_ns, METH_NOARGS, "The clock of durations and enqueued_ns, in nanoseconds."},
    {"start_thread", start_thread, METH_O, "start_thread(callable) In a thread of the system, whatever Python's are."},
    {"thread_id", thread_id, METH_NOARGS, "The system's number of this thread."},
    {"wall_ns", wall_ns, METH_NOARGS, "The wall clock, in nanoseconds since 1970."},
    {NULL, NULL, 0, NULL},
};

typedef struct constant {
    const char *name;
    uint64_t value;
} constant;

static int add_constants(PyObject *module) {
    static const constant constants[] = {
        {"LAYOUT_VERSION", SHMQ_LAYOUT_VERSION},
        {"MEMORY_MIN", SHMQ_MEMORY_MIN},
        {"MEMORY_MAX", SHMQ_MEMORY_MAX},
        {"GRANULE_BYTES", SHMQ_GRANULE_BYTES},
        {"PROCESS_ROWS", SHMQ_PROCESS_ROWS},
        {"QUEUES", SHMQ_QUEUES},
        {"CONSUMER_ROWS", SHMQ_CONSUMER_ROWS},
        {"NAME_MAX", SHMQ_NAME_MAX},
        {"DEATH_RECORD_MOVER", SHMQ_DEATH_RECORD_MOVER},
        {"ALERT_MESSAGES", SHMQ_ALERT_MESSAGES},
        {"ALERT_BYTES", SHMQ_ALERT_BYTES},
        {"ALERT_AGE", SHMQ_ALERT_AGE},
        {"DEATH_RECORD_PROCESS", SHMQ_DEATH_RECORD_PROCESS},
        {"PATH_MAX", SHMQ_PATH_MAX},
        {"HEAD_MAX", SHMQ_HEADERS_MAX},
        {"BODY_MAX", SHMQ_BODY_MAX},
        {"SLOT_MIN", SHMQ_SLOT_MIN},
        {"SLOT_MAX", SHMQ_SLOT_MAX},
        {"SLOT_HEADER", SHMQ_SLOT_HEADER},
        {"RING_MIN", SHMQ_RING_MIN},
        {"RING_MAX", SHMQ_RING_MAX},
        {"COUNT_MAX", SHMQ_COUNT_MASK - 1},
        {"ROW_FREE", SHMQ_ROW_FREE},
        {"ROW_ATTACHING", SHMQ_ROW_ATTACHING},
        {"ROW_LIVE", SHMQ_ROW_LIVE},
        {"ROW_CLOSING", SHMQ_ROW_CLOSING},
        {"ROW_REAPING", SHMQ_ROW_REAPING},
    };
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(constants[i].value);
        int answer = value == NULL ? -1 : PyModule_AddObjectRef(module, constants[i].name, value);
        Py_XDECREF(value);
        if (answer != 0) {
            return -1;
        }
    }
    return 0;
}

static int execute(PyObject *module) {
    int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (interpreter >= 0 && interpreter != here) {
        PyErr_SetString(PyExc_ImportError, "shmq is used by another interpreter of this process; use processes");
        return -1;
    }
    interpreter = here;
    if (add_constants(module) != 0 || shmq_py_add_member(module) != 0 || shmq_py_add_segment(module) != 0 ||
        shmq_py_add_queue(module) != 0 || shmq_py_add_delivery(module) != 0 || shmq_py_add_selector(module) != 0 ||
        shmq_py_add_observer(module) != 0) {
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "shmq._native", .m_size = 0, .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
