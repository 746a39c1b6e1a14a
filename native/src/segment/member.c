/* How a process becomes a member, stays one across fork, and leaves. */
#include "segment/member.h"
#include "base/cipher.h"
#include "segment/descriptors.h"
#include "segment/process_table.h"
#include "segment/segment_attach.h"
#include "segment/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_BLOCK UINT64_C(65536)

static shmq_status make_alive_page(shmq_member *m) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return shmq_fail_errno("no memory for a page");
    }
    m->alive = page;
    if (madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) != 0) {
        return shmq_fail_errno("the kernel cannot wipe a page at fork");
    }
    *m->alive = 1;
    return SHMQ_OK;
}

static void init_mutexes(shmq_member *m) {
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->handles_lock, NULL);
    m->structure_locked = false;
}

static shmq_status attach(shmq_member *m, const char *name, const shmq_home *home) {
    if (home != NULL && home->dir_fd >= 0) {
        m->dir_fd = fcntl(home->dir_fd, F_DUPFD_CLOEXEC, 0);
        if (m->dir_fd < 0) {
            return shmq_fail_errno("cannot duplicate the descriptor of the broker's directory");
        }
        m->home = shmq_file_of(m->dir_fd);
    }
    SHMQ_TRY(make_alive_page(m));
    SHMQ_TRY(shmq_segment_map(m, name, home, O_RDWR));
    shmq_descriptors_watch(m); /* its numbers stand: others compare theirs with them */
    SHMQ_TRY(shmq_lock_fd_open(m));
    return shmq_row_take(m, false);
}

/* Two memberships of a process never have the same serial, not even one that lies where another one lay. For the memory
 * that threads have of a queue names it. */
static uint64_t first_serial(void) {
    static shmq_a64 members;
    return (shmq_add_seq(&members, 1) + 1) << 32;
}

shmq_status shmq_member_attach(const char *name, const shmq_home *home, shmq_member **member) {
    shmq_member *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        errno = ENOMEM;
        return shmq_fail_errno("no memory for a membership");
    }
    m->lock_fd = m->map_fd = m->dir_fd = m->rows_fd = -1;
    m->row = SHMQ_NO_ROW;
    m->serial = first_serial();
    init_mutexes(m);
    shmq_status status = attach(m, name, home);
    if (status != SHMQ_OK) {
        shmq_store_seq(&m->closed, 1);
        shmq_member_free(m);
        return status;
    }
    *member = m;
    return SHMQ_OK;
}

static shmq_status attach_child(shmq_member *m) {
    /* The child opens descriptions of its own: the inherited one is shared with the parent, with its locks. */
    m->process = NULL;
    m->page = NULL;
    init_mutexes(m);
    shmq_status status = shmq_descriptors_of_child(m);
    if (status == SHMQ_OK) {
        status = shmq_row_take(m, true);
    }
    if (status != SHMQ_OK) {
        shmq_lock_fd_close(m);
    }
    return status;
}

shmq_status shmq_member_after_fork(shmq_member *m) {
    if (!shmq_member_forked(m)) {
        return SHMQ_OK;
    }
    pthread_mutex_lock(&shmq_rejoin_mutex);
    shmq_status status = SHMQ_OK;
    if (shmq_member_forked(m)) {
        status = shmq_load_seq(&m->closed) ? SHMQ_OK : attach_child(m);
        if (status == SHMQ_OK) {
            shmq_store_seq(&m->next_id, 0);
            shmq_store_seq(&m->wake_words_taken, 0);
            shmq_store_seq(&m->receipts, 0);
            for (uint32_t i = 0; i < SHMQ_QUEUES / 64; i++) {
                shmq_store_seq(&m->movers[i], 0); /* its holder is a thread of the parent */
            }
            m->rounds = (shmq_rounds){.row = 0}; /* the round is the parent's */
            m->serial += 1;
            /* Last: a thread that reads 1 here relies on all of the above. */
            shmq_store_seq((shmq_a32 *)(uintptr_t)m->alive, 1);
        }
    }
    pthread_mutex_unlock(&shmq_rejoin_mutex);
    return status;
}

void shmq_member_await_rejoin(shmq_member *m) {
    (void)m;
    pthread_mutex_lock(&shmq_rejoin_mutex);
    pthread_mutex_unlock(&shmq_rejoin_mutex);
}

