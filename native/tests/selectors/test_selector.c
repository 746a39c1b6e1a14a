/* Selectors: what a few programs answer, and random bytes as programs and as heads, which must do no harm. */
#include "base/atomic.h"
#include "base/headers.h"
#include "selectors/selector.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check.h"

#define ROUNDS 60000
#define OPERATIONS 27

static uint64_t random_state;

static uint64_t next_random(void) { return xorshift(&random_state); }

static uint32_t below(uint32_t limit) { return (uint32_t)(next_random() % limit); }

/* ---- making bytes ---------------------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[140000];
    uint32_t count;
} bytes;

static void add(bytes *b, const void *what, uint32_t count) {
    CHECK(b->count + count <= sizeof(b->at));
    memcpy(b->at + b->count, what, count);
    b->count += count;
}

static void add_byte(bytes *b, uint32_t value) { add(b, &(unsigned char){(unsigned char)value}, 1); }

static void add_length(bytes *b, uint32_t value) {
    add_byte(b, value & 255);
    add_byte(b, value >> 8);
}

static void add_text(bytes *b, uint32_t kind, const void *text, uint32_t count) {
    add_byte(b, kind);
    add_length(b, count);
    add(b, text, count);
}

static void add_instruction(bytes *b, uint32_t operation, uint32_t a, uint32_t second) {
    add_byte(b, operation);
    add_length(b, a);
    add_length(b, second);
}

static void begin_program(bytes *b, uint32_t stack, uint32_t constants, uint32_t instructions) {
    b->count = 0;
    add_byte(b, SHMQ_SELECTOR_VERSION);
    add_byte(b, stack);
    add_length(b, constants);
    add_length(b, instructions);
}

static void begin_headers(bytes *b) {
    b->count = 0;
    add_byte(b, SHMQ_HEADERS_VERSION);
    add_length(b, 0);
}

static void add_header(bytes *b, const char *name) {
    add_byte(b, (uint32_t)strlen(name));
    add(b, name, (uint32_t)strlen(name));
}

static void end_headers(bytes *b) {
    b->at[1] = (unsigned char)(b->count - 3);
    b->at[2] = (unsigned char)((b->count - 3) >> 8);
}

static shmq_selector *loaded(const bytes *program) {
    shmq_selector *s;
    shmq_status status = shmq_selector_load(program->at, program->count, &s);
    if (status != SHMQ_OK) {
        fprintf(stderr, "%s\n", shmq_trail());
    }
    CHECK(status == SHMQ_OK);
    return s;
}

static bool selects(const shmq_selector *s, const bytes *headers) {
    return shmq_selects(s, &(shmq_fields){.headers = headers->at, .headers_len = headers->count, .delivery_count = 1});
}

/* name = 'text' */
static shmq_selector *text_equals(const char *name, const char *text) {
    static bytes program;
    begin_program(&program, 2, 2, 3);
    add_text(&program, SHMQ_HEADER_TEXT, name, (uint32_t)strlen(name));
    add_text(&program, SHMQ_HEADER_TEXT, text, (uint32_t)strlen(text));
    add_instruction(&program, 1, 0, 0);
    add_instruction(&program, 3, 1, 0);
    add_instruction(&program, 4, 0, 0);
    return loaded(&program);
}

/* JMSXGroupID = 'text' */
static shmq_selector *group_equals(const char *text) {
    static bytes program;
    begin_program(&program, 2, 1, 3);
    add_text(&program, SHMQ_HEADER_TEXT, text, (uint32_t)strlen(text));
    add_instruction(&program, 2, SHMQ_FIELD_GROUP, 0);
    add_instruction(&program, 3, 0, 0);
    add_instruction(&program, 4, 0, 0);
    return loaded(&program);
}

/* ---- what they answer ------------------------------------------------------------------------------------------ */

