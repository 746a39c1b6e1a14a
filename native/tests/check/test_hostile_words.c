/* Words of the segment that change again and again while others look: between a check and a use as well. Whoever looks
 * finds a fault or none, and reads nothing outside of the segment. */
#include <pthread.h>

#include "scratch_queue.h"
#include "shmq/check.h"
#include "shmq/memory_use.h"
#include "shmq/queue_ending.h"
#include "shmq/reap.h"
#include "shmq/structure.h"

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

static void look(void) {
    char name[SHMQ_NAME_MAX + 1];
    uint32_t incarnation;
    shmq_memory_use use;
    (void)shmq_structure_fault(m);
    (void)shmq_directory_fault(m);
    (void)shmq_processes_fault(m);
    (void)shmq_counters_fault(m);
    (void)shmq_pins_fault(m);
    (void)shmq_watch_fault(m);
    (void)shmq_blocks_fault(m);
    (void)shmq_references_fault(m);
    shmq_queue *again;
    if (shmq_queue_bind(m, q->index, 0, &again) == SHMQ_OK) {
        shmq_queue_unbind(again);
    }
    uint32_t reaped;
    (void)shmq_reap_dead(m, &reaped);
    (void)shmq_queue_named(m, q->index, name, &incarnation);
    (void)shmq_queue_ending(m, q->index, name, &incarnation);
    if (shmq_structure_lock(m) == SHMQ_OK) {
        (void)shmq_memory_use_of(m, q->index, &use);
        shmq_structure_unlock(m);
    }
}

static void meets(void *field, uint64_t wrong) {
    hostile h = {.word = (shmq_a64 *)((uintptr_t)field & ~(uintptr_t)7)};
    pthread_t thread;
    h.sound = shmq_load_relaxed(h.word);
    h.wrong = wrong;
    CHECK(pthread_create(&thread, NULL, change, &h) == 0);
    for (int i = 0; i < LOOKS; i++) {
        look();
    }
    shmq_store_seq(&h.over, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQUAL(shmq_load_relaxed(h.word), h.sound);
}

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
    shmq_queue_unbind(q);
    CHECK_EQUAL(shmq_member_leave(m, true), SHMQ_OK);
    shmq_member_free(m);
    scratch_remove();
    return 0;
}
