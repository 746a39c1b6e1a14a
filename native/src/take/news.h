/* News of a queue for consumers of several queues: which of their queues is worth a look.
 *
 * A consumer that has looked at a queue and found nothing asks for news: it reads `news` of the queue's directory
 * entry, and sets bit 0 of `browse` (of row 0, which nobody has). Then it looks once more, and remembers what it read.
 * As long as `news` is the same nothing has come since, and it passes the queue by with one load. A notifier that finds
 * the bit takes it and adds 1 to `news`, as it wakes browsers: it does so with each transition that may make an entry
 * available, and with each change of service. Nobody asks, and nobody pays.
 *
 * Behind that the notifier adds 1 to the count of 64 directory entries. A consumer that has passed all of its queues there by
 * remembers that count of before, and passes all of them by with one load next time.
 *
 * An entry that no notifier tells of is no news: the notifier was stopped before, or the consumer left the entry to
 * others. The consumer does not remember such a look, and forgets all that it remembers once in a patience. */
#ifndef SHMQ_TAKE_NEWS_H
#define SHMQ_TAKE_NEWS_H

#include "take/take.h"

#define SHMQ_NO_NEWS UINT64_MAX /* in `seen`: it looks, whatever `news` says */

/* A consumer of several queues remembers this of each of them. */
typedef struct shmq_news {
    shmq_a64 *word; /* `news` of its directory entry */
    uint64_t seen;  /* what it was before a look that found nothing */
    /* Of its neighbours with the same group of directory entries: the first one, and behind the last one. Of the first one: */
    uint32_t first, behind;
    shmq_a64 *group;
    uint64_t group_seen; /* what it was before a look by which none of them had news */
} shmq_news;

void shmq_news_begin(shmq_news *news, const shmq_queue_wait *of, uint32_t count);
void shmq_news_forget(shmq_news *news, uint32_t count);
/* The next message of those of these queues that may have one, without a wait; as shmq_receive_any. SHMQ_EMPTY: none has,
 * or only shmq_receive_any can say. *from: the queue that the answer is about. */
shmq_status shmq_receive_news(shmq_queue_wait *of, shmq_news *news, uint32_t count, uint32_t first,
                              const shmq_taking *t, uint32_t *from, shmq_delivery *d);

#endif
