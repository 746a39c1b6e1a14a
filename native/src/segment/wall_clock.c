/* The wall clock's steps: noticed by puts, kept in the segment, asked by whoever tells a time. */
#include "segment/wall_clock.h"

#define TRIES 10

typedef struct difference {
    uint64_t from_ns, offset_ns, asleep_ns;
} difference;

static difference at(const shmq_member *m, uint64_t n) {
    const shmq_clock_step_shm *step = &m->header->clock_steps[n % SHMQ_CLOCK_STEPS];
    return (difference){shmq_load_relaxed(&step->from_ns), shmq_load_relaxed(&step->offset_ns),
                        shmq_load_relaxed(&step->asleep_ns)};
}

/* The difference that held at that time: the youngest step before it. A process may just be writing the record behind
 * the count, which takes the place of the oldest one. For older times the oldest record that is kept answers. */
static difference difference_at(const shmq_member *m, uint64_t monotonic_ns) {
    uint64_t count = shmq_load_seq(&m->header->clock_steps_count),
             kept = count < SHMQ_CLOCK_STEPS ? count : SHMQ_CLOCK_STEPS - 1;
    difference oldest = {0, m->clock_offset_made_ns, m->clock_asleep_made_ns};
    for (uint64_t n = count; n != count - kept; n--) {
        oldest = at(m, n - 1);
        if (oldest.from_ns <= monotonic_ns) {
            return oldest;
        }
    }
    return kept == count ? (difference){0, m->clock_offset_made_ns, m->clock_asleep_made_ns} : oldest;
}

/* Several may note the same step: each of their words is as good as the other's. Each word is changed from what was there before the
 * look at the count, so one who comes late changes no record that counts. */
static void note(shmq_member *m, const difference *d) {
    uint64_t count = shmq_load_seq(&m->header->clock_steps_count);
    shmq_clock_step_shm *step = &m->header->clock_steps[count % SHMQ_CLOCK_STEPS];
    uint64_t from = shmq_load_seq(&step->from_ns), offset = shmq_load_seq(&step->offset_ns);
    uint64_t asleep = shmq_load_seq(&step->asleep_ns);
    if (shmq_load_seq(&m->header->clock_steps_count) != count) {
        return;
    }
    (void)shmq_cas_seq(&step->from_ns, from, d->from_ns);
    (void)shmq_cas_seq(&step->offset_ns, offset, d->offset_ns);
    (void)shmq_cas_seq(&step->asleep_ns, asleep, d->asleep_ns);
    (void)shmq_cas_seq(&m->header->clock_steps_count, count, count + 1);
}

/* This process goes by that difference until it looks again. */
static void go_by(shmq_member *m, const difference *d, uint64_t wall) {
    shmq_store_seq(&m->clock_offset_ns, d->offset_ns);
    shmq_store_seq(&m->clock_looked_ns, wall);
}

/* The clocks are apart, or this process goes by an old difference. */
static uint64_t find_step(shmq_member *m) {
    uint64_t before = 0;
    for (int i = 0; i < TRIES && !m->read_only; i++) {
        before = shmq_now_ns();
        uint64_t wall = shmq_wall_ns(), boot = shmq_boot_ns(), after = shmq_now_ns();
        difference last = difference_at(m, UINT64_MAX);
        uint64_t now = wall - last.offset_ns;
        if (now - before + SHMQ_CLOCK_EARLY_NS < after - before + 2 * SHMQ_CLOCK_EARLY_NS) {
            go_by(m, &last, wall);
            return now < last.from_ns ? last.from_ns : now;
        }
        if (after - before < SHMQ_CLOCK_LOOK_NS) {
            note(m, &(difference){before, wall - before, boot - before});
        }
    }
    return before != 0 ? before : shmq_now_ns();
}

uint64_t shmq_put_ns_looking(shmq_member *m) {
    uint64_t about = shmq_about_now_ns(), offset = shmq_load_seq(&m->clock_offset_ns), wall = shmq_wall_ns();
    uint64_t now = wall - offset;
    if (now - about + SHMQ_CLOCK_EARLY_NS >= SHMQ_CLOCK_EARLY_NS + SHMQ_CLOCK_LATE_NS) {
        return find_step(m);
    }
    shmq_store_seq(&m->clock_looked_ns, wall);
    return now;
}

uint64_t shmq_wall_of(const shmq_member *m, uint64_t monotonic_ns) {
    return monotonic_ns + difference_at(m, monotonic_ns).offset_ns;
}

uint64_t shmq_age_ns(shmq_member *m, uint64_t monotonic_ns) {
    uint64_t then = monotonic_ns + difference_at(m, monotonic_ns).asleep_ns, now = shmq_boot_ns();
    return now > then ? now - then : 0;
}
