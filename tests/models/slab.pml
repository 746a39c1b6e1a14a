/* One granule as a slab: takers, a dropper and its late helper, and holders of the structure lock who retire the slab
 * and make another of the same or another class, or give the granule away.
 *
 *   spin -a [-DDEATHS=0] [-DTAKERS=1] [-DBUG=n] slab.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m400000 -w25
 *
 * Without BUG it must end without an error, with DEATHS=0 (then also: no FREE block without its hints at rest) and with
 * DEATHS=1 (the default: a holder of the lock or a taker may die at any step; hints may be lost then, a sweep's
 * work, but nothing else). Each BUG must end in "assertion violated":
 * With -DTAKERS=1 each is a matter of seconds, but BUG 6 needs two takers; two takers take minutes.
 *   1  a taker looks at the slab's class before it reads the block's state
 *   2  a new slab does not raise the generations
 *   3  a taker that clears the class bit does not look at the free bits again              (-DDEATHS=0)
 *   4  a new slab raises each block's own generation only, not all above the highest
 *   5  the slab is given up while a block is not retired
 *   6  a taker that gives a hint back looks at the class before it sets the bit          (-DDEATHS=0)
 *
 * The granule has three thirds. Class 1: blocks 0, 1, 2 are a third each. Class 2: block 0 is two thirds, block 1 the
 * last: it begins where block 2 of class 1 begins, and that is what a late helper meets. */
#ifndef BUG
#define BUG 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TAKERS
#define TAKERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

#define FREE 1
#define USED 2
#define RETIRED 3

byte class = 1;                        /* root of the slab; 0: the granule is free */
bool classbit[3];                      /* hint, by class */
byte freebits = 3;                     /* hint */
byte wgen[3], sgen[3], sclass[3], state[3];
bool ref[3];                           /* the only reference bit */
bool locked = false;
bool foreign = false;                  /* the granule is something else now */
bool held[3];                          /* ghost: thirds in somebody's hands */
byte drops = 0;                        /* ghost: of the reference that two drop */
bool died = false;                     /* the death that there may be has been */

#define COUNT(c) ((c) == 1 -> 3 : 2)
#define MASK(c) ((c) == 1 -> 7 : 3)
#define THIRD(c, i) ((c) == 2 && (i) == 1 -> 2 : (i))

/* A death is part of the step before it: no state of its own. */
#if DEATHS
#define STEP(access, label) atomic { access; if :: !died -> died = true; goto label :: true fi }
#else
#define STEP(access, label) atomic { access }
#endif

inline hold(c, i, yes) {
    assert(held[THIRD(c, i)] != yes);
    held[THIRD(c, i)] = yes;
    if
    :: c == 2 && i == 0 -> assert(held[1] != yes); held[1] = yes
    :: else
    fi
}

inline hint(c, i) {
    freebits = freebits | (1 << i);
    if
    :: !classbit[c] -> classbit[c] = true
    :: else
    fi
}

/* Drop the reference of generation g on the block that begins at third t. */
inline drop(t, g, twice) {
    dc = class;
    if
    :: dc == 1 -> di = t
    :: dc == 2 && t != 1 -> di = (t == 2 -> 1 : 0)
    :: else -> goto dropped
    fi;
    atomic {
        if
        :: wgen[di] == g && ref[di] ->
            if
            :: twice -> assert(drops == 0); drops++
            :: else
            fi;
            ref[di] = false;
            wgen[di] = g + 1;
            hold(dc, di, false)
        :: else -> goto dropped
        fi
    };
    atomic { assert(state[di] == USED && sgen[di] == g); state[di] = FREE; sgen[di] = g + 1 };
    hint(dc, di);
dropped:
    skip
}

proctype dropper() {
    byte dc, di;
    drop(2, 1, true)
}

