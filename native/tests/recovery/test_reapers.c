/* A reaper that is not alone, or not in time: what it finds done by others, it leaves alone. */
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;

static void begin(void) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 0, true);
    qb = scratch_queue(b, "jobs", 0, true);
}

static void end(void) {
    scratch_close_unless_dead(b, qb);
    scratch_close(a, qa);
    scratch_remove();
}

/* The step of another reaper that has come before we ask for the nth time whether the process is dead. */
typedef struct rival {
    int asked, when;
    uint64_t row_word;
    bool answer;
} rival;

static bool ask(void *context, uint32_t row) {
    rival *r = context;
    if (row != b->row) {
        return false;
    }
    if (++r->asked == r->when) {
        if (r->row_word != 0) {
            shmq_store_seq(&b->process->word, r->row_word);
        }
        return r->answer;
    }
    return true;
}

TEST(another_reaper_is_faster_at_any_time) {
    for (int when = 1; when < 40; when++) {
        for (int way = 0; way < 2; way++) {
            begin();
            CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
            shmq_delivery d = receive(qb, shmq_self(qb));
            uint64_t live = shmq_load_seq(&b->process->word);
            uint64_t freed = shmq_row_word(shmq_row_generation(live) + 1, 0, SHMQ_ROW_FREE);
            rival r = {.when = when, .row_word = way == 0 ? freed : 0, .answer = way == 0};
            shmq_liveness l = {.is_dead = ask, .context = &r};
            uint32_t reaped;
            CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
            uint32_t state = state_at(qa, d.position);
            CHECK(state == SHMQ_ACQUIRED || state == SHMQ_AVAILABLE);
            if (shmq_load_seq(&b->process->word) != freed) { /* nobody but us: it is done, or is begun anew */
                r.when = 0;
                CHECK_EQUAL(shmq_reap(a, &l, &reaped), SHMQ_OK);
                CHECK_EQUAL(state_at(qa, d.position), SHMQ_AVAILABLE);
                CHECK_EQUAL(shmq_row_state(shmq_load_seq(&b->process->word)), SHMQ_ROW_FREE);
            } else if (state == SHMQ_ACQUIRED) { /* the rival said it was free, and is this test: put right by hand */
                shmq_store_seq(&b->process->word, live);
                scratch_kill(b);
                reap_all(a, 1);
            }
            scratch_kill(b);
            end();
        }
    }
}

TEST(a_queue_of_a_later_life_of_the_row_stays) {
    begin();
    shmq_declaration d = {.given = 1u << SHMQ_SET_TEMPORARY, .temporary = 1, .create = true};
    shmq_queue *q = NULL;
    int differs;
    CHECK_EQUAL(shmq_queue_declare(b, "passing", 7, &d, &q, &differs), SHMQ_OK);
    q->page->temporary_generation += 1;
    uint32_t index = q->index;
    scratch_kill(b);
    reap_all(a, 1);
    CHECK_EQUAL(shmq_entry_state(shmq_load_seq(&a->directory[index].word)), SHMQ_ENTRY_LIVE);
    end();
}

/* References of what nobody will take any more; a page that is damaged drops nothing. */
TEST(a_discarded_ring_drops_its_references) {
    static unsigned char large[5000];
    begin();
    CHECK_EQUAL(put_bytes(qa, large, sizeof large, 0), SHMQ_OK);
    CHECK_EQUAL(put_bytes(qa, large, sizeof large, 0), SHMQ_OK);
    CHECK_EQUAL(put_number(qa, 1), SHMQ_OK);
    shmq_slot_shm *slot = shmq_slot_at(&qa->first, 1);
    uint64_t word = shmq_load_seq(&slot->word);
    CHECK(shmq_cas_seq(&slot->word, word, shmq_word_to(word, SHMQ_DEQUEUED, shmq_self(qa), 1)));
    shmq_block_usage usage;
    shmq_queue_shm *page = qa->page;
    uint32_t index = page->index, shift = page->ring.shift;
    page->index = SHMQ_QUEUES;
    shmq_ring_discard(a, page);
    page->index = index + 1;
    shmq_ring_discard(a, page);
    page->index = index;
    page->ring.shift = 40;
    shmq_ring_discard(a, page);
    page->ring.shift = shift;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 2);
    shmq_ring_discard(a, page);
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 0);
    shmq_ring_discard(a, page); /* repeatable */
    end();
}

/* Handles from before a fork, of a queue that was deleted, and of a broker that is closed, go without a trace. */
TEST(handles_go_whatever_has_become_of_their_queue) {
    begin();
    CHECK_EQUAL(shmq_queue_rebind(qa), SHMQ_OK); /* nothing to do */
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(shmq_member_after_fork(a), SHMQ_OK);
        shmq_queue *fresh = NULL;
        CHECK_EQUAL(shmq_queue_bind(a, qa->index, 0, &fresh), SHMQ_OK);
        CHECK_EQUAL(shmq_queue_delete(fresh), SHMQ_OK);
        CHECK_EQUAL(shmq_queue_rebind(qa), SHMQ_NOT_FOUND);
        shmq_queue_unbind(fresh);
        shmq_queue_unbind(qa);
        CHECK_EQUAL(shmq_member_leave(a, false), SHMQ_OK);
        exit(0);
    }
    scratch_wait(child);
    CHECK_EQUAL(shmq_queue_usable(qa), SHMQ_NOT_FOUND);
    shmq_queue *again = NULL;
    CHECK_EQUAL(shmq_queue_bind(a, SHMQ_QUEUES, 0, &again), SHMQ_NOT_FOUND);
    CHECK_EQUAL(shmq_queue_bind(a, qa->index, qa->incarnation, &again), SHMQ_NOT_FOUND);
    end();
}

int main(void) { return run_tests(); }
