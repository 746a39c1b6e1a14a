/* Processes that use blocks are killed at random moments; others go on meanwhile; the sweep leaves no block behind and
 * takes none away that is named. Arguments: rounds, seed. */
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "block_traffic.h"

static shmq_member *m;
static traffic_table *table;

static void victim(uint64_t seed) {
    traffic_worker worker = {.m = m, .table = table, .random = seed | 1};
    shmq_status status;
    do {
        status = shmq_member_after_fork(m);
    } while (status == SHMQ_INTERRUPTED);
    CHECK_EQUAL(status, SHMQ_OK);
    for (;;) {
        traffic_step(&worker);
    }
}

static pid_t start(uint64_t seed) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        victim(seed);
        _exit(1);
    }
    return child;
}

static void kill_and_wait(pid_t child) {
    int status;
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* else a check of its own has failed */
}

/* The steps of a reaper for a row: its slots, its pins, its blocks; then the row may be used again. */
static void repair(uint32_t row) {
    uint64_t row_word = shmq_load_seq(&m->rows[row].word);
    for (uint32_t i = 0; i < TRAFFIC_SLOTS; i++) {
        traffic_slot *slot = &table->slots[i];
        uint64_t word = shmq_load_seq(&slot->word);
        uint32_t state = traffic_state_of(word);
        if (traffic_owner(word) != row || state == T_EMPTY || state == T_AVAILABLE) {
            continue;
        }
        if (state == T_CLAIMED) {
            CHECK(traffic_move(slot, word, 0, T_EMPTY));
        } else if (state == T_ACQUIRED) {
            CHECK(traffic_move(slot, word, 0, T_AVAILABLE));
        } else {
            traffic_finish(m, slot, word);
        }
    }
    shmq_blocks_unpin_dead(m, row);
    shmq_blocks_unpin_dead(m, row);
    traffic_sweep(m, table);
    CHECK(
        shmq_cas_seq(&m->rows[row].word, row_word, shmq_row_word(shmq_row_generation(row_word) + 1, 0, SHMQ_ROW_FREE)));
}

static uint32_t repair_dead(void) {
    uint32_t found = 0;
    for (uint32_t row = 1; row < shmq_load_seq(&m->header->process_high); row++) {
        if (shmq_process_dead(m, row)) {
            repair(row);
            found += 1;
        }
    }
    return found;
}

static void sleep_until_the_blow(uint64_t *random) {
    struct timespec some = {.tv_nsec = (long)(traffic_random(random) % 2500000)};
    nanosleep(&some, NULL);
}

/* One that is killed while the other works on, then the other. */
static void round_of_two(uint64_t *random) {
    pid_t first = start(traffic_random(random)), second = start(traffic_random(random));
    sleep_until_the_blow(random);
    kill_and_wait(first);
    repair_dead();
    sleep_until_the_blow(random);
    kill_and_wait(second);
    repair_dead();
    traffic_sweep(m, table); /* views that leaked while an entry was left, and whose entry has gone since */
    traffic_check(m, table);
}

int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    uint64_t random = seed | 1;
    table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(table != MAP_FAILED);
    scratch_create(false);
    m = scratch_attach();
    CHECK_EQUAL(m->row, 0);
    time_t until = time(NULL) + 20;
    uint64_t round = 0;
    for (; round < rounds && (time(NULL) < until || round < rounds / 4); round++) {
        round_of_two(&random);
        if (round % 25 == 24) {
            traffic_drain(m, table);
            traffic_sweep(m, table);
            traffic_check(m, table);
            traffic_check_all_given_back(m);
        }
    }
    printf("%llu rounds, %llu steps, %llu pins, %llu times memory was full\n", (unsigned long long)round,
           (unsigned long long)shmq_load_seq(&table->operations), (unsigned long long)shmq_load_seq(&table->pinned),
           (unsigned long long)shmq_load_seq(&table->full));
    CHECK(shmq_load_seq(&table->operations) > round && shmq_load_seq(&table->pinned) > 0);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    shmq_member_leave(m, true);
    return 0;
}
