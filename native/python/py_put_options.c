/* The options of a put that are as they should be, read without a call into Python. The rest is left to
 * shmq/options/message.py, which says what is wrong. */
#include "py_put_options.h"

#include <math.h>
#include <string.h>

#include "py_headers.h"

#define LONGEST 1e9                                       /* seconds; what is longer is for ever */
#define MAX_USER_BYTES (UINT16_MAX - 1024u) /* shmq/headers.py: a dead letter has to fit, too */

/* In all that follows false means: not plain. */

static bool read_seconds(PyObject *value, uint64_t *ns) {
    if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) {
        return false;
    }
    double seconds = PyFloat_AsDouble(value); /* -1 with an exception for an int beyond all floats */
    if (!(seconds >= 0 && seconds < LONGEST)) {
        PyErr_Clear();
        return false;
    }
    double rounded = rint(seconds * 1e9); /* half to even, as Python's round() */
    *ns = rounded >= 1 ? (uint64_t)rounded : seconds > 0 ? 1 : 0;
    return true;
}

static bool read_priority(PyObject *value, put_extras *x) {
    if (!PyLong_CheckExact(value)) {
        return false;
    }
    int overflow;
    long priority = PyLong_AsLongAndOverflow(value, &overflow);
    x->priority = (uint8_t)priority;
    return overflow == 0 && priority >= 0 && priority <= 9;
}

static bool read_group(PyObject *value, put_extras *x) {
    Py_ssize_t size;
    if (value == Py_None) {
        return true;
    }
    x->group = PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (x->group == NULL || size < 1 || size > (Py_ssize_t)SHMQ_GROUP_MAX) {
        PyErr_Clear();
        return false;
    }
    x->group_len = (uint32_t)size;
    return true;
}

/* A kind of value or number of a field, a length of two bytes, and so many bytes. */
static bool write_long(column *to, uint8_t kind, const char *at, Py_ssize_t size) {
    unsigned char before[] = {kind, (unsigned char)(size & 0xFF), (unsigned char)(size >> 8)};
    return size <= UINT16_MAX && column_add(to, before, sizeof before) && column_add(to, at, (size_t)size);
}

static bool write_int(column *to, PyObject *value) {
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    bool byte = number == (int8_t)number, two = number == (int16_t)number, four = number == (int32_t)number;
    unsigned char out[9] = {byte   ? SHMQ_HEADER_INT8
                            : two  ? SHMQ_HEADER_INT16
                            : four ? SHMQ_HEADER_INT32
                                   : SHMQ_HEADER_INT64};
    memcpy(out + 1, &number, sizeof number); /* little endian: its first bytes */
    return overflow == 0 && column_add(to, out, byte ? 2 : two ? 3 : four ? 5 : 9);
}

static bool write_float(column *to, PyObject *value) {
    double number = PyFloat_AsDouble(value);
    unsigned char out[9] = {SHMQ_HEADER_FLOAT};
    memcpy(out + 1, &number, sizeof number);
    return isfinite(number) && column_add(to, out, sizeof out);
}

static bool write_value(column *to, PyObject *value) {
    char *at;
    Py_ssize_t size;
    if (PyUnicode_CheckExact(value)) {
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        return text != NULL && write_long(to, SHMQ_HEADER_TEXT, text, size);
    }
    if (PyLong_CheckExact(value)) {
        return write_int(to, value);
    }
    if (PyFloat_CheckExact(value)) {
        return write_float(to, value);
    }
    if (PyBytes_CheckExact(value)) {
        return PyBytes_AsStringAndSize(value, &at, &size) == 0 && write_long(to, SHMQ_HEADER_BYTES, at, size);
    }
    unsigned char kind = value == Py_None ? SHMQ_HEADER_NONE : value == Py_True ? SHMQ_HEADER_TRUE : SHMQ_HEADER_FALSE;
    return (value == Py_None || PyBool_Check(value)) && column_add(to, &kind, 1);
}

static bool write_name(column *to, PyObject *name) {
    Py_ssize_t size;
    const char *at = PyUnicode_CheckExact(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
    if (at == NULL || size < 1 || size > 255 || name_is_reserved((const unsigned char *)at, (size_t)size)) {
        return false;
    }
    unsigned char length = (unsigned char)size;
    return column_add(to, &length, 1) && column_add(to, at, (size_t)size);
}

/* The header block of these headers (NULL: none) and this group. */
static bool write_block(column *to, PyObject *headers, const put_extras *x) {
    const unsigned char fixed[SHMQ_HEADERS_FIXED] = {SHMQ_HEADERS_VERSION};
    PyObject *name, *value;
    Py_ssize_t next = 0;
    if (headers == NULL && x->group == NULL) {
        return true;
    }
    bool done = column_add(to, fixed, sizeof fixed);
    while (done && headers != NULL && PyDict_Next(headers, &next, &name, &value)) {
        done = write_name(to, name) && write_value(to, value);
    }
    size_t user = to->used - SHMQ_HEADERS_FIXED;
    done = done && (x->group == NULL || write_long(to, SHMQ_OWN_GROUP, x->group, x->group_len)) &&
           to->used <= MAX_USER_BYTES;
    if (done) {
        to->at[1] = (unsigned char)(user & 0xFF);
        to->at[2] = (unsigned char)(user >> 8);
    }
    return done;
}

static bool read_option(put_options *o, PyObject *name, PyObject *value, PyObject **headers) {
    if (PyUnicode_CompareWithASCIIString(name, "timeout") == 0) {
        o->timeout = value;
        return true;
    }
    o->others = true;
    if (PyUnicode_CompareWithASCIIString(name, "headers") == 0) {
        *headers = PyDict_CheckExact(value) && PyDict_Size(value) != 0 ? value : NULL;
        return value == Py_None || PyDict_CheckExact(value);
    }
    if (PyUnicode_CompareWithASCIIString(name, "ttl") == 0) {
        return value == Py_None || read_seconds(value, &o->extras.ttl_ns);
    }
    if (PyUnicode_CompareWithASCIIString(name, "delay") == 0) {
        return read_seconds(value, &o->extras.delay_ns);
    }
    if (PyUnicode_CompareWithASCIIString(name, "priority") == 0) {
        o->has_priority = true;
        return read_priority(value, &o->extras);
    }
    return PyUnicode_CompareWithASCIIString(name, "group") == 0 && read_group(value, &o->extras);
}

bool put_options_plain(put_options *o, PyObject *const *values, PyObject *names) {
    Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;
    PyObject *headers = NULL;
    bool plain = true;
    o->extras = NO_EXTRAS;
    for (Py_ssize_t i = 0; i < count; i++) {
        plain = read_option(o, PyTuple_GetItem(names, i), values[i], &headers) && plain; /* `timeout` in any case */
    }
    plain = plain && (!o->others || write_block(&o->block, headers, &o->extras));
    if (!plain) {
        PyErr_Clear();
    }
    return plain;
}

bool put_options_fit(const put_options *o, const shmq_queue *q) {
    const put_extras *x = &o->extras;
    return (!o->has_priority || q->levels > 1) && (x->group == NULL || q->book != NULL) &&
           (x->delay_ns == 0 || (x->ttl_ns > x->delay_ns && shmq_queue_max_ttl(q) > x->delay_ns));
}

void put_options_clear(put_options *o) { columns_free(&o->block, 1); }
