/* Divides groups of records by the evidence for and against each pair (items/clusters.py). */
#pragma once
#include "meetings.h"

/* Join the two groups with most evidence for one thing until none is left. odds: of each pair of members, count * count;
 * it is changed. group: of each member the first one of its group. */
static void contract(double *odds, int64_t count, int64_t *group)
{
    for (int64_t i = 0; i < count; i++)
        group[i] = i;
    for (;;) {
        int64_t one = -1, other = -1;
        double most = 0;
        for (int64_t i = 0; i < count; i++)
            for (int64_t j = i + 1; group[i] == i && j < count; j++)
                if (group[j] == j && (one < 0 ? odds[i * count + j] >= most : odds[i * count + j] > most)) {
                    one = i;
                    other = j;
                    most = odds[i * count + j];
                }
        if (one < 0)
            return;
        for (int64_t i = 0; i < count; i++) {
            odds[one * count + i] += odds[other * count + i];
            odds[i * count + one] = odds[one * count + i];
            if (group[i] == other)
                group[i] = one;
        }
    }
}

/* Divide each component of 3 to `most` records. leader: of each record the first one of its component, then of its group.
 * 0: no memory. */
static int contract_all(const int64_t *first, const int64_t *second, const double *odds, int64_t pairs, int64_t records,
                        int64_t most, int64_t *leader)
{
    int64_t *member_ends = NULL, *pair_ends = NULL, *of_pairs = malloc(((size_t)pairs + 1) * sizeof(int64_t));
    int64_t *numbers = malloc(((size_t)(records > pairs ? records : pairs) + 1) * sizeof(int64_t)), *group = malloc((size_t)most * sizeof(int64_t));
    int32_t *members = NULL, *chosen = NULL; /* records and pairs of each component */
    double *table = malloc((size_t)(most * most) * sizeof(double));
    int fine = of_pairs && numbers && group && table;
    for (int64_t i = 0; fine && (i < records || i < pairs); i++)
        numbers[i] = i;
    for (int64_t pair = 0; fine && pair < pairs; pair++)
        of_pairs[pair] = leader[first[pair]];
    fine = fine && order_by(leader, numbers, records, records, &member_ends, &members)
           && order_by(of_pairs, numbers, pairs, records, &pair_ends, &chosen);
    for (int64_t component = 0; fine && component < records; component++) {
        const int32_t *own = members + member_ends[component];
        int64_t count = member_ends[component + 1] - member_ends[component];
        if (count < 3 || count > most)
            continue;
        for (int64_t i = 0; i < count; i++)
            numbers[own[i]] = i;
        memset(table, 0, (size_t)(count * count) * sizeof(double));
        for (int64_t i = pair_ends[component]; i < pair_ends[component + 1]; i++) {
            int64_t one = numbers[first[chosen[i]]], other = numbers[second[chosen[i]]];
            table[one * count + other] = table[other * count + one] = odds[chosen[i]];
        }
        contract(table, count, group);
        for (int64_t i = 0; i < count; i++)
            leader[own[i]] = own[group[i]];
    }
    free(of_pairs);
    free(numbers);
    free(group);
    free(table);
    free(member_ends);
    free(members);
    free(pair_ends);
    free(chosen);
    return fine;
}

PyDoc_STRVAR(contracted_doc, "contracted(first, second, odds, component, most) -> bytes or None. The first record of each\n"
                             "record's group. int64; odds: float64 as int64.");

static PyObject *contracted(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[4], *result = NULL;
    Py_buffer views[4];
    long long most;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOOL:contracted", &given[0], &given[1], &given[2], &given[3], &most))
        return NULL;
    while (read < 4 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t pairs = fine ? length_in(&views[0], 8) : 0, records = fine ? length_in(&views[3], 8) : 0;
    int64_t *leader = malloc(((size_t)records + 1) * sizeof(int64_t));
    const int64_t *component = fine ? views[3].buf : NULL;
    fine = fine && leader && length_in(&views[1], 8) == pairs && length_in(&views[2], 8) == pairs && most > 0 && most < 1 << 15
           && records < INT32_MAX && pairs < INT32_MAX && all_within(views[0].buf, pairs, records)
           && all_within(views[1].buf, pairs, records) && all_within(component, records, records);
    for (int64_t pair = 0; fine && pair < pairs; pair++) /* both are in one component */
        fine = component[((const int64_t *)views[0].buf)[pair]] == component[((const int64_t *)views[1].buf)[pair]];
    if (fine) {
        PyThreadState *released = PyEval_SaveThread();
        memcpy(leader, component, (size_t)records * sizeof(int64_t));
        fine = contract_all(views[0].buf, views[1].buf, views[2].buf, pairs, records, most, leader);
        PyEval_RestoreThread(released);
        result = fine ? bytes_of(leader, records * (int64_t)sizeof(int64_t)) : NULL;
    }
    free(leader);
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
