/* Messages on disk are encrypted: nothing of them can be read there. Rows count only where they were written, and all
 * stays as it is without the key. Shows G8. */
#include <errno.h>

#include "flow_pair.h"

#define MANY 12000
#define LONG_BODY (3u << 20)

/* Bytes that nothing else on disk looks like: a byte and zeros is also a time. */
static const uint8_t one_key[SHMQ_KEY_BYTES] = {0xd2, 0x5b, 0x91, 0xe4, 0x7a, 0x3c, 0xf8, 0x16},
                     other_key[SHMQ_KEY_BYTES] = {2};

static void directory_of(const shmq_queue *queue, char path[300]) {
    snprintf(path, 300, "%s/%u.%u", scratch_spill, queue->index, queue->incarnation);
}

/* Names in order; how many. */
static uint32_t files_of(const shmq_queue *queue, char names[64][17]) {
    char path[300];
    struct dirent **all;
    uint32_t files = 0;
    directory_of(queue, path);
    int count = scandir(path, &all, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strlen(all[i]->d_name) == 16) {
            CHECK(files < 64);
            memcpy(names[files++], all[i]->d_name, 17);
        }
        free(all[i]);
    }
    free(count >= 0 ? all : NULL);
    return files;
}

static unsigned char *read_file(const shmq_queue *queue, const char *name, uint64_t *bytes) {
    char path[300], file[320];
    directory_of(queue, path);
    snprintf(file, sizeof file, "%s/%s", path, name);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    off_t size = lseek(fd, 0, SEEK_END);
    CHECK(fd >= 0 && size > 0);
    unsigned char *all = malloc((size_t)size);
    CHECK(all != NULL && pread(fd, all, (size_t)size, 0) == size);
    close(fd);
    *bytes = (uint64_t)size;
    return all;
}

static void write_file(const shmq_queue *queue, const char *name, const void *bytes, uint64_t count) {
    char path[300], file[320];
    directory_of(queue, path);
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *f = fopen(file, "w");
    CHECK(f != NULL && fwrite(bytes, count, 1, f) == 1 && fclose(f) == 0);
}

static uint32_t count_of(const void *what, size_t length, const unsigned char *in, uint64_t bytes) {
    uint32_t found = 0;
    for (const unsigned char *at = in; (at = memmem(at, bytes - (uint64_t)(at - in), what, length)) != NULL; at++) {
        found++;
    }
    return found;
}

static void put_texts(const char *text, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQUAL(put_bytes(q, text, strlen(text), 0), SHMQ_OK);
    }
}

/* The text is seen where there is no key, so that the test can fail; with a key it is not. */
TEST(nothing_that_was_put_can_be_read_on_disk) {
    const char *text = "the quick brown fox jumps over the lazy dog";
    for (int with_key = 0; with_key < 2; with_key++) {
        scratch_key = with_key != 0 ? one_key : NULL;
        begin();
        put_texts(text, 9000);
        char names[64][17];
        uint32_t files = files_of(q, names), found = 0;
        CHECK(files > 4);
        for (uint32_t i = 0; i < files; i++) {
            uint64_t bytes;
            unsigned char *all = read_file(q, names[i], &bytes);
            found += count_of(text, strlen(text), all, bytes) + count_of("fox", 3, all, bytes) +
                     count_of(one_key, sizeof one_key, all, bytes);
            CHECK(bytes > 16);
            free(all);
        }
        CHECK(with_key ? found <= 1 : found > 1000); /* three bytes may come by chance */
        shmq_delivery d;
        for (int i = 0; i < 9000; i++) {
            d = receive(theirs, shmq_self(theirs));
            CHECK(d.body_len == strlen(text) && memcmp(d.bytes, text, d.body_len) == 0);
            CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
        }
        end();
    }
}

/* Bodies of a file whose rows are equally long, by number. */
static const unsigned char *body_in(const unsigned char *file, uint32_t row, uint64_t body) {
    uint64_t length;
    uint32_t count;
    memcpy(&count, file + 12, sizeof count);
    memcpy(&length, file + 64 + 8, sizeof length);
    return file + 64 + 17 * (uint64_t)count + (row + 1) * (length + SHMQ_TAG_BYTES) - SHMQ_TAG_BYTES - body;
}

