/* weak [--seeds N] [--first SEED] [--trace] [--scenario NAME | --litmus | --faults [NAME] | --list] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weak.h"

const weak_scenario *const weak_scenarios[] = {
    &weak_directory, &weak_publish, &weak_receive, &weak_release, &weak_sleep, &weak_peek,    &weak_full,
    &weak_tombstone, &weak_hole,    &weak_blocks,  &weak_browse,  &weak_count, &weak_steal,   &weak_recount,
    &weak_waiters,   &weak_sweep,   &weak_rows,    &weak_look,    &weak_moved, &weak_due,     &weak_select,
    &weak_levels,    &weak_move,    &weak_ranks,   &weak_any,     &weak_join,  &weak_closing, &weak_memory,
    &weak_news,      &weak_choosy,  NULL};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_scenarios(const char *only, uint64_t first, uint64_t runs) {
    int failed = 0, found = 0;
    for (int i = 0; weak_scenarios[i] != NULL; i++) {
        const weak_scenario *s = weak_scenarios[i];
        if (only != NULL && strcmp(only, s->name) != 0) {
            continue;
        }
        found++;
        s->set_up();
        double start = seconds();
        weak_result result = weak_run(s, first, runs);
        if (result.reason != NULL) {
            printf("!! %s, seed %llu: %s\n", s->name, (unsigned long long)result.failed_seed, result.reason);
            failed++;
        } else {
            printf("%-10s %llu runs, %llu steps, %.1f s\n", s->name, (unsigned long long)result.runs,
                   (unsigned long long)result.events, seconds() - start);
        }
        fflush(stdout);
    }
    if (found == 0) {
        fprintf(stderr, "no scenario is called %s; --list names them\n", only);
        return 2;
    }
    return failed != 0;
}

int main(int argc, char **argv) {
    const char *scenario = NULL;
    uint64_t seeds = 1000, first = 1;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--litmus") == 0) {
            return weak_litmus(seeds) != 0;
        } else if (strcmp(argv[i], "--faults") == 0) {
            return weak_faults(seeds, value) != 0;
        } else if (strcmp(argv[i], "--trace") == 0) {
            weak_tracing = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            for (int s = 0; weak_scenarios[s] != NULL; s++) {
                printf("%-10s %s\n", weak_scenarios[s]->name, weak_scenarios[s]->what);
            }
            return 0;
        } else if (value != NULL && strcmp(argv[i], "--scenario") == 0) {
            scenario = argv[++i];
        } else if (value != NULL && strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[++i], NULL, 10);
        } else if (value != NULL && strcmp(argv[i], "--first") == 0) {
            first = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(
                stderr,
                "weak [--seeds N] [--first SEED] [--trace] [--scenario NAME | --litmus | --faults [NAME] | --list]\n");
            return 2;
        }
    }
    return run_scenarios(scenario, first, seeds);
}
