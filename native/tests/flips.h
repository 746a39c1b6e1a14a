/* Random damage of a segment: words worth damaging, and the way back. A word that is right elsewhere is damage, too. */
#ifndef SHMQ_TESTS_FLIPS_H
#define SHMQ_TESTS_FLIPS_H

#include <signal.h>
#include <stdlib.h>

#include "scratch_segment.h"

#define REGIONS 64

static struct {
    uint64_t offset, bytes;
} regions[REGIONS];
static uint32_t region_count;
static shmq_member *flipped; /* whose segment it is */
static unsigned char *image;
static uint64_t state = 1, round_now;

static inline uint64_t next(uint64_t below) { return (xorshift(&state) * UINT64_C(0x2545f4914f6cdd1d) >> 16) % below; }

static inline void die_in_round(int signal) {
    char text[96];
    int length = snprintf(text, sizeof text, "signal %d in round %llu\n", signal, (unsigned long long)round_now);
    (void)!write(2, text, (size_t)length);
    scratch_remove();
    _exit(1);
}

static inline void add_region(const void *thing, uint64_t bytes) {
    CHECK(region_count < REGIONS);
    regions[region_count].offset = (uint64_t)((const unsigned char *)thing - flipped->base);
    regions[region_count++].bytes = bytes;
}

static inline uint64_t any_place(void) {
    uint64_t region = next(region_count);
    return regions[region].offset + next(regions[region].bytes / 4) * 4;
}

static inline void damage(void) {
    uint64_t place = any_place(), bits = next(UINT64_MAX);
    uint32_t *word = (uint32_t *)(flipped->base + place);
    switch (next(6)) {
    case 0:
        *word = (uint32_t)bits;
        break;
    case 1:
        *word ^= UINT32_C(1) << (bits & 31);
        break;
    case 2:
        *word = 0;
        break;
    case 3:
        *word = UINT32_MAX;
        break;
    case 4:
        *word += (uint32_t)(bits & 7) - 3;
        break;
    default: /* what is right elsewhere */
        memcpy(word, image + any_place(), 8);
        break;
    }
}

/* Behind this nothing but damage changes the segment until it is restored. */
static inline void keep_image(void) {
    image = malloc(flipped->size);
    CHECK(image != NULL);
    memcpy(image, flipped->base, flipped->size);
    static const int deadly[] = {SIGALRM, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        signal(deadly[i], die_in_round);
    }
}

/* Each page that differs goes back. */
static inline void restore_pages(void) {
    for (uint64_t page = 0; page < flipped->size; page += 4096) {
        if (memcmp(flipped->base + page, image + page, 4096) != 0) {
            memcpy(flipped->base + page, image + page, 4096);
        }
    }
}

/* In each round some words are damaged, then all is called, from a call on that is drawn, and restored and checked. */
static inline void damage_and_use(uint64_t seed, uint64_t rounds, void (*const *calls)(void), uint64_t count,
                                  void (*check)(void)) {
    for (round_now = 0; round_now < rounds; round_now++) {
        state = (seed + round_now) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        alarm(30); /* a hang */
        for (uint64_t i = next(3) + 1; i != 0; i--) {
            damage();
        }
        for (uint64_t i = 0, first = next(count); i < count; i++) {
            calls[(first + i) % count]();
        }
        check();
    }
    alarm(0);
}

#endif
