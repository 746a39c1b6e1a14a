/* Release, and the scans that must not overtake it.
 *
 *   spin -a [-DBUG=n] [-DENTRIES=n] [-DRELEASES=n] [-DDEATHS=n] [-DTAKEOVERS=n] [-DWHO=mask] rewind.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w24
 *
 * All entries are AVAILABLE at first. Consumers 1 and 2 share the ring's head (epoch and position in one word), consumer 3
 * has a pointer of its own. A get offers itself an entry, looks at the epoch again, and takes it; an offer by another
 * cannot be passed, but may be taken over. A release is R1 word -> AVAILABLE, R2 head back with another epoch, R3 epoch
 * + 1, R4 the position into the epoch's cell, return. One consumer may die between any two shared accesses; a reaper
 * gives back what it held and rewinds.
 *
 * Properties: once release() has returned, nobody is handed a later entry before the released one is handed out again
 * (the look at the epoch is the instant that counts). At rest every entry is settled: nobody sleeps before an entry that
 * he could have.
 *
 * Each BUG must end in "assertion violated":
 *   1  no second look at the epoch
 *   2  an offered entry may be passed
 *   3  the head has no epoch                                          (-DENTRIES=2)
 *   4  the reaper does not rewind                                     (-DENTRIES=2)
 *   5  one word for the last released position instead of cells       (-DENTRIES=2 -DRELEASES=2 -DDEATHS=0)
 *   6  the second look comes before the offer
 *   7  release returns before the epoch is raised
 *   8  a cell holds no position below the ring's reach: old entries of different age look alike to who looks again
 *
 *   9  the head moves though it is not where it was seen: its new value, which a release has set, does not count
 *
 * Shows S2, S24, S38, R1, R2, G1, G4. */
#ifndef BUG
#define BUG 0
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#ifndef RELEASES
#define RELEASES 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TAKEOVERS
#define TAKEOVERS 1
#endif
#ifndef WHO
#define WHO 3 /* bit mask of the consumers that take part */
#endif

#define AVAILABLE 0
#define OFFERED 1
#define ACQUIRED 2
#define SETTLED 3
#define WORD(state, owner, tag) ((state) + 4 * (owner) + 16 * (tag))
#define STATE(word) ((word) & 3)
#define OWNER(word) (((word) >> 2) & 3)
#define TAG(word) ((word) >> 4)
#define NOT_WRITTEN 99
#define NOWHERE 99

byte slot[ENTRIES] = 0;
byte head_epoch = 0, head_position = 0; /* one word */
byte epoch = 0;
byte cell[8] = NOT_WRITTEN;

/* what the properties need */
bool is_released[ENTRIES]; /* its release has returned, and nobody has it again */
byte handed_out[ENTRIES];
bool dead[4];
byte deaths = 0, releases = 0, takeovers = 0;
bool reaped = false;

#if DEATHS == 0
#define MAY_DIE skip
#else
#define MAY_DIE if :: atomic { deaths < DEATHS -> deaths++; dead[me] = true; goto died } :: true fi
#endif
#if ENTRIES > 2
#define OVERTAKES(p) ((p > 0 && is_released[0]) || (p > 1 && is_released[1]))
#else
#define OVERTAKES(p) (p > 0 && is_released[0])
#endif

/* R2. Position and epoch change in one step. */
inline turn_back(p) {
    d_step {
#if BUG != 3
        head_epoch++;
#endif
        if :: head_position > p -> head_position = p :: else fi
    }
}

/* lowest = lowest position released in the epochs (from, to]; "the beginning" if a cell is not written yet. */
inline lowest_released(from, to) {
    d_step {
        lowest = NOWHERE;
        i = from;
#if BUG == 5
        if :: to != from -> i = to; lowest = (cell[i] == NOT_WRITTEN -> 0 : cell[i]) :: else fi;
#else
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
#endif
        i = 0
    }
}

inline move_head(to) {
    atomic {
#if BUG == 3
        if :: head_position == seen_position -> head_position = to :: else fi
#else
        if :: head_epoch == seen_epoch && head_position == seen_position -> head_position = to :: else fi
#endif
    }
}