bool shmq_member_is_in_place(const shmq_member *m) {
    return shmq_load_seq(&m->process->word) == m->row_word && shmq_has_locks(m);
}

shmq_status shmq_member_lost(shmq_member *m) {
    (void)shmq_cas32_seq(&m->closed, 0, SHMQ_MEMBER_LOST);
    return shmq_member_refused(m);
}

shmq_status shmq_member_refused(shmq_member *m) {
    uint32_t closed = shmq_load_seq(&m->closed);
    if (closed == 0) {
        return shmq_member_lost(m);
    }
    return closed != SHMQ_MEMBER_LOST
               ? SHMQ_CLOSED
               : shmq_fail(
                     SHMQ_MEMBERSHIP_LOST,
                     "this process has lost the broker: its descriptors were closed beneath it, and others take it "
                     "for dead\nsegment %s\nopen the broker again; a daemon opens it after it has closed all "
                     "descriptors",
                     m->name);
}

static bool others_live(const shmq_member *m) {
    return shmq_rows_locked(m, 0, m->row) || shmq_rows_locked(m, m->row + 1, SHMQ_PROCESS_ROWS);
}

/* Under the structure lock, since each process that attaches takes its row under it, and looks whether the file still
 * has its name. */
static shmq_status unlink_if_last(shmq_member *m) {
    shmq_status status;
    do {
        status = shmq_structure_lock(m);
    } while (status == SHMQ_INTERRUPTED); /* leaving is done in one piece; signals are handled after it */
    SHMQ_TRY(status);
    struct stat file;
    if (!others_live(m) && shmq_leads_to(m->map_fd, &m->segment, &file) && file.st_nlink > 0) {
        char path[128];
        snprintf(path, sizeof(path), "/dev/shm/%s", m->name);
        unlink(path);
    }
    shmq_structure_unlock(m);
    return SHMQ_OK;
}

/* The name is the broker: without it the broker is gone, whatever the header says. A process that dies before the
 * unlink has changed nothing; one that dies after it has deleted the broker. The header's word only makes the others
 * look at once. */
static shmq_status delete_name(shmq_member *m) {
    char path[128];
    snprintf(path, sizeof(path), "/dev/shm/%s", m->name);
    if (unlink(path) != 0 && errno != ENOENT) {
        struct stat file;
        if ((errno == EPERM || errno == EACCES) && shmq_leads_to(m->map_fd, &m->segment, &file)) {
            return shmq_fail(SHMQ_DENIED,
                             "the segment %s is another user's\nowner uid %u, and we are uid %u\n"
                             "let its owner delete the broker",
                             m->name, (unsigned)file.st_uid, (unsigned)geteuid());
        }
        return shmq_fail_errno("cannot remove %s", path);
    }
    shmq_store_seq(&m->header->state, SHMQ_SEGMENT_GONE);
    return SHMQ_OK;
}

shmq_status shmq_member_delete(shmq_member *m, bool force) {
    SHMQ_TRY(shmq_structure_lock(m));
    shmq_status status =
        !force && others_live(m) ? shmq_fail(SHMQ_IN_USE, "the segment %s has other members", m->name) : delete_name(m);
    shmq_structure_unlock(m);
    return status;
}

static void unmap(shmq_member *m) {
    if (m->base != NULL) {
        munmap(m->base, m->size);
    }
    m->base = NULL;
    m->header = NULL;
    m->rows = NULL;
    m->directory = NULL;
    m->granules = NULL;
    m->class_bitmaps = NULL;
    m->slabs = NULL;
    m->process = NULL;
    m->page = NULL;
}

/* Its locks go after this process's own threads have left the structure lock. A child of a fork has no locks, and its
 * mutex may be as a thread of its parent had it. */
static void leave_locks(shmq_member *m) {
    if (shmq_member_forked(m)) {
        shmq_descriptors_close(m);
        return;
    }
    pthread_mutex_lock(&m->lock);
    shmq_descriptors_close(m);
    pthread_mutex_unlock(&m->lock);
}

