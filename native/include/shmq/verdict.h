/* What is wrong with a structure, in a sentence. Checks change nothing, not even the count of damage. */
#ifndef SHMQ_VERDICT_H
#define SHMQ_VERDICT_H

/* A sentence with figures. Belongs to the thread, until its next one. */
const char *shmq_verdict(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Instead of a verdict: there was no private memory to look with. */
extern const char *const shmq_unlooked;

/* How often something that moves is looked at before it is called wrong. */
#define SHMQ_LOOKS 8

#endif
