/* Takes a slot whose word makes no sense out of service. */
#include "limits/count.h"
#include "ring/stretch.h"
#include "settle/settle.h"

shmq_status shmq_mark_broken(shmq_ring *r, shmq_slot_shm *slot, uint64_t word, uint32_t lap) {
    uint64_t index = (uint64_t)((unsigned char *)slot - r->slots) / r->slot_size;
    /* T29 */
    if (!shmq_cas_seq(&slot->word, word, shmq_word(lap, 0, 0, word & SHMQ_FLAG_CARRIED, SHMQ_BROKEN))) {
        return SHMQ_OK; /* it changed: it is not damaged, or another process has marked it */
    }
    shmq_stretch_changed(r, index >> SHMQ_STRETCH_SHIFT); /* its position may be damaged, too */
    shmq_recount_ask(r->queue); /* a broken slot is no longer a place of the queue */
    return shmq_damage(r->queue->m, "the words of a slot make no sense, at slot", index);
}
