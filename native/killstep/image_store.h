/* Images that wait until somebody goes on from them: of each the lines in which it differs from the scenario's first
 * prepared image, and its history. In memory that a victim does not inherit: some ten thousand of them would make each
 * fork slow. */
#ifndef SHMQ_KILLSTEP_IMAGE_STORE_H
#define SHMQ_KILLSTEP_IMAGE_STORE_H

#include "stage.h"

typedef struct stored_image {
    uint64_t place, key; /* key: as of a delta */
    uint32_t lines, calls;
} stored_image;

/* Stores the stage and the board as they are now, of the history only the marks behind the first `base_calls`. False:
 * there is no room for more. */
bool image_store(stage *s, uint32_t base_calls, stored_image *to);
/* Against the first prepared image; the caller frees it. */
void image_fetch(const stage *s, const stored_image *from, delta *to);
const call *image_calls(const stored_image *from);

#endif
