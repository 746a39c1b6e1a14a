/* The line of blocked producers: tickets, calls, who may take room before whom, one death.
 *
 *   spin -a [-DBUG=n] [-DLIMIT=n] [-DDEATHS=n] [-DVICTIM=n] [-DSTOPS=n] [-DPRODUCERS=n] line.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000 -w24
 *
 * Mirrors shmq_line_admit, _enter, _answer, _leave, _call, _recover (line.c), wait_in_line (put/put.c), claim_counted
 * (put/publish.c), shmq_wake_full (room_wake.c). The slots and the count's own death are the subject of `room`. Here a put is one
 * step that raises the count, and a settlement one that lowers it.
 *
 * The queue is full. Two or three producers put one message each, without a time limit of their own; a consumer takes whatever is
 * there. One of the four may die after any step; the reaper takes its ticket back, has everybody look, and consumes if it was
 * the consumer. With STOPS a producer that was called may be passed at any time, as if it were silent for the patience. Its
 * next look takes its place back. Wake words are exact: whoever read one notices each change.
 *
 * Properties: never more messages than the limit. A producer in line takes nothing while one stands before it that is to be
 * served. A producer without a ticket leaves to all in line what they want. At rest all is put and consumed, without any sleep
 * reaching its limit; after a death that nobody but its reaper can have seen, too.
 *
 * Each BUG must end in "assertion violated":
 *   1  a newcomer does not look at the line
 *   2  the wake word is read after the answer
 *   3  who leaves calls nobody
 *   4  who leaves looks for room before it has given its ticket back
 *   5  a call is answered after the look
 *   6  the reaper leaves the tickets of the dead
 *   7  the reaper wakes nobody
 *   8  a newcomer takes room that those in line are to have      (-DLIMIT=2)
 *   9  the second in line does not look at the first
 *
 * Shows R13, R20, G1. */
#ifndef BUG
#define BUG 0
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef PRODUCERS
#define PRODUCERS 3
#endif
#define TICKETS 3
#define CONSUMER 3
#define REAPER 4
#define NOBODY 9

#define FREE 0
#define WAITING 1
#define CALLED 2
#define PASSED 3
#define BACK 4 /* FREE of the next lap */

byte state[TICKETS], owner[TICKETS] = NOBODY; /* one word; three tickets are enough */
byte front = 0, end_ = 0;                         /* one word */
byte waiters = 0;
byte count = LIMIT;
bool wake_seen[TICKETS]; /* nobody has raised the wake word of this one's ticket since it read it */
bool asleep[TICKETS];

/* what the properties need */
bool finished[TICKETS];
byte dead = NOBODY, deaths = 0, consumed = 0, stops = 0;
bool reaped = false;

#ifdef VICTIM
#define MORTAL (me == VICTIM)
#else
#define MORTAL (me != REAPER)
#endif
#if DEATHS == 0
#define STEP(access) atomic { access }
#else
/* A death is part of the step before it: no state of its own. */
#define STEP(access) \
    atomic { access; if :: MORTAL && deaths < DEATHS -> deaths++; dead = me; goto died :: true fi }
#endif

inline wake(p) { wake_seen[p] = false; woken = asleep[p]; asleep[p] = false }

/* The ticket n, if it still is what it was read as, goes back; the front may follow. */
inline take_away(n, s, o) {
    STEP(if :: state[n] == s && owner[n] == o -> state[n] = BACK; owner[n] = NOBODY :: else fi) /* L3 */
}

/* shmq_line_call and the call in is_in_the_way: of the ticket n, which was read as WAITING of `who`. `ok`: it stands, called. */
inline call_one(n, who) {
    STEP(ok = (state[n] == WAITING && owner[n] == who); if :: ok -> state[n] = CALLED :: else fi); /* L2 */
    if
    :: ok ->
        STEP(wake(who));
        if
        :: !woken && dead == who -> take_away(n, CALLED, who); ok = false
        :: else
        fi
    :: else
    fi
}

