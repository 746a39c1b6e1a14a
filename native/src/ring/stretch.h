/* Stretches: 1,024 slots of a ring each. A process that counts keeps what it found in each, and looks again only where
 * something has changed since.
 *
 *   word  31       1   0
 *        +----------+-----+
 *        | version  |  K  |    K: some process has counted, and nothing has changed since
 *        +----------+-----+
 *
 * The process that counts sets K, reads the word, and then looks at the slots. It believes what it keeps while the word
 * is that one. A process that has changed what a slot counts as looks at the word afterwards, and where K is set, takes
 * it away with a new version. So put and get read a line that nobody writes, unless somebody counts.
 *
 * The slot changes first. A process that dies before it has looked at the word leaves a K too many: its reaper takes all of
 * them away, in all queues. One that is stopped there is late with its change, and with that alone: whoever changes
 * something else in the stretch takes the K away. No word says how many there are, so none can be wrong after a death.
 *
 * A version comes round after 2^31 counts with changes in between: a process that last looked just that many ago is led
 * astray once. */
#ifndef SHMQ_RING_STRETCH_H
#define SHMQ_RING_STRETCH_H

#include "layout/run.h"
#include "queue/handle.h"

#define SHMQ_STRETCH_KNOWN 1u

/* Something has changed in this stretch; in all of a ring. */
void shmq_stretch_changed(shmq_ring *r, uint64_t stretch);
void shmq_ring_changed(shmq_ring *r);

/* After each CAS by which a slot counts as something else: ready, delayed, in hand, none of these. The position leads to
 * the slot's stretch at each lap. Seq: the process that counts sets K, then reads the slot. */
static inline void shmq_changed_at(shmq_ring *r, uint64_t position) {
    uint64_t stretch = (position & r->mask) >> SHMQ_STRETCH_SHIFT;
    if (SHMQ_UNLIKELY((shmq_load_seq(&r->stretches[stretch]) & SHMQ_STRETCH_KNOWN) != 0)) {
        shmq_stretch_changed(r, stretch);
    }
}
static inline void shmq_changed(shmq_ring *r, shmq_slot_shm *slot) {
    shmq_changed_at(r, shmq_load_relaxed(&slot->position));
}

#endif
