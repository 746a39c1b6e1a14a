#include "limits/line.h"
#include "base/fault_text.h"
#include "base/futex.h"
#include "limits/count.h"
#include "limits/waiters.h"
#include "wake/wait.h"

/* Mask of a ticket's lap, which grows by one with each use: numbers of 32 bits, 256 tickets. */
#define LAP_MASK (UINT32_MAX / SHMQ_TICKETS)
#define MOST_STEPS (4 * SHMQ_TICKETS) /* the end lags by a few: a producer that needs more steps met damage */

static uint32_t front_of(uint64_t line) { return (uint32_t)(line >> 32); }
static uint32_t end_of(uint64_t line) { return (uint32_t)line; }
static uint64_t line_word(uint32_t front, uint32_t end) { return (uint64_t)front << 32 | end; }

static shmq_ticket_shm *ticket_at(const shmq_queue *q, uint32_t number) { return &q->tickets[number % SHMQ_TICKETS]; }

static uint32_t lap_of(uint32_t number) { return number / SHMQ_TICKETS; }

/* How many laps a ticket's word is ahead of this number's; below 0: behind. */
static int32_t laps_ahead(uint64_t word, uint32_t number) {
    uint32_t ahead = (shmq_ticket_lap(word) - lap_of(number)) & LAP_MASK;
    return ahead <= LAP_MASK / 2 ? (int32_t)ahead : (int32_t)ahead - (int32_t)LAP_MASK - 1;
}

static uint64_t given_back(uint64_t word) {
    return shmq_ticket_word((shmq_ticket_lap(word) + 1) & LAP_MASK, 0, SHMQ_TICKET_FREE);
}

static uint64_t with_state(uint64_t word, uint32_t state) {
    return shmq_ticket_word(shmq_ticket_lap(word), shmq_ticket_row(word), state);
}

/* Any process that comes by moves the end past a ticket that is used, and the front past one that was given back. */
static void move_end(shmq_queue *q, uint32_t number) {
    uint64_t line;
    while (end_of(line = shmq_load_seq(&q->page->line)) == number &&
           !shmq_cas_seq(&q->page->line, line, line_word(front_of(line), number + 1))) {
    }
}

static void move_front(shmq_queue *q, uint32_t number) {
    uint64_t line;
    while (front_of(line = shmq_load_seq(&q->page->line)) == number && end_of(line) != number &&
           !shmq_cas_seq(&q->page->line, line, line_word(number + 1, end_of(line)))) {
    }
}

/* Finds the first ticket from *number on, and before `stop`, whose holder is to be served. */
static bool next_served(shmq_queue *q, uint32_t *number, uint32_t stop, uint64_t *word) {
    for (; stop - *number - 1 < SHMQ_TICKETS; ++*number) {
        *word = shmq_load_seq(&ticket_at(q, *number)->word);
        if (laps_ahead(*word, *number) != 0 || shmq_ticket_state(*word) == SHMQ_TICKET_FREE) {
            move_front(q, *number);
        } else if (shmq_ticket_state(*word) != SHMQ_TICKET_PASSED) {
            return true;
        }
    }
    return false;
}

/* Takes a ticket from a holder that is dead, was passed, or leaves. */
static bool take_away(shmq_queue *q, uint32_t number, uint64_t word) {
    bool taken = shmq_cas_seq(&ticket_at(q, number)->word, word, given_back(word)); /* L3 */
    move_front(q, number);
    return taken;
}

static bool is_dead(shmq_queue *q, uint64_t word) {
    uint32_t row = shmq_ticket_row(word);
    return row >= SHMQ_PROCESS_ROWS || shmq_process_dead(q->m, row);
}

/* Calls a producer: one wake for each call, since a producer that was called, and has not answered yet, is on its way.
 * False: look at the ticket again. */
static bool call(shmq_queue *q, uint32_t number, uint64_t word) {
    shmq_ticket_shm *ticket = ticket_at(q, number);
    uint64_t called = with_state(word, SHMQ_TICKET_CALLED);
    if (shmq_ticket_state(word) == SHMQ_TICKET_CALLED) {
        return true;
    }
    if (!shmq_cas_seq(&ticket->word, word, called)) { /* L2 */
        return false;
    }
    shmq_add_seq(&ticket->wake, 1);
    /* The producer does not sleep in the kernel: it is awake, about to sleep (it will see the word), or dead. */
    if (shmq_futex_wake_count(&ticket->wake, 1) > 0 || !is_dead(q, called)) {
        return true;
    }
    (void)take_away(q, number, called);
    return false;
}

