/* Pins: a view of a block has a view bit in the block's word, and a cell in its process's pin table that names the bit.
 *
 * The functions here and the sweep rely on two facts:
 *   - a process takes a view bit only while an entry bit is set. So once the entry bits of a generation are gone, its
 *     view bits only vanish: a bit that was dropped then is not taken again, and a second drop of it does nothing;
 *   - the sweep drops view bits that no cell names only then (block_sweep.c).
 * While entry bits are there, one process alone drops a view bit: its owner, or the one that took its cell by CAS. */
#include "blocks/slab.h"

shmq_pin_shm *shmq_pins_of(const shmq_member *m, uint32_t process_row) {
    const shmq_process_shm *row = &m->rows[process_row];
    uint64_t offset = shmq_copy_once(&row->pins);
    uint32_t cells = shmq_copy_once(&row->pin_cells);
    if (offset < m->data || offset % sizeof(shmq_pin_shm) != 0 || cells != SHMQ_PINS ||
        !shmq_inside(m, offset, SHMQ_PINS * sizeof(shmq_pin_shm))) {
        return NULL;
    }
    return shmq_at(m, offset);
}

/* The thread claims an empty cell and marks it tentative. Until the thread knows its view bit, the cell keeps the sweep
 * from dropping any view bit of this block. SHMQ_PINS: no cell is empty. */
static uint32_t claim_cell(shmq_member *m, uint64_t cell) {
    static _Thread_local uint32_t start; /* near the last cell of this thread one is free */
    for (uint32_t n = 0; n < SHMQ_PINS; n++) {
        uint32_t at = (start + n) % SHMQ_PINS;
        if (shmq_load_relaxed(&m->page->pins[at].cell) == 0 && shmq_cas_seq(&m->page->pins[at].cell, 0, cell)) {
            start = at;
            return at;
        }
    }
    return SHMQ_PINS;
}

/* Takes a free view bit of this generation; returns bit number + 1. 0: all are taken, or no entry refers to the block
 * any more. */
static uint32_t take_view_bit(shmq_block_shm *block, uint32_t generation) {
    for (;;) {
        uint64_t word = shmq_load_seq(&block->word);
        uint32_t refs = shmq_block_refs(word), views = refs >> SHMQ_VIEW_SHIFT;
        if (shmq_block_gen(word) != generation || (refs & SHMQ_ENTRY_MASK) == 0 || views == 0xffu) {
            return 0;
        }
        uint32_t view = (uint32_t)__builtin_ctz(~views);
        if (shmq_cas_seq(&block->word, word, word | (UINT64_C(1) << (SHMQ_VIEW_SHIFT + view)))) { /* SYNC block.pin */
            return view + 1;
        }
    }
}

bool shmq_block_pin(shmq_member *m, uint64_t offset, uint32_t generation, uint64_t bytes, uint32_t *pin) {
    shmq_block_location location;
    if (!shmq_block_locate(m, offset, &location) || shmq_is_kept(m, offset)) {
        return false; /* the kept block is to be free with its entry */
    }
    uint32_t at = claim_cell(m, shmq_pin_cell(offset, SHMQ_PIN_TENTATIVE, m->row_generation));
    if (at == SHMQ_PINS) {
        return false;
    }
    shmq_pin_shm *cell = &m->page->pins[at];
    /* Written after the claim, since before it two threads could write it for one cell; and before the view bit, so
     * that a process that sees the bit sees both. */
    shmq_store_release(&cell->generation, generation); /* SYNC block.pin */
    uint32_t view = take_view_bit(location.block, generation);
    /* SYNC block.pin */
    shmq_store_release(&cell->cell, view == 0 ? 0 : shmq_pin_cell(offset, view, m->row_generation));
    if (view == 0) {
        return false;
    }
    shmq_add_relaxed(&m->process->pinned_bytes, bytes);
    *pin = at;
    return true;
}

/* The thread clears the cell first. In the other order the process could die when the bit is another view's already.
 * The reaper would find the cell and end that other view. */
void shmq_block_unpin(shmq_member *m, uint32_t pin, uint64_t bytes) {
    SHMQ_ASSERT(pin < SHMQ_PINS);
    shmq_pin_shm *slot = &m->page->pins[pin];
    uint32_t generation = (uint32_t)shmq_load_relaxed(&slot->generation);
    uint64_t cell = shmq_swap_seq(&slot->cell, 0);
    uint32_t view = shmq_pin_view(cell);
    shmq_block_location location;
    if (view >= 1 && view <= SHMQ_VIEW_BITS && shmq_block_locate(m, shmq_pin_offset(cell), &location)) {
        shmq_block_release(m, &location, generation, UINT32_C(1) << (SHMQ_VIEW_SHIFT + view - 1));
    }
    shmq_add_relaxed(&m->process->pinned_bytes, UINT64_C(0) - bytes);
}

/* The reaper reads the generation here and finds it dead here: what the caller knew may be about an earlier owner of
 * the row. From then on a cell with this generation's mark is the dead process's, and stays until one reaper takes
 * it. */
void shmq_pins_recover(shmq_member *m, uint32_t process_row, const shmq_liveness *l) {
    if (process_row >= SHMQ_PROCESS_ROWS) {
        return;
    }
    shmq_process_shm *row = &m->rows[process_row];
    uint32_t generation = shmq_row_generation(shmq_load_seq(&row->word));
    if (!shmq_is_dead(l, process_row) || shmq_row_generation(shmq_load_seq(&row->word)) != generation) {
        return;
    }
    shmq_pin_shm *pins = shmq_pins_of(m, process_row);
    for (uint32_t i = 0; pins != NULL && i < SHMQ_PINS; i++) {
        uint64_t cell = shmq_load_seq(&pins[i].cell);
        uint32_t pinned = (uint32_t)shmq_load_relaxed(&pins[i].generation), view = shmq_pin_view(cell);
        if (cell == 0 || shmq_pin_mark(cell) != (generation & 0xffffu) || !shmq_cas_seq(&pins[i].cell, cell, 0)) {
            continue;
        }
        shmq_block_location location;
        if (view >= 1 && view <= SHMQ_VIEW_BITS && shmq_block_locate(m, shmq_pin_offset(cell), &location)) {
            shmq_block_release(m, &location, pinned, UINT32_C(1) << (SHMQ_VIEW_SHIFT + view - 1));
        }
    }
}

void shmq_blocks_unpin_dead(shmq_member *m, uint32_t process_row) {
    shmq_liveness by_lock = shmq_liveness_by_lock(m);
    shmq_pins_recover(m, process_row, &by_lock);
}

void shmq_pinned_count(shmq_member *m, int64_t bytes) {
    if (m->process != NULL) {
        shmq_add_relaxed(&m->process->pinned_bytes, (uint64_t)bytes);
    }
}
