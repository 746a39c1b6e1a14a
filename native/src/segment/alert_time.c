/* When a process looks for alerts. All of it is private to the process, but for the word that says that the disk was
 * full. */
#include "segment/alert_time.h"
#include "base/clock.h"
#include "base/wait_time.h"

void shmq_alerts_begin(shmq_member *m) { shmq_store_relaxed(&m->alerts_ns, shmq_now_ns() + SHMQ_ALERT_LOOK_NS); }

void shmq_alerts_tick(shmq_member *m) {
    uint64_t next = shmq_load_relaxed(&m->alerts_ns), now;
    if (next != 0 && (now = shmq_now_ns()) >= next) {
        shmq_store_relaxed(&m->alerts_ns, now + SHMQ_ALERT_LOOK_NS);
        (void)shmq_or_seq(&m->upcalls, SHMQ_UPCALL_ALERTS);
    }
}

void shmq_alerts_hurry(shmq_member *m) {
    if (shmq_load_relaxed(&m->alerts_ns) != 0) {
        (void)shmq_or_seq(&m->upcalls, SHMQ_UPCALL_ALERTS);
    }
}

void shmq_disk_refused(shmq_member *m) {
    shmq_store_seq(&m->header->disk_refused, shmq_now_ns());
    shmq_alerts_hurry(m);
}
