/* Flow to disk: the words of a level that says what of it is on disk, and the mover's turns. See docs/protocol-flow.md.
 *
 * A *row* is an entry on disk; its key is its place, the position in the back ring that it has for life. A back ring's `flow`
 * word holds P and whether rows may be there: entries at or above P are in the back ring, rows are the keys in [low, P), and what
 * lies below `low` is in the front ring, or the purger passed it in the back ring since a consumer has had it.
 *
 * Only the mover, which holds the mover's lock, writes these words, and makes T19 to T22. A process tries the lock, and never waits. */
#ifndef SHMQ_FLOW_FLOW_H
#define SHMQ_FLOW_FLOW_H

#include "blocks/block.h"
#include "flow/row_counts.h"
#include "flow/turn.h"
#include "queue/level.h"
#include "ring/delivery.h"

struct shmq_cipher;

#define SHMQ_TURN_ENTRIES 1024u /* of one turn: other takers and producers wait for it */
#define SHMQ_TURN_BYTES (UINT64_C(1) << 20)
#define SHMQ_FILE_ROWS 8192u /* of one write, at most: waiting rows are many, so that files of them are few */

#define SHMQ_UNSWEPT_ROWS UINT32_C(0xffff) /* of `unswept`: the levels where rows may be that are none */
#define SHMQ_UNMARKED (SHMQ_UNSWEPT_ROWS + 1) /* ... where what has waited may have come in without its mark */

#define SHMQ_FLOW_SHARE 64u

/* Bytes that a queue has in memory of what is next to be taken, as it begins to flow, and what a turn brings back: a part of the broker's
 * memory, so that queues without consumers leave some to others. */
static inline uint64_t shmq_flow_share(const shmq_member *m) {
    uint64_t share = m->memory / SHMQ_FLOW_SHARE;
    return share < SHMQ_TURN_BYTES ? share : SHMQ_TURN_BYTES;
}

static inline uint64_t shmq_flow_word(uint64_t place, bool on) { return place << 1 | (on ? SHMQ_FLOWED : 0); }

/* A row as the backing keeps it: the bytes are its own format (row.c), with a checksum. */
typedef struct shmq_row {
    uint64_t place;
    const unsigned char *bytes; /* NULL: the inhaler fetched it before those below it, and erased it */
    uint64_t length;
    uint64_t enqueued_ns, expires_ns; /* 0: never. Said by who writes it; what was read has them in its bytes */
    bool tried; /* it has failed, or died with a consumer. As these */
} shmq_row;

/* The facts about a row that a process knows without a look at the row's bytes. */
typedef struct shmq_row_life {
    uint64_t place, length;
    uint64_t enqueued_ns, expires_ns; /* as it was written */
    uint64_t first, at, mark; /* the backing's own: where it has this row */
    bool gone; /* it was fetched, and is here no more */
} shmq_row_life;

/* A backing keeps rows. The mover of that queue makes all calls, one at a time. Each answers SHMQ_OK, or why it failed;
 * then all rows in [low, P) are as they were. The next mover, in whichever process, sees all that one has written or
 * erased; a mover may die in any call. native/tests/backing_contract.h holds each store to it. */
typedef struct shmq_backing {
    void *context;
    /* One transaction: rows with keys at or above `from` and below `low` are deleted, if there may be some (`sweeps`), then these are
     * put, whose keys are at or above `from`, in order: all of them, or none. Without room: SHMQ_NO_SPACE. */
    shmq_status (*write)(void *context, bool sweeps, uint64_t low, uint64_t from, const shmq_row *rows, uint32_t count);
    /* The first rows with keys in [from, below), in their order: at most *count of them, and no more than `bytes`
     * beyond the first. The first comes whatever it has. Their bytes stay until the next call. One that was erased has
     * no bytes, or is not there. One that was changed may come: its own checksum says so. Rows that make no sense are
     * passed: ordinals say how many they were. Rows that are there and cannot be read are a failure, not passed.
     * `erased`: how many were, in all of the level's life; another number than the last one: others have erased some.
     * Needs no room. */
    shmq_status (*read)(void *context, uint64_t erased, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                        uint32_t *count);
    /* The lives of the rows with keys in [from, below): the first ones in order, at most *count, those that are gone
     * among them or not. 0: there are none. Needs no room, nor the key of encrypted rows. Rows that make no sense are
     * passed. */
    shmq_status (*list)(void *context, uint64_t from, uint64_t below, shmq_row_life *lives, uint32_t *count);
    /* These rows of one write, as it listed them, and no others, whatever else the write has: as `read` gives them. SHMQ_NOT_FOUND: the
     * write is gone. NULL: what `read` gives stays until something is written. */
    shmq_status (*pick)(void *context, const shmq_row_life *lives, shmq_row *rows, uint32_t count);
    /* The same are gone, as by `erase` of each. NULL: `erase` is as good. */
    shmq_status (*drop)(void *context, const shmq_row_life *lives, uint32_t count);
    /* The row with this key is gone, if there is one. Needs no room. `erased` as above, without this one. Repeatable. */
    shmq_status (*erase)(void *context, uint64_t erased, uint64_t place);
    /* Rows below `low` are settled, and take no more room than they have to. Answers which of them take some, by how many they are and
     * how long: those of a file in which others are left. SHMQ_EMPTY: as at the last call. NULL: none take any. Needs no room. */
    shmq_status (*settle)(void *context, uint64_t low, shmq_ordinal *left);
    /* All rows of the write that began with this key are gone, and take no more room than they have to. Needs no room. NULL: none
     * take any. */
    shmq_status (*discard)(void *context, uint64_t first);
    /* There are no rows any more. Needs no room. */
    shmq_status (*clear)(void *context);
} shmq_backing;

