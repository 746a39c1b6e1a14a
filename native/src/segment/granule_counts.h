/* The header's counts of the granule map: a process that wants memory need not look at the whole map. */
#ifndef SHMQ_GRANULE_COUNTS_H
#define SHMQ_GRANULE_COUNTS_H

#include "segment/member.h"

typedef struct shmq_granule_counts {
    uint64_t used;       /* granules that are not free */
    uint64_t ready;      /* free ones that have memory */
    uint64_t solid;      /* of slabs and pages */
    uint64_t free_pages; /* in granules of pages */
    uint64_t used_bytes; /* memory of granules that are not free */
} shmq_granule_counts;

/* Adds what the word says of its granule; the counts wrap around where one is taken away. */
void shmq_granule_count(shmq_granule_counts *counts, uint64_t word);
/* The counts as the header has them, and as it is to have them. The second under the structure lock. */
shmq_granule_counts shmq_granule_counts_of(const shmq_member *m);
void shmq_granule_counts_store(shmq_member *m, const shmq_granule_counts *counts);

#endif
