/* Takers, producers and others at one queue, of which one stands still at each step: nothing is taken twice, nothing is lost. */
#include "meeting_deeds.h"

static shmq_queue *plain(shmq_member *m, const char *name) {
    shmq_declaration d = {
        .given = (1u << SHMQ_SET_MAX_DEATHS) | (1u << SHMQ_SET_MAX_ATTEMPTS), .checksum = true, .create = true};
    return scratch_declare(m, name, d, 0);
}

static void three(shmq_queue *q) {
    for (int i = 0; i < 3; i++) {
        add_number(q);
    }
}

static void thieves_and_purges_meet_those_who_hold(void) {
    meetings_begin(plain, three);
    MEET(receives, purges, 5);
    MEET(settles, steals, 5);
    MEET(holds, steals, 5);
    MEET(locks, steals, 5);
    meetings_end();
}

static void those_who_go_over_a_queue_meet_takers(void) {
    meetings_begin(plain, three);
    MEET(discards, gets, 5);
    MEET(claims, gets, 5);
    MEET(moves, steals, 5);
    meetings_end();
}

#ifdef __x86_64__
/* A look and then a store, where a compare-and-swap would have to be. */
static void take_carelessly(actor *by) {
    shmq_delivery d;
    uint64_t position = shmq_load_seq(&by->q->first.shm->tail) - 3;
    if (shmq_browse(&by->q->first, &position, &d) == SHMQ_OK) {
        uint64_t number = number_of(&d);
        shmq_slot_shm *slot = shmq_slot_at(&by->q->first, position);
        shmq_store_seq(&slot->word, shmq_word_freed(shmq_load_seq(&slot->word)));
        took(number);
    }
}

static void forget_the_directory(void) {
    if (getpid() == scratch_owner) { /* and not a child of it */
        (void)rmdir(scratch_broker);
    }
}

static void do_nothing(actor *by) { (void)by; }

/* The exit code of its meeting with another. */
static int meets_carelessly(const deed *other) {
    const deed careless = {.act = take_carelessly};
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(freopen("/dev/null", "w", stderr) != NULL && freopen("/dev/null", "w", stdout) != NULL);
        meetings_begin(plain, three);
        atexit(forget_the_directory);
        meet(&careless, other, 20);
        meetings_end();
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void one_that_takes_carelessly_is_found(void) {
    const deed idles = {.act = do_nothing};
    CHECK_EQUAL(meets_carelessly(&idles), 0); /* nobody comes between */
    CHECK_EQUAL(meets_carelessly(&gets), 1);
}
#else
static void one_that_takes_carelessly_is_found(void) {} /* they meet at the beginning only */
#endif

int main(void) {
    one_that_takes_carelessly_is_found(); /* first: the segment is its own */
    thieves_and_purges_meet_those_who_hold();
    those_who_go_over_a_queue_meet_takers();
    return 0;
}
