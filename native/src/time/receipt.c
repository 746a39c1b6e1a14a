#include "time/receipt.h"
#include "segment/process_table.h"

#define RETURNED UINT64_C(1)

/* receipt: number of the word 6 | row of the process 12 | serial 46. */
#define NUMBER_BITS 6u
#define ROW_BITS 12u
#define SERIAL_SHIFT (NUMBER_BITS + ROW_BITS)
#define SERIAL_MASK ((UINT64_C(1) << (64 - SERIAL_SHIFT)) - 1)
static_assert(SHMQ_RECEIPTS <= 1u << NUMBER_BITS, "a receipt has 6 bits for the number of its word");
static_assert(SHMQ_RECEIPTS == 64, "the words in use are the bits of one word");

static uint64_t word_of(uint64_t receipt) { return (receipt >> SERIAL_SHIFT) << 1; }

static shmq_a64 *at(const shmq_member *m, uint64_t receipt) {
    uint32_t row = (uint32_t)(receipt >> NUMBER_BITS) & ((1u << ROW_BITS) - 1);
    shmq_process_page_shm *page = row < SHMQ_PROCESS_ROWS ? shmq_process_page(m, row) : NULL;
    return page != NULL ? &page->receipts[receipt % SHMQ_RECEIPTS] : NULL;
}

uint64_t shmq_receipt_begin(shmq_member *m) {
    uint64_t used, unused;
    do {
        used = shmq_load_seq(&m->receipts);
        unused = ~used;
        if (unused == 0) {
            return 0;
        }
    } while (!shmq_cas_seq(&m->receipts, used, used | (unused & -unused)));
    uint32_t number = (uint32_t)__builtin_ctzll(unused);
    shmq_a64 *word = &m->page->receipts[number];
    uint64_t serial = ((shmq_load_seq(word) >> 1) + 1) & SERIAL_MASK;
    serial += serial == 0; /* no receipt is 0 */
    shmq_store_seq(word, serial << 1); /* P1 */
    return serial << SERIAL_SHIFT | (uint64_t)m->row << NUMBER_BITS | number;
}

void shmq_receipt_return(const shmq_member *m, uint64_t receipt) {
    shmq_a64 *word = receipt != 0 ? at(m, receipt) : NULL;
    if (word != NULL) {
        (void)shmq_cas_seq(word, word_of(receipt), word_of(receipt) | RETURNED); /* P2 */
    }
}

bool shmq_receipt_says_returned(const shmq_member *m, uint64_t receipt) {
    shmq_a64 *word = receipt != 0 ? at(m, receipt) : NULL;
    return word != NULL && shmq_load_seq(word) == (word_of(receipt) | RETURNED); /* P3 */
}

void shmq_receipt_end(shmq_member *m, uint64_t receipt) {
    if (receipt != 0) {
        shmq_and_seq(&m->receipts, ~(UINT64_C(1) << receipt % SHMQ_RECEIPTS));
    }
}
