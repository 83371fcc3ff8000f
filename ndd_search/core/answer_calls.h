/* What Python calls before it parses a response: lists of integers become base64, which JSON parsers read faster.
 *
 * Only the values of one field are changed, in `hits.hits[].fields` of a response or of each response of an `_msearch`.
 * The text is scanned once. It need not be valid JSON: whatever is not understood stays as it is. */
#pragma once
#include "stored_calls.h"

enum {
    ROOT_TO_FIELDS = 5, /* levels from a response to the values of `fields`, */
    SEARCH_OF_MANY = 2, /* and from an `_msearch` to one of its responses */
    DEEPEST = ROOT_TO_FIELDS + SEARCH_OF_MANY,
    MOST_PACKED = 1 << 10, /* integers of a list */
    MOST_DIGITS = 11,
    BEYOND = 4 /* bytes that write_packed may write behind the text, and more */
};

/* A part of the text. */
typedef struct {
    const char *from, *to;
} Part;

/* The objects and lists around a place in the text, the root first. */
typedef struct {
    int depth;
    char kinds[DEEPEST + 1]; /* { or [ */
    Part keys[DEEPEST + 1];  /* the latest key of each object, with its quotes */
} Nesting;

static int is_text(Part part, Part text)
{
    return part.to - part.from == text.to - text.from && !memcmp(part.from, text.from, (size_t)(part.to - part.from));
}

static int has_key(const Nesting *nesting, int depth, const char *key)
{
    return nesting->kinds[depth] == '{' && is_text(nesting->keys[depth], (Part){key, key + strlen(key)});
}

/* Whether this is a member of the `fields` of a hit. */
static int is_in_fields(const Nesting *nesting)
{
    int root = nesting->depth - ROOT_TO_FIELDS + 1;
    if (nesting->depth == DEEPEST) {
        if (!has_key(nesting, 1, "\"responses\"") || nesting->kinds[2] != '[')
            return 0;
    } else if (nesting->depth != ROOT_TO_FIELDS)
        return 0;
    return has_key(nesting, root, "\"hits\"") && has_key(nesting, root + 1, "\"hits\"")
           && nesting->kinds[root + 2] == '[' && has_key(nesting, root + 3, "\"fields\"")
           && nesting->kinds[nesting->depth] == '{';
}

static const char *after_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
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

/* Read the integers 0..2**31-1 of a list. Returns the end of the list, NULL for any other list. */
static const char *parse_integers(const char *at, const char *end, int32_t *values, int64_t *count)
{
    for (*count = 0; *count < MOST_PACKED; ++*count) {
        const char *digit = at = after_spaces(at + 1, end);
        const char *last = end - at < MOST_DIGITS ? end : at + MOST_DIGITS;
        uint64_t value = 0;
        for (uint8_t number; digit < last && (number = (uint8_t)(*digit - '0')) < 10; digit++)
            value = 10 * value + number;
        if (digit == at || value > INT32_MAX || (*at == '0' && digit > at + 1))
            return NULL;
        values[*count] = (int32_t)value;
        at = after_spaces(digit, end);
        if (at < end && *at == ']') {
            ++*count;
            return at + 1;
        }
        if (at == end || *at != ',')
            return NULL;
    }
    return NULL;
}

/* Write a list of one string, the base64 of little-endian integers without padding. Returns its end. */
static char *write_packed(char *to, const int32_t *values, int64_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t bytes[4 * MOST_PACKED + 2];
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < 4; j++)
            bytes[4 * i + j] = (uint8_t)(values[i] >> 8 * j);
    memset(bytes + 4 * count, 0, 2); /* base64 takes three bytes at a time */
    memcpy(to, "[\"", 2);
    char *from = to += 2; /* up to two digits are written beyond the last one */
    for (const uint8_t *three = bytes; three < bytes + 4 * count; three += 3) {
        uint32_t bits = (uint32_t)(three[0] << 16 | three[1] << 8 | three[2]);
        for (int shift = 18; shift >= 0; shift -= 6)
            *to++ = digits[bits >> shift & 63];
    }
    to = from + (32 * count + 5) / 6;
    memcpy(to, "\"]", 2);
    return to + 2;
}

/* Copy a text with the lists of a field packed. Returns the copy, which is to be freed; NULL: nothing was packed. */
static char *pack_lists(const char *text, Py_ssize_t length, Part field, Py_ssize_t *copied_length)
{
    const char *at = text, *end = text + length, *copied = text;
    char *copy = NULL, *out = NULL;
    Nesting nesting = {0};
    while (at < end) {
        char byte = *at;
        if (byte == '{' || byte == '[') {
            if (++nesting.depth <= DEEPEST) {
                nesting.kinds[nesting.depth] = byte;
                nesting.keys[nesting.depth] = (Part){0};
            }
        } else if (byte == '}' || byte == ']') {
            if (--nesting.depth < 0)
                break;
        } else if (byte == '"') {
            Part string = {at, after_string(at, end)};
            if (!string.to)
                break;
            at = after_spaces(string.to, end);
            if (at == end || *at != ':' || nesting.depth > DEEPEST)
                continue;
            nesting.keys[nesting.depth] = string;
            at = after_spaces(at + 1, end);
            if (at == end || *at != '[' || !is_text(string, field) || !is_in_fields(&nesting))
                continue;
            int32_t values[MOST_PACKED];
            int64_t count;
            const char *list = at, *behind = parse_integers(at, end, values, &count);
            if (!behind || (32 * count + 5) / 6 + 4 >= behind - list) /* it would not be shorter */
                continue;
            if (!copy && !(out = copy = malloc((size_t)length + BEYOND)))
                return NULL;
            memcpy(out, copied, (size_t)(list - copied));
            out = write_packed(out + (list - copied), values, count);
            copied = at = behind;
            continue;
        }
        at++;
    }
    if (copy) {
        memcpy(out, copied, (size_t)(end - copied));
        *copied_length = out + (end - copied) - copy;
    }
    return copy;
}

PyDoc_STRVAR(packed_answer_doc, "packed_answer(text, field) -> the text with the integers of a field packed, or None.\n\n"
                                "text: JSON, str or bytes, as the result. field: its name in quotes, as bytes.");

static PyObject *packed_answer(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *result = NULL;
    const char *name;
    Py_ssize_t size, length = 0, used = 0;
    if (!PyArg_ParseTuple(arguments, "Oy#:packed_answer", &given, &name, &size))
        return NULL;
    const char *text = PyUnicode_Check(given)  ? PyUnicode_AsUTF8AndSize(given, &length)
                       : PyBytes_Check(given) ? (length = PyBytes_Size(given), PyBytes_AsString(given))
                                              : NULL;
    char *packed = text ? pack_lists(text, length, (Part){name, name + size}, &used) : NULL;
    if (packed)
        result = PyUnicode_Check(given) ? PyUnicode_DecodeUTF8(packed, used, "strict")
                                        : PyBytes_FromStringAndSize(packed, used);
    free(packed);
    PyErr_Clear(); /* a lone surrogate, or no memory: the text stays as it is */
    return result ? result : Py_NewRef(Py_None);
}