inline line_call() {
    atomic { n = front; stop = end_ };
    do
    :: n == stop -> break
    :: else ->
        atomic { s = state[n]; who = owner[n] };
        if
        :: s == BACK -> STEP(if :: front == n && end_ != n -> front++ :: else fi; n++)
        :: s == PASSED || s == FREE -> n++
        :: s == CALLED -> break
        :: s == WAITING ->
            call_one(n, who);
            if :: ok -> break :: else fi /* else look at it again */
        fi
    od;
    skip;
    d_step { n = 0; stop = 0; s = 0; who = 0 }
}

/* shmq_line_admit: `ok`; for who has no ticket (mine == NOBODY) what those in line want. */
inline admits() {
    wants = 0;
    atomic { n = front; stop = (mine == NOBODY -> end_ : mine) };
    if
    :: mine == NOBODY && n != stop ->
        do
        :: n == stop -> break
        :: else -> atomic { wants = wants + (state[n] == WAITING || state[n] == CALLED); n++ }
        od;
        atomic {
            ok = (BUG == 8 || count + wants < LIMIT);
            n = front;
            stop = end_;
            if :: ok -> goto admitted :: else -> wants = 0 fi
        }
    :: else
    fi;
    do
    :: n == stop -> ok = true; break
    :: else ->
        atomic { s = state[n]; who = owner[n] };
        if
        :: s == BACK -> STEP(if :: front == n && end_ != n -> front++ :: else fi; n++)
        :: s == PASSED || s == FREE -> n++
        :: (s == WAITING || s == CALLED) && count >= LIMIT -> ok = false; break
        :: (s == WAITING || s == CALLED) && count < LIMIT && dead == who -> take_away(n, s, who)
        :: s == CALLED && count < LIMIT && dead != who -> ok = false; break
        :: s == WAITING && count < LIMIT && dead != who ->
            call_one(n, who);
            if :: ok -> ok = false; break :: else fi
        fi
    od;
#if BUG == 9
    if :: mine != NOBODY -> ok = true :: else fi;
#endif
admitted:
    skip;
    d_step { n = 0; stop = 0; s = 0; who = 0 }
}

/* Of tickets that may still be wanted by somebody who lives. */
#define WANTED(t) ((state[t] == WAITING || state[t] == CALLED) && owner[t] != me && owner[t] != dead && !finished[owner[t]])

/* put_now: `ok` says whether the message is in. */
inline put_now() {
#if BUG == 1
    if :: mine != NOBODY -> admits() :: else -> ok = true; wants = 0 fi;
#else
    atomic { ok = (front == end_); wants = 0 };
    if :: !ok -> admits() :: else fi;
#endif
    if
    :: ok ->
        STEP(ok = (count + (BUG == 8 -> 0 : wants) < LIMIT);
             if
             :: ok ->
                count++;
                finished[me] = true;
                if
                :: mine != NOBODY && STOPS == 0 -> /* who was passed may have taken its place back a moment ago */
                    assert(!(mine > 0 && WANTED(0)) && !(mine > 1 && WANTED(1)))
                :: else
                fi;
                if
                :: mine == NOBODY && STOPS == 0 ->
                    assert(count + (WANTED(0) && first_seen > 0) + (WANTED(1) && first_seen > 1) +
                               (WANTED(2) && first_seen > 2) <= LIMIT)
                :: else
                fi
             :: else
             fi)
    :: else
    fi;
    wants = 0
}

