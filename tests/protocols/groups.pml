/* Groups: who may take a message of a group, and who turns back for those who had to pass it.
 *
 *   spin -a [-DBUG=n] [-DENTRIES=n] [-DFIRST=n] [-DFREED=1] [-DCONSUMERS=n] [-DTHREADS=n] [-DDEATHS=n] [-DSTOPS=n] [-DKEEPERS=n] [-DTHEFTS=n] groups.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w24
 *
 * All entries are of one group. At first consumer FIRST has entry 0 in hand (0: nobody has anything). With FREED, consumer 1
 * has settled it and freed the group, and has still to turn back to entry 1, where consumer 2 was refused. Each consumer has a
 * path of its own. Consumer 1 may have two threads, with one mutex over the count of what they have in hand. A consumer may
 * leave after it has settled something, die between any two shared accesses, or stop where it has given a group back half.
 * The housekeeper rechecks an owner, or takes an entry from it, as at the end of a lease, and gives that back. The search is
 * bounded by how often G1 comes to nothing (VAIN).
 *
 * Properties: nobody gets an entry while another consumer has one of the group in hand, or an earlier one is available or
 * with a stealer. At rest everything is settled, if one consumer is left who goes on.
 *
 * Each BUG must end in "assertion violated":
 *   1  what was refused is forgotten before the heads are turned back
 *   2  the new owner of a free group does not ask who was refused before
 *   3  who is refused does not look at the owner once more
 *   4  no look at the owner after the offer
 *   5  the new owner of a free group leaves it to who freed it to turn back: another thread of its own does not see it
 *   6  the housekeeper does not set suspect before it looks at the slots
 *   7  the reaper frees before it turns back
 *   8  who finds its entry taken away frees as if it had settled it
 *   9  who is refused where somebody was refused before leaves no new version: it is forgotten with that one
 *   10  ... or frees a group whose owner is giving its last one back before the heads are turned back to that
 *
 * Shows R6, G1. */
#ifndef BUG
#define BUG 0
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#ifndef PUTS
#define PUTS 0 /* so many of them come while all runs */
#endif
#ifndef RELEASES
#define RELEASES 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef RETIRES
#define RETIRES 1
#endif
#ifndef THREADS
#define THREADS 1
#endif
#ifndef CONSUMERS
#define CONSUMERS 2
#endif
#ifndef KEEPERS
#define KEEPERS 0
#endif
#ifndef THEFTS
#define THEFTS 0
#endif
#ifndef FIRST
#define FIRST 1
#endif
#ifndef VAIN
#define VAIN 1
#endif
#ifndef FREED
#define FREED 0
#endif

#define AVAILABLE 0
#define OFFERED 1
#define ACQUIRED 2
#define LOCKED 3
#define SETTLED 4
#define NOT_YET 5
#define WORD(state, who, tag) ((state) + 8 * (who) + 64 * (tag))
#define STATE(word) ((word) & 7)
#define OWNER(word) (((word) >> 3) & 7)
#define TAG(word) ((word) >> 6)
#define KEEPER 4 /* also a stealer */

/* The owner word: version, suspect, owner. */
#define HOLDER(w) ((w) & 3)
#define SUSPECT 4
#define VERSION(w) ((w) & ~7)
#define NEXT(w) (VERSION(w) + 8)
/* The word of refusals: version, place + 1. */
#define PLACE(r) ((r) & 7)

#define NOT_WRITTEN 99
#define NOWHERE 99

short slot[ENTRIES] = 0;
byte tail = ENTRIES - PUTS;
byte epoch = 0;
byte cell[16] = NOT_WRITTEN;
short owner = 0, refused = 0;
byte count[4]; /* of a consumer's process, under its mutex */
bool mutex[4];

/* what the properties need */
byte last[ENTRIES] = 0;           /* who had it last */
bool is_returned[ENTRIES] = true; /* its release has returned */
bool looked[ENTRIES];             /* offered, and past the last look */
bool dead[5];
byte deaths = 0, stops = 0, releases = 0, retires = 0, keepers = 0, thefts = 0, vain = 0, gone = 0;
bool reaped = false, pruned = false;

#if DEATHS == 0
#define MAY_DIE skip
#else
#define MAY_DIE if :: atomic { me < KEEPER && deaths < DEATHS -> deaths++; gone++; dead[me] = true; goto over } :: true fi
#endif
#if STOPS == 0
#define MAY_STOP MAY_DIE
#else
#define MAY_STOP if :: atomic { me < KEEPER && stops < STOPS -> stops++; gone++; goto over } :: true fi; MAY_DIE
#endif
#if THREADS > 1
#define LOCK atomic { !mutex[me] -> mutex[me] = true };
#define UNLOCK mutex[me] = false;
#else
#define LOCK
#define UNLOCK
#endif

