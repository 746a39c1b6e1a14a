#ifndef SHMQ_PY_SUBSCRIPTION_H
#define SHMQ_PY_SUBSCRIPTION_H

#include "py_queue.h"

typedef struct {
    PyObject_HEAD shmq_subscription s;
    PyObject *selector; /* strong; a Selector or None */
} py_subscription;

extern PyType_Spec subscription_spec;
extern PyTypeObject *subscription_type;

/* The subscription behind an object, NULL for None; false with an exception set. The caller keeps the object. */
bool subscription_of(PyObject *object, shmq_subscription **by);

#endif
