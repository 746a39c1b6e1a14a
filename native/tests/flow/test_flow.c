/* A queue whose messages do not fit into its ring: they go to disk, and come back in their order. */
#include <pthread.h>

#include "queue/cold.h"
#include "ring/ring.h"
#include "ring/ring_memory.h"
#include "faulty_backing.h"
#include "flow_pair.h"

#define MANY 20000

/* Shows S178, S180, S181. */
TEST(what_does_not_fit_comes_back_in_order) {
    begin();
    put_numbers(q, 0, MANY);
    shmq_census c = census_of(q);
    CHECK_EQUAL(c.ready, MANY);
    CHECK(c.flowed > MANY - 2 * shmq_slot_count(&q->first));
    CHECK(scratch_spill_files(false) > 5);
    get_numbers(theirs, 0, MANY);
    CHECK_EQUAL(get_number(theirs), UINT64_MAX);
    CHECK_EQUAL(census_of(q).ready, 0);
    CHECK(!shmq_flow_is_on(shmq_load_seq(&q->first.shm->flow)));
    put_numbers(theirs, 0, 10); /* and it is as before */
    get_numbers(q, 0, 10);
    end();
}

TEST(puts_and_gets_take_turns_while_it_flows) {
    begin();
    uint64_t put = 0, got = 0;
    put_numbers(q, 0, 6000);
    put = 6000;
    for (int round = 0; round < 300; round++) {
        put_numbers(round % 2 == 0 ? q : theirs, put, 40);
        put += 40;
        get_numbers(round % 3 == 0 ? q : theirs, got, 55);
        got += 55;
    }
    get_numbers(q, got, put - got);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* Messages in hand stay where they are, and come first when they are given back. */
TEST(what_is_given_back_while_it_flows_is_first) {
    begin();
    put_numbers(q, 0, 3000);
    shmq_delivery taken[20];
    for (uint64_t i = 0; i < 20; i++) {
        taken[i] = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(number_of(&taken[i]), i);
    }
    put_numbers(q, 3000, 5000);
    get_numbers(q, 20, 4000); /* far beyond where the flow began */
    for (uint64_t i = 0; i < 20; i += 2) {
        CHECK_EQUAL(shmq_release(theirs, &taken[19 - i], false), SHMQ_OK);
    }
    for (uint64_t i = 1; i < 20; i += 2) {
        CHECK_EQUAL(get_number(q), i);
    }
    get_numbers(q, 4020, 3980);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    for (uint64_t i = 0; i < 20; i += 2) {
        CHECK_EQUAL(shmq_settle(theirs, &taken[i]), SHMQ_OK);
    }
    CHECK_EQUAL(census_of(q).unsettled, 0);
    end();
}

/* Entries of the front ring, of a consumer that dies: each in its place again, and marked. */
TEST(what_the_dead_had_from_disk_comes_again_in_order) {
    begin();
    put_numbers(q, 0, 9000);
    get_numbers(q, 0, 3000);
    for (uint64_t i = 3000; i < 3010; i++) {
        shmq_delivery d = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(number_of(&d), i);
        CHECK(d.depth == q->levels);
        CHECK_EQUAL(shmq_place_of(theirs, &d), i);
    }
    get_numbers(q, 3010, 100);
    scratch_kill(other);
    uint32_t reaped;
    CHECK_EQUAL(shmq_reap_dead(m, &reaped), SHMQ_OK);
    CHECK_EQUAL(reaped, 1);
    for (uint64_t i = 3000; i < 3010; i++) {
        shmq_delivery d = receive(q, shmq_self(q));
        CHECK_EQUAL(number_of(&d), i);
        CHECK((d.word & SHMQ_FLAG_REDELIVERED) != 0 && d.deaths == 1);
        CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
    }
    get_numbers(q, 3110, 5890);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    other = scratch_attach_flowing();
    theirs = scratch_flowing(other, "jobs", MEMORY);
    end();
}

TEST(a_purge_settles_what_is_on_disk) {
    begin();
    put_numbers(q, 0, 10000);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, 10000);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    put_numbers(q, 0, 10000);
    get_numbers(theirs, 0, 10000);
    end();
}

/* As a mover leaves it that dies before its decision, and one that dies behind it. */
TEST(a_purge_settles_what_a_dead_mover_has_left) {
    begin();
    put_numbers(q, 0, 10000);
    get_numbers(theirs, 0, 5000);
    put_numbers(q, 10000, 5000);
    shmq_ring_shm *ring = q->first.shm;
    uint64_t place = shmq_flow_place(shmq_load_seq(&ring->flow)), purged;
    uint32_t moving = 0;
    for (uint64_t p = place; p < place + SHMQ_TURN_ENTRIES; p++) {
        shmq_slot_shm *slot = shmq_slot_at(&q->first, p);
        uint64_t word = shmq_load_seq(&slot->word);
        if (shmq_load_seq(&slot->position) == p && shmq_word_state(word) == SHMQ_AVAILABLE) {
            shmq_store_seq(&slot->word, shmq_word_to(word, SHMQ_MOVING, 0, shmq_word_tag(word)));
            moving++;
        }
    }
    CHECK(moving > 10);
    shmq_store_seq(&q->page->unfinished, 1);
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, 10000);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    put_numbers(q, 0, 1100);
    shmq_store_seq(&ring->pulled, shmq_load_seq(&ring->flushed)); /* as if it had not counted them yet */
    shmq_store_seq(&q->page->unfinished, 1);
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

