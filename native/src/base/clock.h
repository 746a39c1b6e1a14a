/* The clocks. */
#ifndef SHMQ_BASE_CLOCK_H
#define SHMQ_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t shmq_now_ns(void); /* monotonic */
uint64_t shmq_about_now_ns(void); /* the same to some milliseconds, for a tenth of the price */
uint64_t shmq_wall_ns(void);
uint64_t shmq_boot_ns(void); /* monotonic, time asleep included */

#endif
