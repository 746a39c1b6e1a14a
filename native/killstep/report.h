/* The driver's report: frames on standard output, each a head and its bytes. Results are lines of JSON; images go out
 * as the pages that differ from the scenario's prepared one, each distinct one once, for a judge outside. */
#ifndef SHMQ_KILLSTEP_REPORT_H
#define SHMQ_KILLSTEP_REPORT_H

#include "stage.h"

enum frame_kind {
    FRAME_LINE = 'L',
    FRAME_BASE = 'B', /* the prepared image: all of its pages */
    FRAME_SWAP = 'S', /* pages that take their places in the prepared image from now on */
    FRAME_DEATH = 'D', /* somebody may be dead or stopped amid something */
    FRAME_QUIET = 'Q', /* nobody is */
    FRAME_HISTORY = 'H' /* calls, from the first to the last */
};

void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_base(const stage *s);
void report_swap(const stage *s, const delta *d);
/* `where`: JSON that says which death it was. False: this image was told before. */
bool report_image(enum frame_kind kind, const stage *s, const delta *d, const char *where);
void report_history(const char *where);
unsigned report_images(enum frame_kind kind); /* distinct ones */

#endif
