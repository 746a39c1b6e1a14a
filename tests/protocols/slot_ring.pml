/* One ring of two slots: two producers, one strict consumer.
 *
 *   spin -a [-DBUG=n] [-DONLY_ACQUIRED] [-DNM=n] [-DHOLES=n] slot_ring.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w26
 *
 * A producer claims the slot under the tail by a CAS of its word, helps the tail, fills, publishes by a second CAS. The
 * consumer scans in strict order, may keep one entry in hand over several laps, and settles or releases it later. A
 * process that meets a claim turns it into a tombstone (claimant dead) or a hole (claimant slow). An old entry under
 * the tail is carried: its lap is raised where it stands.
 *
 * A stopped process is one that the scheduler does not pick. "Patience is over" may be true at any time, so a stop
 * of every length is covered. One producer may die between any two shared accesses.
 *
 * Properties: one writer in a body at a time; a body is read only whole and only by the one who took it; order. Each put
 * that returned is taken exactly once. At rest nobody is stuck and no slot stays claimed by the living.
 *
 * Each BUG must end in "assertion violated":
 *   1  the tail is not helped when the slot is a lap ahead
 *   2  the owner of a hole frees it at the lap of its claim, not at the lap the word has now
 *   3  the tail steps over a hole without raising the hole's lap
 *   4  a slow claim is freed for others by time alone
 *   5  a settlement compares with the word of the delivery
 *   6  the taker passes a claimed slot
 *   7  an entry is looked for at its own lap only, not by its true position
 *
 * Shows S3, E1, E2, E3, E18, G1, G3. */
#ifndef BUG
#define BUG 0
#endif
#ifndef NM
#define NM 2 /* entries of each producer */
#endif
#ifndef HOLES
#define HOLES 1
#endif
#define SLOTS 2
#define TOTAL (2 * NM)

#define FREE 0
#define CLAIMED 1
#define AVAILABLE 2
#define ACQUIRED 3
#define QUARANTINED 4
#define WORD(state, owner, carried, lap) ((state) + 8 * (owner) + 64 * (carried) + 128 * (lap))
#define STATE(word) ((word) & 7)
#define OWNER(word) (((word) >> 3) & 7)
#define CARRIED(word) (((word) >> 6) & 1)
#define LAP(word) ((word) >> 7)
#define CONSUMER 3

#ifdef ONLY_ACQUIRED /* variant: the tail carries only what somebody holds */
#define CAN_BE_CARRIED(word) (STATE(word) == ACQUIRED)
#else
#define CAN_BE_CARRIED(word) (STATE(word) == ACQUIRED || STATE(word) == AVAILABLE)
#endif

/* the ring */
short slot[SLOTS] = 0;
byte position[SLOTS]; /* true position of what the slot holds */
byte body[SLOTS];     /* 0: half written */
byte tail = 0;

/* what the properties need */
byte writers[SLOTS];
byte put_done[TOTAL], taken[TOTAL];
bool dead[3], finished[3];
byte deaths = 0, holes = 0;

inline cas(index, from, to) {
    atomic { if :: slot[index] == from -> slot[index] = to; ok = true :: else -> ok = false fi }
}
inline help(at) { atomic { if :: tail == at -> tail = at + 1 :: else fi } }

/* A death ends the writes of who was inside a body. */
#define MAY_DIE(inside) \
    if :: atomic { deaths < 1 -> deaths++; if :: inside -> writers[t % SLOTS]-- :: else fi; dead[me] = true; goto died } \
       :: true \
    fi
#define NEXT_IS_FREE (slot[(t + 1) % SLOTS] == WORD(FREE, 0, 0, (t + 1) / SLOTS))

