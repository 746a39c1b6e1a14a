/* The watch: who notices a death while everybody sleeps.
 *
 *   spin -a [-DBUG=n] [-DSLEEPERS=n] [-DDEATHS=n] [-DHOLDER=n] watch.pml
 *   gcc -O2 -DSAFETY -DNOREDUCE -DCOLLAPSE -o pan pan.c && ./pan -E -m600000 -w24
 *
 * Mirrors watch.c, with the sleep around it (shmq_sleep in wait.c) and what the reaper does to the watch (clear_watch).
 * Sleepers of as many processes; a holder that begins to hold something and dies, in a process of its own or (HOLDER=0)
 * in the first sleeper's. With DEATHS=2 another process dies, too, at any step. One sleeper may leave for a message.
 * No sleep has a limit but that of a ticking watcher. A tick that would see nothing new is left out, so a watcher that
 * ticks with nothing to do is at rest. A wake is one step: word and futex; so is a look over all `held`. What holds for
 * `held` holds for `seats`, which is raised, looked at and given up in the same places.
 *
 * Property: at rest, what a dead process held from the time that shmq_hold returned is with others, if any living one
 * sleeps. -E: who is dead stays where it is, which is no wrong end.
 *
 * Each BUG must end in "assertion violated":
 *   1  who begins to hold something looks at the watch first and raises `held` then
 *   2  who leaves the watch summons nobody
 *   3  a volunteer does not look at the places again once it stands on the list
 *   4  the second watcher that finds the first place vacant believes that nothing is to be watched   (-DHOLDER=0) */
#ifndef BUG
#define BUG 0
#endif
#ifndef SLEEPERS
#define SLEEPERS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef HOLDER
#define HOLDER 3 /* its process */
#endif
#define PROCESSES 4
#define VOLUNTEERS 2
#define NONE 9
#define TICKING 8
#define PROCESS(word) (((word) & 7) - 1)
#define IS_OURS(word) ((word) != 0 && PROCESS(word) == me)
#define IS_STALE(word) (dead[PROCESS(word)])
#define IS_VACANT(word) ((word) == 0 || (!IS_OURS(word) && IS_STALE(word)))
#define HELD_BUT(p) ((held[0] && 0 != (p)) || (held[1] && 1 != (p)) || (held[2] && 2 != (p)) || (held[3] && 3 != (p)))
#define DEAD_HOLDER(p) (dead[p] && held[p] && p != me)

byte watch[2], watch_wake[2], volunteers[VOLUNTEERS]; /* process + 1, sleeper + 1 */
byte held[PROCESSES];
bool told[3];   /* the sleeper's word has changed since it read it */
bool asleep[3];
/* what the properties need */
bool dead[PROCESSES], away[3], got = false;
byte deaths = 0, leaves = 0;

inline wake_at(who) {
    atomic {
        if
        :: (who) == 0 -> ok = false
        :: else -> told[(who) - 1] = true; ok = asleep[(who) - 1]; asleep[(who) - 1] = false
        fi
    }
}
inline wake_volunteer() {
    n = 0;
    do
    :: n < VOLUNTEERS ->
        v = volunteers[n];
        if
        :: v != 0 ->
            wake_at(v);
            if
            :: ok -> break
            :: else -> atomic { if :: volunteers[n] == v -> volunteers[n] = 0 :: else fi }
            fi
        :: else
        fi;
        n++
    :: else -> break
    od;
    atomic { n = 0; v = 0; ok = false }
}
inline summon() {
    ok = false;
    atomic { f = watch[0] };
    if
    :: f == 0 && watch[1] != 0 -> v = watch_wake[1]; wake_at(v)
    :: else
    fi;
    if :: !ok -> wake_volunteer() :: else fi;
    atomic { f = 0; v = 0; ok = false }
}
inline take(at, seen) {
    atomic {
        ok = (IS_VACANT(seen) && watch[at] == seen);
        if :: ok -> watch[at] = me + 1 :: else fi
    };
    if :: ok -> watch_wake[at] = me + 1; place = at :: else fi
}
inline take_place() {
    f = watch[0];
    take(0, f);
    if
    :: !ok ->
        f = watch[0];
        if
        :: !IS_OURS(f) -> f = watch[1]; take(1, f)
        :: else
        fi
    :: else
    fi;
    f = 0
}
inline volunteer() {
    n = 0;
    do
    :: n < VOLUNTEERS ->
        atomic { ok = (volunteers[n] == 0); if :: ok -> volunteers[n] = me + 1 :: else fi };
        if
        :: ok ->
            volunteered = n;
#if BUG != 3
            take_place();
            if
            :: ok ->
                atomic { if :: volunteers[n] == me + 1 -> volunteers[n] = 0 :: else fi };
                volunteered = NONE
            :: else
            fi;
#endif
            break
        :: else -> n++
        fi
    :: else -> break
    od;
    atomic { n = 0; ok = false }
}
/* Its messages go back, its places in the watch are cleared. */
inline reap(who) {
    held[who] = 0;
    if :: watch[0] != 0 && PROCESS(watch[0]) == who -> watch[0] = 0 :: else fi;
    if :: watch[1] != 0 && PROCESS(watch[1]) == who -> watch[1] = 0 :: else fi
}
inline reap_holders() {
    n = 0;
    do
    :: n < PROCESSES ->
        atomic { if :: DEAD_HOLDER(n) -> reap(n) :: else fi; n++ }
    :: else -> break
    od;
    n = 0
}
inline move_up() {
    f = watch[0];
    mine = watch[1];
    if
    :: !IS_OURS(f) -> take(0, f)
    :: else -> ok = true
    fi;
    if
    :: ok ->
        atomic { if :: IS_OURS(mine) && watch[1] == mine -> watch[1] = 0 :: else fi };
        if
        :: IS_OURS(f) -> place = NONE
        :: !IS_OURS(f) && f != 0 ->
            atomic { reap(PROCESS(f)) };
            reap_holders()
        :: else
        fi;
        if :: HELD_BUT(NONE) -> wake_volunteer() :: else fi
    :: else
    fi;
    atomic { f = 0; mine = 0; ok = false }
}
inline look() {
    if
    :: place == 0 -> duty = HELD_BUT(me)
    :: else ->
        f = watch[0];
        if
        :: f == 0 -> duty = (BUG != 4 && HELD_BUT(me)) /* vacant: who left may have died before it summoned somebody */
        :: else -> duty = ((f & TICKING) || held[PROCESS(f)])
        fi;
        f = 0
    fi
}
inline say_quiet() {
    atomic { if :: !ticking && watch[place] == me + 1 + TICKING -> watch[place] = me + 1 :: else fi }
}

