/* What Python calls about pages. Sketches come as a list or tuple of int32 arrays, or as one int32 array with int64
 * offsets; arrays go back as bytes. */
#pragma once
#include "stable_abi.h"
#include "search.h"

static int is_row_of(const Py_buffer *view, Py_ssize_t size)
{
    return view->ndim == 1 && view->itemsize == size && view->format && strchr("ilqIL", *view->format)
           && view->format[0] && !view->format[1];
}

/* One row of signed numbers of `size` bytes each, C-contiguous, where it lies. 0: it is something else. Whoever releases
 * the interpreter lock calls get_row. */
static int view_row(PyObject *array, Py_ssize_t size, Py_buffer *view)
{
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_ND) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (is_row_of(view, size))
        return 1;
    PyBuffer_Release(view);
    return 0;
}

/* The same of numbers that nobody changes: those of an array that can be written to are copied. */
static int get_row(PyObject *array, Py_ssize_t size, Py_buffer *view)
{
    if (!view_row(array, size, view))
        return 0;
    if (view->readonly)
        return 1;
    PyObject *copy = PyBytes_FromStringAndSize(view->buf, view->len);
    PyBuffer_Release(view);
    int fine = copy && PyObject_GetBuffer(copy, view, PyBUF_SIMPLE) == 0;
    Py_XDECREF(copy); /* the view holds it */
    if (!fine)
        PyErr_Clear();
    return fine;
}

/* Several rows of int64, as get_row reads one. 0: one of them is something else, and none is held. */
static int get_rows(PyObject *const *arrays, int count, Py_buffer *views)
{
    for (int i = 0; i < count; i++)
        if (!get_row(arrays[i], sizeof(int64_t), &views[i])) {
            while (i-- > 0)
                PyBuffer_Release(&views[i]);
            return 0;
        }
    return 1;
}

static void release_rows(Py_buffer *views, int count)
{
    while (count-- > 0)
        PyBuffer_Release(&views[count]);
}

static int64_t length_in(const Py_buffer *view, Py_ssize_t size)
{
    return (int64_t)(view->len / size);
}

static int copy_flat(Page *page, PyObject *values, PyObject *offsets)
{
    Py_buffer from, at;
    int fine = 0;
    if (!view_row(values, sizeof(int32_t), &from))
        return 0;
    if (view_row(offsets, sizeof(int64_t), &at)) {
        page->count = at.len / (int64_t)sizeof(int64_t) - 1;
        page->values = malloc((size_t)from.len + 1);
        page->offsets = malloc((size_t)at.len + 1);
        fine = page->count >= 0 && page->values && page->offsets;
        if (fine) {
            memcpy(page->values, from.buf, (size_t)from.len);
            memcpy(page->offsets, at.buf, (size_t)at.len);
            fine = page->offsets[0] == 0 && page->offsets[page->count] == from.len / (int64_t)sizeof(int32_t);
            for (int64_t hit = 0; hit < page->count; hit++)
                fine &= page->offsets[hit] <= page->offsets[hit + 1];
        }
        PyBuffer_Release(&at);
    }
    PyBuffer_Release(&from);
    return fine;
}

static int copy_rows(Page *page, PyObject *sketches)
{
    PyObject *rows = PySequence_Tuple(sketches);
    int64_t room = 0, used = 0, hit = 0;
    if (!rows) {
        PyErr_Clear();
        return 0;
    }
    page->count = PyTuple_Size(rows);
    page->offsets = calloc((size_t)(page->count + 1), sizeof(int64_t));
    for (; page->offsets && hit < page->count; hit++) {
        Py_buffer view;
        if (!view_row(PyTuple_GetItem(rows, hit), sizeof(int32_t), &view))
            break;
        int64_t length = view.len / (int64_t)sizeof(int32_t);
        int64_t needed = used + length * (page->count - hit) + 1; /* most sketches of a page have one length */
        int32_t *larger = with_room(page->values, &room, needed, sizeof *larger);
        if (!larger) {
            PyBuffer_Release(&view);
            break;
        }
        memcpy((page->values = larger) + used, view.buf, (size_t)length * sizeof *larger);
        page->offsets[hit + 1] = used += length;
        PyBuffer_Release(&view);
    }
    Py_DECREF(rows);
    return page->offsets && hit == page->count;
}

/* Copy a page's sketches, at most k values of each. Returns 0 for irregular sketches, or without memory. */
static int copy_page(Page *page, PyObject *sketches, PyObject *offsets, int64_t k)
{
    page->k = k;
    if (k < 1 || !(offsets == Py_None ? copy_rows(page, sketches) : copy_flat(page, sketches, offsets)))
        return 0;
    if (page->offsets[page->count] >= 1 << 29 || page->count >= 1 << 29 || !is_regular(page))
        return 0;
    int64_t used = 0;
    for (int64_t hit = 0; hit < page->count; hit++) {
        int64_t length = length_of(page, hit) < k ? length_of(page, hit) : k;
        if (used < page->offsets[hit])
            memmove(page->values + used, values_of(page, hit), (size_t)length * sizeof(int32_t));
        page->offsets[hit] = used; /* behind us: only the next one is still read */
        used += length;
    }
    page->offsets[page->count] = used;
    return 1;
}

