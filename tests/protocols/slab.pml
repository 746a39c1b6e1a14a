/* One granule as a slab: takers, a dropper and its late helper, and holders of the structure lock who retire the slab
 * and make another of the same or another class, or give the granule away. Mirrors shmq_block_take (find_block,
 * take_block, put_hint_back, clear_class_bit), shmq_block_release, shmq_block_finish, shmq_block_hint, shmq_slab_make and
 * shmq_blocks_reclaim.
 *
 *   spin -a [-DDEATHS=0] [-DTAKERS=1] [-DDROPPERS=1] [-DHALVES] [-DBUG=n] slab.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m400000 -w25
 *
 * Without BUG it must end without an error, with DEATHS=0 (then also: no FREE block without its hints at rest) and with
 * DEATHS=1 (the default: a holder of the lock or a taker may die at any step; hints may be lost then, a sweep's
 * work, but nothing else). Each BUG must end in "assertion violated":
 *   1  a taker looks at the slab's class before it reads the block's state              (-DTAKERS=1)
 *   2  a new slab does not raise the generations                                        (-DTAKERS=1)
 *   3  a taker that clears the class bit does not look at the free bits again           (-DTAKERS=1 -DDEATHS=0)
 *   4  a new slab raises each block's own generation only, not all above the highest    (-DTAKERS=1)
 *   5  the slab is given up while a block is not retired                                (-DTAKERS=1)
 *   6  a taker that gives a hint back looks at the class before it sets the bit         (-DHALVES -DDEATHS=0)
 *
 * The granule has three parts. Class 1: blocks 0, 1, 2 are a part each. Class 2: block 0 is two parts, block 1 the
 * last: it begins where block 2 of class 1 begins, and that is what a late helper meets. With HALVES it has two parts,
 * two blocks of class 1 or one of class 2: small enough for two takers and a death together. */
#ifndef BUG
#define BUG 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef TAKERS
#define TAKERS 2
#endif
#ifndef SECOND
#define SECOND 0 /* class that the last taker looks for; 0: any */
#endif
#ifndef DROPPERS
#define DROPPERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

#ifdef HALVES
#define PARTS 2
#define OLD 0 /* the block that is in use at the beginning, and dropped twice */
#define COUNT(c) (3 - (c))
#define MASK(c) ((c) == 1 -> 3 : 1)
#define PART(c, i) (i)
#define INDEX(c, part) ((c) == 1 -> (part) : ((part) == 0 -> 0 : NONE))
#else
#define PARTS 3
#define OLD 2
#define COUNT(c) ((c) == 1 -> 3 : 2)
#define MASK(c) ((c) == 1 -> 7 : 3)
#define PART(c, i) ((c) == 2 && (i) == 1 -> 2 : (i))
#define INDEX(c, part) ((c) == 1 -> (part) : ((part) == 1 -> NONE : (part) / 2))
#endif
#define NONE 9

#define FREE 1
#define USED 2
#define RETIRED 3

byte class = 1;                        /* root of the slab; 0: the granule is free */
bool classbit[3];                      /* hint, by class */
byte freebits;                         /* hint */
byte wgen[PARTS], sgen[PARTS], sclass[PARTS], state[PARTS];
bool ref[PARTS];                       /* the only reference bit */
bool locked = false;
bool foreign = false;                  /* the granule is something else now */
bool held[PARTS];                      /* ghost: parts in somebody's hands */
byte drops = 0;                        /* ghost: of the reference that two drop */
bool died = false;                     /* the death that there may be has been */
byte droppers = 0, takers = 0;         /* how many have begun: those that are alike begin in the order of their numbers */


/* A death is part of the step before it: no state of its own. */
#if DEATHS
#define STEP(access, label) atomic { access; if :: !died -> died = true; goto label :: true fi }
#else
#define STEP(access, label) atomic { access }
#endif

