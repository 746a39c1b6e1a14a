/* The structure lock, and what a process takes under it: reservations, pages, runs of granules. */
#include "segment/structure.h"
#include "base/clock.h"
#include "base/wait_time.h"
#include "segment/descriptors.h"
#include "segment/requests.h"
#include "segment/reservation.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIRTY (UINT64_C(1) << 63)

/* Locks out the other threads of this process. One of them may hold the lock while it waits for a stopped process.
 * Threads that wait behind it must still handle signals, so the wait is short. False: it was too short. */
static bool lock_threads(shmq_member *m) {
    if (pthread_mutex_trylock(&m->lock) == 0) {
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)SHMQ_THREAD_LOCK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec += 1;
    }
    return pthread_mutex_timedlock(&m->lock, &until) == 0;
}

static int lock_byte(int fd, bool wait) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHMQ_STRUCTURE_BYTE, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        return 0;
    }
    if (errno != EAGAIN && errno != EACCES) {
        return -1;
    }
    errno = EINTR;
    return wait ? fcntl(fd, F_OFD_SETLKW, &lock) : -1;
}

/* Unlocks the structure byte, which the same call of the same process takes and gives back. The row's byte is never
 * unlocked. */
static void unlock_byte(const shmq_member *m) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = SHMQ_STRUCTURE_BYTE, .l_len = 1};
    if (shmq_has_locks(m)) { /* else the lock went with the descriptor, which was closed beneath us */
        SHMQ_ASSERT(fcntl(m->lock_fd, F_OFD_SETLK, &lock) == 0);
    }
}

/* Is the process that left the word dirty still at work? It lost the lock when its descriptors were closed beneath it. */
static bool is_at_work(const shmq_member *m, uint64_t dirty) {
    uint32_t high = dirty != 0 ? shmq_process_high(m) : 0;
    for (uint32_t row = 0; row < high; row++) {
        if (shmq_copy_once(&m->rows[row].pid) == (uint32_t)dirty && shmq_process_life(m, row) == SHMQ_LOCKLESS) {
            return true;
        }
    }
    return false;
}

/* Behind the lock. One who runs without it has the patience to come to an end, as with all that it may be writing. */
static void await_lockless(shmq_member *m) {
    for (uint64_t until = shmq_now_ns() + m->patience_ns;
         SHMQ_UNLIKELY(is_at_work(m, shmq_load_seq(&m->header->dirty))) && shmq_now_ns() < until;) {
        nanosleep(&(struct timespec){.tv_nsec = SHMQ_NAP_NS}, NULL);
    }
}

static uint64_t mark_of_own(void) { return DIRTY | (uint32_t)getpid(); }

/* Marks the holder. Returns what was there: not 0 says that the holder before died. */
static uint64_t mark_dirty(shmq_member *m) {
    uint64_t left;
    do {
        await_lockless(m);
        left = shmq_load_seq(&m->header->dirty);
    } while (!shmq_cas_seq(&m->header->dirty, left, mark_of_own()));
    return left;
}

static shmq_status lock_structure(shmq_member *m, bool wait) {
    if (wait ? !lock_threads(m) : pthread_mutex_trylock(&m->lock) != 0) {
        return shmq_fail(SHMQ_INTERRUPTED, "another thread of this process waits for the structure lock");
    }
    shmq_status status = SHMQ_OK;
    if (!shmq_has_locks(m)) {
        status = shmq_member_is_closed(m) ? shmq_member_refused(m) : shmq_member_lost(m);
    } else if (lock_byte(m->lock_fd, wait) != 0) {
        status = errno == EINTR ? shmq_fail(SHMQ_INTERRUPTED, "a signal came while waiting for the structure lock")
                                : shmq_fail_errno("cannot lock the structure of the segment %s", m->name);
    }
    if (status != SHMQ_OK) {
        pthread_mutex_unlock(&m->lock);
        return status;
    }
    /* A process that looks without the lock reads `turns`, then `dirty`, and `turns` again after its look. So the
     * holder marks itself dirty before it raises the turn, and raises it before it changes anything, also by a
     * rebuild. If it dies, `dirty` stays set, and the next process that locks rebuilds the map. */
    uint64_t left = mark_dirty(m);
    if (!shmq_has_locks(m)) { /* closed beneath us since: whoever locks now finds the mark, or is at work already */
        (void)shmq_cas_seq(&m->header->dirty, mark_of_own(), left);
        status = shmq_member_lost(m);
        pthread_mutex_unlock(&m->lock);
        return status;
    }
    m->structure_locked = true;
    shmq_add_seq(&m->header->turns, 1);
    shmq_fence_release(); /* SYNC structure.look */
    if (left != 0 && (status = shmq_structure_rebuild(m)) != SHMQ_OK) {
        m->structure_locked = false; /* `dirty` stays set */
        unlock_byte(m);
        pthread_mutex_unlock(&m->lock);
    }
    return status;
}