proctype taker(byte c) {
    byte bits, i, g, sc, st, dc, di;
    bool had;
again:
    if
    :: !classbit[c] -> goto out
    :: else
    fi;
    if
    :: class != c -> goto clear
    :: else
    fi;
next:
    bits = freebits & MASK(c);
    if
    :: bits == 0 -> goto clear
    :: bits & 1 -> i = 0
    :: (bits & 3) == 2 -> i = 1
    :: bits == 4 -> i = 2
    fi;
    STEP(had = (freebits >> i) & 1; freebits = freebits & (7 - (1 << i)), out);
    if
    :: !had -> goto next
    :: else
    fi;
#if BUG == 1
    if :: class != c -> goto other :: else fi;
    atomic { g = sgen[i]; sc = sclass[i]; st = state[i] };
#else
    atomic { g = sgen[i]; sc = sclass[i]; st = state[i] };
    if :: class != c -> goto other :: else fi;
#endif
    if
    :: st != FREE || sc != c -> goto next
    :: else
    fi;
    atomic {
        if
        :: sgen[i] == g && sclass[i] == c && state[i] == FREE ->
            assert(class == c && !foreign);
            state[i] = USED;
            hold(c, i, true)
        :: else -> goto next
        fi
    };
    atomic { assert(wgen[i] == g && !ref[i]); ref[i] = true };
    if
    :: drop(THIRD(c, i), g, false)
    :: true
    fi;
    goto out;
other: /* it may be the only hint at a FREE block of the slab that is there now */
#if BUG == 6
    dc = class;
    freebits = freebits | (1 << i);
#else
    freebits = freebits | (1 << i);
    dc = class;
#endif
    if
    :: dc != 0 && !classbit[dc] -> classbit[dc] = true
    :: else
    fi;
    goto out;
clear:
    classbit[c] = false;
#if BUG != 3
    if
    :: class == c ->
        if
        :: (freebits & MASK(c)) != 0 -> classbit[c] = true
        :: else
        fi
    :: else
    fi;
#endif
out:
    skip
}

inline put_back(c) {
    i = 0;
    do
    :: i < COUNT(c) ->
        if
        :: state[i] == RETIRED -> state[i] = FREE; hint(c, i)
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* One who has the structure lock, round after round. What it leaves when it dies is found by the next one. */
proctype holder() {
    byte rounds = 0, c, i, g, nc;
    bool making = false;
start:
    atomic { !locked -> locked = true };
    c = class;
    if
    :: c == 0 || foreign -> goto make
    :: else -> i = 0
    fi;
    do
    :: i < COUNT(c) ->
        atomic {
#if DEATHS
            if :: !died -> died = true; goto dead :: true fi;
#endif
            if
            :: state[i] == FREE -> state[i] = RETIRED
            :: state[i] == RETIRED
            :: else ->
#if BUG == 5
                skip
#else
                goto used
#endif
            fi
        };
        i++
    :: else -> break
    od;
    STEP(classbit[c] = false, dead);
    STEP(class = 0, dead);
    STEP(freebits = 0, dead);
make:
    if
    :: foreign -> goto unlock
    :: atomic { !foreign -> foreign = true; assert(!held[0] && !held[1] && !held[2]); goto unlock }
    :: nc = 1
    :: nc = 2
    fi;
    atomic {
        g = wgen[0];
        g = (wgen[1] > g -> wgen[1] : g);
        g = (wgen[2] > g -> wgen[2] : g);
        g = (sgen[0] > g -> sgen[0] : g);
        g = (sgen[1] > g -> sgen[1] : g);
        g = (sgen[2] > g -> sgen[2] : g)
    };
#if BUG == 2
    g = g - 1;
#endif
    atomic { hold(nc, 0, true); making = true; i = 0 };
    do
    :: i < COUNT(nc) ->
#if BUG == 4
        g = (wgen[i] > sgen[i] -> wgen[i] : sgen[i]);
#endif
        atomic { wgen[i] = g + 1; ref[i] = (i == 0) };
        STEP(sgen[i] = g + 1; sclass[i] = nc; state[i] = (i == 0 -> USED : FREE), dead);
        i++
    :: else -> break
    od;
    STEP(freebits = MASK(nc) - 1, dead);
    STEP(class = nc; making = false, dead);
    classbit[nc] = true;
    goto unlock;
used:
    put_back(c);
unlock:
    atomic { locked = false; rounds++ };
    if
    :: rounds < ROUNDS -> goto start
    :: else -> goto out
    fi;
dead: /* the lock goes; the rebuild of the map finds a granule without a root */
    atomic {
        if :: making -> hold(nc, 0, false); making = false :: else fi;
        locked = false;
        rounds++
    };
    if
    :: rounds <= ROUNDS -> goto start
    :: else
    fi;
out:
    skip
}

init {
    byte i;
    atomic {
        sclass[0] = 1; sclass[1] = 1; sclass[2] = 1;
        state[0] = FREE; state[1] = FREE; state[2] = USED;
        sgen[2] = 1; wgen[2] = 1; ref[2] = true; held[2] = true;
        classbit[1] = true;
        run dropper();
        run dropper();
#if TAKERS == 2
        run taker(1);
#endif
        if
        :: run taker(1)
        :: run taker(2)
        fi;
        run holder()
    };
    (timeout);
    i = 0;
    do
    :: class != 0 && !foreign && !died && i < COUNT(class) ->
        assert(state[i] != RETIRED);
        assert(state[i] != FREE || (classbit[class] && ((freebits >> i) & 1)));
        i++
    :: else -> break
    od
}
