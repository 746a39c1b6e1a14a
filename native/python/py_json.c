/* Bodies that JSON has a form for, written and read without a frame of Python. The text is the one that
 * shmq/codec_json.py writes, and the reader its own. Bodies that this reader refuses, or has to look at twice, are left
 * to that module, which names the fault. */
#include "py_json.h"

#include <string.h>

/* Python writes what is nested deeper: it counts the levels, and finds cycles. */
#define DEEPEST 32

static bool write_text(column *to, PyObject *text) {
    static const char digits[] = "0123456789abcdef";
    Py_ssize_t size;
    const char *at = PyUnicode_AsUTF8AndSize(text, &size);
    /* Each byte becomes six at the most. */
    unsigned char *out = at != NULL ? column_room(to, 6 * (size_t)size + 2) : NULL;
    if (out == NULL) {
        PyErr_Clear(); /* lone surrogates, or no memory */
        return false;
    }
    unsigned char *begin = out;
    *out++ = '"';
    for (const char *end = at + size; at < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (SHMQ_LIKELY(c >= 0x20 && c != '"' && c != '\\')) {
            *out++ = c;
            continue;
        }
        const char *form = strchr("\"\"\\\\\nn\rr\tt\bb\ff", c);
        *out++ = '\\';
        if (c != 0 && form != NULL) {
            *out++ = (unsigned char)form[1];
        } else {
            memcpy(out, "u00", 3);
            out[3] = (unsigned char)digits[c >> 4];
            out[4] = (unsigned char)digits[c & 15];
            out += 5;
        }
    }
    *out++ = '"';
    to->used += (size_t)(out - begin);
    return true;
}

static bool write_int(column *to, PyObject *value) {
    char text[24], *at = text + sizeof text;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do { /* printf takes as long as all the rest of a small body */
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0) {
        *--at = '-';
    }
    return overflow == 0 && column_add(to, at, (size_t)(text + sizeof text - at));
}

static bool write_float(column *to, PyObject *value) {
    double number = PyFloat_AsDouble(value);
    char *text = isfinite(number) ? PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL) : NULL;
    bool done = text != NULL && column_add(to, text, strlen(text));
    PyMem_Free(text);
    return done;
}

static bool write_value(column *to, PyObject *value, int depth);

static bool write_list(column *to, PyObject *list, int depth) {
    bool done = column_add(to, "[", 1);
    for (Py_ssize_t i = 0; done && i < PyList_Size(list); i++) {
        done = (i == 0 || column_add(to, ",", 1)) && write_value(to, PyList_GetItem(list, i), depth + 1);
    }
    return done && column_add(to, "]", 1);
}

static bool write_dict(column *to, PyObject *dict, int depth) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool done = column_add(to, "{", 1), first = true;
    for (; done && PyDict_Next(dict, &at, &key, &value); first = false) {
        done = (first || column_add(to, ",", 1)) && PyUnicode_CheckExact(key) && write_text(to, key) &&
               column_add(to, ":", 1) && write_value(to, value, depth + 1);
    }
    return done && column_add(to, "}", 1);
}

/* Exact types only: a subclass would come back as something else than what went in. Nothing in here runs Python code,
 * so no container changes meanwhile. */
static bool write_value(column *to, PyObject *value, int depth) {
    if (PyUnicode_CheckExact(value)) {
        return write_text(to, value);
    }
    if (PyLong_CheckExact(value)) {
        return write_int(to, value);
    }
    if (PyFloat_CheckExact(value)) {
        return write_float(to, value);
    }
    if (value == Py_None) {
        return column_add(to, "null", 4);
    }
    if (PyBool_Check(value)) {
        return value == Py_True ? column_add(to, "true", 4) : column_add(to, "false", 5);
    }
    if (depth >= DEEPEST) {
        return false;
    }
    return PyDict_CheckExact(value)   ? write_dict(to, value, depth)
           : PyList_CheckExact(value) ? write_list(to, value, depth)
                                      : false;
}

bool json_written(column *to, PyObject *body) {
    if (write_value(to, body, 0)) {
        return true;
    }
    PyErr_Clear();
    return false;
}

/* The scanner of shmq/codec_json.py, if that has one in C. NULL, without an exception: it has none, or is not there. */
static PyObject *scanner(void) {
    static PyObject *kept; /* strong; None: there is none */
    if (SHMQ_UNLIKELY(kept == NULL)) {
        PyObject *name = PyUnicode_FromString("shmq.codec_json");
        PyObject *module =
            name != NULL ? PyImport_GetModule(name) : NULL; /* imports nothing: a fork may be amid that */
        kept = module != NULL ? PyObject_GetAttrString(module, "SCANNER") : NULL;
        Py_XDECREF(module);
        Py_XDECREF(name);
        PyErr_Clear();
    }
    return kept != Py_None ? kept : NULL;
}

static bool is_no_json(void) {
    return PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_StopIteration) ||
           PyErr_ExceptionMatches(PyExc_RecursionError);
}

/* A number of few digits, which is all that many a body is. NULL, without an exception: the text is something else. */
static PyObject *read_int(const char *text, Py_ssize_t size) {
    bool negative = size > 1 && text[0] == '-';
    const char *at = text + negative, *end = text + size;
    if (at == end || end - at > 18 || (*at == '0' && (negative || end - at > 1))) {
        return NULL;
    }
    long long number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = 10 * number + (*at - '0');
    }
    return at == end ? PyLong_FromLongLong(negative ? -number : number) : NULL;
}

PyObject *json_read(const char *text, Py_ssize_t size) {
    PyObject *number = read_int(text, size);
    if (number != NULL || PyErr_Occurred()) {
        return number;
    }
    PyObject *scan = scanner(), *value = NULL;
    PyObject *string = scan != NULL ? PyUnicode_DecodeUTF8(text, size, "strict") : NULL;
    PyObject *found = string != NULL ? PyObject_CallFunction(scan, "Oi", string, 0) : NULL; /* (value, its end) */
    if (found != NULL && PyTuple_Check(found) && PyTuple_Size(found) == 2 &&
        PyLong_AsSsize_t(PyTuple_GetItem(found, 1)) == PyUnicode_GetLength(string)) {
        value = Py_NewRef(PyTuple_GetItem(found, 0));
    }
    Py_XDECREF(found);
    Py_XDECREF(string);
    if (value == NULL && PyErr_Occurred() && is_no_json()) {
        PyErr_Clear();
    }
    return value;
}
