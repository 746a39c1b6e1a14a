/* One slot of a ring: the word that alone decides, and the header of the message in it.
 *
 *   word  63          32 31      21 20        8 7     4 3     0
 *        +--------------+----------+-----------+-------+-------+
 *        |     lap      |   tag    |   owner   | flags | state |
 *        +--------------+----------+-----------+-------+-------+
 *   owner: bit 12 = kind (0 consumer row of this queue, 1 process row of the broker), 12 bits row; 0 = nobody
 *   flags: 1 C carried, 2 R redelivered, 4 W waits (of MOVING: it was HELD, see waiting.h), 8 I intent
 *   tag:   0 at claim, +1 at each acquisition, kept by every other transition of that lap, 0 again at FREE
 *
 *   offset  field          written by                       read by          a stale read costs
 *   0       word           anyone, CAS from the whole word  all              one failed CAS
 *   8       position       claimant                         all              -  (read between two equal words)
 *   16      message_id     claimant                         taker, browser   -
 *   24      enqueued_ns    claimant                         taker, browser   -
 *   32      body           claimant                         taker, sweep     -  0 inline; else block and reference bit
 *   40      body_gen       claimant                         taker, sweep     -
 *   44      body_len       claimant                         taker, browser   -
 *   48      crc            claimant                         taker, browser   -
 *   52      headers_len    claimant                         taker, browser   -
 *   54      delivery       owner before T15, by CAS of bytes 48 to 55   taker   an attempt not counted
 *   56      deaths         whoever counts a death, by CAS of bytes 56 to 63 from the words they read
 *   58      content        claimant                         taker, browser   -
 *   59      priority       claimant                         taker            -
 *   60      props          claimant; bit 5: owner, by CAS   all              which cold fields are valid (SHMQ_PROP_...)
 *   62      death_tag      with deaths                      with deaths      0x8000 | tag of the delivery counted last
 *   64      headers, then body, up to the slot's size
 *
 * Two that count the same death meet in one CAS of bytes 56 to 63: death_tag names the delivery that was counted, so
 * it is counted once, however many repair it and however often they die at it.
 *
 * Zeroed memory is a valid empty ring: FREE at lap 0. */
#ifndef SHMQ_LAYOUT_SLOT_H
#define SHMQ_LAYOUT_SLOT_H

#include "base/atomic.h"
#include "layout/abi.h"

enum shmq_slot_state {
    SHMQ_FREE = 0,
    SHMQ_CLAIMED = 1,
    SHMQ_PENDING = 2, /* being moved here: whether it is here its source decides, which cold.intent names */
    SHMQ_AVAILABLE = 3,
    SHMQ_HELD = 4, /* until cold.not_before_ns */
    SHMQ_OFFERED = 5,
    SHMQ_ACQUIRED = 6,
    SHMQ_LOCKED = 7,
    SHMQ_DEQUEUED = 8,
    SHMQ_QUARANTINED = 9,
    SHMQ_BROKEN = 10,
    SHMQ_MOVING = 11 /* on its way to disk; whether it is here or a row the flow word says, see flow.h */
};

#define SHMQ_FLAG_CARRIED (UINT64_C(1) << 4)
#define SHMQ_FLAG_REDELIVERED (UINT64_C(2) << 4)
#define SHMQ_FLAG_WAITS (UINT64_C(4) << 4)
#define SHMQ_FLAG_INTENT (UINT64_C(8) << 4)
#define SHMQ_FLAGS (UINT64_C(15) << 4)

#define SHMQ_OWNER_PROCESS 0x1000u
#define SHMQ_TAG_MASK 0x7ffu
#define SHMQ_DEATH_COUNTED 0x8000u

static inline uint32_t shmq_word_lap(uint64_t word) { return (uint32_t)(word >> 32); }
static inline uint32_t shmq_word_tag(uint64_t word) { return (uint32_t)(word >> 21) & SHMQ_TAG_MASK; }
static inline uint32_t shmq_word_owner(uint64_t word) { return (uint32_t)(word >> 8) & 0x1fffu; }
static inline uint32_t shmq_word_state(uint64_t word) { return (uint32_t)word & 15u; }
static inline bool shmq_word_carried(uint64_t word) { return (word & SHMQ_FLAG_CARRIED) != 0; }

static inline uint64_t shmq_word(uint32_t lap, uint32_t tag, uint32_t owner, uint64_t flags, uint32_t state) {
    return ((uint64_t)lap << 32) | ((uint64_t)(tag & SHMQ_TAG_MASK) << 21) | ((uint64_t)owner << 8) | flags | state;
}

