/* Time to live: a consumer that looks at a message after its time does not get it. */
#include "base/clock.h"
#include "time/times.h"

static bool is_past(const shmq_delivery *d) { return d->expires_ns != 0 && shmq_now_ns() >= d->expires_ns; }

bool shmq_expires_now(const shmq_queue *q, const shmq_delivery *d) {
    return is_past(d) && !shmq_expired_are_dead_letters(q);
}

bool shmq_is_past_for_dead_letter(const shmq_queue *q, const shmq_delivery *d) {
    return shmq_expired_are_dead_letters(q) && is_past(d);
}
