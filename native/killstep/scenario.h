/* The table of what is killed: an operation, traced, from a state that was built before. */
#ifndef SHMQ_KILLSTEP_SCENARIO_H
#define SHMQ_KILLSTEP_SCENARIO_H

#include "stage.h"

#define ON_SLOTS 1u   /* of put, get and settlement: also killed twice in the suite */
#define BUSY 2u       /* a living process stands in the midst of something: nothing here is quiet */
#define ATTACHES 4u   /* the victim becomes a member in its traced part */
#define MAKES 8u      /* the queue "extra" */
#define ENDS_QUEUE 16u /* queue "a" may not be there afterwards */
#define SHUTS 64u      /* queue "a" may be shut down afterwards */
#define STEADY 32u     /* while it stands others are kept out on purpose: no pause is tried */
#define TIMED 256u /* much time passes before the survivor takes what is left */
#define LONG 128u      /* tens of thousands of steps: what budget short ones leave goes here */
#define GROUPED 2048u /* queue "a" has groups */
#define BOTH_GROUPED 4096u /* and the limited one */
#define MOVES \
    8192u /* the survivor moves the rest of queue "a" to the limited one, before anybody has looked for the dead */
#define WATCHED 16384u /* an actor is killed in the aftermath: a sleeper has what it held within the bound */
#define PASSES 32768u /* somebody passes one that is stopped when its sleep is over: that counts as a rescue */
#define STANDS_BY 65536u /* the survivor has to come to the first of what is left as a consumer of those who stand by */
#define LEVELS 512u /* queue "a" has three */
#define DEAR 1024u /* in a full segment, all of which is compared each time: a smaller part of the budget */

#define FLOWS 131072u /* queue "a" flows to disk */
#define WAKES 262144u /* the operation itself has woken who sleeps in the state, when it is over: not only the reaper */
#define KEEPS 524288u /* what the victim has in hand comes back when it ends, before what others have had meanwhile */

#define DELAYED 1048576u /* what the state has is delayed: others overtake it while one is stopped */

typedef struct scenario {
    const char *name;
    void (*build)(stage *);
    void (*set_up)(act *);
    void (*operate)(act *);
    uint8_t expected; /* shmq_status of the last call of an undisturbed run */
    unsigned flags;
} scenario;

extern const scenario scenarios[], flow_scenarios[];
extern const unsigned scenario_count, flow_scenario_count;
/* Of all of them; NULL: there are no more. */
const scenario *scenario_at(unsigned index);
const scenario *scenario_named(const char *name);

/* states.c */
void state_empty(stage *s);
void state_few(stage *s);
void state_edge(stage *s); /* the next put needs memory for more slots */
void state_edge_dead(stage *s); /* and a dead one was about to reserve it */
void state_blocks(stage *s);
void state_weighed(stage *s); /* with a max_bytes that leaves room */
void state_slab(stage *s); /* blocks have been used, none is */
void state_wrapping(stage *s);
void state_wrapping_more(stage *s); /* entries on both sides of the lap's end */
void state_full_ring(stage *s);
void state_full_count(stage *s);
void state_full_waiter(stage *s); /* and a producer sleeps for room */
void state_line(stage *s); /* a producer stands in line at the full queue */
void state_line_beyond(stage *s); /* and there is room for more than that */
void state_line_dead_first(stage *s); /* a dead one stands before it */
void state_line_dead_called(stage *s); /* and was called */
void state_line_room(stage *s); /* the victim is to stand before it, and there is room for both */
void state_carry(stage *s); /* the tail stands at an unsettled entry */
void state_carried(stage *s); /* an entry older than a lap is available */
void state_carried_held(stage *s); /* the survivor holds it */
void state_hole(stage *s); /* a stopped producer's claim stands before the entries */
void state_old_hole(stage *s); /* it has become a hole, and the tail comes round to it */
void state_sleeper(stage *s);
void state_sleeper_of_two(stage *s); /* on the limited queue, too */
void state_entry_sleeper(stage *s); /* and an entry, which it has not seen yet */
void state_entries_sleeper(stage *s); /* and three */
void state_sleepers(stage *s);
void state_choosy_sleepers(stage *s); /* with selectors, of which one wants what is put */
void state_browser(stage *s);
void state_asked(stage *s); /* a consumer of several queues has found queue "a" empty */
void state_released(stage *s); /* an entry that was delivered before */
void state_dead_claim(stage *s);
void state_dead_holder(stage *s);
void state_few_held(stage *s); /* the survivor holds one */
void state_dead_holder_of_ending(stage *s);
void state_ended(stage *s); /* the queue is deleted, its last message settled: its entry is still to go */
void state_dead_blocks(stage *s);
void state_dead_waiter(stage *s);
void state_dead_sleeper(stage *s);
void state_dead_maker(stage *s); /* amid a change of the structure */
void state_dead_attacher(stage *s); /* the same, and it has no row */
void state_dead_temporary(stage *s);
void state_dead_user(stage *s); /* of memory that nobody needs any more */
void state_recount_due(stage *s);
void state_few_beside_full(stage *s); /* entries, and the limited queue takes no more */

/* watch_states.c: one that can be killed holds the only message. */
void state_watch_none(stage *s);
void state_watch_stopped(stage *s); /* one is stopped as the watcher */
void state_watch_both_stopped(stage *s); /* and one as its deputy */
void state_watch_asleep(stage *s); /* the survivor sleeps as the deputy of one that is stopped */
void state_watch_volunteer(stage *s); /* and here as a volunteer behind two */
void state_ranked_stopped(stage *s); /* entries, and a stopped consumer of higher priority that wants them */
void state_live_stopped(stage *s); /* entries, and the live place is offered to a consumer that is stopped */
void state_live_stopped_more(stage *s); /* and those who stand by behind it are stopped, too */
void state_live_held(stage *s); /* entries, and somebody has taken up the live place */

