/* Death records: which processes died, and which messages they had in hand. They are for people; old ones are
 * overwritten. */
#include "ring/death_record.h"
#include "ring/ring.h"

uint32_t shmq_death_records_of(const shmq_member *m, uint64_t id, shmq_death_record found[SHMQ_DEATH_RECORDS]) {
    uint64_t next = shmq_load_seq(&m->header->death_records_next);
    uint32_t count = 0;
    for (uint64_t i = 0; id != 0 && i < SHMQ_DEATH_RECORDS; i++) {
        const shmq_death_record_shm *note = &m->header->death_records[(next + i) % SHMQ_DEATH_RECORDS];
        if (shmq_load_seq(&note->message_id) == id) {
            found[count++] = (shmq_death_record){.at_ns = note->at_ns, .pid = note->pid, .signal = note->signal};
        }
    }
    return count;
}

/* Adds a record of the process itself, too: the records of what it held may come later, or their messages may be dead
 * letters already. */
void shmq_death_record_signal(shmq_member *m, uint32_t pid, int32_t signal) {
    for (uint32_t i = 0; i < SHMQ_DEATH_RECORDS; i++) {
        shmq_death_record_shm *note = &m->header->death_records[i];
        if (note->pid == pid && note->signal == 0) {
            note->signal = signal;
        }
    }
    shmq_death_record_add(m, SHMQ_DEATH_RECORD_PROCESS, pid, signal);
}
