/* The watch: who notices a death while everybody sleeps.
 *
 *   spin -a [-DBUG=n] [-DSLEEPERS=n] [-DDEATHS=n] [-DHOLDER=n] [-DSTOPS=n] watch.pml
 *   gcc -O2 -DSAFETY -DNOREDUCE -DCOLLAPSE -o pan pan.c && ./pan -E -m600000 -w24
 *
 * Mirrors watch.c, with the sleep around it (shmq_sleep in wait.c) and what the reaper does to the watch (clear_watch).
 * Sleepers of as many processes. A holder begins to hold something and dies, in a process of its own or (HOLDER=0)
 * in the first sleeper's. With DEATHS=2 another process dies, too, at any step. One sleeper may leave for a message.
 * No sleep has a limit but that of a ticking watcher. A tick that would see nothing new is left out, so a watcher that
 * ticks with nothing to do is at rest. A wake is one step: word and futex; so is a look over all `unsettled`. The same
 * holds for `privileges`, which is raised, looked at and given up in the same places.
 *
 * With STOPS=1 the watcher and its deputy sleep when the holder begins. One of the two is stopped at any step, for ever or
 * until any later step. With STOPS=2 -DSLEEPERS=3 both are stopped in their sleep from the start, one of them may go on, and a
 * volunteer sleeps. Time passes at rest: the patience, for each place that nobody living ticks for, and the piece of each living
 * one's sleep. Then each goes to sleep anew. So a process that is slow for the patience between two steps is one that is
 * stopped. The holder dies at any step or rest. Nobody leaves for a message.
 *
 * Property: at rest, what a dead process held from the time that shmq_add_unsettled returned is with others, if any living one
 * sleeps. With STOPS: once a piece has passed since the last stop or going on, and the begin of the hold. And no two that
 * tick believe themselves in the same place. -E: who is dead or stopped stays where it is, which is no wrong end.
 *
 * Each BUG must end in "assertion violated":
 *   1  who begins to hold something looks at the watch first and raises `unsettled` then
 *   2  who leaves the watch summons nobody
 *   3  a volunteer does not look at the places again once it stands on the list
 *   4  the second watcher that finds the first place vacant believes that nothing is to be watched   (-DHOLDER=0)
 *   5  a place is taken from the dead only, not from the silent                                      (-DSTOPS=1)
 *   6  who was stopped does not look whether it still has its place                                  (-DSTOPS=1)
 * Shows G4. */
#ifndef BUG
#define BUG 0
#endif
#ifndef SLEEPERS
#define SLEEPERS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef STOPS
#define STOPS 0
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
#define ANY_DEAD_HOLDER (DEAD_HOLDER(0) || DEAD_HOLDER(1) || DEAD_HOLDER(2) || DEAD_HOLDER(3))

byte watch[2], watch_wake[2], volunteers[VOLUNTEERS]; /* process + 1, sleeper + 1 */
byte held[PROCESSES];
bool told[3];   /* the sleeper's word has changed since it read it */
bool asleep[3];
/* what the properties need */
bool dead[PROCESSES], away[3], got = false;
byte deaths = 0, leaves = 0;
byte places[3];
bool tickings[3];
#define place places[me]
#define ticking tickings[me]
#define HAS_PLACE (place != NONE && IS_OURS(watch[place]) && watch_wake[place] == me + 1)
#if STOPS > 0
bool stopped[3], over[3]; /* the piece of its sleep is over */
bool looked[2];           /* not longer ago than the patience */
bool waits, stays, whole; /* the holder for its death; the stopped for ever; a piece has passed since the last stop or going on */
byte stops, goes;
#define STANDS(p) (stopped[p])
#else
#define STANDS(p) false
#endif

