/* After a death: survivors repair, work, and take out everything; then the questions are asked. */
#ifndef SHMQ_KILLSTEP_AFTERMATH_H
#define SHMQ_KILLSTEP_AFTERMATH_H

#include "scenario.h"
#include "verdict.h"

/* Victims and actors have died. */
verdict_rules aftermath_rules(const scenario *what);
/* `where`: JSON for the reports. NULL, or what is wrong. */
const char *aftermath_of_death(stage *s, const scenario *what, const char *where, bool check_sleepers);
/* Are those awake for whom there is work? */
const char *aftermath_of_sleepers(stage *s);
/* While a victim stands still: others put, get and settle within the patience and a little. */
const char *aftermath_of_pause(stage *s, const scenario *what, const char *where);
/* The victim has gone on, returned, and was ended in peace or by a kill: nothing may be lost or double. */
const char *aftermath_of_resumption(stage *s, const scenario *what, const char *where);

#endif
