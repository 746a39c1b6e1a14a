/* A consumer's selector beside its row, and the look of a notifier for a sleeper.
 *
 * A consumer leaves the program of its selector with its row. Each page of programs belongs to a chunk of 64 rows, and
 * comes with the first consumer of them that has a selector. A notifier that meets the idle bit of such a row runs the
 * program over what has come since the sleeper's own last look. If it finds nothing, the row's `progress` says from
 * then on that everything was looked at, and the sleeper sleeps on. All that comes later makes another version.
 *
 * The notifier wakes the sleeper in each case of doubt: it has no program (too long, or there was no memory for a page), more than SHMQ_LOOKED_FOR
 * entries have come, one of them is a claim, or is damaged, the queue has levels or has flowed. A wake in vain passes the wake on. */
#ifndef SHMQ_SELECTORS_ROW_SELECTOR_H
#define SHMQ_SELECTORS_ROW_SELECTOR_H

#include "selectors/selector.h"
#include "selectors/subscription.h"

#define SHMQ_ROW_SELECTOR_BYTES (SHMQ_PAGE_BYTES / SHMQ_ROWS_A_CHUNK)
#define SHMQ_LOOKED_FOR 64u /* entries: a sleeper that looks itself costs as much */

/* Is the selector true for this message? `d` may be torn, as with shmq_selects. */
bool shmq_delivery_selected(const shmq_selector *s, const shmq_ring *r, const shmq_delivery *d);
/* Leaves the selector's program with a row that is being opened; NULL: none. The caller holds the structure lock. */
void shmq_row_selector_leave(shmq_queue *q, uint32_t row, const shmq_selector *s);
/* A consumer has looked at everything: it says how far its cursor is, before it publishes its progress. */
void shmq_row_looked(const shmq_queue *q, shmq_consumer_shm *consumer, shmq_subscription *by);
/* A consumer wakes: its cursor goes on to where notifiers have looked for it. */
void shmq_row_catch_up(shmq_queue *q, shmq_consumer_shm *consumer, shmq_subscription *by);
/* True: nothing has come that the sleeper of this row wants, and its progress says so. False: it wants something, or may. */
bool shmq_look_for(shmq_queue *q, uint32_t row);
/* At the end of a handle; and in a child, of a handle that its parent made. */
void shmq_row_selectors_free(shmq_queue *q);
void shmq_row_selectors_reset(shmq_queue *q);

#endif
