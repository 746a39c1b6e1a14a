/* Looks across structures: sound while everything is as it should be or waits for its reaper, and each kind of damage, made
 * on purpose, is told with its place. */
#include "blocks/slab.h"
#include "check/check.h"
#include "ring/ring.h"
#include "wake/watch.h"
#include "scratch_queue.h"

static shmq_member *a, *b;
static shmq_queue *qa, *qb;
static unsigned char large[5000];

static void begin(bool checksum) {
    scratch_create(false);
    a = scratch_attach();
    b = scratch_attach();
    qa = scratch_queue(a, "jobs", 1024, checksum);
    qb = scratch_queue(b, "jobs", 1024, checksum);
    for (int i = 0; i < 4; i++) {
        memset(large, i, sizeof(large));
        CHECK_EQUAL(put_bytes(qa, large, sizeof(large), 0), SHMQ_OK);
    }
    for (uint64_t i = 4; i < 10; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
    }
}

static void end(void) {
    scratch_close_unless_dead(b, qb);
    scratch_close(a, qa);
    scratch_remove();
}

/* One look as shmq check does it; "" for nothing. */
static const char *check_entries(uint64_t *where) {
    static char copy[256];
    shmq_stray stray;
    *where = SHMQ_NO_SLOT;
    const char *wrong = shmq_entries_fault(&qa->first, where, &stray);
    wrong = wrong != NULL ? wrong : shmq_references_fault(a);
    snprintf(copy, sizeof(copy), "%s", wrong == NULL ? "" : wrong);
    if (wrong == NULL && stray.found && shmq_stray_is_lost(&qa->first, &stray)) {
        *where = stray.slot;
        return "stray";
    }
    return copy;
}

static void expect(const char *words, uint64_t slot, int line) {
    uint64_t where;
    const char *found = check_entries(&where);
    if (strstr(found, words) == NULL || (words[0] == 0 && found[0] != 0) || where != slot) {
        fprintf(stderr, "line %d: found \"%s\" at slot %lld, expected \"%s\"\n", line, found, (long long)where, words);
        exit(1);
    }
}

#define SOUND() expect("", SHMQ_NO_SLOT, __LINE__)
#define TOLD(words, slot) expect(words, slot, __LINE__)

static void set_owner(uint64_t slot, uint32_t state, uint32_t owner) {
    shmq_a64 *word = &shmq_slot_at(&qa->first, slot)->word;
    uint64_t was = shmq_load_seq(word);
    shmq_store_seq(word, shmq_word_to(was, state, owner, shmq_word_tag(was)));
}

TEST(an_owner_that_is_not_there_is_told) {
    begin(true);
    uint32_t row;
    CHECK_EQUAL(shmq_row_open(qb, SHMQ_CONSUMER, &row), SHMQ_OK);
    shmq_delivery of_consumer = receive(qb, row), of_process = receive(qb, shmq_self(qb)), offered;
    CHECK_EQUAL(shmq_offer(qb, row, &offered), SHMQ_OK);
    SOUND();
    set_owner(0, SHMQ_ACQUIRED, row + 1);
    TOLD("a consumer that does not exist", 0);
    set_owner(0, SHMQ_ACQUIRED, 999);
    TOLD("a consumer that does not exist", 0);
    set_owner(0, SHMQ_ACQUIRED, SHMQ_OWNER_PROCESS | 77);
    TOLD("a process that does not exist", 0);
    set_owner(0, SHMQ_ACQUIRED, row);
    SOUND();
    set_owner(1, SHMQ_DEQUEUED, SHMQ_OWNER_PROCESS | 77);
    TOLD("a process that does not exist", 1);
    set_owner(1, SHMQ_ACQUIRED, shmq_self(qb));
    shmq_consumer_shm *consumer = shmq_row_at(qa, row);
    uint64_t word = shmq_load_seq(&consumer->word);
    shmq_store_seq(&consumer->word, shmq_row_word(0, 77, SHMQ_ROW_LIVE));
    TOLD("a process that does not exist", 0);
    shmq_store_seq(&consumer->word, word);
    /* Dead and not reaped: everything that it owns waits for its reaper, and is no damage. */
    (void)of_consumer, (void)of_process;
    scratch_kill(b);
    SOUND();
    reap_all(a, 1);
    SOUND();
    end();
}

