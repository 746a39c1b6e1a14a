/* The requests of lower rooms of the core to higher ones. A room calls downward only (tools/layers.toml). But a process
 * that wants a row, memory or sleep has to reap the dead and do due work. These are calls of the highest rooms. These
 * few stand in one table, which the linker binds: upkeep/upkeep.c fills it, nothing changes it. */
#ifndef SHMQ_SEGMENT_UPKEEP_H
#define SHMQ_SEGMENT_UPKEEP_H

#include "segment/member.h"

struct shmq_queue;

/* The duties, a bit each: see duty.h. */
enum shmq_duty_number {
    SHMQ_DUTY_MET, /* the notifier met a dead sleeper: reap it */
    SHMQ_DUTY_DEATHS, /* look for other dead processes, and reap them */
    SHMQ_DUTY_SEGMENT, /* is the broker still there? */
    SHMQ_DUTY_TIMES, /* delays, lives, leases; queues that expire, or are deleted */
    SHMQ_DUTY_DEAD_LETTERS, /* for the interpreter: it moves what has expired to the dead */
    SHMQ_DUTY_ALERTS, /* for the interpreter: it looks for alerts that are to be told */
    SHMQ_DUTIES
};
#define SHMQ_DUTY(number) (UINT32_C(1) << (number))
#define SHMQ_EVERY_DUTY (SHMQ_DUTY(SHMQ_DUTIES) - 1)

/* A sleeper does what is due for as long as its word is what it has seen, and until `until_ns`. */
typedef struct shmq_spare_time {
    const shmq_a32 *word; /* NULL: it waits for nothing else */
    uint32_t seen;
    uint64_t until_ns;
} shmq_spare_time;

typedef struct shmq_upkeep_calls {
    shmq_status (*reap_dead)(shmq_member *m, uint32_t *reaped); /* shmq_reap_dead, reap.h */
    shmq_status (*reap_row)(shmq_member *m, uint32_t row); /* shmq_reap_row, reap.h */
    bool (*round)(shmq_member *m, uint32_t duties); /* shmq_upkeep_round, duty.h */
    void (*finish)(shmq_member *m, uint32_t duties, const shmq_spare_time *spare); /* shmq_upkeep_finish, duty.h */
    void (*thorough)(shmq_member *m); /* shmq_upkeep_thorough, duty.h */
    shmq_status (*relieve)(shmq_member *m, struct shmq_queue *q, bool in_turn); /* shmq_relieve, below */
    uint64_t (*fronts_lack)(shmq_member *m); /* shmq_fronts_lack, below */
    void (*release_unused)(shmq_member *m); /* shmq_release_unused, below */
} shmq_upkeep_calls;

extern const shmq_upkeep_calls shmq_upkeep;

/* A process that is always busy never sleeps, and may be the only one. So each 1,024th call is a round of all duties,
 * and each call one of what has its time, if there is such a time at all. */
static inline void shmq_upkeep_look(shmq_member *m) {
    uint32_t ops = shmq_load_relaxed(&m->ops);
    shmq_store_relaxed(&m->ops, ops + 1); /* a hint: threads may lose a count to each other */
    if (SHMQ_UNLIKELY((ops & 1023) == 1023)) {
        (void)shmq_upkeep.round(m, SHMQ_EVERY_DUTY);
    } else if (SHMQ_UNLIKELY(shmq_load_relaxed(&m->header->due) != 0)) {
        (void)shmq_upkeep.round(m, SHMQ_DUTY(SHMQ_DUTY_TIMES));
    }
}

#endif
