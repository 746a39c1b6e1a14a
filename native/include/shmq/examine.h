/* Looks across structures, for `shmq check`: entries against rows and blocks, blocks against entries, bodies against their
 * checksums. They change nothing, and what they say is an error also under load and after deaths. */
#ifndef SHMQ_EXAMINE_H
#define SHMQ_EXAMINE_H

#include "shmq/ring.h"

/* An available entry that the walk would not meet from where the head stands. A release under way looks the same. */
typedef struct shmq_stray {
    bool found;
    uint64_t slot, word;
} shmq_stray;

/* Owners are there, bodies' blocks know their entries. Under the structure lock. NULL, or what is wrong with *where. */
const char *shmq_entries_valid(const shmq_queue *q, uint64_t *where, shmq_stray *stray);
/* Without the lock, waiting up to 20 ms: surely no release under way. */
bool shmq_stray_is_lost(shmq_queue *q, const shmq_stray *stray);

typedef struct shmq_bodies {
    uint64_t entries; /* all that were met: the sum of the following */
    uint64_t verified; /* by their checksums */
    uint64_t unsigned_ones; /* of a queue without checksums */
    uint64_t moved; /* taken or settled under the look */
    uint64_t damaged;
    uint64_t slot; /* of the first damaged one; SHMQ_NO_SLOT */
} shmq_bodies;
/* NULL, or what is wrong with the first damaged one. Without a lock. */
const char *shmq_bodies_valid(const shmq_queue *q, shmq_bodies *bodies);

/* Every reference of a shared block is named by a slot, every block that is being built has a builder, no process owns more
 * deliveries than it says it holds. Under the structure lock. */
const char *shmq_references_valid(shmq_member *m);

#endif
