#include "segment/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* All memberships of this process, for the fork handler. The process holds the mutex across fork, and while it opens or
 * closes a lock descriptor. A child must never inherit a descriptor that the handler does not know: it would keep its
 * parent's row byte locked after the parent's death. */
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t shmq_rejoin_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static shmq_member *list;

shmq_file shmq_file_of(int fd) {
    struct stat file;
    return fd >= 0 && fstat(fd, &file) == 0 ? (shmq_file){.device = file.st_dev, .inode = file.st_ino} : (shmq_file){0};
}

bool shmq_leads_to(int fd, const shmq_file *file, struct stat *seen) {
    return fd >= 0 && fstat(fd, seen) == 0 && seen->st_dev == file->device && seen->st_ino == file->inode;
}

/* A look that fails for another reason than a closed descriptor proves nothing against it. */
bool shmq_maps_by(const shmq_member *m, int fd) {
    struct stat seen;
    if (fd < 0 || fstat(fd, &seen) != 0) {
        return fd >= 0 && errno != EBADF;
    }
    return seen.st_dev == m->segment.device && seen.st_ino == m->segment.inode;
}

bool shmq_has_locks(const shmq_member *m) { return shmq_maps_by(m, m->lock_fd); }

/* Closes the descriptor if it still is the one that the membership has opened. Calls that are safe in a child of a fork
 * only. */
static void close_own(int *fd, const shmq_file *file) {
    struct stat seen;
    if (shmq_leads_to(*fd, file, &seen)) {
        close(*fd);
    }
    *fd = -1;
}

static void before_fork(void) { pthread_mutex_lock(&list_mutex); }

static void parent_after_fork(void) { pthread_mutex_unlock(&list_mutex); }

/* The child calls fstat(2) and close(2) only: other threads of the parent may have held any lock of the C library.
 * Closing a shared description unlocks nothing while the parent has it open; F_UNLCK would take the parent's locks
 * away. */
static void child_after_fork(void) {
    for (shmq_member *m = list; m != NULL; m = m->next) {
        close_own(&m->lock_fd, &m->segment);
        pthread_mutex_init(&m->handles_lock, NULL); /* a child that never joins takes it when it drops a handle */
    }
    pthread_mutex_init(&list_mutex, NULL);
    pthread_mutex_init(&shmq_rejoin_mutex, NULL);
}

static void register_handlers(void) {
    SHMQ_ASSERT(pthread_atfork(before_fork, parent_after_fork, child_after_fork) == 0);
}

void shmq_descriptors_watch(shmq_member *m) {
    pthread_once(&list_once, register_handlers);
    pthread_mutex_lock(&list_mutex);
    m->next = list;
    list = m;
    pthread_mutex_unlock(&list_mutex);
}

void shmq_descriptors_forget(shmq_member *m) {
    pthread_mutex_lock(&list_mutex);
    for (shmq_member **at = &list; *at != NULL; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_mutex);
}

/* A new descriptor has this number. So a membership that believes to own it had its own closed beneath it; also where both
 * lead to one segment. The caller holds list_mutex. */
static void disown(const shmq_member *owner, int fd) {
    for (shmq_member *m = list; m != NULL && fd >= 0; m = m->next) {
        int *theirs[] = {&m->lock_fd, &m->map_fd, &m->dir_fd, &m->rows_fd};
        for (int i = 0; m != owner && i < 4; i++) {
            if (*theirs[i] == fd) {
                *theirs[i] = -1;
            }
        }
    }
}

/* Opens the segment again, as another description. By a descriptor, also when the file has no name any more, else by
 * its name. -1: whatever is there is not the segment. */
static int open_again(const shmq_member *m) {
    int ways[] = {m->map_fd, m->lock_fd, -1};
    for (uint32_t i = 0; i < 3; i++) {
        char path[128];
        if (ways[i] >= 0) {
            snprintf(path, sizeof(path), "/proc/self/fd/%d", ways[i]);
        } else {
            snprintf(path, sizeof(path), "/dev/shm/%s", m->name);
        }
        if (ways[i] >= 0 && !shmq_maps_by(m, ways[i])) {
            continue; /* never opened: it may be a device that an open does something to */
        }
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (ways[i] < 0 ? O_NOFOLLOW : 0));
        if (shmq_maps_by(m, fd)) {
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        } else if (errno == EMFILE || errno == ENFILE) {
            break;
        }
    }
    return -1;
}

static int opened(shmq_member *m) {
    int fd = open_again(m);
    if (fd >= 0) {
        disown(m, fd);
    }
    return fd;
}

int shmq_segment_fd(shmq_member *m) {
    int fd = m->map_fd;
    if (SHMQ_LIKELY(shmq_maps_by(m, fd))) {
        return fd;
    }
    pthread_mutex_lock(&list_mutex);
    if (!shmq_maps_by(m, m->map_fd)) {
        m->map_fd = opened(m); /* the old number is a stranger's, and stays open */
    }
    fd = m->map_fd;
    pthread_mutex_unlock(&list_mutex);
    return fd;
}

static shmq_status cannot_open(const shmq_member *m) {
    return errno == EMFILE || errno == ENFILE
               ? shmq_fail_errno("cannot open the segment %s again", m->name)
               : shmq_fail(
                     SHMQ_MEMBERSHIP_LOST,
                     "the segment %s cannot be opened again: its descriptor was closed beneath this process\n\nopen "
                     "the broker after that",
                     m->name);
}

shmq_status shmq_lock_fd_open(shmq_member *m) {
    pthread_mutex_lock(&list_mutex);
    disown(m, m->map_fd);
    disown(m, m->dir_fd);
    m->lock_fd = opened(m);
    shmq_status status = m->lock_fd >= 0 ? SHMQ_OK : cannot_open(m);
    pthread_mutex_unlock(&list_mutex);
    return status;
}

void shmq_lock_fd_close(shmq_member *m) {
    pthread_mutex_lock(&list_mutex);
    close_own(&m->lock_fd, &m->segment);
    pthread_mutex_unlock(&list_mutex);
}

shmq_status shmq_descriptors_of_child(shmq_member *m) {
    pthread_mutex_lock(&list_mutex);
    int fd = opened(m);
    if (fd >= 0) {
        close_own(&m->map_fd, &m->segment);
        m->map_fd = fd;
    }
    shmq_status status = fd >= 0 ? SHMQ_OK : cannot_open(m);
    pthread_mutex_unlock(&list_mutex);
    return status == SHMQ_OK ? shmq_lock_fd_open(m) : status;
}

void shmq_descriptors_close(shmq_member *m) {
    pthread_mutex_lock(&list_mutex);
    close_own(&m->lock_fd, &m->segment);
    close_own(&m->map_fd, &m->segment);
    close_own(&m->dir_fd, &m->home);
    close_own(&m->rows_fd, &(shmq_file){.device = m->rows_device, .inode = m->rows_inode});
    pthread_mutex_unlock(&list_mutex);
}
