/* The memory that /dev/shm has left, for the files that take some of it. */
#ifndef SHMQ_RESERVATION_H
#define SHMQ_RESERVATION_H

#include "segment/member.h"

/* The bytes that /dev/shm has left, and its size. False: unknown, or it has no limit. */
bool shmq_shm_left(const shmq_member *m, uint64_t *left, uint64_t *size);
/* SHMQ_NO_SPACE, with figures and remedy; `kept`: how many bytes bodies leave there to slots. */
shmq_status shmq_no_space(const shmq_member *m, uint64_t bytes, uint64_t kept);

#endif
