/* What Python calls to read the stored sketches of a response: lists of integers, or base64 of packed integers. */
#pragma once
#include "stable_abi.h"

enum { MOST_STORED = 1 << 16 }; /* values of a sketch */
enum { SKETCH_PATH, PACKED_PATH, RECIPE_PATH, RECIPE_ID, NAMES };

static const uint8_t *base64_digits(void)
{
    static uint8_t digits[256]; /* the value of each digit plus 1, 0 for any other byte */
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!digits['A'])
        for (uint8_t i = 0; i < 64; i++)
            digits[(uint8_t)alphabet[i]] = (uint8_t)(i + 1);
    return digits;
}

/* Read the base64 of little-endian integers. Returns their number, -1 for anything else or more than k. */
static int64_t read_packed(PyObject *text, int64_t k, int32_t *to)
{
    const uint8_t *digits = base64_digits();
    Py_ssize_t length;
    const char *from = PyUnicode_AsUTF8AndSize(text, &length);
    if (!from) {
        PyErr_Clear();
        return -1;
    }
    while (length && from[length - 1] == '=') /* OpenSearch leaves the padding out */
        length--;
    int64_t bytes = length * 3 / 4, at = 0;
    if (length % 4 == 1 || bytes % (int64_t)sizeof(int32_t) || bytes / (int64_t)sizeof(int32_t) > k)
        return -1;
    uint8_t *out = (uint8_t *)to;
    char last[] = "AAAA"; /* the rest of the text, filled up with zeros */
    memcpy(last, from + length / 4 * 4, (size_t)(length % 4));
    for (Py_ssize_t i = 0; i < length; i += 4) {
        const uint8_t *four = (const uint8_t *)(length - i < 4 ? last : from + i);
        uint32_t first = digits[four[0]], second = digits[four[1]], third = digits[four[2]], fourth = digits[four[3]];
        if (!first || !second || !third || !fourth)
            return -1;
        uint32_t bits = (first - 1) << 18 | (second - 1) << 12 | (third - 1) << 6 | (fourth - 1);
        for (int shift = 16; shift >= 0 && at < bytes; shift -= 8)
            out[at++] = (uint8_t)(bits >> shift);
    }
    for (int64_t i = 0; i < bytes / 4; i++) /* nothing to do where integers are little-endian */
        to[i] = (int32_t)(out[4 * i] | (uint32_t)out[4 * i + 1] << 8 | (uint32_t)out[4 * i + 2] << 16
                          | (uint32_t)out[4 * i + 3] << 24);
    return bytes / (int64_t)sizeof(int32_t);
}

/* Read a list of integers. Returns their number, -1 for anything else or more than k. */
static int64_t read_integers(PyObject *list, int64_t k, int32_t *to)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < 1 || count > k)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        int overflow = 0;
        long value = PyLong_AsLongAndOverflow(PyList_GetItem(list, i), &overflow);
        if (value < 0 || overflow || value > INT32_MAX) { /* -1 for an error */
            PyErr_Clear();
            return -1;
        }
        to[i] = (int32_t)value;
    }
    return count;
}

/* Read what is stored for one hit: None, a list of integers, base64, or a list of one base64. */
static int64_t read_stored(PyObject *stored, int64_t k, int32_t *to)
{
    if (stored == Py_None)
        return 0;
    if (PyList_Check(stored) && PyList_Size(stored) == 1 && PyUnicode_Check(PyList_GetItem(stored, 0)))
        stored = PyList_GetItem(stored, 0);
    int64_t count = PyUnicode_Check(stored) ? read_packed(stored, k, to)
                    : PyList_Check(stored)  ? read_integers(stored, k, to)
                                            : -1;
    for (int64_t i = 0; i < count; i++)
        if (to[i] < 0 || (i && to[i] <= to[i - 1]))
            return -1;
    return count;
}

/* Counts of hits without a sketch. */
enum { MALFORMED = -1, FOREIGN = -2, NOTHING = -3 };

/* A member of a dict, None if it is missing or this is no dict. Returns a borrowed reference. */
static PyObject *member(PyObject *dict, PyObject *name)
{
    PyObject *found = PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
    if (!found)
        PyErr_Clear();
    return found ? found : Py_None;
}

static int is_list_of(PyObject *list, PyObject *text)
{
    if (!PyList_Check(list) || PyList_Size(list) != 1 || !PyUnicode_Check(PyList_GetItem(list, 0)))
        return 0;
    return PyUnicode_Compare(PyList_GetItem(list, 0), text) == 0;
}

/* Read the sketch of one hit from its doc values. Returns the number of values, or one of the above. */
static int64_t read_fields(PyObject *fields, PyObject *const *names, int64_t k, int32_t *to)
{
    PyObject *made_by = member(fields, names[RECIPE_PATH]), *stored = member(fields, names[SKETCH_PATH]);
    if (stored == Py_None)
        stored = member(fields, names[PACKED_PATH]);
    if (!is_list_of(made_by, names[RECIPE_ID]))
        return stored == Py_None ? NOTHING : FOREIGN;
    Py_INCREF(stored); /* an object's __index__ may change the dict */
    int64_t count = read_stored(stored, k, to);
    Py_DECREF(stored);
    return count;
}

PyDoc_STRVAR(stored_sketches_doc,
             "stored_sketches(fields, (sketch, packed, recipe, id), k) -> (values, counts), or None.\n\n"
             "fields: a list of the doc values of each hit. The result is bytes of int32 and int64. A count is the\n"
             "number of values of a hit, 0 for an empty sketch, -1 for a malformed one, -2 for one of another recipe,\n"
             "-3 for none with values.");

static PyObject *stored_sketches(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *fields, *result = NULL, *names[NAMES];
    long long k;
    if (!PyArg_ParseTuple(arguments, "O(UUUU)L:stored_sketches", &fields, names, names + 1, names + 2, names + 3, &k))
        return NULL;
    if (!PyList_Check(fields) || k < 1 || k > MOST_STORED)
        return Py_NewRef(Py_None);
    Py_ssize_t hits = PyList_Size(fields), hit = 0;
    int64_t used = 0, room = 0, *counts = malloc(((size_t)hits + 1) * sizeof *counts);
    int32_t *values = NULL;
    for (; counts && hit < hits && PyList_Size(fields) == hits; hit++) {
        if (used + k > room) { /* most sketches have k values */
            room = 2 * room + k * (hits < 1024 ? hits : 1024);
            int32_t *larger = realloc(values, (size_t)room * sizeof *values);
            if (!larger)
                break;
            values = larger;
        }
        PyObject *one = Py_NewRef(PyList_GetItem(fields, hit));
        counts[hit] = read_fields(one, names, k, values + used);
        Py_DECREF(one);
        used += counts[hit] > 0 ? counts[hit] : 0;
    }
    if (counts && hit == hits)
        result = Py_BuildValue("NN", bytes_of(values, used * (int64_t)sizeof *values),
                               bytes_of(counts, hits * (int64_t)sizeof *counts));
    free(values);
    free(counts);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
