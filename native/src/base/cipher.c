/* shmq_cipher by libcrypto. This file declares the functions that it calls: the build needs no header of OpenSSL, and
 * both version 1.1 and version 3 have these functions. */
#include "base/cipher.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GET_TAG 0x10 /* EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG */
#define SET_TAG 0x11
#define PIECE (UINT64_C(1) << 30) /* libcrypto takes lengths as int */
#define LABEL_KEY "shmq rows 1"
#define LABEL_CHECK "shmq key check 1"
#define LABEL_BYTES 16u
#define PLACE_MOST 200u

/* The functions as OpenSSL declares them, with void * for its own structures. */
typedef struct libcrypto {
    void *(*ctx_new)(void);
    void (*ctx_free)(void *ctx);
    const void *(*aes_256_gcm)(void);
    int (*init)(void *ctx, const void *cipher, void *engine, const uint8_t *key, const uint8_t *nonce, int encrypts);
    int (*update)(void *ctx, unsigned char *to, int *written, const unsigned char *from, int bytes);
    int (*final)(void *ctx, unsigned char *to, int *written);
    int (*control)(void *ctx, int what, int argument, void *with);
    const void *(*sha256)(void);
    unsigned char *(*hmac)(const void *digest, const void *key, int key_bytes, const unsigned char *data, size_t bytes,
                           unsigned char *to, unsigned int *written);
    void (*clear_errors)(void);
} libcrypto;

typedef struct opened {
    shmq_cipher calls;
    libcrypto c;
    uint8_t key[SHMQ_KEY_BYTES];
} opened;

struct shmq_file_cipher {
    const libcrypto *c;
    void *ctx;
    bool encrypts;
};

/* dlopen() first finds a libcrypto that the process has loaded already, as Python's hashlib does, before it looks for a
 * file. */
static void *load(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? library : dlopen("libcrypto.so.1.1", RTLD_NOW | RTLD_LOCAL);
}

static shmq_status find_functions(libcrypto *c) {
    const struct {
        const char *name;
        void *to;
    } all[] = {{"EVP_CIPHER_CTX_new", &c->ctx_new},
               {"EVP_CIPHER_CTX_free", &c->ctx_free},
               {"EVP_aes_256_gcm", &c->aes_256_gcm},
               {"EVP_CipherInit_ex", &c->init},
               {"EVP_CipherUpdate", &c->update},
               {"EVP_CipherFinal_ex", &c->final},
               {"EVP_CIPHER_CTX_ctrl", &c->control},
               {"EVP_sha256", &c->sha256},
               {"HMAC", &c->hmac},
               {"ERR_clear_error", &c->clear_errors}};
    void *library = load(); /* never closed: libcrypto cannot be unloaded safely */
    const char *why = library == NULL ? dlerror() : NULL;
    for (size_t i = 0; library != NULL && i < sizeof all / sizeof all[0]; i++) {
        void *function = dlsym(library, all[i].name);
        if (function == NULL) {
            why = all[i].name;
            break;
        }
        memcpy(all[i].to, &function, sizeof function);
    }
    return why == NULL ? SHMQ_OK
                       : shmq_fail(SHMQ_OS,
                                   "encryption needs OpenSSL's libcrypto, and there is none\n%s\n"
                                   "install it (libssl3 or openssl-libs), or encrypt the file system instead",
                                   why);
}

/* HMAC-SHA256 of a label of 16 bytes, the salt and the place. False: libcrypto refuses, or the place is too long. */
static bool derive(const opened *o, const char *label, const void *salt, const char *place, uint8_t to[32]) {
    unsigned char data[LABEL_BYTES + SHMQ_SALT_BYTES + PLACE_MOST] = {0};
    size_t bytes = LABEL_BYTES, more = strlen(place);
    unsigned int written = 0;
    memcpy(data, label, strlen(label));
    if (salt != NULL) {
        memcpy(data + bytes, salt, SHMQ_SALT_BYTES);
        bytes += SHMQ_SALT_BYTES;
    }
    if (more > PLACE_MOST) {
        return false;
    }
    memcpy(data + bytes, place, more);
    bool done = o->c.hmac(o->c.sha256(), o->key, SHMQ_KEY_BYTES, data, bytes + more, to, &written) != NULL;
    return done && written == 32;
}

static void end(shmq_file_cipher *s) {
    if (s != NULL) {
        s->c->ctx_free(s->ctx);
        free(s);
    }
}

