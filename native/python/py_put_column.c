/* Columns as entries: Arrow batches are put without a Python object for each row. */
#include "py_queue.h"

/* Bodies one behind the other, and where each ends: 32 or 64 bits. */
typedef struct bodies {
    const unsigned char *data;
    const void *ends;
    bool wide;
} bodies;

static uint64_t body_end(const bodies *b, uint64_t n) {
    return b->wide ? ((const uint64_t *)b->ends)[n] : ((const uint32_t *)b->ends)[n];
}

/* The columns of a row besides its body. */
enum { CONTENTS, PRIORITIES, TTLS, HEAD_ENDS, HEADS, OPTIONS };

static uint64_t headers_end(const Py_buffer *ends, uint64_t n) {
    return (uint64_t)shmq_signed_at((const unsigned char *)ends->buf + 4 * n, 4);
}

static void row_options(shmq_outgoing *out, const Py_buffer *options, uint64_t row) {
    uint64_t ttl_ns, begin = headers_end(&options[HEAD_ENDS], row), end = headers_end(&options[HEAD_ENDS], row + 1);
    memcpy(&ttl_ns, (const unsigned char *)options[TTLS].buf + 8 * row, 8);
    out->content = ((const uint8_t *)options[CONTENTS].buf)[row];
    out->priority = ((const uint8_t *)options[PRIORITIES].buf)[row];
    out->expires_ns = ttl_ns != SHMQ_NEVER ? out->enqueued_ns + ttl_ns : 0;
    if (end > begin) {
        out->headers = (const unsigned char *)options[HEADS].buf + begin;
        out->headers_len = (uint32_t)(end - begin);
    }
}

/* `options`: NULL, or those of each row. False: an exception is set. *total: how many were put, in both cases. */
static bool put_bodies(py_queue *self, uint8_t content, const bodies *b, const Py_buffer *options, uint64_t first,
                       uint64_t count, uint64_t until_ns, uint64_t *total) {
    parcel parcels[BATCH];
    shmq_outgoing out[BATCH];
    room_wait wait = {0};
    while (*total < count) {
        uint32_t some = count - *total < BATCH ? (uint32_t)(count - *total) : BATCH, done = 0;
        memset(parcels, 0, sizeof parcels);
        uint64_t now = shmq_put_ns(self->q->m); /* one time for all of them */
        for (uint32_t i = 0; i < some; i++) {
            uint64_t begin = body_end(b, first + *total + i), end = body_end(b, first + *total + i + 1);
            parcel *p = &parcels[i];
            p->one = (struct iovec){(void *)(b->data + begin), end - begin};
            p->out = (shmq_outgoing){.pieces = &p->one,
                                     .piece_count = 1,
                                     .body_len = end - begin,
                                     .content = content,
                                     .priority = DEFAULT_PRIORITY,
                                     .enqueued_ns = now,
                                     .wait.more = true};
            if (options != NULL) {
                row_options(&p->out, options, *total + i);
            }
        }
        shmq_status status = queue_put_batch(self, parcels, out, some, until_ns, &wait, &done);
        *total += done;
        if (status != SHMQ_OK) {
            queue_raise(self, status);
            return false;
        }
        if (PyErr_CheckSignals() < 0) {
            return false;
        }
    }
    return true;
}

static bool bodies_fit(const bodies *b, const Py_buffer *ends, const Py_buffer *data, uint64_t first, uint64_t count) {
    uint64_t have = (uint64_t)ends->len / (b->wide ? 8 : 4);
    bool fit = first < have && count < have - first;
    for (uint64_t n = first; fit && n < first + count; n++) {
        fit = body_end(b, n) <= body_end(b, n + 1);
    }
    if (!fit || body_end(b, first + count) > (uint64_t)data->len) {
        PyErr_SetString(PyExc_ValueError, "the ends of the bodies do not match their bytes");
        return false;
    }
    return true;
}

static bool options_fit(const Py_buffer *of, uint64_t count) {
    bool fit = (uint64_t)of[CONTENTS].len == count && (uint64_t)of[PRIORITIES].len == count &&
               (uint64_t)of[TTLS].len == 8 * count && (uint64_t)of[HEAD_ENDS].len == 4 * (count + 1);
    for (uint64_t n = 0; fit && n <= count; n++) {
        uint64_t begin = n > 0 ? headers_end(&of[HEAD_ENDS], n - 1) : 0, end = headers_end(&of[HEAD_ENDS], n);
        fit = begin <= end && end <= (uint64_t)of[HEADS].len && (n == 0 || end - begin <= SHMQ_HEADERS_MAX) &&
              (n == count || ((const uint8_t *)of[PRIORITIES].buf)[n] <= 9);
    }
    if (!fit) {
        PyErr_SetString(PyExc_ValueError, "the options of the rows do not match their number");
    }
    return fit;
}

static bool options_parsed(PyObject *object, Py_buffer *of) {
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "options: None, or a tuple of columns");
        return false;
    }
    return PyArg_ParseTuple(object, "y*y*y*y*y*", &of[0], &of[1], &of[2], &of[3], &of[4]);
}

/* _put_column(content, wide, ends, bytes, first, count, options, timeout): puts `count` bodies from number `first` on, in
 * order, waiting for room as put_many() does. An end has 64 bits if `wide`, else 32; there is one end more than bodies. Options: None, or
 * for each body content (uint8), priority (uint8), ttl (uint64, ns), then the ends (int32, one more) and the bytes of
 * the heads. `accepted` of the error says how many were put. */
PyObject *queue_put_column(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    PyObject *options_object, *timeout;
    uint64_t until;
    Py_buffer ends, data, options[OPTIONS] = {0};
    unsigned long long first, count;
    int content, wide;
    if (!PyArg_ParseTuple(args, "ipy*y*KKOO", &content, &wide, &ends, &data, &first, &count, &options_object,
                          &timeout)) {
        return NULL;
    }
    bool given = options_object != Py_None, done = parse_timeout(timeout, &until) && queue_begins(self) &&
                                                   (!given || options_parsed(options_object, options));
    bodies b = {.data = data.buf, .ends = ends.buf, .wide = wide};
    uint64_t total = 0;
    done = done && bodies_fit(&b, &ends, &data, first, count) && (!given || options_fit(options, count));
    if (done && !put_bodies(self, (uint8_t)content, &b, given ? options : NULL, first, count, until, &total)) {
        queue_tell_accepted(total);
        done = false;
    }
    for (int i = 0; i < OPTIONS; i++) {
        PyBuffer_Release(&options[i]);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&ends);
    return done ? Py_NewRef(Py_None) : NULL;
}
