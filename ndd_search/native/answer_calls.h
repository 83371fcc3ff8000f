/* What Python calls before it parses a response: the sketches are read out of its text, because a parser would make an
 * object of each value. In the text a number stands for each: `"ndd.sketch":-1` for the first, -2 for the second.
 * stored_calls.h puts the values in their place. */
#pragma once
#include "stored_calls.h"

enum { MOST_DIGITS = 11, SHORT_LIST = 16 }; /* of an integer; bytes of a list that no number is put in the place of */

static const char *after_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static int is_at(const char *at, const char *end, char byte) { return at < end && *at == byte; }

/* Where the value of the next member of this name begins, from `at` on. NULL: there is none. A quote inside a string
 * stands behind a backslash, so what is found is a name wherever it stands in the text. */
static const char *next_value(const char *text, const char *at, const char *end, const char *name, Py_ssize_t length)
{
    for (; (at = memchr(at, '"', (size_t)(end - at))); at++) {
        const char *behind = at + length + 1;
        if (end - at < length + 2 || *behind != '"' || memcmp(at + 1, name, (size_t)length) || (at > text && at[-1] == '\\'))
            continue;
        behind = after_spaces(behind + 1, end);
        if (is_at(behind, end, ':'))
            return after_spaces(behind + 1, end);
    }
    return NULL;
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

/* Copy a text with numbers in place of sketches, whose values and offsets are listed. Returns the end of the copy, NULL
 * if one is not understood. Each of these has the room of what it replaces: a value takes two bytes of the text at least,
 * an offset the SHORT_LIST bytes of a list. */
static char *cut(const char *text, const char *end, const char *name, Py_ssize_t length, int64_t k, char *copy,
                 int32_t *values, int64_t *offsets, int64_t *cuts)
{
    const char *at = text, *list;
    int64_t count;
    offsets[*cuts = 0] = 0;
    while ((list = next_value(text, at, end, name, length))) {
        int64_t used = offsets[*cuts];
        const char *behind = parse_integers(list, end, k, values + used, &count);
        if (!behind)
            return NULL;
        memcpy(copy, at, (size_t)(list - at));
        copy += list - at;
        if (behind - list < SHORT_LIST) {
            memcpy(copy, list, (size_t)(behind - list));
            copy += behind - list;
        } else {
            offsets[++*cuts] = used + count;
            copy += PyOS_snprintf(copy, SHORT_LIST, "%d", -(int)*cuts);
        }
        at = behind;
    }
    memcpy(copy, at, (size_t)(end - at));
    return copy + (end - at);
}

static PyObject *cut_sketches(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *result = NULL;
    const char *name, *text = NULL;
    Py_ssize_t named, length = 0;
    long long k;
    if (!PyArg_ParseTuple(arguments, "Os#L:cut_sketches", &given, &name, &named, &k))
        return NULL;
    if (PyUnicode_Check(given))
        text = PyUnicode_AsUTF8AndSize(given, &length);
    else if (PyBytes_Check(given))
        length = PyBytes_Size(given), text = PyBytes_AsString(given);
    if (text && k > 0 && length < INT32_MAX) {
        size_t size = (size_t)length;
        char *copy = malloc(size + 1);
        int32_t *values = malloc((size / 2 + 1) * sizeof *values);
        int64_t *offsets = malloc((size / SHORT_LIST + 2) * sizeof *offsets), cuts = 0;
        char *end = copy && values && offsets ? cut(text, text + length, name, named, k, copy, values, offsets, &cuts) : NULL;
        if (end && cuts) {
            PyObject *rest = PyUnicode_Check(given) ? PyUnicode_DecodeUTF8(copy, end - copy, "strict") : bytes_of(copy, end - copy);
            result = Py_BuildValue("NNN", rest, bytes_of(values, offsets[cuts] * (int64_t)sizeof *values),
                                   bytes_of(offsets, (cuts + 1) * (int64_t)sizeof *offsets));
        }
        free(copy);
        free(values);
        free(offsets);
    }
    PyErr_Clear(); /* a lone surrogate, or no memory: the text stays as it is */
    return result ? result : Py_NewRef(Py_None);
}
