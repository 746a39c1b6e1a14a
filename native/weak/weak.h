/* A simulator of weak memory: threads take turns at each atomic access, and a load may answer an older value wherever the
 * orders of C11 allow it. One run is decided by its seed.
 *
 *   memory.c    what a load may answer; which plain accesses are not ordered (views and clocks)
 *   schedule.c  whose turn it is; sleeping, waking, dying, time
 *   kernel.c    what the core asks the kernel for: clock, futex, lock bytes
 *   litmus.c    does the simulator itself show what C11 allows, and nothing else?
 *   faults.c    orders to take away, each of which a scenario has to notice
 *   scenarios/  the core's protocols, a few messages and threads each
 *
 * The model: stores to one place are in the order in which they were done, so a store is never put before one that is
 * there (no load buffering, no 2+2W). A load answers any value that is not older than what its thread must know: what it
 * has seen or written there itself, what came with a release that it acquired, and, if it is sequentially consistent, the
 * last sequentially consistent store there. A read-modify-write takes the last value. Stronger than C11, weaker than
 * aarch64 in most respects: what it shows, C11 allows; what it does not show is not proven. */
#ifndef SHMQ_WEAK_H
#define SHMQ_WEAK_H

#include "base/atomic.h"

#define WEAK_THREADS 6
#define WEAK_PLACES 9000

typedef struct weak_scenario {
    const char *name;
    const char *what;
    int threads;
    bool wakes_must_come; /* all asleep is a lost wake-up, whatever their time limits */
    void (*set_up)(void); /* once, without simulation */
    void (*begin)(void); /* before each run */
    void (*thread)(int number);
    void (*end)(void); /* after each run: what must be true now */
} weak_scenario;

/* scenarios */
extern const weak_scenario weak_publish, weak_receive, weak_release, weak_sleep, weak_full, weak_tombstone, weak_hole,
    weak_blocks, weak_browse, weak_count, weak_steal, weak_recount, weak_waiters, weak_sweep, weak_rows, weak_look,
    weak_moved, weak_due, weak_select, weak_levels, weak_move, weak_ranks, weak_any, weak_directory, weak_join,
    weak_closing, weak_memory, weak_peek, weak_news, weak_choosy;
extern const weak_scenario *const weak_scenarios[];

/* runner */
typedef struct weak_result {
    uint64_t runs, events;
    uint64_t failed_seed;
    const char *reason; /* NULL: nothing was found */
} weak_result;
weak_result weak_run(const weak_scenario *scenario, uint64_t first_seed, uint64_t runs);
int weak_litmus(uint64_t runs); /* 0: as C11 says */
int weak_faults(uint64_t runs, const char *only);

/* One order to take away: in this function, accesses of this kind ("load", "store", "rmw", "cas", "fence") with this order
 * have that one. No kind: all of them. */
typedef struct weak_weakening {
    const char *function, *kind;
    enum weak_order from, to;
} weak_weakening;
void weak_weaken(const weak_weakening *one, const weak_weakening *other); /* NULL: none */
enum weak_order weak_order_now(enum weak_order order, const char *kind, const char *function);

/* memory */
void weak_share(void *base, uint64_t bytes); /* only what lies in here is simulated; nothing is kept so far */
void weak_keep(void *at, uint64_t bytes); /* private memory that each run finds as it is now */
extern bool weak_tracing;
void weak_memory_begin(void);
void weak_memory_end(void); /* everything as it was at the beginning */
bool weak_is_shared(const volatile void *at);
void weak_know_all_of(int thread); /* this thread sees what that one has done */
void weak_join_everything(void); /* at the end: all threads are joined */
void weak_copy_racing(void *to, const void *from,
                      uint64_t bytes); /* under a sequence lock: any mixture of old and new */
uint64_t weak_last_look(const volatile void *at); /* event of this thread's last load there */
void weak_read_plain(const volatile void *at, uint64_t bytes);
void weak_write_plain(const volatile void *at, uint64_t bytes);
void weak_lock_passes_on(bool taken); /* the structure lock orders what its holders do */

/* schedule */
extern bool weak_running;
int weak_thread(void);
void weak_step(void); /* somebody else may have the next turn */
uint64_t weak_event(void);
uint64_t weak_random(uint64_t below);
bool weak_chance(uint32_t of_256);
uint32_t weak_stale_chance(void);
void weak_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void weak_die_somewhere(int thread, uint32_t row); /* from begin(): the thread ends at one of its steps */
bool weak_is_dead(uint32_t row);
bool weak_has_died(int thread); /* whoever is told so has seen all that it did */
void weak_kernel_begin(void); /* nobody holds the structure lock */
uint64_t weak_now(void);
void weak_let_time_pass(uint32_t of_65536, uint64_t ns); /* from begin(): jumps of time, as if threads were stopped */
bool weak_block_on(const volatile void *word, uint64_t until); /* false: time is over */
int weak_unblock(const volatile void *word, int count);
void weak_yield(void);

#define WEAK_CHECK(condition) ((condition) ? (void)0 : weak_fail("%s:%d: %s", __FILE__, __LINE__, #condition))

#endif
