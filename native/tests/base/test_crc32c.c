/* CRC-32C: known values, and every way to compute it against every other. With an argument, measures them. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/crc32c.h"
#include "check.h"

#define BIG (1u << 20)

static uint64_t random_state;

static uint64_t next_random(void) { return xorshift(&random_state); }

/* Bit by bit, from the definition. */
static uint32_t reference(uint32_t crc, const unsigned char *data, size_t bytes) {
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

static void known_values(shmq_crc32c_function crc32c) {
    unsigned char bytes[48];
    CHECK(crc32c(0, "", 0) == 0);
    CHECK(crc32c(0, "123456789", 9) == 0xe3069283u);
    CHECK(crc32c(0, "a", 1) == 0xc1d04330u);
    /* RFC 3720, appendix B.4 */
    memset(bytes, 0, 32);
    CHECK(crc32c(0, bytes, 32) == 0x8a9136aau);
    memset(bytes, 0xff, 32);
    CHECK(crc32c(0, bytes, 32) == 0x62a8ab43u);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)i;
    }
    CHECK(crc32c(0, bytes, 32) == 0x46dd794eu);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)(31 - i);
    }
    CHECK(crc32c(0, bytes, 32) == 0x113fdb5cu);
}

static void same_as_reference(shmq_crc32c_function crc32c, const unsigned char *data) {
    for (size_t alignment = 0; alignment < 16; alignment++) {
        for (size_t bytes = 0; bytes <= 300; bytes++) {
            CHECK(crc32c(7, data + alignment, bytes) == reference(7, data + alignment, bytes));
        }
    }
    static const size_t edges[] = {767, 768, 769, 1535, 1536, 12287, 12288, 12289, 13056, 24576, 24583, 65536};
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        CHECK(crc32c(1, data + i, edges[i]) == reference(1, data + i, edges[i]));
    }
}

static void same_on_big(const shmq_crc32c_variant *variants, uint32_t count, const unsigned char *data) {
    for (int round = 0; round < 50; round++) {
        size_t from = next_random() % 64, bytes = 1 + next_random() % (BIG - 64), cut = next_random() % bytes;
        uint32_t start = (uint32_t)next_random();
        uint32_t expected = variants[count - 1].function(start, data + from, bytes);
        CHECK(shmq_crc32c(start, data + from, bytes) == expected);
        for (uint32_t v = 0; v < count; v++) {
            CHECK(variants[v].function(start, data + from, bytes) == expected);
            uint32_t first = variants[v].function(start, data + from, cut);
            CHECK(variants[v].function(first, data + from + cut, bytes - cut) == expected);
        }
    }
    CHECK(variants[count - 1].function(0, data, BIG) == reference(0, data, BIG));
}

/* Nothing beside the copy changes. */
static void copies_what_it_sums(shmq_crc32c_copier copier, const unsigned char *data) {
    static const size_t edges[] = {0,   1,   63,   64,   255,  256,  257,   319,  320,
                                   511, 512, 1023, 8191, 8192, 8193, 65536, 70001};
    unsigned char *to = malloc(70001 + 64), *copy = malloc(70001 + 64);
    CHECK(to != NULL && copy != NULL);
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        for (size_t from = 0; from < 3; from++) {
            size_t at = 1 + next_random() % 32;
            memset(to, 0xa5, 70001 + 64);
            memset(copy, 0xa5, 70001 + 64);
            memcpy(copy + at, data + from, edges[i]);
            CHECK(copier(7, data + from, edges[i], to + at) == reference(7, data + from, edges[i]));
            CHECK(memcmp(to, copy, 70001 + 64) == 0);
        }
    }
    free(to);
    free(copy);
}

static void measure(const shmq_crc32c_variant *variant, const unsigned char *data) {
    static const size_t sizes[] = {64, 256, 1024, 4096, 65536, BIG};
    volatile uint32_t keep = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct timespec from, to;
        size_t rounds = ((size_t)256 << 20) / (sizes[i] + 64);
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (size_t n = 0; n < rounds; n++) {
            keep = variant->function(keep, data, sizes[i]);
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        printf("%-24s %8zu bytes %8.1f ns %6.2f GB/s\n", variant->name, sizes[i], ns / (double)rounds,
               (double)(rounds * sizes[i]) / ns);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    random_state = (uint64_t)time(NULL) * 2654435761u + 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    unsigned char *data = malloc(BIG + 64);
    CHECK(data != NULL);
    for (size_t i = 0; i < BIG + 64; i++) {
        data[i] = (unsigned char)next_random();
    }
    shmq_crc32c_variant variants[4];
    uint32_t count = shmq_crc32c_variants(variants);
    CHECK(count >= 1);
    known_values(shmq_crc32c);
    copies_what_it_sums(shmq_crc32c_copy, data);
    for (uint32_t v = 0; v < count; v++) {
        printf("%s\n", variants[v].name);
        known_values(variants[v].function);
        same_as_reference(variants[v].function, data);
        copies_what_it_sums(variants[v].copier, data);
        if (argc > 1) {
            measure(&variants[v], data);
        }
    }
    same_on_big(variants, count, data);
    free(data);
    return 0;
}
