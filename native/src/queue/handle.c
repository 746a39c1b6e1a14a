/* A view of a queue: checked copies of what its page and rings say. */
#include "queue/handle.h"
#include "base/crc32c.h"
#include "queue/level.h"

#include <string.h>

/* Each field is read once, checked, and kept as a copy: nothing reads the shared field afterwards. */
static const char *look(shmq_member *m, uint32_t index, shmq_queue *q, uint64_t *where) {
    memset(q, 0, sizeof *q);
    shmq_directory_shm *entry = &m->directory[index];
    uint64_t page = *where = shmq_load_acquire(&entry->page); /* SYNC directory.entry */
    if ((page & (SHMQ_PAGE_BYTES - 1)) != 0 || page < m->data || !shmq_inside(m, page, SHMQ_PAGE_BYTES)) {
        return "the offset of the queue's page makes no sense";
    }
    q->m = m;
    q->index = index;
    q->page = shmq_at(m, page);
    q->incarnation = shmq_copy_once(&q->page->incarnation);
    uint32_t identity[2] = {index, q->incarnation};
    q->checksum_start = shmq_crc32c(0, identity, sizeof identity);
    q->checksum = shmq_load_relaxed(&q->page->checksum) != 0;
    q->grouping = shmq_load_relaxed(&q->page->settings.grouping);
    q->grouping = q->grouping > SHMQ_GROUPS_STICKY ? SHMQ_GROUPS_NONE : q->grouping;
    q->serial = m->serial;
    q->levels = shmq_copy_once(&q->page->levels);
    q->rings = 2 * q->levels;
    uint64_t rings = shmq_copy_once(&q->page->level_rings);
    uint64_t bytes = (uint64_t)(q->rings - 1) * sizeof(shmq_ring_shm);
    if (q->levels < 1 || q->levels > SHMQ_LEVELS_MAX || rings % 64 != 0 || rings < m->data ||
        !shmq_inside(m, rings, bytes)) {
        return "the number or the offset of the queue's levels makes no sense";
    }
    q->level_rings = shmq_at(m, rings);
    return shmq_level_look(q, 0, &q->first);
}

const char *shmq_queue_look(shmq_member *m, uint32_t index, shmq_queue *view) {
    uint64_t where;
    return look(m, index, view, &where);
}

shmq_status shmq_queue_look_as(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_queue *view,
                               const char **wrong) {
    uint64_t live = shmq_entry_word(incarnation, SHMQ_ENTRY_LIVE);
    if (index >= SHMQ_QUEUES || shmq_load_seq(&m->directory[index].word) != live) {
        return SHMQ_NOT_FOUND;
    }
    *wrong = shmq_queue_look(m, index, view);
    view->index = index;
    bool own = *wrong == NULL && view->page->index == index && view->page->incarnation == incarnation;
    if (shmq_load_seq(&m->directory[index].word) != live) {
        return SHMQ_NOT_FOUND;
    }
    *wrong = *wrong != NULL || own ? *wrong : "its page is that of another queue";
    return *wrong == NULL ? SHMQ_OK : SHMQ_CORRUPT;
}

shmq_status shmq_queue_view(shmq_member *m, uint32_t index, shmq_queue *view) {
    uint64_t where;
    const char *wrong = look(m, index, view, &where);
    return wrong == NULL ? SHMQ_OK : shmq_damage(m, wrong, where);
}
