/* The wakes of consumers: one bit per queue and consumer, and nothing else that counts.
 *
 *   spin -a [-DBUG=n] [-DN0=n] [-DN1=n] [-DWHO=mask] [-DDEATHS=n] notify.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w24
 *
 * Two queues with a producer each. Consumer 0 waits on both queues, 1 and 2 on queue 0 only. A sleeper sets its idle bit,
 * looks once more, sleeps on its wake word. Clearing the bit is the claim: whoever clears it owes one wake. A consumer
 * that gets an entry keeps it and never comes back, which is the worst that a consumer can do to the others. Consumer 1
 * may close instead. One of all these may die between any two shared accesses. A reaper then clears the dead one's bits
 * and wakes every sleeper whose bit is clear.
 *
 * Property: at rest no living consumer sleeps while its queue has an available entry.
 *
 * Each BUG must end in "assertion violated":
 *   1  the consumer looks, then announces itself                                (-DDEATHS=0)
 *   2  a state word is the claim, the notifier clears the bit later             (-DDEATHS=0)
 *   3  who leaves with an entry passes nothing on                               (-DDEATHS=0)
 *   4  who closes drops the notification that it had                            (-DDEATHS=0 -DWHO=6 -DN0=1)
 *   5  the reaper wakes nobody                                                  (-DWHO=6 -DN0=1)
 *   6  who was told of two queues passes on only the one it did not take from   (-DDEATHS=0 -DWHO=3 -DN0=1)
 *   7  the wake word is read after the announcement and the look                (-DDEATHS=0)
 *
 * Shows S44, S55, S65, C5, C7, R4, G4, G6. */
#ifndef BUG
#define BUG 0
#endif
#ifndef N0
#define N0 2 /* entries for queue 0 */
#endif
#ifndef N1
#define N1 1
#endif
#ifndef WHO
#define WHO 7 /* bit mask of the consumers that take part */
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define CONSUMERS 3
#define NOBODY 9
#define BIT(queue, consumer) ((queue) * CONSUMERS + (consumer))

byte available[2] = 0;
bool idle[6];
bool interested[6]; /* BUG 2 only */
byte wake_word[CONSUMERS];
bool asleep[5];
bool dead[5]; /* consumers 0 to 2, producers 3 and 4 */
byte deaths = 0;
bool reaped = false;

#if DEATHS == 0
#define MAY_DIE skip
#else
#define MAY_DIE \
    if :: atomic { deaths < DEATHS -> deaths++; dead[me] = true; asleep[me] = false; goto died } :: true fi
#endif

/* Claim one sleeper of this queue and wake it; none: nothing. */
inline notify(queue) {
    j = 0;
    chosen = NOBODY;
#if BUG == 2
    do
    :: j < CONSUMERS ->
        if
        :: idle[BIT(queue, j)] ->
            atomic { if :: interested[BIT(queue, j)] -> interested[BIT(queue, j)] = false; chosen = j :: else fi };
            if :: chosen != NOBODY -> break :: else fi
        :: else
        fi;
        j++
    :: else -> break
    od;
    if
    :: chosen != NOBODY ->
        idle[BIT(queue, chosen)] = false;
        wake_word[chosen] = wake_word[chosen] ^ 1;
        asleep[chosen] = false
    :: else
    fi;
#else
    do
    :: j < CONSUMERS ->
        atomic { if :: idle[BIT(queue, j)] -> idle[BIT(queue, j)] = false; chosen = j :: else fi };
        if :: chosen != NOBODY -> break :: else fi;
        j++
    :: else -> break
    od;
    MAY_DIE;
    if
    :: chosen != NOBODY ->
        atomic { wake_word[chosen] = (wake_word[chosen] + 1) % 4 };
        MAY_DIE;
        asleep[chosen] = false
    :: else
    fi;
#endif
    chosen = NOBODY;
    j = 0
}

