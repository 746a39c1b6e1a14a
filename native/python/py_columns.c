/* Entries as columns: Arrow batches are made without a Python object for each row. */
#include "py_column.h"
#include "py_queue.h"

enum { POSITION, ID, TIME, PRIORITY, DELIVERIES, CONTENT, HEAD_ENDS, HEADS, BODY_ENDS, BODIES, COLUMNS };

typedef struct columns {
    column of[COLUMNS];
    uint64_t rows;
    const shmq_member *m;
} columns;

/* Copies the bytes of a header block or a body behind the used part. The caller checks them before they count. */
static unsigned char *column_copied(column *c, const void *from, size_t size) {
    unsigned char *to = column_room(c, size + 1); /* so that 0 bytes do not give NULL */
    if (to != NULL && size > 0) {
        memcpy(to, from, size);
    }
    return to;
}

static bool columns_begin(columns *all) {
    static const int32_t none = 0;
    return column_add(&all->of[HEAD_ENDS], &none, sizeof none) && column_add(&all->of[BODY_ENDS], &none, sizeof none);
}

/* Counts an entry whose bytes lie behind the used part of the two columns. */
static bool columns_count(columns *all, uint64_t place, const shmq_delivery *d) {
    all->of[HEADS].used += d->headers_len;
    all->of[BODIES].used += d->body_len;
    int64_t numbers[] = {(int64_t)place, (int64_t)d->message_id, (int64_t)shmq_wall_of(all->m, d->enqueued_ns)};
    int32_t small[] = {(int32_t)d->priority, (int32_t)(d->delivery + d->deaths), (int32_t)all->of[HEADS].used,
                       (int32_t)all->of[BODIES].used};
    uint8_t content = (uint8_t)d->content;
    numbers[2] = numbers[2] > 0 ? numbers[2] / 1000 : 0; /* microseconds */
    all->rows++;
    return column_add(&all->of[POSITION], &numbers[0], 8) && column_add(&all->of[ID], &numbers[1], 8) &&
           column_add(&all->of[TIME], &numbers[2], 8) && column_add(&all->of[PRIORITY], &small[0], 4) &&
           column_add(&all->of[DELIVERIES], &small[1], 4) && column_add(&all->of[CONTENT], &content, 1) &&
           column_add(&all->of[HEAD_ENDS], &small[2], 4) && column_add(&all->of[BODY_ENDS], &small[3], 4);
}

/* (next place, has the range ended?, rows, (bytes of each column, in the order of the enum)) */
static PyObject *columns_answer(const columns *all, uint64_t next, bool ended) {
    PyObject *parts = columns_tuple(all->of, COLUMNS);
    return parts == NULL ? NULL
                         : Py_BuildValue("(KOKN)", (unsigned long long)next, ended ? Py_True : Py_False,
                                         (unsigned long long)all->rows, parts);
}

typedef struct range {
    uint64_t place, end; /* `end` is exclusive */
    uint64_t max_rows, max_bytes;
} range;

/* Copies entries until the range ends or the batch is full. SHMQ_EMPTY: the range has ended; SHMQ_NO_SPACE: no memory. */
static shmq_status columns_fill(columns *all, shmq_ring *level, uint64_t position, range *of) {
    while (all->rows < of->max_rows && all->of[BODIES].used < of->max_bytes) {
        shmq_delivery d;
        uint64_t at = position;
        shmq_status status = shmq_browse_place(level, &at, &d);
        if (SHMQ_UNLIKELY(status != SHMQ_OK && status != SHMQ_EMPTY)) {
            return all->rows > 0 ? SHMQ_OK : status; /* the next batch begins with this entry */
        }
        if (status == SHMQ_EMPTY || shmq_place_at(level->depth, at) >= of->end) {
            return SHMQ_EMPTY;
        }
        if (all->of[BODIES].used + d.body_len > INT32_MAX || all->of[HEADS].used + d.headers_len > INT32_MAX) {
            if (all->rows > 0) {
                return SHMQ_OK; /* the next batch begins with this entry */
            }
            return SHMQ_TOO_LARGE;
        }
        unsigned char *headers = column_copied(&all->of[HEADS], d.headers, d.headers_len);
        unsigned char *body = column_copied(&all->of[BODIES], d.bytes, (size_t)d.body_len);
        if (headers == NULL || body == NULL) {
            return SHMQ_NO_SPACE;
        }
        position = at;
        bool row = d.depth == SHMQ_ON_DISK; /* a copy, as sound as the row */
        if (!row && !shmq_browse_valid(shmq_level(level->queue, d.depth), &d)) {
            continue; /* the entry went during the copy: look at the same place again */
        }
        position = at + 1;
        of->place = shmq_place_at(level->depth, position);
        d.headers = headers; /* the copies are checked: shared memory may change */
        d.bytes = body;
        if (SHMQ_UNLIKELY(!shmq_delivery_intact(level->queue, &d))) {
            continue; /* damaged: its taker is told */
        }
        if (!columns_count(all, shmq_place_at(level->depth, at), &d)) {
            return SHMQ_NO_SPACE;
        }
    }
    return SHMQ_OK;
}