static void headers_are_found(void) {
    static bytes headers;
    shmq_selector *s = text_equals("kind-of-image", "png");
    begin_headers(&headers);
    CHECK(!selects(s, &headers));
    add_header(&headers, "kind-of-imago");
    add_text(&headers, SHMQ_HEADER_TEXT, "png", 3);
    add_header(&headers, "kind");
    add_byte(&headers, SHMQ_HEADER_TRUE);
    end_headers(&headers);
    CHECK(!selects(s, &headers));
    for (int i = 0; i < 100; i++) { /* so many that they do not fit into the small copy */
        add_header(&headers, "something-else");
        add_text(&headers, SHMQ_HEADER_BYTES, "0123456789", 10);
    }
    add_header(&headers, "kind-of-image");
    add_text(&headers, SHMQ_HEADER_TEXT, "png", 3);
    end_headers(&headers);
    CHECK(headers.count > 2500);
    CHECK(selects(s, &headers));
    headers.at[headers.count - 1] = 'x';
    CHECK(!selects(s, &headers));
    headers.at[headers.count - 1] = 'g';
    headers.at[1]--; /* the last header is cut off */
    CHECK(!selects(s, &headers));
    headers.count = 0;
    CHECK(!selects(s, &headers));
    shmq_selector_free(s);
}

static void a_group_is_found_in_the_headers_or_given(void) {
    static bytes headers;
    shmq_selector *s = group_equals("account-17");
    begin_headers(&headers);
    add_header(&headers, "a");
    add_byte(&headers, SHMQ_HEADER_NONE);
    end_headers(&headers);
    CHECK(!selects(s, &headers));
    uint32_t before = headers.count, length;
    add_byte(&headers, SHMQ_OWN_ROUTING_KEY);
    add_length(&headers, 3);
    add(&headers, "key", 3);
    add_byte(&headers, SHMQ_OWN_GROUP);
    add_length(&headers, 10);
    add(&headers, "account-17", 10);
    CHECK(selects(s, &headers));
    CHECK(memcmp(shmq_headers_own(headers.at, headers.count, SHMQ_OWN_ROUTING_KEY, &length), "key", 3) == 0 &&
          length == 3);
    CHECK(shmq_headers_own(headers.at, headers.count, SHMQ_OWN_DEATH, &length) == NULL);
    CHECK(shmq_headers_own(headers.at, headers.count - 1, SHMQ_OWN_GROUP, &length) == NULL);
    CHECK(shmq_headers_own(headers.at, 0, SHMQ_OWN_GROUP, &length) == NULL);
    shmq_fields fields = {.headers = headers.at, .headers_len = before, .group = (const unsigned char *)"account-17-b"};
    fields.group_len = 10;
    CHECK(shmq_selects(s, &fields));
    fields.group_len = 12;
    CHECK(!shmq_selects(s, &fields));
    fields.group_len = SHMQ_GROUP_MAX + 1;
    CHECK(!shmq_selects(s, &fields));
    fields = (shmq_fields){.headers = NULL, .headers_len = 0};
    CHECK(!shmq_selects(s, &fields));
    shmq_selector_free(s);
}

static void what_is_no_program_is_refused(void) {
    static bytes program;
    shmq_selector *s = text_equals("a", "b"), *none;
    shmq_selector_free(s);
    shmq_selector_free(NULL);
    begin_program(&program, 2, 0, 2);
    add_instruction(&program, 2, SHMQ_FIELD_REDELIVERED, 0);
    uint32_t before = program.count;
    const struct {
        uint32_t stack, operation, a, b;
    } wrong[] = {
        {2, 0, 0, 0},  {2, OPERATIONS + 1, 0, 0},
        {2, 1, 0, 0},  {2, 2, SHMQ_FIELDS, 0},
        {2, 3, 0, 0},  {2, 4, 0, 0},
        {2, 15, 0, 0}, {2, 19, 0, 1},
        {2, 21, 0, 0}, {2, 26, 1, 0},
        {0, 23, 0, 0}, {1, 2, 1, 0},
        {2, 2, 1, 0},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        program.count = before;
        program.at[1] = (unsigned char)wrong[i].stack;
        add_instruction(&program, wrong[i].operation, wrong[i].a, wrong[i].b);
        CHECK(shmq_selector_load(program.at, program.count, &none) == SHMQ_CORRUPT && none == NULL);
    }
    program.count = before;
    program.at[1] = 2;
    add_instruction(&program, 23, 0, 0);
    shmq_selector_free(loaded(&program));
    for (uint32_t count = 0; count < program.count; count++) {
        CHECK(shmq_selector_load(program.at, count, &none) == SHMQ_CORRUPT);
    }
    add_byte(&program, 0);
    CHECK(shmq_selector_load(program.at, program.count, &none) == SHMQ_CORRUPT);
    /* A skip into the midst of a comparison: another number of values on each way. */
    begin_program(&program, 2, 0, 4);
    add_instruction(&program, 2, 0, 0);
    add_instruction(&program, 26, 1, 0);
    add_instruction(&program, 2, 0, 0);
    add_instruction(&program, 4, 0, 0);
    CHECK(shmq_selector_load(program.at, program.count, &none) == SHMQ_CORRUPT);
}