proctype sleeper(byte me) provided (!dead[me]) {
    byte place, volunteered, f, v, n, mine;
    bool ok, ticking, duty;
enter:
    atomic { told[me] = false; place = NONE; volunteered = NONE; ticking = false; duty = false };
    take_place();
    if :: !ok -> volunteer() :: else fi;
    ok = false;
    do
    :: told[me] -> break
    :: else ->
        if :: place == 1 -> move_up() :: else fi;
        if
        :: place != NONE ->
            say_quiet();
            look();
            if :: duty -> ticking = true :: else fi;
            if
            :: ticking ->
                atomic {
                    ok = (watch[place] == me + 1);
                    if :: ok -> watch[place] = me + 1 + TICKING :: else fi
                };
                if
                :: ok && place == 0 ->
                    f = watch[1];
                    if
                    :: f == 0 -> wake_volunteer()
                    :: f != 0 && !(f & TICKING) -> v = watch_wake[1]; wake_at(v); v = 0
                    :: else
                    fi;
                    f = 0
                :: else
                fi;
                ok = false
            :: else
            fi
        :: else
        fi;
        atomic { if :: !told[me] -> asleep[me] = true :: else fi };
        if
        :: !asleep[me]
        :: atomic { asleep[me] && leaves == 0 -> leaves = 1; asleep[me] = false; away[me] = true };
            break
        :: atomic { asleep[me] && ticking && place == 0 && (DEAD_HOLDER(0) || DEAD_HOLDER(1) || DEAD_HOLDER(2) || DEAD_HOLDER(3)) ->
                asleep[me] = false
            };
            reap_holders()
        :: atomic { asleep[me] && ticking && place == 0 && !HELD_BUT(me) -> asleep[me] = false; ticking = false }
        :: atomic { asleep[me] && ticking && place == 1 && (IS_VACANT(watch[0]) || IS_OURS(watch[0])) -> asleep[me] = false }
        :: atomic {
                asleep[me] && ticking && place == 1 &&
                watch[0] != 0 && !(watch[0] & TICKING) && !held[PROCESS(watch[0])] ->
                asleep[me] = false;
                ticking = false
            }
        fi;
        duty = false
    od;
    /* leave */
    if
    :: volunteered != NONE ->
        atomic { if :: volunteers[volunteered] == me + 1 -> volunteers[volunteered] = 0 :: else fi }
    :: else
    fi;
    if
    :: place != NONE ->
        atomic { if :: IS_OURS(watch[place]) -> watch[place] = 0 :: else fi };
#if BUG != 2
        if :: HELD_BUT(NONE) -> summon() :: else fi
#endif
    :: else
    fi;
    if :: !away[me] -> goto enter :: else fi
}

proctype holder(byte me) provided (!dead[me]) {
    byte f, v, n, w, at;
    bool ok;
#if BUG != 1
    held[me] = 1;
#endif
    w = watch[0];
    at = 0;
    if
    :: IS_OURS(w) -> at = 1; w = watch[1]
    :: else
    fi;
#if BUG == 1
    held[me] = 1;
#endif
    if
    :: w == 0 -> summon()
    :: w != 0 && !(w & TICKING) ->
        v = watch_wake[at];
        wake_at(v);
        if
        :: !ok && IS_STALE(w) ->
            atomic { if :: watch[at] == w -> watch[at] = 0 :: else fi };
            summon()
        :: else
        fi
    :: else
    fi;
    atomic { got = true; dead[me] = true; deaths++; if :: me < 3 -> asleep[me] = false :: else fi }
}

proctype killer() {
    byte p;
end:
    atomic {
        deaths + 1 < DEATHS || (deaths < DEATHS && got) ->
        if :: p = 0 :: p = 1 :: p = 2 fi;
        if :: !dead[p] && p < SLEEPERS -> dead[p] = true; deaths++; asleep[p] = false :: else fi
    }
}

#define SLEEPS(p) (p < SLEEPERS && !dead[p] && !away[p])
proctype monitor() {
end:
    (timeout) ->
    assert(!got || !held[HOLDER] || !(SLEEPS(0) || SLEEPS(1) || SLEEPS(2)))
}

init {
    atomic {
        run sleeper(0);
        run sleeper(1);
#if SLEEPERS > 2
        run sleeper(2);
#endif
        run holder(HOLDER);
#if DEATHS > 1
        run killer();
#endif
        run monitor()
    }
}