/* _browse_columns(place, end, max_rows, max_bytes) -> (next place, has the range ended?, rows, columns): the entries
 * from `place` on and before `end`, in order, as _browse() shows each. The columns are bytes: position, id and time
 * (int64; microseconds of the epoch), priority and attempts (int32), content (uint8). Then come the ends (int32, one
 * more than rows) and the bytes of header blocks and of bodies. */
PyObject *queue_browse_columns(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long place, end, max_rows, max_bytes;
    uint64_t position;
    if (!PyArg_ParseTuple(args, "KKKK", &place, &end, &max_rows, &max_bytes) || !queue_ready(self)) {
        return NULL;
    }
    shmq_status status = shmq_queue_enter(self->q);
    if (status != SHMQ_OK) {
        return queue_raise(self, status);
    }
    shmq_ring *level = shmq_level_of_place(self->q, place, &position);
    if (level == NULL) {
        return PyErr_Format(PyExc_ValueError, "position %llu: this queue has %u levels", place, self->q->levels);
    }
    columns all = {.m = self->q->m};
    range of = {.place = place, .end = end, .max_rows = max_rows, .max_bytes = max_bytes};
    PyObject *answer = NULL;
    status = columns_begin(&all) ? SHMQ_OK : SHMQ_NO_SPACE;
    if (status == SHMQ_OK) {
        do {
            BEGIN_WAIT(self)
            status = columns_fill(&all, level, position, &of);
            END_WAIT(self)
        } while (SHMQ_UNLIKELY(status == SHMQ_INTERRUPTED) && queue_goes_on(self)); /* a mover is at work */
    }
    if (status == SHMQ_INTERRUPTED) {
        answer = NULL;
    } else if (status == SHMQ_OS || status == SHMQ_DENIED || status == SHMQ_CORRUPT) {
        answer = queue_raise(self, status);
    } else if (status == SHMQ_NO_SPACE) {
        PyErr_NoMemory();
    } else if (status == SHMQ_TOO_LARGE) {
        PyErr_Format(PyExc_OverflowError, "the body at position %llu is larger than an Arrow column holds", of.place);
    } else {
        answer = columns_answer(&all, of.place, status == SHMQ_EMPTY);
    }
    columns_free(all.of, COLUMNS);
    return answer;
}

/* Where a taker copies rows to. */
typedef struct row_copier {
    columns *all;
    bool too_large; /* the next row would not fit behind those that are there */
} row_copier;

/* Room for the numbers of one more row, so that columns_count() does not fail behind the taking. */
static bool columns_reserve(columns *all) {
    bool there = true;
    for (int i = 0; i < COLUMNS; i++) {
        there = there && (i == HEADS || i == BODIES || column_room(&all->of[i], 8 + 1) != NULL);
    }
    return there;
}

/* With the interpreter lock. The copy counts only when its message is taken: columns_count(). */
static shmq_copied copy_row(void *to, const shmq_queue *q, const shmq_delivery *d) {
    row_copier *c = to;
    if (c->all->of[BODIES].used + d->body_len > INT32_MAX || c->all->of[HEADS].used + d->headers_len > INT32_MAX) {
        c->too_large = true;
        return SHMQ_COPIED_NOTHING;
    }
    shmq_delivery copied = *d;
    copied.headers = column_copied(&c->all->of[HEADS], d->headers, d->headers_len);
    copied.bytes = column_copied(&c->all->of[BODIES], d->bytes, (size_t)d->body_len);
    if (copied.headers == NULL || copied.bytes == NULL || !columns_reserve(c->all)) {
        PyErr_NoMemory();
        return SHMQ_COPIED_NOTHING;
    }
    return shmq_delivery_intact(q, &copied) ? SHMQ_COPIED : SHMQ_COPIED_DAMAGE; /* what was copied is what is checked */
}