/* The same word with another state, owner and tag; lap and flags stay. */
static inline uint64_t shmq_word_to(uint64_t word, uint32_t state, uint32_t owner, uint32_t tag) {
    return shmq_word(shmq_word_lap(word), tag, owner, word & SHMQ_FLAGS, state);
}

/* FREE at the next lap. C stays set: it tells the next claimant that the slot's bit in ring.carried is to be cleared. */
static inline uint64_t shmq_word_freed(uint64_t word) {
    return shmq_word(shmq_word_lap(word) + 1, 0, 0, word & SHMQ_FLAG_CARRIED, SHMQ_FREE);
}

/* Laps compare as 32-bit serial numbers: >0 ahead, 0 equal, <0 behind. */
static inline int32_t shmq_lap_ahead(uint64_t word, uint32_t turn) { return (int32_t)(shmq_word_lap(word) - turn); }

/* States in which a slot carries a message that a consumer still may get. */
static inline bool shmq_state_is_entry(uint32_t state) {
    return state == SHMQ_PENDING || state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED ||
           state == SHMQ_ACQUIRED || state == SHMQ_LOCKED || state == SHMQ_MOVING;
}

/* Of these, those that browsers see. */
static inline bool shmq_state_is_seen(uint32_t state) {
    return state == SHMQ_AVAILABLE || state == SHMQ_HELD || state == SHMQ_OFFERED || state == SHMQ_ACQUIRED ||
           state == SHMQ_LOCKED;
}

/* And of these, those that a consumer holds. */
static inline bool shmq_state_is_in_hand(uint32_t state) { return state == SHMQ_ACQUIRED || state == SHMQ_LOCKED; }

typedef struct shmq_slot_shm {
    shmq_a64 word;
    shmq_a64 position;
    uint64_t message_id;
    uint64_t enqueued_ns;
    uint64_t body;
    uint32_t body_gen;
    uint32_t body_len;
    union {
        shmq_a64 summary; /* bytes 48 to 55 as one word, for the CAS that counts an attempt */
        struct {
            uint32_t crc;
            uint16_t headers_len;
            uint16_t delivery;
        };
    };
    union {
        shmq_a64 tally; /* bytes 56 to 63 as one word, for the CAS that counts a death */
        struct {
            uint16_t deaths;
            uint8_t content;
            uint8_t priority;
            uint16_t props;
            uint16_t death_tag;
        };
    };
    unsigned char inline_area[];
} shmq_slot_shm;

#define SHMQ_SLOT_HEADER 64u

SHMQ_SIZE(shmq_slot_shm, 64);
SHMQ_OFFSET(shmq_slot_shm, word, 0);
SHMQ_OFFSET(shmq_slot_shm, position, 8);
SHMQ_OFFSET(shmq_slot_shm, message_id, 16);
SHMQ_OFFSET(shmq_slot_shm, enqueued_ns, 24);
SHMQ_OFFSET(shmq_slot_shm, body, 32);
SHMQ_OFFSET(shmq_slot_shm, body_gen, 40);
SHMQ_OFFSET(shmq_slot_shm, body_len, 44);
SHMQ_OFFSET(shmq_slot_shm, summary, 48);
SHMQ_OFFSET(shmq_slot_shm, crc, 48);
SHMQ_OFFSET(shmq_slot_shm, headers_len, 52);
SHMQ_OFFSET(shmq_slot_shm, delivery, 54);
SHMQ_OFFSET(shmq_slot_shm, deaths, 56);
SHMQ_OFFSET(shmq_slot_shm, content, 58);
SHMQ_OFFSET(shmq_slot_shm, priority, 59);
SHMQ_OFFSET(shmq_slot_shm, props, 60);
SHMQ_OFFSET(shmq_slot_shm, death_tag, 62);

#define SHMQ_ONE_ATTEMPT (UINT64_C(1) << 48)

/* slot.summary: crc in bits 0 to 31, head_len in bits 32 to 47, delivery in bits 48 to 63. */
static inline uint64_t shmq_summary(uint32_t crc, uint16_t headers_len) { return crc | (uint64_t)headers_len << 32; }
static inline uint16_t shmq_summary_headers_len(uint64_t summary) { return (uint16_t)(summary >> 32); }
static inline uint16_t shmq_summary_delivery(uint64_t summary) { return (uint16_t)(summary >> 48); }