shmq_status shmq_member_leave(shmq_member *m, bool unmap_too) {
    bool first = shmq_cas32_seq(&m->closed, 0, SHMQ_MEMBER_LEFT) ||
                 shmq_cas32_seq(&m->closed, SHMQ_MEMBER_CLOSING, SHMQ_MEMBER_LEFT);
    shmq_status status = SHMQ_OK;
    if (first && !shmq_member_forked(m) && m->process != NULL) {
        /* No process can find the segment of a deleted directory again, so the last member removes it. */
        status = m->anonymous || shmq_member_gone(m) ? unlink_if_last(m) : SHMQ_OK;
        shmq_row_give(m);
    }
    if (first || shmq_member_is_lost(m)) {
        leave_locks(m);
    }
    if (unmap_too) {
        unmap(m);
    }
    return status;
}

void shmq_member_give_back(shmq_member *m) {
    if (m->base != NULL && m->mapped) {
        int rights = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        unsigned char clock[SHMQ_CLOCK_BYTES]; /* messages that the program has kept tell when they were put */
        memcpy(clock, m->base + SHMQ_CLOCK_AT, sizeof(clock));
        if (mmap(m->base, m->size, rights, kind, -1, 0) != MAP_FAILED) {
            memcpy(m->base + SHMQ_CLOCK_AT, clock, sizeof(clock));
        } else { /* strict overcommit, and no room for it */
            (void)mmap(m->base, m->size, PROT_READ, kind, -1, 0);
        }
        m->mapped = false;
    }
}

void shmq_member_free(shmq_member *m) {
    if (m == NULL) {
        return;
    }
    if (shmq_load_seq(&m->closed) == 0) {
        (void)shmq_member_leave(m, true);
    } else if (m->process == NULL) {
        unmap(m); /* an attach that failed; after leave(unmap = false) views may still read */
    }
    shmq_descriptors_close(m);
    shmq_descriptors_forget(m);
    if (m->alive != NULL) {
        munmap((void *)(uintptr_t)m->alive, (size_t)sysconf(_SC_PAGESIZE));
    }
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->handles_lock);
    if (m->cipher != NULL) {
        m->cipher->free(m->cipher);
    }
    free(m);
}

uint64_t shmq_new_id(shmq_member *m) {
    for (;;) {
        uint64_t next = shmq_load_seq(&m->next_id);
        if (next % ID_BLOCK == 0) {
            uint64_t first = shmq_add_seq(&m->header->message_ids, ID_BLOCK);
            /* A thread that loses this race uses one id of its block and drops the rest: there are enough. */
            (void)shmq_cas_seq(&m->next_id, next, first + 1);
            if (first != 0) {
                return first;
            }
        } else if (shmq_cas_seq(&m->next_id, next, next + 1)) {
            return next;
        }
    }
}

/* A process that can see directory and file goes by them, since the word may be damaged. The last member that leaves a
 * broker that is gone removes its segment. */
bool shmq_member_is_gone(const shmq_member *m) {
    struct stat directory, file;
    bool deleted = shmq_leads_to(m->map_fd, &m->segment, &file) && file.st_nlink == 0;
    if (!deleted && !shmq_leads_to(m->dir_fd, &m->home, &directory)) {
        return shmq_load_seq(&m->header->state) == SHMQ_SEGMENT_GONE;
    }
    return deleted || directory.st_nlink == 0;
}

bool shmq_member_gone(shmq_member *m) {
    uint32_t said = shmq_load_seq(&m->header->state);
    bool gone = shmq_member_is_gone(m), seen = gone || m->dir_fd >= 0;
    if (seen && said != (gone ? SHMQ_SEGMENT_GONE : SHMQ_SEGMENT_LIVE)) {
        if (!gone) {
            (void)shmq_damage(m, "the state of the segment makes no sense", said);
        }
        shmq_store_seq(&m->header->state, gone ? SHMQ_SEGMENT_GONE : SHMQ_SEGMENT_LIVE);
    }
    return gone;
}

shmq_status shmq_damage(shmq_member *m, const char *what, uint64_t where) {
    if (!m->read_only) {
        shmq_add_seq(&m->header->damage, 1);
    }
    return shmq_fail(SHMQ_CORRUPT, "damage found in the segment %s\n%s: 0x%llx\nshmq check tells more", m->name, what,
                     (unsigned long long)where);
}
