/* CRC-32C (Castagnoli, reflected polynomial 0x82f63b78). It can be chained: shmq_crc32c(shmq_crc32c(0, a), b) is the
 * checksum of a followed by b.
 *
 * The processor's instruction takes 8 bytes a cycle, but its result comes three cycles later. So long data is split
 * into three streams that are computed side by side. The result of a stream is then moved past the bytes that follow
 * it: multiplied by x^(8 n) modulo the polynomial. Where the processor multiplies 64 bytes at once, the data itself is
 * moved so. */
#include "base/crc32c.h"
#include "base/atomic.h"
#include "base/status.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78)
#define LONG_STREAM 4096u
#define SHORT_STREAM 256u
#define PIECE 8192u

/* Piece by piece, so that each is read from the nearest cache the second time. */
static uint32_t copy_then_sum(uint32_t crc, const void *data, size_t bytes, void *to) {
    for (size_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < PIECE ? bytes - done : PIECE;
        unsigned char *copy = (unsigned char *)to + done;
        memcpy(copy, (const unsigned char *)data + done, piece);
        crc = shmq_crc32c(crc, copy, piece);
    }
    return crc;
}

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
        table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int i = 1; i < 8; i++) {
            table[i][byte] = (table[i - 1][byte] >> 8) ^ table[0][table[i - 1][byte] & 0xff];
        }
    }
}

static inline uint64_t load64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint32_t crc_table(uint32_t crc, const void *data, size_t bytes) {
    const unsigned char *at = data;
    pthread_once(&table_once, make_table);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t v = load64(at) ^ crc;
        crc = table[7][v & 0xff] ^ table[6][(v >> 8) & 0xff] ^ table[5][(v >> 16) & 0xff] ^ table[4][(v >> 24) & 0xff] ^
              table[3][(v >> 32) & 0xff] ^ table[2][(v >> 40) & 0xff] ^ table[1][(v >> 48) & 0xff] ^ table[0][v >> 56];
    }
    for (; bytes > 0; bytes--, at++) {
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET_SSE42 __attribute__((target("sse4.2")))
#define TARGET_CLMUL __attribute__((target("sse4.2,pclmul")))

TARGET_SSE42 static inline uint32_t crc_single(uint32_t crc, const unsigned char *at, size_t bytes) {
    uint64_t wide = crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        wide = _mm_crc32_u64(wide, load64(at));
    }
    crc = (uint32_t)wide;
    if ((bytes & 4) != 0) {
        uint32_t word;
        memcpy(&word, at, sizeof(word));
        crc = _mm_crc32_u32(crc, word);
        at += 4;
    }
    for (bytes &= 3; bytes > 0; bytes--, at++) {
        crc = _mm_crc32_u8(crc, *at);
    }
    return crc;
}

TARGET_SSE42 static uint32_t crc_sse42(uint32_t crc, const void *data, size_t bytes) {
    return ~crc_single(~crc, data, bytes);
}

/* Three streams of `stream` bytes. `twice` and `once` are x^(16 stream - 33) and x^(8 stream - 33) modulo the
 * polynomial. The exponents are 33 lower, since the carry-less product stands one bit low in its 64 bits, and the crc
 * instruction multiplies by x^32. */
TARGET_CLMUL static inline uint32_t crc_three(uint32_t crc, const unsigned char *at, size_t stream, uint32_t twice,
                                              uint32_t once) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < stream; i += 8) {
        a = _mm_crc32_u64(a, load64(at + i));
        b = _mm_crc32_u64(b, load64(at + stream + i));
        c = _mm_crc32_u64(c, load64(at + 2 * stream + i));
    }
    __m128i high = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi32_si128((int)twice), 0);
    __m128i middle = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b), _mm_cvtsi32_si128((int)once), 0);
    uint64_t moved = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(high, middle));
    return (uint32_t)(_mm_crc32_u64(0, moved) ^ c);
}

TARGET_CLMUL static uint32_t crc_sse42_clmul(uint32_t crc, const void *data, size_t bytes) {
    const unsigned char *at = data;
    crc = ~crc;
    for (; bytes >= 3 * LONG_STREAM; bytes -= 3 * LONG_STREAM, at += 3 * LONG_STREAM) {
        crc = crc_three(crc, at, LONG_STREAM, UINT32_C(0x54a86326), UINT32_C(0x82f89c77));
    }
    for (; bytes >= 3 * SHORT_STREAM; bytes -= 3 * SHORT_STREAM, at += 3 * SHORT_STREAM) {
        crc = crc_three(crc, at, SHORT_STREAM, UINT32_C(0xdd7e3b0c), UINT32_C(0xb9e02b86));
    }
    return ~crc_single(crc, at, bytes);
}

