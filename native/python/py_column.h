/* Columns in the layout of Arrow, while they grow. */
#ifndef SHMQ_PY_COLUMN_H
#define SHMQ_PY_COLUMN_H

#include "py_shmq.h"

#include <stdbool.h>
#include <stdlib.h>

/* Memory of one column. */
typedef struct column {
    unsigned char *at;
    size_t used, room;
} column;

/* Room for so many more bytes; NULL: no memory. */
static inline unsigned char *column_room(column *c, size_t more) {
    if (c->room - c->used < more) {
        size_t room = c->room * 2 > c->used + more ? c->room * 2 : c->used + more + 4096;
        unsigned char *at = realloc(c->at, room);
        if (at == NULL) {
            return NULL;
        }
        c->at = at;
        c->room = room;
    }
    return c->at + c->used;
}

static inline bool column_add(column *c, const void *value, size_t size) {
    unsigned char *to = column_room(c, size + 1); /* so that 0 bytes do not give NULL */
    if (to == NULL) {
        return false;
    }
    if (size > 0) {
        memcpy(to, value, size);
    }
    c->used += size;
    return true;
}

/* A tuple with the bytes of each column. */
static inline PyObject *columns_tuple(const column *all, int count) {
    PyObject *parts = PyTuple_New(count);
    for (int i = 0; parts != NULL && i < count; i++) {
        PyObject *part = PyBytes_FromStringAndSize((const char *)all[i].at, (Py_ssize_t)all[i].used);
        if (part == NULL) {
            Py_CLEAR(parts);
        } else {
            PyTuple_SetItem(parts, i, part);
        }
    }
    return parts;
}

static inline void columns_free(column *all, int count) {
    for (int i = 0; i < count; i++) {
        free(all[i].at);
    }
}

#endif
