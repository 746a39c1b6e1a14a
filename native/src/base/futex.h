/* Waking threads that sleep on a word. */
#ifndef SHMQ_BASE_FUTEX_H
#define SHMQ_BASE_FUTEX_H

#include "base/atomic.h"

void shmq_futex_wake(shmq_a32 *word, int count);
/* Answers how many were woken. */
int shmq_futex_wake_count(shmq_a32 *word, int count);

#endif
