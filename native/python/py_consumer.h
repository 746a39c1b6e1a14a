/* A consumer and the messages that it has lent, as the binding has them. One C object owns a delivery, the right to settle
 * it, and its fate when it is dropped. All of it is guarded by the interpreter lock, and nothing that changes it runs
 * Python in between: so threads settle a message once, and a handler of a signal finds it settled or not. */
#ifndef SHMQ_PY_CONSUMER_H
#define SHMQ_PY_CONSUMER_H

#include "py_subscription.h"

typedef struct py_message py_message;

typedef struct py_consumer {
    PyObject_HEAD py_queue *queue; /* strong; of several: the first of them */
    shmq_py_member *owner; /* strong; NULL: it has not begun */
    shmq_queue *q; /* the binding at its beginning, kept */
    uint64_t serial; /* of the member: another one after a fork */
    bool several;
    PyObject *subscription; /* strong */
    PyTypeObject *message_type; /* strong; Message */
    struct py_consumer *whole; /* whose credit and list count: itself, or (strong) that of several queues */
    PyObject *dropped; /* strong; set: places of what was dropped unsettled, and not told yet */
    uint32_t row;
    bool closed;
    /* Of a whole: */
    py_message *first; /* what it has lent */
    uint32_t lent, takers; /* how many; threads that are taking just now */
    uint32_t prefetch; /* 0: no limit */
    bool sleeping; /* a thread, or the one behind a descriptor, sleeps on its own row */
    bool watched; /* there is a descriptor: Python looks after it */
    bool starved; /* a thread has waited for credit: others are told when some comes */
} py_consumer;

enum message_state {
    IN_TRANSIT = 0, /* lent, and not delivered yet: dropped now, it goes back as if it had never been taken */
    LENT,
    ENDED, /* settled, given back, taken away, or only browsed */
};

struct py_message {
    PyObject_HEAD PyObject *queue; /* strong: the handle whose codec decodes it */
    py_consumer *consumer; /* strong, as long as it is in hand; else NULL */
    shmq_queue *q; /* the consumer's, likewise */
    py_message *next, **link; /* in the list of its whole; link NULL: out of it */
    enum message_state state;
    bool copied; /* head and body are in `copy` */
    bool checksum; /* has its queue? */
    bool has_body, browsed, redelivered;
    unsigned int failed, deaths;
    uint64_t place, loop, own_expires_ns;
    PyObject *headers, *block, *bytes, *view, *body, *outcome; /* strong or NULL */
    double settled_at; /* monotonic seconds */
    unsigned long settled_by; /* thread */
    shmq_delivery d;
    unsigned char copy[SHMQ_COPY_BYTES];
};

extern PyTypeObject *consumer_type, *message_type;
extern PyType_Spec consumer_spec, message_spec, batch_spec;
extern PyTypeObject *batch_type;

/* In this process, and its broker open? */
shmq_status consumer_usable(const py_consumer *self);
/* Room for one more within its prefetch? */
bool consumer_has_credit(py_consumer *self);
/* After something has left its hands: whoever waits for credit looks again. What that raises is left to the caller. */
int consumer_credit_came(py_consumer *whole);
/* _receive(timeout) -> the next message, IN_TRANSIT, with all that has to be looked after before and behind it. */
PyObject *consumer_receive(PyObject *o, PyObject *timeout);
PyObject *consumer_receive_until(PyObject *o, PyObject *timeout, uint64_t until_ns);
/* The same without a wait. None: there is none, or no credit. */
PyObject *consumer_one_more(PyObject *o);
/* _receive_many(limit, timeout) -> Batch. The exception of the first wait goes through. */
PyObject *consumer_receive_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs);
/* Around a wait: false without credit; and whether it sleeps on its own row. */
bool consumer_enters(py_consumer *whole, bool *own_row);
int consumer_leaves(py_consumer *whole, bool own_row);
/* The outcome of a take by `self`: a message, or, with `status`, an exception. The last one out of a closed consumer gives its row back. */
PyObject *consumer_left(py_consumer *self, PyObject *message);

/* A message of what was acquired, in the list of its consumer, IN_TRANSIT. NULL with an exception set: it went back; or, without
 * one: it was taken away meanwhile. */
py_message *message_new(py_consumer *consumer, const shmq_delivery *d, const unsigned char *copy);
/* Out of the list: the caller says what becomes of it. */
void message_unlink(py_message *self);
/* When that is done: it keeps neither its consumer nor its queue's memory any more. */
void message_let_go(py_message *self);
/* Before a settlement: a body that was not read yet can be read afterwards. */
void message_keep_body(py_message *self);
/* Methods and answers of a message that are about its body. */
PyObject *message_body(PyObject *o, void *unused);
PyObject *message_headers(PyObject *o, void *unused);
PyObject *message_data(PyObject *o, PyObject *unused);
PyObject *message_intact(PyObject *o, PyObject *unused);

/* All of these are back in their places, uncounted, as one. The array is sorted. False: no memory, and none of them is. */
bool messages_go_back(py_message **all, uint32_t count);
/* _take_any(consumers, first, timeout) -> (which of them, Message, not delivered yet); None: no credit. Of the whole. */
PyObject *consumer_take_any(PyObject *o, PyObject *args);

#endif
