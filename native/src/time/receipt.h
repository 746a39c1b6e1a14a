/* Receipts: what became of a message whose producer waits until a consumer takes it (immediate).
 *
 * While a slot is the message's own, its word says where that is. Afterwards nothing there does, and it may be
 * another's by the time the put looks. So a stealer that takes such a message out of the queue - it has expired, is
 * purged, dropped for want of room, goes with its queue - says so before that in a word of the producer's process page:
 *
 *   receipt  63      1 0     serial: +1 with each use of this word, also by the next process that has the page
 *           +---------+---+  R: no consumer had it, and it is gone
 *           | serial  | R |
 *           +---------+---+
 *
 *   P1  before the put: the next serial, R clear. The message's cold record has row, number of the word and serial
 *   P2  the stealer that holds it LOCKED, where it had no owner: R set, by CAS from exactly this serial; then T14
 *   P3  the producer, once the slot is not the message's any more: R is set, or a consumer had it
 *
 * A death leaves a word that no process reads: the next use of it has another serial. */
#ifndef SHMQ_TIME_RECEIPT_H
#define SHMQ_TIME_RECEIPT_H

#include "segment/member.h"

/* P1. The name of a receipt; 0: all are in use. */
uint64_t shmq_receipt_begin(shmq_member *m);
/* P2 */
void shmq_receipt_return(const shmq_member *m, uint64_t receipt);
/* P3 */
bool shmq_receipt_says_returned(const shmq_member *m, uint64_t receipt);
/* The put is over. Nothing for 0. */
void shmq_receipt_end(shmq_member *m, uint64_t receipt);

#endif
