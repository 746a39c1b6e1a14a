/* Taking and giving back a row of the process table. */
#ifndef SHMQ_PROCESS_TABLE_H
#define SHMQ_PROCESS_TABLE_H

#include "shmq/member.h"

#define SHMQ_NO_ROW UINT32_MAX

/* A LIVE row for this process, with its lock byte held by m->lock_fd and its page. Reaps dead members when the table is
 * full. SHMQ_LIMIT, SHMQ_NO_SPACE, SHMQ_FULL_MEMORY, SHMQ_INTERRUPTED, SHMQ_GONE (an unlinked segment). */
shmq_status shmq_row_take(shmq_member *m, bool allow_unlinked);
/* CLOSING, then FREE with the next generation. The lock byte goes with the descriptor, which the caller closes. */
void shmq_row_give(shmq_member *m);
/* Does somebody hold a byte of the rows [from, to)? Asked through a description of its own, so that our own counts too. */
bool shmq_rows_locked(const shmq_member *m, uint32_t from, uint32_t to);
/* The checked process page of a row; NULL: none, or damaged. */
shmq_process_page_shm *shmq_process_page(const shmq_member *m, uint32_t row);

#endif