/* Queues flow into files below this directory, which is made when the first one does. Once, before the member is used. */
shmq_status shmq_flow_into(shmq_member *m, const char *directory);
shmq_status shmq_flow_encrypted(shmq_member *m, struct shmq_cipher *cipher);

/* One turn each, at most SHMQ_TURN_ENTRIES. SHMQ_OK: something has changed, look again. SHMQ_EMPTY: nothing could be done: nothing
 * to flush; no room in the front ring. SHMQ_IN_USE: another process has the mover's lock, and notifies when it has ended. Else the
 * backing has failed. */
/* A producer that has found the ring full, or memory used up, is the purger: entries go to disk. They are of the level
 * whose ring is full; NULL: of any level, the least important first. */
shmq_status shmq_purger_make_room(shmq_queue *q, shmq_ring *full);
/* A taker that has found nothing below `low` of this level is the inhaler: rows come back, or the level's flow ends.
 * SHMQ_FULL_MEMORY: there is no memory for the rows, and the taker looks again in time. */
shmq_status shmq_inhaler_bring(shmq_ring *back);
/* A taker fetches the row of this place, and no other, into the front ring, as an entry at or above `low`.
 * SHMQ_NOT_FOUND: no such row. SHMQ_EMPTY: no free slot. Others as above. */
shmq_status shmq_flow_fetch(shmq_ring *back, uint64_t place);
/* The mover settles what is ready at places of this level below this one; `rings` does so in memory. SHMQ_IN_USE as above. */
typedef shmq_status shmq_discard_memory(shmq_ring *back, uint64_t place, uint64_t *discarded);
shmq_status shmq_flow_discard(shmq_ring *back, uint64_t place, shmq_discard_memory *rings, uint64_t *discarded);
/* The first row at or above *place, for a browser or checker: headers and body are the calling thread's until its next call. d->depth is
 * SHMQ_ON_DISK. SHMQ_EMPTY: there is none. SHMQ_IN_USE: other movers were at work for the patience. */
shmq_status shmq_flow_peek(shmq_ring *back, uint64_t *place, shmq_delivery *d);
/* Returns when the oldest of the levels' first rows was put; 0: none is on disk, or other movers were at work for the
 * patience. */
uint64_t shmq_flow_oldest(shmq_queue *q);
#define SHMQ_ON_DISK UINT32_MAX
/* The mover settles all that is ready, on disk and in memory, while no other process moves anything; adds how many to *purged. Needs no
 * backing. `rings` does so with what lies in memory. SHMQ_IN_USE as above. */
typedef shmq_status shmq_purge_memory(shmq_queue *q, uint64_t *purged);
shmq_status shmq_flow_purge(shmq_queue *q, shmq_purge_memory *rings, uint64_t *purged);

/* Removes the rows of a queue that was deleted from the disk, unless a mover is at work just now; then the next queue
 * in its place in the directory removes it. */
void shmq_flow_remove(shmq_queue *q);
/* Bytes of files. */
uint64_t shmq_disk_bytes(const shmq_queue *q);

/* The backing has failed, or there is no memory: neither done, nor nothing to do, nor another mover's. */
static inline bool shmq_is_failure(shmq_status status) {
    return status != SHMQ_OK && status != SHMQ_EMPTY && status != SHMQ_IN_USE && status != SHMQ_FULL_DISK;
}

