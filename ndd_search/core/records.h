/* Compares dates, and rules out pairs of a page (items/compare.py, items/page.py). */
#pragma once
#include "names.h"

/* The steps of the similarity of two dates, as in items/compare.py: Dates.compare. */
static int64_t date_step(const int64_t *a, const int64_t *b)
{
    static const int64_t places[] = {1000, 100, 10, 1, 10, 1, 10, 1};
    int year = a[0] == b[0], month = a[1] == b[1], day = a[2] == b[2];
    int has_year = a[0] > 0 && b[0] > 0, has_month = a[1] > 0 && b[1] > 0, has_day = a[2] > 0 && b[2] > 0;
    int same_year = year && has_year, same_month = month && has_month, same_day = day && has_day;
    if (year && month && day)
        return 9;
    if (same_year && same_month && !has_day)
        return 8;
    if (has_year && has_month && has_day) {
        if (year && a[1] == b[2] && a[2] == b[1])
            return 7;
        int differ = 0;
        for (int i = 0; i < 8; i++) {
            int part = i < 4 ? 0 : i < 6 ? 1 : 2;
            differ += a[part] / places[i] % 10 != b[part] / places[i] % 10;
        }
        if (differ == 1)
            return 6;
    }
    if (same_year)
        return same_month || same_day ? 5 : has_month ? 2 : 4;
    if (same_month && same_day)
        return 3;
    return a[0] - b[0] == 1 || b[0] - a[0] == 1;
}

PyDoc_STRVAR(dates_doc, "dates(parts, first, second) -> bytes or None. int64: year, month and day of each date; pairs of\n"
                        "them. Returns the step of each pair, 0..9.");

