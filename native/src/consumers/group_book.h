/* The book of groups: messages in flight of this process, by owner and group. Private memory; groups/group.c keeps it. */
#ifndef SHMQ_CONSUMERS_GROUP_BOOK_H
#define SHMQ_CONSUMERS_GROUP_BOOK_H

#include <pthread.h>

#include "selectors/subscription.h"

/* How many messages this process has in flight: by owner (0: the process itself, else the consumer row) and place. */
typedef struct shmq_tally {
    uint32_t generation; /* of the owner's row; another one: all counts are 0 */
    uint32_t counts[]; /* shmq_group_places() of them */
} shmq_tally;

typedef struct shmq_group_book {
    pthread_mutex_t lock;
    shmq_a32 privileged; /* groups stay with this process as such: see privilege.h */
    shmq_subscription takers; /* of threads without a consumer: they, too, pass entries by */
    shmq_tally *tallies[SHMQ_CONSUMER_ROWS]; /* NULL: it has had no group yet */
} shmq_group_book;

#endif