/* Steps of a turn, file by file of src/flow, from the bottom upward. row.c: */
/* Bytes of headers and body in a row of so many bytes. */
uint64_t shmq_row_weight(uint64_t length);
/* Bytes on disk of so many rows with so many bytes of headers and bodies, at most. */
#define SHMQ_ROW_BESIDE 49u /* that a backing needs for one beside its bytes: index, mark, and head of a file */
#define SHMQ_ROW_BESIDE_ENCRYPTED 113u /* if it is encrypted */
static inline uint64_t shmq_row_beside(const shmq_member *m) {
    return m->encrypts ? SHMQ_ROW_BESIDE_ENCRYPTED : SHMQ_ROW_BESIDE;
}
uint64_t shmq_rows_size(const shmq_member *m, uint64_t rows, uint64_t bytes);
/* Returns when the life of such a message ends; SHMQ_NEVER: it does not end. */
uint64_t shmq_life_end(const shmq_queue *q, uint64_t enqueued_ns, uint64_t expires_ns);
/* The lives of rows. Something of it ends at `at`, says this word; called before they are rows, so a death leaves the word too early. */
void shmq_rows_due_by(shmq_ring *back, shmq_a64 *word, uint64_t at);
/* Reads the ordinal of a row. False: the row was changed on disk. */
bool shmq_row_ordinal(const shmq_row *row, shmq_ordinal *ordinal);
/* Reads the fields of a row, and where its headers and body are. False: it was changed on disk. */
bool shmq_row_parse(const shmq_row *row, shmq_delivery *d);
/* The entry at this position as a row with the key row->place, behind `last`: appended to the turn's buffer. SHMQ_CORRUPT: it makes no
 * sense. SHMQ_OS: no memory. */
shmq_status shmq_row_write(shmq_mover *t, shmq_ring *r, const shmq_slot_shm *slot, uint64_t word, uint64_t position,
                           const shmq_ordinal *last, shmq_row *row);

/* A row that is in a slot of the front ring, and no entry yet. */
typedef struct shmq_coming {
    shmq_block block;
    uint64_t flags; /* of its word */
    uint64_t held_until_ns; /* it is held; 0: it is available */
    shmq_ordinal ordinal;
} shmq_coming;

/* A row into a slot of the front ring that is FREE. SHMQ_CORRUPT: the row is damaged. SHMQ_NOT_FOUND: it does not follow `last`, what
 * was in between has got lost; only c->ordinal is set. SHMQ_FULL_MEMORY ... for its body's block. */
/* `props`: with SHMQ_PROP_FETCHED it does not follow `last`, of which only the number of those that were erased counts, this one among them. */
shmq_status shmq_row_read(shmq_mover *t, const shmq_row *row, const shmq_ordinal *last, uint32_t props,
                          shmq_slot_shm *slot, shmq_coming *c);
/* disk_room.c: */
/* Tells the backing that rows below `low` are settled, and the budget what room they took. */
void shmq_disk_settle(shmq_mover *t);
/* These bytes are about to be written: they count from here on, also if the purger dies. SHMQ_FULL_DISK: with what other purgers write
 * at the same time the budget would be exceeded. 0: they were written, and count as rows, or were not. */
shmq_status shmq_disk_claim(shmq_mover *t, uint64_t bytes);
/* Bytes that may still go to disk: of the broker's budget, or of its file system. */
uint64_t shmq_disk_room(shmq_member *m);
/* Returns the room on disk for the turn's level. The files that a dead purger has left count as free: they go first. */
uint64_t shmq_disk_room_of(const shmq_mover *t);
/* Bytes that rows of all queues take there. */
uint64_t shmq_disk_used(shmq_member *m);
/* Notes for alerts that the disk has no room. Returns `status`. */
shmq_status shmq_flow_refused(shmq_mover *t, shmq_status status);
/* front.c: */
/* Says whether this entry of a front ring was fetched by itself. */
bool shmq_is_fetched(const shmq_slot_shm *slot);
/* ... by a taker that wants all, so that no earlier one of its group is on disk? */
bool shmq_is_next_of_group(const shmq_slot_shm *slot);
/* Returns the ordinal from the record of a slot of the front ring. */
shmq_ordinal shmq_front_ordinal(const shmq_ring *front, const shmq_slot_shm *slot);
/* Returns in `erased` how many rows came in by themselves: of all, or with SHMQ_PROP_WAITED of those that waited. */
shmq_ordinal shmq_last_fetched(const shmq_ring *front, uint32_t props);
/* Notes how many rows were erased, the one in this slot among them. */
void shmq_erased_say(shmq_ring *front, const shmq_slot_shm *slot);
/* Counts for how many more fetched entries one part of so many of the front ring's slots has room. */
uint32_t shmq_fetched_room(shmq_mover *t, uint32_t part);
/* Looks whether the last fetched entry has left the front ring: then its positions are in the order of places. */
void shmq_front_look_at_order(shmq_ring *front);
/* Memory that the front ring still wants before rows can come back: for its slots and its cold records. 0: it has all. */
uint64_t shmq_front_lacks(const shmq_ring *front);
/* Returns the front ring's tail, behind all entries that have come in. */
uint64_t shmq_front_tail(shmq_ring *front);
/* The front ring has its memory; and rows can come back, at the latest when the memory of this one is free. SHMQ_EMPTY: there is none for it. */
shmq_status shmq_front_need(shmq_mover *t);
shmq_status shmq_front_ready(shmq_mover *t);
/* Names the front ring in a level that has never flowed: from here on takers look at it, too. */
void shmq_flow_named(shmq_ring *back);
/* Counts the slots from the front ring's tail on that can be filled at once, of *count that are wanted. */
shmq_status shmq_front_room(shmq_ring *front, uint64_t *tail, uint32_t *count);
/* Counts how many of these slots rows that come in order may have, or else entries that are handed over. */
shmq_status shmq_front_order_room(shmq_mover *t, bool rows, uint64_t *tail, uint32_t *count);
/* The slot of position p, still FREE; and T22: the row is an entry from here on. False: the slot was changed, which is damage. */
shmq_status shmq_front_fill(shmq_mover *t, const shmq_row *row, uint64_t p, const shmq_ordinal *last, uint32_t props,
                            shmq_coming *c);
