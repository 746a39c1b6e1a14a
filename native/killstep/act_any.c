#include "consumers/sleepers.h"
#include "queue/consumer_row.h"
#include "take/news.h"
#include "wake/wake_word.h"
#include "act_any.h"

#include "stage.h"

static const unsigned queues[] = {QUEUE_LIMITED, QUEUE_A};
#define COUNT 2u

void act_receive_any(act *a, uint64_t until_ns) {
    shmq_queue_wait of[COUNT] = {0};
    uint32_t from = 0;
    shmq_delivery d;
    for (uint32_t i = 0; i < COUNT; i++) {
        of[i].q = a->q[queues[i]];
        of[i].owner = shmq_self(of[i].q);
    }
    const shmq_taking t = {.until_ns = until_ns};
    act_begin(a, CALL_RECEIVE, QUEUE_A, 0);
    shmq_status status = shmq_receive_any(of, COUNT, 0, &t, &from, &d);
    SHMQ_ASSERT(status != SHMQ_OK || queues[from] == QUEUE_A);
    act_received(a, QUEUE_A, status, &d);
}

void act_ask_for_news(act *a) { (void)shmq_or_seq(&a->q[QUEUE_A]->page->sleepers[0].browse, SHMQ_NEWS_BIT); }

void act_receive_news(act *a) {
    shmq_queue_wait of[COUNT] = {0};
    shmq_news news[COUNT];
    uint32_t from = 0;
    shmq_delivery d;
    for (uint32_t i = 0; i < COUNT; i++) {
        of[i].q = a->q[queues[i]];
        of[i].owner = shmq_self(of[i].q);
    }
    shmq_news_begin(news, of, COUNT);
    const shmq_taking t = {0};
    act_begin(a, CALL_RECEIVE, QUEUE_A, 0);
    shmq_status status = shmq_receive_news(of, news, COUNT, 0, &t, &from, &d);
    SHMQ_ASSERT(status != SHMQ_OK || queues[from] == QUEUE_A);
    act_received(a, QUEUE_A, status, &d);
}

shmq_a32 *act_announce_any(act *a) {
    shmq_a32 *word;
    uint32_t rows[COUNT];
    (void)shmq_wake_word_take(a->m, &word);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (shmq_row_open(a->q[queues[i]], SHMQ_GETTER, &rows[i]) != SHMQ_OK) {
            die("row");
        }
        shmq_row_share(a->m, shmq_row_at(a->q[queues[i]], rows[i]), word);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)shmq_announce(a->q[queues[i]], rows[i], false);
    }
    return word;
}