inline wake_at(who) {
    atomic {
        if
        :: (who) == 0 -> ok = false
        :: else -> told[(who) - 1] = true; ok = asleep[(who) - 1]; asleep[(who) - 1] = false
        fi
    }
}
/* Off the list first, then the wake. None of the process that has the first place: it could take no place. */
#define IS_OF_FIRST(v) (watch[0] != 0 && PROCESS(watch[0]) == (v) - 1)
inline wake_volunteer() {
    do
    :: atomic { n < VOLUNTEERS && (volunteers[n] == 0 || IS_OF_FIRST(volunteers[n])) -> n++ }
    :: atomic { n < VOLUNTEERS && volunteers[n] != 0 && !IS_OF_FIRST(volunteers[n]) -> v = volunteers[n] };
        atomic { if :: volunteers[n] == v -> volunteers[n] = 0 :: else -> v = 0 fi };
        atomic {
            wake_at(v);
            v = 0;
            if
            :: ok -> ok = false; n = 0; break
            :: else -> n++
            fi
        }
    :: atomic { n == VOLUNTEERS -> n = 0; break }
    od
}
inline summon() {
    atomic { f = watch[1]; ok = false };
    atomic { ok = (watch[0] == 0 && f != 0); f = 0 };
    if
    :: atomic { ok -> v = watch_wake[1] };
        atomic { wake_at(v); v = 0 };
        if
        :: ok -> ok = false
        :: else -> wake_volunteer()
        fi
    :: else -> wake_volunteer()
    fi
}
#define HAS_DUTY(at) \
    (watch[0] == 0 -> HELD_BUT(me) : (at == 0 -> HELD_BUT(PROCESS(watch[0])) : ((watch[0] & TICKING) || held[PROCESS(watch[0])])))
