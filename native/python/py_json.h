/* Writes bodies as JSON, and reads them. */
#ifndef SHMQ_PY_JSON_H
#define SHMQ_PY_JSON_H

#include "py_column.h"

/* Adds the body: a str, int of 64 bits, finite float, bool, None, or a list or dict of such, of these very types.
 * False, without an exception: it is something else, and `to` may have a part of it. */
bool json_written(column *to, PyObject *body);
/* The value of a text without space around it. NULL: it is none, or is left to Python; or an exception is set. */
PyObject *json_read(const char *text, Py_ssize_t size);

#endif
