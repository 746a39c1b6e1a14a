/* The type Observer: a segment that is only looked at. It has no row and no lock, and its mapping is read-only. */
#include "py_shmq.h"

#include "py_usage.h"

typedef struct {
    PyObject_HEAD shmq_member *member;
    uint32_t calls; /* calls without the GIL: they keep the mapping */
} py_observer;

static py_observer *usable(PyObject *o) {
    py_observer *self = (py_observer *)o;
    if (self->member == NULL) {
        shmq_py_raise(shmq_fail(SHMQ_CLOSED, "the look at this segment is over"));
        return NULL;
    }
    return self;
}

#define BEGIN_LOOK(self) \
    (self)->calls += 1;  \
    Py_BEGIN_ALLOW_THREADS
#define END_LOOK(self)         \
    Py_END_ALLOW_THREADS(self) \
    ->calls -= 1;

static PyObject *observer_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"name", "home", NULL};
    const char *name;
    shmq_py_home home = SHMQ_PY_NO_HOME;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO&:Observer", names, &name, shmq_py_home_from, &home)) {
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self == NULL) {
        return NULL;
    }
    shmq_status status = shmq_observer_open(name, home.given, &((py_observer *)self)->member);
    if (status != SHMQ_OK) {
        Py_DECREF(self);
        return shmq_py_raise(status);
    }
    return self;
}

