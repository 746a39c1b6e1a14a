/* Blocked producers: the exact count, the marks of who is between a slot and the count, waiters, wakes, one death.
 *
 *   spin -a [-DBUG=n] [-DLIMIT=n] [-DPUTS=n] [-DDEATHS=n] [-DHOLES=n] room.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w24
 *
 * Mirrors shmq_put, wait_once, shmq_slot_free (put/put.c), shmq_count_take, shmq_count_give, shmq_moving, shmq_recount
 * (count.c), claim_counted, put_again (put/publish.c), shmq_wake_full (room_wake.c), sweep_queue and close_queues (reap.c). The
 * order of the ring, the scan and the rewind are other models' subjects: here a claim takes any FREE slot, a consumer
 * any AVAILABLE one. One more slot than the limit, so only the count stops a producer; with LIMIT=0 only the ring does.
 *
 * Two producers put PUTS messages each, without a time limit of their own; a consumer settles whatever comes, and makes
 * a hole of a slow claim. One of the three may die after any step. A reaper repairs its slots, sets `recount_due`, takes
 * its marks off, and consumes if it was the consumer that died. Version halves and wake words are exact: whoever read
 * one notices each change. Steps that only a claim's owner can see are one step.
 *
 * Properties: never more slots in use than the limit. At rest all is put and consumed, without any sleep reaching its
 * limit, unless somebody died; then a producer sleeps beside room only while a recount is due, and the end of each
 * one's present sleep gets all in. The count is right at rest or due to be counted.
 *
 * Each BUG must end in "assertion violated":
 *   1  a producer looks for the last time before it is among the waiters
 *   2  the wake word is read after the last look
 *   3  the place goes back to the count before the slot is FREE
 *   4  a recount does not look at the marks
 *   5  a recount does not look at the version
 *   6  the reaper leaves the marks of the dead
 *   7  the reaper asks for no recount
 *   8  a recount that comes to nothing does not leave word that one is due       (-DPUTS=2 -DHOLES=0)
 *   9  who gives a hole up does not say so while it has no slot for its place
 *   10  ... and does not raise the count's version: a recount looks at the marks before and after all that
 *
 * Shows R13, R20. */
#ifndef BUG
#define BUG 0
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef PUTS
#define PUTS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef HOLES
#define HOLES 1
#endif
#define SLOTS (LIMIT == 0 -> 2 : LIMIT + 1)
#define MOST_SLOTS 3
#define PRODUCERS 2
#define CONSUMER 2
#define REAPER 3
#define NOBODY 9

#define FREE 0
#define CLAIMED 1
#define AVAILABLE 2
#define ACQUIRED 3
#define QUARANTINED 4

byte state[MOST_SLOTS], owner[MOST_SLOTS] = NOBODY; /* one word */
byte count = 0;
bool version_seen[PRODUCERS]; /* nobody has changed the count since this one read it */
byte moving[4];
bool due = false; /* recount_due */
byte waiters = 0, waiting[PRODUCERS];
bool full_seen[PRODUCERS]; /* nobody has raised `full` since this one read it */
bool asleep[PRODUCERS];

/* what the properties need */
bool finished[PRODUCERS];
byte dead = NOBODY, deaths = 0, holes = 0, consumed = 0;
bool reaped = false;

#if DEATHS == 0
#define STEP(access) atomic { access }
#else
/* A death is part of the step before it: no state of its own. */
#define STEP(access) \
    atomic { access; if :: me != REAPER && deaths < DEATHS -> deaths++; dead = me; goto died :: true fi }
#endif
#define IN_USE ((state[0] != FREE) + (state[1] != FREE) + (state[2] != FREE))

inline count_changed() { version_seen[0] = false; version_seen[1] = false }
inline raise_full() { full_seen[0] = false; full_seen[1] = false }
inline futex_wake_one() {
    if
    :: asleep[0] -> asleep[0] = false
    :: asleep[1] -> asleep[1] = false
    :: !asleep[0] && !asleep[1]
    fi
}

inline wake_full(i) {
    atomic { awake = (waiters == 0 || (LIMIT == 0 && i != 0)) }; /* where only the ring limits, some slots wake */
    if
    :: !awake ->
        STEP(raise_full());
        STEP(futex_wake_one())
    :: else
    fi
}

