/* A process binds a handle to a queue. At the end it unbinds the handle and gives back what it has there. */
#include <stdlib.h>

#include "lifecycle/handle_bind.h"
#include "consumers/privilege.h"
#include "flow/file_backing.h"
#include "flow/waiting.h"
#include "groups/group.h"
#include "groups/row_close.h"
#include "limits/room_wake.h"
#include "look/census.h"
#include "queue/settings.h"
#include "ring/ring_old.h"
#include "ring/ring_scattered.h"
#include "segment/structure.h"
#include "selectors/row_selector.h"

/* Has this process another handle on the same queue? One may have been made before a fork and bound again here; or a
 * thread makes one while another thread unbinds its own. The caller holds handles_lock. */
static bool other_handle(const shmq_member *m, const shmq_queue *q) {
    for (const shmq_queue *other = m->handles; other != NULL; other = other->next) {
        if (other != q && other->index == q->index && other->incarnation == q->incarnation &&
            other->serial == m->serial) {
            return true;
        }
    }
    return false;
}

/* The caller holds handles_lock. The counters may belong to a later incarnation by now. */
static void detach_counters(const shmq_member *m, const shmq_queue *q) {
    if (!other_handle(m, q) && shmq_load_seq(&q->counters->attached) == (uint64_t)q->incarnation + 1) {
        shmq_store_seq(&q->counters->attached, 0);
    }
}

/* First the process says that it may touch the queue's memory, then it looks whether the queue is still there. A
 * process that gives the memory back takes the entry out of service first, and then looks at this word. The caller
 * holds handles_lock. */
static shmq_status attach_counters(const shmq_member *m, shmq_queue *q) {
    shmq_store_seq(&q->counters->attached, (uint64_t)q->incarnation + 1);
    if (shmq_load_seq(&m->directory[q->index].word) != shmq_entry_word(q->incarnation, SHMQ_ENTRY_LIVE)) {
        detach_counters(m, q);
        return SHMQ_NOT_FOUND;
    }
    return SHMQ_OK;
}

/* A damaged entry may lead to the page of another queue, so the page must name this one. */
static shmq_status view_own(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_queue *q) {
    SHMQ_TRY(shmq_queue_view(m, index, q));
    q->crc_at_put = q->checksum || !shmq_settings_sealed(q->page); /* a handle only: no message is put through a view */
    bool own = q->page->index == index && q->page->incarnation == incarnation;
    return own ? SHMQ_OK : shmq_damage(m, "the page of a queue belongs to another queue, at queue", index);
}

/* The caller holds handles_lock. */
static shmq_status bind_new(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_counters_shm *counters,
                            shmq_queue **queue) {
    shmq_queue *q = malloc(sizeof *q);
    if (q == NULL) {
        return shmq_fail_errno("no memory for a queue handle");
    }
    q->index = index;
    q->incarnation = incarnation;
    q->counters = counters;
    q->book = NULL;
    q->backing = NULL;
    shmq_status status = attach_counters(m, q);
    if (status == SHMQ_OK) {
        status = view_own(m, index, incarnation, q);
        q->index = index; /* the view cleared them */
        q->incarnation = incarnation;
        q->counters = counters;
        status = status == SHMQ_OK ? shmq_group_book_make(q) : status;
        status = status == SHMQ_OK ? shmq_levels_bind(q) : status; /* levels share the book */
        if (status != SHMQ_OK) {
            detach_counters(m, q);
        }
    }
    if (status != SHMQ_OK) {
        shmq_group_book_free(q);
        free(q);
        return status;
    }
    q->refs = 1;
    q->next = m->handles;
    m->handles = q;
    *queue = q;
    return SHMQ_OK;
}

shmq_status shmq_queue_bind(shmq_member *m, uint32_t index, uint32_t incarnation, shmq_queue **queue) {
    if (index >= SHMQ_QUEUES) {
        return SHMQ_NOT_FOUND;
    }
    uint64_t word = shmq_load_acquire(&m->directory[index].word); /* SYNC directory.entry: the page before LIVE */
    if (shmq_entry_state(word) != SHMQ_ENTRY_LIVE ||
        (incarnation != 0 && shmq_entry_incarnation(word) != incarnation)) {
        return SHMQ_NOT_FOUND;
    }
    incarnation = shmq_entry_incarnation(word);
    if (SHMQ_UNLIKELY(word != shmq_entry_word(incarnation, SHMQ_ENTRY_LIVE))) {
        return shmq_damage(m, "the directory entry of a queue makes no sense, at queue", index);
    }
    shmq_counters_shm *counters; /* before the mutex: it may wait for the structure lock */
    SHMQ_TRY(shmq_counters_of(m, index, &counters));
    shmq_status status = SHMQ_OK;
    /* `attached` changes under the mutex only: else the last unbind of one thread could clear what the bind of another
     * has just written. */
    pthread_mutex_lock(&m->handles_lock);
    shmq_queue *q = m->handles;
    while (q != NULL && (q->index != index || q->incarnation != incarnation || q->serial != m->serial)) {
        q = q->next;
    }
    if (q != NULL) {
        q->refs++;
        *queue = q;
    } else {
        status = bind_new(m, index, incarnation, counters, queue);
    }
    pthread_mutex_unlock(&m->handles_lock);
    return status;
}