void shmq_line_call(shmq_queue *q) {
    uint64_t line = shmq_load_seq(&q->page->line), word;
    uint32_t number = front_of(line);
    while (next_served(q, &number, end_of(line), &word) && !call(q, number, word)) {
    }
}

void shmq_line_call_all(shmq_queue *q) {
    uint64_t line = shmq_load_seq(&q->page->line);
    for (uint32_t number = front_of(line); end_of(line) - number - 1 < SHMQ_TICKETS; number++) {
        shmq_ticket_shm *ticket = ticket_at(q, number);
        uint64_t word = shmq_load_seq(&ticket->word);
        if (shmq_ticket_state(word) != SHMQ_TICKET_FREE) {
            shmq_cas_seq(&ticket->word, word, with_state(word, SHMQ_TICKET_CALLED)); /* L2 */
            shmq_add_seq(&ticket->wake, 1);
            shmq_futex_wake(&ticket->wake, 1);
        }
    }
}

#define NOBODY_BEHIND UINT64_MAX /* of `below`: only this producer was called */

/* Has this producer, which was called, not answered for the patience, as far as this process has seen? *below: up to
 * which ticket others were called when this process began to wait; on return, up to which they were called. */
static bool await_answer(shmq_queue *q, uint32_t number, uint64_t *below) {
    shmq_patience *wait = &q->lining;
    uint64_t call_number = shmq_load_seq(&ticket_at(q, number)->wake), now = shmq_now_ns();
    bool over = false;
    if (!shmq_cas32_seq(&wait->busy, 0, 1)) {
        return false;
    }
    if (wait->since_ns == 0 || wait->position != number || wait->word != call_number) {
        wait->since_ns = now;
        wait->position = number;
        wait->word = call_number;
        wait->below = *below;
    } else if (now - wait->since_ns >= q->m->patience_ns) {
        wait->since_ns = 0;
        *below = wait->below;
        over = true;
    }
    shmq_store_seq(&wait->busy, 0);
    return over;
}

/* Passes all threads of a process: it is stopped, and so costs one patience. Each thread keeps its ticket. */
static void pass_process(shmq_queue *q, uint32_t row) {
    for (uint32_t i = 0; i < SHMQ_TICKETS; i++) {
        uint64_t word = shmq_load_seq(&q->tickets[i].word);
        if (shmq_ticket_state(word) != SHMQ_TICKET_FREE && shmq_ticket_row(word) == row) {
            shmq_cas_seq(&q->tickets[i].word, word, with_state(word, SHMQ_TICKET_PASSED)); /* L4 */
        }
    }
}

/* The first producer does not come, and others in front may be stopped as well. So all of them are called, so that they
 * have the same time to answer together. */
static void call_before(shmq_queue *q, uint32_t number, uint32_t stop) {
    uint32_t first = number;
    uint64_t word, below = stop;
    if (!next_served(q, &first, stop, &word)) {
        return;
    }
    for (uint32_t next = first; next_served(q, &next, stop, &word); next++) {
        (void)call(q, next, word);
    }
    (void)await_answer(q, first, &below); /* the wait begins now */
}

/* Passes the producers that were called with the first one and have not answered; they are not called a second time. */
static void pass_before(shmq_queue *q, uint32_t number, uint32_t below) {
    uint64_t word;
    for (; next_served(q, &number, below, &word); number++) {
        if (shmq_ticket_state(word) == SHMQ_TICKET_CALLED) {
            pass_process(q, shmq_ticket_row(word));
        }
    }
}

/* Gets a producer in front out of the way. False: it stays there. Nothing is done about it while there is no room that
 * it could take. */
static bool clear_way(shmq_queue *q, uint32_t number, uint32_t stop, uint64_t word) {
    uint64_t below = NOBODY_BEHIND;
    if (!shmq_room_left(q)) {
        return false;
    }
    if (is_dead(q, word)) {
        (void)take_away(q, number, word);
        return true;
    }
    if (shmq_ticket_state(word) != SHMQ_TICKET_CALLED) {
        return !call(q, number, word); /* the process that made room has not called it yet, or is stopped */
    }
    if (!await_answer(q, number, &below)) {
        return false;
    }
    pass_process(q, shmq_ticket_row(word));
    if (below == NOBODY_BEHIND) {
        call_before(q, number, stop);
    } else {
        pass_before(q, number, (uint32_t)below);
    }
    return true;
}

