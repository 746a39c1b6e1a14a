/* Due times: of delays that end, of messages that expire, of leases.
 *
 * There is no thread for it. A process that makes something due writes the time down, in the ring and then in the
 * segment's header. The sleeper that has the broker's watch (watch.h) sleeps no longer than to it, and does then what
 * is due. A process that polls, or meets something that is due, does it by itself. A word that is late costs a delay,
 * never a message.
 *
 * Due word: a monotonic time, nanoseconds, in bits 1 to 63; 0: nothing. Bit 0: a process looks. The time is then when
 * others look again: that process may be stopped, or busy with other things between two pieces of its look. A process
 * that makes something due meanwhile clears the bit, since the look may have passed the place already. Then the word
 * keeps its time, and there is one look more. */
#ifndef SHMQ_WAKE_DUE_H
#define SHMQ_WAKE_DUE_H

#include "queue/handle.h"

#define SHMQ_DUE_LOOKING UINT64_C(1)
#define SHMQ_DUE_NEVER UINT64_MAX
/* No option is longer (31 years); no process writes a time further ahead. */
#define SHMQ_DUE_LONGEST (UINT64_C(1000000000) * 1000000000 + UINT64_C(3600) * 1000000000)

/* A time that no option reaches is damage: looked at now, and written anew. */
static inline bool shmq_is_due(uint64_t due, uint64_t now) {
    return due <= now || (due != SHMQ_DUE_NEVER && due - now > SHMQ_DUE_LONGEST);
}

/* The time of a due word; SHMQ_DUE_NEVER: nothing is due. */
static inline uint64_t shmq_due_time(uint64_t word) { return word == 0 ? SHMQ_DUE_NEVER : word & ~SHMQ_DUE_LOOKING; }

/* Something is due at `at`. Called after it can be seen. True: earlier than all before, so a sleeper is to be told. */
bool shmq_due_at(shmq_a64 *word, uint64_t at);
/* Begin a look, if it is time: *mark is for shmq_due_end. False: not yet, or another process looks. */
bool shmq_due_begin(shmq_a64 *word, uint64_t now, uint64_t patience_ns, uint64_t *mark);
/* The look has found that `earliest` is next (SHMQ_DUE_NEVER: nothing). True: a sleeper is to be told, as by shmq_due_at. */
bool shmq_due_end(shmq_a64 *word, uint64_t mark, uint64_t earliest);

/* A look in pieces. A process that ends a piece leaves a mark, and knows by it that nothing has become due since. The
 * next piece may come at `at`, and a moment later any process may do it. 0: something has become due, and the next look
 * is at `at`; *earlier: a sleeper is to be told, as by shmq_due_at. */
uint64_t shmq_due_leave(shmq_a64 *word, uint64_t mark, uint64_t at, bool *earlier);
/* Is the look unfinished at which this mark was left? No other process is at it; one that made something due may have
 * cleared the mark itself. */
static inline bool shmq_due_is_left(uint64_t word, uint64_t left) {
    return left != 0 && word != 0 && (word == left || (word & SHMQ_DUE_LOOKING) == 0);
}
/* The next piece. *anew: the mark was cleared, so the look begins anew. False: another process has the look. */
bool shmq_due_go_on(shmq_a64 *word, uint64_t left, uint64_t now, uint64_t patience_ns, uint64_t *mark, bool *anew);
/* When the next look may come to one that began at `began`: looks take at most a fifth of a processor, however many messages
 * are due one after the other. */
uint64_t shmq_due_rest(uint64_t began);

/* The same for an entry of a ring: the ring's word, the header's, and the watcher is told. */
void shmq_make_due(shmq_ring *r, uint64_t at);
/* After a death that may have come between an entry and its due word. */
void shmq_due_recover(shmq_ring *r);
/* NULL, or what is wrong with a due word. */
const char *shmq_due_fault(uint64_t word);

#endif
