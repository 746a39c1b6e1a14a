#include "segment/segment_layout.h"
#include "base/crc32c.h"
#include "layout/block.h"
#include "layout/queue.h"
#include "layout/slot.h"
#include "segment/inspect.h"

#include <ctype.h>
#include <fcntl.h>
#include <unistd.h>

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

static uint64_t place(uint64_t *at, uint64_t bytes) {
    uint64_t offset = *at;
    *at = round_up(offset + bytes, 4096);
    return offset;
}

static void lay_out(uint32_t granule_count, shmq_layout *layout) {
    uint64_t at = sizeof(shmq_segment_shm);
    layout->granule_count = granule_count;
    layout->class_bitmap_bytes = round_up(((uint64_t)granule_count + 7) / 8, SHMQ_APART);
    layout->processes = place(&at, sizeof(shmq_process_shm) * SHMQ_PROCESS_ROWS);
    layout->directory = place(&at, sizeof(shmq_directory_shm) * SHMQ_QUEUES);
    layout->granules = place(&at, 8 * (uint64_t)granule_count);
    layout->class_bitmaps = place(&at, layout->class_bitmap_bytes * SHMQ_CLASSES);
    layout->slabs = place(&at, SHMQ_SLAB_BYTES * (uint64_t)granule_count);
    layout->data = round_up(at, SHMQ_GRANULE_BYTES);
}

bool shmq_layout_of(uint64_t size, shmq_layout *layout) {
    if (size < SHMQ_MEMORY_MIN || size > SHMQ_MEMORY_MAX || size % SHMQ_GRANULE_BYTES != 0) {
        return false;
    }
    layout->size = size;
    /* The loop counts down: the estimate leaves out all fixed parts and roundings, so it is never too low. */
    uint32_t count = (uint32_t)(size / (SHMQ_GRANULE_BYTES + SHMQ_SLAB_BYTES + 8));
    for (lay_out(count, layout); layout->data + SHMQ_GRANULE_BYTES * (uint64_t)count > size; lay_out(count, layout)) {
        count -= 1;
    }
    return true;
}

typedef struct hash {
    uint64_t value;
} hash;

static void hash_number(hash *h, uint64_t number) {
    for (int byte = 0; byte < 8; byte++) {
        h->value = (h->value ^ (number & 0xff)) * UINT64_C(0x100000001b3);
        number >>= 8;
    }
}

/* Sizes and offsets as the compiler of this build has them, and the limits on which other processes' arithmetic
 * relies. */