static uint64_t memory_of_segment(void) {
    struct stat file;
    CHECK(fstat(m->map_fd, &file) == 0);
    return (uint64_t)file.st_blocks;
}

/* A look at a slot that has no memory would give it some, which nobody counts. */
TEST(recovery_looks_at_no_slot_without_memory) {
    begin();
    put_numbers(q, 0, 10);
    CHECK(shmq_slots_laid(&q->first) < shmq_slot_count(&q->first));
    CHECK_EQUAL(shmq_purger_make_room(q, NULL), SHMQ_OK);
    uint64_t memory = memory_of_segment();
    shmq_store_seq(&q->page->unfinished, 1);
    get_numbers(theirs, 0, 10);
    CHECK_EQUAL(shmq_load_seq(&q->page->unfinished), 0);
    CHECK_EQUAL(memory_of_segment(), memory);
    end();
}

/* Longer than a slot, and not two of one length. Shows S167. */
TEST(long_bodies_go_and_come_with_their_blocks) {
    begin();
    static unsigned char bytes[9000];
    for (uint64_t i = 0; i < 6000; i++) {
        memcpy(bytes, &i, sizeof i);
        memset(bytes + 8, (int)(i % 251), sizeof bytes - 8);
        CHECK_EQUAL(put_bytes(q, bytes, 100 + i % 8000, 0), SHMQ_OK);
    }
    for (uint64_t i = 0; i < 6000; i++) {
        shmq_delivery d = receive(theirs, shmq_self(theirs));
        CHECK(memcmp(d.bytes, &i, sizeof i) == 0);
        CHECK_EQUAL(d.body_len, 100 + i % 8000);
        CHECK_EQUAL(d.bytes[d.body_len - 1], i % 251);
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    }
    shmq_block_usage usage;
    shmq_blocks_usage(m, &usage);
    CHECK_EQUAL(usage.used, 0);
    end();
}

/* Shows S119, S131, S192. */
TEST(a_disk_that_fails_loses_nothing) {
    begin();
    faulty_begin(m);
    uint64_t put = 0, got = 0;
    for (int round = 0; round < 40; round++) {
        faulty.writes = round % 3;
        for (int i = 0; i < 400; i++) {
            shmq_status status = put_number(q, put);
            CHECK(status == SHMQ_OK || status == SHMQ_NO_SPACE);
            put += status == SHMQ_OK;
        }
        faulty.reads = round % 4;
        for (int i = 0; i < 250; i++) {
            shmq_delivery d;
            shmq_status status = shmq_offer(q, shmq_self(q), &d);
            if (status == SHMQ_OS) {
                continue; /* the same again */
            }
            CHECK_EQUAL(status, SHMQ_OK);
            CHECK_EQUAL(number_of(&d), got);
            got++;
            CHECK_EQUAL(shmq_offer_finish(q, &d), SHMQ_OK);
        }
    }
    faulty.writes = faulty.reads = 0;
    CHECK_EQUAL(census_of(q).ready, put - got);
    get_numbers(q, got, put - got);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    faulty_end(m);
    end();
}

/* As a mover leaves it that dies amid a pull: behind the last T22, before it moves the tail; then, before it counts. */
TEST(what_a_dead_mover_has_brought_comes_once) {
    begin();
    put_numbers(q, 0, 9000);
    shmq_ring_shm *ring = q->first.shm;
    uint64_t got = 0, low, pulled;
    shmq_ring *front = shmq_level(q, q->levels);
    do {
        low = shmq_load_seq(&ring->low);
        pulled = shmq_load_seq(&ring->pulled);
        get_numbers(q, got++, 1);
    } while (shmq_load_seq(&ring->pulled) == pulled);
    shmq_store_seq(&ring->low, low);
    shmq_store_seq(&ring->pulled, pulled);
    shmq_add_seq(&front->shm->tail, -1);
    shmq_store_seq(&q->page->unfinished, 1);
    get_numbers(theirs, got, 3000);
    got += 3000;
    shmq_store_seq(&ring->pulled, shmq_load_seq(&ring->pulled) - 100);
    shmq_store_seq(&q->page->unfinished, 1);
    put_numbers(q, 9000, 4000);
    CHECK_EQUAL(census_of(q).ready, 13000 - got);
    get_numbers(theirs, got, 13000 - got);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    end();
}

