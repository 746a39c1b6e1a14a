/* Header blocks of many entries, from columns in the layout of Arrow. shmq/headers.py writes them one by one; here
 * headers are text only.
 *
 * If something cannot be put, or is not plain, the answer is None: Python writes all of them, and says what is
 * wrong. */
#include "py_headers.h"
#include "py_queue.h"

/* Buffers of a column of text: a byte for each (is it there?), ends (int32, one more), bytes. */
enum { THERE, ENDS, BYTES, TEXTS };
enum {
    GROUPS = 0,
    TYPES = TEXTS,
    NAMES = 2 * TEXTS,
    VALUES = 3 * TEXTS,
    HEADERS_THERE = 4 * TEXTS,
    HEADER_ENDS,
    BUFFERS
};

typedef struct text {
    const unsigned char *at; /* NULL: there is no text */
    size_t length;
} text;

static bool unfit(void) {
    PyErr_SetString(PyExc_ValueError, "the columns of the header blocks do not match each other");
    return false;
}

/* Begin and end of number n. False with an exception set: they are not within `limit`. */
static bool ends_at(const Py_buffer *ends, uint64_t n, size_t limit, size_t *begin, size_t *end) {
    if (n + 1 >= (uint64_t)ends->len / 4) {
        return unfit();
    }
    int64_t from = shmq_signed_at((const unsigned char *)ends->buf + 4 * n, 4);
    int64_t to = shmq_signed_at((const unsigned char *)ends->buf + 4 * n + 4, 4);
    if (from < 0 || to < from || (uint64_t)to > limit) {
        return unfit();
    }
    *begin = (size_t)from;
    *end = (size_t)to;
    return true;
}

static bool text_at(const Py_buffer *of, uint64_t n, text *found) {
    size_t begin, end;
    *found = (text){0};
    if (n >= (uint64_t)of[THERE].len) {
        return unfit();
    }
    if (((const unsigned char *)of[THERE].buf)[n] == 0) {
        return true;
    }
    if (!ends_at(&of[ENDS], n, (size_t)of[BYTES].len, &begin, &end)) {
        return false;
    }
    *found =
        (text){begin < end ? (const unsigned char *)of[BYTES].buf + begin : (const unsigned char *)"", end - begin};
    return true;
}

/* Adds a kind of value or number of a field, a length of two bytes, and so many bytes. */
static bool add_long(column *all_headers, uint8_t kind, const text *t) {
    unsigned char before[] = {kind, (unsigned char)(t->length & 0xFF), (unsigned char)(t->length >> 8)};
    return t->length <= UINT16_MAX && add(all_headers, before, sizeof before) && add(all_headers, t->at, t->length);
}

static bool add_value(column *all_headers, const text *value) {
    static const unsigned char none = SHMQ_HEADER_NONE;
    return value->at == NULL ? add(all_headers, &none, 1)
                             : is_text(value->at, value->length) && add_long(all_headers, SHMQ_HEADER_TEXT, value);
}

static bool add_headers(column *all_headers, const Py_buffer *in, size_t begin, size_t end) {
    text names[NAMES_COMPARED];
    if (end - begin > NAMES_COMPARED) {
        return false;
    }
    for (size_t n = 0; n < end - begin; n++) {
        text value, *name = &names[n];
        if (!text_at(&in[NAMES], begin + n, name) || !text_at(&in[VALUES], begin + n, &value)) {
            return false;
        }
        if (name->at == NULL || name->length > 255 || !name_fits(name->at, (uint32_t)name->length)) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            if (names[i].length == name->length && memcmp(names[i].at, name->at, name->length) == 0) {
                return false;
            }
        }
        unsigned char length = (unsigned char)name->length;
        if (!add(all_headers, &length, 1) || !add(all_headers, name->at, name->length) ||
            !add_value(all_headers, &value)) {
            return false;
        }
    }
    return true;
}

static bool add_header_block(column *all_headers, const Py_buffer *in, uint64_t row, size_t max_bytes) {
    const unsigned char fixed[SHMQ_HEADERS_FIXED] = {SHMQ_HEADERS_VERSION};
    size_t begin = 0, end = 0, headers = all_headers->used;
    text group, type;
    if (!text_at(&in[GROUPS], row, &group) || !text_at(&in[TYPES], row, &type)) {
        return false;
    }
    if (row >= (uint64_t)in[HEADERS_THERE].len) {
        return unfit();
    }
    if (((const unsigned char *)in[HEADERS_THERE].buf)[row] != 0 &&
        !ends_at(&in[HEADER_ENDS], row, (size_t)in[NAMES + THERE].len, &begin, &end)) {
        return false;
    }
    if (begin == end && group.at == NULL && type.at == NULL) {
        return true; /* nothing to say: there is no header block */
    }
    if ((type.at != NULL && !is_content_type(type.at, type.length)) ||
        (group.at != NULL && !is_group(group.at, group.length))) {
        return false;
    }
    if (!add(all_headers, fixed, sizeof fixed) || !add_headers(all_headers, in, begin, end)) {
        return false;
    }
    size_t user = all_headers->used - headers - SHMQ_HEADERS_FIXED;
    all_headers->at[headers + 1] = (unsigned char)(user & 0xFF);
    all_headers->at[headers + 2] = (unsigned char)(user >> 8); /* more bits are too large, see below */
    return (type.at == NULL || add_long(all_headers, SHMQ_OWN_CONTENT_TYPE, &type)) &&
           (group.at == NULL || add_long(all_headers, SHMQ_OWN_GROUP, &group)) &&
           all_headers->used - headers <= max_bytes;
}

/* (ends, header blocks) */
static PyObject *written(const Py_buffer *in, size_t max_bytes) {
    column out[2] = {0};
    PyObject *answer = NULL;
    uint64_t rows = (uint64_t)in[GROUPS + THERE].len;
    bool done = add_end(&out[0], 0);
    for (uint64_t row = 0; done && row < rows; row++) {
        done = add_header_block(&out[1], in, row, max_bytes) && add_end(&out[0], out[1].used);
    }
    if (done) {
        answer = columns_tuple(out, 2);
    } else if (!PyErr_Occurred()) {
        answer = Py_NewRef(Py_None);
    }
    columns_free(out, 2);
    return answer;
}

/* column_heads(max bytes of a header block, buffers as _native.pyi describes them) -> (ends, header blocks), in the
 * layout of _browse_columns(). None: one of them is not plain. */
static PyObject *column_heads(PyObject *module, PyObject *args) {
    Py_buffer in[BUFFERS];
    unsigned int max_bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "I(y*y*y*)(y*y*y*)(y*y*y*)(y*y*y*)y*y*", &max_bytes, &in[0], &in[1], &in[2], &in[3],
                          &in[4], &in[5], &in[6], &in[7], &in[8], &in[9], &in[10], &in[11], &in[12], &in[13])) {
        return NULL;
    }
    PyObject *answer = written(in, max_bytes);
    for (int i = 0; i < BUFFERS; i++) {
        PyBuffer_Release(&in[i]);
    }
    return answer;
}

PyMethodDef header_writer_functions[] = {
    {"column_heads", column_heads, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
