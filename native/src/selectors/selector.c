/* Runs the program of a selector over one message. */
#include "selectors/selector.h"
#include "selectors/program.h"

#define SMALL_HEADERS 2048u /* header blocks of up to so many bytes are copied to a small place on the stack */

/* One look at one message. It reads the header block from front to back, as far as the program asks. */
typedef struct look {
    const shmq_selector *selector;
    const shmq_fields *fields;
    const unsigned char *at, *end; /* headers that it has copied and not read yet */
    bool damaged;
    unsigned char group[SHMQ_GROUP_MAX + SHMQ_HEADERS_PADDING];
    shmq_value found[SHMQ_SELECTOR_NAMES]; /* indexed by the place of a name */
} look;

static inline shmq_value truth(bool value) {
    return (shmq_value){.kind = SHMQ_VALUE_TRUTH, .length = 0, .truth = value};
}
static inline shmq_value exact(int64_t value) {
    return (shmq_value){.kind = SHMQ_VALUE_EXACT, .length = 0, .exact = value};
}
static inline shmq_value approximate(double value) { /* A result that is not a number becomes NULL. */
    uint32_t kind = isnan(value) ? SHMQ_VALUE_NULL : SHMQ_VALUE_APPROXIMATE;
    return (shmq_value){.kind = kind, .length = 0, .approximate = value};
}
static const shmq_value null = {.kind = SHMQ_VALUE_NULL, .length = 0, .exact = 0};

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static inline bool is_number(const shmq_value *v) {
    return v->kind == SHMQ_VALUE_EXACT || v->kind == SHMQ_VALUE_APPROXIMATE;
}

static inline double as_approximate(const shmq_value *v) {
    return v->kind == SHMQ_VALUE_EXACT ? (double)v->exact : v->approximate;
}

/* Exact numbers have 64 bits; a larger result goes on as an approximate number. */
static shmq_value bounded(__int128 value) {
    return value >= INT64_MIN && value <= INT64_MAX ? exact((int64_t)value) : approximate((double)value);
}

static shmq_value calculated(uint32_t operation, const shmq_value *a, const shmq_value *b) {
    if (!is_number(a) || !is_number(b)) {
        return null;
    }
    if (a->kind == SHMQ_VALUE_EXACT && b->kind == SHMQ_VALUE_EXACT) {
        __int128 x = a->exact, y = b->exact;
        switch (operation) {
        case SHMQ_DO_ADD:
            return bounded(x + y);
        case SHMQ_DO_SUBTRACT:
            return bounded(x - y);
        case SHMQ_DO_MULTIPLY:
            return bounded(x * y);
        default:
            if (y == 0) {
                return null;
            }
            return b->exact == -1 ? bounded(-x) : exact(a->exact / b->exact); /* SQL rounds towards zero */
        }
    }
    double x = as_approximate(a), y = as_approximate(b);
    switch (operation) {
    case SHMQ_DO_ADD:
        return approximate(x + y);
    case SHMQ_DO_SUBTRACT:
        return approximate(x - y);
    case SHMQ_DO_MULTIPLY:
        return approximate(x * y);
    default:
        return y == 0 ? null : approximate(x / y);
    }
}

static shmq_value negated(const shmq_value *v) {
    if (v->kind == SHMQ_VALUE_EXACT) {
        return bounded(-(__int128)v->exact);
    }
    return v->kind == SHMQ_VALUE_APPROXIMATE ? approximate(-v->approximate) : null;
}

/* Less: -1, equal: 0, more: 1. The exact number is not rounded. */
static inline int order_mixed(int64_t a, double b) {
    if (b >= 0x1p63) {
        return -1;
    }
    if (b < -0x1p63) {
        return 1;
    }
    int64_t whole = (int64_t)b; /* cut towards zero: the rest says on which side b lies */
    if (a != whole) {
        return a < whole ? -1 : 1;
    }
    double rest = b - (double)whole;
    return (rest < 0) - (rest > 0);
}

static inline int order(const shmq_value *a, const shmq_value *b) {
    if (a->kind == SHMQ_VALUE_EXACT) {
        return b->kind == SHMQ_VALUE_EXACT ? (a->exact > b->exact) - (a->exact < b->exact)
                                           : order_mixed(a->exact, b->approximate);
    }
    return b->kind == SHMQ_VALUE_EXACT ? -order_mixed(b->exact, a->approximate)
                                       : (a->approximate > b->approximate) - (a->approximate < b->approximate);
}

/* ---- predicates ----------------------------------------------------------------------------------------------- */