/* Equal messages look different in each file, and within one, and no file has another one's salt. */
TEST(no_two_rows_are_encrypted_alike) {
    scratch_key = one_key;
    begin();
    put_texts("always the same", 9000);
    char names[64][17];
    uint8_t salts[64][SHMQ_SALT_BYTES], ends[64][16];
    uint32_t files = files_of(q, names);
    for (uint32_t i = 0; i < files; i++) {
        uint64_t bytes;
        unsigned char *all = read_file(q, names[i], &bytes);
        memcpy(salts[i], all + 16, sizeof salts[i]);
        memcpy(ends[i], body_in(all, 0, 15), 15);
        for (uint32_t row = 1; row < 50; row++) {
            CHECK(memcmp(body_in(all, row - 1, 15), body_in(all, row, 15), 15) != 0);
        }
        free(all);
        for (uint32_t k = 0; k < i; k++) {
            CHECK(memcmp(salts[i], salts[k], sizeof salts[i]) != 0 && memcmp(ends[i], ends[k], 15) != 0);
        }
    }
    end();
}

/* All that is said of a row beside its bytes, and each bit of these. */
TEST(a_row_decrypts_only_as_what_it_was) {
    const uint8_t salt[SHMQ_SALT_BYTES] = {5}, other_salt[SHMQ_SALT_BYTES] = {6};
    const char *text = "what a row has";
    uint64_t length = strlen(text), beside = 77, other_beside = 78;
    shmq_cipher *cipher = scratch_cipher(one_key);
    unsigned char row[64], copy[64];
    shmq_file_cipher *writes = cipher->begin(cipher, salt, "segment/1.2", true);
    CHECK(writes != NULL &&
          cipher->encrypt(writes, 3, &beside, sizeof beside, (const unsigned char *)text, length, row));
    cipher->end(writes);
    for (int way = 0; way < 5; way++) {
        const char *place = way == 1 ? "segment/1.3" : "segment/1.2";
        shmq_file_cipher *reads = cipher->begin(cipher, way == 2 ? other_salt : salt, place, false);
        CHECK(reads != NULL);
        memcpy(copy, row, sizeof row);
        shmq_status status =
            cipher->decrypt(reads, way == 3 ? 4 : 3, way == 4 ? &other_beside : &beside, sizeof beside, copy, length);
        CHECK_EQUAL(status, way == 0 ? SHMQ_OK : SHMQ_CORRUPT);
        CHECK((memcmp(copy, text, length) == 0) == (way == 0));
        for (uint64_t bit = 0; way == 0 && bit < 8 * (length + SHMQ_TAG_BYTES); bit++) {
            memcpy(copy, row, sizeof row);
            copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
            CHECK_EQUAL(cipher->decrypt(reads, 3, &beside, sizeof beside, copy, length), SHMQ_CORRUPT);
        }
        cipher->end(reads);
    }
    cipher->free(cipher);
}

