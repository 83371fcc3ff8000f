/* Reads the values in some fields of records, each distinct one once (items/table.py). */
#pragma once
#include "stable_abi.h"

enum { MOST_WORDS = 32 }; /* of a text that is read here */

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

/* The words of a text of ASCII characters as a tuple, in small letters; None for one with "&" or without words. */
static PyObject *plain_words(const char *text, Py_ssize_t length, char *room)
{
    PyObject *words[MOST_WORDS], *result = NULL;
    Py_ssize_t count = 0, used = 0, i = 0;
    for (; i <= length; i++) {
        char letter = i < length ? text[i] : ' ';
        if (letter >= 'A' && letter <= 'Z')
            letter = (char)(letter + 'a' - 'A');
        if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) {
            room[used++] = letter;
        } else if (letter == '&' || letter & 0x80 || count == MOST_WORDS) {
            break;
        } else if (used && letter != '\'' && letter != '`') {
            if (!(words[count] = PyUnicode_FromStringAndSize(room, used)))
                break;
            count++;
            used = 0;
        }
    }
    if (i > length && count && (result = PyTuple_New(count)))
        for (Py_ssize_t word = 0; word < count; word++)
            PyTuple_SetItem(result, word, words[word]);
    for (Py_ssize_t word = 0; !result && word < count; word++)
        Py_DECREF(words[word]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* A date such as "1863-06-15" as (year, month, day); None for any other text. */
static PyObject *plain_date(const char *text, Py_ssize_t length)
{
    static const int from[] = {0, 5, 8, 11};
    int parts[3] = {0, 0, 0};
    for (int part = 0; part < 3; part++)
        for (int i = from[part]; i < from[part + 1] - 1; i++) {
            if (length != 10 || text[i] < '0' || text[i] > '9' || text[4] != '-' || text[7] != '-')
                Py_RETURN_NONE;
            parts[part] = 10 * parts[part] + text[i] - '0';
        }
    if (parts[0] < 100 || parts[1] < 1 || parts[1] > 12 || parts[2] > 31)
        Py_RETURN_NONE;
    return Py_BuildValue("iii", parts[0], parts[1], parts[2]);
}

PyDoc_STRVAR(plain_values_doc, "plain_values(texts, dates) -> list, or None. Tuples of words, or dates; None for a text that is not plain.");

static PyObject *plain_values(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *texts, *result = NULL;
    int dates, fine = 1;
    if (!PyArg_ParseTuple(arguments, "O!p:plain_values", &PyList_Type, &texts, &dates))
        return NULL;
    Py_ssize_t count = PyList_Size(texts), most = 0;
    char *room = NULL;
    result = PyList_New(count);
    for (Py_ssize_t i = 0; result && fine && i < count; i++) {
        Py_ssize_t length = 0;
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(texts, i), &length);
        if (text && length >= most) {
            most = 2 * length + 64;
            free(room);
            room = malloc((size_t)most);
        }
        PyObject *value = !text || !room ? NULL : dates ? plain_date(text, length) : plain_words(text, length, room);
        fine = value && PyList_SetItem(result, i, value) == 0;
    }
    free(room);
    if (!fine)
        Py_CLEAR(result);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