static inline bool same_text(const shmq_value *a, const shmq_value *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static shmq_value compared(uint32_t operation, const shmq_value *a, const shmq_value *b) {
    if (a->kind == SHMQ_VALUE_NULL || b->kind == SHMQ_VALUE_NULL) {
        return null;
    }
    if (is_number(a) && is_number(b)) {
        static const uint8_t true_for[] = {2, 5, 1, 3, 4, 6}; /* bits: less 1, equal 2, more 4 */
        return truth((true_for[operation - SHMQ_DO_EQUAL] >> (order(a, b) + 1) & 1) != 0);
    }
    /* For text and truth values only = and <> are defined. */
    bool defined = operation == SHMQ_DO_EQUAL || operation == SHMQ_DO_UNEQUAL;
    if (a->kind != b->kind || a->kind == SHMQ_VALUE_BYTES || !defined) {
        return truth(false);
    }
    bool equal = a->kind == SHMQ_VALUE_TEXT ? same_text(a, b) : a->truth == b->truth;
    return truth(equal == (operation == SHMQ_DO_EQUAL));
}

static inline shmq_value both(const shmq_value *a, const shmq_value *b) {
    bool known_a = a->kind == SHMQ_VALUE_TRUTH, known_b = b->kind == SHMQ_VALUE_TRUTH;
    if ((known_a && !a->truth) || (known_b && !b->truth)) {
        return truth(false);
    }
    return known_a && known_b ? truth(true) : null;
}

static inline shmq_value either(const shmq_value *a, const shmq_value *b) {
    bool known_a = a->kind == SHMQ_VALUE_TRUTH, known_b = b->kind == SHMQ_VALUE_TRUTH;
    if ((known_a && a->truth) || (known_b && b->truth)) {
        return truth(true);
    }
    return known_a && known_b ? truth(false) : null;
}

static shmq_value between(bool outside, const shmq_value *const *v) { /* value, low, high */
    shmq_value low = compared(outside ? SHMQ_DO_LESS : SHMQ_DO_AT_LEAST, v[0], v[1]);
    shmq_value high = compared(outside ? SHMQ_DO_MORE : SHMQ_DO_AT_MOST, v[0], v[2]);
    return outside ? either(&low, &high) : both(&low, &high);
}

static bool equal(const shmq_value *a, const shmq_value *b) {
    if (is_number(a)) {
        return is_number(b) && order(a, b) == 0;
    }
    if (a->kind != b->kind) {
        return false;
    }
    return a->kind == SHMQ_VALUE_TEXT ? same_text(a, b) : a->kind == SHMQ_VALUE_TRUTH && a->truth == b->truth;
}

static shmq_value among(const shmq_selector *s, const shmq_instruction *i, const shmq_value *v) {
    const shmq_value *member = s->constant + i->a, *end = member + i->b;
    while (member != end && !equal(v, member)) {
        member++;
    }
    return v->kind == SHMQ_VALUE_NULL ? null : truth((member != end) == (i->operation == SHMQ_DO_IN));
}

static shmq_value like(const shmq_selector *s, const shmq_instruction *i, const shmq_value *v) {
    if (v->kind == SHMQ_VALUE_NULL) {
        return null;
    }
    bool matches = v->kind == SHMQ_VALUE_TEXT && shmq_like_matches(s->like[i->a], v->text, v->length);
    return truth(matches == (i->operation == SHMQ_DO_LIKE));
}

/* ---- what a message says -------------------------------------------------------------------------------------- */

static shmq_value group_of(look *l) {
    const unsigned char *group = l->fields->group;
    uint32_t length = l->fields->group_len;
    if (group == NULL) {
        group = shmq_headers_own(l->fields->headers, l->fields->headers_len, SHMQ_OWN_GROUP, &length);
    }
    if (group == NULL || length > SHMQ_GROUP_MAX) {
        return null;
    }
    shmq_headers_copy(l->group, group, length);
    return (shmq_value){.kind = SHMQ_VALUE_TEXT, .length = length, .text = l->group};
}

static shmq_value field_of(look *l, uint32_t field) {
    switch (field) {
    case SHMQ_FIELD_MESSAGE_ID:
        return bounded(l->fields->message_id);
    case SHMQ_FIELD_PRIORITY:
        return exact(l->fields->priority);
    case SHMQ_FIELD_REDELIVERED:
        return truth(l->fields->redelivered);
    case SHMQ_FIELD_TIMESTAMP:
        return bounded(l->fields->enqueued_wall_ms);
    case SHMQ_FIELD_DELIVERY_COUNT:
        return exact(l->fields->delivery_count);
    default:
        return group_of(l);
    }
}

/* The header with this name. Reads on until it is found, and keeps other wanted headers that come before it. */
static const shmq_value *header_of(look *l, uint32_t place) {
    while (l->found[place].kind == SHMQ_VALUE_UNSEEN) {
        if (l->at == l->end) {
            return &null;
        }
        const unsigned char *name = l->at + 1;
        uint32_t length = *l->at;
        bool whole = length != 0 && (size_t)(l->end - name) >= length;
        uint32_t here = whole ? shmq_selector_place(l->selector, name, length) : 0;
        if (!whole) {
            l->at = NULL;
        } else if (here != l->selector->names && l->found[here].kind == SHMQ_VALUE_UNSEEN) {
            l->at = shmq_value_at(name + length, l->end, &l->found[here]);
        } else {
            l->at = shmq_value_behind(name + length, l->end);
        }
        if (SHMQ_UNLIKELY(l->at == NULL)) {
            l->damaged = true;
            return &null;
        }
    }
    return &l->found[place];
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

static inline bool certainly(const shmq_value *v, bool what) { return v->kind == SHMQ_VALUE_TRUTH && v->truth == what; }

/* An operation that takes two values or three; `v` is the first one. */
static shmq_value joined(uint32_t operation, const shmq_value *const *v) {
    switch (operation) {
    case SHMQ_DO_ADD:
    case SHMQ_DO_SUBTRACT:
    case SHMQ_DO_MULTIPLY:
    case SHMQ_DO_DIVIDE:
        return calculated(operation, v[0], v[1]);
    case SHMQ_DO_BETWEEN:
    case SHMQ_DO_OUTSIDE:
        return between(operation == SHMQ_DO_OUTSIDE, v);
    case SHMQ_DO_AND:
        return both(v[0], v[1]);
    case SHMQ_DO_OR:
        return either(v[0], v[1]);
    default:
        return compared(operation, v[0], v[1]);
    }
}

/* An operation that takes one value. */
static shmq_value changed(const shmq_selector *s, const shmq_instruction *i, const shmq_value *v) {
    switch (i->operation) {
    case SHMQ_DO_NEGATE:
        return negated(v);
    case SHMQ_DO_IS_NULL:
    case SHMQ_DO_IS_NOT_NULL:
        return truth((v->kind == SHMQ_VALUE_NULL) == (i->operation == SHMQ_DO_IS_NULL));
    case SHMQ_DO_IN:
    case SHMQ_DO_NOT_IN:
        return among(s, i, v);
    case SHMQ_DO_LIKE:
    case SHMQ_DO_NOT_LIKE:
        return like(s, i, v);
    default: /* NOT: a value that is no condition is unknown, and so is its opposite */
        return v->kind == SHMQ_VALUE_TRUTH ? truth(!v->truth) : null;
    }
}

/* The stack holds addresses. Found values and constants stay where they are; computed values lie in `made`. */
static bool run(look *l) {
    const shmq_selector *s = l->selector;
    const shmq_value *stack[SHMQ_SELECTOR_STACK + 1], **top = stack; /* stack[0] is unused */
    shmq_value made[SHMQ_SELECTOR_STACK + 1], value;
    const shmq_instruction *i = s->code, *end = i + s->instructions;
    for (; i < end; i++) {
        switch (i->operation) {
        case SHMQ_DO_NAME:
            *++top = header_of(l, i->a);
            if (SHMQ_UNLIKELY(l->damaged)) {
                return false;
            }
            continue;
        case SHMQ_DO_CONSTANT:
            *++top = &s->constant[i->a];
            continue;
        case SHMQ_DO_SKIP_IF_FALSE:
        case SHMQ_DO_SKIP_IF_TRUE:
            i += certainly(*top, i->operation == SHMQ_DO_SKIP_IF_TRUE) ? i->a : 0;
            continue;
        case SHMQ_DO_FIELD:
            value = field_of(l, i->a);
            top++;
            break;
        case SHMQ_DO_NEGATE:
        case SHMQ_DO_IS_NULL:
        case SHMQ_DO_IS_NOT_NULL:
        case SHMQ_DO_IN:
        case SHMQ_DO_NOT_IN:
        case SHMQ_DO_LIKE:
        case SHMQ_DO_NOT_LIKE:
        case SHMQ_DO_NOT:
            value = changed(s, i, *top);
            break;
        case SHMQ_DO_BETWEEN:
        case SHMQ_DO_OUTSIDE:
            top -= 2;
            value = joined(i->operation, top);
            break;
        default:
            top--;
            value = joined(i->operation, top);
        }
        made[top - stack] = value;
        *top = &made[top - stack];
    }
    return certainly(*top, true);
}

static bool run_over(const shmq_selector *s, const shmq_fields *fields, unsigned char *copy, uint32_t bytes) {
    look l; /* not cleared: only the entries of names that exist are set */
    l.selector = s;
    l.fields = fields;
    l.at = copy;
    l.end = copy + bytes;
    l.damaged = false;
    if (bytes != 0) {
        shmq_headers_copy(copy, fields->headers + SHMQ_HEADERS_FIXED, bytes);
    }
    for (uint32_t i = 0; i < s->names; i++) {
        l.found[i].kind = SHMQ_VALUE_UNSEEN;
    }
    return run(&l);
}

/* A function of its own, so that the usual header block does not pay for the stack of a large one. */
static SHMQ_NOINLINE bool run_over_large(const shmq_selector *s, const shmq_fields *fields, uint32_t bytes) {
    unsigned char copy[UINT16_MAX + SHMQ_HEADERS_PADDING];
    return run_over(s, fields, copy, bytes);
}

bool shmq_selects(const shmq_selector *s, const shmq_fields *fields) {
    uint32_t bytes = 0;
    if (s->names != 0 && !shmq_headers_user(fields->headers, fields->headers_len, &bytes)) {
        return false;
    }
    if (bytes > SMALL_HEADERS) {
        return run_over_large(s, fields, bytes);
    }
    unsigned char copy[SMALL_HEADERS + SHMQ_HEADERS_PADDING];
    return run_over(s, fields, copy, bytes);
}
