/* What Python calls to read the stored sketches of a response, which are lists of integers. */
#pragma once
#include "stable_abi.h"

enum { MOST_STORED = 1 << 16 }; /* values of a sketch */
enum { SKETCH_PATH, RECIPE_PATH, RECIPE_ID, NAMES };

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

/* Whether values are those of a sketch: distinct, ascending and at least 0. */
static int are_ascending(const int32_t *values, int64_t count)
{
    int wrong = count > 0 && values[0] < 0;
    for (int64_t i = 1; i < count; i++)
        wrong |= values[i] <= values[i - 1];
    return !wrong;
}

/* Read what is stored for one hit: None or a list of integers. */
static int64_t read_stored(PyObject *stored, int64_t k, int32_t *to)
{
    if (stored == Py_None)
        return 0;
    int64_t count = PyList_Check(stored) ? read_integers(stored, k, to) : -1;
    return are_ascending(to, count) ? count : -1;
}

/* Counts of hits without a sketch. */
enum { MALFORMED = -1, FOREIGN = -2, NOTHING = -3 };

/* A member of a dict, None if it is missing or this is no dict. The next look-up may remove it: a key may be an object
 * that compares itself in Python. */
static PyObject *member(PyObject *dict, PyObject *name)
{
    PyObject *found = PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : NULL;
    if (!found)
        PyErr_Clear();
    return Py_NewRef(found ? found : Py_None);
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
    int64_t count = is_list_of(made_by, names[RECIPE_ID]) ? read_stored(stored, k, to) : stored == Py_None ? NOTHING : FOREIGN;
    Py_DECREF(made_by);
    Py_DECREF(stored);
    return count;
}

/* The result of stored_sketches. counts: one for each hit, with room for one more. */
static PyObject *sketches_read(const int32_t *values, int64_t *counts, int64_t hits)
{
    int64_t used = 0, with_values = 0;
    for (int64_t hit = 0; hit < hits; hit++) {
        with_values += counts[hit] > 0;
        used += counts[hit] > 0 ? counts[hit] : 0;
    }
    PyObject *read = bytes_of(values, used * (int64_t)sizeof *values);
    if (!hits || with_values < hits)
        return Py_BuildValue("NNO", read, bytes_of(counts, hits * (int64_t)sizeof *counts), Py_None);
    int64_t offset = 0;
    for (int64_t hit = 0; hit <= hits; hit++) {
        int64_t count = hit < hits ? counts[hit] : 0;
        counts[hit] = offset;
        offset += count;
    }
    return Py_BuildValue("NON", read, Py_None, bytes_of(counts, (hits + 1) * (int64_t)sizeof *counts));
}

/* The names in a tuple, which holds them. 0: an error was raised. */
static int get_names(PyObject *tuple, PyObject **names)
{
    return PyArg_ParseTuple(tuple, "UUU:names", names, names + 1, names + 2);
}

static PyObject *stored_sketches(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *fields, *paths, *result = NULL, *names[NAMES];
    long long k;
    if (!PyArg_ParseTuple(arguments, "OO!L:stored_sketches", &fields, &PyTuple_Type, &paths, &k) || !get_names(paths, names))
        return NULL;
    if (!PyList_Check(fields) || k < 1 || k > MOST_STORED)
        return Py_NewRef(Py_None);
    Py_ssize_t hits = PyList_Size(fields), hit = 0;
    int64_t used = 0, room = 0, *counts = malloc(((size_t)hits + 1) * sizeof *counts);
    int32_t *values = NULL;
    for (; counts && hit < hits && PyList_Size(fields) == hits; hit++) {
        if (used + k + 1 > room) { /* most sketches have k values */
            room = 2 * room + k * (hits < 1024 ? hits : 1024) + 1;
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
        result = sketches_read(values, counts, hits);
    free(values);
    free(counts);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

enum { MOST_LEVELS = 100 };

/* Whether JSON restores a value with the type of every part. No Python code runs here, so nothing changes meanwhile. */
static int has_plain_parts(PyObject *value, int levels)
{
    if (PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || value == Py_None || PyBool_Check(value))
        return 1;
    if (PyFloat_CheckExact(value))
        return isfinite(PyFloat_AsDouble(value));
    if (levels == MOST_LEVELS)
        return 0;
    if (PyList_CheckExact(value)) {
        for (Py_ssize_t at = 0; at < PyList_Size(value); at++)
            if (!has_plain_parts(PyList_GetItem(value, at), levels + 1))
                return 0;
        return 1;
    }
    if (!PyDict_CheckExact(value))
        return 0;
    PyObject *key, *part;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &part);)
        if (!PyUnicode_CheckExact(key) || !has_plain_parts(part, levels + 1))
            return 0;
    return 1;
}

static PyObject *is_plain(PyObject *Py_UNUSED(module), PyObject *value)
{
    return PyBool_FromLong(has_plain_parts(value, 0));
}
