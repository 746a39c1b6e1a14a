/* Size classes of blocks: their bytes, and their slabs. */
#ifndef SHMQ_SEGMENT_BLOCK_CLASS_H
#define SHMQ_SEGMENT_BLOCK_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a block of this class; classes are 0 to SHMQ_CLASSES-1, growing by a third or a half. */
uint64_t shmq_class_bytes(uint32_t size_class);
/* Smallest class that holds so many bytes; SHMQ_CLASSES: none does. */
uint32_t shmq_class_of(uint64_t bytes);
/* How many granules a slab of this class has, and how many blocks. */
uint32_t shmq_class_granules(uint32_t size_class);
uint32_t shmq_class_count(uint32_t size_class);

#endif
