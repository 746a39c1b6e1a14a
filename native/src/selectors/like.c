/* Patterns of LIKE. Between two % lies a piece: a row of texts and of single characters of any kind. */
#include "selectors/like.h"
#include "base/headers.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_NUMBER = 0, ANY_CHARACTERS = 1, TEXT = 2 };

typedef struct element {
    const unsigned char *text; /* NULL: characters of any kind */
    uint32_t bytes;            /* of the text */
    uint32_t characters;
} element;

typedef struct piece {
    uint32_t first; /* index of its first element */
    uint32_t elements;
    uint32_t characters;
} piece;

struct shmq_like {
    uint32_t pieces; /* the first piece is bound to the beginning of the text, the last one to its end */
    piece *piece;
    element element[];
};

static bool continues(unsigned char byte) { return (byte & 0xc0u) == 0x80u; }

static uint32_t characters_in(const unsigned char *text, uint32_t bytes) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        count += !continues(text[i]);
    }
    return count;
}

/* Reads the element at `at`. Answers where the next one begins; NULL: it makes no sense. */
static const unsigned char *element_at(const unsigned char *at, const unsigned char *end, uint32_t *kind, element *e) {
    *kind = *at++;
    *e = (element){NULL, 0, 0};
    if (*kind == ANY_NUMBER) {
        return at;
    }
    if (*kind > TEXT || end - at < 2) {
        return NULL;
    }
    uint32_t length = shmq_length_at(at);
    at += 2;
    if (*kind == ANY_CHARACTERS) {
        e->characters = length;
        return at;
    }
    if (length == 0 || (size_t)(end - at) < length) {
        return NULL;
    }
    *e = (element){at, length, characters_in(at, length)};
    return at + length;
}

shmq_like *shmq_like_made(const unsigned char *pattern, uint32_t bytes, bool *fault) {
    const unsigned char *end = pattern + bytes;
    uint32_t elements = 0, pieces = 1, kind;
    element e;
    for (const unsigned char *at = pattern; at != end;) {
        at = element_at(at, end, &kind, &e);
        *fault = at == NULL;
        if (*fault) {
            return NULL;
        }
        elements += kind != ANY_NUMBER;
        pieces += kind == ANY_NUMBER;
    }
    *fault = false;
    size_t before = sizeof(shmq_like) + elements * sizeof(element);
    shmq_like *like = calloc(1, before + pieces * sizeof(piece));
    if (like == NULL) {
        return NULL;
    }
    like->piece = (piece *)((unsigned char *)like + before);
    like->pieces = 1;
    elements = 0;
    for (const unsigned char *at = pattern; at != end;) {
        at = element_at(at, end, &kind, &e);
        if (kind == ANY_NUMBER) {
            like->piece[like->pieces++].first = elements;
            continue;
        }
        piece *last = &like->piece[like->pieces - 1];
        last->elements++;
        last->characters += e.characters;
        like->element[elements++] = e;
    }
    return like;
}

static const unsigned char *forward(const unsigned char *at, const unsigned char *end, uint32_t characters) {
    for (; characters != 0; characters--) {
        if (at == end) {
            return NULL;
        }
        for (at++; at != end && continues(*at); at++) {
        }
    }
    return at;
}

static const unsigned char *backward(const unsigned char *begin, const unsigned char *at, uint32_t characters) {
    for (; characters != 0; characters--) {
        if (at == begin) {
            return NULL;
        }
        for (at--; at != begin && continues(*at); at--) {
        }
    }
    return at;
}

/* Where the piece ends if it begins at `at`; NULL: it does not fit there. */
static const unsigned char *fits(const shmq_like *like, const piece *p, const unsigned char *at,
                                 const unsigned char *end) {
    const element *e = like->element + p->first;
    for (uint32_t i = 0; i < p->elements && at != NULL; i++, e++) {
        if (e->text == NULL) {
            at = forward(at, end, e->characters);
        } else {
            bool same = (size_t)(end - at) >= e->bytes && memcmp(at, e->text, e->bytes) == 0;
            at = same ? at + e->bytes : NULL;
        }
    }
    return at;
}

/* Where the piece ends at the leftmost place where it fits; NULL: it fits nowhere. */
static const unsigned char *search(const shmq_like *like, const piece *p, const unsigned char *at,
                                   const unsigned char *end) {
    const element *e = like->element + p->first;
    if (p->elements == 0) {
        return at;
    }
    if (p->elements == 1 && e->text != NULL) {
        at = memmem(at, (size_t)(end - at), e->text, e->bytes);
        return at == NULL ? NULL : at + e->bytes;
    }
    while (at != NULL) {
        if (e->text != NULL && (at = memchr(at, e->text[0], (size_t)(end - at))) == NULL) {
            return NULL;
        }
        const unsigned char *after = fits(like, p, at, end);
        if (after != NULL) {
            return after;
        }
        at = forward(at, end, 1);
    }
    return NULL;
}

bool shmq_like_matches(const shmq_like *like, const unsigned char *text, uint32_t bytes) {
    const unsigned char *end = text + bytes, *at = fits(like, &like->piece[0], text, end);
    if (like->pieces == 1) {
        return at == end;
    }
    const piece *last = &like->piece[like->pieces - 1];
    const unsigned char *tail = at == NULL ? NULL : backward(at, end, last->characters);
    if (tail == NULL || fits(like, last, tail, end) != end) {
        return false;
    }
    for (const piece *p = like->piece + 1; p != last && at != NULL; p++) {
        at = search(like, p, at, tail);
    }
    return at != NULL;
}