shmq_status shmq_structure_lock(shmq_member *m) { return lock_structure(m, true); }

shmq_status shmq_structure_try(shmq_member *m) { return lock_structure(m, false); }

void shmq_structure_unlock(shmq_member *m) {
    SHMQ_ASSERT(m->structure_locked);
    /* From its own mark: who works without the lock for longer than the patience does not end another's turn. */
    (void)shmq_cas_seq(&m->header->dirty, mark_of_own(), 0);
    m->structure_locked = false;
    unlock_byte(m);
    pthread_mutex_unlock(&m->lock);
}

void shmq_structure_mend(shmq_member *m) {
    if (SHMQ_LIKELY(shmq_load_seq(&m->header->dirty) == 0)) {
        return;
    }
    if (lock_structure(m, false) == SHMQ_OK) {
        shmq_structure_unlock(m);
    } else {
        shmq_trail_clear(); /* the caller's own work has not failed */
    }
}

static uint64_t granule_offset(const shmq_member *m, uint32_t granule) {
    return m->data + ((uint64_t)granule << SHMQ_GRANULE_SHIFT);
}

static uint64_t granule(const shmq_member *m, uint32_t index) { return shmq_load_relaxed(&m->granules[index]); }

static bool is_reserved(const shmq_member *m, uint32_t index) {
    return (granule(m, index) & SHMQ_GRANULE_RESERVED) != 0;
}

/* Reserves a piece, notes it in the map, then goes on to the next one: a failure leaves granules that are reserved and
 * free. */
static shmq_status reserve_granules(shmq_member *m, uint32_t first, uint32_t count) {
    for (uint32_t at = first; at < first + count;) {
        uint32_t end = at;
        while (end < first + count && !is_reserved(m, end)) {
            end += 1;
        }
        if (end == at) {
            at += 1;
            continue;
        }
        uint64_t bytes = (uint64_t)(end - at) << SHMQ_GRANULE_SHIFT;
        SHMQ_TRY(shmq_reserve(m, granule_offset(m, at), bytes));
        for (uint32_t i = at; i < end; i++) {
            shmq_granule_set(m, i, (granule(m, i) & ~SHMQ_GRANULE_BEGUN) | SHMQ_GRANULE_RESERVED);
        }
        at = end;
    }
    return SHMQ_OK;
}

/* First fit in [from, to) for a run that begins there and has at most `most` granules without memory. m->granule_count:
 * there is none. */
static uint32_t fit(const shmq_member *m, uint32_t from, uint32_t to, uint32_t length, uint64_t most) {
    uint32_t run = 0, bare = 0; /* bare: how many granules of the run have no memory */
    for (uint32_t i = from; i < m->granule_count && i - run < to; i++) {
        if (shmq_granule_kind(granule(m, i)) != SHMQ_GRANULE_FREE) {
            run = bare = 0;
            continue;
        }
        run += 1;
        bare += !is_reserved(m, i);
        for (; run > length || bare > most; run--) {
            bare -= !is_reserved(m, i + 1 - run);
        }
        if (run == length) {
            return i + 1 - length;
        }
    }
    return m->granule_count;
}

/* Where a run is taken. Memory that stays keeps apart from memory that comes and goes, so that no page lies in the
 * middle of the memory that large bodies leave. Pages are taken from the end, rings from the beginning, slabs from
 * where the last search ended. */
enum place { LAST, LOWEST, NEXT };

static uint32_t last_free(const shmq_member *m, uint64_t most) {
    for (uint32_t i = m->granule_count; i-- != 0;) {
        uint64_t word = granule(m, i);
        if (shmq_granule_kind(word) == SHMQ_GRANULE_FREE && (most != 0 || is_reserved(m, i))) {
            return i;
        }
    }
    return m->granule_count;
}

uint32_t shmq_run_high(const shmq_member *m) {
    uint32_t high = shmq_load_relaxed(&m->header->run_high);
    return high < m->granule_count ? high : m->granule_count;
}