proctype producer(byte me) {
    byte sent = 0, t;
    short word;
    bool ok;
    do
    :: sent < NM ->
retry:  t = tail;
        word = slot[t % SLOTS];
        if
        :: LAP(word) == t / SLOTS && STATE(word) == FREE ->
            cas(t % SLOTS, word, WORD(CLAIMED, me, 0, t / SLOTS)); /* T1 */
            if :: !ok -> goto retry :: else fi;
            MAY_DIE(false);
            help(t);
            MAY_DIE(false);
            atomic { writers[t % SLOTS]++; assert(writers[t % SLOTS] == 1); body[t % SLOTS] = 0 };
            MAY_DIE(true);
            atomic { position[t % SLOTS] = t; body[t % SLOTS] = (me - 1) * NM + sent + 1; writers[t % SLOTS]-- };
            MAY_DIE(false);
            atomic {
                if
                :: slot[t % SLOTS] == WORD(CLAIMED, me, 0, t / SLOTS) -> /* T2: the put happens here */
                    slot[t % SLOTS] = WORD(AVAILABLE, 0, 0, t / SLOTS);
                    put_done[(me - 1) * NM + sent] = 1;
                    ok = true
                :: else -> ok = false
                fi
            };
            if
            :: ok -> sent++
            :: else -> /* we were slow: give the hole back, put again at the tail */
#if BUG == 4
                skip
#else
hole:           word = slot[t % SLOTS];
                assert(STATE(word) == QUARANTINED && OWNER(word) == me);
                MAY_DIE(false);
#if BUG == 2
                slot[t % SLOTS] = WORD(FREE, 0, 0, t / SLOTS + 1)
#else
                cas(t % SLOTS, word, WORD(FREE, 0, 0, LAP(word) + 1)); /* T6 */
                if :: !ok -> goto hole :: else fi
#endif
#endif
            fi
        :: LAP(word) == t / SLOTS && STATE(word) != FREE -> help(t)
        :: LAP(word) > t / SLOTS ->
#if BUG == 1
            (tail != t)
#else
            help(t)
#endif
        :: LAP(word) < t / SLOTS ->
            if
            :: (STATE(word) == CLAIMED || STATE(word) == QUARANTINED) && dead[OWNER(word)] ->
                cas(t % SLOTS, word, WORD(FREE, 0, 0, LAP(word) + 1)) /* T3: a tombstone; T6 */
            :: STATE(word) == QUARANTINED && !dead[OWNER(word)] -> /* passed on to this lap, if that gains room */
                if
                :: NEXT_IS_FREE ->
#if BUG == 3
                    help(t)
#else
                    cas(t % SLOTS, word, WORD(QUARANTINED, OWNER(word), 0, t / SLOTS)) /* T5 */
#endif
                :: else -> (slot[t % SLOTS] != word || tail != t || NEXT_IS_FREE || dead[OWNER(word)])
                fi
            :: CAN_BE_CARRIED(word) -> /* carried, if that gains room */
                if
                :: NEXT_IS_FREE -> cas(t % SLOTS, word, WORD(STATE(word), OWNER(word), 1, t / SLOTS)) /* T17 */
                :: else -> (slot[t % SLOTS] != word || tail != t || NEXT_IS_FREE)
                fi
            :: else -> /* full: wait for a change */
                (slot[t % SLOTS] != word || tail != t || (STATE(word) == CLAIMED && dead[OWNER(word)]))
            fi
        fi
    :: else -> break
    od;
    finished[me] = true;
died:
    skip
}

#define AT_ITS_TURN(word) (LAP(word) == at / SLOTS && STATE(word) == AVAILABLE && !CARRIED(word))
#if BUG == 7
#define AT_ITS_POSITION(word) (false)
#else
#define AT_ITS_POSITION(word) \
    (LAP(word) > at / SLOTS && STATE(word) == AVAILABLE && CARRIED(word) && position[at % SLOTS] == at)
#endif

inline settle(p, remembered) {
#if BUG == 5
    message = body[p % SLOTS];
    cas(p % SLOTS, remembered, WORD(FREE, 0, 0, LAP(remembered) + 1));
    if :: ok -> taken[message - 1]++ :: else fi /* refused, although it is ours: nobody settles it any more */
#else
    do
    :: word = slot[p % SLOTS];
        assert(STATE(word) == ACQUIRED && OWNER(word) == CONSUMER && position[p % SLOTS] == p);
        atomic {
            message = body[p % SLOTS];
            if
            :: slot[p % SLOTS] == word ->
                slot[p % SLOTS] = WORD(FREE, 0, 0, LAP(word) + 1); /* T14 */
                taken[message - 1]++;
                assert(taken[message - 1] == 1);
                ok = true
            :: else -> ok = false
            fi
        };
        if :: ok -> break :: else fi
    od
#endif
}

