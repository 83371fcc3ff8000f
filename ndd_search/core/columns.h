/* Reads the values in some fields of records, each distinct one once (items/table.py). */
#pragma once
#include "stable_abi.h"

/* A field; `codes` is NULL if its values are not all texts, all integers or all floats. */
typedef struct {
    PyObject *name;     /* borrowed */
    PyTypeObject *type; /* of all values; NULL before the first one */
    PyObject *values;   /* a list of the distinct ones */
    PyObject *places;   /* of each value in `values` */
    int64_t *codes;     /* of each record the place of its value, -1 if it has none */
} Column;

static void free_column(Column *column)
{
    Py_CLEAR(column->values);
    Py_CLEAR(column->places);
    free(column->codes);
    column->codes = NULL;
}

/* Add a value. 0: an error was raised. */
static int add_value(Column *column, PyObject *value, int64_t number)
{
    PyObject *place = PyDict_GetItemWithError(column->places, value);
    if (place) {
        column->codes[number] = (int64_t)PyLong_AsLongLong(place);
        return 1;
    }
    if (PyErr_Occurred())
        return 0;
    column->codes[number] = (int64_t)PyList_Size(column->values);
    place = PyLong_FromLongLong(column->codes[number]);
    int fine = place && PyDict_SetItem(column->places, value, place) == 0 && PyList_Append(column->values, value) == 0;
    Py_XDECREF(place);
    return fine;
}

/* Add the value of one record, if it has one. 0: an error was raised. */
static int read_record(Column *column, PyObject *record, int64_t number)
{
    PyObject *value = PyDict_GetItemWithError(record, column->name);
    column->codes[number] = -1;
    if (!value || value == Py_None)
        return !PyErr_Occurred();
    if (!column->type && (PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value)))
        column->type = Py_TYPE(value);
    if (Py_TYPE(value) != column->type) {
        free_column(column);
        return 1;
    }
    Py_INCREF(value);
    int fine = add_value(column, value, number);
    Py_DECREF(value);
    return fine;
}

PyDoc_STRVAR(columns_doc, "columns(records, names) -> list of (codes, values) or None, or None. records: a list of dicts.");

static PyObject *columns(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *records, *names, *result = NULL;
    if (!PyArg_ParseTuple(arguments, "OO!:columns", &records, &PyTuple_Type, &names))
        return NULL;
    if (!PyList_CheckExact(records))
        Py_RETURN_NONE;
    int64_t count = (int64_t)PyList_Size(records), fields = (int64_t)PyTuple_Size(names);
    Column *read = calloc((size_t)fields + 1, sizeof(Column));
    int fine = read != NULL, regular = 1;
    for (int64_t f = 0; fine && f < fields; f++) {
        read[f] = (Column){PyTuple_GetItem(names, (Py_ssize_t)f), NULL, PyList_New(0), PyDict_New(), malloc(((size_t)count + 1) * sizeof(int64_t))};
        fine = read[f].values && read[f].places && read[f].codes;
    }
    for (int64_t i = 0; fine && regular && i < count; i++) {
        PyObject *record = PyList_GetItem(records, (Py_ssize_t)i);
        Py_XINCREF(record); /* keys of a record may be objects that compare themselves in Python */
        fine = record != NULL;
        regular = fine && PyDict_CheckExact(record);
        for (int64_t f = 0; fine && regular && f < fields; f++)
            fine = !read[f].codes || read_record(&read[f], record, i);
        Py_XDECREF(record);
    }
    if (fine && regular && (result = PyList_New((Py_ssize_t)fields)))
        for (int64_t f = 0; result && f < fields; f++) {
            PyObject *column = read[f].codes ? Py_BuildValue("NO", bytes_of(read[f].codes, count * (int64_t)sizeof(int64_t)), read[f].values)
                                             : Py_NewRef(Py_None);
            if (!column || PyList_SetItem(result, (Py_ssize_t)f, column) < 0)
                Py_CLEAR(result);
        }
    for (int64_t f = 0; read && f < fields; f++)
        free_column(&read[f]);
    free(read);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