static void observer_dealloc(PyObject *o) {
    PyTypeObject *type = Py_TYPE(o);
    shmq_observer_close(((py_observer *)o)->member);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

static PyObject *observer_close(PyObject *o, PyObject *nothing) {
    py_observer *self = (py_observer *)o;
    (void)nothing;
    if (self->calls == 0) {
        shmq_observer_close(self->member);
        self->member = NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *observer_usage(PyObject *o, PyObject *nothing) {
    py_observer *self = usable(o);
    shmq_py_usage usage;
    (void)nothing;
    if (self == NULL) {
        return NULL;
    }
    BEGIN_LOOK(self)
    shmq_py_usage_look(self->member, &usage);
    END_LOOK(self)
    return shmq_py_usage_dict(&usage);
}

static PyObject *judged(const char *name, const shmq_finding *j) {
    bool damaged = j->verdict == SHMQ_DAMAGED, undecided = j->verdict == SHMQ_UNDECIDED;
    char why[400];
    snprintf(why, sizeof why, "%s%s%s", j->why, j->fault[0] != 0 ? "; the last one found: " : "", j->fault);
    return Py_BuildValue("(szz)", name, damaged ? j->fault : NULL, undecided ? why : NULL);
}

static PyObject *observer_parts(PyObject *o, PyObject *nothing) {
    py_observer *self = usable(o);
    PyObject *list = self == NULL ? NULL : PyList_New(0);
    (void)nothing;
    for (int part = 0; list != NULL && part < SHMQ_PARTS; part++) {
        shmq_finding j;
        BEGIN_LOOK(self)
        shmq_part_check(self->member, part, &j);
        END_LOOK(self)
        PyObject *item = judged(shmq_part_name(part), &j);
        if (item == NULL || PyList_Append(list, item) < 0 || PyErr_CheckSignals() != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *observer_queues(PyObject *o, PyObject *nothing) {
    py_observer *self = usable(o);
    (void)nothing;
    return self == NULL ? NULL : shmq_py_queue_names(self->member);
}

/* False: an exception is set. */
static bool append_headers(PyObject *list, const shmq_ring *level) {
    for (uint64_t i = 0; i < shmq_slots_laid(level); i++) {
        shmq_delivery d;
        if (!shmq_entry_snapshot(level, i, &d)) {
            continue;
        }
        PyObject *headers = PyBytes_FromStringAndSize((const char *)d.headers, d.headers_len);
        bool seen = headers != NULL && shmq_browse_valid(level, &d);
        bool done = headers != NULL && (!seen || PyList_Append(list, headers) == 0);
        Py_XDECREF(headers);
        if (!done) {
            return false;
        }
    }
    return true;
}

/* The header blocks of a queue's messages, each as it was at one moment. */
static PyObject *observer_headers(PyObject *o, PyObject *args) {
    py_observer *self = usable(o);
    unsigned int index, incarnation;
    shmq_queue q;
    const char *wrong;
    if (self == NULL || !PyArg_ParseTuple(args, "II", &index, &incarnation)) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    if (list == NULL || shmq_queue_look_as(self->member, index, incarnation, &q, &wrong) != SHMQ_OK) {
        return list;
    }
    shmq_ring level;
    for (uint32_t depth = 0; depth < q.levels && list != NULL; depth++) {
        if (shmq_level_look(&q, depth, &level) == NULL && !append_headers(list, &level)) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *bodies_tuple(const shmq_bodies *bodies) {
    return Py_BuildValue("(KKKKK)", (unsigned long long)bodies->entries, (unsigned long long)bodies->verified,
                         (unsigned long long)bodies->unsigned_ones, (unsigned long long)bodies->moved,
                         (unsigned long long)bodies->damaged);
}

/* (fault, level or None, slot or None) */
static PyObject *fault_or_none(const shmq_finding *j, uint32_t levels) {
    if (j->verdict != SHMQ_DAMAGED) {
        Py_RETURN_NONE;
    }
    bool in_slot = j->where != SHMQ_NO_SLOT;
    PyObject *level = levels > 1 ? PyLong_FromUnsignedLong(j->depth) : Py_NewRef(Py_None);
    PyObject *slot = in_slot ? PyLong_FromUnsignedLongLong(j->where) : Py_NewRef(Py_None);
    return Py_BuildValue("(sNN)", j->fault, level, slot);
}

static PyObject *observer_queue(PyObject *o, PyObject *args) {
    py_observer *self = usable(o);
    unsigned int index, incarnation, mover = 0;
    int with_bodies;
    shmq_status there = SHMQ_NOT_FOUND;
    shmq_queue q;
    shmq_census census;
    shmq_bodies bodies = {0};
    shmq_finding words, messages = {.verdict = SHMQ_SOUND};
    const char *wrong = NULL;
    if (self == NULL || !PyArg_ParseTuple(args, "IIp", &index, &incarnation, &with_bodies)) {
        return NULL;
    }
    BEGIN_LOOK(self)
    there = shmq_queue_look_as(self->member, index, incarnation, &q, &wrong);
    if (there == SHMQ_OK) {
        shmq_queue_check(&q, &words);
        shmq_ring_count(&q, &census);
        mover = shmq_queue_mover(&q); /* before the next look at it, which may find damage */
        if (with_bodies && words.verdict != SHMQ_GONE_MEANWHILE) {
            shmq_bodies_check(&q, &bodies, &messages);
        }
        if (shmq_queue_look_as(self->member, index, incarnation, &q, &wrong) == SHMQ_NOT_FOUND) {
            there = SHMQ_NOT_FOUND; /* what was counted is not this queue's own */
        }
    }
    END_LOOK(self)
    if (there == SHMQ_NOT_FOUND) {
        Py_RETURN_NONE;
    }
    if (there != SHMQ_OK) {
        words = (shmq_finding){.verdict = SHMQ_DAMAGED, .where = SHMQ_NO_SLOT};
        snprintf(words.fault, sizeof words.fault, "%s", wrong);
        census = (shmq_census){0};
    }
    const shmq_finding *open = words.verdict == SHMQ_UNDECIDED ? &words : &messages;
    bool undecided = open->verdict == SHMQ_UNDECIDED;
    return Py_BuildValue("{sNsNszsKsKsNsI}", "words", fault_or_none(&words, there == SHMQ_OK ? q.levels : 1),
                         "messages", fault_or_none(&messages, q.levels), "undecided", undecided ? open->fault : NULL,
                         "broken", (unsigned long long)census.broken, "entries",
                         (unsigned long long)(census.ready + census.unsettled + census.delayed), "bodies",
                         bodies_tuple(&bodies), "mover", mover);
}

static PyMethodDef methods[] = {
    {"close", observer_close, METH_NOARGS, "close()\n\nThe mapping goes. Repeatable."},
    {"usage", observer_usage, METH_NOARGS, "Memory and counters of the whole segment, as a dict."},
    {"parts", observer_parts, METH_NOARGS,
     "parts()\n\nEverything but the queues: (part, what is wrong or None, why it could not be decided or None)."},
    {"queues", observer_queues, METH_NOARGS, "queues()\n\n(name, index, incarnation) of each queue."},
    {"queue", observer_queue, METH_VARARGS,
     "queue(index, incarnation, bodies)\n\nWhat was seen of one queue, as a dict; None if it is there no more."},
    {"heads", observer_headers, METH_VARARGS,
     "heads(index, incarnation)\n\nThe encoded headers of all messages of the queue."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Observer(name)\n\nThe segment /dev/shm/name for a checker: no row, no lock, no right to write."},
    {Py_tp_new, observer_new},
    {Py_tp_dealloc, observer_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "shmq._native.Observer",
    .basicsize = sizeof(py_observer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int shmq_py_add_observer(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int answer = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return answer;
}
