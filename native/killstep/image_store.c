#include "image_store.h"

#include <string.h>

#define ROOM (UINT64_C(1) << 32) /* bytes; there is memory for those that are used */
#define LINE 64u
#define LINES (STAGE_PAGE / LINE)

typedef struct stored_line {
    uint64_t number; /* in the segment */
    unsigned char bytes[LINE];
} stored_line;

static unsigned char *store;
static uint64_t used;

static void *at(uint64_t place) { return store + place; }

bool image_store(stage *s, uint32_t base_calls, stored_image *to) {
    store = store != NULL ? store : own_memory(ROOM);
    uint32_t pages = (uint32_t)(s->size / STAGE_PAGE), calls = the_board->count - base_calls;
    if (ROOM - used < s->size * 2 + calls * sizeof(call)) {
        return false;
    }
    *to = (stored_image){.place = used, .key = stage_hot_key(s), .calls = calls};
    stored_line *lines = at(used);
    for (uint32_t page = 0; page < pages; page++) {
        for (uint32_t i = 0; s->hot[page] && i < LINES; i++) {
            uint64_t number = (uint64_t)page * LINES + i;
            const unsigned char *now = stage_page(s, page) + i * LINE;
            if (memcmp(now, s->origin + number * LINE, LINE) != 0) {
                lines[to->lines].number = number;
                memcpy(lines[to->lines++].bytes, now, LINE);
            }
        }
    }
    used += to->lines * sizeof(stored_line);
    memcpy(at(used), &the_board->calls[base_calls], calls * sizeof(call));
    used += calls * sizeof(call);
    return true;
}

void image_fetch(const stage *s, const stored_image *from, delta *to) {
    const stored_line *lines = at(from->place);
    *to = (delta){.key = from->key};
    for (uint32_t i = 0; i < from->lines; i++) {
        uint32_t page = (uint32_t)(lines[i].number / LINES);
        if (to->count == 0 || to->pages[to->count - 1] != page) {
            delta_add(to, page, s->origin + (uint64_t)page * STAGE_PAGE);
        }
        uint64_t in_page = lines[i].number % LINES * LINE;
        memcpy(to->bytes + (uint64_t)(to->count - 1) * STAGE_PAGE + in_page, lines[i].bytes, LINE);
    }
}

const call *image_calls(const stored_image *from) { return at(from->place + from->lines * sizeof(stored_line)); }
