/* Options of put and put_many, as they come in a call from Python. */
#ifndef SHMQ_PY_PUT_OPTIONS_H
#define SHMQ_PY_PUT_OPTIONS_H

#include "py_column.h"
#include "py_queue.h"

typedef struct put_options {
    PyObject *timeout; /* borrowed, or NULL: not given */
    bool others;       /* others were given */
    bool has_priority;
    put_extras extras; /* the group is in an argument of the call */
    column block;      /* of headers and group; empty: there is none */
} put_options;

/* Reads the keyword arguments of a fast call into an `o` of zeros. False, without an exception: one is not as it should
 * be, or is of a rare kind; only `timeout` and `others` are to be believed then. */
bool put_options_plain(put_options *o, PyObject *const *values, PyObject *names);
/* Can messages of this queue, which is bound, have these options? */
bool put_options_fit(const put_options *o, const shmq_queue *q);
void put_options_clear(put_options *o);

#endif
