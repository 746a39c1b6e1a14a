/* Declarations that the files of the queue's binding share. */
#ifndef SHMQ_PY_QUEUE_H
#define SHMQ_PY_QUEUE_H

#include "py_shmq.h"

/* PICKLE, too, takes exact bytes and text as they are; Python does the rest of it. */
enum codec_kind { CODEC_DEFAULT = 0, CODEC_BYTES = 1, CODEC_OTHER = 2, CODEC_PICKLE = 3 };
enum content { CONTENT_BYTES = 0, CONTENT_TEXT = 1, CONTENT_JSON = 2, CONTENT_END = 256 };

/* A part without the interpreter lock; close() of the broker waits for it. */
#define BEGIN_WAIT(self)          \
    shmq_py_enter((self)->owner); \
    Py_BEGIN_ALLOW_THREADS
#define END_WAIT(self)   \
    Py_END_ALLOW_THREADS \
    shmq_py_leave((self)->owner);

#define DEFAULT_PRIORITY 4u
#define BATCH 64 /* claims held at a time: few enough to be published within microseconds */

/* Longer copies are made without the interpreter lock. */
#define BIG_COPY 65536u

typedef struct py_queue {
    PyObject_HEAD shmq_py_member *owner; /* strong */
    shmq_queue *q;
    int codec_kind;
    PyObject *implicit; /* strong or NULL: weak reference to the consumer whose messages receive() lends */
} py_queue;

/* The queue is bound, by this process and not a forked child; else false with an exception set. */
bool queue_ready(py_queue *self);
/* Sets the exception that self._failure(status name, trail, errno) answers. Always NULL. */
PyObject *queue_raise(py_queue *self, shmq_status status);
/* The same for a call that puts or takes. First it makes dead letters of expired messages that this process has found:
 * a busy process never waits, and perhaps no other one looks. */
bool queue_begins(py_queue *self);
/* The exception that is set is cleared; of what is told once the next call that takes from this queue tells. */
void queue_keep_untold(py_queue *self);
/* Tells of the first such one. False: it is set as the exception. */
bool queue_tell(py_queue *self);
/* queue_begins of a call that takes. */
static inline bool queue_takes(py_queue *self) {
    return queue_begins(self) && (SHMQ_LIKELY(self->owner->untold == NULL) || queue_tell(self));
}
/* Between two pieces of a wait: runs signal handlers, and makes dead letters of expired messages. False with an
 * exception set. */
bool queue_goes_on(py_queue *self);
/* A call that waits for room. If it waits for long, and without an end, Python logs that, once in a call. */
typedef struct room_wait {
    uint64_t since_ns;
    bool endless, told;
} room_wait;
void room_wait_begins(room_wait *w, uint64_t until_ns);
/* Between two pieces of such a wait: runs signal handlers, and logs. False with an exception set. */
bool room_wait_goes_on(py_queue *self, room_wait *w, shmq_status lacking);
/* None: for ever; else a number of seconds; 0: no wait. False with ValueError or TypeError set. */
bool parse_timeout(PyObject *timeout, uint64_t *until_ns);

/* Does the handle take exact str, and answer a body of text as str? */
static inline bool knows_text(const py_queue *self) {
    return self->codec_kind == CODEC_DEFAULT || self->codec_kind == CODEC_PICKLE;
}

/* Options of a put besides headers, from Python. Missing ones have their defaults. */
typedef struct put_extras {
    uint8_t priority;       /* default 4 */
    uint64_t ttl_ns;        /* default SHMQ_NEVER */
    uint64_t delay_ns;      /* default 0 */
    uint64_t immediate_ns;  /* SHMQ_NEVER: not immediate */
    const char *group;      /* NULL, or in the tuple */
    uint32_t group_len;
} put_extras;

#define NO_EXTRAS ((put_extras){.priority = DEFAULT_PRIORITY, .ttl_ns = SHMQ_NEVER, .immediate_ns = SHMQ_NEVER})

/* A message on its way in, with the Python objects into whose memory it points. */
typedef struct parcel {
    shmq_outgoing out;
    struct iovec one;
    struct iovec *many;
    Py_buffer *buffers;
    uint32_t buffer_count;
    PyObject *held; /* strong: the body, or the tuple of pieces; NULL: the body is `text` */
    unsigned char *text; /* of a body that was written as JSON, or NULL */
    PyObject *headers; /* strong or NULL */
    put_extras extras;
    bool immediate; /* for extras.immediate_ns */
} parcel;

