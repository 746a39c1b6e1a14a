#include "wake/wait.h"
#include "segment/alert_time.h"
#include "wake/watch.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int futex_wait(shmq_a32 *word, uint32_t expected, uint64_t ns) {
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0) == 0 ? 0 : errno;
}

shmq_status shmq_sleep(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns) {
    uint64_t slice_end = shmq_slice_end(m);
    return shmq_sleep_long(m, word, expected, until_ns, &slice_end);
}

shmq_status shmq_sleep_long(shmq_member *m, shmq_a32 *word, uint32_t expected, uint64_t until_ns, uint64_t *slice_end) {
    shmq_watcher watcher;
    shmq_status status;
    uint64_t watch_end = shmq_slice_end(m);
    shmq_watch_enter(&watcher, m, word);
    watcher.spare.seen = expected;
    /* Spare time goes beyond the sleep's own time: what is due may be what the thread waits for. */
    uint64_t end = until_ns < *slice_end ? until_ns : *slice_end;
    watcher.spare.until_ns = end + m->patience_ns;
    for (;;) {
        uint64_t now = shmq_now_ns();
        *slice_end = watcher.index >= 0 && watch_end < *slice_end ? watch_end : *slice_end;
        if (shmq_load_seq(word) != expected || shmq_load_relaxed(&m->closed)) {
            status = SHMQ_OK;
            break;
        }
        if (now >= until_ns) {
            status = SHMQ_TIMEOUT;
            break;
        }
        if (now >= *slice_end) {
            status = SHMQ_TIMEOUT; /* the caller's piece is over, too: it looks once more, then signal handlers run */
            break;
        }
        uint64_t limit = until_ns < *slice_end ? until_ns - now : *slice_end - now;
        int error = futex_wait(word, expected, shmq_watch_slice(&watcher, limit));
        if (error == EINTR) {
            status = SHMQ_INTERRUPTED;
            break;
        }
        if (error == ETIMEDOUT) {
            shmq_watch_tick(&watcher);
        }
    }
    shmq_watch_leave(&watcher);
    shmq_alerts_tick(m);
    return status;
}
