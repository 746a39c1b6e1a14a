/* A consumer and the messages that it has lent, in the binding. One C object owns a delivery: the right to settle it,
 * and what becomes of it when it is dropped. The interpreter lock guards all of it, and no Python runs within a change.
 * So of several threads one settles a message, once, and a signal handler finds it settled or not. */
#ifndef SHMQ_PY_CONSUMER_H
#define SHMQ_PY_CONSUMER_H

#include "py_subscription.h"

typedef struct py_message py_message;

typedef struct py_consumer {
    PyObject_HEAD py_queue *queue; /* strong; of several queues: the first */
    shmq_py_member *owner; /* strong; NULL: it has not begun */
    shmq_queue *q; /* the binding that it began with, kept */
    uint64_t serial; /* of the member: another one after a fork */
    bool several;
    PyObject *subscription; /* strong */
    PyObject *own; /* strong: its Row; NULL: of several queues, each part has one */
    PyTypeObject *message_type; /* strong; Message */
    struct py_consumer *whole; /* strong, or itself: the consumer whose credit and list count */
    PyObject *dropped; /* strong; set: places of messages that were dropped unsettled, and not told yet */
    uint32_t row;
    bool closed;
    /* Of a whole: */
    py_message *first; /* the messages that it has lent */
    uint32_t lent, takers; /* their number; threads that take just now */
    uint32_t prefetch; /* 0: no limit */
    bool sleeping; /* a thread, or the one behind a descriptor, sleeps on the consumer's row */
    bool watched; /* there is a descriptor, which Python serves */
    bool starved; /* a thread has waited for credit: when some comes, others are woken */
    uint32_t turn; /* of several queues: which is asked first */
    struct consumer_news *news; /* of several queues: which of them have none; NULL: it has not looked yet */
} py_consumer;

enum message_state {
    IN_TRANSIT = 0, /* lent, not delivered yet: when dropped it goes back as if never taken */
    LENT,
    ENDED, /* settled, given back, taken away, or only browsed */
};

struct py_message {
    PyObject_HEAD PyObject *queue; /* strong: the queue handle, whose codec decodes it */
    py_consumer *consumer; /* strong while the message is in hand, else NULL */
    shmq_queue *q; /* the consumer's q, likewise */
    py_message *next, **link; /* in the list of its whole; link NULL: in no list */
    enum message_state state;
    bool copied; /* headers and body are in `copy` */
    uint32_t checksum_start; /* of its queue */
    bool checksum; /* does its queue have checksums? */
    bool has_body, browsed, redelivered;
    unsigned int failed, deaths;
    uint64_t place, loop, own_expires_ns;
    PyObject *headers, *block, *bytes, *view, *body, *outcome; /* strong or NULL */
    double settled_at; /* monotonic seconds */
    unsigned long settled_by; /* number of the thread */
    shmq_delivery d;
    unsigned char copy[SHMQ_COPY_BYTES];
};

extern PyTypeObject *consumer_type, *message_type;
extern PyType_Spec consumer_spec, message_spec, batch_spec;
extern PyTypeObject *batch_type;

/* SHMQ_OK: the consumer is of this process, and its broker is open. */
shmq_status consumer_usable(const py_consumer *self);
/* Does its prefetch allow one more message? */
bool consumer_has_credit(py_consumer *self);
/* Called when a message has left the consumer's hands: threads that wait for credit look again. The caller handles an
 * exception. */
int consumer_credit_came(py_consumer *whole);
/* _receive(timeout) -> the next message, IN_TRANSIT. Does all that Python has to do before and after it. */
PyObject *consumer_receive(PyObject *o, PyObject *timeout);
PyObject *consumer_receive_until(PyObject *o, PyObject *timeout, uint64_t until_ns);
/* The same without waiting. None: no message or no credit. */
PyObject *consumer_one_more(PyObject *o);
/* _receive_many(limit, timeout) -> Batch. An exception of the first wait is passed on. */
PyObject *consumer_receive_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs);
/* False, with Closed set: another thread has closed it, and its row may be another consumer's. The caller asks last before
 * it enters. */
bool consumer_is_open(py_consumer *whole);
/* Before and after a wait. False: no credit. *own_row: this thread sleeps on the consumer's row. */
bool consumer_enters(py_consumer *whole, bool *own_row);
int consumer_leaves(py_consumer *whole, bool own_row);
/* The answer of a take by `self`: the message, or an exception. If the consumer is closed, the last taker gives its row
 * back. */
PyObject *consumer_left(py_consumer *self, PyObject *message);

typedef struct consumer_news consumer_news;
void consumer_news_free(consumer_news *news);

/* Makes a message of an acquired entry, IN_TRANSIT, in the list of its consumer. NULL with an exception set: the entry
 * went back; without one: another process took it meanwhile. */
py_message *message_new(py_consumer *consumer, const shmq_delivery *d, const unsigned char *copy);
/* Takes the message out of the list. The caller decides what becomes of it. */
void message_unlink(py_message *self);
/* After that: the message keeps neither its consumer nor its queue's memory. */
void message_let_go(py_message *self);
/* The same of one that is not settled, but in its place again or another process's: its body has gone with it. */
void message_went_back(py_message *self);
/* Before a settlement: keeps a body that was not read yet, so that it can be read afterwards. */
void message_keep_body(py_message *self);
/* Methods and properties of a message that concern its body. */
PyObject *message_body(PyObject *o, void *unused);
PyObject *message_headers(PyObject *o, void *unused);
PyObject *message_data(PyObject *o, PyObject *unused);
PyObject *message_intact(PyObject *o, PyObject *unused);

/* Gives all of these back to their places together; no attempt is counted. Sorts the array. False: no memory, and none
 * went back. */
bool messages_go_back(py_message **all, uint32_t count);
/* The next message of several queues, from one that has news. None: Python has to look. */
PyObject *consumer_take_news(py_consumer *whole);
/* _take_any(consumers, timeout) -> Message not delivered yet; None: the whole has no credit. The consumers are always the
 * same, and the whole keeps the tuple. */
PyObject *consumer_take_any(PyObject *o, PyObject *args);

#endif