/* Takes the next message into the columns. */
static shmq_status take_row(py_queue *self, row_copier *to, uint64_t until_ns) {
    shmq_getting g = {.contents = UINT8_MAX + 1, .copy = copy_row, .to = to};
    shmq_status status;
    shmq_delivery d;
    do {
        status = shmq_get_at_once(self->q, &g, &d);
        if (status == SHMQ_EMPTY) {
            status = queue_get_later(self, &g, until_ns, &d);
        }
    } while (status == SHMQ_POISONED && queue_dead_letter(self, &d));
    if (status == SHMQ_OK) {
        (void)columns_count(to->all, shmq_place_at(d.depth, d.position), &d);
    }
    return status;
}

/* Takes until the batch is full, or something else ends it: *status. NULL: no memory. */
static PyObject *take_batch(py_queue *self, uint64_t limit, range *of, uint64_t until_ns, shmq_status *status) {
    columns all = {.m = self->q->m};
    row_copier to = {.all = &all};
    *status = SHMQ_OK;
    if (!columns_begin(&all)) {
        columns_free(all.of, COLUMNS);
        return PyErr_NoMemory();
    }
    while (*status == SHMQ_OK && all.rows < limit && all.rows < of->max_rows && all.of[BODIES].used < of->max_bytes) {
        *status = take_row(self, &to, all.rows == 0 ? until_ns : 0);
    }
    if (to.too_large && all.rows > 0) {
        *status = SHMQ_OK; /* the next batch begins with it */
    } else if (to.too_large) {
        PyErr_SetString(PyExc_OverflowError, "a body is larger than an Arrow column holds; take it with get()");
    }
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *parts = columns_tuple(all.of, COLUMNS);
    PyObject *answer = parts != NULL ? Py_BuildValue("(KN)", (unsigned long long)all.rows, parts) : NULL;
    columns_free(all.of, COLUMNS);
    if (answer != NULL) {
        PyErr_Restore(kind, error, trace);
    }
    return answer;
}

/* _get_columns(limit, max_rows, max_bytes, timeout) -> [(rows, columns), ...]: takes as get_many() does,
 * into columns as of _browse_columns(); one tuple ends at the row that reaches max_rows or max_bytes. */
PyObject *queue_get_columns(PyObject *o, PyObject *args) {
    py_queue *self = (py_queue *)o;
    unsigned long long limit, taken = 0;
    uint64_t until;
    range of = {0};
    PyObject *timeout;
    if (!PyArg_ParseTuple(args, "KKKO", &limit, &of.max_rows, &of.max_bytes, &timeout) ||
        !parse_timeout(timeout, &until)) {
        return NULL;
    }
    PyObject *list = queue_takes(self) ? PyList_New(0) : NULL;
    shmq_status status = SHMQ_OK;
    while (list != NULL && status == SHMQ_OK && taken < limit) {
        PyObject *batch = take_batch(self, limit - taken, &of, taken == 0 ? until : 0, &status);
        bool failed = batch == NULL;
        if (!failed && PyLong_AsUnsignedLongLong(PyTuple_GetItem(batch, 0)) > 0) {
            taken += PyLong_AsUnsignedLongLong(PyTuple_GetItem(batch, 0));
            PyObject *kind, *error, *trace;
            PyErr_Fetch(&kind, &error, &trace);
            failed = PyList_Append(list, batch) < 0;
            if (!failed) {
                PyErr_Restore(kind, error, trace);
            }
        }
        Py_XDECREF(batch);
        if (failed) {
            Py_CLEAR(list);
        }
    }
    if (list == NULL || status == SHMQ_OK || (status == SHMQ_EMPTY && !PyErr_Occurred())) {
        return list;
    }
    if (!PyErr_Occurred()) {
        queue_raise(self, status);
    }
    if (taken > 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        queue_keep_untold(self); /* what was taken is handed over; the next call tells, or meets the error again */
        return list;
    }
    Py_CLEAR(list);
    return NULL;
}
