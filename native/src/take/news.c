/* A consumer of several queues looks only at those of which there is news; see news.h. */
#include "take/news.h"
#include "consumers/sleepers.h"

void shmq_news_begin(shmq_news *news, const shmq_queue_wait *of, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        shmq_directory_shm *directory = of[i].q->m->directory;
        news[i] = (shmq_news){.word = &directory[of[i].q->index].news,
                              .group = &directory[shmq_news_group(of[i].q->index)].group_news,
                              .first = i,
                              .behind = i + 1};
        if (i != 0 && news[i].group == news[i - 1].group) {
            news[i].first = news[i - 1].first;
            news[news[i].first].behind = i + 1;
        }
    }
    shmq_news_forget(news, count);
}

void shmq_news_forget(shmq_news *news, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        news[i].seen = news[i].group_seen = SHMQ_NO_NEWS;
    }
}

/* A look. *final: it found nothing, and a notifier tells of whatever comes. Else it is to be repeated. A claim is in
 * the way, which may be of the dead; or something was left to others, or out of reach on disk. */
static shmq_status look(const shmq_queue_wait *w, bool *final, shmq_delivery *d) {
    bool claimed;
    shmq_status status = shmq_look(w, &claimed, d);
    *final = status == SHMQ_EMPTY && !claimed && d->seen.why == SHMQ_AT_END &&
             shmq_load_seq(&w->q->page->shut_down) == SHMQ_OPEN;
    return status;
}

/* Pair of looks: the consumer sets the bit, then looks at the slots; a notifier changes a slot's word, then looks at the
 * bits. `news` is read first: the notifier that takes the bit raises it behind that. */
static uint64_t ask_for_news(const shmq_queue_wait *w, const shmq_news *n) {
    uint64_t seen = shmq_load_seq(n->word);
    shmq_or_seq(&w->q->page->sleepers[0].browse, SHMQ_NEWS_BIT);
    return seen;
}

static shmq_status look_at(const shmq_queue_wait *w, shmq_news *n, shmq_delivery *d) {
    bool final;
    if (shmq_load_seq(&w->q->page->shut_down) == SHMQ_STOPPED) {
        return SHMQ_EMPTY;
    }
    shmq_status status = look(w, &final, d);
    if (!final) {
        return status; /* a queue in traffic is not asked for news */
    }
    uint64_t seen = ask_for_news(w, n);
    status = look(w, &final, d);
    n->seen = final ? seen : SHMQ_NO_NEWS;
    return status;
}

static bool has_none(const shmq_news *n) { return SHMQ_LIKELY(shmq_load_seq(n->word) == n->seen); }

static uint32_t behind(uint32_t index, uint32_t count) { return index < count ? index : 0; }

/* *begin: how many queues from the first one on come before the first one that has news. */
typedef struct passing {
    const shmq_queue_wait *of;
    shmq_news *news;
    uint32_t begin, from;
} passing;

/* Passes by the queues at `index` to `end` of one group, `passed` behind the first. */
static shmq_status pass_some(passing *p, uint32_t index, uint32_t end, uint32_t passed) {
    shmq_news *group = &p->news[p->news[index].first];
    bool whole = group == &p->news[index] && end == group->behind;
    uint64_t seen = shmq_load_seq(group->group); /* before their words: a notifier raises it behind these */
    if (SHMQ_LIKELY(seen == group->group_seen)) {
        return SHMQ_OK;
    }
    for (; index < end; index++, passed++) {
        if (has_none(&p->news[index])) {
            continue;
        }
        whole = false;
        p->begin = passed < p->begin ? passed : p->begin;
        p->from = index;
        SHMQ_TRY(shmq_queue_usable(p->of[index].q));
        if (shmq_load_relaxed(&p->of[index].q->page->terms) != 0) {
            return SHMQ_EMPTY;
        }
    }
    group->group_seen = whole ? seen : group->group_seen;
    return SHMQ_OK;
}

/* Passes by those that have none, from `first` on. SHMQ_EMPTY: none has; or the whole call decides, for consumers of one of
 * them have ranks. Else as shmq_queue_usable: of a deleted one the consumer is to hear whatever the others have. */
static shmq_status pass_by(passing *p, uint32_t count, uint32_t first) {
    p->begin = count;
    for (uint32_t passed = 0, index = first; passed < count;) {
        uint32_t end = p->news[p->news[index].first].behind, left = count - passed;
        end = end - index > left ? index + left : end;
        SHMQ_TRY(pass_some(p, index, end, passed));
        passed += end - index;
        index = behind(end, count);
    }
    return SHMQ_OK;
}

static shmq_status offer(shmq_queue_wait *of, shmq_news *news, uint32_t count, uint32_t first, uint32_t *from,
                         shmq_delivery *d) {
    passing p = {.of = of, .news = news};
    SHMQ_TRY(shmq_queue_enter(of[0].q)); /* one upkeep serves all */
    shmq_status passed = pass_by(&p, count, first % count);
    *from = p.from;
    SHMQ_TRY(passed);
    for (uint32_t i = p.begin, index = (first + p.begin) % count; i < count; i++, index = behind(index + 1, count)) {
        shmq_status status = has_none(&news[index]) ? SHMQ_EMPTY : look_at(&of[index], &news[index], d);
        if (status != SHMQ_EMPTY) {
            *from = index;
            return status;
        }
    }
    return SHMQ_EMPTY;
}

shmq_status shmq_receive_news(shmq_queue_wait *of, shmq_news *news, uint32_t count, uint32_t first,
                              const shmq_taking *t, uint32_t *from, shmq_delivery *d) {
    shmq_status status;
    do {
        SHMQ_TRY(offer(of, news, count, first, from, d));
        status = shmq_receive_offered(of[*from].q, t, d);
    } while (status == SHMQ_SETTLED);
    return status;
}
