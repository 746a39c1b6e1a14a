/* Facts about a broker and its processes for users. */
#include "segment/broker_facts.h"
#include "segment/structure.h"

#include <string.h>

void shmq_broker_look(const shmq_member *m, shmq_broker_facts *facts) {
    uint64_t fixed = (uint64_t)(m->slabs - m->base);
    *facts = (shmq_broker_facts){.fixed_bytes = fixed,
                                 .used_bytes = fixed + shmq_load_relaxed(&m->header->used_bytes),
                                 .reserved_bytes = shmq_load_relaxed(&m->header->reserved_bytes),
                                 .granules_free = shmq_granules_free(m),
                                 .damage = shmq_load_relaxed(&m->header->damage),
                                 .rescues = shmq_load_relaxed(&m->header->rescues),
                                 .deaths = shmq_load_relaxed(&m->header->deaths)};
}

uint64_t shmq_broker_epoch(const shmq_member *m) { return shmq_load_relaxed(&m->header->message_ids) >> 40; }

bool shmq_process_look(const shmq_member *m, uint32_t row, shmq_process_facts *facts) {
    const shmq_process_shm *process = &m->rows[row];
    uint64_t word = shmq_load_seq(&process->word);
    *facts = (shmq_process_facts){.generation = shmq_row_generation(word),
                                  .state = shmq_row_state(word),
                                  .pid = process->pid,
                                  .unsettled = shmq_load_relaxed(&process->unsettled),
                                  .inside = shmq_load_relaxed(&process->inside),
                                  .start_time = process->start_time,
                                  .pid_namespace = process->pid_namespace,
                                  .attached_ns = process->attached_ns,
                                  .pinned_bytes = shmq_load_relaxed(&process->pinned_bytes)};
    memcpy(facts->name, process->name, sizeof facts->name);
    return facts->state != SHMQ_ROW_FREE;
}