bool shmq_front_show(shmq_mover *t, uint64_t p, const shmq_coming *c);
/* pull.c: */
/* Calls shmq_backing.read for the turn's level. */
shmq_status shmq_read_rows(shmq_mover *t, uint64_t from, uint64_t below, uint64_t bytes, shmq_row *rows,
                           uint32_t *count);
/* Bytes of max_memory that are free, at most what a turn brings back. */
uint64_t shmq_bytes_free(const shmq_queue *q);
/* Rows with keys below this one are settled. Answers how many they were. */
shmq_status shmq_rows_drop(shmq_mover *t, uint64_t below, uint64_t *dropped);
/* Drops these, the lowest rows that there are, without a look at them. */
void shmq_rows_drop_first(shmq_mover *t, const shmq_row_life *lives, uint32_t count);
/* Ends the flow if no row is left. */
void shmq_rows_end_flow(shmq_mover *t);
shmq_status shmq_pull(shmq_mover *t);
/* flush.c: */
shmq_status shmq_flush(shmq_mover *t);
/* There are no rows: the oldest entries go right into the front ring, and meet no disk. Then the level's flow ends. SHMQ_EMPTY: none
 * went; they have to go to disk. */
shmq_status shmq_hand_over(shmq_mover *t);
/* fetch.c; with the memory that the purger makes free, inhaler.c: */
/* The first row from *place on, below `end`, that `wants` names comes in by itself. *place: its place; or, SHMQ_NOT_FOUND, where to go on
 * looking, which is `end`, or the end of the rows, when all were looked at. SHMQ_EMPTY: no slot for it. SHMQ_INTERRUPTED: `wants` says
 * that the look has to begin anew. */
typedef enum shmq_row_use { SHMQ_ROW_PASSED, SHMQ_ROW_WANTED, SHMQ_ROW_AGAIN } shmq_row_use;
typedef shmq_row_use shmq_wants_row(void *context, const shmq_delivery *row);
shmq_status shmq_fetch(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context);
/* As shmq_fetch, and as shmq_waiting_fetch, with the memory that is free. */
shmq_status shmq_fetch_first(shmq_mover *t, uint64_t *place, uint64_t end, shmq_wants_row *wants, void *context);
shmq_status shmq_fetch_waiting(shmq_mover *t, const shmq_row_life *lives, uint32_t count, uint32_t *passed);
/* Fetches the row of this place, as shmq_fetch does. */
shmq_status shmq_fetch_at(shmq_mover *t, uint64_t place);
/* A taker that has seen no fetched entry in the front ring of a level whose flow has ended says that its positions are in the order
 * of places again. A pull does this where the flow goes on. */
void shmq_front_order(const shmq_ring *front);
/* peek.c: */
/* Peeks as shmq_flow_peek does, for a caller that has the mover's lock. */
shmq_status shmq_row_peek(shmq_mover *t, uint64_t *place, shmq_delivery *d);
/* purger.c: */
/* Estimates how many entries of a level a flush would find. */
uint64_t shmq_could_go(const shmq_ring *back);
/* Makes room in memory for what comes back: what is less important goes to disk, then what is newer. */
shmq_status shmq_purger_make_way(shmq_mover *t);
/* shmq_relieve. Answers SHMQ_OK, try again, also to a call that does not wait, or no longer, where others are at it: as long as any of
 * them gets on. */
shmq_status shmq_relief_for(shmq_queue *q, bool waits, shmq_relief *r);

#endif