/* From where the last search ended. Where only free granules with memory will do, those below the mark are looked at
 * first: behind it none has memory, but what pages have left. */
static uint32_t fit_next(const shmq_member *m, uint32_t length, uint64_t most) {
    uint32_t end = most < length ? shmq_run_high(m) : m->granule_count, hint = m->run_hint < end ? m->run_hint : end;
    uint32_t begins[] = {hint, 0, end}, ends[] = {end, hint, m->granule_count}, found = m->granule_count;
    for (uint32_t part = 0; part < 3 && found == m->granule_count; part++) {
        found = fit(m, begins[part], ends[part], length, most);
    }
    return found;
}

static uint32_t find_run(const shmq_member *m, uint32_t length, enum place place, uint64_t most) {
    uint64_t ready = shmq_load_relaxed(&m->header->granules_ready);
    if (ready + most < length) {
        return m->granule_count;
    }
    return place == LAST     ? last_free(m, most)
           : place == LOWEST ? fit(m, 0, m->granule_count, length, most)
                             : fit_next(m, length, most);
}

/* Takes a free run and reserves all of it. Memory that is reserved only now is zero already; memory that was used
 * before is zeroed if `zero` says so. */
static shmq_status take_free(shmq_member *m, uint32_t length, enum place place, bool zero, uint64_t most,
                             uint32_t *first) {
    if (length == 0 || length > m->granule_count) {
        return shmq_fail(SHMQ_FULL_MEMORY, "the broker's memory can never hold this\n%u granules of 64 KiB, it has %u",
                         length, m->granule_count);
    }
    uint32_t found = find_run(m, length, place, most);
    if (found == m->granule_count) {
        return shmq_fail(
            SHMQ_FULL_MEMORY,
            "the broker's memory is used up\n%u granules of 64 KiB in one piece needed, %llu of %u are free\n"
            "take messages out, drop views of them, or make the broker with more memory",
            length, (unsigned long long)shmq_granules_free(m), m->granule_count);
    }
    for (uint32_t i = found; zero && i < found + length; i++) {
        if (is_reserved(m, i)) { /* a granule reserved in part is given back with its ring */
            memset(shmq_at(m, granule_offset(m, i)), 0, SHMQ_GRANULE_BYTES);
        }
    }
    shmq_status status = reserve_granules(m, found, length);
    if (status == SHMQ_NO_SPACE) {
        /* /dev/shm is full: the granules that this segment has reserved before may do. */
        found = find_run(m, length, place, 0);
        if (found == m->granule_count) {
            return status;
        }
        if (zero) {
            memset(shmq_at(m, granule_offset(m, found)), 0, (uint64_t)length << SHMQ_GRANULE_SHIFT);
        }
        status = SHMQ_OK;
    }
    SHMQ_TRY(status);
    if (place == NEXT) {
        m->run_hint = found + length;
    }
    if (place != LAST && shmq_run_high(m) < found + length) {
        shmq_store_relaxed(&m->header->run_high, found + length);
    }
    *first = found;
    return SHMQ_OK;
}

static void mark(shmq_member *m, uint32_t index, uint32_t kind, uint32_t pages, uint32_t length) {
    shmq_granule_set(m, index, shmq_granule_word(granule(m, index), kind, pages, length));
}

uint32_t shmq_granules_kept(const shmq_member *m) {
    uint64_t share = (m->memory >> SHMQ_GRANULE_SHIFT) / 64;
    return share < 16 ? (uint32_t)share : 16;
}

/* How many granules bodies leave to the slots of queues: a part of `all`, the broker's memory, or of /dev/shm where
 * that is smaller. */
static uint64_t kept_at_most(uint64_t all) {
    return (all / SHMQ_RING_SHARE + all / SHMQ_FRONTS_SHARE) >> SHMQ_GRANULE_SHIFT;
}

/* A sixteenth, less what slots have already; and, of a quarter, what front rings want as soon as their queues flow. */
static uint64_t kept_for_rings(shmq_member *m, uint64_t all) {
    uint64_t share = all / SHMQ_RING_SHARE, most = all / SHMQ_FRONTS_SHARE, have = shmq_rings_bytes(m);
    uint64_t fronts = shmq_upkeep.fronts_lack(m), slots = have < share ? share - have : 0;
    return (slots + (fronts < most ? fronts : most) + SHMQ_GRANULE_BYTES - 1) >> SHMQ_GRANULE_SHIFT;
}