TEST(long_and_empty_messages_come_back) {
    scratch_key = one_key;
    begin();
    unsigned char *body = malloc(LONG_BODY);
    CHECK(body != NULL);
    for (uint32_t i = 0; i < LONG_BODY; i++) {
        body[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    for (uint32_t i = 0; i < 12; i++) {
        CHECK_EQUAL(put_bytes(q, body, i % 3 == 0 ? LONG_BODY : i % 3 == 1 ? 0 : 1, 0), SHMQ_OK);
    }
    put_numbers(q, 0, 9000);
    CHECK(shmq_flow_rows(q) > 1000 && shmq_flow_bytes(q) > LONG_BODY);
    for (uint32_t i = 0; i < 12; i++) {
        shmq_delivery d = receive(theirs, shmq_self(theirs));
        CHECK_EQUAL(d.body_len, i % 3 == 0 ? LONG_BODY : i % 3 == 1 ? 0 : 1);
        CHECK(memcmp(d.bytes, body, d.body_len) == 0);
        CHECK_EQUAL(shmq_settle(theirs, &d), SHMQ_OK);
    }
    get_numbers(theirs, 0, 9000);
    free(body);
    end();
}

static void drop_key(shmq_member *of) {
    of->cipher->free(of->cipher);
    of->cipher = NULL;
}

/* Takes numbers until something else than a message comes. */
static shmq_status take_from(shmq_queue *of, uint64_t *next) {
    uint64_t number;
    shmq_status status;
    while ((status = try_number(of, &number)) == SHMQ_OK) {
        CHECK_EQUAL(number, (*next)++);
    }
    return status;
}

TEST(without_the_key_all_stays_and_the_remedy_is_told) {
    scratch_key = one_key;
    begin();
    put_numbers(q, 0, MANY);
    drop_key(other);
    uint64_t next = 0, put = MANY;
    CHECK_EQUAL(take_from(theirs, &next), SHMQ_DENIED);
    CHECK(strstr(shmq_trail(), "encryption_key") != NULL && strstr(shmq_trail(), scratch_spill) != NULL);
    CHECK(next < MANY);
    shmq_status status;
    while ((status = put_number(theirs, put)) == SHMQ_OK) {
        put++; /* there was room in memory */
    }
    CHECK_EQUAL(status, SHMQ_DENIED);
    CHECK(strstr(shmq_trail(), "encryption_key") != NULL);
    get_numbers(q, next, put - next);
    CHECK_EQUAL(get_number(q), UINT64_MAX);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    end();
}

TEST(without_the_key_rows_can_be_purged) {
    scratch_key = one_key;
    begin();
    put_numbers(q, 0, MANY);
    drop_key(other);
    uint64_t purged;
    CHECK_EQUAL(shmq_purge(theirs, &purged), SHMQ_OK);
    CHECK_EQUAL(purged, MANY);
    put_numbers(q, 0, MANY);
    get_numbers(q, 0, MANY);
    end();
}

/* As after a mistake that open() prevents: files of a key that is not the members'. */
TEST(another_key_is_told_and_nothing_is_lost) {
    scratch_key = one_key;
    begin();
    put_numbers(q, 0, MANY);
    shmq_cipher *right = m->cipher, *wrong = scratch_cipher(other_key);
    CHECK_EQUAL(shmq_flow_encrypted(m, wrong), SHMQ_DENIED);
    CHECK(m->cipher == right);
    m->cipher = wrong;
    uint64_t next = 0;
    CHECK_EQUAL(take_from(q, &next), SHMQ_DENIED);
    m->cipher = right;
    wrong->free(wrong);
    get_numbers(q, next, MANY - next);
    CHECK_EQUAL(shmq_load_seq(&m->header->damage), 0);
    end();
    scratch_key = NULL;
    begin();
    shmq_cipher *unasked = scratch_cipher(one_key);
    CHECK_EQUAL(shmq_flow_encrypted(m, unasked), SHMQ_DENIED);
    unasked->free(unasked);
    end();
}

/* Of numbers below MANY, each at most once and in order; answers how many did not come, all of which were told. */
static uint64_t take_rest(shmq_queue *of) {
    uint64_t last = UINT64_MAX, got = 0, told = 0, number;
    for (shmq_status status; (status = try_number(of, &number)) != SHMQ_EMPTY;) {
        unsigned long long rows, bytes;
        if (status == SHMQ_CORRUPT) {
            CHECK_EQUAL(sscanf(shmq_trail(), "messages on disk are lost\n%llu, of %llu bytes", &rows, &bytes), 2);
            told += rows;
            continue;
        }
        CHECK_EQUAL(status, SHMQ_OK);
        CHECK(number < MANY && (last == UINT64_MAX || number > last));
        last = number;
        got++;
    }
    CHECK_EQUAL(got + told, MANY);
    return told;
}

/* The attacker can write to the directory, and has seen other files of the same key. */
TEST(a_file_counts_only_where_it_was_written) {
    for (int way = 0; way < 3; way++) {
        scratch_key = one_key;
        begin();
        shmq_queue *second = scratch_flowing(m, "second", MEMORY);
        put_numbers(q, 0, MANY);
        put_numbers(second, 1000000, MANY);
        char names[64][17];
        CHECK(files_of(q, names) > 4);
        uint64_t bytes;
        unsigned char *all = read_file(way == 0 ? second : q, names[way == 1 ? 3 : 2], &bytes);
        if (way == 2) { /* two rows of equal length change their places, ciphertext and tag */
            uint32_t count;
            memcpy(&count, all + 12, sizeof count);
            unsigned char *first = all + 64 + 33 * (uint64_t)count, copy[512];
            uint64_t length;
            memcpy(&length, all + 64 + 8, sizeof length);
            length += SHMQ_TAG_BYTES;
            CHECK(count > 10 && length < sizeof copy);
            memcpy(copy, first, length);
            memcpy(first, first + length, length);
            memcpy(first + length, copy, length);
        }
        write_file(q, names[2], all, bytes);
        free(all);
        uint64_t lost = take_rest(q);
        CHECK(way == 2 ? lost == 2 : lost > 0 && lost <= SHMQ_TURN_ENTRIES);
        shmq_queue_unbind(second);
        end();
    }
}

/* Nobody of us has written it. */
TEST(a_plain_file_is_not_believed) {
    char names[64][17];
    uint64_t bytes = 0;
    scratch_key = NULL;
    begin();
    put_numbers(q, 0, MANY);
    CHECK(files_of(q, names) > 4);
    unsigned char *plain = read_file(q, names[2], &bytes);
    end();
    scratch_key = one_key;
    begin();
    put_numbers(q, 0, MANY);
    write_file(q, names[2], plain, bytes);
    free(plain);
    CHECK(take_rest(q) > 0);
    end();
}

int main(void) { return run_tests(); }