/* Makes a parcel of exact bytes or str, or of what JSON has a form for. False, without an exception: the body is something else. */
bool parcel_simple(parcel *p, const py_queue *self, PyObject *body);
/* Makes a parcel of (content, head: bytes | None, pieces: tuple of buffers); false with an exception set. */
bool parcel_encoded(parcel *p, PyObject *content, PyObject *headers, PyObject *pieces);
/* From None, or (priority, ttl_ns, delay_ns, group: bytes | None, immediate_ns); false with an exception set. */
bool extras_parsed(PyObject *extras, put_extras *x);
/* Sets the times that the extras ask for, from now on. */
void parcel_timed(shmq_outgoing *out, const put_extras *x);
void parcel_clear(parcel *p);

/* The body of a delivery as bytes or str; *intact false: its checksum does not fit. NULL with an exception set. */
PyObject *delivery_body(const py_queue *self, const shmq_delivery *d, shmq_copied *copied_as);
/* Makes a dead letter of an acquired entry that no consumer may get: self._dead_letter(delivery). */
bool queue_dead_letter(py_queue *self, const shmq_delivery *d);
/* The steps of get and receive before and after their waits: interpreter lock, signal handlers, dead letters. */
typedef struct py_caller {
    shmq_caller c;
    py_queue *queue;
    PyThreadState *state;
} py_caller;
void caller_begins(py_caller *c, py_queue *queue);
/* A Delivery object of an acquired entry. */
PyObject *delivery_new(py_queue *self, const shmq_delivery *d);
/* The same for another binding of the same queue, and in the name of this Row. */
PyObject *delivery_of(py_queue *self, shmq_queue *q, const shmq_delivery *d, PyObject *row);
/* A View of a body in a block, pinned. NULL: the body is not in a block, or no pin is free; with an exception: no
 * memory. */
PyObject *body_view(shmq_py_member *owner, shmq_queue *q, const shmq_delivery *d);
/* Calls a Python function in a destructor until it has done its work: see py_drop.c. `fails`: the argument is a
 * Delivery, which goes back if it never does. */
void tell_in_destructor(PyObject *callback, PyObject *argument, bool fails);
/* Gives the message back, the attempt counted, without a line of Python, in which a signal handler might raise. */
void delivery_fails(PyObject *delivery);
/* A Row object for a row that this process has just opened. */
PyObject *row_new(py_queue *queue, uint32_t number);
/* A delivery in the row's name is on the way to its outcome: until row_let_go() the row is nobody else's. */
void row_hold(PyObject *row);
void row_let_go(PyObject *row);
uint32_t row_number(PyObject *row);
PyObject *loan_new(py_queue *self, PyObject *headers, uint64_t bytes, uint64_t until_ns);

/* From a tuple in the order of enum shmq_setting, with None for those not given; false with an exception set.
 * d->dead_letter points into the tuple. */
bool settings_declared(PyObject *values, shmq_declaration *d);
PyObject *queue_settings(PyObject *o, PyObject *unused);
PyObject *queue_alter(PyObject *o, PyObject *settings);

extern PyType_Spec queue_spec, delivery_spec, view_spec, loan_spec, drop_spec, row_spec;
extern PyTypeObject *delivery_type, *view_type, *loan_type, *queue_type, *drop_type, *row_type;

/* METH_FASTCALL | METH_KEYWORDS methods of the queue. */
PyObject *queue_put(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *queue_put_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *queue_get(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *queue_get_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *queue_put_encoded(PyObject *o, PyObject *const *args, Py_ssize_t nargs);
PyObject *queue_acquire(PyObject *o, PyObject *const *args, Py_ssize_t nargs);
PyObject *queue_receive(PyObject *o, PyObject *timeout);
PyObject *queue_receive_many(PyObject *o, PyObject *const *args, Py_ssize_t nargs);
/* Puts `count` parcels in order; *done: how many were put, also on failure. `out`: memory for as many. */
shmq_status queue_put_batch(py_queue *self, parcel *parcels, shmq_outgoing *out, uint32_t count, uint64_t until_ns,
                            room_wait *wait, uint32_t *done);
/* Sets `accepted` of the exception that is set: how many of the call's messages are in. In C: a signal handler that ran
 * in Python code would raise an exception without it. */
void queue_tell_accepted(unsigned long long accepted);
/* The rest of a get that finds nothing at once: it waits without the interpreter lock, and runs signal handlers. */
shmq_status queue_get_later(py_queue *self, shmq_getting *g, uint64_t until_ns, shmq_delivery *d);
PyObject *queue_browse_columns(PyObject *o, PyObject *args);
PyObject *queue_get_columns(PyObject *o, PyObject *args);
PyObject *queue_put_column(PyObject *o, PyObject *args);
extern PyMethodDef queue_manage_methods[], queue_browse_methods[], queue_claim_methods[], broker_functions[],
    receive_any_functions[], delivery_functions[], drop_functions[], header_functions[], header_writer_functions[];

#endif
