/* The names of statuses, and the trail: the text of this thread's last failure, with its figures. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *const names[SHMQ_STATUS_COUNT] = {
    [SHMQ_OK] = "OK",
    [SHMQ_EMPTY] = "EMPTY",
    [SHMQ_FULL_COUNT] = "FULL_COUNT",
    [SHMQ_FULL_RING] = "FULL_RING",
    [SHMQ_FULL_BYTES] = "FULL_BYTES",
    [SHMQ_FULL_RESIDENT] = "FULL_RESIDENT",
    [SHMQ_FULL_DISK] = "FULL_DISK",
    [SHMQ_FULL_MEMORY] = "FULL_MEMORY",
    [SHMQ_SHUT_DOWN] = "SHUT_DOWN",
    [SHMQ_TIMEOUT] = "TIMEOUT",
    [SHMQ_INTERRUPTED] = "INTERRUPTED",
    [SHMQ_CLOSED] = "CLOSED",
    [SHMQ_MEMBERSHIP_LOST] = "MEMBERSHIP_LOST",
    [SHMQ_NOT_FOUND] = "NOT_FOUND",
    [SHMQ_SETTLED] = "SETTLED",
    [SHMQ_TOO_LARGE] = "TOO_LARGE",
    [SHMQ_NO_SPACE] = "NO_SPACE",
    [SHMQ_GONE] = "GONE",
    [SHMQ_NO_MAGIC] = "NO_MAGIC",
    [SHMQ_VERSION] = "VERSION",
    [SHMQ_CORRUPT] = "CORRUPT",
    [SHMQ_LIMIT] = "LIMIT",
    [SHMQ_EXISTS] = "EXISTS",
    [SHMQ_DENIED] = "DENIED",
    [SHMQ_FOREIGN] = "FOREIGN",
    [SHMQ_IN_USE] = "IN_USE",
    [SHMQ_REFUSED] = "REFUSED",
    [SHMQ_POISONED] = "POISONED",
    [SHMQ_OS] = "OS",
};

#define TRAIL_BYTES 1024

static _Thread_local char trail[TRAIL_BYTES];
static _Thread_local int trail_errno;

const char *shmq_status_name(shmq_status status) {
    if ((unsigned)status >= SHMQ_STATUS_COUNT) {
        return "UNKNOWN";
    }
    return names[status];
}

shmq_status shmq_fail(shmq_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trail, sizeof(trail), format, arguments);
    va_end(arguments);
    trail_errno = 0;
    return status;
}

shmq_status shmq_fail_errno(const char *format, ...) {
    int number = errno; /* saved first: the calls below may change it */
    char reason[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trail, sizeof(trail), format, arguments);
    va_end(arguments);
#if defined(__GLIBC__)
    const char *text = strerror_r(number, reason, sizeof(reason));
#else
    const char *text = strerror_r(number, reason, sizeof(reason)) == 0 ? reason : "unknown error";
#endif
    size_t length = strlen(trail);
    snprintf(trail + length, sizeof(trail) - length, ": %s (errno %d)", text, number);
    trail_errno = number;
    return SHMQ_OS;
}

void shmq_advise(const char *remedy) {
    size_t length = strlen(trail);
    snprintf(trail + length, sizeof(trail) - length, "\n\n%s", remedy);
}

const char *shmq_trail(void) { return trail; }

int shmq_trail_errno(void) { return trail_errno; }

void shmq_trail_clear(void) {
    trail[0] = '\0';
    trail_errno = 0;
}
