/* Size classes: sixteen whose blocks are at most a granule. Then come classes of one block a slab, in whole granules:
 * 2^k and 1.5 * 2^k. 21760 is a third of a granule, so that no byte of it is lost. */
#include "segment/block_class.h"
#include "layout/block.h"

#define G(n) ((n) * SHMQ_GRANULE_BYTES)

static const uint64_t class_bytes[SHMQ_CLASSES] = {
    256,    384,     512,     768,     1024,    1536,    2048,    3072,    4096,     6144,     8192,
    12288,  16384,   21760,   32768,   65536,   G(2),    G(3),    G(4),    G(6),     G(8),     G(12),
    G(16),  G(24),   G(32),   G(48),   G(64),   G(96),   G(128),  G(192),  G(256),   G(384),   G(512),
    G(768), G(1024), G(1536), G(2048), G(3072), G(4096), G(6144), G(8192), G(12288), G(16384),
};

static const uint8_t class_count[SHMQ_CLASSES] = {
    248, 170, 128, 85, 64, 42, 32, 21, 16, 10, 8, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1,
    1,   1,   1,   1,  1,  1,  1,  1,  1,  1,  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

uint64_t shmq_class_bytes(uint32_t size_class) { return size_class < SHMQ_CLASSES ? class_bytes[size_class] : 0; }

uint32_t shmq_class_count(uint32_t size_class) { return size_class < SHMQ_CLASSES ? class_count[size_class] : 0; }

uint32_t shmq_class_granules(uint32_t size_class) {
    uint64_t bytes = shmq_class_bytes(size_class);
    return (uint32_t)((bytes + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT);
}

uint32_t shmq_class_of(uint64_t bytes) {
    uint32_t low = 0, high = SHMQ_CLASSES;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (class_bytes[middle] < bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
