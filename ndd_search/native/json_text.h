/* Walks through the text of JSON values without creating objects. The text need not be valid. */
#pragma once
#include "stable_abi.h"

enum { MOST_DIGITS = 11 }; /* of an integer */

/* A part of the text. */
typedef struct {
    const char *from, *to;
} Part;

/* A walk through the members of an object. */
typedef struct {
    const char *at; /* behind the latest member, or behind the { */
    Part name;
    int is_begun; /* whether a member was passed */
    const char *kept, *cut_from, *cut_to; /* end of the last kept member; a run of members to cut that follows it */
} Walk;

static int is_text(Part part, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(part.to - part.from) == length && !memcmp(part.from, text, length);
}

static int is_part(Part part, Part other)
{
    return part.to - part.from == other.to - other.from && !memcmp(part.from, other.from, (size_t)(part.to - part.from));
}

/* Whether a string has only printable ASCII characters and no escapes. */
static int is_printable(Part string)
{
    for (const char *at = string.from; at < string.to; at++)
        if (*at < ' ' || *at > '~' || *at == '\\')
            return 0;
    return 1;
}

static const char *after_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static int is_at(const char *at, const char *end, char byte)
{
    return at < end && *at == byte;
}

/* The end of a string, behind its closing quote. NULL: it has none. */
static const char *after_string(const char *at, const char *end)
{
    for (const char *from = ++at; (at = memchr(at, '"', (size_t)(end - at))); at++) {
        const char *escape = at;
        while (escape > from && escape[-1] == '\\')
            escape--;
        if ((at - escape) % 2 == 0)
            return at + 1;
    }
    return NULL;
}

/* The end of a value, which is not checked. NULL: it has none. */
static const char *after_value(const char *at, const char *end)
{
    int64_t depth = 0;
    while (at < end) {
        char byte = *at;
        if (byte == '"') {
            if (!(at = after_string(at, end)))
                return NULL;
        } else if (byte == '{' || byte == '[') {
            depth++;
            at++;
            continue;
        } else if (byte == '}' || byte == ']') {
            depth--;
            at++;
        } else if (depth) {
            at++;
            continue;
        } else { /* a number, true, false, or null */
            const char *from = at;
            while (at < end && *at != ',' && *at != '}' && *at != ']' && *at != ' ' && *at != '\n' && *at != '\r'
                   && *at != '\t')
                at++;
            return at > from ? at : NULL;
        }
        if (depth <= 0)
            return depth ? NULL : at;
    }
    return NULL;
}

/* Step to the next item of a list. at: behind its [, or behind an item. Returns where the item begins, the ] of the list
   behind the last one, NULL for anything else. */
static const char *next_item(const char *at, const char *end, int is_first)
{
    at = after_spaces(at, end);
    if (is_at(at, end, ']'))
        return at;
    if (!is_first) {
        if (!is_at(at, end, ','))
            return NULL;
        at = after_spaces(at + 1, end);
    }
    return at < end && *at != ']' && *at != ',' ? at : NULL;
}

static Walk members_of(const char *object)
{
    return (Walk){.at = object + 1};
}

/* Step to the next member of an object: `at` is where its value begins, and has to be set to the end of the value before
   the next step. Returns 0 behind the last member. Then `at` is behind the }, or NULL if anything is not understood, such
   as an escaped name. */
static int next_member(Walk *walk, const char *end)
{
    const char *at = after_spaces(walk->at, end);
    walk->at = NULL;
    if (is_at(at, end, '}')) {
        walk->at = at + 1;
        return 0;
    }
    if (walk->is_begun) {
        if (!is_at(at, end, ','))
            return 0;
        at = after_spaces(at + 1, end);
    }
    const char *behind = is_at(at, end, '"') ? after_string(at, end) : NULL;
    if (!behind)
        return 0;
    walk->name = (Part){at + 1, behind - 1};
    if (memchr(at, '\\', (size_t)(behind - at)))
        return 0;
    at = after_spaces(behind, end);
    if (!is_at(at, end, ':'))
        return 0;
    walk->at = after_spaces(at + 1, end);
    return walk->is_begun = 1;
}

/* Read a list of integers 0..2**31-1. Returns its end, NULL for any other list, or one of more than k. */
static const char *parse_integers(const char *at, const char *end, int64_t k, int32_t *values, int64_t *count)
{
    if (!is_at(at, end, '['))
        return NULL;
    for (*count = 0; *count < k;) {
        const char *digit = at = after_spaces(at + 1, end);
        const char *last = end - at < MOST_DIGITS ? end : at + MOST_DIGITS;
        uint64_t value = 0;
        for (uint8_t number; digit < last && (number = (uint8_t)(*digit - '0')) < 10; digit++)
            value = 10 * value + number;
        if (digit == at || value > INT32_MAX || (*at == '0' && digit > at + 1))
            return NULL;
        values[(*count)++] = (int32_t)value;
        at = after_spaces(digit, end);
        if (is_at(at, end, ']'))
            return at + 1;
        if (!is_at(at, end, ','))
            return NULL;
    }
    return NULL;
}

/* Read a list of one string. Returns its end, NULL for anything else. */
static const char *parse_one_string(const char *at, const char *end, Part *string)
{
    if (!is_at(at, end, '['))
        return NULL;
    at = after_spaces(at + 1, end);
    const char *behind = is_at(at, end, '"') ? after_string(at, end) : NULL;
    if (!behind)
        return NULL;
    *string = (Part){at + 1, behind - 1};
    at = after_spaces(behind, end);
    return is_at(at, end, ']') ? at + 1 : NULL;
}
