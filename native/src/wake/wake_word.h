/* The word on which the owner of a consumer row sleeps: the row's own; or, while it waits for several queues at once,
 * one that all its rows share. So one futex is enough.
 *
 * The shared ones lie in the row of its process and not in the row of one of the queues. A notifier of one queue
 * protects that queue's memory only, and may be stopped for any time before it raises the word. Process rows stay for
 * as long as the segment. So whatever has become of the queues, or of the process, a late wake raises a wake word and
 * nothing else. */
#ifndef SHMQ_WAKE_WAKE_WORD_H
#define SHMQ_WAKE_WAKE_WORD_H

#include "layout/queue.h"
#include "segment/member.h"

/* A word that no other wait of this process has. When it has more waits than words, one that another one has, too. A
 * wake of one is then a wake of both. */
uint32_t shmq_wake_word_take(shmq_member *m, shmq_a32 **word);
void shmq_wake_word_give(shmq_member *m, uint32_t number);
/* The process row in which this word lies; UINT32_MAX: it is no such word. */
uint32_t shmq_wake_word_owner(const shmq_member *m, uint64_t offset);
/* May a thread sleep on the word at this offset? Else it is damage, and raising what lies there would be more of it. */
bool shmq_is_wake_word(const shmq_member *m, uint64_t offset);

/* A row of ours sleeps on this word from now on; NULL: on its own. No thread sleeps there now. */
void shmq_row_share(shmq_member *m, shmq_consumer_shm *row, shmq_a32 *word);
shmq_a32 *shmq_wake_word(const shmq_member *m, shmq_consumer_shm *row);
/* The sleeper on its word looks again. */
void shmq_row_wake(const shmq_member *m, shmq_consumer_shm *row);

#endif
