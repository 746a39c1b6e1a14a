/* Processes that died, and the messages that they had in hand: for people, and lossy. */
#include "shmq/facts.h"
#include "shmq/ring.h"

uint32_t shmq_obituaries_of(const shmq_member *m, uint64_t id, shmq_obituary found[SHMQ_OBITUARIES]) {
    uint64_t next = shmq_load_seq(&m->header->obituaries_next);
    uint32_t count = 0;
    for (uint64_t i = 0; id != 0 && i < SHMQ_OBITUARIES; i++) {
        const shmq_obituary_shm *note = &m->header->obituaries[(next + i) % SHMQ_OBITUARIES];
        if (shmq_load_seq(&note->message_id) == id) {
            found[count++] = (shmq_obituary){.at_ns = note->at_ns, .pid = note->pid, .signal = note->signal};
        }
    }
    return count;
}

/* By itself, too: the obituaries of what the process held may come later, or their messages may be buried already. */
void shmq_obituary_signal(shmq_member *m, uint32_t pid, int32_t signal) {
    for (uint32_t i = 0; i < SHMQ_OBITUARIES; i++) {
        shmq_obituary_shm *note = &m->header->obituaries[i];
        if (note->pid == pid && note->signal == 0) {
            note->signal = signal;
        }
    }
    shmq_obituary_add(m, SHMQ_OBITUARY_PROCESS, pid, signal);
}
