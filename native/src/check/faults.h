/* The checker's comparisons: NULL, or what is wrong. */
#ifndef SHMQ_CHECK_FAULTS_H
#define SHMQ_CHECK_FAULTS_H

#include "queue/handle.h"

typedef struct shmq_block_usage {
    uint64_t slabs, blocks, used, building, bytes_used, bytes_total;
    uint64_t granules_unused; /* of slabs that are kept, and a process that needs their memory gets it */
} shmq_block_usage;
void shmq_blocks_usage(const shmq_member *m, shmq_block_usage *usage);
/* Every slab's words make sense (classes, hints are allowed to differ): NULL, or the first thing that does not. For a
 * segment at rest or in use. */
const char *shmq_blocks_fault(const shmq_member *m);
/* Each cell of a row in use names a block of a slab, with its row's mark, and a view bit that is set. Under the structure
 * lock; the owners of the cells may be at work. */
const char *shmq_pins_fault(shmq_member *m);

/* Checks: of the words of a back ring; of an entry, whose word may have changed since; NULL, or what is wrong. */
const char *shmq_flow_fault(shmq_ring *back);
const char *shmq_flow_entry_fault(shmq_ring *r, const shmq_slot_shm *slot, uint64_t word);
/* MOVING, and a row already: its block's reference may be dropped. */
bool shmq_is_row(const shmq_ring *back, const shmq_slot_shm *slot, uint64_t word);

/* NULL, or what is wrong with the table. */
const char *shmq_groups_fault(const shmq_queue *q);

/* Rows of the process table, counters of all rows: NULL, or what is wrong. Under the structure lock, while others
 * work. */
const char *shmq_processes_fault(shmq_member *m);
const char *shmq_counters_fault(shmq_member *m);

/* NULL, or the first word that makes no sense: pointers, cells and count first (*where: SHMQ_NO_SLOT), then slots. For a ring
 * in use: a sentence is an error even under load. */
#define SHMQ_NO_SLOT UINT64_MAX
const char *shmq_ring_fault(shmq_ring *r, uint64_t *where);

/* The checker's look: NULL, or what is wrong, with its row. Under the structure lock, while others sleep and wake. */
const char *shmq_consumers_fault(const shmq_queue *q);

/* Directory entries, and what their pages say of themselves: NULL, or what is wrong. Under the lock, or in a moment that lasts. */
const char *shmq_directory_fault(shmq_member *m);
/* All of the above and below: map, directory, processes, pins, counters, consumer rows, watch, blocks. Under the lock, while
 * others work. The rings have their own (shmq_ring_fault), without the lock; shmq_part_check needs none for all
 * this. */
const char *shmq_segment_fault(shmq_member *m);

/* Watch words, what their holders sleep on, death records. NULL, or what is wrong; while others watch and reap. */
const char *shmq_watch_fault(shmq_member *m);

#endif