#define TARGET_WIDE __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,avx512dq,vpclmulqdq")))
#define WIDE_BYTES 256u

/* Each 16 bytes of `value` multiplied by x^n, added to `next`, which follow n bits later. `by` has x^(n - 33) above and
 * x^(n + 31) below, modulo the polynomial: what comes first in memory is the higher half. */
TARGET_WIDE static inline __m512i fold(__m512i value, __m512i by, __m512i next) {
    __m512i first = _mm512_clmulepi64_epi128(value, by, 0x00), second = _mm512_clmulepi64_epi128(value, by, 0x11);
    return _mm512_ternarylogic_epi64(first, second, next, 0x96);
}

TARGET_WIDE static inline __m128i fold_one(__m128i value, __m128i by, __m128i next) {
    __m128i first = _mm_clmulepi64_si128(value, by, 0x00), second = _mm_clmulepi64_si128(value, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

/* 64 bytes, which are copied under way. */
TARGET_WIDE static inline __m512i load(const unsigned char *at, unsigned char *to) {
    __m512i value = _mm512_loadu_si512(at);
    if (to != NULL) {
        _mm512_storeu_si512(to, value);
    }
    return value;
}

/* By carry-less multiplications of 64 bytes at once, four side by side: a quarter of the time of three streams. Short
 * data, and the end of long data, is for the crc instruction. `to`: a copy goes there; it costs little beside the
 * multiplications, which go on while stores wait for memory. NULL: none. */
TARGET_WIDE SHMQ_INLINE uint32_t wide(uint32_t crc, const unsigned char *at, size_t bytes, unsigned char *to) {
#define NEXT(n) load(at + (n), to != NULL ? to + (n) : NULL)
#define MOVE(n) (at += (n), to = to != NULL ? to + (n) : NULL, bytes -= (n))
    crc = ~crc;
    if (bytes >= WIDE_BYTES) {
        const __m512i far = _mm512_broadcast_i32x4(_mm_set_epi64x(0xb9e02b86, 0xdcb17aa4)),
                      near = _mm512_broadcast_i32x4(_mm_set_epi64x(0x9e4addf8, 0x740eef02));
        __m512i a =
            _mm512_xor_si512(NEXT(0), _mm512_inserti32x4(_mm512_setzero_si512(), _mm_cvtsi32_si128((int)crc), 0));
        __m512i b = NEXT(64), c = NEXT(128), d = NEXT(192);
        for (MOVE(WIDE_BYTES); bytes >= WIDE_BYTES; MOVE(WIDE_BYTES)) {
            a = fold(a, far, NEXT(0));
            b = fold(b, far, NEXT(64));
            c = fold(c, far, NEXT(128));
            d = fold(d, far, NEXT(192));
        }
        a = fold(fold(fold(a, near, b), near, c), near, d);
        for (; bytes >= 64; MOVE(64)) {
            a = fold(a, near, NEXT(0));
        }
        const __m128i one = _mm_set_epi64x(0x493c7d27, 0xf20c0dfe);
        __m128i last = fold_one(_mm512_extracti32x4_epi32(a, 0), one, _mm512_extracti32x4_epi32(a, 1));
        last = fold_one(last, one, _mm512_extracti32x4_epi32(a, 2));
        last = fold_one(last, one, _mm512_extracti32x4_epi32(a, 3));
        uint64_t high = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
        crc = (uint32_t)_mm_crc32_u64(high, (uint64_t)_mm_extract_epi64(last, 1));
    }
    if (to != NULL) {
        memcpy(to, at, bytes);
    }
    return ~crc_single(crc, at, bytes);
#undef NEXT
#undef MOVE
}

TARGET_WIDE static uint32_t crc_wide(uint32_t crc, const void *data, size_t bytes) {
    return wide(crc, data, bytes, NULL);
}

TARGET_WIDE static uint32_t copy_wide(uint32_t crc, const void *data, size_t bytes, void *to) {
    return wide(crc, data, bytes, to);
}

static uint32_t add_fast_variants(shmq_crc32c_variant *variants) {
    uint32_t count = 0;
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq")) {
        variants[count++] = (shmq_crc32c_variant){"avx512, vpclmulqdq", crc_wide, copy_wide};
    }
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        variants[count++] = (shmq_crc32c_variant){"sse4.2, three streams", crc_sse42_clmul, copy_then_sum};
    }
    if (__builtin_cpu_supports("sse4.2")) {
        variants[count++] = (shmq_crc32c_variant){"sse4.2", crc_sse42, copy_then_sum};
    }
    return count;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

/* Written by hand, without arm_acle.h: compilers differ in whether its functions exist without -march. */
static inline uint32_t arm_crc64(uint32_t crc, uint64_t value) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(value));
    return crc;
}
static inline uint32_t arm_crc8(uint32_t crc, unsigned char value) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)value));
    return crc;
}