TEST(a_body_whose_block_does_not_know_it_is_told) {
    begin(true);
    shmq_slot_shm *slot = shmq_slot_at(&qa->first, 2);
    shmq_block_location location;
    CHECK(shmq_block_locate(a, shmq_body_offset(slot->body), &location));
    uint64_t body = slot->body, refs = shmq_load_seq(&location.block->word),
             state = shmq_load_seq(&location.block->state);
    SOUND();
    slot->body = body + 1;
    TOLD("is not that of a block", 2);
    slot->body = body | UINT64_C(20) << 40;
    TOLD("is not that of a block", 2);
    slot->body = body | UINT64_C(3) << 40;
    TOLD("does not count the message", 2);
    slot->body = body;
    slot->body_gen += 1;
    TOLD("does not count the message", 2);
    slot->body_gen -= 1;
    shmq_store_seq(&location.block->word, refs & ~UINT64_C(1));
    TOLD("does not count the message", 2);
    shmq_store_seq(&location.block->word, refs);
    shmq_store_seq(&location.block->state, (state & ~UINT64_C(0xff)) | SHMQ_BLOCK_FREE);
    TOLD("the block of the message's body is free", 2);
    shmq_store_seq(&location.block->state, state);
    SOUND();
    end();
}

TEST(a_block_that_is_nobodys_is_told) {
    begin(true);
    shmq_block lent, lost;
    CHECK_EQUAL(shmq_block_take(b, 9000, &lent), SHMQ_OK);
    SOUND(); /* being built by somebody */
    CHECK_EQUAL(shmq_block_take(b, 9000, &lost), SHMQ_OK);
    shmq_block_share(b, &lost);
    TOLD("references that no message names: 0x1", SHMQ_NO_SLOT);
    shmq_block_drop(b, lost.offset, lost.generation, 0);
    SOUND();
    shmq_block_location location;
    CHECK(shmq_block_locate(a, lent.offset, &location));
    uint64_t state = shmq_load_seq(&location.block->state);
    shmq_store_seq(&location.block->state, (state & ~UINT64_C(0xffff00)) | 77 << 8);
    TOLD("being filled, but no process owns it", SHMQ_NO_SLOT);
    shmq_store_seq(&location.block->state, state);
    /* A body more than its message: bit 5 of a block that slot 1 names with bit 0. */
    CHECK(shmq_block_locate(a, shmq_body_offset(shmq_slot_at(&qa->first, 1)->body), &location));
    shmq_or_seq(&location.block->word, UINT64_C(1) << 5);
    TOLD("references that no message names: 0x20", SHMQ_NO_SLOT);
    shmq_and_seq(&location.block->word, ~(UINT64_C(1) << 5));
    /* Half of a settle: the entry has gone, the slot still names the block. */
    shmq_delivery d = receive(qb, shmq_self(qb));
    set_owner(0, SHMQ_DEQUEUED, shmq_self(qb));
    SOUND();
    shmq_block_drop(b, shmq_body_offset(d.body), d.body_gen, 0);
    SOUND();
    scratch_kill(b);
    SOUND(); /* its block is built by a dead one, who waits for its reaper */
    reap_all(a, 1);
    SOUND();
    shmq_block_usage usage;
    shmq_blocks_usage(a, &usage);
    CHECK_EQUAL(usage.used, 3);
    end();
}

TEST(deliveries_that_nobody_admits_to_are_told) {
    begin(true);
    shmq_delivery one = receive(qb, shmq_self(qb)), two = receive(qb, shmq_self(qb));
    SOUND();
    shmq_store_seq(&b->process->unsettled, 1);
    TOLD("has 2 messages in hand, but counts 1", SHMQ_NO_SLOT);
    shmq_store_seq(&b->process->unsettled, 3); /* a stealer that died before it told: too many, which costs a look */
    SOUND();
    shmq_store_seq(&b->process->unsettled, 2);
    CHECK_EQUAL(shmq_settle(qb, &one), SHMQ_OK);
    CHECK_EQUAL(shmq_settle(qb, &two), SHMQ_OK);
    SOUND();
    end();
}

TEST(an_entry_behind_the_head_is_told_unless_it_is_just_released) {
    begin(true);
    shmq_delivery d = receive(qb, shmq_self(qb));
    CHECK_EQUAL(receive(qa, shmq_self(qa)).position, 1); /* the head is beyond 0 */
    shmq_delivery second = {
        .position = 1, .tag = 1, .owner = shmq_self(qa), .counted = true, .body = shmq_slot_at(&qa->first, 1)->body};
    SOUND();
    set_owner(0, SHMQ_AVAILABLE, 0); /* a release, and its head is not turned back yet */
    SOUND(); /* b holds something, it may be about to do it */
    shmq_add_unsettled(b, -1);
    SOUND(); /* so may a */
    CHECK_EQUAL(shmq_release(qa, &second, false), SHMQ_OK);
    TOLD("stray", 0);
    (void)receive(qb, shmq_self(qb));
    shmq_rewind(&qb->first, 0);
    SOUND();
    shmq_delivery first = receive(qb, shmq_self(qb));
    CHECK_EQUAL(first.position, d.position);
    /* Dead between the two: its reaper turns back every head. */
    set_owner(0, SHMQ_AVAILABLE, 0);
    scratch_kill(b);
    SOUND();
    reap_all(a, 1);
    SOUND();
    CHECK_EQUAL(receive(qa, shmq_self(qa)).position, 0);
    end();
}

