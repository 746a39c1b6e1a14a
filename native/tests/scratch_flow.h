/* Queues that flow, into files of a directory of this test. */
#ifndef SHMQ_TESTS_SCRATCH_FLOW_H
#define SHMQ_TESTS_SCRATCH_FLOW_H

#include <dirent.h>
#include <sys/stat.h>

#include "base/cipher.h"
#include "check/check.h"
#include "flow/flow.h"
#include "scratch_queue.h"

static char scratch_broker[32], scratch_spill[64]; /* as a broker's directory, and its part for one segment */

static inline void scratch_spill_begin(void) {
    strcpy(scratch_broker, "/tmp/shmq-flow-XXXXXX");
    CHECK(mkdtemp(scratch_broker) != NULL);
    snprintf(scratch_spill, sizeof scratch_spill, "%s/disk/segment", scratch_broker);
}

/* Of all directories of queues; answers how many files there were. */
static inline uint32_t scratch_spill_files(bool remove) {
    uint32_t files = 0;
    DIR *all = opendir(scratch_spill);
    for (struct dirent *e; all != NULL && (e = readdir(all)) != NULL;) {
        char path[400];
        if (e->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", scratch_spill, e->d_name);
        DIR *one = opendir(path);
        for (struct dirent *f; one != NULL && (f = readdir(one)) != NULL;) {
            files += f->d_name[0] != '.';
            if (remove) {
                (void)unlinkat(dirfd(one), f->d_name, 0);
            }
        }
        if (one != NULL) {
            closedir(one);
        }
        if (remove) {
            rmdir(path);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
    return files;
}

static inline void scratch_spill_end(void) {
    char disk[64];
    (void)scratch_spill_files(true);
    (void)rmdir(scratch_spill);
    snprintf(disk, sizeof disk, "%s/disk", scratch_broker);
    (void)rmdir(disk);
    CHECK(rmdir(scratch_broker) == 0);
}

/* A queue that may have so many bytes in memory. */
static inline shmq_queue *scratch_flowing(shmq_member *m, const char *name, uint64_t max_memory) {
    shmq_declaration d = {
        .given = (1u << SHMQ_SET_MAX_MEMORY) | (1u << SHMQ_SET_MAX_DEATHS), .max_memory = max_memory, .create = true};
    return scratch_declare(m, name, d, 0);
}

static inline void scratch_judged(const shmq_finding *j, bool at_rest) {
    if (j->verdict == SHMQ_DAMAGED || (at_rest && j->verdict != SHMQ_SOUND)) {
        fprintf(stderr, "ring %u, slot %lld: %s, %s\n", j->depth, (long long)j->where, j->fault, j->why);
        abort();
    }
}

/* As shmq check looks, whoever is at work: nothing is damaged. At rest all is surely sound. */
static inline void scratch_examine_queue(uint32_t index, bool at_rest) {
    shmq_member *eye;
    shmq_queue view;
    shmq_finding finding;
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
    if (shmq_queue_look(eye, index, &view) == NULL) {
        shmq_queue_check(&view, &finding);
        scratch_judged(&finding, at_rest);
    } else {
        CHECK(!at_rest); /* nobody has made it yet */
    }
    shmq_observer_close(eye);
}

static inline void scratch_examine_parts(bool at_rest) {
    shmq_member *eye;
    shmq_finding finding;
    CHECK_EQUAL(shmq_observer_open(scratch_name, NULL, &eye), SHMQ_OK);
    for (int part = 0; part < SHMQ_PARTS; part++) {
        shmq_part_check(eye, part, &finding);
        scratch_judged(&finding, at_rest);
    }
    shmq_observer_close(eye);
}

static const uint8_t *scratch_key; /* what goes to disk is encrypted with it; NULL: it is not */

static inline shmq_cipher *scratch_cipher(const uint8_t *key) {
    shmq_cipher *cipher = NULL;
    CHECK_EQUAL(shmq_cipher_open(key, &cipher), SHMQ_OK);
    return cipher;
}

/* A segment whose members have scratch_key. */
static inline void scratch_create_flowing(void) {
    shmq_segment_plan plan = scratch_plan(false);
    if (scratch_key != NULL) {
        shmq_cipher *cipher = scratch_cipher(scratch_key);
        memcpy(plan.key_check, cipher->check, sizeof plan.key_check);
        cipher->free(cipher);
    }
    CHECK_EQUAL(shmq_segment_create(&plan), SHMQ_OK);
}

static inline shmq_member *scratch_attach_flowing(void) {
    shmq_member *m = scratch_attach();
    if (scratch_key != NULL) {
        CHECK_EQUAL(shmq_flow_encrypted(m, scratch_cipher(scratch_key)), SHMQ_OK);
    }
    CHECK_EQUAL(shmq_flow_into(m, scratch_spill), SHMQ_OK);
    return m;
}

/* The mover's lock of this queue, held by another process. */
static inline void hold_mover_lock(const shmq_member *by, const shmq_queue *q, short how) {
    struct flock lock = {
        .l_type = how, .l_whence = SEEK_SET, .l_start = (off_t)(UINT64_C(1) << 41) + q->index, .l_len = 1};
    CHECK(fcntl(by->lock_fd, F_OFD_SETLK, &lock) == 0);
}

#endif