static void free_page(Page *page)
{
    free(page->values);
    free(page->offsets);
}

static void free_weights(Weights *weights)
{
    free(weights->weights);
    free(weights->looked_up);
    free(weights->maybe);
}

static PyObject *rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *result = NULL;
    long long k;
    Page page = {0};
    if (!PyArg_ParseTuple(arguments, "OOL", &sketches, &offsets, &k))
        return NULL;
    if (copy_page(&page, sketches, offsets, k))
        result = Py_BuildValue("NN", bytes_of(page.values, page.offsets[page.count] * (int64_t)sizeof(int32_t)),
                               bytes_of(page.offsets, (page.count + 1) * (int64_t)sizeof(int64_t)));
    else
        result = Py_NewRef(Py_None);
    free_page(&page);
    return result;
}

/* How the bytes of a table of common values are laid out. */
static void lay_out(Weights *weights, const char *table, int64_t slots)
{
    memcpy(&weights->hashing, table, sizeof weights->hashing);
    weights->slots = (const Common *)(table + sizeof weights->hashing);
    weights->filter = (const uint8_t *)(weights->slots + slots);
    for (weights->shift = 32; slots > 1; slots /= 2)
        weights->shift--;
}

static size_t size_of_table(int64_t slots) { return sizeof(Hashing) + (size_t)slots * (sizeof(Common) + 1); }

/* An empty table of common values in `bytes`, of size_of_table. */
static void clear_table(Weights *table, char *bytes, int64_t slots)
{
    memcpy(bytes, &(Hashing){multiplier, addend}, sizeof(Hashing));
    lay_out(table, bytes, slots);
    memset((void *)table->slots, 0xFF, (size_t)slots * sizeof(Common));
    memset((void *)table->filter, 0, (size_t)slots);
}

static void put_weight(Weights *table, int32_t value, uint32_t weight)
{
    uint32_t bit = filter_bit(table, value);
    ((Common *)table->slots)[common_slot(table, value)] = (Common){value, weight};
    ((uint8_t *)table->filter)[bit / 8] |= (uint8_t)(1 << bit % 8);
}

/* Slots of a table of `count` values, a power of two. */
static int64_t slots_for(int64_t count)
{
    int64_t slots = 16;
    while (slots < 3 * count)
        slots *= 2;
    return slots;
}

