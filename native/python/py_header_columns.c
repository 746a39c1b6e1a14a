/* The header blocks of many entries as columns in the layout of Arrow, without a Python object for each row.
 *
 * shmq/headers.py says what a sound header block is, and what is wrong with another. Nothing is decided here twice: if
 * a header block is not plain, the answer is None, and Python reads all of them. */
#include "py_column.h"
#include "py_headers.h"
#include "py_queue.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    GROUP_THERE,
    GROUP_ENDS,
    GROUPS,
    TYPE_THERE,
    TYPE_ENDS,
    TYPES,
    HEADER_ENDS,
    NAME_ENDS,
    NAMES,
    VALUE_ENDS,
    VALUES,
    COLUMNS
};

static bool add_base64(column *to, const unsigned char *at, size_t bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        size_t some = bytes - i < 3 ? bytes - i : 3;
        uint32_t bits = (uint32_t)at[i] << 16 | (some > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (some > 2 ? at[i + 2] : 0);
        char four[] = {digits[bits >> 18], digits[bits >> 12 & 63], some > 1 ? digits[bits >> 6 & 63] : '=',
                       some > 2 ? digits[bits & 63] : '='};
        if (!add(to, four, sizeof four)) {
            return false;
        }
    }
    return true;
}

/* Writes a value as header_text() in shmq/engine/arrow/row.py does. */
static bool add_value(column *to, const shmq_value *value) {
    char digits[24];
    switch (value->kind) {
    case SHMQ_VALUE_NULL:
        return add(to, "None", 4);
    case SHMQ_VALUE_TRUTH:
        return value->truth ? add(to, "true", 4) : add(to, "false", 5);
    case SHMQ_VALUE_EXACT:
        return add(to, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, value->exact));
    case SHMQ_VALUE_APPROXIMATE: {
        char *text = PyOS_double_to_string(value->approximate, 'r', 0, Py_DTSF_ADD_DOT_0, NULL); /* as repr() does */
        bool done = text != NULL && add(to, text, strlen(text));
        PyMem_Free(text);
        return done;
    }
    case SHMQ_VALUE_TEXT:
        return is_text(value->text, value->length) && add(to, value->text, value->length);
    default:
        return add_base64(to, value->text, value->length);
    }
}

static bool add_user(column *all, const unsigned char *at, const unsigned char *end) {
    const unsigned char *seen[NAMES_COMPARED]; /* of each: length, name */
    uint32_t count = 0;
    while (at < end) {
        uint32_t length = *at;
        if (count == NAMES_COMPARED || (size_t)(end - at) <= length || !name_fits(at + 1, length)) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (memcmp(seen[i], at, 1 + length) == 0) {
                return false;
            }
        }
        seen[count++] = at;
        shmq_value value;
        at = shmq_value_at(at + 1 + length, end, &value);
        if (at == NULL || !add(&all[NAMES], seen[count - 1] + 1, length) || !add_value(&all[VALUES], &value) ||
            !add_end(&all[NAME_ENDS], all[NAMES].used) || !add_end(&all[VALUE_ENDS], all[VALUES].used)) {
            return false;
        }
    }
    return add_end(&all[HEADER_ENDS], all[NAME_ENDS].used / sizeof(int32_t) - 1);
}

/* A text that may be missing: then it is NULL in Arrow. */
static bool add_optional(column *there, column *ends, column *texts, uint64_t row, const unsigned char *text,
                         uint32_t length) {
    static const unsigned char none;
    if (row % 8 == 0 && !add(there, &none, 1)) {
        return false;
    }
    if (text != NULL) {
        there->at[row / 8] |= (unsigned char)(1u << row % 8);
        if (!add(texts, text, length)) {
            return false;
        }
    }
    return add_end(ends, texts->used);
}

static bool add_own(column *all, uint64_t row, const unsigned char *at, const unsigned char *end) {
    const unsigned char *group = NULL, *type = NULL;
    uint32_t group_length = 0, type_length = 0;
    while (at < end) {
        if (end - at < 3) {
            return false;
        }
        uint32_t number = *at, length = shmq_length_at(at + 1);
        at += 3;
        if ((size_t)(end - at) < length) {
            return false;
        }
        if (number == SHMQ_OWN_GROUP) {
            if (group != NULL || !is_group(at, length)) {
                return false;
            }
            group = at, group_length = length;
        } else if (number == SHMQ_OWN_CONTENT_TYPE) {
            if (type != NULL || !is_content_type(at, length)) {
                return false;
            }
            type = at, type_length = length;
        } else if (number == SHMQ_OWN_DEATH) {
            return false; /* rare, and much may be wrong in it */
        }
        at += length;
    }
    return add_optional(&all[GROUP_THERE], &all[GROUP_ENDS], &all[GROUPS], row, group, group_length) &&
           add_optional(&all[TYPE_THERE], &all[TYPE_ENDS], &all[TYPES], row, type, type_length);
}

static bool add_header_block(column *all, uint64_t row, const unsigned char *headers, size_t bytes) {
    uint32_t user;
    if (bytes > UINT16_MAX || !shmq_headers_user(headers, (uint32_t)bytes, &user)) {
        return false;
    }
    const unsigned char *begin = bytes > 0 ? headers + SHMQ_HEADERS_FIXED : headers;
    return add_user(all, begin, begin + user) && add_own(all, row, begin + user, headers + bytes);
}

static bool add_header_blocks(column *all, const Py_buffer *ends, const Py_buffer *all_headers) {
    static const int begins[] = {GROUP_ENDS, TYPE_ENDS, HEADER_ENDS, NAME_ENDS, VALUE_ENDS};
    const unsigned char *at = ends->buf, *bytes = all_headers->buf;
    size_t count = (size_t)ends->len / sizeof(int32_t);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (!add_end(&all[begins[i]], 0)) {
            return false;
        }
    }
    for (size_t row = 0; row + 1 < count; row++) {
        int64_t begin = shmq_signed_at(at + 4 * row, 4), end = shmq_signed_at(at + 4 * row + 4, 4);
        if (begin < 0 || begin > end || end > all_headers->len) {
            PyErr_SetString(PyExc_ValueError, "the ends of the header blocks do not match their bytes");
            return false;
        }
        if (!add_header_block(all, row, bytes + begin, (size_t)(end - begin))) {
            return false;
        }
    }
    return true;
}

/* head_columns(ends, header blocks): the values of the header blocks, as _native.pyi describes them; None: one block is
 * not plain. */
static PyObject *head_columns(PyObject *module, PyObject *args) {
    Py_buffer ends, all_headers;
    column all[COLUMNS] = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*", &ends, &all_headers)) {
        return NULL;
    }
    PyObject *answer = NULL;
    if (add_header_blocks(all, &ends, &all_headers)) {
        answer = columns_tuple(all, COLUMNS);
    } else if (!PyErr_Occurred()) {
        answer = Py_NewRef(Py_None);
    }
    columns_free(all, COLUMNS);
    PyBuffer_Release(&all_headers);
    PyBuffer_Release(&ends);
    return answer;
}

PyMethodDef header_functions[] = {
    {"head_columns", head_columns, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