proctype consumer() {
    byte at = 0, held_at = 0, message, next = 0;
    short word, held_word = 0;
    bool ok, holds = false, released = false, held_once = false;
end:
    do
    :: word = slot[at % SLOTS];
        if
        :: LAP(word) < at / SLOTS || (LAP(word) == at / SLOTS && STATE(word) == FREE) -> /* end of the queue */
            if
            :: holds -> holds = false; settle(held_at, held_word)
            :: holds && !released && LAP(word) == at / SLOTS -> /* release, and scan again from there */
                do
                :: word = slot[held_at % SLOTS];
                    cas(held_at % SLOTS, word, WORD(AVAILABLE, 0, CARRIED(word), LAP(word))); /* T15 */
                    if :: ok -> break :: else fi
                od;
                holds = false; released = true; at = held_at
            :: !holds ->
end_sleep:      (slot[at % SLOTS] != word)
            fi
        :: LAP(word) == at / SLOTS && STATE(word) == CLAIMED ->
            if
            :: dead[OWNER(word)] -> cas(at % SLOTS, word, WORD(FREE, 0, 0, LAP(word) + 1))
            :: !dead[OWNER(word)] && holes < HOLES -> /* patience is over */
                holes++;
#if BUG == 4
                cas(at % SLOTS, word, WORD(FREE, 0, 0, LAP(word) + 1))
#else
                cas(at % SLOTS, word, WORD(QUARANTINED, OWNER(word), 0, LAP(word))) /* T4 */
#endif
#if BUG == 6
            :: at++
#endif
            :: (slot[at % SLOTS] != word || dead[OWNER(word)])
            fi
        :: AT_ITS_TURN(word) || AT_ITS_POSITION(word) ->
            cas(at % SLOTS, word, WORD(ACQUIRED, CONSUMER, CARRIED(word), LAP(word))); /* T9 and T10 in one step */
            if
            :: ok ->
                assert(writers[at % SLOTS] == 0 && body[at % SLOTS] != 0 && position[at % SLOTS] == at);
                if
                :: released && held_at == at -> released = false /* the released one: out of turn */
                :: else -> assert(at >= next); next = at + 1
                fi;
                if
                :: !holds && !released && !held_once ->
                    holds = true; held_once = true; held_at = at; held_word = slot[at % SLOTS]
                :: settle(at, WORD(ACQUIRED, CONSUMER, CARRIED(word), LAP(word)))
                fi;
                at++
            :: else
            fi
        :: LAP(word) == at / SLOTS && STATE(word) == QUARANTINED ->
            if :: dead[OWNER(word)] -> cas(at % SLOTS, word, WORD(FREE, 0, 0, LAP(word) + 1)) :: else fi;
            at++
        :: LAP(word) == at / SLOTS && (STATE(word) == ACQUIRED || (STATE(word) == AVAILABLE && CARRIED(word))) -> at++
        :: LAP(word) > at / SLOTS && !AT_ITS_POSITION(word) -> at++
        fi
    od
}

proctype monitor() {
    byte i = 0;
end:
    (timeout) ->
    assert((finished[1] || dead[1]) && (finished[2] || dead[2])); /* nobody is stuck */
    do :: i < TOTAL -> assert(put_done[i] == taken[i]); i++ :: else -> break od;
    i = 0;
    do
    :: i < SLOTS ->
        assert(STATE(slot[i]) == FREE || (STATE(slot[i]) == QUARANTINED && !dead[OWNER(slot[i])]) || dead[OWNER(slot[i])]);
        i++
    :: else -> break
    od
}

init { atomic { run producer(1); run producer(2); run consumer(); run monitor() } }