/* Silent: late, and there is something to look after. Only the first who asks is told that it is late. */
inline cas_place(at, seen) {
    if
    :: ok && watch[at] == seen -> watch[at] = me + 1
    :: else -> ok = false; late = false
    fi
}
inline take(at, seen) {
    atomic {
#if STOPS > 0
        late = !looked[at];
        looked[at] = true;
#endif
        ok = IS_VACANT(seen)
    };
    if
    :: atomic { !ok && late && BUG != 5 -> ok = HAS_DUTY(at) };
        atomic { cas_place(at, seen) }
    :: atomic { ok || !late || BUG == 5 -> cas_place(at, seen) }
    fi;
    if
    :: ok ->
        atomic { watch_wake[at] = me + 1; place = at };
        if
        :: at == 0 && (late || seen != 0) ->
            atomic { late = false; if :: seen != 0 && !IS_OURS(seen) && IS_STALE(seen) -> reap(PROCESS(seen)) :: else fi };
            reap_holders()
        :: else -> late = false
        fi
    :: else
    fi
}
inline take_watch() {
    f = watch[0];
    take(0, f);
    if
    :: ok -> f = 0
    :: else ->
        if
        :: atomic { IS_OURS(watch[0]) -> f = 0 }
        :: atomic { !IS_OURS(watch[0]) -> f = watch[1] };
            take(1, f);
            f = 0
        fi
    fi
}
inline volunteer() {
    n = 0;
    do
    :: n < VOLUNTEERS ->
        atomic { ok = (volunteers[n] == 0); if :: ok -> volunteers[n] = me + 1; volunteered = n; n = 0 :: else fi };
        if
        :: ok ->
#if BUG != 3
            take_watch();
            if
            :: ok ->
                atomic { if :: volunteers[volunteered] == me + 1 -> volunteers[volunteered] = 0 :: else fi };
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
#if STOPS > 0
    atomic { if :: DEAD_HOLDER(HOLDER) -> reap(HOLDER) :: else fi } /* nobody else dies */
#else
    do
    :: atomic { n < PROCESSES -> if :: DEAD_HOLDER(n) -> reap(n) :: else fi; n++ }
    :: atomic { n == PROCESSES -> n = 0; break }
    od
#endif
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
        if :: IS_OURS(f) -> place = NONE :: else fi;
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

inline tick() {
    if
    :: place != NONE ->
        if :: place == 0 || !ticking -> reap_holders() :: else fi;
        looked[place] = true
    :: else
    fi
}

proctype sleeper(byte me) provided (!dead[me] && !STANDS(me)) {
    byte volunteered, f, v, n, mine;
    bool ok, duty, late;
#if STOPS > 0
    atomic { volunteered = (me == 2 -> 0 : NONE) };
    goto sleeps;
#endif
enter:
    atomic {
        told[me] = false; place = NONE; volunteered = NONE; ticking = false; duty = false;
#if STOPS > 0
        over[me] = false
#endif
    };
    take_watch();
    if :: !ok -> volunteer() :: else fi;
    ok = false;
    do
    :: told[me] -> break
    :: else ->
#if STOPS > 0 && BUG != 6
        atomic { if :: place != NONE && !HAS_PLACE -> place = NONE; ticking = false :: else fi };
#endif
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
sleeps:
        if
        :: !asleep[me]
#if STOPS > 0
        :: atomic { asleep[me] && over[me] -> asleep[me] = false; over[me] = false };
            tick();
            break
        :: atomic { asleep[me] && ticking && place == 1 && !looked[0] -> asleep[me] = false }
#if BUG != 6
        :: atomic { asleep[me] && ticking && place != NONE && !HAS_PLACE -> asleep[me] = false };
            tick()
#endif
#else
        :: atomic { asleep[me] && leaves == 0 -> leaves = 1; asleep[me] = false; away[me] = true };
            break
#endif
        :: atomic { asleep[me] && ticking && place == 0 && ANY_DEAD_HOLDER ->
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
        atomic { if :: HAS_PLACE -> watch[place] = 0 :: else fi };
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
    atomic {
        held[me] = 1;
#if STOPS > 0
        whole = (stops == 0)
#endif
    };
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
#if STOPS > 0
    if
    :: waits = true; !waits
    :: true
    fi;
#endif
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

#define SLEEPS(p) (p < SLEEPERS && !dead[p] && !away[p] && !STANDS(p))
#define ANY_SLEEPS (SLEEPS(0) || SLEEPS(1) || SLEEPS(2))
#define IS_NOTICED (!got || !held[HOLDER] || !ANY_SLEEPS)
#if STOPS > 0
#define WATCHES(p, at) (SLEEPS(p) && tickings[p] && places[p] == at)
#define WATCHERS(at) (WATCHES(0, at) + WATCHES(1, at) + WATCHES(2, at))
/* The stops: of whom, when, and how long. Time passes when nobody has a step to do: the patience, then everyone's piece. */
proctype clock() {
    byte p;
end:
    do
    :: stops < STOPS ->
        atomic {
            if :: p = 0 :: p = 1 fi;
            stopped[p] = true;
            stops++;
            stays = false;
            whole = false;
            p = 0
        }
    :: atomic { !stays && goes == 0 && (stopped[0] || stopped[1]) ->
            if
            :: stopped[0] -> stopped[0] = false; goes++; whole = false
            :: stopped[1] -> stopped[1] = false; goes++; whole = false
            :: stays = true
            fi
        }
    :: atomic { timeout ->
            assert(WATCHERS(0) < 2 && WATCHERS(1) < 2);
            assert(IS_NOTICED || !whole);
            stays = false;
            if
            :: !whole ->
                whole = true;
                looked[0] = (WATCHERS(0) > 0);
                looked[1] = (WATCHERS(1) > 0);
                over[0] = !stopped[0];
                over[1] = !stopped[1];
                over[2] = (SLEEPERS > 2)
            :: waits -> waits = false
            :: whole && !waits -> break
            fi
        }
    od
}
#else
proctype monitor() {
end:
    (timeout) -> assert(IS_NOTICED)
}
#endif

init {
    atomic {
#if STOPS > 0
        places[0] = 0;
        places[1] = 1;
        places[2] = NONE;
        watch[0] = 1;
        watch[1] = 2;
        watch_wake[0] = 1;
        watch_wake[1] = 2;
        asleep[0] = true;
        asleep[1] = true;
        looked[0] = true;
        looked[1] = true;
        whole = true;
        if
        :: SLEEPERS > 2 ->
            volunteers[0] = 3;
            asleep[2] = true;
            stopped[0] = true;
            stopped[1] = true;
            stops = STOPS
        :: else
        fi;
#endif
        run sleeper(0);
        run sleeper(1);
#if SLEEPERS > 2
        run sleeper(2);
#endif
        run holder(HOLDER);
#if DEATHS > 1
        run killer();
#endif
#if STOPS > 0
        run clock()
#else
        run monitor()
#endif
    }
}