/* How many granules a run of this kind leaves free. */
static uint64_t kept_from(shmq_member *m, uint32_t granules, uint32_t kind, uint64_t free) {
    uint64_t pages = shmq_granules_kept(m);
    bool scarce = kind == SHMQ_GRANULE_SLAB && free <= granules + pages + kept_at_most(m->memory);
    return pages + (scarce ? kept_for_rings(m, m->memory) : 0);
}

/* Lowers *most to what bodies may have of /dev/shm, which may be smaller than the memory, or used by others; true: that
 * is less. *kept: how many granules of it they leave to slots. The space that bodies leave there is no promise to slots. Without it a
 * queue whose bodies have used all of /dev/shm could not go on when it is empty again. */
static bool is_shm_short(shmq_member *m, uint32_t granules, uint32_t kind, uint64_t *most, uint64_t *kept) {
    uint64_t left, size;
    if (kind != SHMQ_GRANULE_SLAB || !shmq_shm_left(m, &left, &size)) {
        return false;
    }
    uint64_t all = size < m->memory ? size : m->memory, there = left >> SHMQ_GRANULE_SHIFT;
    if (there >= granules + kept_at_most(all)) {
        return false;
    }
    *kept = kept_for_rings(m, all);
    uint64_t usable = there > *kept ? there - *kept : 0;
    bool fewer = usable < *most;
    *most = fewer ? usable : *most;
    return fewer;
}

shmq_status shmq_run_take(shmq_member *m, uint32_t granules, uint32_t kind, uint64_t *offset) {
    SHMQ_ASSERT(m->structure_locked && (kind == SHMQ_GRANULE_RING || kind == SHMQ_GRANULE_SLAB));
    uint32_t first;
    uint64_t free = shmq_granules_free(m), kept = kept_from(m, granules, kind, free);
    if (granules <= m->granule_count && free < granules + kept) {
        return shmq_fail(SHMQ_FULL_MEMORY,
                         "the broker's memory is used up\n%u granules of 64 KiB needed, %llu of %u are free, %llu of "
                         "them kept for processes, consumers and slots\n"
                         "take messages out, drop views of them, or make the broker with more memory",
                         granules, (unsigned long long)free, m->granule_count, (unsigned long long)kept);
    }
    bool ring = kind == SHMQ_GRANULE_RING;
    uint64_t most = shmq_memory_left(m) >> SHMQ_GRANULE_SHIFT;
    uint64_t kept_there = 0;
    bool is_short = is_shm_short(m, granules, kind, &most, &kept_there);
    shmq_status status = take_free(m, granules, ring ? LOWEST : NEXT, ring, most, &first);
    if (status == SHMQ_FULL_MEMORY && is_short) {
        return shmq_no_space(m, (uint64_t)granules << SHMQ_GRANULE_SHIFT, kept_there << SHMQ_GRANULE_SHIFT);
    }
    SHMQ_TRY(status);
    for (uint32_t i = 1; i < granules; i++) {
        mark(m, first + i, SHMQ_GRANULE_INSIDE, 0, 0);
    }
    mark(m, first, kind, 0, granules);
    *offset = granule_offset(m, first);
    return SHMQ_OK;
}

/* The granule of an offset that may be damaged; false: it is. */
static bool granule_of(const shmq_member *m, uint64_t offset, uint64_t unit, uint32_t *index) {
    if (offset < m->data || (offset - m->data) % unit != 0) {
        return false;
    }
    uint64_t at = (offset - m->data) >> SHMQ_GRANULE_SHIFT;
    *index = (uint32_t)at;
    return at < m->granule_count;
}

void shmq_run_give(shmq_member *m, uint64_t offset) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t first;
    if (!granule_of(m, offset, SHMQ_GRANULE_BYTES, &first)) {
        (void)shmq_damage(m, "the offset of memory that is given back makes no sense", offset);
        return;
    }
    uint64_t word = granule(m, first);
    uint32_t kind = shmq_granule_kind(word);
    uint32_t length = shmq_granule_length(word);
    if ((kind != SHMQ_GRANULE_RING && kind != SHMQ_GRANULE_SLAB) || length == 0 || length > m->granule_count - first) {
        (void)shmq_damage(m, "the granule map does not know memory that is given back, at offset", offset);
        return;
    }
    for (uint32_t i = 0; i < length; i++) {
        mark(m, first + i, SHMQ_GRANULE_FREE, 0, 0);
    }
    if (first < m->run_hint) {
        m->run_hint = first;
    }
}