/* Is an earlier one there to be had? An entry that a consumer is still giving back does not count for that consumer. */
#define EARLIER(q) ((STATE(slot[q]) == AVAILABLE && (last[q] != me || is_returned[q])) || \
                    (STATE(slot[q]) == OFFERED && !looked[q]) || (STATE(slot[q]) == LOCKED))
#define ELSEWHERE(q) (STATE(slot[q]) == ACQUIRED && OWNER(slot[q]) != me)
inline judge(p) {
    i = 0;
    do
    :: i < ENTRIES ->
        if :: i != p && ELSEWHERE(i) -> is_wrong = true :: i < p && EARLIER(i) -> is_wrong = true :: else fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline lowest_released(from, to) {
    d_step {
        lowest = NOWHERE;
        i = from;
        do
        :: i < to ->
            i++;
            if
            :: cell[i] == NOT_WRITTEN -> lowest = 0
            :: cell[i] < lowest -> lowest = cell[i]
            :: else
            fi
        :: else -> break
        od;
        i = 0
    }
}

/* R3 and R4 as one step, model `rewind` has them apart. The head (R2) is no cursor of those who take from such a queue. */
inline rewind(position) {
    d_step { epoch++; cell[epoch] = position }
}

/* G4: while the group is free. A later owner itself turns back to the entries that were refused for its sake. */
inline turn_back() {
    do
    :: atomic { r = refused; if :: PLACE(r) == 0 -> break :: else fi };
        if
        :: HOLDER(owner) != 0 -> break
        :: else
        fi;
#if BUG == 1
        atomic { if :: refused == r -> refused = r - PLACE(r) :: else fi };
        MAY_STOP;
        rewind(PLACE(r) - 1)
#else
        rewind(PLACE(r) - 1);
        MAY_STOP;
        atomic {
            if
            :: refused == r -> refused = r - PLACE(r)
            :: else
            fi
        }
#endif
    od;
    r = 0
}

/* G3, G4 */
inline free_it() {
    do
    :: atomic { w = owner; if :: HOLDER(w) != me -> break :: else fi };
        atomic { is_mine = (owner == w); if :: is_mine -> owner = NEXT(w) :: else fi }; /* G3 */
        if
        :: is_mine -> MAY_STOP; turn_back(); break
        :: else
        fi
    od;
    w = 0;
    is_mine = false
}

/* Out of the book, and freed if it was the last. */
inline give_back() {
    LOCK
    count[me]--;
    if :: count[me] == 0 -> free_it() :: else fi;
    UNLOCK
    ok = false
}

/* G5 */
inline recheck() {
    w = owner;
    if
    :: HOLDER(w) == 0 -> turn_back()
    :: else ->
#if BUG == 6
        ok = true;
#else
        atomic { ok = (owner == w); if :: ok -> owner = (w | SUSPECT); w = owner :: else fi };
#endif
        i = 0;
        do
        :: ok && i < ENTRIES ->
            if
            :: STATE(slot[i]) == ACQUIRED || STATE(slot[i]) == LOCKED -> ok = false
            :: atomic { STATE(slot[i]) == OFFERED && OWNER(slot[i]) == HOLDER(w) -> slot[i] = WORD(AVAILABLE, 0, TAG(slot[i])) } /* T11 */
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        if
        :: ok ->
#if BUG != 10
            rewind(0); /* who has given its last one back may be stopped before it turned the heads */
#endif
            atomic { ok = (owner == w); if :: ok -> owner = NEXT(w) :: else fi };
            if :: ok -> turn_back() :: else fi
        :: else
        fi
    fi
}

/* A bound on what is searched: how often G1 may come to nothing. */
#define IN_VAIN if :: atomic { vain < VAIN -> vain++ } :: atomic { vain == VAIN -> pruned = true; goto over } fi

proctype consumer(byte me; bool begins) {
    byte scan_epoch, scan_tail, told = 0, own = 0, p, lowest, i, now;
    short word, w, r;
    bool ok, is_mine, is_wrong, is_fresh;
    if
#if FREED
    :: begins -> own = 1; turn_back()
    :: me == 2 -> own = ENTRIES
#else
    :: begins -> word = WORD(AVAILABLE, 0, 0); own = 1; goto has_it
#endif
    :: else
    fi;
again:
    if :: pruned -> goto over :: else fi;
    d_step { word = 0; now = 0; lowest = 0; w = 0; r = 0; i = 0; ok = false; is_wrong = false; is_fresh = false };
    do
    :: atomic { scan_epoch = epoch; scan_tail = tail };
        lowest_released(told, scan_epoch);
        d_step { p = (lowest < own -> lowest : own); told = scan_epoch; own = p; lowest = 0 };
        do
        :: p >= ENTRIES -> break
        :: p < ENTRIES ->
            word = slot[p];
            if
            :: STATE(word) == NOT_YET -> break
            :: STATE(word) == AVAILABLE || STATE(word) == OFFERED ->
                if
                :: (HOLDER(owner) == 0 || HOLDER(owner) == me)
                :: else -> /* G1: refused */
                    d_step {
                        i = (PLACE(refused) == 0 || PLACE(refused) > p + 1 -> p + 1 : PLACE(refused));
#if BUG == 9
                        refused = refused - PLACE(refused) + (PLACE(refused) == i -> 0 : 8) + i;
#else
                        refused = refused - PLACE(refused) + 8 + i;
#endif
                        i = 0
                    };
                    MAY_DIE;
#if BUG == 3
                    p++;
                    goto next;
#else
                    /* whoever frees it from here on sees what was recorded */
                    if
                    :: (HOLDER(owner) == 0 || HOLDER(owner) == me)
                    :: else -> p++; goto next
                    fi
#endif
                fi;
                if
                :: STATE(word) == OFFERED -> /* after a short spin, which here is any time */
                    if :: true :: (slot[p] != word) -> goto next fi
                :: else
                fi;
                LOCK
                do /* G1: owned */
                :: atomic {
                        w = owner;
                        is_fresh = (HOLDER(w) == 0);
                        if
                        :: HOLDER(w) != 0 && HOLDER(w) != me -> UNLOCK goto next
                        :: else
                        fi
                    };
                    atomic {
                        ok = (owner == w);
                        if
                        :: ok -> owner = NEXT(w) + me
                        :: else
                        fi
                    };
                    if :: ok -> break :: else fi
                od;
                ok = false;
                if
                :: is_fresh ->
                    r = refused;
                    if
#if BUG != 2
                    :: PLACE(r) != 0 && PLACE(r) - 1 < p -> ok = true; free_it() /* G2: before another thread takes it for its own */
#endif
#if BUG != 5
                    :: PLACE(r) != 0 && PLACE(r) - 1 >= p -> rewind(PLACE(r) - 1)
#endif
                    :: else
                    fi;
                    r = 0
                :: else
                fi;
                if :: !ok -> count[me]++ :: else fi;
                UNLOCK
                if :: ok -> IN_VAIN; goto again :: else fi;
                MAY_STOP;
                atomic {
                    ok = (slot[p] == word);
                    if
                    :: ok -> slot[p] = WORD(OFFERED, me, TAG(word) + 1); looked[p] = false /* T9 */
                    :: else
                    fi
                };
                if :: !ok -> give_back(); IN_VAIN; goto next :: else fi;
                MAY_DIE;
                now = epoch;
                lowest_released(scan_epoch, now);
                ok = !(now != scan_epoch && lowest < p);
                do /* the second look at the owner word */
                :: !ok -> break
                :: else ->
                    atomic {
                        w = owner;
                        if
#if BUG == 4
                        :: true -> looked[p] = true; judge(p)
#else
                        :: HOLDER(w) == me && !(w & SUSPECT) -> looked[p] = true; judge(p)
#endif
                        :: else
                        fi
                    };
                    if
                    :: looked[p] -> break
                    :: HOLDER(w) != me -> ok = false
                                        :: else -> atomic { if :: owner == w -> owner = NEXT(w) + me; looked[p] = true; judge(p) :: else fi }
                    fi
                od;
                if
                :: !ok -> /* T11 */
                    atomic { if :: slot[p] == WORD(OFFERED, me, TAG(word) + 1) -> slot[p] = WORD(AVAILABLE, 0, TAG(word) + 1) :: else fi };
                    MAY_DIE;
                    give_back();
                    IN_VAIN;
                    goto again
                :: else
                fi;
                atomic {
                    ok = (slot[p] == WORD(OFFERED, me, TAG(word) + 1));
                    if
                    :: ok -> slot[p] = WORD(ACQUIRED, me, TAG(word) + 1); last[p] = me; is_returned[p] = false; assert(!is_wrong) /* T10 */
                    :: else
                    fi
                };
                if :: !ok -> give_back(); IN_VAIN; goto again :: else fi;
                own = p + 1;
has_it:
                MAY_DIE;
                if
                :: atomic { releases < RELEASES -> releases++ };
                    atomic { ok = (slot[p] == WORD(ACQUIRED, me, TAG(word) + 1)); if :: ok -> slot[p] = WORD(AVAILABLE, 0, TAG(word) + 1) :: else fi }; /* T15 */
                    if
                    :: ok ->
                        MAY_DIE;
                        rewind(p);
                        atomic { if :: STATE(slot[p]) == AVAILABLE && last[p] == me -> is_returned[p] = true :: else fi };
                        MAY_DIE
                    :: else
                    fi
                :: atomic { ok = (slot[p] == WORD(ACQUIRED, me, TAG(word) + 1)); if :: ok -> slot[p] = WORD(SETTLED, 0, 0) :: else fi };
                    MAY_DIE
                fi;
#if BUG != 8
                if
                :: !ok -> LOCK count[me]--; ok = (count[me] == 0); UNLOCK if :: ok -> recheck() :: else fi /* a stealer may have it still */
                :: else -> give_back()
                fi;
#else
                give_back();
#endif
                if :: atomic { retires < RETIRES -> retires++; gone++; goto over } :: true fi;
                goto again
            :: else -> p++
            fi;
next:       skip
        od;
        own = p;
        skip;
        d_step { word = 0; now = 0; lowest = 0; p = 0; w = 0; r = 0; ok = false; is_wrong = false; is_fresh = false };
end:    (epoch != scan_epoch || tail != scan_tail) /* sleeps; that somebody wakes him is another model's subject */
    od;
over:
    skip
}

proctype producer() {
    byte k = ENTRIES - PUTS;
    do
    :: k < ENTRIES -> slot[k] = AVAILABLE; tail++; k++
    :: else -> break
    od
}

proctype reaper() {
    byte i = 0, me = KEEPER;
    short word, w, r;
end:
    (deaths > 0);
    do
    :: i < ENTRIES ->
        word = slot[i];
        atomic {
            if
            :: slot[i] == word && (STATE(word) == ACQUIRED || STATE(word) == OFFERED) && dead[OWNER(word)] ->
                slot[i] = WORD(AVAILABLE, 0, TAG(word)); is_returned[i] = true
            :: else
            fi
        };
        i++
    :: else -> break
    od;
#if BUG != 7
    rewind(0);
#endif
    w = owner;
    if
    :: dead[HOLDER(w)] -> atomic { if :: owner == w -> owner = NEXT(w) :: else fi }; turn_back()
    :: HOLDER(w) == 0 -> turn_back()
    :: else
    fi;
#if BUG == 7
    rewind(0);
#endif
    reaped = true;
over:
    skip
}

/* It may also take what a consumer has had for too long, and give it back. */
proctype housekeeper() {
    byte i = 0, p, me = KEEPER;
    short w, r, word;
    bool ok;
    do
    :: atomic { keepers < KEEPERS -> keepers++ }; recheck()
    :: atomic { thefts < THEFTS -> thefts++ };
        if
        :: p = 0
        :: p = ENTRIES - 1
        fi;
        word = slot[p];
        if
        :: STATE(word) == ACQUIRED ->
            atomic { ok = (slot[p] == word); if :: ok -> slot[p] = WORD(LOCKED, KEEPER, TAG(word) + 1) :: else fi }; /* seized */
            if
            :: ok ->
                atomic { slot[p] = WORD(AVAILABLE, 0, TAG(word) + 1); is_returned[p] = false }; /* T15 */
                rewind(p);
                is_returned[p] = true;
                recheck()
            :: else
            fi
        :: else
        fi
    :: break
    od;
over:
    skip
}

proctype monitor() {
    byte i = 0, me = KEEPER;
    short w, r;
    bool ok;
end:
    (timeout);
    if
    :: stops > 0 || thefts > 0 -> recheck(); (timeout)
    :: else
    fi;
    assert(deaths == 0 || reaped);
    if
    :: gone < CONSUMERS + THREADS - 1 && !pruned ->
        do :: i < ENTRIES -> assert(STATE(slot[i]) == SETTLED); i++ :: else -> break od
    :: else
    fi;
over:
    skip
}

init {
    byte k = ENTRIES - PUTS;
    atomic {
        do :: k < ENTRIES -> slot[k] = NOT_YET; k++ :: else -> break od;
#if FREED
        slot[0] = WORD(SETTLED, 0, 0);
        refused = 8 + 2; /* version 1, entry 1 */
#elif FIRST
        slot[0] = WORD(ACQUIRED, FIRST, 1);
        last[0] = FIRST;
        is_returned[0] = false;
        owner = NEXT(0) + FIRST;
        count[FIRST] = 1;
#endif
        run consumer(1, FIRST == 1);
        if :: THREADS > 1 -> run consumer(1, false) :: else fi;
        run consumer(2, FIRST == 2);
        if :: CONSUMERS > 2 -> run consumer(3, false) :: else fi;
        if :: PUTS > 0 -> run producer() :: else fi;
        if :: DEATHS > 0 -> run reaper() :: else fi;
        if :: KEEPERS + THEFTS > 0 -> run housekeeper() :: else fi;
        if :: KEEPERS > 1 -> run housekeeper() :: else fi;
        run monitor()
    }
}
