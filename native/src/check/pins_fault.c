/* Faults of pins: all processes' pins against the blocks that they name. */
#include "base/fault_text.h"
#include "blocks/slab.h"
#include "check/faults.h"

/* A view sets its bit before the cell names it, and clears it after the cell: while the cell stays, the bit is set. A
 * tentative cell has no bit yet, and may have the generation of its last use. */
static const char *check_cell(const shmq_member *m, const shmq_pin_shm *pin, uint32_t row, uint32_t row_generation) {
    for (int look = 0; look < SHMQ_LOOKS; look++) {
        uint64_t cell = shmq_load_seq(&pin->cell); /* SYNC block.pin */
        uint64_t generation = shmq_load_seq(&pin->generation);
        uint32_t view = shmq_pin_view(cell);
        shmq_block_location location;
        if (cell == 0) {
            return NULL;
        }
        if (shmq_pin_mark(cell) != (row_generation & 0xffffu)) {
            return shmq_fault_text("a pin of process row %u is marked as that of another process", row);
        }
        if (view != SHMQ_PIN_TENTATIVE && (view == 0 || view > SHMQ_VIEW_BITS)) {
            return shmq_fault_text("a pin of process row %u names a view that does not exist: %u", row, view);
        }
        /* A slab with a pinned block stays; a tentative pin may come too late for a block. */
        bool there = shmq_block_locate(m, shmq_pin_offset(cell), &location);
        if (view == SHMQ_PIN_TENTATIVE) {
            return NULL;
        }
        uint64_t word = there ? shmq_load_seq(&location.block->word) : 0;
        if (there && shmq_block_gen(word) == (uint32_t)generation &&
            (shmq_block_refs(word) >> (SHMQ_VIEW_SHIFT + view - 1) & 1) != 0) {
            return NULL;
        }
        if (shmq_load_seq(&pin->cell) == cell && shmq_load_seq(&pin->generation) == generation &&
            look == SHMQ_LOOKS - 1) {
            return shmq_fault_text("a pin of process row %u names %s", row,
                                   there ? "a view that its block does not count" : "a block that does not exist");
        }
        shmq_pause();
    }
    return NULL;
}

const char *shmq_pins_fault(shmq_member *m) {
    for (uint32_t row = 0; row < SHMQ_PROCESS_ROWS; row++) {
        uint64_t word = shmq_load_acquire(&m->rows[row].word); /* SYNC row.owner */
        shmq_pin_shm *pins = shmq_row_state(word) == SHMQ_ROW_LIVE ? shmq_pins_of(m, row) : NULL;
        for (uint32_t i = 0; pins != NULL && i < SHMQ_PINS; i++) {
            const char *wrong = check_cell(m, &pins[i], row, shmq_row_generation(word));
            if (wrong != NULL && shmq_load_seq(&m->rows[row].word) == word) { /* the process has not left meanwhile */
                return wrong;
            }
        }
    }
    return NULL;
}