/* A flush that dies before the flow word has named its end; then a flow begins at just that place, and its first flush fails. */
TEST(a_flush_that_was_not_decided_counts_nothing) {
    begin();
    faulty_begin(m);
    put_numbers(q, 0, 5000);
    shmq_ring_shm *ring = q->first.shm;
    get_numbers(theirs, 0, 5000);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK(!shmq_flow_is_on(shmq_load_seq(&ring->flow)));
    /* The oldest will be there, behind those that find room in the front ring. */
    uint64_t begins = shmq_load_seq(&ring->tail) + shmq_slot_count(shmq_front_of(&q->first)) / 4, put = 0;
    shmq_flushing_say(ring, begins, shmq_load_seq(&ring->flushed) + 7, shmq_load_seq(&ring->flushed_bytes) + 700);
    faulty.writes = 2; /* the put that finds the ring full looks further between the two */
    while (put_number(q, put) == SHMQ_OK) {
        CHECK(++put < 100000); /* it would go on until the disk is full */
    }
    CHECK_EQUAL(faulty.writes, 0);
    CHECK_EQUAL(shmq_load_seq(&ring->flow), shmq_flow_word(begins, true));
    CHECK_EQUAL(census_of(q).ready, put);
    get_numbers(q, 0, put);
    faulty_end(m);
    end();
}

/* Changed on disk: told, and never delivered; the others come. */
TEST(a_changed_row_is_told_and_not_delivered) {
    begin();
    put_numbers(q, 0, 12000);
    uint64_t damage = shmq_load_seq(&m->header->damage);
    char path[400], file[700];
    snprintf(path, sizeof path, "%s/%u.%u", scratch_spill, q->index, q->incarnation);
    uint32_t changed = 0;
    DIR *directory = opendir(path);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (e->d_name[0] == '.' || changed == 3) {
            continue;
        }
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        FILE *f = fopen(file, "r+b");
        CHECK(f != NULL && fseek(f, -5, SEEK_END) == 0);
        int byte = fgetc(f);
        CHECK(fseek(f, -5, SEEK_END) == 0 && fputc(byte ^ 1, f) != EOF && fclose(f) == 0);
        changed++;
    }
    closedir(directory);
    uint64_t last = 0, count = 0, number, told = 0;
    for (shmq_status status; (status = try_number(q, &number)) != SHMQ_EMPTY;) {
        if (status == SHMQ_CORRUPT) {
            CHECK(strstr(shmq_trail(), "1, of 8 bytes") != NULL);
            told++;
            continue;
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK(count == 0 || number > last);
        last = number;
        count++;
    }
    CHECK_EQUAL(count, 12000 - changed);
    CHECK_EQUAL(told, changed);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), damage + changed);
    CHECK_EQUAL(census_of(q).ready, 0);
    end();
}

#define WORD(place) (*(uint64_t *)(uintptr_t)&(place))
#define HALF(place) (*(uint32_t *)(uintptr_t)&(place))

static void must_say(const char *words) {
    uint64_t where;
    const char *found = shmq_ring_fault(&q->first, &where);
    found = found != NULL ? found : shmq_ring_fault(shmq_level(q, q->levels), &where);
    if ((found == NULL) != (words == NULL) || (words != NULL && strstr(found, words) == NULL)) {
        fprintf(stderr, "found \"%s\", expected \"%s\"\n", found != NULL ? found : "", words != NULL ? words : "");
        exit(1);
    }
}

#define BREAK(place, value, words)           \
    do {                                     \
        __typeof__(place) before_ = (place); \
        must_say(NULL);                      \
        (place) = (value);                   \
        must_say(words);                     \
        (place) = before_;                   \
        must_say(NULL);                      \
    } while (0)

/* The slot of a ring with the last, or first, entry. */
static shmq_slot_shm *an_entry(const shmq_ring *r, uint64_t p, int step) {
    while (shmq_word_state(shmq_load_seq(&shmq_slot_at(r, p)->word)) != SHMQ_AVAILABLE) {
        p += (uint64_t)(int64_t)step;
    }
    return shmq_slot_at(r, p);
}

static uint64_t with_state(shmq_slot_shm *slot, uint32_t state) {
    return shmq_word_to(shmq_load_seq(&slot->word), state, 0, shmq_word_tag(shmq_load_seq(&slot->word)));
}

