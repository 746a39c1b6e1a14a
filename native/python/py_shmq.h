/* Declarations that the files of the extension module share. Limited API of CPython 3.11. */
#ifndef SHMQ_PY_SHMQ_H
#define SHMQ_PY_SHMQ_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <string.h>

#include "shmq.h"

/* Replaces a strong reference by another, which is stolen. The old one is released after the new one is in place. */
static inline void shmq_py_set(PyObject **place, PyObject *value) {
    PyObject *old = *place;
    *place = value;
    Py_XDECREF(old);
}

/* One membership. The GIL guards `calls`. */
typedef struct {
    PyObject_HEAD shmq_member *member;
    uint32_t calls; /* calls without the GIL: they keep the mapping */
    uint32_t views; /* views and loans: while any exist, a closed member keeps its row */
    bool kept; /* it is closed but for its row: the last view gives that back */
    uint32_t
        dead_letters; /* messages for which the dead letters had no room: Python tries again before it takes anything */
    PyObject *untold; /* strong or NULL: dict of errors that are told once, and that a batch has met; see py_untold.c */
    uint64_t serial; /* the member's, when calls and views were counted: a forked child starts at 0 */
} shmq_py_member;

/* Before and after a part without the GIL; begin and end of a view or loan. */
void shmq_py_enter(shmq_py_member *self);
void shmq_py_leave(shmq_py_member *self);
void shmq_py_view_added(shmq_py_member *self);
void shmq_py_view_gone(shmq_py_member *self);
/* Ends the membership: new calls fail, running ones end, and what this process has in hand goes back to its places. The row
 * is kept while views exist. */
shmq_status shmq_py_member_end(shmq_py_member *self);
/* Ends all that a closed member keeps open: with itself, or with the last of its views. */
void shmq_py_member_give_back(shmq_py_member *self);

/* The type Member; one interpreter in a process, see module.c. */
extern PyTypeObject *shmq_py_member_type;

/* Sets the exception for a failed call (trail and errno of this thread) and answers NULL. For SHMQ_INTERRUPTED signal
 * handlers run first; if one raises, its exception counts. */
PyObject *shmq_py_raise(shmq_status status);
PyObject *shmq_py_set_exception_factory(PyObject *module, PyObject *factory);
/* The cipher of a key, given as bytes; NULL: an exception is set. */
struct shmq_cipher *shmq_py_cipher(PyObject *key);

/* The membership behind a Member; NULL with an exception set: no Member, or a closed one. A forked child may pass. */
shmq_member *shmq_py_usable(PyObject *member);

int shmq_py_add_member(PyObject *module);
int shmq_py_add_segment(PyObject *module);
int shmq_py_add_observer(PyObject *module);
int shmq_py_add_queue(PyObject *module);
int shmq_py_add_delivery(PyObject *module);
int shmq_py_add_message(PyObject *module);
int shmq_py_add_selector(PyObject *module);

/* The loaded selector of a Selector, valid while the object lives; NULL with TypeError set for anything else. */
const shmq_selector *shmq_py_selector(PyObject *o);

/* dict[name] = value, a new reference, which is stolen; NULL is passed on. Answers 0, or -1 with an exception set. */
int shmq_py_put(PyObject *dict, const char *name, PyObject *value);

/* The directory of a segment, as PyArg_Parse's "O&" reads it from (descriptor, uuid) or None. */
typedef struct {
    shmq_home home;
    const shmq_home *given; /* NULL: the argument was None */
} shmq_py_home;
#define SHMQ_PY_NO_HOME {.given = NULL}
int shmq_py_home_from(PyObject *object, void *result);

#endif
