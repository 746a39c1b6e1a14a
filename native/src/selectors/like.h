/* Patterns of LIKE, ready to be matched.
 *
 *   as bytes: 0 any number of characters (%); 1, n 2: n characters of any kind (_); 2, length 2, text: just this
 *
 * Between two % lies a piece. The leftmost place where a piece fits is as good as any other. So matching never goes
 * back, and takes at most (length of the text) x (length of the pattern) steps. */
#ifndef SHMQ_LIKE_H
#define SHMQ_LIKE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shmq_like shmq_like;

/* NULL: `pattern` makes no sense (*fault), or there is no memory (not *fault). `pattern` must stay where it is. */
shmq_like *shmq_like_made(const unsigned char *pattern, uint32_t bytes, bool *fault);

/* Characters are UTF-8. A byte that begins no character belongs to the one before. */
bool shmq_like_matches(const shmq_like *like, const unsigned char *text, uint32_t bytes);

#endif
