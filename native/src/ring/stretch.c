#include "ring/stretch.h"

void shmq_stretch_changed(shmq_ring *r, uint64_t stretch) {
    shmq_a32 *at = &r->stretches[stretch];
    for (uint32_t word = shmq_load_seq(at); (word & SHMQ_STRETCH_KNOWN) != 0; word = shmq_load_seq(at)) {
        (void)shmq_cas32_seq(at, word, word + 1);
    }
}

void shmq_ring_changed(shmq_ring *r) {
    for (uint64_t i = 0; i < shmq_stretches_of(shmq_slot_count(r)); i++) {
        shmq_stretch_changed(r, i);
    }
}
