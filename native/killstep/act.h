/* The operations of a process at work, as the language binding composes them from the core's calls, each with its marks
 * in the history. Bodies carry their value: a number that is put once and never again. */
#ifndef SHMQ_KILLSTEP_ACT_H
#define SHMQ_KILLSTEP_ACT_H

#include "blocks/block.h"
#include "queue/handle.h"
#include "ring/delivery.h"
#include "board.h"

#define QUEUE_A 0u /* no limit, 1,024 slots */
#define QUEUE_LIMITED 1u /* maxsize 4 */
#define QUEUE_EXTRA 2u /* made by the operation itself */
#define ACT_QUEUES 3u
#define ACT_HELD 8u
/* In a queue of three levels the hundreds of a value say where it goes: 0 the last level, 1 the second, 2 the first. */
#define MIDDLE 100u
#define HIGH 200u
#define BLOCK_BYTES 300u /* more than a slot of 192 holds */
#define SMALL_BYTES 8u
#define PATIENCE_NS UINT64_C(10000000) /* short: who waits for it is stepped through all of his looks */

typedef struct act {
    shmq_member *m;
    shmq_queue *q[ACT_QUEUES];
    uint8_t who;
    shmq_status last; /* of the last call */
    uint32_t row; /* a consumer row of ours; 0: none */
    unsigned held_count;
    struct {
        shmq_delivery d;
        uint64_t value;
        unsigned queue;
    } held[ACT_HELD];
    uint32_t pin;
    uint64_t pinned_bytes;
    shmq_block loan;
    uint64_t taken; /* value of the last get or receive */
    shmq_ticket ticket; /* of the limited queue's line */
} act;

/* Fills the buffer of a body before it is needed, so that the traced part only copies. */
void act_body(uint64_t value, uint32_t bytes);
/* Which buffers are filled; else a victim's steps would depend on the messages that the driver has met before. */
void act_bodies_keep(void);
void act_bodies_restore(void);
void act_put(act *a, unsigned queue, uint64_t value, uint32_t bytes, uint64_t until_ns);
void act_put_many(act *a, unsigned queue, uint64_t first, uint32_t count);
/* SHMQ_OK: a->taken. */
void act_get(act *a, unsigned queue, uint64_t until_ns);
/* By the process itself, or by a->row where that is not 0. */
void act_receive(act *a, unsigned queue, uint64_t until_ns);
/* The first that this subscription wants. */
void act_receive_by(act *a, unsigned queue, struct shmq_subscription *by, uint64_t until_ns);
/* Writes into the history, and to the messages in hand, that an acquisition ended so. */
void act_received(act *a, unsigned queue, shmq_status status, const shmq_delivery *d);
void act_settle(act *a); /* the oldest in hand */
void act_release(act *a, bool attempt);
void act_release_all(act *a); /* all in hand, of one queue, at once */
void act_find_out(act *a); /* lets go of what was taken from it; no call of the history */
void act_loan(act *a, uint32_t bytes);
void act_commit(act *a, unsigned queue, uint64_t value);
void act_abandon(act *a);
void act_view(act *a); /* pin the body of the oldest in hand */
void act_view_end(act *a);
void act_row_open(act *a, unsigned queue);
void act_row_close(act *a, unsigned queue);
void act_declare(act *a, unsigned queue, const char *name, bool temporary);
void act_declare_levels(act *a, unsigned queue, const char *name, uint32_t levels);
void act_delete(act *a, unsigned queue);
void act_purge(act *a, unsigned queue);
void act_steal(act *a, unsigned queue, uint64_t position);
void act_browse(act *a, unsigned queue);
void act_browse_wait(act *a, unsigned queue, uint64_t until_ns);
void act_census(act *a, unsigned queue);
void act_join(act *a, unsigned queue, uint64_t until_ns);
void act_shut_down(act *a, unsigned queue);
void act_drop_oldest(act *a, unsigned queue);
void act_limit_bytes(act *a, unsigned queue, uint64_t most);
void act_alter(act *a, unsigned queue, uint64_t maxsize);
void act_reap(act *a);
void act_sweep_blocks(act *a);
void act_rebuild(act *a);
void act_attach(act *a, const char *name);
void act_leave(act *a);

/* For the operations in other files: marks of the history, bodies, what is in hand. */
void act_begin(const act *a, uint8_t kind, unsigned queue, uint64_t value);
void act_end(act *a, uint8_t kind, unsigned queue, uint64_t value, shmq_status status);
void act_end_delivery(act *a, uint8_t kind, unsigned queue, uint64_t value, const shmq_delivery *d);
/* UINT64_MAX: not a body of ours, or not all of it. */
uint64_t act_value_of(const shmq_delivery *d);
const unsigned char *act_body_of(uint64_t value, uint32_t bytes);
void act_forget_oldest(act *a);

#endif
