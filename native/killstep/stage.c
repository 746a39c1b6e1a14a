#include "groups/row_close.h"
#include "layout/run.h"
#include "lifecycle/declare.h"
#include "look/census.h"
#include "segment/structure.h"
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rows.h"
#include "virtual.h"

#define FULL_LOOK 16u     /* each so many runs all pages are compared */
#define NEAR_ROWS 32u     /* of the tables; what lies beyond is compared at a full look only */

void die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "killstep: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    stage_unlink();
    _exit(2);
}

static shmq_queue *declare(shmq_member *m, const char *name, uint64_t maxsize) {
    shmq_declaration d = {.given = maxsize != 0 ? 1u << SHMQ_SET_MAXSIZE : 0, .maxsize = maxsize, .create = true};
    shmq_queue *q = NULL;
    int differs = -1;
    shmq_status status = shmq_queue_declare(m, name, (uint32_t)strlen(name), &d, &q, &differs);
    if (status != SHMQ_OK) {
        die("declare %s: %s %s", name, shmq_status_name(status), shmq_trail());
    }
    return q;
}

static pid_t maker;
static char made_path[128];

void stage_unlink(void) {
    if (maker == gettid()) {
        unlink(made_path);
    }
}

void *shared_memory(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        die("no memory");
    }
    return at;
}

void *own_memory(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || madvise(at, bytes, MADV_DONTFORK) != 0) {
        die("no memory");
    }
    return at;
}

void own_memory_end(void *at, uint64_t bytes) { munmap(at, bytes); }

