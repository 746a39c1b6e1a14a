/* The ways in which this machine can compute CRC-32C, for tests that compare them. */
#ifndef SHMQ_CRC32C_H
#define SHMQ_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*shmq_crc32c_function)(uint32_t crc, const void *data, size_t bytes);

typedef uint32_t (*shmq_crc32c_copier)(uint32_t crc, const void *data, size_t bytes, void *to);

typedef struct shmq_crc32c_variant {
    const char *name;
    shmq_crc32c_function function;
    shmq_crc32c_copier copier; /* computes it of the copy that it makes */
} shmq_crc32c_variant;

/* The variants that run on this processor, the fastest first; the last one is plain C. Returns how many there are. */
uint32_t shmq_crc32c_variants(shmq_crc32c_variant variants[4]);

uint32_t shmq_crc32c(uint32_t crc, const void *data, size_t bytes);
/* The same, and copies the data to `to`. It is the checksum of the copy, whoever changes the data meanwhile. */
uint32_t shmq_crc32c_copy(uint32_t crc, const void *data, size_t bytes, void *to);

#endif
