#include "choice.h"

#include <string.h>

#define SELDOM 24u     /* an address that is met so often at most is no loop worth thinning */
#define TURNS 3u       /* of each loop, at its beginning and at its end */

static uint64_t random_next(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool is_own(const trace *t, uint32_t k) {
    return t->total[k] <= SELDOM || t->hits[k] < TURNS || t->hits[k] + TURNS >= t->total[k] || t->changes[k];
}

uint32_t choose_steps(const trace *t, uint32_t budget, uint32_t every, uint64_t seed, uint8_t *chosen) {
    uint32_t count = t->steps + 1, own = 0, taken = 0;
    uint64_t state = seed;
    memset(chosen, 0, count);
    if (every != 0 || budget == 0 || budget >= count) {
        uint32_t stride = every != 0 ? every : 1;
        for (uint32_t k = (uint32_t)(seed % stride); k < count; k += stride) {
            chosen[k] = 1;
            taken += 1;
        }
        return taken;
    }
    for (uint32_t k = 0; k < count; k++) {
        own += is_own(t, k);
    }
    uint32_t others = count - own;
    for (uint32_t k = 0; k < count; k++) {
        /* Own steps are all taken if they fit, and the rest of the budget goes to the others. */
        bool first = is_own(t, k);
        uint64_t of = first ? own : others;
        uint64_t share = first ? (own < budget ? own : budget) : (own < budget ? budget - own : 0);
        if (share >= of || random_next(&state) % of < share) {
            chosen[k] = 1;
            taken += 1;
        }
    }
    return taken;
}