void stage_open(stage *s, beginning b) {
    memset(s, 0, sizeof(*s));
    s->begins = b;
    if (the_board == NULL) {
        the_board = shared_memory(sizeof(board));
    }
    memset(the_board, 0, sizeof(*the_board));
    the_board->first_position = beginning_position(b);
    static unsigned made;
    snprintf(s->name, sizeof(s->name), "shmq-killstep-%010ld-%u", (long)gettid(), made++);
    snprintf(the_board->segment, sizeof(the_board->segment), "%s", s->name);
    snprintf(made_path, sizeof(made_path), "/dev/shm/%s", s->name);
    maker = gettid();
    virtual_clock_set(VIRTUAL_START);
    shmq_segment_plan plan = {.name = s->name,
                              .memory = STAGE_MEMORY,
                              .room = STAGE_MEMORY,
                              .patience_ns = PATIENCE_NS,
                              .mode = 0600,
                              .path = "/nowhere",
                              .uuid = {1, 2, 3}};
    shmq_member *m = NULL;
    shmq_status status = shmq_segment_create(&plan);
    status = status == SHMQ_OK ? shmq_member_attach(s->name, NULL, &m) : status;
    if (status != SHMQ_OK) {
        die("segment: %s %s", shmq_status_name(status), shmq_trail());
    }
    rows_open();
    s->segment_size = m->size;
    s->size = m->size + ROWS_BYTES;
    s->survivor = (act){.m = m, .who = WHO_BUILDER};
    m->memory = STAGE_MEMORY / 2; /* the ring of a queue without a limit is a share of it; here it shall be small */
    s->survivor.q[QUEUE_A] = declare(m, "a", 0);
    m->memory = STAGE_MEMORY;
    s->survivor.q[QUEUE_LIMITED] = declare(m, "limited", 4);
    if (s->survivor.q[QUEUE_A]->first.mask != 1023) {
        die("the ring has %llu slots", (unsigned long long)s->survivor.q[QUEUE_A]->first.mask + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        beginning_apply(b, s->survivor.q[i]);
    }
    for (unsigned i = 0; i < 2; i++) { /* rows to sleep on, so that the survivor needs no lock for it later */
        uint32_t row;
        if (shmq_row_borrow(s->survivor.q[i], &row) != SHMQ_OK) {
            die("row");
        }
        shmq_row_return(s->survivor.q[i], row);
    }
    s->base = own_memory(s->size);
    s->scratch = (delta){.room = (uint32_t)(s->size / STAGE_PAGE),
                         .pages = own_memory(s->size / STAGE_PAGE * sizeof(uint32_t)),
                         .bytes = own_memory(s->size)};
    s->reserved = calloc(s->size / STAGE_PAGE, 1);
    s->hot = calloc(s->size / STAGE_PAGE, 1);
    s->page_keys = calloc(s->size / STAGE_PAGE, sizeof(*s->page_keys));
    s->base_key = 1;
    if (s->reserved == NULL || s->hot == NULL || s->page_keys == NULL) {
        die("no memory");
    }
}

unsigned char *stage_page(const stage *s, uint32_t page) {
    uint64_t at = (uint64_t)page * STAGE_PAGE;
    return at < s->segment_size ? s->survivor.m->base + at : rows_bytes() + (at - s->segment_size);
}

static void mark_reserved(const stage *s, uint8_t *reserved) {
    const shmq_member *m = s->survivor.m;
    uint64_t slabs = (uint64_t)(m->slabs - m->base);
    memset(reserved, 1, slabs / STAGE_PAGE);
    memset(reserved + s->segment_size / STAGE_PAGE, m->backing_of != NULL, ROWS_BYTES / STAGE_PAGE);
    for (uint32_t i = 0; i < m->granule_count; i++) {
        uint64_t word = shmq_load_relaxed(&m->granules[i]);
        if ((word & SHMQ_GRANULE_HEADERS) != 0) {
            reserved[slabs / STAGE_PAGE + i] = 1;
        }
        uint64_t at = m->data + ((uint64_t)i << SHMQ_GRANULE_SHIFT);
        memset(reserved + at / STAGE_PAGE, 1, shmq_granule_reserved(word) / STAGE_PAGE);
    }
}

/* The survivor's books of what it has in hand of groups: kept, or as they were kept. */
static void each_book(stage *s, bool keep) {
    unsigned at = 0;
    for (const shmq_queue *q = s->survivor.m->handles; q != NULL; q = q->next) {
        if (q->book == NULL) {
            continue;
        }
        if (at == STAGE_BOOKS) {
            die("too many queues with groups");
        }
        stage_book *copy = &s->book_copies[at++];
        shmq_subscription *takers = &q->book->takers;
        static_assert(sizeof(copy->nothing_in) == sizeof(takers->nothing_in), "copied as bytes");
        if (keep) {
            memcpy(copy->tallies, q->book->tallies, sizeof(copy->tallies));
            memcpy(copy->cursors, takers->cursors, sizeof(copy->cursors));
            memcpy(copy->searches, takers->searches, sizeof(copy->searches));
            memcpy(copy->nothing_in, takers->nothing_in, sizeof(copy->nothing_in));
        } else {
            memcpy(q->book->tallies, copy->tallies, sizeof(copy->tallies));
            memcpy(takers->cursors, copy->cursors, sizeof(copy->cursors));
            memcpy(takers->searches, copy->searches, sizeof(copy->searches));
            memcpy(takers->nothing_in, copy->nothing_in, sizeof(copy->nothing_in));
        }
    }
}

static void keep_private_state(stage *s) {
    unsigned at = 0, level = 0;
    s->survivor_copy = s->survivor;
    s->member_copy = *s->survivor.m;
    each_book(s, true);
    act_bodies_keep();
    for (shmq_queue *q = s->survivor.m->handles; q != NULL; q = q->next) {
        if (at == STAGE_HANDLES) {
            die("too many queue handles");
        }
        s->handle_copies[at++] = *q;
        for (uint32_t i = 0; i + 1 < q->rings; i++) {
            if (level == STAGE_LEVELS) {
                die("too many levels");
            }
            s->level_copies[level++] = q->lower[i];
        }
    }
}

static void restore_private_state(stage *s) {
    unsigned at = 0, level = 0;
    shmq_member *m = s->survivor.m;
    if (m->handles != s->member_copy.handles) {
        die("the survivor has kept a queue handle");
    }
    *m = s->member_copy;
    s->survivor = s->survivor_copy;
    each_book(s, false);
    act_bodies_restore();
    for (shmq_queue *q = m->handles; q != NULL; q = q->next) {
        *q = s->handle_copies[at++];
        for (uint32_t i = 0; i + 1 < q->rings; i++) {
            q->lower[i] = s->level_copies[level++];
        }
    }
}

/* The survivor counts before each run: what it knows then, each change is to take away. */
static void count_all(const stage *s) {
    for (shmq_queue *q = s->survivor.m->handles; q != NULL; q = q->next) {
        for (uint32_t depth = 0; depth < q->rings; depth++) {
            shmq_census c = {.first_position = UINT64_MAX};
            shmq_known_reset(shmq_level(q, depth));
            shmq_ring_known(shmq_level(q, depth), &c);
        }
    }
}

bool stage_counts_agree(const stage *s) {
    for (shmq_queue *q = s->survivor.m->handles; q != NULL; q = q->next) {
        for (uint32_t depth = 0; depth < q->rings; depth++) {
            shmq_census known = {.first_position = UINT64_MAX}, all = known;
            shmq_ring *r = shmq_level(q, depth);
            shmq_ring_known(r, &known);
            for (uint64_t i = 0; i < shmq_stretches_of(shmq_slot_count(r)); i++) {
                shmq_stretch_count(r, i, &all);
            }
            if (known.ready != all.ready || known.unsettled != all.unsettled || known.delayed != all.delayed ||
                known.bytes != all.bytes) {
                return false;
            }
        }
    }
    return true;
}

void stage_ready(stage *s) {
    count_all(s);
    mark_reserved(s, s->reserved);
    for (uint32_t page = 0; page < s->size / STAGE_PAGE; page++) {
        if (s->reserved[page]) {
            memcpy(s->base + (uint64_t)page * STAGE_PAGE, stage_page(s, page), STAGE_PAGE);
        }
    }
    s->origin = own_memory(s->size);
    for (uint32_t page = 0; page < s->size / STAGE_PAGE; page++) {
        if (s->reserved[page]) {
            memcpy(s->origin + (uint64_t)page * STAGE_PAGE, s->base + (uint64_t)page * STAGE_PAGE, STAGE_PAGE);
        }
    }
    s->survivor.who = WHO_SURVIVOR;
    s->base_calls = the_board->count;
    keep_private_state(s);
}

/* Pages that have come to memory only since are zero in the prepared image, as the kernel gives them. */
static bool page_differs(const stage *s, uint32_t page) {
    return memcmp(stage_page(s, page), s->base + (uint64_t)page * STAGE_PAGE, STAGE_PAGE) != 0;
}

static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return a ^ a >> 29;
}

