/* Where the regions of a segment of a given size lie, and what identifies this build's layout. The creator writes it; a
 * process that attaches computes it anew and compares, so that it trusts no offset of the segment. */
#ifndef SHMQ_SEGMENT_LAYOUT_H
#define SHMQ_SEGMENT_LAYOUT_H

#include "layout/segment.h"

typedef struct shmq_layout {
    uint64_t size;
    uint64_t processes;
    uint64_t directory;
    uint64_t granules;
    uint64_t class_bitmaps;
    uint64_t class_bitmap_bytes; /* of one class */
    uint64_t slabs; /* all that lies before it is reserved at creation */
    uint64_t data;
    uint32_t granule_count;
} shmq_layout;

/* False: no segment has this size. */
bool shmq_layout_of(uint64_t size, shmq_layout *layout);
/* FNV-1a over every size, offset and limit of the shared structures. */
uint64_t shmq_fingerprint(void);
/* CRC-32C of the header's constant parts: bytes 0 to 119 and 128 to 1279. */
uint32_t shmq_header_crc(const shmq_segment_shm *header);

#endif
