/* Rows of queue "a" in the place of a disk: in memory that all processes of the driver share, and that is put back with the
 * segment. A commit is one store, so whoever is killed amid a write leaves the old rows or the new ones. */
#ifndef SHMQ_KILLSTEP_ROWS_H
#define SHMQ_KILLSTEP_ROWS_H

#include "flow/flow.h"

#define ROWS_MOST 640u
#define ROWS_WAITING (UINT64_C(1) << 62) /* of the key of a waiting row */
#define ROWS_ROOM (UINT64_C(40) << 10) /* of the rows of one transaction's end */
#define ROWS_BYTES (UINT64_C(36) * 4096)

/* Once for the driver; no rows afterwards. */
void rows_open(void);
unsigned char *rows_bytes(void);
/* The backing that a member's queues flow into, for shmq_member.backing_of. */
shmq_status rows_backing_of(shmq_queue *q, uint32_t depth, const shmq_backing **backing);
/* Rows with keys in [from, below). */
uint32_t rows_count(uint64_t from, uint64_t below);
/* When the life of one of them ends first; SHMQ_NEVER. */
uint64_t rows_life_end(const shmq_queue *q, uint64_t from, uint64_t below);
/* Behind the last one that has failed; 0: none has. */
uint64_t rows_tried_end(uint64_t from, uint64_t below);
/* Bytes of their headers and bodies. */
uint64_t rows_weight(uint64_t from, uint64_t below);
/* JSON: [first place, first place behind] of each run of places. */
void rows_list(char *text, size_t room);
/* Equal for equal rows, whatever lay there before: their places, and how their bodies end. */
uint64_t rows_key(void);
/* Called in place of the core's next steps, before a write and behind its commit: whoever does not return from it has died
 * there. NULL: nobody. */
extern void (*rows_stop)(bool committed);
/* There is no room for a row. */
extern bool rows_full;

#endif
