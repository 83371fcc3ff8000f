/* What Python calls to read the stored sketches of a response, which are lists of integers. */
#pragma once
#include "stable_abi.h"

enum { MOST_STORED = 1 << 16 }; /* values of a sketch */
enum { SKETCH_PATH, RECIPE_PATH, RECIPE_ID, FIELDS, NAMES };

/* Sketches that answer_calls.h has read out of a text, and how many of them were found again in their order. */
typedef struct {
    const int32_t *values;
    const int64_t *offsets;
    int64_t count, found;
} Cuts;

/* Put the next cut sketch in the place of its number. Returns the number of values, -1 for anything else. */
static int64_t read_cut(PyObject *number, Cuts *cuts, int64_t k, int32_t *to)
{
    int64_t at = cuts->found, count = at < cuts->count ? cuts->offsets[at + 1] - cuts->offsets[at] : 0;
    int overflow = 0;
    if (count < 1 || count > k || PyLong_AsLongAndOverflow(number, &overflow) != -1 - at || overflow)
        return -1;
    cuts->found++;
    memcpy(to, cuts->values + cuts->offsets[at], (size_t)count * sizeof *to);
    return count;
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

/* Whether values are those of a sketch: distinct, ascending and at least 0. */
static int are_ascending(const int32_t *values, int64_t count)
{
    int wrong = count > 0 && values[0] < 0;
    for (int64_t i = 1; i < count; i++)
        wrong |= values[i] <= values[i - 1];
    return !wrong;
}

/* Read what is stored for one hit: None, a list of integers, or the number of a cut sketch. */
static int64_t read_stored(PyObject *stored, Cuts *cuts, int64_t k, int32_t *to)
{
    if (stored == Py_None)
        return 0;
    int64_t count = PyList_Check(stored)   ? read_integers(stored, k, to)
                    : PyLong_Check(stored) ? read_cut(stored, cuts, k, to)
                                           : -1;
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

/* Read the sketch of one hit from its doc values, and take these out if sketches were cut. Returns the number of values,
 * or one of the above. names: of paths and id, and "fields". */
static int64_t read_hit(PyObject *hit, PyObject *const *names, Cuts *cuts, int64_t k, int32_t *to)
{
    PyObject *fields = member(hit, names[FIELDS]);
    PyObject *made_by = member(fields, names[RECIPE_PATH]), *stored = member(fields, names[SKETCH_PATH]);
    int64_t count = read_stored(stored, cuts, k, to);
    if (!is_list_of(made_by, names[RECIPE_ID]))
        count = stored == Py_None ? NOTHING : FOREIGN;
    if (cuts->count > 0 && count != NOTHING && PyDict_Check(fields)) { /* the recipe alone says why there is none */
        for (int i = SKETCH_PATH; i <= RECIPE_PATH; i++)
            if (PyDict_DelItem(fields, names[i]) < 0)
                PyErr_Clear();
        if (!PyDict_Size(fields) && PyDict_DelItem(hit, names[FIELDS]) < 0)
            PyErr_Clear();
    }
    Py_DECREF(made_by);
    Py_DECREF(stored);
    Py_DECREF(fields);
    return count;
}

/* The result of stored_sketches. counts: one for each hit, with room for one more. found: of cut sketches. */
static PyObject *sketches_read(const int32_t *values, int64_t *counts, int64_t hits, int64_t found)
{
    int64_t used = 0, with_values = 0;
    for (int64_t hit = 0; hit < hits; hit++) {
        with_values += counts[hit] > 0;
        used += counts[hit] > 0 ? counts[hit] : 0;
    }
    PyObject *read = bytes_of(values, used * (int64_t)sizeof *values);
    if (!hits || with_values < hits)
        return Py_BuildValue("NNOL", read, bytes_of(counts, hits * (int64_t)sizeof *counts), Py_None, (long long)found);
    int64_t offset = 0;
    for (int64_t hit = 0; hit <= hits; hit++) {
        int64_t count = hit < hits ? counts[hit] : 0;
        counts[hit] = offset;
        offset += count;
    }
    return Py_BuildValue("NONL", read, Py_None, bytes_of(counts, (hits + 1) * (int64_t)sizeof *counts), (long long)found);
}

/* Read what cut_sketches returned, and how many of these were found again. 0: an error was raised. */
static int get_cuts(PyObject *tuple, Cuts *cuts)
{
    PyObject *values, *offsets;
    long long found;
    int64_t end = 0;
    if (!PyArg_ParseTuple(tuple, "SSL:cuts", &values, &offsets, &found))
        return 0;
    *cuts = (Cuts){(const int32_t *)PyBytes_AsString(values), (const int64_t *)PyBytes_AsString(offsets),
                   PyBytes_Size(offsets) / (int64_t)sizeof(int64_t) - 1, found};
    int fine = found >= 0;
    for (int64_t i = 0; fine && i <= cuts->count; end = cuts->offsets[i++])
        fine = cuts->offsets[i] >= end;
    if (!fine || end > PyBytes_Size(values) / (int64_t)sizeof(int32_t))
        PyErr_SetString(PyExc_ValueError, "cuts are values, and the offsets of sketches in these");
    return !PyErr_Occurred();
}

/* The sketches of hits. NULL: an error was raised, or there is no memory. */
static PyObject *read_hits(PyObject *list, PyObject *const *names, Cuts *cuts, int64_t k)
{
    PyObject *result = NULL;
    Py_ssize_t hits = PyList_Size(list), hit = 0;
    int64_t used = 0, room = 0, *counts = malloc(((size_t)hits + 1) * sizeof *counts);
    int32_t *values = NULL;
    for (; counts && hit < hits && PyList_Size(list) == hits; hit++) {
        int32_t *larger = with_room(values, &room, used + k + 1, sizeof *larger);
        if (!larger)
            break;
        values = larger;
        PyObject *one = Py_NewRef(PyList_GetItem(list, hit));
        if (!PyDict_Check(one)) {
            Py_DECREF(one);
            break;
        }
        counts[hit] = read_hit(one, names, cuts, k, values + used);
        Py_DECREF(one);
        used += counts[hit] > 0 ? counts[hit] : 0;
    }
    if (counts && hit == hits)
        result = sketches_read(values, counts, hits, cuts->found);
    free(values);
    free(counts);
    return result;
}

static PyObject *stored_sketches(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *hits, *paths, *cut, *result = NULL, *names[NAMES];
    Cuts cuts;
    long long k;
    if (!PyArg_ParseTuple(arguments, "OO!LO!:stored_sketches", &hits, &PyTuple_Type, &paths, &k, &PyTuple_Type, &cut)
        || !PyArg_ParseTuple(paths, "UUU:names", names, names + 1, names + 2) || !get_cuts(cut, &cuts))
        return NULL;
    if (PyList_Check(hits) && k >= 1 && k <= MOST_STORED && (names[FIELDS] = PyUnicode_InternFromString("fields"))) {
        result = read_hits(hits, names, &cuts, k);
        Py_DECREF(names[FIELDS]);
    }
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