static PyObject *dates(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3], *result = NULL;
    Py_buffer views[3];
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOO:dates", &given[0], &given[1], &given[2]))
        return NULL;
    while (read < 3 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t pairs = fine ? length_in(&views[1], 8) : 0, count = fine ? length_in(&views[0], 8) / 3 : 0;
    if (fine && length_in(&views[2], 8) == pairs && all_within(views[1].buf, pairs, count)
        && all_within(views[2].buf, pairs, count)) {
        const int64_t *parts = views[0].buf, *first = views[1].buf, *second = views[2].buf;
        int64_t *steps = malloc(((size_t)pairs + 1) * sizeof(int64_t));
        if (steps) {
            PyThreadState *released = PyEval_SaveThread();
            for (int64_t pair = 0; pair < pairs; pair++)
                steps[pair] = date_step(parts + 3 * first[pair], parts + 3 * second[pair]);
            PyEval_RestoreThread(released);
            result = bytes_of(steps, pairs * (int64_t)sizeof(int64_t));
        }
        free(steps);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

PyDoc_STRVAR(left_over_doc, "left_over(against, table, grades, rest, most) -> (places, against), or None.\n"
                            "against: float64, a row of `kinds` for each pair; see Model.left_over in items/model.py.");

static PyObject *left_over(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[4], *result = NULL;
    Py_buffer views[4];
    double most;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOOd:left_over", &given[0], &given[1], &given[2], &given[3], &most))
        return NULL;
    while (read < 4 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t pairs = fine ? length_in(&views[2], 8) : 0, kinds = fine ? length_in(&views[3], 8) : 0;
    int64_t columns = kinds ? length_in(&views[1], 8) / kinds : 0;
    if (kinds && length_in(&views[0], 8) == pairs * kinds && length_in(&views[1], 8) == columns * kinds && columns
        && all_within(views[2].buf, pairs, columns)) {
        const double *against = views[0].buf, *table = views[1].buf, *rest = views[3].buf;
        const int64_t *grades = views[2].buf;
        int64_t *places = malloc(((size_t)pairs + 1) * sizeof(int64_t)), left = 0;
        double *kept = malloc(((size_t)pairs * (size_t)kinds + 1) * sizeof(double));
        for (int64_t pair = 0; places && kept && pair < pairs; pair++) {
            const double *row = table + grades[pair] * kinds;
            double *sum = kept + left * kinds;
            int open = 1;
            for (int64_t kind = 0; kind < kinds; kind++) {
                sum[kind] = against[pair * kinds + kind] + row[kind];
                open &= sum[kind] + rest[kind] <= most;
            }
            places[left] = pair;
            left += open;
        }
        if (places && kept) {
            PyObject *sums = bytes_of(kept, left * kinds * (int64_t)sizeof(double));
            PyObject *which = bytes_of(places, left * (int64_t)sizeof(int64_t));
            result = sums && which ? Py_BuildValue("NN", which, sums) : NULL;
        }
        free(places);
        free(kept);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

PyDoc_STRVAR(mixture_doc, "mixture(rows, counts, logs, kinds) -> (weights, likelihoods, sums), or None.\n"
                          "See learning.py. rows, counts: int64; logs: float64 as int64.");

/* One round of expectation maximisation. rows: a column of `logs` for each field; its first row holds the shares. */
static void expect(const int64_t *rows, const int64_t *counts, int64_t count, int64_t fields, const double *logs,
                   int64_t kinds, double *weights, double *likelihoods, double *sums)
{
    for (int64_t i = 0; i < count; i++) {
        double *weight = weights + i * kinds, most = -INFINITY, total = 0;
        memcpy(weight, logs, (size_t)kinds * sizeof(double));
        for (int64_t f = 0; f < fields; f++) {
            const double *log = logs + rows[i * fields + f] * kinds;
            for (int64_t kind = 0; kind < kinds; kind++)
                weight[kind] += log[kind];
        }
        for (int64_t kind = 0; kind < kinds; kind++)
            most = weight[kind] > most ? weight[kind] : most;
        for (int64_t kind = 0; kind < kinds; kind++)
            total += weight[kind] = weight[kind] < most - 50 ? 0 : exp(weight[kind] - most);
        likelihoods[i] = most + log(total);
        for (int64_t kind = 0; kind < kinds; kind++) {
            weight[kind] /= total;
            sums[kind] += weight[kind] * (double)counts[i];
        }
        for (int64_t f = 0; f < fields; f++) {
            double *sum = sums + rows[i * fields + f] * kinds;
            for (int64_t kind = 0; kind < kinds; kind++)
                sum[kind] += weight[kind] * (double)counts[i];
        }
    }
}

static PyObject *mixture(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3], *result = NULL;
    Py_buffer views[3];
    long long kinds;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOL:mixture", &given[0], &given[1], &given[2], &kinds))
        return NULL;
    while (read < 3 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t count = fine ? length_in(&views[1], 8) : 0, columns = fine && kinds > 0 ? length_in(&views[2], 8) / kinds : 0;
    int64_t fields = count ? length_in(&views[0], 8) / count : 0;
    if (count && columns > 0 && length_in(&views[0], 8) == count * fields && length_in(&views[2], 8) == columns * kinds
        && all_within(views[0].buf, count * fields, columns)) {
        double *weights = malloc((size_t)(count * kinds) * sizeof(double)), *likelihoods = malloc((size_t)count * sizeof(double));
        double *sums = calloc((size_t)(columns * kinds), sizeof(double));
        if (weights && likelihoods && sums) {
            PyThreadState *released = PyEval_SaveThread();
            expect(views[0].buf, views[1].buf, count, fields, views[2].buf, kinds, weights, likelihoods, sums);
            PyEval_RestoreThread(released);
            PyObject *one = bytes_of(weights, count * kinds * (int64_t)sizeof(double));
            PyObject *two = bytes_of(likelihoods, count * (int64_t)sizeof(double));
            PyObject *three = bytes_of(sums, columns * kinds * (int64_t)sizeof(double));
            result = one && two && three ? Py_BuildValue("NNN", one, two, three) : NULL;
        }
        free(weights);
        free(likelihoods);
        free(sums);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
