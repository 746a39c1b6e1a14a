/* The files of rows that a process knows of, by their first places, in order. */
#ifndef SHMQ_KNOWN_FILES_H
#define SHMQ_KNOWN_FILES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shmq_known_files {
    uint64_t *firsts;
    uint64_t count, room;
} shmq_known_files;

/* Adds a file by its first key. False: there is no memory for it. */
bool shmq_known_add(shmq_known_files *k, uint64_t first);
void shmq_known_sort(shmq_known_files *k);
/* Takes out the first one, which there is, and answers which it was. */
uint64_t shmq_known_drop_first(shmq_known_files *k);
/* The last one that begins at or below `from`; with `above`, or without such a file, the first one that begins at or above `from`.
 * False: it does not begin below `below`, or there is none. */
bool shmq_known_choose(const shmq_known_files *k, uint64_t from, uint64_t below, bool above, uint64_t *first);

#endif
