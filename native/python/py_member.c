/* The type Member: this process in one broker. */
#include "py_shmq.h"
#include "structmember.h"

#include "py_usage.h"

PyTypeObject *shmq_py_member_type;

static shmq_py_member *as_member(PyObject *object) { return (shmq_py_member *)object; }

shmq_member *shmq_py_usable(PyObject *object) {
    if (!PyObject_TypeCheck(object, shmq_py_member_type)) {
        return (shmq_member *)PyErr_Format(PyExc_TypeError, "a Member is needed, not %R", object);
    }
    shmq_member *m = as_member(object)->member;
    if (m == NULL || m->base == NULL || shmq_member_is_closed(m)) {
        return (shmq_member *)shmq_py_raise(shmq_fail(SHMQ_CLOSED, "the broker is closed in this process"));
    }
    return m;
}

/* Calls that wait for the structure lock end with SHMQ_INTERRUPTED when a signal came: try again. False: its handler
 * raised. */
static bool try_again(shmq_status status) { return status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0; }

static PyObject *fail(shmq_status status) { return PyErr_Occurred() ? NULL : shmq_py_raise(status); }

static PyObject *member_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"name", "home", NULL};
    const char *name;
    shmq_py_home home = SHMQ_PY_NO_HOME;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO&:Member", names, &name, shmq_py_home_from, &home)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self == NULL) {
        return NULL;
    }
    shmq_status status;
    do {
        Py_BEGIN_ALLOW_THREADS
        status = shmq_member_attach(name, home.given, &as_member(self)->member);
        Py_END_ALLOW_THREADS
    } while (try_again(status));
    if (status != SHMQ_OK) {
        Py_DECREF(self);
        return fail(status);
    }
    shmq_alerts_begin(as_member(self)->member);
    return self;
}

static void member_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    shmq_member *m = as_member(self)->member;
    if (m != NULL) {
        (void)shmq_py_member_end(as_member(self));
        /* Each object that reads the mapping holds a reference to this one. */
        Py_BEGIN_ALLOW_THREADS(void)
        shmq_member_leave(m, true);
        shmq_member_free(m);
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(as_member(self)->untold);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *member_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_status status = shmq_py_member_end(as_member(self));
    shmq_py_member_give_back(as_member(self));
    if (status != SHMQ_OK) {
        return shmq_py_raise(status);
    }
    Py_RETURN_NONE;
}

static PyObject *member_after_fork(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = as_member(self)->member;
    shmq_status status;
    do { /* no call that close() waits for: what was counted is the parent's. It waits for the rejoin itself */
        Py_BEGIN_ALLOW_THREADS
        status = shmq_member_after_fork(m);
        Py_END_ALLOW_THREADS
    } while (try_again(status));
    if (status != SHMQ_OK) {
        return fail(status);
    }
    Py_RETURN_NONE;
}

static PyObject *member_delete(PyObject *self, PyObject *force) {
    shmq_member *m = shmq_py_usable(self);
    int forced = PyObject_IsTrue(force);
    if (m == NULL || forced < 0) {
        return NULL;
    }
    shmq_status status;
    shmq_py_enter(as_member(self));
    do {
        Py_BEGIN_ALLOW_THREADS
        status = shmq_member_delete(m, forced != 0);
        Py_END_ALLOW_THREADS
    } while (try_again(status));
    shmq_py_leave(as_member(self));
    if (status != SHMQ_OK) {
        return fail(status);
    }
    Py_RETURN_NONE;
}

static PyObject *row_tuple(shmq_member *m, uint32_t row, const shmq_process_facts *facts) {
    PyObject *text =
        PyUnicode_DecodeUTF8(facts->name, (Py_ssize_t)strnlen(facts->name, sizeof(facts->name)), "replace");
    if (text == NULL) {
        return NULL;
    }
    return Py_BuildValue("(IIIIKKKNIKIN)", (unsigned)row, (unsigned)facts->generation, (unsigned)facts->state,
                         (unsigned)facts->pid, (unsigned long long)facts->start_time,
                         (unsigned long long)facts->pid_namespace, (unsigned long long)facts->attached_ns, text,
                         (unsigned)facts->unsettled, (unsigned long long)facts->pinned_bytes, (unsigned)facts->inside,
                         PyBool_FromLong(shmq_process_dead(m, row)));
}