/* ---- random bytes ---------------------------------------------------------------------------------------------- */

static void add_random_value(bytes *b, bool for_pattern) {
    static const uint8_t sizes[] = {0, 0, 0, 1, 2, 4, 8, 8};
    unsigned char noise[8];
    uint64_t word = next_random();
    memcpy(noise, &word, 8);
    uint32_t kind = below(10);
    if (for_pattern) {
        static bytes parts;
        bytes *pattern = &parts;
        pattern->count = 0;
        for (uint32_t i = below(6); i != 0; i--) {
            uint32_t part = below(3);
            add_byte(pattern, part);
            if (part == 1) {
                add_length(pattern, below(4));
            } else if (part == 2) {
                uint32_t length = 1 + below(3);
                add_length(pattern, length);
                add(pattern, noise, length);
            }
        }
        add_text(b, SHMQ_HEADER_BYTES, pattern->at, pattern->count);
    } else if (kind >= SHMQ_HEADER_TEXT) {
        add_text(b, kind, noise, below(9));
    } else {
        add_byte(b, kind);
        add(b, noise, sizes[kind]);
    }
}

static void make_random_headers(bytes *b) {
    static const char *const names[] = {"a", "b", "a-longer-name", "a-longer-namf", "\xc3\xa9"};
    begin_headers(b);
    for (uint32_t i = below(8); i != 0; i--) {
        add_header(b, names[below(5)]);
        add_random_value(b, false);
    }
    end_headers(b);
    for (uint32_t i = below(3); i != 0; i--) {
        add_byte(b, below(6));
        add_length(b, 2);
        add(b, "xy", 2);
    }
}

/* Mostly sound: operations that find what they need; with constants 0 to 3 text, 4 to 6 patterns, 7 to 9 anything. */
static void make_random_program(bytes *b) {
    static const char *const names[] = {"a", "b", "a-longer-name", "\xc3\xa9"};
    static const uint8_t takes[] = {0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 2, 2, 0, 0};
    uint32_t depth = 0, most = 1, instructions = 0;
    begin_program(b, 0, 10, 0);
    for (int i = 0; i < 4; i++) {
        add_text(b, SHMQ_HEADER_TEXT, names[i], (uint32_t)strlen(names[i]));
    }
    for (int i = 0; i < 6; i++) {
        add_random_value(b, i < 3);
    }
    for (uint32_t left = 1 + below(40); left != 0 || depth != 1; left -= left != 0) {
        uint32_t operation = left == 0 && depth > 1 ? 24 + below(2) : 1 + below(25);
        if (takes[operation] > depth || (left == 0 && depth != 0 && takes[operation] == 0)) {
            continue;
        }
        uint32_t a = operation == 1                       ? below(4)
                     : operation == 2                     ? below(6)
                     : operation >= 21 && operation <= 22 ? 4 + below(3)
                                                          : below(10);
        if (operation <= 3 && depth != 0 && below(3) == 0) { /* AND and OR as they are made: with a skip */
            add_instruction(b, 26 + below(2), 2, 0);
            add_instruction(b, operation, a, 0);
            add_instruction(b, 24 + below(2), 0, 0);
            instructions += 3;
            most = depth + 1 > most ? depth + 1 : most;
            continue;
        }
        add_instruction(b, operation, a, below(10 - (a > 9 ? 9 : a)));
        instructions++;
        depth = depth - takes[operation] + 1;
        most = depth > most ? depth : most;
    }
    b->at[1] = (unsigned char)most;
    b->at[4] = (unsigned char)instructions;
    b->at[5] = (unsigned char)(instructions >> 8);
}

