/* Calls on a queue besides those for messages: settings, counts, rows, shutdown. */
#include <string.h>

#include "py_queue.h"

static PyObject *none_or(py_queue *self, shmq_status status) {
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    Py_RETURN_NONE;
}

static PyObject *queue_loan(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *headers, *timeout;
    unsigned long long bytes;
    uint64_t until;
    if (!PyArg_ParseTuple(args, "OKO", &headers, &bytes, &timeout) || !parse_timeout(timeout, &until) ||
        !queue_ready(self)) {
        return NULL;
    }
    return loan_new(self, headers, bytes, until);
}

static bool count_messages(py_queue *self, shmq_census *c) {
    if (!queue_ready(self)) {
        return false;
    }
    shmq_status status = shmq_queue_usable(self->q);
    if (status != SHMQ_OK) {
        (void)queue_raise(self, status);
        return false;
    }
    BEGIN_WAIT(self)
    shmq_upkeep_finish(self->q->m, SHMQ_EVERY_DUTY,
                       NULL); /* a caller that only counts never sleeps; it is to see everything that is due */
    shmq_ring_sizes(self->q, c);
    END_WAIT(self)
    return true;
}

/* _ready() -> how many messages can be received now */
static PyObject *queue_ready_count(PyObject *o, PyObject *unused) {
    shmq_census c;
    (void)unused;
    return count_messages((py_queue *)o, &c) ? PyLong_FromUnsignedLongLong(c.ready) : NULL;
}

static PyObject *queue_census(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_census c;
    (void)unused;
    if (!count_messages(self, &c)) {
        return NULL;
    }
    BEGIN_WAIT(self)
    uint64_t waiting = shmq_waiting_first(self->q);
    c.first_position = waiting < c.first_position ? waiting : c.first_position;
    END_WAIT(self)
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsKsK}", "ready", c.ready, "unsettled", c.unsettled, "delayed",
                         c.delayed, "claimed", c.claimed, "holes", c.holes, "broken", c.broken, "bytes", c.bytes,
                         "memory_bytes", c.memory_bytes, "oldest_ns", c.oldest_ns, "first_position", c.first_position,
                         "next_position", c.next_position, "reserved_bytes", shmq_queue_reserved(self->q), "on_disk",
                         (unsigned long long)c.flowed, "disk_bytes", (unsigned long long)shmq_disk_bytes(self->q));
}

static PyObject *queue_oldest_on_disk(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    uint64_t oldest;
    BEGIN_WAIT(self)
    oldest = shmq_flow_oldest(self->q);
    END_WAIT(self)
    return PyLong_FromUnsignedLongLong(oldest);
}

static PyObject *queue_counters(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_totals t;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_queue_totals(self->q, &t);
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsK}", "put", t.put, "got", t.got, "received", t.received, "acked", t.acked,
                         "redelivered", t.redelivered, "dead_lettered", t.dead_lettered, "died", t.died, "expired",
                         t.expired, "dropped", t.dropped);
}

static PyObject *queue_waiters(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_waiter_counts waiters;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_queue_waiters(self->q, &waiters);
    return Py_BuildValue("{sIsIsI}", "consumers", waiters.consumers, "asleep", waiters.asleep, "producers_waiting",
                         waiters.producers_waiting);
}

/* _takers() -> pids of the processes that have a consumer of the queue */
static PyObject *queue_takers(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    PyObject *pids = queue_ready(self) ? PySet_New(NULL) : NULL;
    uint32_t row = 0, taker;
    while (pids != NULL && shmq_next_taker(self->q, &row, &taker)) {
        PyObject *pid = PyLong_FromUnsignedLong(taker);
        if (pid == NULL || PySet_Add(pids, pid) < 0) {
            Py_CLEAR(pids);
        }
        Py_XDECREF(pid);
    }
    return pids;
}

