/* Words of the segment that change again and again while others look: between a check and a use as well. A process that
 * looks finds a fault or none, and reads nothing outside of the segment. */
#include <pthread.h>

#include "looks.h"

#define LOOKS 400

static shmq_member *m;
static shmq_queue *q;

typedef struct hostile {
    shmq_a64 *word;
    uint64_t sound, wrong;
    shmq_a32 over;
} hostile;

static void *change(void *argument) {
    hostile *h = argument;
    while (shmq_load_seq(&h->over) == 0) {
        shmq_store_relaxed(h->word, h->wrong);
        shmq_store_relaxed(h->word, h->sound);
    }
    return NULL;
}

static void meets(void *field, uint64_t wrong) {
    hostile h = {.word = (shmq_a64 *)((uintptr_t)field & ~(uintptr_t)7)};
    pthread_t thread;
    h.sound = shmq_load_relaxed(h.word);
    h.wrong = wrong;
    CHECK(pthread_create(&thread, NULL, change, &h) == 0);
    for (int i = 0; i < LOOKS; i++) {
        look_at_everything(m, q, 0);
    }
    shmq_store_seq(&h.over, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(shmq_load_relaxed(h.word), h.sound);
}

/* Shows G7. */
static void each_word_that_leads_somewhere_is_read_once(void) {
    shmq_ring_shm *ring = &q->page->ring;
    shmq_directory_shm *entry = &m->directory[q->index];
    void *const fields[] = {&ring->run,        &ring->run_granules, &ring->shift,     &ring->slot_size,
                            &ring->slots,      &ring->carried,      &ring->cold,      &q->page->level_rings,
                            &q->page->levels,  &q->page->name_len,  &q->page->chunks, &entry->page,
                            &entry->name_hash, &m->process->pins,   &m->page->chunks, &m->process->pin_cells,
                            &q->page->index,   &m->granules[0]};
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        meets(fields[i], UINT64_MAX);
        meets(fields[i], UINT64_C(0x00007fff00007fff));
        meets(fields[i], m->size - 64);
    }
}

int main(void) {
    scratch_create(false);
    m = scratch_attach();
    q = scratch_queue(m, "jobs", 0, true);
    shmq_queue *other = scratch_queue(m, "other", 0, true);
    CHECK_EQUAL(put_number(q, 1), SHMQ_OK);
    each_word_that_leads_somewhere_is_read_once();
    CHECK(shmq_segment_fault(m) == NULL);
    CHECK_EQUAL(get_number(q), 1);
    shmq_queue_unbind(other);
    scratch_close(m, q);
    scratch_remove();
    return 0;
}