static shmq_file_cipher *begin(const shmq_cipher *calls, const uint8_t salt[SHMQ_SALT_BYTES], const char *place,
                               bool encrypts) {
    const opened *o = (const opened *)calls;
    uint8_t key[32];
    shmq_file_cipher *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->c = &o->c;
    s->encrypts = encrypts;
    s->ctx = o->c.ctx_new();
    bool done = s->ctx != NULL && derive(o, LABEL_KEY, salt, place, key) &&
                o->c.init(s->ctx, o->c.aes_256_gcm(), NULL, key, NULL, encrypts) == 1;
    explicit_bzero(key, sizeof key);
    if (!done) {
        o->c.clear_errors();
        end(s);
        errno = EIO;
    }
    return done ? s : NULL;
}

static bool run(shmq_file_cipher *s, const unsigned char *from, uint64_t length, unsigned char *to) {
    int written;
    for (uint64_t done = 0; done < length; done += (uint64_t)written) {
        uint64_t left = length - done;
        int bytes = (int)(left < PIECE ? left : PIECE);
        if (s->c->update(s->ctx, to + done, &written, from + done, bytes) != 1 || written != bytes) {
            return false;
        }
    }
    return true;
}

/* The row's number is its nonce. No nonce is used twice with one key: a file has a key of its own, and is written
 * once. */
static bool start(shmq_file_cipher *s, uint32_t number, const void *beside, size_t beside_bytes) {
    uint8_t nonce[12] = {0};
    int written;
    memcpy(nonce, &number, sizeof number);
    return s->c->init(s->ctx, NULL, NULL, NULL, nonce, s->encrypts) == 1 &&
           s->c->update(s->ctx, NULL, &written, beside, (int)beside_bytes) == 1;
}

static bool encrypt(shmq_file_cipher *s, uint32_t number, const void *beside, size_t beside_bytes,
                    const unsigned char *from, uint64_t length, unsigned char *to) {
    unsigned char none[16];
    int written;
    bool done = start(s, number, beside, beside_bytes) && run(s, from, length, to) &&
                s->c->final(s->ctx, none, &written) == 1 &&
                s->c->control(s->ctx, GET_TAG, SHMQ_TAG_BYTES, to + length) == 1;
    if (!done) {
        s->c->clear_errors();
        errno = EIO;
    }
    return done;
}

static shmq_status decrypt(shmq_file_cipher *s, uint32_t number, const void *beside, size_t beside_bytes,
                           unsigned char *bytes, uint64_t length) {
    unsigned char none[16];
    int written;
    bool ready = start(s, number, beside, beside_bytes) && run(s, bytes, length, bytes) &&
                 s->c->control(s->ctx, SET_TAG, SHMQ_TAG_BYTES, bytes + length) == 1;
    bool done = ready && s->c->final(s->ctx, none, &written) == 1;
    if (!done) {
        s->c->clear_errors();
        memset(bytes, 0xff, length);
        errno = EIO;
    }
    return done ? SHMQ_OK : ready ? SHMQ_CORRUPT : SHMQ_OS;
}

static void forget(shmq_cipher *calls) {
    opened *o = (opened *)calls;
    explicit_bzero(o->key, sizeof o->key);
    free(o);
}

shmq_status shmq_cipher_open(const uint8_t key[SHMQ_KEY_BYTES], shmq_cipher **cipher) {
    uint8_t check[32];
    opened *o = calloc(1, sizeof *o);
    if (o == NULL) {
        return shmq_fail_errno("no memory for encryption");
    }
    o->calls = (shmq_cipher){.begin = begin, .encrypt = encrypt, .decrypt = decrypt, .end = end, .free = forget};
    memcpy(o->key, key, sizeof o->key);
    shmq_status status = find_functions(&o->c);
    if (status == SHMQ_OK && !derive(o, LABEL_CHECK, NULL, "", check)) {
        o->c.clear_errors();
        status = shmq_fail(SHMQ_OS, "libcrypto refuses HMAC-SHA256\n\n"
                                    "install another version of OpenSSL, or encrypt the file system instead");
    }
    if (status != SHMQ_OK) {
        forget(&o->calls);
        return status;
    }
    memcpy(o->calls.check, check, sizeof o->calls.check);
    *cipher = &o->calls;
    return SHMQ_OK;
}