static PyObject *common_table(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *values, *weights, *result = NULL;
    Py_buffer of = {0}, are = {0};
    if (!PyArg_ParseTuple(arguments, "OO", &values, &weights))
        return NULL;
    int has_values = view_row(values, sizeof(int32_t), &of), has_weights = view_row(weights, sizeof(int64_t), &are);
    int64_t count = of.len / (int64_t)sizeof(int32_t), slots = 0;
    if (has_values && has_weights && count == are.len / (int64_t)sizeof(int64_t) && count < 1 << 26) {
        slots = slots_for(count);
        result = bytes_of(NULL, (int64_t)size_of_table(slots));
    }
    if (result) {
        Weights table;
        clear_table(&table, PyBytes_AsString(result), slots);
        for (int64_t i = 0; i < count; i++)
            put_weight(&table, ((int32_t *)of.buf)[i], (uint32_t)((int64_t *)are.buf)[i]);
    }
    if (has_values)
        PyBuffer_Release(&of);
    if (has_weights)
        PyBuffer_Release(&are);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* Room for the weights of a page. Returns 0 without memory. */
static int make_room(Weights *weights, const Page *page)
{
    weights->weights = malloc((size_t)page->offsets[page->count] * sizeof *weights->weights + 1);
    weights->looked_up = calloc((size_t)page->count + 1, 1);
    weights->maybe = malloc((size_t)page->offsets[page->count] * sizeof *weights->maybe + 1);
    return weights->weights && weights->looked_up && weights->maybe;
}

/* Prepare the weights of a page from a common_table or None. Returns 0 for anything else, or without memory. */
static int get_weights(Weights *weights, PyObject *table, const Page *page)
{
    if (table == Py_None)
        return 1;
    int64_t size = PyBytes_Check(table) ? PyBytes_Size(table) : 0;
    int64_t slots = (size - (int64_t)sizeof(Hashing)) / (int64_t)(sizeof(Common) + 1);
    if (slots < 16 || slots & (slots - 1) || slots > 1 << 28 || (size_t)size != size_of_table(slots))
        return 0;
    lay_out(weights, PyBytes_AsString(table), slots);
    return make_room(weights, page);
}

/* The arguments of `leaders` and `pairs`. */
typedef struct {
    Page page;
    Rule rule;
    Weights weights;
    Weights *common; /* these, or NULL: nothing is common */
    long long old;   /* of `leaders`: so many hits are leaders already */
} Question;

static int rule_is_regular(const Rule *rule)
{
    return rule->least >= 0 && rule->least <= 1 && rule->asked >= 0 && rule->common > 0 &&
           rule->power >= 0 && rule->margin >= 0 && rule->adds > 0 && rule->content >= 0 && rule->differ >= 0;
}

/* Read a native.Rule. 0: an error was raised. */
static int get_rule(PyObject *tuple, Rule *rule)
{
    long long shortest, measure;
    if (!PyArg_ParseTuple(tuple, "ddddddddddLL:rule", &rule->least, &rule->asked, &rule->common, &rule->power, &rule->margin,
                          &rule->adds, &rule->content, &rule->differ, &rule->edges, &rule->twice, &shortest,
                          &measure))
        return 0;
    rule->shortest = shortest;
    rule->measure = measure;
    return 1;
}

/* Read the arguments of `leaders` and `pairs`. 1: done, 0: something is not regular, -1: it is an error. */
static int get_question(Question *question, PyObject *arguments, const char *format)
{
    PyObject *sketches, *offsets, *numbers, *table;
    long long k;
    *question = (Question){0};
    if (!PyArg_ParseTuple(arguments, format, &sketches, &offsets, &k, &PyTuple_Type, &numbers, &table, &question->old)
        || !get_rule(numbers, &question->rule))
        return -1;
    if (!rule_is_regular(&question->rule) || question->rule.measure != BY_KMV)
        return 0;
    if (!copy_page(&question->page, sketches, offsets, k) || !get_weights(&question->weights, table, &question->page))
        return 0;
    question->common = table == Py_None ? NULL : &question->weights;
    return 1;
}

static PyObject *answer(Question *question, PyObject *result)
{
    free_page(&question->page);
    free_weights(&question->weights);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

static PyObject *leaders(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Question question;
    PyObject *result = NULL;
    int fine = get_question(&question, arguments, "OOLO!OL:leaders");
    int64_t size = question.page.count * (int64_t)sizeof(int64_t);
    if (fine > 0 && (result = Py_BuildValue("NN", bytes_of(NULL, size), bytes_of(NULL, size)))) {
        int64_t *found = (int64_t *)PyBytes_AsString(PyTuple_GetItem(result, 0));
        double *similarities = (double *)PyBytes_AsString(PyTuple_GetItem(result, 1));
        Py_BEGIN_ALLOW_THREADS
        fine = find_leaders(&question.page, &question.rule, question.common, question.old, found, similarities);
        Py_END_ALLOW_THREADS
        if (!fine)
            Py_CLEAR(result);
    }
    return answer(&question, result);
}

/* Pairs as columns, ordered by the first, then the second. NULL: no memory. */
static PyObject *columns_of(const Page *page, const Pair *pairs, int64_t count)
{
    int64_t size = count * (int64_t)sizeof(int64_t), *next = calloc((size_t)page->count + 1, sizeof *next);
    PyObject *result = Py_BuildValue("NNN", bytes_of(NULL, size), bytes_of(NULL, size), bytes_of(NULL, size));
    if (next && result) {
        int64_t *first = (int64_t *)PyBytes_AsString(PyTuple_GetItem(result, 0));
        int64_t *second = (int64_t *)PyBytes_AsString(PyTuple_GetItem(result, 1));
        double *similarity = (double *)PyBytes_AsString(PyTuple_GetItem(result, 2));
        for (int64_t i = 0; i < count; i++)
            next[pairs[i].hits[0] + 1]++;
        for (int64_t hit = 0; hit < page->count; hit++)
            next[hit + 1] += next[hit];
        for (int64_t i = 0; i < count; i++) {
            int64_t at = next[pairs[i].hits[0]]++;
            first[at] = pairs[i].hits[0];
            second[at] = pairs[i].hits[1];
            similarity[at] = resemblance_of(pairs + i);
        }
    } else
        Py_CLEAR(result);
    free(next);
    return result;
}

static PyObject *pairs(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Question question;
    Pair *found = NULL;
    PyObject *result = NULL;
    int64_t count = -1;
    if (get_question(&question, arguments, "OOLO!O:pairs") > 0) {
        Py_BEGIN_ALLOW_THREADS
        count = find_pairs(&question.page, &question.rule, question.common, &found);
        Py_END_ALLOW_THREADS
    }
    if (count >= 0)
        result = columns_of(&question.page, found, count);
    free(found);
    return answer(&question, result);
}