inline hold(c, i, yes) {
    assert(held[PART(c, i)] != yes);
    held[PART(c, i)] = yes;
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

/* Drop the reference of generation g on the block that begins at this part. */
inline locate(part) {
    dc = class;
    di = (dc == 0 -> NONE : INDEX(dc, part));
    if
    :: di == NONE -> goto dropped
    :: else
    fi
}
inline drop_word(g, twice) {
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
}
inline drop_state(g) {
    atomic { assert(state[di] == USED && sgen[di] == g); state[di] = FREE; sgen[di] = g + 1 };
    hint(dc, di);
dropped:
    skip
}

proctype dropper(byte number) {
    byte dc, di;
    atomic { droppers == number -> droppers++; locate(OLD) };
    atomic { drop_word(1, true) };
    drop_state(1)
}

proctype taker(byte number; byte c) {
    byte bits, i, g, sc, st, dc, di;
    bool had;
    atomic {
        c == 2 || takers == number -> takers = takers + 2 - c;
        if
        :: !classbit[c] -> goto out
        :: else
        fi
    };
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
            hold(c, i, true);
            /* The same step: this word is looked at only by who has a reference of this generation. */
            assert(wgen[i] == g && !ref[i]);
            ref[i] = true
        :: else -> goto next
        fi
    };
    if
    :: atomic { /* the class is that of a slab with a block in our hands: it stays */
            locate(PART(c, i));
            drop_word(g, false)
        };
        drop_state(g)
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
out: /* what nobody looks at any more makes no two states of one */
    skip;
    d_step { bits = 0; i = 0; g = 0; sc = 0; st = 0; dc = 0; di = 0; had = false }
}

inline put_back(c) {
    i = 0;
    do
    :: i < COUNT(c) ->
        atomic { /* nobody but who has the lock touches what is RETIRED */
            if
            :: state[i] == RETIRED -> state[i] = FREE
            :: else -> goto kept
            fi
        };
        hint(c, i);
kept:   i++
    :: else -> break
    od
}

/* A process that has the structure lock, round after round. If it dies, the next one finds what it leaves. */
proctype holder() {
    byte rounds = 0, c, i, g, nc;
    bool making = false;
start:
    atomic { /* nobody but who has the lock writes the class */
        !locked -> locked = true;
        c = class;
        if
        :: c == 0 || foreign -> goto make
        :: else -> i = 0
        fi
    };
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
    :: atomic { !foreign -> foreign = true; assert(!held[0] && !held[1] && !held[PARTS - 1]); goto unlock }
    :: nc = 1
    :: nc = 2
    fi;
    atomic { /* all of them at once: no generation rises while the slab has no class */
        hold(nc, 0, true);
        making = true;
        i = 0;
        g = wgen[0];
        g = (wgen[1] > g -> wgen[1] : g);
        g = (wgen[PARTS - 1] > g -> wgen[PARTS - 1] : g);
        g = (sgen[0] > g -> sgen[0] : g);
        g = (sgen[1] > g -> sgen[1] : g);
        g = (sgen[PARTS - 1] > g -> sgen[PARTS - 1] : g)
    };
#if BUG == 2
    g = g - 1;
#endif
    do
    :: i < COUNT(nc) ->
#if BUG == 4
        g = (wgen[i] > sgen[i] -> wgen[i] : sgen[i]);
#endif
        /* One step: nobody looks at the word before the state, but droppers of an older generation, whom neither the
         * old word nor the new one fits. */
        STEP(wgen[i] = g + 1; ref[i] = (i == 0);
             sgen[i] = g + 1; sclass[i] = nc; state[i] = (i == 0 -> USED : FREE), dead);
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
        sclass[0] = 1; sclass[1] = 1;
        state[0] = FREE; state[1] = FREE;
#if PARTS == 3
        sclass[2] = 1;
        state[2] = FREE;
#endif
        state[OLD] = USED;
        sgen[OLD] = 1; wgen[OLD] = 1; ref[OLD] = true; held[OLD] = true;
        freebits = MASK(1) - (1 << OLD);
        classbit[1] = true;
        run dropper(0);
#if DROPPERS == 2
        run dropper(1);
#endif
#if TAKERS == 2
        run taker(0, 1);
#endif
        if
        :: SECOND != 2 -> run taker(TAKERS - 1, 1)
        :: SECOND != 1 -> run taker(TAKERS - 1, 2)
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