inline slot_to_free(i, from, whose) {
    ok = (state[i] == from && owner[i] == whose);
    if
    :: ok -> state[i] = FREE; owner[i] = NOBODY; if :: from == ACQUIRED -> consumed++ :: else fi
    :: else
    fi
}

/* shmq_slot_free: T3, T6 or T14 of a word that names `whose`. */
inline slot_free(i, from, whose) {
    if :: LIMIT != 0 -> STEP(moving[me]++) :: else fi;
#if BUG == 3
    STEP(count--; count_changed());
    STEP(slot_to_free(i, from, whose));
#else
    STEP(slot_to_free(i, from, whose));
    if :: ok && LIMIT != 0 -> STEP(count--; count_changed()) :: else fi;
#endif
    if :: LIMIT != 0 -> STEP(moving[me]--) :: else fi;
    if :: ok -> wake_full(i) :: else fi
}

/* A claim of any FREE slot: T1. */
inline claim() {
    if
    :: state[0] == FREE -> i = 0; ok = true
    :: state[1] == FREE -> i = 1; ok = true
    :: SLOTS == 3 && state[2] == FREE -> i = 2; ok = true
    :: state[0] != FREE && state[1] != FREE && (SLOTS < 3 || state[2] != FREE) -> ok = false
    fi;
    if
    :: ok -> state[i] = CLAIMED; owner[i] = me; assert(LIMIT == 0 || IN_USE <= LIMIT)
    :: else
    fi
}

/* shmq_put_now: `ok` says whether the message is in. */
inline put_now() {
    if
    :: LIMIT != 0 ->
        STEP(moving[me]++);
        STEP(ok = (count < LIMIT); if :: ok -> count++; count_changed() :: else fi);
        if
        :: ok ->
            STEP(claim());
            if :: !ok -> STEP(count--; count_changed()) :: else fi
        :: else
        fi;
        STEP(moving[me]--)
    :: else -> STEP(claim())
    fi;
    do
    :: ok ->
        STEP(ok = (state[i] == CLAIMED && owner[i] == me); if :: ok -> state[i] = AVAILABLE; owner[i] = NOBODY :: else fi);
        if
        :: ok -> break /* T2 */
        :: else -> /* put_again: the place in the count stays taken */
#if BUG != 9
            if :: LIMIT != 0 -> STEP(moving[me]++) :: else fi;
#endif
#if BUG != 10
            if :: LIMIT != 0 -> STEP(count_changed()) :: else fi;
#endif
            STEP(state[i] = FREE; owner[i] = NOBODY); /* T6 */
            wake_full(i);
            STEP(claim());
            if :: !ok && LIMIT != 0 -> STEP(count--; count_changed()) :: else fi;
#if BUG != 9
            if :: LIMIT != 0 -> STEP(moving[me]--) :: else fi
#endif
        fi
    :: else -> break
    od
}

#if BUG == 4
#define NOBODY_MOVES skip
#else
#define NOBODY_MOVES \
    k = 0; \
    do \
    :: k < 4 && moving[k] == 0 -> k++ \
    :: k < 4 && moving[k] != 0 -> goto in_vain \
    :: k == 4 -> break \
    od
#endif

/* shmq_recount; `ok` as its result. */
inline recount() {
    STEP(ok = due; due = false);
    if
    :: !ok -> goto counted
    :: else
    fi;
    atomic { version_seen[me] = true; n = 0 };
    NOBODY_MOVES;
    k = 0;
    do
    :: k < SLOTS -> atomic { n = n + (state[k] != FREE); k++ }
    :: else -> break
    od;
    NOBODY_MOVES;
    STEP(ok = (BUG == 5 || version_seen[me]); if :: ok -> count = n; count_changed() :: else fi);
    if
    :: ok ->
        STEP(raise_full());
        atomic { asleep[0] = false; asleep[1] = false };
        goto counted
    :: else
    fi;
in_vain:
    ok = false;
#if BUG != 8
    due = true;
#endif
counted:
    skip;
    d_step { k = 0; n = 0; version_seen[me] = false }
}

