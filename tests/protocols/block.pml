/* One block with two entries, views of it, deaths, helpers, a sweep, and its next use.
 *
 *   spin -a [-DBUG=n] [-DREAPERS=n] [-DSWEEPERS=n] block.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m200000 -w24
 *
 * Without BUG it must end without an error; each BUG must end in "assertion violated":
 *   1  a drop does not look at the generation
 *   2  the sweep drops views that no cell names although entries are left (a bit that is taken again meanwhile)
 *   3  unpin drops the bit first and clears its cell afterwards
 *   4  a reaper drops the bit of a cell although another one took the cell away
 *   5  a pin cell does not carry its row's generation (a late reaper meets the next owner's equal pin)
 *
 * Rows: 0 and 1 have a consumer each, who holds entry 0 or 1, may pin, settles and unpins. The one in row 1 may die at
 * any step. Two reapers then settle its affairs, each may be stopped anywhere, and the row goes to an heir, who gets
 * the entry if it was not settled. A sweeper looks for leaked views all the time. The block is taken again as soon as it
 * is FREE. Properties: what is in use is never freed; a live view keeps its bit; the next use keeps its bit; when all
 * is done one sweep is enough for the block to be free, whoever died where. Each shared access is one step.
 * Shows G3. */
#ifndef BUG
#define BUG 0
#endif

#ifndef REAPERS
#define REAPERS 2
#endif
#ifndef SWEEPERS
#define SWEEPERS 1
#endif

#define NONE 0
#define ACQUIRED 1
#define DEQUEUED 2
#define EMPTY 3
#define AVAILABLE 4

#define FREE 1
#define BUILDING 2
#define SHARED 3

#define TENTATIVE 3 /* cell values: 0 none, 1 and 2 view bit + 1 */

/* the block's two words */
byte wgen = 1, entries = 3, views = 0;
byte sgen = 1, state = SHARED;
/* slots that name it, and the life of their owner */
byte slot[2] = ACQUIRED, owner[2] = 1;
/* pin cells of both rows: value, generation of the block, mark of the row's generation */
byte cell[2], cgen[2], cmark[2] = 1;
/* process row 1 */
byte rowgen = 1;
bool rowdead = false, rowfree = false;
/* ghosts: whose view a bit is (row + 1), 0 nobody's or a dead one's */
byte viewer[2];
bool nextuse = false;
byte running = 0;
byte reapers = 0; /* how many have begun: alike as they are, they begin in the order of their numbers */

/* The word CAS of a drop; `last` says whether the state is to follow. */
inline drop_word(g, e, v, last) {
    atomic {
        last = false;
        if
        :: (BUG == 1 || wgen == g) && ((entries & (e)) || (views & (v))) ->
            assert(wgen == g);
            entries = entries & (3 - (e));
            views = views & (3 - (v));
            if
            :: entries == 0 && views == 0 -> freed(); last = true
            :: else
            fi
        :: else
        fi
    }
}
inline freed() {
    assert(viewer[0] == 0 && viewer[1] == 0);
    assert(slot[0] != ACQUIRED && slot[0] != AVAILABLE && slot[1] != ACQUIRED && slot[1] != AVAILABLE);
    wgen = wgen + 1
}
inline finish(g) {
    atomic { if :: sgen == g && (state == SHARED || state == BUILDING) -> sgen = g + 1; state = FREE :: else fi }
}

/* A death is part of the step before it: no state of its own. */
#define STEP(access) atomic { access; if :: mortal -> goto died :: true fi }

proctype consumer(byte r; byte life; bool mortal) {
    bool last, got;
    byte v = 0;
    if
    :: life == 2 -> /* the heir: takes what the reapers gave back */
        atomic {
            if
            :: slot[1] == AVAILABLE -> slot[1] = ACQUIRED; owner[1] = 2
            :: else -> goto out
            fi
        }
    :: else
    fi;
    if
    :: true -> goto settle /* no view wanted */
    :: true
    fi;
    STEP(assert(cell[r] == 0); cell[r] = TENTATIVE; cmark[r] = life);
    STEP(cgen[r] = 1);
    atomic {
        if
        :: wgen == 1 && entries != 0 && views != 3 ->
            v = ((views & 1) -> 2 : 1);
            views = views | v;
            viewer[v - 1] = r + 1
        :: else
        fi;
        if :: mortal -> goto died :: true fi
    };
    STEP(cell[r] = v; cmark[r] = life);
settle:
    STEP(slot[r] = DEQUEUED); /* T14 */
    STEP(drop_word(1, 1 << r, 0, last));
    if :: last -> finish(1) :: else fi;
    STEP(slot[r] = EMPTY); /* T16 */
    if
    :: v != 0 ->
        atomic { assert(wgen == 1 && (views & v)); viewer[v - 1] = 0 }; /* the view was good to its end */
#if BUG == 3
        STEP(drop_word(1, 0, v, last));
        cell[r] = 0;
#else
        STEP(cell[r] = 0);
        STEP(drop_word(1, 0, v, last));
#endif
        if :: last -> finish(1) :: else fi
    :: else
    fi;
    goto out;
died:
    atomic {
        if :: v != 0 && viewer[v - 1] == r + 1 -> viewer[v - 1] = 0 :: else fi;
        rowdead = true
    };
out:
    running--
}