proctype producer(byte queue) {
    byte n = 0, j = 0, chosen = NOBODY, me;
    me = 3 + queue;
    do
    :: n < (queue == 0 -> N0 : N1) -> available[queue]++; MAY_DIE; notify(queue); n++; MAY_DIE
    :: else -> break
    od;
died:
    skip
}

#define TAKE(queue) atomic { if :: available[queue] > 0 -> available[queue]--; got = queue + 1 :: else fi }
#define TAKE_ANY TAKE(0); if :: got == 0 && me == 0 -> TAKE(1) :: else fi
#define ANNOUNCE(queue) atomic { idle[BIT(queue, me)] = true; interested[BIT(queue, me)] = true }
#define WITHDRAW(queue) atomic { idle[BIT(queue, me)] = false; interested[BIT(queue, me)] = false }

proctype consumer(byte me) {
    byte got = 0, seen = 0, j = 0, chosen = NOBODY;
    bool closes = false;
    if :: me == 1 -> closes = true :: true fi;
    do
    :: d_step { seen = 0; j = 0; chosen = NOBODY; got = 0 };
        TAKE_ANY;
        MAY_DIE;
        if :: got != 0 -> goto leave :: else fi;
        seen = wake_word[me];
#if BUG == 1
        if :: available[0] > 0 || (me == 0 && available[1] > 0) -> goto again :: else fi;
        ANNOUNCE(0);
        if :: me == 0 -> ANNOUNCE(1) :: else fi;
#else
        ANNOUNCE(0);
        MAY_DIE;
        if :: me == 0 -> ANNOUNCE(1); MAY_DIE :: else fi;
        TAKE_ANY;
        if :: got != 0 -> goto withdraw :: else fi;
#endif
#if BUG == 7
        seen = wake_word[me];
#endif
        atomic { if :: wake_word[me] == seen -> asleep[me] = true :: else fi };
end:    if
        :: !asleep[me] || dead[me]
        :: closes && asleep[me] -> asleep[me] = false; goto withdraw
        fi;
        MAY_DIE;
        TAKE_ANY;
withdraw:
        WITHDRAW(0);
        MAY_DIE;
        if :: me == 0 -> WITHDRAW(1) :: else fi;
        MAY_DIE;
        if
        :: got != 0 || closes ->
leave:
#if BUG != 3
#if BUG == 4
            if :: closes && got == 0 -> goto died :: else fi;
#endif
            /* The baton: what is left is the next one's, whether we were told of it or not. */
            if :: available[0] > 0 && !(BUG == 6 && got == 2) -> notify(0) :: else fi;
            if :: me == 0 && available[1] > 0 -> notify(1) :: else fi;
#endif
            break
        :: else
        fi;
again:  skip
    od;
died:
    skip
}

proctype reaper() {
    byte j = 0;
end:
    (deaths > 0);
#if BUG != 5
    do :: j < 6 -> if :: dead[j % CONSUMERS] -> idle[j] = false :: else fi; j++ :: else -> break od;
    /* whoever owes a sleeper its wake may be the dead one; here all are woken, which is never wrong */
    j = 0;
    do
    :: j < CONSUMERS -> atomic { wake_word[j] = (wake_word[j] + 1) % 4 }; asleep[j] = false; j++
    :: else -> break
    od;
    j = 0;
#endif
    reaped = true
}

proctype monitor() {
    byte c = 0;
end:
    (timeout) ->
    assert(deaths == 0 || reaped);
    do
    :: c < CONSUMERS ->
        assert(!(asleep[c] && !dead[c] && (available[0] > 0 || (c == 0 && available[1] > 0))));
        c++
    :: else -> break
    od
}

init {
    atomic {
        run producer(0);
        if :: WHO & 1 -> run producer(1); run consumer(0) :: else fi;
        if :: WHO & 2 -> run consumer(1) :: else fi;
        if :: WHO & 4 -> run consumer(2) :: else fi;
        run reaper();
        run monitor()
    }
}