static PyObject *member_processes(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    PyObject *list = m == NULL ? NULL : PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    uint32_t high = shmq_process_high(m);
    for (uint32_t row = 0; row < high; row++) {
        shmq_process_facts facts;
        if (!shmq_process_look(m, row, &facts)) {
            continue;
        }
        PyObject *tuple = row_tuple(m, row, &facts);
        if (tuple == NULL || PyList_Append(list, tuple) != 0) {
            Py_XDECREF(tuple);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(tuple);
    }
    return list;
}

static PyObject *member_usage(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    if (m == NULL) {
        return NULL;
    }
    shmq_py_usage usage;
    shmq_py_enter(as_member(self));
    Py_BEGIN_ALLOW_THREADS
    shmq_py_usage_look(m, &usage);
    Py_END_ALLOW_THREADS
    shmq_py_leave(as_member(self));
    return shmq_py_usage_dict(&usage);
}

static PyObject *member_memory_users(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    if (m == NULL) {
        return NULL;
    }
    shmq_py_enter(as_member(self));
    PyObject *list = shmq_py_memory_users(m);
    shmq_py_leave(as_member(self));
    return list;
}

static PyObject *member_header(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    return m == NULL ? NULL : shmq_py_header(m);
}

/* Copies the first fault, "" if there is none. The caller holds the structure lock. */
static shmq_status look_at_all(shmq_member *m, char *fault, size_t bytes) {
    SHMQ_TRY(shmq_structure_lock(m));
    const char *found = shmq_segment_fault(m);
    if (found == NULL) {
        found = shmq_references_fault(m);
    }
    snprintf(fault, bytes, "%s", found == NULL ? "" : found);
    shmq_structure_unlock(m);
    return SHMQ_OK;
}

static PyObject *member_valid(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    if (m == NULL) {
        return NULL;
    }
    char fault[256] = "";
    shmq_status status;
    shmq_py_enter(as_member(self));
    do {
        Py_BEGIN_ALLOW_THREADS
        status = look_at_all(m, fault, sizeof(fault));
        Py_END_ALLOW_THREADS
    } while (try_again(status));
    shmq_py_leave(as_member(self));
    if (status != SHMQ_OK) {
        return fail(status);
    }
    if (fault[0] == 0) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeUTF8(fault, (Py_ssize_t)strlen(fault), "replace");
}

static PyObject *member_gone(PyObject *self, PyObject *nothing) {
    (void)nothing;
    shmq_member *m = shmq_py_usable(self);
    return m == NULL ? NULL : PyBool_FromLong(shmq_member_gone(m));
}

static PyObject *get_name(PyObject *self, void *closure) {
    (void)closure;
    return PyUnicode_FromString(as_member(self)->member->name);
}

static PyObject *get_dir_fd(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(as_member(self)->member->dir_fd);
}

static PyObject *get_row(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLong(as_member(self)->member->row);
}

static PyObject *get_generation(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLong(as_member(self)->member->row_generation);
}

static PyObject *get_serial(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLongLong(as_member(self)->member->serial);
}

static PyObject *get_closed(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(shmq_member_is_closed(as_member(self)->member));
}

static PyObject *get_lost(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(shmq_member_is_lost(as_member(self)->member));
}

static PyObject *get_forked(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(shmq_member_forked(as_member(self)->member));
}

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The segment's name below /dev/shm.", NULL},
    {"dir_fd", get_dir_fd, NULL, "Descriptor of the broker's directory; -1: it has none, or is closed.", NULL},
    {"row", get_row, NULL, "Index of this process' row.", NULL},
    {"generation", get_generation, NULL, "Generation of the row.", NULL},
    {"serial", get_serial, NULL, "Grows with each new row after a fork.", NULL},
    {"closed", get_closed, NULL, "Has this membership ended?", NULL},
    {"lost", get_lost, NULL, "Were its descriptors closed beneath it, so that others took it for dead?", NULL},
    {"forked", get_forked, NULL, "Is this a forked child that has no row of its own yet?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* dead_letters_due() -> has this process found an expired message for the dead letters? The answer is True once. */
static PyObject *member_dead_letters_due(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(shmq_upcall_take(as_member(self)->member, SHMQ_UPCALL_DEAD_LETTERS));
}

/* alerts() -> is it time to look for alerts? The answer is True once. */
static PyObject *member_alerts(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(shmq_upcall_take(as_member(self)->member, SHMQ_UPCALL_ALERTS));
}

/* disk_alerts() -> (nine tenths of the budget are used, and this process is to log it; a producer was refused room,
 * likewise; bytes on disk) */
static PyObject *member_disk_alerts(PyObject *self, PyObject *unused) {
    uint64_t used;
    (void)unused;
    shmq_member *m = shmq_py_usable(self);
    if (m == NULL) {
        return NULL;
    }
    uint32_t bits = shmq_disk_alerts(m, &used);
    return Py_BuildValue("(iiK)", (bits & SHMQ_DISK_MARK) != 0, (bits & SHMQ_DISK_FULL) != 0, (unsigned long long)used);
}

static PyObject *member_flow_into(PyObject *self, PyObject *directory) {
    PyObject *bytes;
    if (!PyUnicode_FSConverter(directory, &bytes)) {
        return NULL;
    }
    shmq_status status = shmq_flow_into(as_member(self)->member, PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return status == SHMQ_OK ? Py_NewRef(Py_None) : shmq_py_raise(status);
}

static PyObject *member_encrypt_with(PyObject *self, PyObject *key) {
    shmq_member *m = shmq_py_usable(self);
    shmq_cipher *cipher = m != NULL ? shmq_py_cipher(key) : NULL;
    if (cipher == NULL) {
        return NULL;
    }
    shmq_status status = m->cipher == NULL ? shmq_flow_encrypted(m, cipher) : SHMQ_EXISTS;
    if (status != SHMQ_OK) {
        cipher->free(cipher);
    }
    return status == SHMQ_OK || status == SHMQ_EXISTS ? Py_NewRef(Py_None) : shmq_py_raise(status);
}

static PyMethodDef methods[] = {
    {"encrypt_with", member_encrypt_with, METH_O,
     "encrypt_with(key)\n\nThe key of what goes to disk, of 32 bytes, if this member has none yet."},
    {"flow_into", member_flow_into, METH_O,
     "flow_into(directory)\n\nWhere messages of queues that flow lie on disk. Once, before the first queue."},
    {"close", member_close, METH_NOARGS,
     "Leave: the row is given back; descriptors and memory, too, at the latest when the last view goes. Repeatable."},
    {"after_fork", member_after_fork, METH_NOARGS, "In a forked child: become a member of its own. Repeatable."},
    {"processes", member_processes, METH_NOARGS,
     "Rows in use: (row, generation, state, pid, start_time, pid_namespace, attached_ns, name, held, pinned_bytes, "
     "inside, dead)."},
    {"usage", member_usage, METH_NOARGS, "Memory and counters of the whole segment, as a dict."},
    {"memory_users", member_memory_users, METH_NOARGS,
     "Of all queues (name, bytes for slots, bytes of bodies); nothing while another process makes or deletes a queue."},
    {"header", member_header, METH_NOARGS, "Identity of the segment, as a dict."},
    {"valid", member_valid, METH_NOARGS, "None, or the first fault of the segment; rings have their own check."},
    {"dead_letters_due", member_dead_letters_due, METH_NOARGS,
     "Has anything expired that is to be taken to the dead? Asks once."},
    {"alerts", member_alerts, METH_NOARGS, "Is it time to look for alerts? Asks once."},
    {"disk_alerts", member_disk_alerts, METH_NOARGS,
     "(nine tenths of the budget are used, a producer was refused room, bytes): the first two only if this process logs them."},
    {"wall_of", shmq_py_wall_of, METH_O, "wall_of(ns) The time of the wall clock at this time of the monotonic one."},
    {"age_ns", shmq_py_age_ns, METH_O, "age_ns(ns) How long ago that was, time asleep included."},
    {"gone", member_gone, METH_NOARGS, "Has the broker been deleted, or its directory?"},
    {"delete", member_delete, METH_O,
     "delete(force)\n\nTake the segment's name away: the broker is gone for all members."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"dead_letters", T_UINT, offsetof(shmq_py_member, dead_letters), 0,
     "How many dead messages wait for room among the dead."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Member(name, home)\n\nThis process' membership in the broker whose segment is /dev/shm/name.\n"
     "home: (descriptor, uuid) of the directory that asks (the descriptor is duplicated), (-1, bytes(16)) for an "
     "anonymous one, None: nobody asks."},
    {Py_tp_new, member_new},
    {Py_tp_dealloc, member_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "shmq._native.Member",
    .basicsize = sizeof(shmq_py_member),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int shmq_py_add_member(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type == NULL) {
        return -1;
    }
    shmq_py_member_type = (PyTypeObject *)type;
    return PyModule_AddType(module, shmq_py_member_type); /* the static pointer keeps its own reference */
}
