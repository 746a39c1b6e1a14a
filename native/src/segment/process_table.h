/* How a process takes a row of the process table, and gives it back. */
#ifndef SHMQ_PROCESS_TABLE_H
#define SHMQ_PROCESS_TABLE_H

#include "segment/member.h"

#define SHMQ_NO_ROW UINT32_MAX

/* Takes a LIVE row for this process, with its page, and its lock byte held by m->lock_fd. Reaps dead members when the
 * table is full. SHMQ_LIMIT, SHMQ_NO_SPACE, SHMQ_FULL_MEMORY, SHMQ_INTERRUPTED, SHMQ_GONE (an unlinked segment). */
shmq_status shmq_row_take(shmq_member *m, bool allow_unlinked);
/* The row becomes CLOSING, then FREE with the next generation. The lock byte goes with the descriptor, which the caller
 * closes. */
void shmq_row_give(shmq_member *m);
/* Does any process hold a byte of the rows [from, to)? Asked through another description, so that this process's own
 * byte counts too. */
bool shmq_rows_locked(const shmq_member *m, uint32_t from, uint32_t to);
/* The process page of a row, checked; NULL: it has none, or the offset is damaged. */
shmq_process_page_shm *shmq_process_page(const shmq_member *m, uint32_t row);

#endif
