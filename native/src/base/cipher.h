/* Encryption of rows on their way to disk: AES-256-GCM and HMAC-SHA256 of libcrypto, which is loaded when a key is given. See
 * docs/decisions/0041-rows-are-encrypted-by-libcrypto.md.
 *
 * The key itself encrypts nothing. Each file has a key of its own, HMAC(key, label, salt, where the file belongs), with
 * 32 random bytes as salt, and numbers its rows. So no key meets a nonce twice, whatever was killed, forked, or
 * restored from a copy. */
#ifndef SHMQ_BASE_CIPHER_H
#define SHMQ_BASE_CIPHER_H

#include <stddef.h>

#include "base/status.h"

#define SHMQ_KEY_BYTES 32u
#define SHMQ_CHECK_BYTES 16u /* by which a key is known, and cannot be found: a part of HMAC(key, another label) */
#define SHMQ_SALT_BYTES 32u
#define SHMQ_TAG_BYTES 16u /* by which a row is longer on disk */

/* Of one file, of one thread. */
typedef struct shmq_file_cipher shmq_file_cipher;

/* Of one process and broker. Behind pointers, so that only those programs load libcrypto that make one. */
typedef struct shmq_cipher {
    uint8_t check[SHMQ_CHECK_BYTES];
    /* `place`: where the file belongs. NULL: errno says why. */
    shmq_file_cipher *(*begin)(const struct shmq_cipher *c, const uint8_t salt[SHMQ_SALT_BYTES], const char *place,
                               bool encrypts);
    /* `length` bytes and a tag, of the row with this number in its file; `beside` is authenticated with it. */
    bool (*encrypt)(shmq_file_cipher *s, uint32_t number, const void *beside, size_t beside_bytes,
                    const unsigned char *from, uint64_t length, unsigned char *to);
    /* In place. SHMQ_CORRUPT: it was not encrypted so, and nothing of it is left. SHMQ_OS: libcrypto refuses; errno says why. */
    shmq_status (*decrypt)(shmq_file_cipher *s, uint32_t number, const void *beside, size_t beside_bytes,
                           unsigned char *bytes, uint64_t length);
    void (*end)(shmq_file_cipher *s);
    void (*free)(struct shmq_cipher *c);
} shmq_cipher;

/* SHMQ_OS: there is no libcrypto. */
shmq_status shmq_cipher_open(const uint8_t key[SHMQ_KEY_BYTES], shmq_cipher **cipher);

#endif