proctype producer(byte me) {
    byte n, stop, s, who, wants, mine = NOBODY, first_seen;
    bool ok, woken;
    first_seen = end_; /* tickets that were there when this put began */
    put_now();
    if
    :: ok -> goto done
    :: else
    fi;
    do /* shmq_line_enter */
    :: true ->
        atomic { n = end_ };
        STEP(ok = (n < TICKETS && state[n] == FREE); if :: ok -> state[n] = WAITING; owner[n] = me :: else fi); /* L1 */
        STEP(if :: end_ == n -> end_++ :: else fi);
        if :: ok -> mine = n; n = 0; break :: else fi
    od;
    STEP(waiters++);
    do
    :: true ->
#if BUG != 2
        wake_seen[me] = true;
#endif
#if BUG != 5
        STEP(state[mine] = WAITING); /* L5; only the dead lose theirs here */
#endif
#if BUG == 2
        wake_seen[me] = true;
#endif
        put_now();
#if BUG == 5
        STEP(state[mine] = WAITING);
#endif
        if
        :: ok -> break
        :: else
        fi;
        atomic { if :: wake_seen[me] -> asleep[me] = true :: else fi };
end:    STEP(!asleep[me] || dead == me);
        wake_seen[me] = false
    od;
    wake_seen[me] = false;
#if BUG == 4
    STEP(ok = (count < LIMIT));
#endif
    STEP(state[mine] = BACK; owner[mine] = NOBODY);
    STEP(if :: front == mine && end_ != mine -> front++ :: else fi; waiters--);
#if BUG != 4
    STEP(ok = (count < LIMIT));
#endif
    if
    :: BUG != 3 && ok -> line_call()
    :: else
    fi;
done:
    finished[me] = true;
died:
    skip
}

proctype consumer(byte me) {
    byte n, stop, s, who;
    bool ok, woken;
end:
    do
    :: count > 0 ->
        STEP(count--; consumed++);
        atomic { ok = (waiters != 0 && front != end_) };
        if :: ok -> line_call() :: else fi
    od;
died:
    skip
}

/* Somebody who was called is passed: L4. */
proctype stopper() {
end:
    do
    :: atomic { stops < STOPS && state[0] == CALLED -> state[0] = PASSED; stops++ }
    :: atomic { stops < STOPS && state[1] == CALLED -> state[1] = PASSED; stops++ }
    od
}

proctype reaper(byte me) {
    byte n = 0;
    bool woken;
end:
    (dead != NOBODY);
#if BUG != 6
    do
    :: n < TICKETS ->
        atomic { if :: owner[n] == dead -> state[n] = BACK; owner[n] = NOBODY :: else fi };
        n++
    :: else -> break
    od;
    n = 0;
#endif
#if BUG != 7
    do
    :: n < TICKETS ->
        atomic {
            if
            :: state[n] == WAITING || state[n] == CALLED || state[n] == PASSED -> state[n] = CALLED; wake(owner[n])
            :: else
            fi
        };
        n++
    :: else -> break
    od;
#endif
    reaped = true;
    if
    :: dead == CONSUMER -> run consumer(REAPER)
    :: else
    fi
}

#define HELD(t) (state[t] != FREE && state[t] != BACK) /* the front goes over what was given back when somebody comes by */
#define IN(p) (finished[p] || dead == p)
proctype monitor() {
end:
    (timeout) ->
    assert(dead == NOBODY || reaped);
#if STOPS
    /* A sleep of one that was passed ends by its limit. */
    do
    :: asleep[0] || asleep[1] || asleep[2] ->
        if :: asleep[0] -> asleep[0] = false :: asleep[1] -> asleep[1] = false :: asleep[2] -> asleep[2] = false fi;
        (timeout)
    :: else -> break
    od;
#endif
    assert(IN(0) && IN(1) && IN(2));
    assert(count == 0);
    assert(dead != NOBODY || (consumed == LIMIT + PRODUCERS && waiters == 0 && !HELD(0) && !HELD(1) && !HELD(2)))
}

init {
    atomic {
        run producer(0);
        run producer(1);
        if :: PRODUCERS == 3 -> run producer(2) :: else -> finished[2] = true fi;
        run consumer(CONSUMER);
        run reaper(REAPER);
        run stopper();
        run monitor()
    }
}
