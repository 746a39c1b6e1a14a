/* `shmq check`: a look at everything that takes no row and no lock and writes nothing, beside others at work, killed and
 * stopped.
 *
 * Looks across structures: entries against rows and blocks, blocks against entries, bodies against their checksums.
 * Above them the finding. A check looks again where something looks wrong. It is damage only if it looks wrong in the
 * same way three times, 5 ms apart. A fault that depends on the structure (rows, pages, runs) counts only in a moment
 * in which no process changed that. */
#ifndef SHMQ_CHECK_CHECK_H
#define SHMQ_CHECK_CHECK_H

#include "queue/handle.h"
#include "ring/delivery.h"

/* An available entry that the scan would not meet from where the head stands. A release under way looks the same. */
typedef struct shmq_stray {
    bool found;
    uint64_t slot, word;
} shmq_stray;

/* Of the ring of one level. Owners are there, bodies' blocks know their entries. NULL, or what is wrong with *where. */
const char *shmq_entries_fault(const shmq_ring *r, uint64_t *where, shmq_stray *stray);
/* Waiting up to 20 ms: surely no release under way. */
bool shmq_stray_is_lost(shmq_ring *r, const shmq_stray *stray);

typedef struct shmq_bodies {
    uint64_t entries; /* all that were met: the sum of the following */
    uint64_t verified; /* by their checksums */
    uint64_t unsigned_ones; /* of a queue without checksums */
    uint64_t moved; /* taken or settled under the look */
    uint64_t damaged;
    uint64_t slot; /* of the first damaged one of a level; SHMQ_NO_SLOT */
} shmq_bodies;
/* Of one level: NULL, or what is wrong with the first damaged one. */
const char *shmq_bodies_fault(const shmq_ring *r, shmq_bodies *bodies);

/* The entry in this slot of a level, of which a copy is good if shmq_browse_valid says so afterwards. False: none, or it leads nowhere. */
bool shmq_entry_snapshot(const shmq_ring *r, uint64_t index, shmq_delivery *d);

/* Every reference of a shared block is named by a slot, every block that is being built has a builder, no process owns more
 * deliveries than it says it holds. */
const char *shmq_references_fault(shmq_member *m);

/* ---- findings ---------------------------------------------------------------------------------------------------- */

/* The segment mapped for reading: a membership without a row, for the functions of this header, structure.h and those that
 * say that they write nothing. It answers as shmq_member_attach does, but asks nobody for a row. */
shmq_status shmq_observer_open(const char *name, const shmq_home *home, shmq_member **observer);
void shmq_observer_close(shmq_member *observer);

typedef enum shmq_verdict_kind {
    SHMQ_SOUND,
    SHMQ_DAMAGED,
    SHMQ_UNDECIDED, /* no moment to look at it came, or what was seen was never the same; `why` */
    SHMQ_GONE_MEANWHILE, /* the queue was deleted */
} shmq_verdict_kind;

typedef struct shmq_finding {
    shmq_verdict_kind verdict;
    char fault[256]; /* what is wrong, or looked so; "": nothing */
    char why[120];
    uint32_t depth; /* of the level of a queue */
    uint64_t where; /* slot in its ring; SHMQ_NO_SLOT */
} shmq_finding;

/* The parts of the segment, 0 to SHMQ_PARTS - 1. A part takes half a second if it cannot be decided, else as long as it
 * takes to look. */
#define SHMQ_PARTS 8
const char *shmq_part_name(int part);
void shmq_part_check(shmq_member *m, int part, shmq_finding *finding);
/* Words, pointers, count, entries of all levels of one queue. `q` may be a view (shmq_queue_look) of the incarnation that is examined. */
void shmq_queue_check(shmq_queue *q, shmq_finding *finding);
/* Checksums of its messages on all levels; with what was counted at the last look. */
void shmq_bodies_check(shmq_queue *q, shmq_bodies *bodies, shmq_finding *finding);

#endif