static bool has_free_page(const shmq_member *m, uint32_t index) {
    uint64_t word = granule(m, index);
    return shmq_granule_kind(word) == SHMQ_GRANULE_PAGES && shmq_granule_pages(word) != 0xff;
}

static uint32_t find_page_granule(const shmq_member *m) {
    if (m->page_hint < m->granule_count && has_free_page(m, m->page_hint)) {
        return m->page_hint;
    }
    bool any = shmq_load_relaxed(&m->header->pages_free) != 0;
    for (uint32_t i = m->granule_count; any && i-- != 0;) { /* pages are taken from the end */
        if (has_free_page(m, i)) {
            return i;
        }
    }
    return m->granule_count;
}

shmq_status shmq_page_take(shmq_member *m, uint64_t *offset) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t index = find_page_granule(m);
    uint32_t pages = 0;
    if (index < m->granule_count) {
        pages = shmq_granule_pages(granule(m, index));
    } else {
        SHMQ_TRY(take_free(m, 1, LAST, false, shmq_memory_left(m) >> SHMQ_GRANULE_SHIFT, &index));
    }
    uint32_t page = (uint32_t)__builtin_ctz(~pages);
    uint64_t at = granule_offset(m, index) + ((uint64_t)page << SHMQ_PAGE_SHIFT);
    memset(shmq_at(m, at), 0, SHMQ_PAGE_BYTES);
    mark(m, index, SHMQ_GRANULE_PAGES, pages | 1u << page, 1);
    m->page_hint = index;
    *offset = at;
    return SHMQ_OK;
}

void shmq_page_give(shmq_member *m, uint64_t offset) {
    SHMQ_ASSERT(m->structure_locked);
    uint32_t index;
    if (!granule_of(m, offset, SHMQ_PAGE_BYTES, &index)) {
        (void)shmq_damage(m, "the offset of a page that is given back makes no sense", offset);
        return;
    }
    uint32_t page = (uint32_t)((offset - granule_offset(m, index)) >> SHMQ_PAGE_SHIFT);
    uint32_t pages = shmq_granule_pages(granule(m, index));
    if (shmq_granule_kind(granule(m, index)) != SHMQ_GRANULE_PAGES || (pages & 1u << page) == 0) {
        (void)shmq_damage(m, "the granule map does not know a page that is given back, at offset", offset);
        return;
    }
    pages &= ~(1u << page);
    mark(m, index, pages == 0 ? SHMQ_GRANULE_FREE : SHMQ_GRANULE_PAGES, pages, pages == 0 ? 0 : 1);
    m->page_hint = index;
}

/* Does any process hold the structure byte? The kernel knows it also of a holder that is stopped. */
static bool is_locked(const shmq_member *m) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHMQ_STRUCTURE_BYTE, .l_len = 1};
    return fcntl(m->map_fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK || !shmq_maps_by(m, m->map_fd);
}

/* Has a dead process left the word dirty? The checker sees no lock, then the dirty word, then no lock. One look is not
 * enough: the same process may lock again after the first look, before it raises the turn, and write the word of its
 * last turn. A process that locks after the second look comes after the word was read. One that locked before it and
 * has gone has raised the turn. */
static bool is_left(const shmq_member *m, uint64_t dirty) {
    return !is_locked(m) && shmq_load_seq(&m->header->dirty) == dirty && !is_locked(m);
}

shmq_moment shmq_moment_begin(const shmq_member *m) {
    shmq_moment moment = {.turns = shmq_load_seq(&m->header->turns), .calm = SHMQ_CALM};
    uint64_t dirty = shmq_load_seq(&m->header->dirty);
    if (dirty != 0) {
        moment.holder = (uint32_t)dirty;
        bool left = is_left(m, dirty) && shmq_load_seq(&m->header->turns) == moment.turns;
        moment.calm = left ? SHMQ_LEFT : SHMQ_BUSY;
    }
    return moment;
}

bool shmq_moment_lasts(const shmq_member *m, const shmq_moment *moment) {
    shmq_fence_acquire(); /* SYNC structure.look: what was looked at, before the second look at the turn */
    return moment->calm != SHMQ_BUSY && shmq_load_seq(&m->header->turns) == moment->turns;
}
