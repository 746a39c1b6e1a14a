/* Every call to the system of a queue that flows to disk, and of who opens its key, fails once: nothing is lost, and what is missing is told. */
#include "upkeep/duty.h"
#include "wake/due.h"
#include "failing_calls.h"

static void leave(shmq_member *m) {
    (void)shmq_sweep_own(m);
    (void)shmq_member_leave(m, true);
    shmq_member_free(m);
}

/* Puts some, takes fewer, looks at some: what was accepted comes once, and in order. */
static void flow_on(shmq_queue *q, uint64_t *put, uint64_t *taken) {
    unsigned char bytes[100] = {0};
    shmq_delivery d;
    for (int i = 0; i < 40; i++) {
        memcpy(bytes, put, sizeof *put);
        *put += put_bytes(q, bytes, sizeof bytes, 0) == SHMQ_OK;
    }
    uint64_t place = *put;
    for (int i = 0; i < 8 && shmq_browse_place(&q->first, &place, &d) == SHMQ_OK; i++) {
        place++;
    }
    (void)shmq_disk_bytes(q);
    (void)shmq_due_at(&q->first.shm->rows_due, 1); /* nothing expires; housekeeping looks all the same */
    (void)shmq_due_at(&q->m->header->due, 1);
    shmq_due_look(q->m);
    for (int i = 0; i < 25; i++) {
        if (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK) {
            CHECK(memcmp(d.bytes, taken, sizeof *taken) == 0);
            CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
            CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
            (*taken)++;
        }
    }
}

/* Without a libcrypto, or with one that lacks something, there is no cipher, and the error says what is missing. */
TEST(test_a_key_is_opened_or_it_is_told_what_is_missing) {
    static const uint8_t key[SHMQ_KEY_BYTES] = {1};
    long n = 0;
    failure = ENOMEM;
    shmq_status status;
    do {
        shmq_cipher *cipher = NULL;
        calls = 0;
        countdown = n++;
        status = shmq_cipher_open(key, &cipher);
        bool failed = countdown < 0 && calls >= n;
        countdown = -1;
        CHECK(status == SHMQ_OK || (status == SHMQ_OS && strlen(shmq_trail()) > 10));
        CHECK(status == SHMQ_OK || failed);
        CHECK((cipher != NULL) == (status == SHMQ_OK));
        if (cipher != NULL) {
            cipher->free(cipher);
        }
    } while (calls >= n);
    CHECK(status == SHMQ_OK && n > 10);
}

TEST(test_a_flow_to_disk_in_which_any_call_fails_loses_nothing) {
    static const uint8_t key[SHMQ_KEY_BYTES] = {1};
    for (int i = 0; i < 2 * FAILURES; i++) { /* plain, then encrypted */
        uint64_t put = 0, taken = 0;
        long n = 0;
        scratch_key = i < FAILURES ? NULL : key;
        scratch_create_flowing();
        scratch_spill_begin();
        shmq_member *m = scratch_attach_flowing();
        shmq_queue *q = scratch_flowing(m, "backlog", 1000);
        do {
            failure = failures[i % FAILURES];
            calls = 0;
            countdown = n++;
            flow_on(q, &put, &taken);
            countdown = -1;
        } while (calls >= n && n < 400);
        CHECK(n > 40);
        while (taken < put) {
            flow_on(q, &put, &taken);
            uint64_t before = put;
            shmq_delivery d;
            while (shmq_offer(q, shmq_self(q), &d) == SHMQ_OK) {
                CHECK(memcmp(d.bytes, &taken, sizeof taken) == 0);
                CHECK_EQUAL(shmq_offer_acquire(q, &d), SHMQ_OK);
                CHECK_EQUAL(shmq_settle(q, &d), SHMQ_OK);
                taken++;
            }
            CHECK_EQUAL(taken, before);
        }
        CHECK_EQUAL(shmq_queue_delete(q), SHMQ_OK);
        shmq_queue_unbind(q);
        leave(m);
        scratch_spill_end();
        scratch_remove();
    }
}

/* One of its functions fails: messages stay where they are, and come when it works. */
TEST(test_a_libcrypto_that_refuses_loses_nothing) {
    static const char *const functions[] = {"EVP_CIPHER_CTX_new", "EVP_CipherInit_ex", "EVP_CipherUpdate",
                                            "EVP_CIPHER_CTX_ctrl", "HMAC"};
    static const uint8_t key[SHMQ_KEY_BYTES] = {1};
    scratch_key = key;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        scratch_create_flowing();
        scratch_spill_begin();
        shmq_member *m = scratch_attach_flowing();
        shmq_queue *q = scratch_flowing(m, "backlog", 1000);
        uint64_t put = 0, taken = 0, number;
        while (put < 3000) {
            CHECK_EQUAL(put_number(q, put++), SHMQ_OK);
        }
        shmq_cipher *works = m->cipher, *fails_now = NULL;
        refused = functions[i];
        shmq_status status = shmq_cipher_open(key, &fails_now);
        refused = NULL;
        CHECK_EQUAL(status, strcmp(functions[i], "HMAC") == 0 ? SHMQ_OS : SHMQ_OK);
        if (status == SHMQ_OK) {
            m->cipher = fails_now;
            while ((status = try_number(q, &number)) == SHMQ_OK) {
                CHECK_EQUAL(number, taken++);
            }
            CHECK_EQUAL(status, SHMQ_OS);
            CHECK(strstr(shmq_trail(), "cannot decrypt") != NULL && taken < put);
            while ((status = put_number(q, put)) == SHMQ_OK) {
                put++;
            }
            CHECK_EQUAL(status, SHMQ_OS);
            m->cipher = works;
            fails_now->free(fails_now);
        }
        for (; taken < put; taken++) {
            CHECK_EQUAL(get_number(q), taken);
        }
        CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
        shmq_queue_unbind(q);
        leave(m);
        scratch_spill_end();
        scratch_remove();
    }
    scratch_key = NULL;
}

int main(void) { return run_tests(); }
