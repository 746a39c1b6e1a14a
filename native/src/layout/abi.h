/* Sizes, limits and checks that every shared structure is built from.
 *
 * Everything in the segment is little endian, made of fixed-width fields, and refers to other places by 64-bit
 * offsets from the segment's first byte. A process that was built with other numbers computes another fingerprint
 * (SHMQ_FINGERPRINT) and refuses to attach. */
#ifndef SHMQ_LAYOUT_ABI_H
#define SHMQ_LAYOUT_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHMQ_MAGIC UINT64_C(0x31514d48530a1a89) /* bytes 89 1a 0a "SHMQ1": not text, damaged by text transfer */
#define SHMQ_LAYOUT_VERSION 8u
#define SHMQ_BYTE_ORDER_MARK 0x01020304u

/* Two lines, not one: adjacent-line prefetch on x86-64 couples pairs, and aarch64 has lines of 128 bytes. */
#define SHMQ_APART 128

#define SHMQ_PROCESS_ROWS 1024u   /* members of one broker at a time; an owner field has 12 bits for a row */
#define SHMQ_QUEUES 4096u         /* queues of one broker */
#define SHMQ_CONSUMERS 1024u      /* of one queue */
#define SHMQ_CONSUMER_ROWS 1088u  /* of consumers, and of threads that wait without one; row 0 is never used */
#define SHMQ_ROWS_A_CHUNK 64u     /* consumer rows that are laid out at a time */
#define SHMQ_NAME_MAX 200u        /* bytes of a queue name */
#define SHMQ_PATH_MAX 1024u       /* bytes of a directory's path that the segment remembers */
#define SHMQ_HEADERS_MAX 65535u      /* bytes of encoded headers */
#define SHMQ_BODY_MAX (UINT64_C(1) << 30)
#define SHMQ_SLOT_MIN 128u
#define SHMQ_SLOT_MAX 4096u
#ifndef SHMQ_RING_MIN /* the simulator of weak memory makes rings of four */
#define SHMQ_RING_MIN 1024u       /* slots of a product's ring: laps of 32 bits reach far enough from here on */
#endif
#define SHMQ_RING_MAX (1u << 24)
#define SHMQ_GROUPS 256u /* places for groups of messages in the page of a queue */
#define SHMQ_GROUPS_MORE \
    65536u /* ... with the cold records of its first ring: as many as it has slots, so many at most */
#define SHMQ_LEVELS_MAX 10u /* levels of priority of a queue */
#define SHMQ_RINGS_MAX (2 * SHMQ_LEVELS_MAX) /* a back and a front ring of each */
#define SHMQ_CELLS 64u /* rewind cells of a ring: releases that a taker may sleep through and still be exact */

#define SHMQ_PAGE_SHIFT 13u /* 8 KiB: unit of queue pages, consumer chunks, process pages, counter chunks */
#define SHMQ_PAGE_BYTES (1u << SHMQ_PAGE_SHIFT)
#define SHMQ_GRANULE_SHIFT 16u /* 64 KiB: unit of reservation, of rings and of slabs */
#define SHMQ_GRANULE_BYTES (UINT64_C(1) << SHMQ_GRANULE_SHIFT)
#define SHMQ_PAGES_A_GRANULE (1u << (SHMQ_GRANULE_SHIFT - SHMQ_PAGE_SHIFT))
#define SHMQ_SLAB_BYTES 4096u /* headers of the blocks of one slab */
#define SHMQ_SLAB_BLOCKS 248u
#define SHMQ_MEMORY_MIN (UINT64_C(8) << 20)
#define SHMQ_MEMORY_MAX (UINT64_C(256) << 30)
/* Room of a segment beyond its memory: 64 times as much, or as many times as the memory has quarters of a MiB; 16 GiB at most. A sixteenth of the memory is what a queue without
 * maxsize may become, and what bodies leave to the slots of all queues. */
#define SHMQ_ROOM_FACTOR 64u
#define SHMQ_ROOM_UNIT (UINT64_C(256) << 10)
#define SHMQ_ROOM_MOST (UINT64_C(16) << 30)
#define SHMQ_RING_SHARE 16u
/* Of a quarter of it they leave what front rings want as soon as their queues flow to disk. */
#define SHMQ_FRONTS_SHARE 4u

#define SHMQ_PINS 256u /* views of one process at a time; one more view is a copy */
#define SHMQ_RECEIPTS 64u /* puts of one process at a time that wait until a consumer takes their message */
#define SHMQ_COUNTER_CHUNKS 64u
#define SHMQ_COUNTERS_A_CHUNK 64u

#define SHMQ_OFFSET(type, field, at) \
    static_assert(offsetof(type, field) == (at), #type "." #field " must be at offset " #at)
#define SHMQ_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " must have " #bytes " bytes")

static_assert(SHMQ_PROCESS_ROWS <= 4096, "an owner field has 12 bits for a row");
static_assert(SHMQ_CONSUMER_ROWS <= 4096, "an owner field has 12 bits for a row");
static_assert(SHMQ_CONSUMER_ROWS % SHMQ_ROWS_A_CHUNK == 0, "rows are laid out in whole chunks");
static_assert(SHMQ_COUNTER_CHUNKS * SHMQ_COUNTERS_A_CHUNK == SHMQ_QUEUES, "each queue has its counters");
static_assert(SHMQ_PAGES_A_GRANULE <= 8, "the map has 8 bits for the pages of a granule");

#endif
