/* Settings of a queue between Python and C: a tuple in the order of enum shmq_setting, with None for those not given.
 * Times are nanoseconds, 2**64 - 1 for never; choices are their numbers. shmq/core/queue.py turns them into what users
 * write. */
#include "py_queue.h"

static bool give_delays(PyObject *value, shmq_declaration *d) {
    Py_ssize_t steps = PyTuple_Check(value) ? PyTuple_Size(value) : 0;
    if (steps < 1 || steps > (Py_ssize_t)SHMQ_RETRY_STEPS) {
        PyErr_SetString(PyExc_ValueError, "retry_delay: a tuple of 1 to 8 times is expected");
        return false;
    }
    for (Py_ssize_t i = 0; i < steps; i++) {
        d->retry_delay_ns[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(value, i));
    }
    d->retry_steps = (uint32_t)steps;
    d->given |= 1u << SHMQ_SET_RETRY_DELAY;
    return PyErr_Occurred() == NULL;
}

static bool give_alerts(PyObject *value, shmq_declaration *d) {
    if (!PyTuple_Check(value) || PyTuple_Size(value) != (Py_ssize_t)SHMQ_ALERT_TERMS) {
        PyErr_SetString(PyExc_ValueError, "alerts: a tuple of 5 numbers is expected");
        return false;
    }
    for (Py_ssize_t i = 0; i < (Py_ssize_t)SHMQ_ALERT_TERMS; i++) {
        d->alerts[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(value, i));
    }
    d->given |= 1u << SHMQ_SET_ALERTS;
    return PyErr_Occurred() == NULL;
}

static bool give_dead_letter(PyObject *value, shmq_declaration *d) {
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(value, &bytes, &size) < 0) {
        return false;
    }
    if (size > (Py_ssize_t)SHMQ_NAME_MAX) {
        PyErr_SetString(PyExc_ValueError, "dead_letter: a name of at most 200 bytes is expected");
        return false;
    }
    d->dead_letter = bytes; /* in the tuple, which outlives the declaration */
    d->dead_letter_len = (uint32_t)size;
    d->given |= 1u << SHMQ_SET_DEAD_LETTER;
    return true;
}

static bool give_number(PyObject *value, shmq_declaration *d, int setting) {
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
        return false;
    }
    shmq_declaration_give(d, setting, number);
    return true;
}

bool settings_declared(PyObject *values, shmq_declaration *d) {
    if (!PyTuple_Check(values) || PyTuple_Size(values) != SHMQ_SETTINGS) {
        PyErr_Format(PyExc_TypeError, "a tuple of %d settings is expected", (int)SHMQ_SETTINGS);
        return false;
    }
    for (int i = 0; i < SHMQ_SETTINGS; i++) {
        PyObject *value = PyTuple_GetItem(values, i);
        if (value == Py_None) {
            continue;
        }
        bool given = i == SHMQ_SET_RETRY_DELAY   ? give_delays(value, d)
                     : i == SHMQ_SET_DEAD_LETTER ? give_dead_letter(value, d)
                     : i == SHMQ_SET_ALERTS      ? give_alerts(value, d)
                                                 : give_number(value, d, i);
        if (!given) {
            return false;
        }
    }
    return true;
}

static PyObject *numbers(const uint64_t *values, uint32_t count) {
    PyObject *result = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; result != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(values[i]);
        if (number == NULL || PyTuple_SetItem(result, (Py_ssize_t)i, number) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *value_of(const shmq_settings_facts *facts, int setting) {
    if (setting == SHMQ_SET_RETRY_DELAY) {
        return numbers(facts->retry_delay_ns, facts->retry_steps);
    }
    if (setting == SHMQ_SET_ALERTS) {
        return numbers(facts->alerts, SHMQ_ALERT_TERMS);
    }
    if (setting == SHMQ_SET_DEAD_LETTER) {
        return PyBytes_FromStringAndSize(facts->dead_letter, (Py_ssize_t)facts->dead_letter_len);
    }
    return PyLong_FromUnsignedLongLong(facts->values[setting]);
}

static bool add(PyObject *to, const char *name, PyObject *value) {
    bool ok = value != NULL && PyDict_SetItemString(to, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static PyObject *setters(const shmq_settings_facts *facts) {
    PyObject *result = PyTuple_New(SHMQ_SETTINGS);
    for (int i = 0; result != NULL && i < SHMQ_SETTINGS; i++) {
        PyObject *pid = PyLong_FromUnsignedLong(facts->given_by[i]);
        if (pid == NULL || PyTuple_SetItem(result, i, pid) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

/* _settings() -> the value of each setting by its name, and: given (bits), given_by (pids, in the order of the settings),
 * slots, flows, shut_down, created_ns, created_by */
PyObject *queue_settings(PyObject *o, PyObject *unused) {
    py_queue *self = (py_queue *)o;
    (void)unused;
    if (!queue_ready(self)) {
        return NULL;
    }
    shmq_settings_facts facts;
    shmq_status status = shmq_queue_settings(self->q, &facts);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    PyObject *result = Py_BuildValue(
        "{sKsKsOsIsKsI}", "given", (unsigned long long)facts.given, "slots", (unsigned long long)facts.slots, "flows",
        shmq_may_flow(self->q) ? Py_True : Py_False, "shut_down", facts.shut_down, "created_ns",
        (unsigned long long)facts.created_ns, "created_by", facts.created_by);
    bool ok = result != NULL && add(result, "given_by", setters(&facts));
    for (int i = 0; ok && i < SHMQ_SETTINGS; i++) {
        ok = add(result, shmq_setting_name(i), value_of(&facts, i));
    }
    if (!ok) {
        Py_CLEAR(result);
    }
    return result;
}

/* _alter(settings) -> None, or the index of a fixed setting that would change */
PyObject *queue_alter(PyObject *o, PyObject *settings) {
    py_queue *self = (py_queue *)o;
    shmq_declaration d = {0};
    shmq_status status;
    int differs = -1;
    if (!queue_ready(self) || !settings_declared(settings, &d)) {
        return NULL;
    }
    do {
        BEGIN_WAIT(self)
        status = shmq_queue_alter(self->q, &d, &differs);
        END_WAIT(self)
    } while (status == SHMQ_INTERRUPTED && PyErr_CheckSignals() == 0);
    if (status == SHMQ_EXISTS) {
        return PyLong_FromLong(differs);
    }
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    Py_RETURN_NONE;
}