/* The wants of all producers that are to be served, summed up. False: one of them wants all there is. */
static bool add_wants(shmq_queue *q, uint32_t number, uint32_t stop, shmq_room *wants) {
    uint64_t word;
    *wants = (shmq_room){0};
    for (; next_served(q, &number, stop, &word); number++) {
        uint32_t bytes = shmq_load_seq(&ticket_at(q, number)->bytes);
        if (bytes == SHMQ_WANTS_ALL) {
            return false;
        }
        wants->entries++;
        wants->bytes += bytes;
    }
    return true;
}

bool shmq_line_admit(shmq_queue *q, shmq_ticket *t, shmq_room *theirs) {
    uint64_t line = shmq_load_seq(&q->page->line), word;
    uint32_t number = front_of(line), stop = t->in_line ? t->number : end_of(line);
    *theirs = (shmq_room){0};
    if (!t->in_line && add_wants(q, number, stop, theirs) && shmq_room_beyond(q, theirs)) {
        return true;
    }
    while (next_served(q, &number, stop, &word)) {
        if (!clear_way(q, number, stop, word)) {
            number++;
            t->second = !next_served(q, &number, stop, &word);
            return false;
        }
    }
    t->second = true;
    *theirs = (shmq_room){0};
    return true;
}

/* The line is full: a producer at its front that was passed, or is dead, loses its ticket. */
static bool make_room(shmq_queue *q, uint64_t line) {
    uint32_t number = front_of(line);
    uint64_t word = shmq_load_seq(&ticket_at(q, number)->word);
    if (end_of(line) - number > SHMQ_TICKETS) {
        (void)shmq_damage(q->m, "the line of blocked producers is longer than it can be, at queue", q->index);
        return shmq_cas_seq(&q->page->line, line, line_word(end_of(line), end_of(line)));
    }
    if (laps_ahead(word, number) != 0) {
        move_front(q, number);
        return true;
    }
    return (shmq_ticket_state(word) == SHMQ_TICKET_PASSED || is_dead(q, word)) && take_away(q, number, word);
}

/* Takes the ticket at the end if it is FREE at its lap (L1). If it is used, moves the end on. A ticket that is behind
 * its lap is damaged. */
static bool take_ticket(shmq_queue *q, uint32_t number) {
    shmq_ticket_shm *ticket = ticket_at(q, number);
    uint64_t word = shmq_load_seq(&ticket->word);
    int32_t ahead = laps_ahead(word, number);
    if (ahead < 0) {
        (void)shmq_damage(q->m, "the ticket of a blocked producer makes no sense, at queue", q->index);
        shmq_cas_seq(&ticket->word, word, shmq_ticket_word(lap_of(number), 0, SHMQ_TICKET_FREE));
        return false;
    }
    bool taken =
        ahead == 0 && shmq_ticket_state(word) == SHMQ_TICKET_FREE &&
        shmq_cas_seq(&ticket->word, word, shmq_ticket_word(lap_of(number), q->m->row, SHMQ_TICKET_WAITING)); /* L1 */
    if (taken || ahead > 0 || shmq_ticket_state(word) != SHMQ_TICKET_FREE) {
        move_end(q, number);
    }
    return taken;
}

/* The producer takes its ticket before it counts itself as a waiter: a process that sees the count sees it in its
 * place. */
bool shmq_line_enter(shmq_queue *q, shmq_ticket *t, uint32_t bytes) {
    shmq_waiters waiters = shmq_room_waiters(q, q->counters);
    for (uint32_t steps = 0; steps < MOST_STEPS; steps++) {
        uint64_t line = shmq_load_seq(&q->page->line);
        uint32_t number = end_of(line);
        if (number - front_of(line) >= SHMQ_TICKETS) {
            if (!make_room(q, line)) {
                return false;
            }
        } else if (take_ticket(q, number)) {
            *t = (shmq_ticket){.in_line = true, .number = number};
            shmq_store_seq(&ticket_at(q, number)->bytes, bytes);
            shmq_join_count(&waiters);
            return true;
        }
    }
    return false;
}

