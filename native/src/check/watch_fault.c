/* Faults of the watch, of what its holders sleep on, and of the header's death records. */
#include "base/clock.h"
#include "base/fault_text.h"
#include "check/faults.h"
#include "wake/due.h"
#include "wake/watch.h"

/* A word may name a process of long ago, but none that has not been yet: the row is read after the word. */
static const char *check_watch_word(const shmq_member *m, int index) {
    uint64_t word = shmq_load_seq(&m->header->watch[index]);
    uint32_t row = shmq_watch_row(word);
    if (word == 0) {
        return NULL;
    }
    if ((word & 0xfffe0000u) != 0 || row >= SHMQ_PROCESS_ROWS) {
        return shmq_fault_text("watch word %d makes no sense: 0x%llx", index, (unsigned long long)word);
    }
    uint32_t now = shmq_row_generation(shmq_load_acquire(&m->rows[row].word)); /* SYNC row.owner */
    return (int32_t)(now - (uint32_t)(word >> 32)) >= 0
               ? NULL
               : shmq_fault_text("watch word %d names a process that has not existed yet: row %u", index, row);
}

static const char *check_sleeps_on(const shmq_member *m, uint64_t offset, const char *what, int index) {
    bool sense = offset == 0 ||
                 ((offset & 3) == 0 && shmq_inside(m, offset, 4) && offset >= offsetof(shmq_segment_shm, memory_full));
    return sense ? NULL
                 : shmq_fault_text("%s %d sleeps at an offset that makes no sense: 0x%llx", what, index,
                                   (unsigned long long)offset);
}

static const char *check_volunteer(const shmq_member *m, int index) {
    uint64_t word = shmq_load_seq(&m->header->volunteers[index]);
    if (word != 0 && shmq_volunteer_row(word) >= SHMQ_PROCESS_ROWS) {
        return shmq_fault_text("volunteer %d is of a process row that does not exist: 0x%llx", index,
                               (unsigned long long)word);
    }
    return check_sleeps_on(m, shmq_volunteer_offset(word), "volunteer", index);
}

/* The id of a death record is written after its other fields, none of which goes back to zero. */
static const char *check_death_records(shmq_segment_shm *header) {
    for (uint32_t i = 0; i < SHMQ_DEATH_RECORDS; i++) {
        shmq_death_record_shm *o = &header->death_records[i];
        uint64_t id = shmq_load_seq(&o->message_id);
        if (id == 0) {
            continue;
        }
        if (shmq_load_seq(&header->death_records_next) <= i) {
            return shmq_fault_text("death record %u is in use, but the header does not count it", i);
        }
        int32_t signal = shmq_read_once(&o->signal);
        if (shmq_read_once(&o->at_ns) == 0 || signal < 0 || signal > 64 || o->reserved != 0) {
            return shmq_fault_text("death record %u makes no sense", i);
        }
    }
    return NULL;
}

const char *shmq_watch_fault(shmq_member *m) {
    const char *wrong = NULL;
    for (int i = 0; i < 2 && wrong == NULL; i++) {
        wrong = check_watch_word(m, i);
        if (wrong == NULL) {
            wrong = check_sleeps_on(m, shmq_load_seq(&m->header->watch_wake[i]), "watcher", i);
        }
        uint64_t looked = shmq_load_seq(&m->header->watch_looked[i]);
        if (wrong == NULL && looked > shmq_now_ns()) {
            wrong =
                shmq_fault_text("watcher %d has looked at a time in the future: 0x%llx", i, (unsigned long long)looked);
        }
    }
    for (int i = 0; i < (int)SHMQ_VOLUNTEERS && wrong == NULL; i++) {
        wrong = check_volunteer(m, i);
    }
    wrong = wrong != NULL ? wrong : shmq_due_fault(shmq_load_seq(&m->header->due));
    return wrong != NULL ? wrong : check_death_records(m->header);
}