TEST(words_that_make_no_sense_are_told) {
    begin();
    put_numbers(q, 0, 9000);
    get_numbers(q, 0, 3000);
    const shmq_ring *back = &q->first, *front = shmq_level(q, q->levels);
    shmq_ring_shm *ring = back->shm;
    uint64_t place = shmq_flow_place(shmq_load_seq(&ring->flow)), low = shmq_load_seq(&ring->low);
    uint64_t flushed = shmq_load_seq(&ring->flushed);
    BREAK(WORD(ring->low), place + 1, "begin behind their end");
    BREAK(WORD(ring->low), low - 1, "older ones may still be there");
    BREAK(WORD(ring->pulled), flushed + 1, "more messages have come back");
    BREAK(WORD(ring->flushed), flushed + place, "but has only");
    BREAK(WORD(ring->flow), shmq_flow_word(place, false), "but has only");
    BREAK(WORD(ring->flow), shmq_flow_word(UINT64_MAX >> 2, true), "end beyond the tail");
    BREAK(HALF(q->page->missed), 2u, "the word for a missed turn");
    shmq_slot_shm *first = an_entry(back, place, 1), *last = an_entry(front, shmq_load_seq(&front->shm->tail) - 1, -1);
    BREAK(WORD(first->word), with_state(first, SHMQ_MOVING), "but no mover has it");
    BREAK(WORD(last->word), with_state(last, SHMQ_MOVING), "a state that no message from disk has");
    BREAK(shmq_cold_at(front, last)->back, low, "older ones may still be there");
    BREAK(shmq_cold_at(front, last)->back, place, "that no message has had");
    BREAK(WORD(ring->flow), shmq_flow_word(place + 1, true), "but no consumer has had it");
    end();
}

/* No row is at fault, and none is lost. */
TEST(records_that_lie_nowhere_keep_rows_on_disk) {
    begin();
    put_numbers(q, 0, 9000);
    shmq_ring_shm *front = shmq_level(q, q->levels)->shm;
    uint64_t cold = shmq_load_seq(&front->cold), damage = shmq_load_seq(&m->header->damage);
    uint64_t wrong[] = {cold + 64, 0};
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t rows = shmq_flow_rows(q);
        shmq_store_seq(&front->cold, wrong[i]);
        CHECK_EQUAL(shmq_inhaler_bring(&q->first), SHMQ_CORRUPT);
        shmq_store_seq(&front->cold, cold);
        CHECK_EQUAL(shmq_flow_rows(q), rows);
        get_numbers(q, 3000 * i, 3000); /* so that some have come back */
    }
    CHECK(shmq_load_seq(&m->header->damage) > damage);
    shmq_store_seq(&m->header->damage, damage);
    get_numbers(q, 6000, 3000);
    end();
}

/* A mover looks at a ring's slots once, however far from its tail a damaged word puts the flow. */
TEST(a_flow_far_from_the_tail_keeps_no_mover) {
    begin();
    put_numbers(q, 0, 6000);
    shmq_ring_shm *ring = q->first.shm;
    uint64_t tail = shmq_load_seq(&ring->tail), flow = shmq_load_seq(&ring->flow);
    shmq_store_seq(&ring->tail, UINT64_C(1) << 44);
    (void)shmq_purger_make_room(theirs, NULL);
    CHECK(shmq_flow_place(shmq_load_seq(&ring->flow)) >= (UINT64_C(1) << 44) - shmq_slot_count(&q->first));
    shmq_store_seq(&ring->tail, tail);
    shmq_store_seq(&ring->flow, shmq_flow_word(UINT64_C(1) << 44, true));
    CHECK_EQUAL(shmq_purger_make_room(theirs, NULL), SHMQ_CORRUPT);
    shmq_store_seq(&ring->flow, flow);
    end();
}

static uint64_t others_put; /* messages */
static shmq_queue *theirs_little;

static void they_take_the_room(void) { CHECK_EQUAL(put_number(theirs_little, 1000 + others_put++), SHMQ_OK); }

/* Its patience is over at once; each turn of it makes room, and another producer has it before the next try. */
TEST(a_put_that_does_not_wait_bears_one_that_takes_the_room_each_time) {
    begin();
    shmq_queue *little = scratch_flowing(m, "little", 8);
    theirs_little = scratch_flowing(other, "little", 8);
    uint64_t patience = m->patience_ns;
    m->patience_ns = 1;
    faulty_begin(m);
    faulty.behind_write = they_take_the_room;
    others_put = 0;
    put_numbers(little, 0, 50);
    CHECK(others_put >= 50); /* they did take it */
    faulty_end(m);
    m->patience_ns = patience;
    CHECK_EQUAL(census_of(little).ready, 50 + others_put);
    uint64_t next = 0, theirs_next = 1000, number;
    while ((number = get_number(little)) != UINT64_MAX) {
        CHECK_EQUAL(number, number < 1000 ? next++ : theirs_next++);
    }
    CHECK_EQUAL(next, 50);
    CHECK_EQUAL(theirs_next, 1000 + others_put);
    shmq_queue_unbind(theirs_little);
    shmq_queue_unbind(little);
    end();
}

int main(void) { return run_tests(); }
