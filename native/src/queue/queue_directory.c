/* The directory of queues: how many of its entries were ever in use, and the hash by which a name is found. */
#include "queue/handle.h"

uint32_t shmq_queue_high(const shmq_member *m) {
    uint32_t high = shmq_load_seq(&m->header->queue_high); /* SYNC directory.entry */
    return high < SHMQ_QUEUES ? high : SHMQ_QUEUES;
}

uint64_t shmq_name_hash(const char *name, uint32_t len) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}