static void damage(bytes *b) {
    for (uint32_t i = below(4); i != 0 && b->count != 0; i--) {
        b->at[below(b->count)] = (unsigned char)next_random();
    }
    if (below(8) == 0) {
        b->count = below(b->count + 1);
    }
    if (below(16) == 0) {
        b->count = below(200);
        for (uint32_t i = 0; i < b->count; i++) {
            b->at[i] = (unsigned char)(below(4) == 0 ? below(256) : below(12));
        }
    }
}

/* In memory of just this size, so that the sanitizer sees a byte too far. */
static unsigned char *exact_copy(const bytes *b) {
    unsigned char *copy = malloc(b->count + (b->count == 0));
    CHECK(copy != NULL);
    memcpy(copy, b->at, b->count);
    return copy;
}

static void random_bytes_do_no_harm(void) {
    static bytes program, headers;
    uint32_t ran = 0, refused = 0, selected = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        make_random_program(&program);
        bool sound = below(2) == 0;
        if (!sound) {
            damage(&program);
        }
        shmq_selector *s;
        unsigned char *copy = exact_copy(&program);
        shmq_status status = shmq_selector_load(copy, program.count, &s);
        free(copy);
        CHECK(status == SHMQ_OK || status == SHMQ_CORRUPT);
        refused += status != SHMQ_OK;
        for (int i = 0; i < 4 && status == SHMQ_OK; i++) {
            make_random_headers(&headers);
            if (i > 1) {
                damage(&headers);
            }
            unsigned char *at = exact_copy(&headers);
            shmq_fields fields = {.headers = at, .headers_len = headers.count, .message_id = next_random()};
            bool answer = shmq_selects(s, &fields);
            CHECK(answer == shmq_selects(s, &fields));
            selected += answer;
            ran++;
            free(at);
        }
        shmq_selector_free(s);
    }
    printf("programs refused %u, runs %u, selected %u\n", refused, ran, selected);
    CHECK(refused > ROUNDS / 20 && ran > ROUNDS && selected > ROUNDS / 100);
}

/* ---- a head that is written while it is read -------------------------------------------------------------------- */

static bytes shared;
static shmq_a32 over;

static void *scribble(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed | 1;
    while (shmq_load_relaxed(&over) == 0) {
        xorshift(&state);
        ((volatile unsigned char *)shared.at)[state % 64] = (unsigned char)(state >> 32);
    }
    return NULL;
}

static void headers_may_be_written_while_they_are_read(void) {
    pthread_t writer;
    shmq_selector *s = text_equals("a-longer-name", "x"), *group = group_equals("g");
    make_random_headers(&shared);
    shared.count = 64;
    CHECK(pthread_create(&writer, NULL, scribble, (void *)(uintptr_t)next_random()) == 0);
    uint32_t selected = 0;
    for (uint32_t round = 0; round < ROUNDS * 4; round++) {
        selected += selects(s, &shared) + selects(group, &shared);
    }
    shmq_store_relaxed(&over, 1);
    CHECK(pthread_join(writer, NULL) == 0);
    printf("selected %u while it was written\n", selected);
    shmq_selector_free(s);
    shmq_selector_free(group);
}

int main(void) {
    random_state = (uint64_t)time(NULL) * 2654435761u + 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    headers_are_found();
    a_group_is_found_in_the_headers_or_given();
    what_is_no_program_is_refused();
    random_bytes_do_no_harm();
    headers_may_be_written_while_they_are_read();
    return 0;
}
