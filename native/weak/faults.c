/* Orders to take away, one at a time. Each has to be noticed by its scenario, or the list says why nothing depends on it. */
#include <stdio.h>
#include <string.h>

#include "weak.h"

typedef struct fault {
    const char *name; /* label of docs/memory-ordering.md, and which side */
    weak_weakening weakening;
    const weak_scenario *scenario;
    const char *harmless; /* why nobody can notice; NULL: it must be noticed */
    weak_weakening
        partner; /* what makes it harmless: with this taken away as well it must be noticed. None: the reason is
                               one of logic, not of another order */
} fault;

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* most have no partner */

static const fault faults[] = {
    {"ring.publish, publish to a receiver", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
    {"ring.publish, publish to a getter", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_publish, NULL},
    {"ring.publish, look of a browser", {"shmq_browse_past", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_browse, NULL},
    {"ring.publish, look of a taker",
     {"scan", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "who takes what comes first reads nothing of the slot before the CAS of its offer, which acquires",
     {"offer_now", "cas", WEAK_seq_cst, WEAK_relaxed}},
    {"ring.publish, look of a choosy taker", {"scan", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_select, NULL},
    {"ring.publish, position stored",
     {"fill", "store", WEAK_release, WEAK_relaxed},
     &weak_browse,
     "the publish releases it, too"},
    {"ring.free, settlement", {"shmq_slot_free", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
    /* Another producer that has seen the claim may move the tail past it: so it is in time before that, too. */
    {"ring.free, claim", {"claim", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_receive, NULL},
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
     {"offer_now", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the CAS of the acquisition acquires; it goes on with the publish's release"},
    {"ring.offer, acquisition",
     {"shmq_offer_acquire", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_receive,
     "the look before it acquires, and so did the CAS of the offer"},
    {"ring.offer, both",
     {"own_offer", "load", WEAK_acquire, WEAK_relaxed},
     &weak_receive,
     "the CAS behind it acquires"},
    {"ring.cell, told",
     {"shmq_rewind", "store", WEAK_release, WEAK_relaxed},
     &weak_release,
     "the cell is one word: position and epoch come together"},
    {"ring.cell, read", {"shmq_lowest_released", "load", WEAK_acquire, WEAK_relaxed}, &weak_release, "as above"},
    {"ring.browse, acquire fence", {"shmq_browse_valid", "fence", WEAK_acquire, WEAK_relaxed}, &weak_browse, NULL},
    {"ring.browse, release fence", {"fill", "fence", WEAK_release, WEAK_relaxed}, &weak_browse, NULL},
    {"pair: release, epoch raised", {"rewind_head", "rmw", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"ring.head, turned back",
     {"rewind_head", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_release,
     "the swap to AVAILABLE and the scan's looks at words are seq: a scan sees it whatever head it has begun at",
     {"scan", "load", WEAK_seq_cst, WEAK_acquire}},
    {"ring.head, reads of a scan", {"start_of_scan", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: release, look at the epoch", {"offer_now", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: release, entry given back", {"make_available", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_release, NULL},
    {"pair: due, look at an entry", {"look_at", "load", WEAK_seq_cst, WEAK_acquire}, &weak_due, NULL},
    {"pair: due, look at the due word", {"shmq_due_at", "load", WEAK_seq_cst, WEAK_acquire}, &weak_due, NULL},
    {"pair: due, look announced", {"shmq_due_begin", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_due, NULL},
    {"pair: sleep, publish",
     {"publish", "cas", WEAK_seq_cst, WEAK_acq_rel},
     &weak_sleep,
     "the claim before it is sequentially consistent: the look finds CLAIMED at least, and looks again",
     {"claim", "cas", WEAK_seq_cst, WEAK_acq_rel}},
    {"pair: sleep, look at idle bits", {"shmq_notify", "load", WEAK_seq_cst, WEAK_acquire}, &weak_sleep, NULL},
    {"pair: sleep, announcement", {"shmq_announce", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_sleep, NULL},
    {"pair: sleep, last look", {"scan", "load", WEAK_seq_cst, WEAK_acquire}, &weak_sleep, NULL},
    {"pair: sleep, announcement of one who peeks",
     {"shmq_announce", "rmw", WEAK_seq_cst, WEAK_acq_rel},
     &weak_peek,
     NULL},
    {"pair: sleep, last look of one who peeks", {"scan", "load", WEAK_seq_cst, WEAK_acquire}, &weak_peek, NULL},
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
     "the hints, set behind it, order it as well",
     {"shmq_block_hint", "rmw", WEAK_seq_cst, WEAK_relaxed}},
    {"block.free, taken",
     {"take_block", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_blocks,
     "the look at the state before it acquires, and so do the hints"},
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
     "the count is raised behind it, and releases it",
     {"raise_word", "cas", WEAK_seq_cst, WEAK_relaxed}},
    {"count, look at moving",
     {"anybody_moves", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_count,
     "the count is read before it, and acquires it",
     {"recount_once", "load", WEAK_seq_cst, WEAK_relaxed}},
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
     "the death of the builder orders all that it did, and what it built is freed by a CAS from its generation"},
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
     "the drop of the bit behind it releases it",
     {"shmq_block_release", "cas", WEAK_seq_cst, WEAK_relaxed}},
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
     {"shmq_row_fill", "store", WEAK_release, WEAK_relaxed},
     &weak_rows,
     "the slot words that name the row, and the lock that opens and closes it, order it as well"},
    {"row.owner, closed", {"shmq_row_close", "store", WEAK_release, WEAK_relaxed}, &weak_rows, "as above"},
    {"row.owner, bit of use",
     {"shmq_row_fill", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_rows,
     "a read-modify-write takes the last value, and the lock orders the rest"},
    {"row.chunk, looked up",
     {"shmq_row_at", "load", WEAK_acquire, WEAK_relaxed},
     &weak_rows,
     "as above: who looks a row up has its number from such a word"},
    {"row.owner, owner robbed",
     {"shmq_seize", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_rows,
     "the look before it acquires, the settlement behind it releases"},
    {"row.owner, look of a stealer",
     {"shmq_steal", "load", WEAK_acquire, WEAK_relaxed},
     &weak_rows,
     "the CAS behind it acquires",
     {"shmq_seize", "cas", WEAK_seq_cst, WEAK_relaxed}},
    {"ring.publish, publish to a row", {"publish", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_rows, NULL},
    {"structure.look, turn and changes",
     {"lock_structure", "fence", WEAK_release, WEAK_relaxed},
     &weak_look,
     "looks at turns take the last one here, and no store comes before one that was seen",
     {"shmq_moment_lasts", "load", WEAK_seq_cst, WEAK_relaxed}},
    {"structure.look, second look",
     {"shmq_moment_lasts", "fence", WEAK_acquire, WEAK_relaxed},
     &weak_look,
     "as above",
     {"shmq_moment_lasts", "load", WEAK_seq_cst, WEAK_relaxed}},
    {"structure.look, turn",
     {"lock_structure", "rmw", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "the fences order it as well",
     {"lock_structure", "fence", WEAK_release, WEAK_relaxed}},
    {"structure.look, look at turns",
     {"shmq_moment_lasts", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "as above"},
    {"structure.look, first looks", {"shmq_moment_begin", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_look, NULL},
    {"structure.look, dirty before the turn",
     {"mark_dirty", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_look,
     "the turn releases it"},
    {"structure.look, clean again", {"shmq_structure_unlock", "cas", WEAK_seq_cst, WEAK_relaxed}, &weak_look, NULL},
    {"pair: levels, last look above", {"is_still_the_end", "load", WEAK_seq_cst, WEAK_acquire}, &weak_levels, NULL},
    {"pair: levels, last claim above", {"is_last_claim", "load", WEAK_seq_cst, WEAK_acquire}, &weak_levels, NULL},
    {"pair: levels, claim", {"claim", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_levels, NULL},
    {"ring.publish, look at a level",
     {"scan", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_levels,
     "where it ended is looked at again once something below is offered; the offer acquires what it found"},
    {"ring.head, reads of a level", {"start_of_scan", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_levels, NULL},
    {"ring.head, turned back by a mover", {"rewind_head", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_move, NULL},
    {"ring.publish, shown",
     {"show", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_move,
     "the publish before it releases the message, the rewind behind it the rest"},
    {"ring.publish, word of a mover",
     {"pending_word", "load", WEAK_acquire, WEAK_relaxed},
     &weak_move,
     "its own entry: nobody else changes more than its lap, and the CAS behind it fails then"},
    {"ring.publish, look of a reaper",
     {"decide", "load", WEAK_acquire, WEAK_relaxed},
     &weak_move,
     "the death that is asked for behind it orders all that the mover did; what another reaper did fails the CAS"},
    {"ring.publish, source of a move",
     {"shmq_move_source", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_move,
     "the death that was asked for before it orders all that the mover did; what another reaper did fails the CAS"},
    {"ring.cold, look of a reaper",
     {"shmq_moves_decide", "load", WEAK_acquire, WEAK_relaxed},
     &weak_move,
     "the death of who made the records, or the lock under which they were made, comes before the look"},
    {"pair: ranks, begins to want", {"shmq_want", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_ranks, NULL},
    {"pair: ranks, look at who wants", {"shmq_defer_to_rank", "load", WEAK_seq_cst, WEAK_acquire}, &weak_ranks, NULL},
    {"pair: ranks, wants no more", {"shmq_want_end", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_ranks, NULL},
    {"pair: ranks, look at who sleeps", {"shmq_anybody_idle", "load", WEAK_seq_cst, WEAK_acquire}, &weak_ranks, NULL},
    {"pair: ranks, whom to wake", {"highest_idle", "load", WEAK_seq_cst, WEAK_acquire}, &weak_ranks, NULL},
    {"pair: ranks, who is awake above", {"await_above", "load", WEAK_seq_cst, WEAK_acquire}, &weak_ranks, NULL},
    {"row.owner, look at who is above",
     {"is_subscribed", "load", WEAK_acquire, WEAK_relaxed},
     &weak_ranks,
     "the bit of want, read before it, is set behind the opening of the row, and acquires it"},
    {"pair: wake, look at sleeps of a row of several",
     {"wake_row", "load", WEAK_seq_cst, WEAK_acquire},
     &weak_any,
     NULL},
    {"pair: sleep, announcement on several", {"shmq_announce", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_any, NULL},
    {"pair: sleep, last look at several", {"scan", "load", WEAK_seq_cst, WEAK_acquire}, &weak_any, NULL},
    {"pair: shut down, look of a sleeper",
     {"state_of", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_any,
     "who shuts down changes the idle bits behind it, and so has who looks: the second has acquired what the first did",
     {"wake_all_of", "rmw", WEAK_seq_cst, WEAK_relaxed}},
    {"pair: shut down, stored",
     {"shmq_queue_shut_down", "store", WEAK_seq_cst, WEAK_relaxed},
     &weak_any,
     "as above",
     {"wake_all_of", "rmw", WEAK_seq_cst, WEAK_relaxed}},
    {"row.owner, target set",
     {"shmq_row_share", "store", WEAK_seq_cst, WEAK_relaxed},
     &weak_any,
     "the announcement behind it releases it"},
    {"row.owner, target read",
     {"shmq_wake_word", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_any,
     "the look at the idle bits before it, and the claim of one, acquire it"},
    {"pair: wake, word before the looks",
     {"wait_round", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_any,
     "an older value ends the sleep at once"},
    {"pair: news, asked for", {"ask_for_news", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_news, NULL},
    {"pair: news, last look", {"scan", "load", WEAK_seq_cst, WEAK_acquire}, &weak_news, NULL},
    {"pair: news, look of a notifier", {"shmq_notify", "load", WEAK_seq_cst, WEAK_acquire}, &weak_news, NULL},
    {"pair: news, counted before",
     {"ask_for_news", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_news,
     "an older count makes a look more"},
    {"pair: news, raised", {"shmq_news_raise", "rmw", WEAK_seq_cst, WEAK_relaxed}, &weak_news, NULL},
    {"pair: news, look at the count",
     {"has_none", "load", WEAK_seq_cst, WEAK_acquire},
     &weak_news,
     "the look at the group's count comes before it, and a notifier raises that behind this one"},
    {"pair: news, look at the group's count", {"pass_some", "load", WEAK_seq_cst, WEAK_relaxed}, &weak_news, NULL},
    {"directory.entry, made", {"make", "store", WEAK_release, WEAK_relaxed}, &weak_directory, NULL},
    {"pair: attached, said", {"attach_counters", "store", WEAK_seq_cst, WEAK_release}, &weak_directory, NULL},
    {"pair: attached, second look", {"attach_counters", "load", WEAK_seq_cst, WEAK_acquire}, &weak_directory, NULL},
    {"pair: attached, let go", {"detach_counters", "store", WEAK_seq_cst, WEAK_relaxed}, &weak_directory, NULL},
    {"pair: attached, look of who frees", {"in_use", "load", WEAK_seq_cst, WEAK_acquire}, &weak_directory, NULL},
    {"pair: attached, out of service", {"take_root", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_directory, NULL},
    {"directory.entry, found",
     {"find", "load", WEAK_acquire, WEAK_relaxed},
     &weak_directory,
     "what was found counts when the second look, behind `attached`, has acquired it"},
    {"directory.entry, page found", {"page_of", "load", WEAK_acquire, WEAK_relaxed}, &weak_directory, "as above"},
    {"directory.entry, bound",
     {"shmq_queue_bind", "load", WEAK_acquire, WEAK_relaxed},
     &weak_directory,
     "as above",
     {"attach_counters", "load", WEAK_seq_cst, WEAK_relaxed}},
    {"directory.entry, page bound",
     {"look", "load", WEAK_acquire, WEAK_relaxed},
     &weak_directory,
     "the second look at the entry, before it, acquires it",
     {"attach_counters", "load", WEAK_seq_cst, WEAK_relaxed}},
    {"directory.entry, how many",
     {"shmq_queue_high", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_directory,
     "who was told of a queue knows as much as who told him; anybody else looks again under the lock"},
    {"directory.entry, free again",
     {"release", "store", WEAK_seq_cst, WEAK_relaxed},
     &weak_directory,
     "who makes a queue there holds the same lock"},
    {"pair: join, flag armed", {"shmq_ring_join", "rmw", WEAK_seq_cst, WEAK_acq_rel}, &weak_join, NULL},
    {"pair: join, count", {"count_positions", "load", WEAK_seq_cst, WEAK_acquire}, &weak_join, NULL},
    {"pair: join, slot freed", {"shmq_slot_free", "cas", WEAK_seq_cst, WEAK_acq_rel}, &weak_join, NULL},
    {"pair: join, look at the flag", {"shmq_wake_full", "load", WEAK_seq_cst, WEAK_acquire}, &weak_join, NULL},
    {"block.memory, look at who waits",
     {"shmq_wake_for_memory", "load", WEAK_seq_cst, WEAK_acquire},
     &weak_memory,
     NULL},
    {"block.memory, word before the looks",
     {"shmq_take_block", "load", WEAK_seq_cst, WEAK_relaxed},
     &weak_memory,
     "an older value ends the sleep at once"},
    {"block.slab, made",
     {"shmq_slab_make", "store", WEAK_seq_cst, WEAK_relaxed},
     &weak_memory,
     "a taker does a CAS from the state that it read, and no state of an earlier slab comes back"},
    {"block.slab, class read", {"shmq_slab_class", "load", WEAK_acquire, WEAK_relaxed}, &weak_memory, "as above"},
    {"block.slab, headers", {"fill_slab", "store", WEAK_seq_cst, WEAK_relaxed}, &weak_memory, "as above"},
    {"block.slab, block retired",
     {"retire_blocks", "cas", WEAK_seq_cst, WEAK_relaxed},
     &weak_memory,
     "a CAS takes the last state, and the lock passes on the rest"},
    {"row.chunk, laid out",
     {"find_row", "store", WEAK_release, WEAK_relaxed},
     &weak_rows,
     "the word of a row, and the slots that name it, are written behind it and acquired before it"},
};

static const weak_weakening *active[2];
static uint64_t met[2]; /* accesses that were weakened */

void weak_weaken(const weak_weakening *one, const weak_weakening *other) {
    active[0] = one;
    active[1] = other;
    met[0] = met[1] = 0;
}

enum weak_order weak_order_now(enum weak_order order, const char *kind, const char *function) {
    for (int i = 0; i < 2; i++) {
        const weak_weakening *w = active[i];
        if (w != NULL && order == w->from && (w->kind == NULL || strcmp(kind, w->kind) == 0) &&
            strcmp(function, w->function) == 0) {
            met[i]++;
            return w->to;
        }
    }
    return order;
}

#define LOOKED_FOR 120 /* times as many runs where something is to be found; they end when it is */

/* Told as it should be, or what is wrong. */
static int say(const fault *f, bool with_partner, bool good, const char *what) {
    printf("%s%-34s %-22s %-9s %s%s\n", good ? "" : "!! ", f->name, f->weakening.function, f->scenario->name,
           with_partner ? "and its partner: " : "", what);
    fflush(stdout);
    return !good;
}

static int try_alone(const fault *f, uint64_t runs) {
    weak_weaken(&f->weakening, NULL);
    weak_result result = weak_run(f->scenario, 1, f->harmless == NULL ? runs * LOOKED_FOR : runs);
    bool met_it = met[0] != 0;
    weak_weaken(NULL, NULL);
    if (result.reason != NULL) {
        return say(f, false, f->harmless == NULL, result.reason);
    }
    if (!met_it) {
        return say(f, false, false, "no access of this function has this order, or the scenario meets none");
    }
    char what[300];
    snprintf(what, sizeof what, "not noticed: %s", f->harmless != NULL ? f->harmless : "and it should be");
    return say(f, false, f->harmless != NULL, what);
}

static int try_with_partner(const fault *f, uint64_t runs) {
    weak_weaken(&f->weakening, &f->partner);
    weak_result result = weak_run(f->scenario, 1, runs * LOOKED_FOR);
    weak_weaken(NULL, NULL);
    return say(f, true, result.reason != NULL, result.reason != NULL ? result.reason : "not noticed, and it should be");
}

static int try_fault(const fault *f, uint64_t runs) {
    return try_alone(f, runs) + (f->partner.function != NULL ? try_with_partner(f, runs) : 0);
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