proctype consumer(byte me) {
    byte scan_epoch, told = 0, seen_epoch, seen_position, p, own = 0, lowest, i, word, now, turn;
    bool ok, overtakes;
again:
    skip;
    d_step { word = 0; now = 0; lowest = 0; turn = 0; p = 0; overtakes = false; ok = false; seen_epoch = 0; seen_position = 0; i = 0 };
    do
    :: scan_epoch = epoch;
        if
        :: me < 3 -> atomic { seen_epoch = head_epoch; seen_position = head_position }; p = seen_position
        :: else ->
            lowest_released(told, scan_epoch);
            p = (lowest < own -> lowest : own);
            told = scan_epoch;
            own = p
        fi;
        do
        :: p >= ENTRIES -> break
        :: p < ENTRIES ->
            word = slot[p];
            if
            :: STATE(word) == AVAILABLE || (STATE(word) == OFFERED && OWNER(word) != me) ->
#if BUG == 2
                if :: STATE(word) == OFFERED -> p++; goto next :: else fi;
#endif
#if BUG == 6
                now = epoch;
#endif
                /* after a short spin, which here is any time */
                if
                :: STATE(word) == OFFERED ->
                    if :: atomic { takeovers < TAKEOVERS -> takeovers++ } :: (slot[p] != word) -> goto next fi
                :: else
                fi;
                atomic {
                    if
                    :: slot[p] == word -> /* T9 */
                        slot[p] = WORD(OFFERED, me, TAG(word) + 1); ok = true; overtakes = OVERTAKES(p)
                    :: else -> ok = false
                    fi
                };
                if :: !ok -> goto next :: else fi;
                MAY_DIE;
#if BUG == 1
                now = scan_epoch;
#elif BUG != 6
                atomic { now = epoch; overtakes = OVERTAKES(p) }; /* the get happens here */
#endif
                lowest_released(scan_epoch, now);
                if
                :: now != scan_epoch && lowest < p -> /* T11: nobody has passed it, so nothing to rewind */
                    atomic { if :: slot[p] == WORD(OFFERED, me, TAG(word) + 1) -> slot[p] = WORD(AVAILABLE, 0, TAG(word) + 1) :: else fi };
                    goto again
                :: else
                fi;
                atomic {
                    if
                    :: slot[p] == WORD(OFFERED, me, TAG(word) + 1) ->
                        slot[p] = WORD(ACQUIRED, me, TAG(word) + 1); /* T10 */
                        ok = true;
                        handed_out[p]++;
                        is_released[p] = false;
                        assert(!overtakes)
                    :: else -> ok = false
                    fi
                };
                if :: !ok -> goto again :: else fi;
                MAY_DIE;
                if :: me < 3 -> move_head(p + 1) :: else -> own = p + 1 fi;
                MAY_DIE;
                turn = handed_out[p];
                if
                :: atomic { releases < RELEASES -> releases++ };
                    slot[p] = WORD(AVAILABLE, 0, TAG(slot[p])); /* R1, T15 */
                    MAY_DIE;
#if BUG == 7
                    if :: atomic { handed_out[p] == turn -> is_released[p] = true } :: else fi;
#endif
                    turn_back(p);                               /* R2 */
                    MAY_DIE;
                    atomic { epoch++; i = epoch };              /* R3 */
                    MAY_DIE;
#if BUG == 5
                    cell[epoch] = p;
#elif BUG == 8
                    cell[i] = ENTRIES - 1;
#else
                    cell[i] = p;                                /* R4 */
#endif
                    i = 0;
                    MAY_DIE;
                    if :: atomic { handed_out[p] == turn -> is_released[p] = true } :: else fi
                :: slot[p] = WORD(SETTLED, 0, 0)
                fi;
                goto again
            :: else -> p++ /* acquired or settled */
            fi;
next:       skip
        od;
        if :: me < 3 -> move_head(ENTRIES) :: else -> own = ENTRIES fi;
        d_step { word = 0; now = 0; lowest = 0; p = 0; seen_epoch = 0; seen_position = 0; overtakes = false; ok = false };
end:    (epoch != scan_epoch) /* sleeps; that somebody wakes him is another model's subject */
    od;
died:
    skip
}

proctype reaper() {
    byte k = 0, word;
end:
    (deaths > 0);
    do
    :: k < ENTRIES ->
        word = slot[k];
        atomic {
            if
            :: slot[k] == word && (STATE(word) == ACQUIRED || STATE(word) == OFFERED) && dead[OWNER(word)] ->
                slot[k] = WORD(AVAILABLE, 0, TAG(word)) /* T11, T15 */
            :: else
            fi
        };
        k++
    :: else -> break
    od;
#if BUG != 4
    turn_back(0);
    atomic { epoch++; cell[epoch] = 0 };
#endif
    reaped = true
}

proctype monitor() {
    byte k = 0;
end:
    (timeout) ->
    assert(deaths == 0 || reaped);
    do :: k < ENTRIES -> assert(STATE(slot[k]) == SETTLED); k++ :: else -> break od
}

init {
    atomic {
        if :: WHO & 1 -> run consumer(1) :: else fi;
        if :: WHO & 2 -> run consumer(2) :: else fi;
        if :: WHO & 4 -> run consumer(3) :: else fi;
        run reaper();
        run monitor()
    }
}
