/* Functions on a membership that concern queues: declare, list, reap, death records. */
#include <string.h>

#include "py_queue.h"
#include "py_usage.h"

static shmq_member *member_of(PyObject *o) {
    if (!PyObject_TypeCheck(o, shmq_py_member_type)) {
        PyErr_SetString(PyExc_TypeError, "a Member is expected");
        return NULL;
    }
    shmq_py_member *self = (shmq_py_member *)o;
    if (shmq_member_forked(self->member) && !shmq_member_is_closed(self->member)) {
        shmq_status status;
        while ((status = shmq_member_after_fork(self->member)) == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0) {
        }
        if (status != SHMQ_OK) {
            if (!PyErr_Occurred()) {
                shmq_py_raise(status);
            }
            return NULL;
        }
    }
    return shmq_py_usable(o);
}

static PyObject *deleted(void) { return shmq_py_raise(shmq_fail(SHMQ_GONE, "this broker was deleted")); }

/* queue_declare(member, name, settings, create) -> (index, incarnation, None), or (0, 0, index of the setting that differs).
 * NotFound is raised. */
static PyObject *declare(PyObject *module, PyObject *args) {
    PyObject *o, *settings;
    const char *name;
    Py_ssize_t name_len;
    int create, differs = -1;
    shmq_declaration d = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy#Op", &o, &name, &name_len, &settings, &create)) {
        return NULL;
    }
    shmq_member *m = member_of(o);
    if (m == NULL || !settings_declared(settings, &d)) {
        return NULL;
    }
    if (name_len < 1 || name_len > (Py_ssize_t)SHMQ_NAME_MAX) {
        PyErr_SetString(PyExc_ValueError, "a queue name of 1 to 200 bytes is expected");
        return NULL;
    }
    if (shmq_member_gone(m)) {
        return deleted();
    }
    d.create = create != 0;
    shmq_queue *q = NULL;
    shmq_status status;
    do {
        shmq_py_enter((shmq_py_member *)o);
        Py_BEGIN_ALLOW_THREADS
        status = shmq_queue_declare(m, name, (uint32_t)name_len, &d, &q, &differs);
        Py_END_ALLOW_THREADS
        shmq_py_leave((shmq_py_member *)o);
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    if (status == SHMQ_EXISTS) {
        return Py_BuildValue("(IIi)", 0u, 0u, differs);
    }
    if (status != SHMQ_OK) {
        return PyErr_Occurred() ? NULL : shmq_py_raise(status);
    }
    PyObject *result = Py_BuildValue("(IIO)", q->index, q->incarnation, Py_None);
    shmq_queue_unbind(q);
    return result;
}

static PyObject *names(PyObject *module, PyObject *o) {
    shmq_member *m = member_of(o);
    (void)module;
    return m == NULL ? NULL : shmq_member_gone(m) ? deleted() : shmq_py_queue_names(m);
}

/* ending_queues(member) -> [(name, index, incarnation)] of deleted queues with messages that become dead letters */
static PyObject *endings(PyObject *module, PyObject *o) {
    shmq_member *m = member_of(o);
    (void)module;
    return m != NULL ? shmq_py_ending_queues(m) : NULL;
}

/* alert_queues(member) -> the same of queues that may have an alert */
static PyObject *alerts(PyObject *module, PyObject *o) {
    shmq_member *m = member_of(o);
    (void)module;
    return m != NULL ? shmq_py_alert_queues(m) : NULL;
}

static PyObject *reap(PyObject *module, PyObject *o) {
    shmq_member *m = member_of(o);
    uint32_t reaped = 0;
    shmq_status status;
    (void)module;
    if (m == NULL) {
        return NULL;
    }
    do {
        shmq_py_enter((shmq_py_member *)o);
        Py_BEGIN_ALLOW_THREADS
        status = shmq_reap_dead(m, &reaped);
        Py_END_ALLOW_THREADS
        shmq_py_leave((shmq_py_member *)o);
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    if (status != SHMQ_OK) {
        return PyErr_Occurred() ? NULL : shmq_py_raise(status);
    }
    return PyLong_FromUnsignedLong(reaped);
}

/* do_due(member): does what is due in any queue, unless another thread does */
static PyObject *do_due(PyObject *module, PyObject *o) {
    shmq_member *m = member_of(o);
    (void)module;
    if (m == NULL) {
        return NULL;
    }
    shmq_py_enter((shmq_py_member *)o);
    Py_BEGIN_ALLOW_THREADS
    shmq_due_look(m);
    Py_END_ALLOW_THREADS
    shmq_py_leave((shmq_py_member *)o);
    Py_RETURN_NONE;
}

/* death_records(member, message_id) -> [(pid, signal or 0, at_ns)], oldest first. DEATH_RECORD_PROCESS: records that no
 * message has, which death_record_signal wrote. */
static PyObject *death_records(PyObject *module, PyObject *args) {
    PyObject *o;
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "OK", &o, &id)) {
        return NULL;
    }
    shmq_member *m = member_of(o);
    shmq_death_record found[SHMQ_DEATH_RECORDS];
    PyObject *list = m != NULL ? PyList_New(0) : NULL;
    uint32_t count = list != NULL ? shmq_death_records_of(m, id, found) : 0;
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        const shmq_death_record *note = &found[i];
        PyObject *item = Py_BuildValue("(IiK)", note->pid, note->signal, (unsigned long long)note->at_ns);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

/* death_record_signal(member, pid, signal) */
static PyObject *death_record_signal(PyObject *module, PyObject *args) {
    PyObject *o;
    unsigned int pid;
    int signal;
    (void)module;
    if (!PyArg_ParseTuple(args, "OIi", &o, &pid, &signal)) {
        return NULL;
    }
    shmq_member *m = member_of(o);
    if (m == NULL) {
        return NULL;
    }
    shmq_death_record_signal(m, pid, signal);
    Py_RETURN_NONE;
}

PyMethodDef broker_functions[] = {
    {"queue_declare", declare, METH_VARARGS, NULL},
    {"queue_names", names, METH_O, NULL},
    {"ending_queues", endings, METH_O, NULL},
    {"alert_queues", alerts, METH_O, NULL},
    {"do_due", do_due, METH_O, NULL},
    {"reap", reap, METH_O, NULL},
    {"death_records", death_records, METH_VARARGS, NULL},
    {"death_record_signal", death_record_signal, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