/* _row_open(priority, exclusive, implicit, Selector or None) -> Row */
static PyObject *queue_row_open(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    uint32_t row;
    shmq_status status;
    int priority, exclusive, implicit = 0;
    PyObject *selector = Py_None;
    const shmq_selector *loaded = NULL;
    if (!PyArg_ParseTuple(args, "ip|pO", &priority, &exclusive, &implicit, &selector) || !queue_ready(self) ||
        (selector != Py_None && (loaded = shmq_py_selector(selector)) == NULL)) {
        return NULL;
    }
    shmq_row_terms terms = {.kind = SHMQ_CONSUMER,
                            .priority = priority,
                            .selector = loaded,
                            .exclusive = exclusive != 0,
                            .implicit = implicit != 0};
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_enter(self->q);
        if (status == SHMQ_OK) {
            status = shmq_row_open_as(self->q, &terms, &row);
        }
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    return status == SHMQ_OK ? row_new(self, row) : queue_raise(self, status);
}

static PyObject *queue_is_ready(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_enter(self->q);
    return status == SHMQ_OK ? PyBool_FromLong(shmq_ring_ready(self->q)) : queue_raise(self, status);
}

/* _enter() -> None, or an error: the queue is deleted, its broker, or closed here */
static PyObject *queue_enter(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_enter(self->q);
    return status == SHMQ_OK ? Py_NewRef(Py_None) : queue_raise(self, status);
}

/* _used() -> (entries, bytes, bytes in memory) as maxsize, max_bytes and max_memory count them; without such a limit
 * the number means nothing */
static PyObject *queue_used(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    uint64_t entries, bytes, resident;
    shmq_queue_used(self->q, &entries, &bytes, &resident);
    return Py_BuildValue("(KKK)", (unsigned long long)entries, (unsigned long long)bytes, (unsigned long long)resident);
}

static PyObject *queue_join(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *timeout;
    uint64_t until;
    shmq_status status;
    if (!PyArg_ParseTuple(args, "O", &timeout) || !parse_timeout(timeout, &until) || !queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_ring_join(self->q, until);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && queue_goes_on(self));
    return none_or(self, status);
}

