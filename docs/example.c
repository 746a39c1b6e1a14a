/* A queue of two processes in C. A worker dies with a message in hand, and
 * another one gets it. docs/hacking.md says how to build it;
 * native/CMakeLists.txt has it among the C tests. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmq.h"

#define SECOND UINT64_C(1000000000)

static char name[64];

static void must(shmq_status status, const char *what) {
    if (status != SHMQ_OK) {
        fprintf(stderr, "%s: %s %s\n", what, shmq_status_name(status), shmq_trail());
        exit(1);
    }
}

static shmq_queue *open_jobs(shmq_member **member) {
    shmq_declaration declaration = {.create = true};
    shmq_queue *jobs;
    int differs;
    must(shmq_member_attach(name, NULL, member), "attach");
    must(shmq_queue_declare(*member, "jobs", 4, &declaration, &jobs, &differs), "declare");
    return jobs;
}

static void put(shmq_queue *q, const char *text) {
    struct iovec piece = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    shmq_outgoing message = {.pieces = &piece, .piece_count = 1, .body_len = piece.iov_len, .priority = 4};
    must(shmq_put(q, &message, shmq_now_ns() + SECOND), "put");
}

/* The caller is lent the next message, which comes back when this process dies.
 */
static void receive(shmq_queue *q, shmq_delivery *message, unsigned char copy[SHMQ_COPY_BYTES]) {
    shmq_taking taking = {.owner = shmq_self(q), .until_ns = shmq_now_ns() + 10 * SECOND, .copy = copy};
    must(shmq_receive(q, &taking, message), "receive");
    printf("%s: %.*s, %u deaths before\n", copy == NULL ? "worker" : "parent", (int)message->body_len,
           (const char *)message->bytes, message->deaths);
    fflush(stdout);
}

int main(void) {
    snprintf(name, sizeof(name), "shmq-example-%ld", (long)getpid());
    shmq_segment_plan plan = {
        .name = name, .memory = 16 << 20, .patience_ns = SECOND, .mode = 0600, .anonymous = true, .path = ""};
    must(shmq_segment_create(&plan), "create");

    shmq_member *member;
    shmq_queue *jobs = open_jobs(&member);
    put(jobs, "print order 7");

    shmq_delivery message;
    unsigned char copy[SHMQ_COPY_BYTES];
    pid_t worker = fork();
    if (worker == 0) {
        shmq_member *own;
        receive(open_jobs(&own), &message, NULL);
        raise(SIGKILL);
    }
    waitpid(worker, NULL, 0);

    receive(jobs, &message, copy);
    must(shmq_settle(jobs, &message), "settle");
    shmq_queue_unbind(jobs);
    must(shmq_member_leave(member, true), "leave"); /* the last member takes the anonymous segment along */
    shmq_member_free(member);
    return 0;
}
