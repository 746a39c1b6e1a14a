/* A descriptor that is readable when a receive is worth a try: who receives, and the thread behind it.
 *
 *   spin -a [-DBUG=n] [-DPREFETCH=n] [-DPUTS=n] [-DUNASKED=n] readiness.pml
 *   gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m200000 -w22
 *
 * Mirrors readiness.py, and what consumer.py does around it (_take, _enter, _leave, _claim). Two threads of a program receive
 * without waiting: whenever the descriptor is readable, and UNASKED times each when it is not. Each settles what it has got
 * before it goes on. Each step is what Python's interpreter lock makes one. `resets` is noted as "has anybody reset since the
 * thread looked", which is all that it asks. The thread's sleep in the native core is a wait until there is something:
 * that nobody is forgotten there is shown by `notify`. Nothing is done by time: the look twice a second for credit that
 * comes back by itself is left out.
 *
 * Property: at rest nothing is there to be taken.
 *
 * Each BUG must end in "assertion violated":
 *   1  the thread does not look at `resets` once it rests
 *   2  a reset clears the event last: the thread, called, has made it readable anew
 *   3  a reset counts last
 *   4  a reset counts first: the thread, looking behind that, makes it readable before it is cleared
 *   5  the thread looks at the credit first and says that it starves then   (-DPREFETCH=1)
 *   6  who settles asks whether the thread starves first and settles then   (-DPREFETCH=1)
 *   7  a receive that finds nothing gives its credit back without a call   (-DPREFETCH=1) */
#ifndef BUG
#define BUG 0
#endif
#ifndef PREFETCH
#define PREFETCH 9 /* none */
#endif
#ifndef PUTS
#define PUTS 2
#endif
#ifndef UNASKED
#define UNASKED 1
#endif
#define CAN_TAKE (held + inside < PREFETCH)

byte there = 0, puts = 0;       /* messages */
byte held = 0, inside = 0;
bool event = false, raised = false, starved = false;
bool reset_since = false;       /* `resets` differs from what the thread has read */
byte calls = 0;

inline call_thread() { calls++ }

inline reset() {
    if
    :: BUG == 4 -> reset_since = true
    :: else -> skip
    fi;
    if
    :: BUG != 2 -> event = false
    :: else -> skip
    fi;
    if
    :: BUG != 3 && BUG != 4 -> reset_since = true
    :: else -> skip
    fi;
    if
    :: atomic { raised -> raised = false }; call_thread()
    :: atomic { !raised -> skip }
    fi;
    if
    :: BUG == 2 -> event = false
    :: BUG == 3 -> reset_since = true
    :: else -> skip
    fi
}

inline credit_came() {
    if
    :: atomic { starved -> call_thread() }
    :: atomic { !starved -> skip }
    fi
}

active [2] proctype receiver() {
    byte unasked = 0;
    bool got, saw;
end_polls:
    do
    :: atomic {
        if
        :: event
        :: unasked < UNASKED -> unasked++
        fi;
        got = false
       }
       if
       :: atomic { CAN_TAKE -> inside++ };
          atomic { /* a message goes from the queue to the hand while its thread is inside */
              if
              :: there > 0 -> there--; held++; got = true
              :: else -> skip
              fi
          }
          inside--;
          if
          :: BUG == 7 && !got -> skip
          :: else -> credit_came()
          fi
       :: atomic { !CAN_TAKE -> skip }
       fi;
       if
       :: !got -> reset()
       :: got ->
          if
          :: atomic { !CAN_TAKE -> skip }; reset()
          :: atomic { CAN_TAKE -> skip }
          fi;
          if
          :: BUG == 6 -> saw = starved; held--;
             if
             :: saw -> call_thread()
             :: else -> skip
             fi
          :: else -> held--; credit_came()
          fi
       fi
    od
}

active proctype thread() {
    bool can;
    do
    :: can = CAN_TAKE;
       if
       :: !can ->
          if
          :: BUG == 5 -> can = CAN_TAKE; starved = true
          :: else -> starved = true; can = CAN_TAKE
          fi;
          if
          :: !can ->
end_starved: atomic { calls > 0 -> calls-- }
          :: else -> skip
          fi;
          starved = false
       :: else ->
          reset_since = false;
end_asleep: there > 0; /* in the native core */
          if
          :: reset_since -> skip
          :: else ->
             event = true;
             raised = true;
             if
             :: BUG != 1 && reset_since ->
                if
                :: atomic { raised -> raised = false }; event = false
                :: atomic { !raised -> skip }
                fi
             :: else -> skip
             fi;
             do
             :: raised ->
end_told:       atomic { calls > 0 -> calls-- }
             :: else -> break
             od
          fi
       fi
    od
}

active proctype producer() {
    do
    :: puts < PUTS -> atomic { there++; puts++ }
    :: else -> break
    od
}

active proctype rest() {
    timeout;
    assert(there == 0)
}