/* memory_states.c: blocks in a living process's hands use up the segment's memory. */
void state_no_memory(stage *s);
void state_no_memory_for_slots(stage *s);
void state_rows_first_full(stage *s);
void state_memory_of_bodies(stage *s);
void state_little_memory(stage *s); /* two granules are left: too few for a ring */
void state_dead_hoarder(stage *s); /* two of them are a dead process' */
void state_dead_viewer(stage *s); /* and one died amid the end of its view: nobody names that any more */

/* level_states.c */
void state_levels_empty(stage *s);
void state_levels_low(stage *s);
void state_levels_below(stage *s);
void state_levels(stage *s);
void state_levels_dead_holder(stage *s);
void state_levels_sleeper(stage *s);
void state_mixed(stage *s);
void state_odd(stage *s);

/* group_states.c */
void state_groups_empty(stage *s);
void state_groups(stage *s);
void state_sticky(stage *s);
void state_groups_held(stage *s); /* the survivor has the first one of a group */
void state_groups_dead_holder(stage *s);
void state_groups_refused(stage *s); /* and the survivor was refused what is the dead one's */
void state_sticky_dead_holder(stage *s);
void state_groups_leased(stage *s); /* what the survivor has in hand is lent for a time */
void state_sticky_leased(stage *s);
void state_sticky_leased_once(stage *s);
void state_groups_offered(stage *s); /* the first one of a group is offered to a stopped process */
void state_groups_dead_stealer(stage *s); /* took the first one from the survivor's hand */
void state_groups_both(stage *s); /* the limited queue has groups, too */
void state_groups_dead_mover(stage *s); /* amid a move between the two, before its decision; somebody was refused */
void state_groups_dead_moved(stage *s); /* after it */

/* flow_states.c: so little of queue "a" may stay in memory that it flows to disk. */
void state_flow_full(stage *s); /* the next put makes it flow */
void state_flow_full_held(stage *s); /* and the survivor holds what would be a row */
void state_flow_full_blocks(stage *s);
void state_flow_full_ring(stage *s); /* there is memory, and no slot */
void state_flowing(stage *s); /* rows, and messages in memory above them */
void state_flowing_full(stage *s);
void state_rows_first(stage *s); /* what is next is on disk */
void state_rows_first_blocks(stage *s);
void state_front(stage *s); /* two came back, one of them was delivered; rows are left */
void state_front_held(stage *s); /* the survivor holds both */
void state_front_held_sleeper(stage *s);
/* The sleeper has looked at all that there is, and found no slot for what it wants. */
void state_front_held_starved(stage *s);
void state_rows_gone(stage *s); /* it flows, all rows have left, and there are messages above */
void state_rows_last(stage *s); /* and none are */
void state_fetched(stage *s); /* one of the rows has come in by itself, and is gone */
void state_fetched_free(stage *s); /* ... and lies in the front ring */
void state_flow_full_mortals(stage *s); /* two of those that are about to become rows expire */
void state_mortal_rows_first(stage *s); /* of four rows the first two */
void state_mortal_rows_between(stage *s); /* those behind the first one */
void state_mortal_rows_only(stage *s); /* all of them */
void state_mortal_rows_fetched(stage *s); /* the first one, and the second was taken */
void state_flow_full_tried(stage *s); /* two of those that are about to become rows have failed */
void state_poisoned_rows(stage *s); /* three of the rows have failed too often */
void state_fetched_all(stage *s); /* all have, and are gone */
void state_flow_full_delayed(stage *s); /* what is delayed has all memory */
void state_waiting(stage *s); /* and is on disk; some more is in memory */
void state_waiting_retried(stage *s); /* what came back is between two attempts, and on disk again */
void state_flow_dead_moving(stage *s); /* a mover died before it wrote its rows */
void state_flow_dead_written(stage *s); /* before it said so */
void state_flow_dead_decided(stage *s); /* behind that */

void state_may_flow_few(stage *s); /* what queue "a" is told first in these states, */
void state_may_have_much(stage *s); /* and last where what comes back needs no room */
/* flow_group_states.c */
void state_flow_groups(stage *s);
void state_flow_groups_dead_holder(stage *s); /* a dead one holds the first, and one of the other group was fetched */

void state_held(stage *s); /* between others an entry that is held */
void state_mortal(stage *s); /* an entry that expires, and others */
void state_mortal_held(stage *s); /* the survivor has it in hand */
void state_immediate(stage *s); /* an immediate message, whose put waits, and others */
void state_leased(stage *s); /* a queue with a lease */
void state_leased_held(stage *s); /* and the survivor has an entry in hand */

void state_movable(stage *s); /* few, and whatever is moved to the limited queue needs no memory */
void state_movable_blocks(stage *s);
void state_movable_carry(stage *s); /* one in the limited queue; the tail of "a" stands at an unsettled entry */
void state_movable_sleeper(stage *s); /* one in the limited queue; somebody sleeps on "a" */
void state_dead_mover(stage *s); /* amid a move from "a" to the limited queue, before its decision */
void state_dead_mover_block(stage *s);
void state_dead_moved(stage *s); /* after it */

#endif
