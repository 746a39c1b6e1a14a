/* Reapers, and a row that is used again.
 *
 *   spin -a [-DBUG=1] rows.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * A dead owner's row is named by slot 0. Two reapers sweep both slots, each may be stopped anywhere for as long as it
 * likes. Who has swept all frees the row by raising its generation; a living process takes the row and acquires entries
 * under the same number. Property: no reaper ever takes an entry away from the living one, and in the end nothing of the
 * dead is left.
 *
 * Each BUG must end in "assertion violated":
 *   1  the generation is looked at once, before the sweep, and not after each word */
#ifndef BUG
#define BUG 0
#endif
#define SLOTS 2
/* A word: 1 if the row holds the slot, and a tag that grows with each acquisition. */
#define WORD(held, tag) ((held) + 2 * (tag))
#define IS_HELD(word) ((word) & 1)
#define TAG(word) ((word) >> 1)

byte slot[SLOTS];
byte generation = 0;
bool row_is_free = false;
bool living_holds[SLOTS];
byte acquisitions = 0;
byte sweeps_done = 0;

proctype reaper() {
    byte i = 0, word, dead_generation = 0;
    do
    :: i < SLOTS ->
        word = slot[i];                                                   /* 1  the word */
#if BUG != 1
        if :: generation != dead_generation -> goto overtaken :: else fi; /* 2  then: is the row still the dead one's? */
#endif
        if
        :: IS_HELD(word) ->
            atomic {                                                      /* 3  CAS from exactly that word */
                if :: slot[i] == word -> assert(!living_holds[i]); slot[i] = WORD(0, TAG(word)) :: else fi
            }
        :: else
        fi;
        i++
    :: else -> break
    od;
    atomic { if :: generation == dead_generation -> generation++; row_is_free = true :: else fi };
overtaken:
    sweeps_done++
}

proctype living() {
    byte i, word;
end:
    (row_is_free);
    row_is_free = false;
    do
    :: acquisitions < 2 ->
        acquisitions++;
        if :: i = 0 :: i = 1 fi;
        word = slot[i];
        if
        :: !IS_HELD(word) ->
            atomic { if :: slot[i] == word -> slot[i] = WORD(1, TAG(word) + 1); living_holds[i] = true :: else fi }
        :: else
        fi
    :: else -> break
    od
}

proctype monitor() {
end:
    (timeout) ->
    assert(sweeps_done == 2 && generation == 1);
    assert(IS_HELD(slot[0]) == living_holds[0] && IS_HELD(slot[1]) == living_holds[1])
}

init { atomic { slot[0] = WORD(1, 0); run reaper(); run reaper(); run living(); run monitor() } }
