/* Wakes threads that sleep in the kernel on a word. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"

int shmq_futex_wake_count(shmq_a32 *word, int count) {
    return (int)syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

void shmq_futex_wake(shmq_a32 *word, int count) { (void)shmq_futex_wake_count(word, count); }