static PyObject *queue_shut_down(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned int how;
    if (!PyArg_ParseTuple(args, "I", &how) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_usable(self->q);
    return none_or(self, status == SHMQ_OK ? shmq_queue_shut_down(self->q, how) : status);
}

static PyObject *queue_delete(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_status status;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_delete(self->q);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    return none_or(self, status);
}

/* _check() -> None, or (fault, slot or None) */
static PyObject *queue_check(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_finding j;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    BEGIN_WAIT(self)
    shmq_queue_check(self->q, &j);
    END_WAIT(self)
    if (j.verdict != SHMQ_DAMAGED) {
        Py_RETURN_NONE;
    }
    return j.where == SHMQ_NO_SLOT ? Py_BuildValue("(sO)", j.fault, Py_None)
                                   : Py_BuildValue("(sK)", j.fault, (unsigned long long)j.where);
}

/* _is_unused() -> was the queue without a consumer for as long as its option expires says? */
static PyObject *queue_is_unused(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyBool_FromLong(shmq_unused_due(self->q) <= shmq_now_ns()) : NULL;
}

/* _steal_expired() -> Delivery of an expired message that becomes a dead letter; None: there is none. */
static PyObject *queue_steal_expired(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_delivery d = {0};
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    if (shmq_steal_expired(self->q, &d) != SHMQ_OK) {
        Py_RETURN_NONE;
    }
    return delivery_new(self, &d);
}

/* _flows() -> are messages of the queue on disk? */
static PyObject *queue_flows(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyBool_FromLong(shmq_flows(self->q)) : NULL;
}

/* _hurry_rows(): some expired messages were settled, so others of them can come from disk. */
static PyObject *queue_hurry_rows(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_rows_hurry(self->q);
    Py_RETURN_NONE;
}

/* _steal_poisoned() -> Delivery of a message that no consumer may get any more, for the dead letters; None: there is
 * none. */
static PyObject *queue_steal_poisoned(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_delivery d = {0};
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_status status;
    BEGIN_WAIT(self)
    status = shmq_steal_poisoned(self->q, &d);
    END_WAIT(self)
    if (status == SHMQ_EMPTY) {
        Py_RETURN_NONE;
    }
    return status == SHMQ_OK ? delivery_new(self, &d) : queue_raise(self, status);
}

/* _steal_left() -> Delivery of an available message of a deleted queue; None: there is none. */
static PyObject *queue_steal_left(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    shmq_delivery d = {0};
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    if (shmq_steal_left(self->q, &d) != SHMQ_OK) {
        Py_RETURN_NONE;
    }
    return delivery_new(self, &d);
}

/* _settings_version() -> another number after each change of the settings */
static PyObject *queue_settings_version(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyLong_FromUnsignedLongLong(shmq_queue_settings_version(self->q)) : NULL;
}

/* _alert_flow() -> "began", "recovered" or "both" if this process is to log that now; else None */
static PyObject *queue_alert_flow(PyObject *o, PyObject *unused) {
    static const char *const states[] = {NULL, "began", "recovered", "both"};
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? Py_BuildValue("z", states[shmq_alert_flow(self->q)]) : NULL;
}

/* _alert_is_ours(kind) -> is this process to log this alert now? */
static PyObject *queue_alert_is_ours(PyObject *o, PyObject *kind) {
    py_queue *self = (py_queue *)o;
    unsigned long number = PyLong_AsUnsignedLong(kind);
    if (PyErr_Occurred() || !queue_ready(self)) {
        return NULL;
    }
    return PyBool_FromLong(number < SHMQ_ALERT_KINDS && shmq_alert_claim(self->q, (enum shmq_alert)number));
}

/* _alert_largest() -> bytes of a large message, if this process is to log that now; else 0 */
static PyObject *queue_alert_largest(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyLong_FromUnsignedLongLong(shmq_alert_largest(self->q)) : NULL;
}

/* _alert_look() -> is this process to count now? */
static PyObject *queue_alert_look(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? PyBool_FromLong(shmq_alert_look(self->q)) : NULL;
}

static PyObject *queue_identity(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    return queue_ready(self) ? Py_BuildValue("(II)", self->q->index, self->q->incarnation) : NULL;
}

PyMethodDef queue_manage_methods[] = {
    {"_loan", queue_loan, METH_VARARGS, NULL},
    {"_census", queue_census, METH_NOARGS, NULL},
    {"_ready", queue_ready_count, METH_NOARGS, NULL},
    {"_oldest_on_disk", queue_oldest_on_disk, METH_NOARGS,
     "When the first message on disk was put, in ns; 0: none is."},
    {"_counters", queue_counters, METH_NOARGS, NULL},
    {"_settings", queue_settings, METH_NOARGS, NULL},
    {"_settings_version", queue_settings_version, METH_NOARGS, "Another number after each change of the settings."},
    {"_alter", queue_alter, METH_O, NULL},
    {"_waiters", queue_waiters, METH_NOARGS, NULL},
    {"_takers", queue_takers, METH_NOARGS, NULL},
    {"_row_open", queue_row_open, METH_VARARGS, NULL},
    {"_enter", queue_enter, METH_NOARGS, NULL},
    {"_is_ready", queue_is_ready, METH_NOARGS, NULL},
    {"_used", queue_used, METH_NOARGS, NULL},
    {"_join", queue_join, METH_VARARGS, NULL},
    {"_shut_down", queue_shut_down, METH_VARARGS, NULL},
    {"_delete", queue_delete, METH_NOARGS, NULL},
    {"_check", queue_check, METH_NOARGS, NULL},
    {"_is_unused", queue_is_unused, METH_NOARGS, NULL},
    {"_flows", queue_flows, METH_NOARGS, "Are messages of the queue on disk?"},
    {"_hurry_rows", queue_hurry_rows, METH_NOARGS, "Expired messages were settled: others can come from disk."},
    {"_steal_expired", queue_steal_expired, METH_NOARGS, "A message that has expired, for the dead letters; or None."},
    {"_steal_poisoned", queue_steal_poisoned, METH_NOARGS, "A message that has failed too often; or None."},
    {"_steal_left", queue_steal_left, METH_NOARGS, "A message of a deleted queue, for the dead letters; or None."},
    {"_alert_flow", queue_alert_flow, METH_NOARGS, NULL},
    {"_alert_is_ours", queue_alert_is_ours, METH_O, NULL},
    {"_alert_largest", queue_alert_largest, METH_NOARGS, NULL},
    {"_alert_look", queue_alert_look, METH_NOARGS, NULL},
    {"_identity", queue_identity, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
