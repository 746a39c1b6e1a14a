/* The granule map as it follows from the roots, in private memory. */
#ifndef SHMQ_GRANULE_MAP_H
#define SHMQ_GRANULE_MAP_H

#include "segment/member.h"

typedef struct shmq_granule_map {
    uint64_t *words; /* kind, pages and length; no bits of reservation */
    uint64_t bytes;  /* of words */
    uint32_t count;
    uint64_t damaged; /* roots that lead out of the data, or into memory of another root */
    const char *what; /* the first of them */
    uint64_t where;
} shmq_granule_map;

/* Builds the map. Under the structure lock. False: there is no private memory for it. */
bool shmq_granule_map_build(shmq_member *m, shmq_granule_map *map);
void shmq_granule_map_free(shmq_granule_map *map);

#endif