proctype producer(byte me) {
    byte sent = 0, i, k, n;
    bool ok, awake, waited;
    do
    :: sent < PUTS ->
        waited = false;
        put_now();
        do
        :: ok -> break
        :: else ->
            if
            :: LIMIT != 0 && due ->
                recount();
                if :: ok -> put_now(); goto again :: else fi
            :: else
            fi;
            waited = true;
#if BUG != 2
            full_seen[me] = true;
#endif
#if BUG != 1
            STEP(waiters++);
            STEP(waiting[me]++);
#endif
            put_now();
#if BUG == 1
            STEP(waiters++);
            STEP(waiting[me]++);
#endif
#if BUG == 2
            full_seen[me] = true;
#endif
            if
            :: !ok ->
                atomic { if :: full_seen[me] -> asleep[me] = true :: else fi };
end:            STEP(!asleep[me] || dead == me)
            :: else
            fi;
            full_seen[me] = false;
            STEP(waiting[me]--);
            STEP(if :: waiters > 0 -> waiters-- :: else fi);
again:      skip
        od;
        if
        :: waited && waiters != 0 -> /* the baton */
            STEP(raise_full());
            STEP(futex_wake_one())
        :: else
        fi;
        sent++
    :: else -> break
    od;
    finished[me] = true;
died:
    skip
}

proctype consumer(byte me) {
    byte i;
    bool ok, awake;
end:
    do
    :: atomic {
            if
            :: state[0] == AVAILABLE -> i = 0
            :: state[1] == AVAILABLE -> i = 1
            :: SLOTS == 3 && state[2] == AVAILABLE -> i = 2
            fi;
            state[i] = ACQUIRED; /* T9, T10 */
            owner[i] = me;
            if :: me != REAPER && deaths < DEATHS -> deaths++; dead = me; goto died :: true fi
        };
        slot_free(i, ACQUIRED, me)
    :: atomic {
            holes < HOLES && state[0] == CLAIMED && owner[0] != dead -> /* T4 */
            holes++;
            state[0] = QUARANTINED;
            if :: me != REAPER && deaths < DEATHS -> deaths++; dead = me; goto died :: true fi
        }
    od;
died:
    skip
}

/* Rows: the words of the dead first, the lock and its marks later. */
proctype reaper(byte me) {
    byte i = 0;
    bool ok, awake;
end:
    (dead != NOBODY);
    do
    :: i < SLOTS ->
        if
        :: state[i] == CLAIMED && owner[i] == dead -> slot_free(i, CLAIMED, dead)           /* T3 */
        :: state[i] == QUARANTINED && owner[i] == dead -> slot_free(i, QUARANTINED, dead)   /* T6 */
        :: state[i] == ACQUIRED && owner[i] == dead -> atomic { state[i] = AVAILABLE; owner[i] = NOBODY } /* T15 */
        :: else
        fi;
        i++
    :: else -> break
    od;
#if BUG != 7
    due = true;
#endif
    raise_full();
    atomic { asleep[0] = false; asleep[1] = false };
#if BUG != 6
    moving[dead] = 0;
#endif
    if
    :: dead < PRODUCERS ->
        atomic { i = waiting[dead]; waiting[dead] = 0 };
        atomic { waiters = (waiters > i -> waiters - i : 0) }
    :: else
    fi;
#if BUG != 7
    due = true;
#endif
    raise_full();
    atomic { asleep[0] = false; asleep[1] = false };
    reaped = true;
    if
    :: dead == CONSUMER -> run consumer(REAPER)
    :: else
    fi;
died:
    skip
}

#define IN(p) (finished[p] || dead == p)
proctype monitor() {
    byte limits = 0;
end:
    (timeout) ->
    assert(dead == NOBODY || reaped);
    assert((IN(0) && IN(1)) || due || LIMIT == 0);
    assert((IN(0) && IN(1)) || dead != NOBODY || LIMIT == 0);
    do
    :: limits < PRODUCERS * PUTS && (asleep[0] || asleep[1]) ->
        if :: asleep[0] -> asleep[0] = false :: asleep[1] -> asleep[1] = false fi;
        limits++;
        (timeout)
    :: else -> break
    od;
    assert(IN(0) && IN(1));
    assert(IN_USE == 0);
    assert(count == 0 || due);
    assert(dead != NOBODY || (consumed == PRODUCERS * PUTS && waiters == 0))
}

init {
    atomic {
        run producer(0);
        run producer(1);
        run consumer(CONSUMER);
        run reaper(REAPER);
        run monitor()
    }
}
