/* How many rows there are, and what room they take on disk (row_counts.c): from words of the queue alone, of a view,
 * too. Functions without `const` are the mover's. */
#ifndef SHMQ_FLOW_ROW_COUNTS_H
#define SHMQ_FLOW_ROW_COUNTS_H

#include "queue/handle.h"

/* How many rows of a level there were up to one and with it, since the queue was made, and the bytes of their headers and bodies. Each
 * row says its own, so the inhaler sees what has got lost before it. */
typedef struct shmq_ordinal {
    uint64_t count, bytes;
    uint64_t erased, erased_bytes; /* of these, the rows that were fetched by themselves and `low` has passed */
} shmq_ordinal;

/* Words are read one after the other, beside a mover: a part may be more than all. */
static inline uint64_t shmq_left_of(uint64_t all, uint64_t part) { return all > part ? all - part : 0; }

/* Rows of a level that come back in their order, and its waiting rows; exact at rest. */
shmq_ordinal shmq_rows_of(const shmq_ring_shm *ring, const shmq_ring_shm *front);
shmq_ordinal shmq_waiting_of(const shmq_ring_shm *ring);
/* Counts the rows of all levels, and the bytes of their headers and bodies. */
uint64_t shmq_flow_rows(const shmq_queue *q);
uint64_t shmq_flow_bytes(const shmq_queue *q);
shmq_ordinal shmq_waiting_rows(const shmq_queue *q);
/* Bytes on disk of these at most, and of those that are gone and lie in files with others. */
uint64_t shmq_flow_size(const shmq_queue *q);
/* Says of a slot that is MOVING with SHMQ_FLAG_WAITS whether its entry is a row already. */
bool shmq_waiting_is_row(const shmq_ring_shm *back);

/* Notes which value of `flushed` comes with this P. */
void shmq_flushing_say(shmq_ring_shm *ring, uint64_t place, uint64_t flushed, uint64_t bytes);
/* Sets `pulled`, and how many of the pulled rows had been erased. */
void shmq_pulled_say(shmq_ring *back, const shmq_ordinal *as);
shmq_ordinal shmq_last_pulled(shmq_ring *back);
/* Ends what a mover has decided to drop. */
void shmq_drop_end(shmq_ring *back);
/* Rows that are settled leave the limits, too. */
void shmq_rows_gone(shmq_queue *q, uint64_t rows, uint64_t bytes);
/* All rows of a level are gone, or all that wait: settled, or lost. Answers how many they were. */
shmq_ordinal shmq_rows_end(shmq_ring *back);
shmq_ordinal shmq_waiting_end(shmq_ring *back);

#endif
