#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "keys.h"
#include "rows.h"

#define ROWS 64u

static keys known[3];

static keys *known_of(enum frame_kind kind) { return &known[kind == FRAME_DEATH ? 0 : kind == FRAME_QUIET ? 1 : 2]; }

unsigned report_images(enum frame_kind kind) { return known_of(kind)->count; }

static void write_all(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length != 0) {
        ssize_t written = write(STDOUT_FILENO, at, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            stage_unlink();
            _exit(3); /* nobody listens any more */
        }
        at += written;
        length -= (size_t)written;
    }
}

static void write_head(enum frame_kind kind, uint64_t length) {
    uint64_t head[2] = {(uint64_t)kind, length};
    write_all(head, sizeof(head));
}

void report_line(const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    length = length < (int)sizeof(line) ? length : (int)sizeof(line) - 1;
    write_head(FRAME_LINE, (uint64_t)length);
    write_all(line, (size_t)length);
}

/* Of pages in their order those that are the segment's, and not the rows' behind it. */
static uint32_t in_segment(const stage *s, const delta *d) {
    uint32_t count = d->count;
    while (count != 0 && d->pages[count - 1] >= s->segment_size / STAGE_PAGE) {
        count--;
    }
    return count;
}

/* meta length, meta, page count, page numbers, pages */
static void write_pages(enum frame_kind kind, const char *meta, uint32_t count, const uint32_t *pages,
                        const unsigned char *bytes) {
    uint32_t meta_length = (uint32_t)strlen(meta);
    write_head(kind, 8 + meta_length + (uint64_t)count * (4 + STAGE_PAGE));
    write_all(&meta_length, 4);
    write_all(meta, meta_length);
    write_all(&count, 4);
    write_all(pages, (size_t)count * 4);
    write_all(bytes, (size_t)count * STAGE_PAGE);
}

void report_base(const stage *s) {
    delta d = {0};
    char meta[64];
    for (uint32_t page = 0; page < s->segment_size / STAGE_PAGE; page++) {
        const unsigned char *bytes = s->base + (uint64_t)page * STAGE_PAGE;
        bool empty = true;
        for (uint32_t i = 0; i < STAGE_PAGE && empty; i += 8) {
            empty = memcmp(bytes + i, "\0\0\0\0\0\0\0", 8) == 0;
        }
        if (!empty) {
            delta_add(&d, page, bytes);
        }
    }
    snprintf(meta, sizeof(meta), "{\"size\": %llu}", (unsigned long long)s->segment_size);
    write_pages(FRAME_BASE, meta, d.count, d.pages, d.bytes);
    delta_free(&d);
}

void report_swap(const stage *s, const delta *d) {
    write_pages(FRAME_SWAP, "{}", in_segment(s, d), d->pages, d->bytes);
}

static int list_rows(char *text, size_t room, const stage *s, bool dead) {
    uint32_t rows[ROWS], count = stage_rows(s, dead, rows, ROWS);
    int at = snprintf(text, room, "[");
    for (uint32_t i = 0; i < count; i++) {
        at += snprintf(text + at, room - (size_t)at, "%s%u", i != 0 ? ", " : "", rows[i]);
    }
    return at + snprintf(text + at, room - (size_t)at, "]");
}

bool report_image(enum frame_kind kind, const stage *s, const delta *d, const char *where) {
    char meta[2200], dead[512], live[512], rows[512];
    if (!keys_add(known_of(kind), d->key)) {
        return false;
    }
    list_rows(dead, sizeof(dead), s, true);
    list_rows(live, sizeof(live), s, false);
    rows_list(rows, sizeof(rows));
    snprintf(meta, sizeof(meta), "{\"dead\": %s, \"live\": %s, \"rows\": %s, \"where\": %s}", dead, live, rows, where);
    write_pages(kind, meta, in_segment(s, d), d->pages, d->bytes);
    return true;
}

void report_history(const char *where) {
    static char text[BOARD_CALLS * 80 + 4096];
    uint64_t key = 7;
    for (uint32_t i = 0; i < the_board->count; i++) {
        const call *c = &the_board->calls[i];
        uint64_t words[2];
        static_assert(sizeof(call) == sizeof(words), "a mark is two words");
        memcpy(words, c, sizeof(words));
        key = (key ^ words[0]) * UINT64_C(0x9e3779b97f4a7c15);
        key = (key ^ words[1] ^ key >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    }
    if (!keys_add(known_of(FRAME_HISTORY), key)) {
        return;
    }
    int at = snprintf(text, sizeof(text), "{\"where\": %s, \"calls\": [", where);
    for (uint32_t i = 0, told = 0; i < the_board->count; i++) {
        const call *c = &the_board->calls[i];
        if (c->phase == CALL_UNWRITTEN) {
            continue;
        }
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s[%u,%u,%u,%u,%u,%u,%u,%llu]", told++ != 0 ? "," : "",
                       c->kind, c->who, c->phase, c->queue, c->redelivered, c->status, c->deaths,
                       (unsigned long long)c->value);
    }
    at += snprintf(text + at, sizeof(text) - (size_t)at, "]}");
    write_head(FRAME_HISTORY, (uint64_t)at);
    write_all(text, (size_t)at);
}