/* slot.body: bits 0 to 39 block offset / 64, bits 40 to 47 reference bit. Offset 0 is the segment header, never a block. */
static inline uint64_t shmq_body_offset(uint64_t body) { return (body & ((UINT64_C(1) << 40) - 1)) << 6; }
static inline uint32_t shmq_body_bit(uint64_t body) { return (uint32_t)(body >> 40) & 0xffu; }
static inline uint64_t shmq_body_ref(uint64_t offset, uint32_t bit) { return (offset >> 6) | ((uint64_t)bit << 40); }

/* Cold record, 64 bytes a slot at ring.cold, which is made when the first message of a ring needs one (cold.c). A field says
 * something only where its bit in slot.props is set.
 *
 *   offset  field          written by                       read by          a stale read costs
 *   32      expires_ns     claimant                         all              -
 *   40      not_before_ns  claimant, owner                  all              -  when this state ends: HELD, ACQUIRED (lease)
 *   56      intent         claimant                         reaper           -  of a move: where it comes from (put/move.h)
 *   0       source         claimant, with intent            reaper           -  the position there
 *   0       receipt        claimant, of an immediate put    who drops it     -  of that put (receipt.h)
 *   48      group          claimant                         takers, recheckers -  1 + slot of the table of groups
 *   8       back           mover, in a front ring           takers           -  its place for life
 *   16      ordinal ...    mover, in a front ring           next mover       -  which `pulled` comes with it; bytes at 24
 *   0       fetched        mover, in a front ring           next mover       -  which `fetched` comes with it
 *   56      fetched_bytes  mover, in a front ring           next mover       -  headers and bodies of these
 *   16      ordinal        mover, of what waited on disk    next mover       -  the key of its row; `fetched` counts those
 *   16      ordinal ...    CAS, in the first back ring      see group.h      -  the two words of a place for groups
 * Times are monotonic. */
#define SHMQ_PROP_EXPIRES (1u << 4)
#define SHMQ_PROP_NOT_BEFORE (1u << 5)
#define SHMQ_PROP_GROUP (1u << 6)
#define SHMQ_PROP_INTENT (1u << 7)
#define SHMQ_PROP_IMMEDIATE (1u << 8)
#define SHMQ_PROP_FETCHED (1u << 9) /* in a front ring: it came from disk before what lies below it */
#define SHMQ_PROP_NEXT (1u << 10) /* fetched by one that wants all: no earlier one of its group is on disk */
#define SHMQ_PROP_WAITED (1u << 11) /* fetched from among the waiting rows */
#define SHMQ_PROPS_KNOWN                                                                                \
    (SHMQ_PROP_FETCHED | SHMQ_PROP_NEXT | SHMQ_PROP_WAITED | SHMQ_PROP_EXPIRES | SHMQ_PROP_NOT_BEFORE | \
     SHMQ_PROP_GROUP | SHMQ_PROP_INTENT | SHMQ_PROP_IMMEDIATE)
typedef struct shmq_cold_shm {
    union {
        uint64_t source;  /* of a move */
        uint64_t receipt; /* of an immediate put */
        uint64_t fetched; /* of an entry in a front ring */
    };
    uint64_t back;    /* of an entry in a front ring: its position in the back ring, which is its place for life */
    shmq_a64 ordinal; /* ... and what `pulled` is once it has come in */
    shmq_a64 ordinal_bytes; /* ... and what `pulled_bytes` is then */
    shmq_a64 expires_ns;
    shmq_a64 not_before_ns;
    uint64_t group;
    union {
        uint64_t intent;
        uint64_t fetched_bytes; /* of an entry in a front ring */
    };
} shmq_cold_shm;

SHMQ_SIZE(shmq_cold_shm, 64);
SHMQ_OFFSET(shmq_cold_shm, source, 0);
SHMQ_OFFSET(shmq_cold_shm, receipt, 0);
SHMQ_OFFSET(shmq_cold_shm, fetched, 0);
SHMQ_OFFSET(shmq_cold_shm, back, 8);
SHMQ_OFFSET(shmq_cold_shm, ordinal, 16);
SHMQ_OFFSET(shmq_cold_shm, ordinal_bytes, 24);
SHMQ_OFFSET(shmq_cold_shm, expires_ns, 32);
SHMQ_OFFSET(shmq_cold_shm, not_before_ns, 40);
SHMQ_OFFSET(shmq_cold_shm, group, 48);
SHMQ_OFFSET(shmq_cold_shm, intent, 56);
SHMQ_OFFSET(shmq_cold_shm, fetched_bytes, 56);

#endif
