/* A message that moves from one queue to another as one step.
 *
 *   spin -a [-DBUG=n] move.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m600000
 *
 * The source is LOCKED by the mover's process row, the target CLAIMED by it. The mover publishes the target PENDING,
 * settles the source, and makes the target available; it may die before each step. Two reapers, each of which may be
 * stopped anywhere, decide what is PENDING, and only then release what the dead held; one of them may die in between, and
 * begins anew as another. A taker takes what is available in either queue. A stealer may take the source from whoever has
 * it, to throw it away: more than the code does, where nobody takes what another has LOCKED. The target's slot is used again by a second mover, who lives.
 *
 * Properties: the message is taken at most once, and if it was not thrown away exactly once; nobody touches the second
 * mover's entry; in the end nothing of the first one is PENDING or LOCKED.
 *
 * Each BUG must end in "assertion violated":
 *   1  a reaper releases before it decides
 *   2  the mover shows the target before it settles the source
 *   3  the reaper's CAS of the target is from any PENDING word, that of the next use of the slot, too
 *   4  a reaper does not look at the source: what is PENDING is shown
 *   5  a reaper does not look at the source: what is PENDING is withdrawn. Shows G3. */
#ifndef BUG
#define BUG 0
#endif
#define FREE 0
#define CLAIMED 1
#define PENDING 2
#define AVAILABLE 3
#define LOCKED 7
#define STOLEN 8 /* LOCKED by the stealer: another owner, another tag */

byte source = LOCKED, target = CLAIMED;
byte lap = 0; /* of the target: from 1 on it is the second mover's */
bool dead = false, reaper_died = false, second = false, thrown = false;
byte taken = 0;

#define MAY_DIE if :: dead = true; goto over :: true fi

proctype mover() {
    MAY_DIE;
    target = PENDING; /* T2 */
    MAY_DIE;
#if BUG == 2
    target = AVAILABLE; /* T7 */
    MAY_DIE;
#endif
    if
    :: atomic { source == LOCKED -> source = FREE } /* T14: the decision */
#if BUG != 2
       MAY_DIE;
       atomic { assert(target == PENDING && lap == 0); target = AVAILABLE } /* T7 */
#endif
    :: atomic { source == STOLEN || thrown -> target = FREE; lap = 1 } /* T8 */
    fi;
over:
    skip
}

/* Nobody but its mover touches it. */
proctype next_mover() {
end:
    atomic { lap == 1 && target == FREE -> second = true; target = PENDING };
    atomic { assert(target == PENDING && lap == 1); lap = 2; target = FREE }
}

proctype reaper() {
    bool there;
    byte seen_lap;
end:
    dead;
again:
#if BUG == 1
    atomic { if :: source == LOCKED -> source = AVAILABLE :: else fi };
#endif
    if
    :: atomic { target == PENDING && lap == 0 -> seen_lap = lap }; /* the word, and the row that it names */
#if BUG == 4
       there = false;
#elif BUG == 5
       there = true;
#else
       there = (source == LOCKED); /* the look at the source */
#endif
       atomic {
           if
#if BUG == 3
           :: target == PENDING ->
#else
           :: target == PENDING && lap == seen_lap ->
#endif
               if
               :: there -> target = FREE; lap++ /* T8 */
               :: !there -> target = AVAILABLE  /* T7 */
               fi
           :: else -> goto again
           fi
       }
    :: atomic { target == CLAIMED -> target = FREE; lap = 1 } /* T3 */
    :: atomic { (target != PENDING || lap > 0) && target != CLAIMED -> skip }
    fi;
    if
    :: atomic { !reaper_died -> reaper_died = true; goto again }
    :: true
    fi;
    atomic { if :: source == LOCKED -> source = AVAILABLE :: else fi } /* T15 */
}

proctype stealer() {
    if
    :: atomic { source == LOCKED || source == AVAILABLE -> source = STOLEN };
       atomic { source = FREE; thrown = true } /* T14 */
    :: true
    fi
}

proctype taker() {
    do
    :: atomic { source == AVAILABLE -> source = FREE; taken++; assert(taken == 1) }
    :: atomic { target == AVAILABLE && lap == 0 -> target = FREE; lap = 1; taken++; assert(taken == 1) }
    :: timeout -> break
    od;
    assert(taken == 1 || thrown);
    assert(source != LOCKED && (target != PENDING || second))
}

init {
    atomic {
        run mover();
        run next_mover();
        run reaper();
        run reaper();
        run stealer();
        run taker()
    }
}
