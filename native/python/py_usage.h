/* Memberships and observers both tell this: memory and counters of the segment, names of its queues. */
#ifndef SHMQ_PY_USAGE_H
#define SHMQ_PY_USAGE_H

#include "py_shmq.h"

typedef struct {
    uint64_t memory; /* the budget */
    shmq_broker_facts facts;
    shmq_block_usage blocks;
} shmq_py_usage;

void shmq_py_usage_look(const shmq_member *m, shmq_py_usage *usage); /* without the GIL */
PyObject *shmq_py_usage_dict(const shmq_py_usage *usage);
PyObject *shmq_py_header(const shmq_member *m); /* what it says of the segment, as a dict */
/* [(name, bytes for slots, bytes of bodies)] of all queues; empty while another process changes the structure. */
PyObject *shmq_py_memory_users(shmq_member *m);
PyObject *shmq_py_queue_names(shmq_member *m);   /* [(name, index, incarnation)] */
PyObject *shmq_py_ending_queues(shmq_member *m); /* the same of deleted queues with messages that become dead letters */
PyObject *shmq_py_alert_queues(shmq_member *m); /* the same of queues that may have an alert */
/* Of a Member, also a closed one: the wall clock at that time of the monotonic one (ahead of now: as the clock goes
 * now). And how long ago that was, time asleep included. */
PyObject *shmq_py_wall_of(PyObject *member, PyObject *monotonic_ns);
PyObject *shmq_py_age_ns(PyObject *member, PyObject *monotonic_ns);

/* A dict of numbers, being made. */
typedef struct {
    const char *name;
    uint64_t value;
} shmq_py_number;
PyObject *shmq_py_numbers(const shmq_py_number *numbers, size_t count);

#endif