/* The same for what lies more than a lap behind the tail: there the head must be, too. */
TEST(an_old_entry_is_met_while_the_head_is_old) {
    begin(true);
    shmq_delivery old = receive(qb, shmq_self(qb));
    for (uint64_t i = 0; i < 3000; i++) {
        CHECK_EQUAL(put_number(qa, i), SHMQ_OK);
        shmq_delivery d = receive(qa, shmq_self(qa));
        CHECK_EQUAL(shmq_settle(qa, &d), SHMQ_OK);
    }
    uint64_t slot = old.position & qa->first.mask;
    SOUND();
    set_owner(slot, SHMQ_AVAILABLE, 0);
    shmq_add_unsettled(b, -1);
    TOLD("stray", slot);
    shmq_rewind(&qb->first, old.position);
    SOUND();
    CHECK_EQUAL(receive(qb, shmq_self(qb)).position, old.position);
    end();
}

TEST(bodies_are_compared_with_their_checksums) {
    begin(true);
    shmq_bodies found;
    (void)receive(qb, shmq_self(qb)); /* in somebody's hands: a message all the same */
    CHECK(shmq_bodies_fault(&qa->first, &found) == NULL);
    CHECK_EQUAL(found.entries, 10);
    CHECK_EQUAL(found.verified, 10);
    unsigned char *body = shmq_at(a, shmq_body_offset(shmq_slot_at(&qa->first, 3)->body));
    body[4000] ^= 1;
    shmq_slot_at(&qa->first, 6)->inline_area[3] ^= 1;
    const char *wrong = shmq_bodies_fault(&qa->first, &found);
    CHECK(wrong != NULL && strstr(wrong, "does not match its checksum") != NULL);
    CHECK_EQUAL(found.damaged, 2);
    CHECK_EQUAL(found.slot, 3);
    CHECK_EQUAL(found.verified, 8);
    body[4000] ^= 1;
    shmq_slot_at(&qa->first, 6)->inline_area[3] ^= 1;
    shmq_slot_at(&qa->first, 5)->body_len = 100000;
    wrong = shmq_bodies_fault(&qa->first, &found);
    CHECK(wrong != NULL && strstr(wrong, "headers or body is out of range") != NULL);
    CHECK_EQUAL(found.slot, 5);
    shmq_slot_at(&qa->first, 5)->body_len = sizeof(uint64_t);
    CHECK(shmq_bodies_fault(&qa->first, &found) == NULL);
    CHECK_EQUAL(found.verified, 10);
    end();
    begin(false);
    CHECK(shmq_bodies_fault(&qa->first, &found) == NULL);
    CHECK_EQUAL(found.unsigned_ones, 10);
    CHECK_EQUAL(found.verified, 0);
    end();
}

static void part_says(shmq_member *eye, const char *name, int verdict, const char *words) {
    int part = 0;
    while (strcmp(shmq_part_name(part), name) != 0) {
        part++;
        CHECK(part < SHMQ_PARTS);
    }
    shmq_finding finding;
    shmq_part_check(eye, part, &finding);
    CHECK_EQUAL(finding.verdict, verdict);
    CHECK(strstr(verdict == SHMQ_DAMAGED ? finding.fault : finding.why, words) != NULL);
}

/* A fault that stays is damage, also without the lock; while a process changes the structure, no look can tell. */
TEST(looks_without_the_lock_agree_or_cannot_decide) {
    begin(true);
    shmq_member *eye;
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
    shmq_block_location location;
    CHECK(shmq_block_locate(a, shmq_body_offset(shmq_slot_at(&qa->first, 1)->body), &location));
    part_says(eye, "references of blocks", SHMQ_SOUND, "");
    shmq_or_seq(&location.block->word, UINT64_C(1) << 5);
    part_says(eye, "references of blocks", SHMQ_DAMAGED, "references that no message names: 0x20");
    shmq_and_seq(&location.block->word, ~(UINT64_C(1) << 5));
    uint32_t pid = b->process->pid;
    b->process->pid = 0;
    part_says(eye, "processes", SHMQ_DAMAGED, "but names no process");
    CHECK_EQUAL(shmq_structure_lock(b), SHMQ_OK);
    part_says(eye, "processes", SHMQ_UNDECIDED, "is changing the structure, or was stopped while it did");
    part_says(eye, "map of the memory", SHMQ_UNDECIDED, "is changing the structure, or was stopped while it did");
    b->process->pid = pid;
    part_says(eye, "processes", SHMQ_SOUND, ""); /* what makes sense is believed at once */
    shmq_structure_unlock(b);
    part_says(eye, "map of the memory", SHMQ_SOUND, "");
    shmq_observer_close(eye);
    end();
}

int main(void) { return run_tests(); }