/* The word of this producer's ticket; 0: it has lost the ticket. */
static uint64_t own_word(const shmq_queue *q, const shmq_ticket *t) {
    uint64_t word = shmq_load_seq(&ticket_at(q, t->number)->word);
    bool own = laps_ahead(word, t->number) == 0 && shmq_ticket_row(word) == q->m->row;
    return own && shmq_ticket_state(word) != SHMQ_TICKET_FREE ? word : 0;
}

bool shmq_line_answer(shmq_queue *q, shmq_ticket *t, uint32_t *seen) {
    shmq_ticket_shm *ticket = ticket_at(q, t->number);
    /* The producer reads the wake word first, since one that sleeps while CALLED would not be called again. A call
     * before the answer was for room that the next look finds; a call after it raises the word that was read. */
    *seen = shmq_load_seq(&ticket->wake);
    for (uint64_t word; (word = own_word(q, t)) != 0;) {
        if (shmq_ticket_state(word) == SHMQ_TICKET_WAITING ||
            shmq_cas_seq(&ticket->word, word, with_state(word, SHMQ_TICKET_WAITING))) { /* L5 */
            return true;
        }
    }
    shmq_line_leave(q, t);
    return false;
}

shmq_status shmq_line_sleep(shmq_queue *q, const shmq_ticket *t, uint32_t seen, uint64_t until_ns) {
    return shmq_sleep(q->m, &ticket_at(q, t->number)->wake, seen, until_ns);
}

void shmq_line_leave(shmq_queue *q, shmq_ticket *t) {
    if (SHMQ_LIKELY(!t->in_line)) {
        return;
    }
    t->in_line = false;
    if (shmq_member_forked(q->m)) {
        return; /* the ticket is the parent's */
    }
    shmq_waiters waiters = shmq_room_waiters(q, q->counters);
    for (uint64_t word; (word = own_word(q, t)) != 0;) {
        if (take_away(q, t->number, word)) {
            break;
        }
    }
    shmq_leave_count(&waiters);
    if (shmq_room_left(q)) { /* after the ticket: a process that makes room now finds the next */
        shmq_line_call(q);
    }
}

/* Frees the tickets of the dead from the front to the end, and the one under the end, whose holder may have died before
 * it moved the end. The reaper reads a word before the row that it names. */
void shmq_line_recover(shmq_queue *q, const shmq_liveness *l) {
    uint64_t line = shmq_load_seq(&q->page->line);
    uint32_t length = end_of(line) - front_of(line), last = length < SHMQ_TICKETS ? length : SHMQ_TICKETS - 1;
    for (uint32_t i = 0; i <= last; i++) {
        shmq_ticket_shm *ticket = ticket_at(q, front_of(line) + i);
        uint64_t word;
        while (shmq_ticket_state(word = shmq_load_seq(&ticket->word)) != SHMQ_TICKET_FREE &&
               shmq_is_dead(l, shmq_ticket_row(word)) &&
               !shmq_cas_seq(&ticket->word, word, given_back(word))) { /* L3 */
        }
    }
}

const char *shmq_line_fault(const shmq_queue *q) {
    if (shmq_line_length(q) > SHMQ_TICKETS) {
        return shmq_fault_text("the line of blocked producers has %u tickets, but there are only %u",
                               shmq_line_length(q), SHMQ_TICKETS);
    }
    for (uint32_t i = 0; i < SHMQ_TICKETS; i++) {
        uint64_t word = shmq_load_seq(&q->tickets[i].word);
        uint32_t state = shmq_ticket_state(word), row = shmq_ticket_row(word);
        if (state > SHMQ_TICKET_PASSED || row >= SHMQ_PROCESS_ROWS || shmq_ticket_lap(word) > LAP_MASK ||
            (state == SHMQ_TICKET_FREE && row != 0)) {
            return shmq_fault_text("ticket %u of the line of blocked producers has a value that no process writes", i);
        }
        if (state != SHMQ_TICKET_FREE && shmq_row_state(shmq_load_seq(&q->m->rows[row].word)) == SHMQ_ROW_FREE &&
            shmq_load_seq(&q->tickets[i].word) == word) {
            return shmq_fault_text("ticket %u of the line of blocked producers is taken, but no process owns it", i);
        }
    }
    return NULL;
}