proctype reaper(byte number) {
    byte s, o, c, g, mk;
    bool last, won;
    if
    :: atomic { rowdead && reapers == number -> reapers++; s = slot[1]; o = owner[1] }
    :: running == 0 && !rowdead -> goto out /* nobody died */
    fi;
    if
    :: o == 1 && s == DEQUEUED ->
        drop_word(1, 2, 0, last);
        if :: last -> finish(1) :: else fi;
        atomic { if :: slot[1] == DEQUEUED && owner[1] == 1 -> slot[1] = EMPTY :: else fi } /* T16 */
    :: o == 1 && s == ACQUIRED ->
        atomic { if :: slot[1] == ACQUIRED && owner[1] == 1 -> slot[1] = AVAILABLE; owner[1] = 0 :: else fi } /* T15 */
    :: else
    fi;
    atomic { c = cell[1]; mk = cmark[1] };
    g = cgen[1];
    if
    :: c != 0 && (BUG == 5 || mk == 1) ->
        atomic {
            won = (cell[1] == c && (BUG == 5 || cmark[1] == mk));
            if :: won -> cell[1] = 0 :: else fi
        };
        if
        :: (won || BUG == 4) && c != TENTATIVE ->
            atomic { assert(viewer[c - 1] == 0 || viewer[c - 1] == 1) }; /* not a view of the heir's */
            drop_word(g, 0, c, last);
            if :: last -> finish(g) :: else fi
        :: else
        fi
    :: else
    fi;
    atomic { if :: rowgen == 1 -> rowgen = 2; rowfree = true :: else fi };
out:
    skip
}

inline name(r) {
    c = cell[r];
    g2 = cgen[r];
    if
    :: c == TENTATIVE && g2 == g -> named = 3
    :: c != 0 && c != TENTATIVE && g2 == g -> named = named | c
    :: else
    fi
}
inline sweep() {
    atomic { sg = sgen; st = state };
    atomic { g = wgen; e = entries; v = views };
    named = 0;
    if
    :: (st == SHARED || st == BUILDING) && g == sg + 1 && e == 0 && v == 0 -> finish(sg)
    :: st == SHARED && g == sg && v != 0 && (BUG == 2 || e == 0) ->
        name(1);
        name(0);
        if
        :: (v & named) != v ->
            won = false;
            atomic {
                if
                :: wgen == g && entries == e && views == v ->
                    assert(!(v & 1) || (named & 1) || viewer[0] == 0);
                    assert(!(v & 2) || (named & 2) || viewer[1] == 0);
                    views = v & named;
                    if :: entries == 0 && views == 0 -> freed(); won = true :: else fi
                :: else
                fi
            };
            if :: won -> finish(g) :: else fi
        :: else
        fi
    :: else
    fi
}

proctype sweeper() {
    byte sg, st, g, e, v, c, g2, named;
    bool won;
    sweep()
}

proctype heir() {
    if
    :: rowfree -> atomic { rowfree = false; running++; run consumer(1, 2, false) }
    :: timeout
    fi
}

/* The next use: two entries, for ever. */
proctype taker() {
    (state == FREE && sgen == 2);
    state = BUILDING;
    atomic { assert(wgen == 2 && entries == 0 && views == 0); entries = 3; nextuse = true };
    atomic { assert(state == BUILDING && sgen == 2); state = SHARED }
}

init {
    byte sg, st, g, e, v, c, g2, named;
    bool won;
    atomic {
        running = 2;
        run consumer(0, 1, false);
        run consumer(1, 1, true);
        run reaper(0);
#if REAPERS > 1
        run reaper(1);
#endif
#if SWEEPERS > 0
        run sweeper();
#endif
        run heir();
        run taker()
    };
    (timeout);
    if
    :: slot[1] == AVAILABLE -> skip /* nobody came for it: the block is rightly in use */
    :: else ->
        sweep();
        assert(sgen == 2 && wgen == 2)
    fi;
    (timeout || nextuse || slot[1] == AVAILABLE);
    assert(!nextuse || (wgen == 2 && entries == 3 && views == 0 && sgen == 2))
}
