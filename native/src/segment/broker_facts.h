/* Facts for people about a broker as a whole, and about its processes. Copies, which nobody changes any more. */
#ifndef SHMQ_SEGMENT_BROKER_FACTS_H
#define SHMQ_SEGMENT_BROKER_FACTS_H

#include "segment/member.h"

typedef struct shmq_broker_facts {
    uint64_t fixed_bytes; /* before the data */
    uint64_t used_bytes; /* of what is reserved, with the fixed ones */
    uint64_t reserved_bytes, granules_free;
    uint64_t damage, rescues, deaths;
} shmq_broker_facts;

void shmq_broker_look(const shmq_member *m, shmq_broker_facts *facts);
/* How many segments the broker has lost: the high bits of its message ids. */
uint64_t shmq_broker_epoch(const shmq_member *m);

typedef struct shmq_process_facts {
    uint32_t generation, state, pid, unsettled, inside;
    uint64_t start_time, pid_namespace, attached_ns, pinned_bytes;
    char name[sizeof(((shmq_process_shm *)NULL)->name)];
} shmq_process_facts;

/* False: the row is free. */
bool shmq_process_look(const shmq_member *m, uint32_t row, shmq_process_facts *facts);

#endif
