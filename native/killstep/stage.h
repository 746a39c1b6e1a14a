/* One segment in which a scenario plays, again and again: its prepared image, which is put back before each run, and the
 * processes that belong to the state (a sleeper, a stopped holder, the dead).
 *
 * The driver is a member itself, in row 0: it is the survivor. Its private state is put back with the image. */
#ifndef SHMQ_KILLSTEP_STAGE_H
#define SHMQ_KILLSTEP_STAGE_H

#include <sys/types.h>

#include "consumers/group_book.h"
#include "act.h"
#include "beginning.h"
#include "board.h"

#define STAGE_MEMORY (UINT64_C(8) << 20)
#define STAGE_PAGE 4096u
#define STAGE_HANDLES 4u
#define STAGE_ROWS 8u /* in whose name the survivor may have groups */
#define STAGE_BOOKS 2u
#define STAGE_LEVELS 8u /* rings but the first of each queue, of all queues together */

/* Pages of the segment that differ from the prepared image, with their contents. */
typedef struct delta {
    uint32_t count, room;
    uint32_t *pages;
    unsigned char *bytes; /* count x STAGE_PAGE */
    uint64_t key; /* of the image, equal for equal ones whatever the order of events was */
} delta;

typedef enum actor_kind { ACTOR_DEAD, ACTOR_HOLDER, ACTOR_SLEEPER, ACTOR_MORTAL } actor_kind;

typedef struct stage_actor {
    pid_t pid; /* 0: of a mortal that was killed */
    actor_kind kind;
    shmq_a32 *word; /* a sleeper's */
    bool (*due)(act *survivor); /* is there a reason for it to be awake? */
} stage_actor;

typedef struct stage_book {
    shmq_tally tallies[STAGE_ROWS];
    shmq_cursor cursors[SHMQ_RINGS_MAX]; /* how far its takers have looked, in memory and on disk */
    shmq_search searches[SHMQ_LEVELS_MAX];
    uint64_t nothing_in[SHMQ_LEVELS_MAX];
} stage_book;

typedef struct stage {
    char name[64];
    beginning begins; /* of each of its queues */
    act survivor, survivor_copy;
    shmq_member member_copy;
    stage_book book_copies[STAGE_BOOKS]; /* of the queues with groups */
    shmq_queue handle_copies[STAGE_HANDLES];
    shmq_ring level_copies[STAGE_LEVELS];
    uint64_t segment_size, size; /* the rows on disk lie behind the segment, as if they were the last of its pages */
    unsigned char *base; /* the prepared image */
    unsigned char *origin; /* the first of them: base may be another one meanwhile */
    uint8_t *reserved; /* by page: memory is behind it in the prepared image */
    uint8_t *hot; /* by page: has ever differed */
    uint64_t base_key; /* of the prepared image */
    uint64_t *page_keys; /* of its pages; 0: not known yet */
    uint32_t base_calls; /* marks that belong to the state */
    uint32_t runs;
    uint32_t actor_count;
    stage_actor actors[BOARD_ACTORS];
    delta scratch;
} stage;

void stage_open(stage *s, beginning b); /* a new segment with the queues "a" and "limited", the driver in row 0 */
void stage_ready(stage *s); /* the state is complete: this is the prepared image */
void stage_close(stage *s);
void stage_unlink(void); /* only the name: when the driver ends early; in the process that has made it */
/* The prepared image, the driver's private state, the history and the sleepers as they were. */
void stage_restore(stage *s);
/* Is what the survivor knows of each ring's stretches what lies in them? Of rings at rest. */
bool stage_counts_agree(const stage *s);
/* Continue from another image: base becomes the one with these pages; undone by the same call with what it answers. */
void stage_swap(stage *s, delta *d);
/* The pages that differ now. The answer is valid until the next call. */
const delta *stage_delta(stage *s);
/* The key alone, of the pages that have ever differed. */
uint64_t stage_hot_key(stage *s);
void delta_free(delta *d);
void delta_add(delta *d, uint32_t page, const unsigned char *bytes);

/* A process of the state: attaches, does its part, then sleeps, stays, or ends without leaving. */
void stage_actor_start(stage *s, actor_kind kind, void (*part)(act *), bool (*due)(act *));
/* Kill those that are mortal. Back with the prepared image, as another process that holds the same lock. */
void stage_mortals_kill(stage *s);
void stage_mortals_revive(stage *s);
/* Called by a sleeper's part: where it sleeps. */
void stage_actor_sleeps_on(shmq_a32 *word);
void stage_sleeper_lay_down(stage *s, uint32_t actor);
/* A fork that becomes a member of its own, with the handles of the driver bound to it. */
void stage_join_as(act *a, const stage *s, uint8_t who, int pid);
/* Waits until so many sleepers are awake; false: they sleep on in the kernel, and nobody is about to wake them. */
bool stage_sleepers_awake(stage *s, uint32_t count);

/* Rows whose process is dead or alive, by their lock bytes. */
uint32_t stage_rows(const stage *s, bool dead, uint32_t *rows, uint32_t room);
bool stage_structure_is_locked(const stage *s);

/* Where a page is now: in the segment, or of the rows behind it. */
unsigned char *stage_page(const stage *s, uint32_t page);

/* Zeroed memory that all processes of the driver share. */
void *shared_memory(size_t bytes);
/* Zeroed memory for the driver alone: a victim does not need it, and its fork and its end are cheaper without. */
void *own_memory(uint64_t bytes);
void own_memory_end(void *at, uint64_t bytes);

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
