/* Reapers, and rows that are used again.
 *
 *   spin -a [-DBUG=n] rows.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000
 *
 * A process is dead. Its process row is named by slot 0, a consumer row of its by slot 1. Two reapers sweep both slots, each
 * may be stopped anywhere for as long as it likes. A reaper that has swept all takes the structure lock, frees the
 * consumer row, then the process row by raising its generation. One reaper may die between the two, which frees the
 * lock. One living process takes the process row, another one the consumer row, and both acquire entries under the same
 * numbers.
 *
 * Properties: no reaper ever takes an entry away from a living one; in the end nothing of the dead is left.
 *
 * Each BUG must end in "assertion violated":
 *   1  the process row's generation is looked at once, before the sweep, and not after each word
 *   2  whose the consumer row is, is looked at once, before the sweep, and not after each word
 *
 * Shows C12, G3, G4. */
#ifndef BUG
#define BUG 0
#endif
#define SLOTS 2
#define NOBODY 0
#define BY_PROCESS 1  /* the word names the process row */
#define BY_CONSUMER 2 /* the word names the consumer row */
#define WORD(owner, tag) ((owner) + 4 * (tag))
#define OWNER(word) ((word) & 3)
#define TAG(word) ((word) >> 2)

#define OF_THE_DEAD 1
#define OF_THE_LIVING 2

byte slot[SLOTS];
byte generation = 0;                /* of the process row */
byte consumer_row = OF_THE_DEAD;    /* 0: free */
bool process_row_is_free = false;
bool locked = false;
byte living_owner[SLOTS];           /* what the properties need: BY_PROCESS or BY_CONSUMER of somebody living */
byte sweeps_done = 0, deaths = 0;

proctype reaper() {
    byte i, word;
    bool consumer_row_is_dead;
begin:
    i = 0;
    consumer_row_is_dead = (consumer_row == OF_THE_DEAD);
    do
    :: i < SLOTS ->
        word = slot[i];                                                /* 1  the word */
#if BUG != 1
        if :: generation != 0 -> goto overtaken :: else fi;            /* 2  are the rows still the dead one's? */
#endif
#if BUG != 2
        if
        :: OWNER(word) == BY_CONSUMER && consumer_row_is_dead && consumer_row != OF_THE_DEAD -> goto overtaken
        :: else
        fi;
#endif
        if
        :: OWNER(word) == BY_PROCESS || (OWNER(word) == BY_CONSUMER && consumer_row_is_dead) ->
            atomic {                                                   /* 3  CAS from exactly that word */
                if
                :: slot[i] == word -> assert(living_owner[i] == NOBODY); slot[i] = WORD(NOBODY, TAG(word))
                :: else
                fi
            }
        :: else
        fi;
        i++
    :: else -> break
    od;
    atomic { !locked -> locked = true };
    if
    :: generation == 0 ->
        if :: consumer_row == OF_THE_DEAD -> consumer_row = 0 :: else fi;
        if :: atomic { deaths == 0 -> deaths++; locked = false; goto died } :: true fi;
        generation++;
        process_row_is_free = true
    :: else
    fi;
    locked = false;
overtaken:
    if :: generation == 0 -> goto begin :: else fi; /* who got further has died: the next who looks begins anew */
    sweeps_done++;
died:
    skip
}

inline acquire_twice(owner) {
    do
    :: tries < 2 ->
        tries++;
        if :: i = 0 :: i = 1 fi;
        word = slot[i];
        if
        :: OWNER(word) == NOBODY ->
            atomic { if :: slot[i] == word -> slot[i] = WORD(owner, TAG(word) + 1); living_owner[i] = owner :: else fi }
        :: else
        fi
    :: else -> break
    od
}

proctype next_process() {
    byte i, word, tries = 0;
end:
    atomic { process_row_is_free && !locked -> process_row_is_free = false };
    acquire_twice(BY_PROCESS)
}

proctype next_consumer() {
    byte i, word, tries = 0;
end:
    atomic { consumer_row == 0 && !locked -> consumer_row = OF_THE_LIVING };
    acquire_twice(BY_CONSUMER)
}

proctype monitor() {
end:
    (timeout) ->
    assert(sweeps_done + deaths == 2 && generation == 1 && consumer_row != OF_THE_DEAD);
    assert(OWNER(slot[0]) == living_owner[0] && OWNER(slot[1]) == living_owner[1])
}

init {
    atomic {
        slot[0] = WORD(BY_PROCESS, 0);
        slot[1] = WORD(BY_CONSUMER, 0);
        run reaper();
        run reaper();
        run next_process();
        run next_consumer();
        run monitor()
    }
}