static uint64_t page_key(uint32_t page, const unsigned char *bytes) {
    uint64_t words[STAGE_PAGE / 8], key = page + 1;
    memcpy(words, bytes, STAGE_PAGE);
    uint64_t lanes[4] = {key, key + 1, key + 2, key + 3}; /* of which none waits for another */
    for (uint32_t i = 0; i < STAGE_PAGE / 8; i += 4) {
        for (uint32_t lane = 0; lane < 4; lane++) {
            lanes[lane] = mix(lanes[lane], words[i + lane]);
        }
    }
    return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

void delta_add(delta *d, uint32_t page, const unsigned char *bytes) {
    if (d->count == d->room) {
        d->room = d->room != 0 ? d->room * 2 : 16;
        d->pages = realloc(d->pages, d->room * sizeof(*d->pages));
        d->bytes = realloc(d->bytes, (size_t)d->room * STAGE_PAGE);
        if (d->pages == NULL || d->bytes == NULL) {
            die("no memory");
        }
    }
    d->pages[d->count] = page;
    memcpy(d->bytes + (size_t)d->count * STAGE_PAGE, bytes, STAGE_PAGE);
    d->count += 1;
}

/* The far ends of the tables of processes and queues, where nobody has any business. */
static bool is_far(const stage *s, uint32_t page) {
    const shmq_member *m = s->survivor.m;
    uint64_t at = (uint64_t)page * STAGE_PAGE;
    uint64_t rows = (uint64_t)((unsigned char *)m->rows - m->base) + NEAR_ROWS * sizeof(shmq_process_shm);
    uint64_t directory = (uint64_t)((unsigned char *)m->directory - m->base);
    return (at >= rows && at < directory) || (at >= directory + NEAR_ROWS * sizeof(shmq_directory_shm) &&
                                              at < (uint64_t)((unsigned char *)m->granules - m->base));
}

enum look { LOOK_HOT, LOOK_NEAR, LOOK_FULL };

/* Pages that have ever differed are always looked at. Only the image that is there says which memory is laid out, and
 * the one that takes its place may have more. */
static void each_changed_page(stage *s, enum look look, void (*visit)(stage *, uint32_t)) {
    static uint8_t *now;
    uint32_t pages = (uint32_t)(s->size / STAGE_PAGE);
    if (look != LOOK_HOT) {
        now = now != NULL ? now : calloc(pages, 1);
        if (now == NULL) {
            die("no memory");
        }
        memset(now, 0, pages);
        mark_reserved(s, now);
    }
    for (uint32_t page = 0; page < pages; page++) {
        bool near = look != LOOK_HOT && (now[page] || s->reserved[page]) && (look == LOOK_FULL || !is_far(s, page));
        if ((near || s->hot[page]) && page_differs(s, page)) {
            s->hot[page] = 1;
            visit(s, page);
        }
    }
}

static enum look next_look(const stage *s) { return s->runs % FULL_LOOK == 0 ? LOOK_FULL : LOOK_NEAR; }

static uint64_t base_page_key(stage *s, uint32_t page) {
    if (s->page_keys[page] == 0) {
        s->page_keys[page] = page_key(page, s->base + (uint64_t)page * STAGE_PAGE);
    }
    return s->page_keys[page];
}

/* A sum over the pages, so that the key is the image's, whatever image it is compared with. */
static void add_to_key(stage *s, uint32_t page) {
    s->scratch.key += page_key(page, stage_page(s, page)) - base_page_key(s, page);
}

static void add_to_scratch(stage *s, uint32_t page) {
    delta_add(&s->scratch, page, stage_page(s, page));
    add_to_key(s, page);
}

const delta *stage_delta(stage *s) {
    s->scratch.count = 0;
    s->scratch.key = s->base_key;
    each_changed_page(s, next_look(s), add_to_scratch);
    return &s->scratch;
}

uint64_t stage_hot_key(stage *s) {
    s->scratch.key = s->base_key;
    each_changed_page(s, LOOK_HOT, add_to_key);
    return s->scratch.key;
}

static void put_back(stage *s, uint32_t page) {
    memcpy(stage_page(s, page), s->base + (uint64_t)page * STAGE_PAGE, STAGE_PAGE);
}

void stage_restore(stage *s) {
    each_changed_page(s, next_look(s), put_back);
    s->runs += 1;
    restore_private_state(s);
    uint32_t calls = the_board->count < BOARD_CALLS ? the_board->count : BOARD_CALLS;
    if (calls > s->base_calls) {
        memset(&the_board->calls[s->base_calls], 0, (calls - s->base_calls) * sizeof(call));
    }
    the_board->count = s->base_calls;
    the_board->finished = 0;
    virtual_clock_set(VIRTUAL_START + UINT64_C(10000000000));
    stage_mortals_revive(s);
    for (uint32_t i = 0; i < s->actor_count; i++) {
        if (s->actors[i].kind == ACTOR_SLEEPER) {
            stage_sleeper_lay_down(s, i);
        }
    }
    count_all(s);
}

void stage_swap(stage *s, delta *d) {
    unsigned char keep[STAGE_PAGE];
    uint64_t key = s->base_key;
    s->base_key = d->key;
    d->key = key;
    for (uint32_t i = 0; i < d->count; i++) {
        unsigned char *base = s->base + (uint64_t)d->pages[i] * STAGE_PAGE;
        unsigned char *mine = d->bytes + (size_t)i * STAGE_PAGE;
        memcpy(keep, base, STAGE_PAGE);
        memcpy(base, mine, STAGE_PAGE);
        memcpy(mine, keep, STAGE_PAGE);
        s->hot[d->pages[i]] = 1;
        s->page_keys[d->pages[i]] = 0;
    }
}

void delta_free(delta *d) {
    free(d->pages);
    free(d->bytes);
    *d = (delta){0};
}

uint32_t stage_rows(const stage *s, bool dead, uint32_t *rows, uint32_t room) {
    const shmq_member *m = s->survivor.m;
    uint32_t count = 0, high = shmq_load_seq(&m->header->process_high);
    for (uint32_t row = 0; row < high && row < SHMQ_PROCESS_ROWS && count < room; row++) {
        if (shmq_row_state(shmq_load_seq(&m->rows[row].word)) == SHMQ_ROW_FREE) {
            continue;
        }
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = row, .l_len = 1};
        bool held = row == m->row || (fcntl(m->map_fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
        if (held != dead) {
            rows[count++] = row;
        }
    }
    return count;
}

bool stage_structure_is_locked(const stage *s) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHMQ_STRUCTURE_BYTE, .l_len = 1};
    return fcntl(s->survivor.m->map_fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
