/* Orders to take away, one at a time. Each has to be noticed by its scenario, or the list says why nothing depends on it. */
#include <stdio.h>
#include <string.h>

#include "weak.h"

typedef struct fault {
    const char *name; /* label of docs/memory-ordering.md, and which side */
    weak_weakening weakening;
    const weak_scenario *scenario;
    const char *harmless; /* why nobody can notice; NULL: it must be noticed */
} fault;

static const fault faults[] = {
    {"ring.publish, publish to a receiver", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
    {"ring.publish, publish to a getter", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_publish, NULL},
    {"ring.publish, look of a browser", {"shmq_browse", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_browse, NULL},
    {"ring.publish, look of a walker",
     {"walk", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "who takes what comes first reads nothing of the slot before the CAS of its offer, which acquires"},
    {"ring.publish, look of a choosy walker", {"walk", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_select, NULL},
    {"ring.publish, position stored",
     {"fill", "store", WEAK_release, WEAK_relaxed},
     &weak_browse,
     "the publish releases it, too"},
    {"ring.free, settlement", {"shmq_slot_free", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
    {"ring.free, claim",
     {"claim", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the look before it acquires as well"},
    {"ring.free, look and claim", {"claim", NULL, WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
    {"ring.free, look of a claimant",
     {"claim", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the CAS of the claim acquires as well"},
    {"ring.tail, moved by a claimant",
     {"claim", "cas", WEAK_seq_cst, WEAK_acq_rel},
     &weak_publish,
     "a late tail costs one more round"},
    {"ring.hole, look of who was stopped",
     {"abandon", "load", WEAK_acquire, WEAK_relaxed},
     &weak_hole,
     "the word's value is all that counts, and a CAS follows"},
    {"ring.offer, offer",
     {"offer", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the CAS of the acquisition acquires; it goes on with the publish's release"},
    {"ring.offer, acquisition",
     {"shmq_offer_acquire", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the look before it acquires"},
    {"ring.offer, both",
     {"own_offer", "load", WEAK_acquire, WEAK_relaxed},
     &weak_receive,
     "the CAS behind it acquires"},
    {"ring.cell, told",
     {"shmq_rewind", "store", WEAK_release, WEAK_relaxed},
     &weak_release,
     "the cell is one word: position and epoch come together"},
    {"ring.cell, read", {"lowest_released", "load", WEAK_acquire, WEAK_relaxed}, &weak_release, "as above"},
    {"ring.browse, acquire fence", {"shmq_browse_valid", "fence", WEAK_acquire, WEAK_relaxed}, &weak_browse, NULL},
    {"ring.browse, release fence", {"fill", "fence", WEAK_release, WEAK_relaxed}, &weak_browse, NULL},
    {"pair: release, epoch raised", {"rewind_head", "rmw", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"ring.head, turned back", {"rewind_head", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"ring.head, reads of a walk", {"walk", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: release, look at the epoch", {"offer", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: release, entry given back", {"shmq_release", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: due, look at an entry", {"look_at", "load", WEAK_seq_cst, WEAK_acquire}, &weak_due, NULL},
    {"pair: due, look at the due word", {"shmq_due_at", "load", WEAK_seq_cst, WEAK_acquire}, &weak_due, NULL},
    {"pair: due, look announced", {"shmq_due_begin", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_due, NULL},
    {"pair: sleep, publish",
     {"publish", "cas", WEAK_seq_cst, WEAK_acq_rel},
     &weak_sleep,
     "the claim before it is sequentially consistent: the look finds CLAIMED at least, and looks again"},
    {"pair: sleep, look at idle bits", {"shmq_notify", "load", WEAK_seq_cst, WEAK_acquire}, &weak_sleep, NULL},
    {"pair: sleep, announcement", {"shmq_announce", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_sleep, NULL},
    {"pair: sleep, last look", {"walk", "load", WEAK_seq_cst, WEAK_acquire}, &weak_sleep, NULL},
    {"pair: wake, wake word raised", {"wake_row", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_sleep, NULL},
    {"pair: wake, look at sleeps", {"wake_row", "load", WEAK_seq_cst, WEAK_acquire}, &weak_sleep, NULL},
    {"pair: room, waiter joins", {"shmq_join_count", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_full, NULL},
    {"pair: room, look at waiters", {"shmq_wake_full", "load", WEAK_seq_cst, WEAK_acquire}, &weak_full, NULL},
    {"pair: room, count lowered", {"lower_word", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_full, NULL},
    {"pair: room, last look at the count", {"raise_word", "load", WEAK_seq_cst, WEAK_acquire}, &weak_full, NULL},
    {"block.last, drop", {"shmq_block_release", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_blocks, NULL},
    {"block.free, freed",
     {"shmq_block_finish", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_blocks,
     "the hints, set behind it, order it as well"},
    {"block.free, taken",
     {"take_block", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_blocks,
     "the hints, cleared before it, order it as well"},
    {"block.pin, view bit",
     {"take_view_bit", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_blocks,
     "only a sweep reads the cells: see below"},
    {"block.hint, free bit", {"shmq_block_hint", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_blocks, NULL},
    {"block.hint, look at the class bit", {"shmq_block_hint", "load", WEAK_seq_cst, WEAK_acquire}, &weak_blocks, NULL},
    {"block.hint, class bit cleared", {"clear_class_bit", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_blocks, NULL},
    {"block.hint, second look", {"clear_class_bit", "load", WEAK_seq_cst, WEAK_acquire}, &weak_blocks, NULL},
    {"block.publish, shared",
     {"shmq_block_share", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_blocks,
     "only a sweep reads it: see below"},
    {"count, moving raised",
     {"shmq_moving", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "the count is raised behind it, and releases it"},
    {"count, look at moving",
     {"anybody_moves", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "the count is read before it, and acquires it"},
    {"count, slots counted",
     {"recount_once", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "moving and count are read before them"},
    {"count, taken",
     {"raise_word", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "a read-modify-write takes the last value, whatever its order"},
    {"count, read by a recount",
     {"recount_once", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "its CAS takes the last value, and fails where another was read"},
    {"block.publish, shared before a sweep",
     {"shmq_block_share", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "the references in the word, not the state, say what is named"},
    {"block.publish, look of a sweep",
     {"sweep_building", "load", WEAK_acquire, WEAK_relaxed},
     &weak_sweep,
     "the lock byte of the dead builder orders all that it did"},
    {"block.owner, look of a sweep",
     {"sweep_block", "load", WEAK_acquire, WEAK_relaxed},
     &weak_sweep,
     "no scenario uses a dead builder's row again"},
    {"block.pin, generation and cell",
     {"shmq_block_pin", "store", WEAK_release, WEAK_relaxed},
     &weak_sweep,
     "the CAS of the view bit releases the claimed cell, which protects the view as well"},
    {"block.pin, view bit before a sweep",
     {"take_view_bit", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "the cell was claimed before it by a sequentially consistent CAS"},
    {"block.pin, look at a cell",
     {"note_cell", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "the block's word, read before, acquires the claim of each cell"},
    {"block.pin, cell given back",
     {"shmq_block_unpin", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "the drop of the bit behind it releases it"},
    {"block.pin, word read by a sweep",
     {"sweep_block", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "a word that is not the last one fails at the CAS"},
    {"block.pin, leaked view dropped",
     {"drop_leaked_views", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_sweep,
     "a CAS takes the last word, and the hints behind it release the free block"},
    {"block.last, drop beside a sweep", {"shmq_block_release", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_sweep, NULL},
    {"row.owner, opened",
     {"shmq_row_open", "store", WEAK_release, WEAK_relaxed},
     &weak_rows,
     "the slot words that name the row, and the lock that opens and closes it, order it as well"},
    {"row.owner, closed", {"shmq_row_close", "store", WEAK_release, WEAK_relaxed}, &weak_rows, "as above"},
    {"row.owner, bit of use",
     {"shmq_row_open", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_rows,
     "a read-modify-write takes the last value, and the lock orders the rest"},
    {"row.chunk, looked up",
     {"shmq_row_at", "load", WEAK_acquire, WEAK_relaxed},
     &weak_rows,
     "no scenario lays out a chunk"},
    {"row.owner, owner robbed",
     {"shmq_steal", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_rows,
     "the look before it acquires, the settlement behind it releases"},
    {"row.owner, look of a thief",
     {"shmq_steal", "load", WEAK_acquire, WEAK_relaxed},
     &weak_rows,
     "the CAS behind it acquires"},
    {"ring.publish, publish to a row", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_rows, NULL},
    {"structure.look, turn and changes",
     {"lock_structure", "fence", WEAK_release, WEAK_relaxed},
     &weak_look,
     "looks at turns take the last one here, and no store comes before one that was seen"},
    {"structure.look, second look", {"shmq_moment_lasts", "fence", WEAK_acquire, WEAK_relaxed}, &weak_look, "as above"},
    {"structure.look, turn",
     {"lock_structure", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "the fences order it as well"},
    {"structure.look, look at turns",
     {"shmq_moment_lasts", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "as above"},
    {"structure.look, first looks", {"shmq_moment_begin", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_look, NULL},
    {"structure.look, dirty before the turn",
     {"lock_structure", "store", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "the turn releases it"},
    {"structure.look, clean again", {"shmq_structure_unlock", "store", WEAK_seq_cst, WEAK_relaxed}, &weak_look, NULL},
};

static const weak_weakening *active;

void weak_weaken(const weak_weakening *weakening) { active = weakening; }

enum weak_order weak_order_now(enum weak_order order, const char *kind, const char *function) {
    if (active == NULL || order != active->from || (active->kind != NULL && strcmp(kind, active->kind) != 0) ||
        strcmp(function, active->function) != 0) {
        return order;
    }
    return active->to;
}

static int try_fault(const fault *f, uint64_t runs) {
    weak_weaken(&f->weakening);
    weak_result result = weak_run(f->scenario, 1, f->harmless == NULL ? runs * 60 : runs); /* ends when found */
    weak_weaken(NULL);
    bool good = (result.reason != NULL) == (f->harmless == NULL);
    printf("%s%-34s %-18s %-9s %s%s\n", good ? "" : "!! ", f->name, f->weakening.function, f->scenario->name,
           result.reason != NULL ? result.reason : "not noticed: ",
           result.reason != NULL ? "" : (f->harmless != NULL ? f->harmless : "and it should be"));
    fflush(stdout);
    return !good;
}

int weak_faults(uint64_t runs, const char *only) {
    int wrong = 0;
    for (int s = 0; weak_scenarios[s] != NULL; s++) {
        bool set_up = false;
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            const fault *f = &faults[i];
            if (f->scenario != weak_scenarios[s] || (only != NULL && strcmp(only, f->name) != 0)) {
                continue;
            }
            if (!set_up) {
                f->scenario->set_up();
                set_up = true;
            }
            wrong += try_fault(f, runs);
        }
    }
    return wrong;
}
