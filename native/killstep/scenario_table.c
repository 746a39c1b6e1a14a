#include "scenario.h"

#include <string.h>

const scenario *scenario_at(unsigned index) {
    if (index < scenario_count) {
        return &scenarios[index];
    }
    index -= scenario_count;
    return index < flow_scenario_count ? &flow_scenarios[index] : NULL;
}

const scenario *scenario_named(const char *name) {
    const scenario *s;
    for (unsigned i = 0; (s = scenario_at(i)) != NULL && strcmp(s->name, name) != 0; i++) {
    }
    return s;
}
