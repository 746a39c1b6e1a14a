/* A structure's fault, as a sentence. Checks change nothing, not even the count of damage. */
#ifndef SHMQ_BASE_FAULT_TEXT_H
#define SHMQ_BASE_FAULT_TEXT_H

/* A sentence with figures. Belongs to the thread, until its next one. */
const char *shmq_fault_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Instead of a verdict: there was no private memory to look with. */
extern const char *const shmq_unlooked;

/* How often something that moves is looked at before it is called wrong. */
#define SHMQ_LOOKS 8

#endif