/* a * b modulo the polynomial. These 32 steps run once in 12 KiB: that costs less than a check whether the processor
 * has PMULL. */
static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        product ^= (a & bit) != 0 ? b : 0;
        b = (b >> 1) ^ ((b & 1) != 0 ? POLYNOMIAL : 0);
    }
    return product;
}

static uint32_t crc_arm(uint32_t crc, const void *data, size_t bytes) {
    const unsigned char *at = data;
    crc = ~crc;
    for (; bytes >= 3 * LONG_STREAM; bytes -= 3 * LONG_STREAM, at += 3 * LONG_STREAM) {
        uint32_t b = 0, c = 0;
        for (size_t i = 0; i < LONG_STREAM; i += 8) {
            crc = arm_crc64(crc, load64(at + i));
            b = arm_crc64(b, load64(at + LONG_STREAM + i));
            c = arm_crc64(c, load64(at + 2 * LONG_STREAM + i));
        }
        /* x^(16 n) and x^(8 n) for n = LONG_STREAM */
        crc = multiply(crc, UINT32_C(0x28461564)) ^ multiply(b, UINT32_C(0x35d73a62)) ^ c;
    }
    for (; bytes >= 8; bytes -= 8, at += 8) {
        crc = arm_crc64(crc, load64(at));
    }
    for (; bytes > 0; bytes--, at++) {
        crc = arm_crc8(crc, *at);
    }
    return ~crc;
}

static uint32_t add_fast_variants(shmq_crc32c_variant *variants) {
    if ((getauxval(AT_HWCAP) & HWCAP_CRC32) == 0) {
        return 0;
    }
    variants[0] = (shmq_crc32c_variant){"crc32c instructions", crc_arm, copy_then_sum};
    return 1;
}

#else

static uint32_t add_fast_variants(shmq_crc32c_variant *variants) {
    (void)variants;
    return 0;
}

#endif

uint32_t shmq_crc32c_variants(shmq_crc32c_variant variants[4]) {
    uint32_t count = add_fast_variants(variants);
    variants[count] = (shmq_crc32c_variant){"table", crc_table, copy_then_sum};
    return count + 1;
}

static uint32_t crc_choose(uint32_t crc, const void *data, size_t bytes);
static uint32_t copy_choose(uint32_t crc, const void *data, size_t bytes, void *to);

/* The best variant for this processor, chosen at the first call. Threads that make the first call together choose the
 * same one. */
static _Atomic(shmq_crc32c_function) chosen = crc_choose;
static _Atomic(shmq_crc32c_copier) copier = copy_choose;

static uint32_t crc_choose(uint32_t crc, const void *data, size_t bytes) {
    shmq_crc32c_variant variants[4];
    shmq_crc32c_variants(variants);
    shmq_store_relaxed(&chosen, variants[0].function);
    return variants[0].function(crc, data, bytes);
}

uint32_t shmq_crc32c(uint32_t crc, const void *data, size_t bytes) {
    return shmq_load_relaxed(&chosen)(crc, data, bytes);
}

static uint32_t copy_choose(uint32_t crc, const void *data, size_t bytes, void *to) {
    shmq_crc32c_variant variants[4];
    shmq_crc32c_variants(variants);
    shmq_store_relaxed(&copier, variants[0].copier);
    return variants[0].copier(crc, data, bytes, to);
}

uint32_t shmq_crc32c_copy(uint32_t crc, const void *data, size_t bytes, void *to) {
    return shmq_load_relaxed(&copier)(crc, data, bytes, to);
}
