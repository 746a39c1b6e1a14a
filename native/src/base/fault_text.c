#include "base/fault_text.h"

#include <stdarg.h>
#include <stdio.h>

const char *const shmq_unlooked = "this process has no memory for the check";

static _Thread_local char sentence[200];

const char *shmq_fault_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    return sentence;
}