static void close_spare_rows(shmq_queue *q) {
    for (uint32_t i = 0; i < q->spare_count; i++) {
        while (shmq_row_close(q, q->spare_rows[i]) == SHMQ_INTERRUPTED) {
        }
    }
    q->spare_count = 0;
}

/* Rows or groups that this process has there. */
static bool leaves_something(const shmq_queue *q) { return q->spare_count != 0 || q->book != NULL; }

void shmq_queue_unbind(shmq_queue *q) {
    shmq_member *m = q->m;
    bool ours = q->serial == m->serial && !shmq_load_relaxed(&m->closed) && !shmq_member_forked(m);
    pthread_mutex_lock(&m->handles_lock);
    bool last = --q->refs == 0;
    if (last) {
        shmq_queue **link = &m->handles;
        while (*link != q) {
            link = &(*link)->next;
        }
        *link = q->next;
        if (ours && !leaves_something(q)) {
            detach_counters(m, q);
        }
    }
    pthread_mutex_unlock(&m->handles_lock);
    if (!last) {
        return;
    }
    if (ours && leaves_something(q)) { /* these need the queue's memory, so they go first, and without the mutex */
        shmq_groups_leave(q, shmq_self(q));
        shmq_privilege_leave(q, shmq_self(q));
        close_spare_rows(q);
        pthread_mutex_lock(&m->handles_lock);
        detach_counters(m, q);
        pthread_mutex_unlock(&m->handles_lock);
    }
    shmq_group_book_free(q);
    shmq_row_selectors_free(q);
    if (q->serial == m->serial && !shmq_member_forked(m)) {
        shmq_file_backing_free(q);
        for (uint32_t depth = 0; depth < q->levels; depth++) {
            shmq_heads_free(shmq_level(q, depth));
        }
    } /* else it is the parent's, and a thread of the parent may have been using it */
    for (uint32_t depth = 0; depth < q->rings; depth++) {
        shmq_old_free(shmq_level(q, depth));
        shmq_scattered_free(shmq_level(q, depth));
        shmq_known_free(shmq_level(q, depth));
    }
    free(q->lower);
    free(q);
}

shmq_status shmq_queue_rebind(shmq_queue *q) {
    if (q->serial == q->m->serial) {
        return SHMQ_OK;
    }
    shmq_counters_shm *counters;
    SHMQ_TRY(shmq_counters_of(q->m, q->index, &counters));
    shmq_status status = SHMQ_OK;
    pthread_mutex_lock(&q->m->handles_lock);
    if (q->serial != q->m->serial) {
        q->spare_count = 0; /* the rows are the parent's */
        shmq_store_seq(&q->first.taking.busy, 0);
        shmq_store_seq(&q->first.browsing.busy, 0);
        shmq_store_seq(&q->first.putting.busy, 0);
        shmq_store_seq(&q->lining.busy, 0);
        q->counters = counters;
        q->backing = NULL; /* a thread of the parent may have left it half done */
        shmq_group_book_reset(q);
        shmq_row_selectors_reset(q);
        status = attach_counters(q->m, q);
        q->serial = status == SHMQ_OK ? q->m->serial : q->serial;
        shmq_levels_rebind(q);
        for (uint32_t depth = 0; depth < q->rings; depth++) {
            shmq_level(q, depth)->heads = NULL; /* likewise */
            shmq_level(q, depth)->passed = (shmq_passed){0};
            shmq_old_reset(shmq_level(q, depth));
            shmq_scattered_reset(shmq_level(q, depth));
            shmq_known_reset(shmq_level(q, depth));
        }
    }
    pthread_mutex_unlock(&q->m->handles_lock);
    return status;
}

void shmq_queue_wake_threads(shmq_member *m) {
    if (pthread_mutex_trylock(&m->handles_lock) != 0) {
        return; /* its owner may wait for the structure lock; the caller comes again */
    }
    for (shmq_queue *q = m->handles; q != NULL; q = q->next) {
        if (q->serial == m->serial) {
            shmq_notify_all(q);
        }
    }
    pthread_mutex_unlock(&m->handles_lock);
}

void shmq_queue_close_handles(shmq_member *m) {
    for (shmq_queue *q = m->handles; q != NULL; q = q->next) {
        if (q->serial == m->serial) {
            close_spare_rows(q);
            shmq_store_seq(&q->counters->attached, 0);
        }
    }
}

bool shmq_queue_counters_try(shmq_member *m, uint32_t index) {
    shmq_counters_shm *counters = shmq_counters_at(m, m->row, index);
    if (SHMQ_UNLIKELY(counters == NULL)) {
        shmq_status status = shmq_structure_try(m);
        if (status == SHMQ_OK) {
            status = shmq_counters_make(m, index, &counters);
            shmq_structure_unlock(m);
        }
        shmq_trail_clear(); /* for the caller nothing has failed */
        return status == SHMQ_OK;
    }
    return true;
}