static const uint64_t identity[] = {
    SHMQ_LAYOUT_VERSION,
    SHMQ_APART,
    SHMQ_PROCESS_ROWS,
    SHMQ_QUEUES,
    SHMQ_CONSUMER_ROWS,
    SHMQ_ROWS_A_CHUNK,
    SHMQ_NAME_MAX,
    SHMQ_PATH_MAX,
    SHMQ_HEADERS_MAX,
    SHMQ_BODY_MAX,
    SHMQ_SLOT_MIN,
    SHMQ_SLOT_MAX,
    SHMQ_RING_MIN,
    SHMQ_RING_MAX,
    SHMQ_CELLS,
    SHMQ_PAGE_SHIFT,
    SHMQ_GRANULE_SHIFT,
    SHMQ_SLAB_BYTES,
    SHMQ_SLAB_BLOCKS,
    SHMQ_PINS,
    SHMQ_COUNTER_CHUNKS,
    SHMQ_RECEIPTS,
    SHMQ_COUNTERS_A_CHUNK,
    SHMQ_CLASSES,
    SHMQ_ENTRY_BITS,
    SHMQ_VIEW_BITS,
    SHMQ_POSITION_BITS,
    SHMQ_SETTINGS,
    SHMQ_CHUNKS,
    SHMQ_DEATH_RECORDS,
    SHMQ_VOLUNTEERS,
    SHMQ_SLOT_HEADER,
    sizeof(shmq_segment_shm),
    offsetof(shmq_segment_shm, header_crc),
    offsetof(shmq_segment_shm, processes),
    offsetof(shmq_segment_shm, clock_offset_ns),
    offsetof(shmq_segment_shm, clock_asleep_ns),
    offsetof(shmq_segment_shm, clock_steps),
    SHMQ_CLOCK_STEPS,
    offsetof(shmq_segment_shm, directory_device),
    offsetof(shmq_segment_shm, directory_inode),
    offsetof(shmq_segment_shm, directory_uuid),
    offsetof(shmq_segment_shm, memory),
    offsetof(shmq_segment_shm, path),
    offsetof(shmq_segment_shm, state),
    offsetof(shmq_segment_shm, message_ids),
    offsetof(shmq_segment_shm, dirty),
    offsetof(shmq_segment_shm, memory_full),
    offsetof(shmq_segment_shm, flushes),
    offsetof(shmq_segment_shm, kept_block),
    offsetof(shmq_segment_shm, watch),
    offsetof(shmq_segment_shm, watch_wake),
    offsetof(shmq_segment_shm, watch_looked),
    offsetof(shmq_segment_shm, volunteers),
    offsetof(shmq_segment_shm, damage),
    offsetof(shmq_segment_shm, death_records),
    sizeof(shmq_death_record_shm),
    sizeof(shmq_directory_shm),
    offsetof(shmq_directory_shm, page),
    offsetof(shmq_directory_shm, name_hash),
    sizeof(shmq_process_shm),
    offsetof(shmq_process_shm, pins),
    offsetof(shmq_process_shm, counters),
    offsetof(shmq_process_shm, inside),
    offsetof(shmq_process_shm, ops),
    offsetof(shmq_process_shm, log_io),
    sizeof(shmq_process_page_shm),
    offsetof(shmq_process_page_shm, chunks),
    offsetof(shmq_process_page_shm, receipts),
    sizeof(shmq_pin_shm),
    sizeof(shmq_counters_shm),
    offsetof(shmq_counters_shm, died),
    offsetof(shmq_counters_shm, moving),
    sizeof(shmq_queue_shm),
    offsetof(shmq_queue_shm, name),
    offsetof(shmq_queue_shm, given),
    offsetof(shmq_queue_shm, state),
    offsetof(shmq_queue_shm, ring),
    offsetof(shmq_queue_shm, sleepers),
    offsetof(shmq_queue_shm, chunks),
    offsetof(shmq_queue_shm, selectors),
    offsetof(shmq_consumer_shm, looked),
    offsetof(shmq_queue_shm, limited),
    offsetof(shmq_queue_shm, count),
    offsetof(shmq_queue_shm, weight),
    offsetof(shmq_queue_shm, settings),
    sizeof(shmq_settings_shm),
    offsetof(shmq_settings_shm, retry_delay_ns),
    offsetof(shmq_settings_shm, overflow),
    offsetof(shmq_settings_shm, given_by),
    offsetof(shmq_settings_shm, dead_letter_names),
    sizeof(shmq_ring_shm),
    offsetof(shmq_ring_shm, slots),
    offsetof(shmq_segment_shm, turns),
    offsetof(shmq_segment_shm, slab_high),
    offsetof(shmq_segment_shm, granules_used),
    offsetof(shmq_segment_shm, used_bytes),
    offsetof(shmq_ring_shm, carried),
    offsetof(shmq_ring_shm, tail),
    offsetof(shmq_ring_shm, laid),
    offsetof(shmq_ring_shm, head),
    offsetof(shmq_ring_shm, epoch),
    offsetof(shmq_ring_shm, cells),
    offsetof(shmq_ring_shm, full),
    offsetof(shmq_ring_shm, flow),
    offsetof(shmq_queue_shm, unfinished),
    offsetof(shmq_queue_shm, unswept),
    offsetof(shmq_queue_shm, turns_begun),
    offsetof(shmq_queue_shm, chances),
    sizeof(shmq_sleepers_shm),
    sizeof(shmq_consumer_shm),
    offsetof(shmq_consumer_shm, wake),
    sizeof(shmq_slot_shm),
    offsetof(shmq_slot_shm, body),
    offsetof(shmq_slot_shm, crc),
    offsetof(shmq_slot_shm, tally),
    sizeof(shmq_cold_shm),
    offsetof(shmq_cold_shm, not_before_ns),
    offsetof(shmq_ring_shm, due),
    offsetof(shmq_segment_shm, due),
    offsetof(shmq_segment_shm, key_check),
    sizeof(shmq_slab_shm),
    offsetof(shmq_slab_shm, block),
    sizeof(shmq_block_shm),
};

uint64_t shmq_fingerprint(void) {
    hash h = {UINT64_C(0xcbf29ce484222325)};
    for (size_t i = 0; i < sizeof(identity) / sizeof(identity[0]); i++) {
        hash_number(&h, identity[i]);
    }
    return h.value;
}

uint32_t shmq_header_crc(const shmq_segment_shm *header) {
    const unsigned char *bytes = (const unsigned char *)header;
    uint32_t crc = shmq_crc32c(0, bytes, offsetof(shmq_segment_shm, header_crc));
    size_t from = offsetof(shmq_segment_shm, processes);
    return shmq_crc32c(crc, bytes + from, offsetof(shmq_segment_shm, state) - from);
}

static int digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

shmq_status shmq_boot_id(uint8_t id[16]) {
    const char *path = "/proc/sys/kernel/random/boot_id";
    char text[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return shmq_fail_errno("cannot open %s", path);
    }
    ssize_t length = read(fd, text, sizeof(text));
    close(fd);
    int digits = 0;
    for (ssize_t i = 0; i < length && digits < 32; i++) {
        int value = digit(text[i]);
        if (value >= 0) {
            id[digits / 2] = (uint8_t)(digits % 2 == 0 ? value << 4 : id[digits / 2] | value);
            digits += 1;
        }
    }
    return digits == 32 ? SHMQ_OK : shmq_fail(SHMQ_OS, "%s is not readable as an id: %zd bytes", path, length);
}
