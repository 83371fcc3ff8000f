/* Compares pairs of records field by field (items/rule_out_pairs.py). */
#pragma once
#include "values.h"

enum { OF_CODES, OF_EDGES, OF_COMMON, OF_TABLE, OF_REST, STAGE_ROWS };

/* A field: its values, and what each grade of their agreement says. */
typedef struct {
    int read;
    Py_buffer rows[STAGE_ROWS];
    Values values;
    int64_t edges, commons;
} Stage;

static int read_stage(PyObject *given, int64_t kinds, Stage *stage)
{
    if (!PyTuple_Check(given) || PyTuple_Size(given) != 2 + STAGE_ROWS)
        return 0;
    for (; stage->read < STAGE_ROWS; stage->read++)
        if (!get_row(PyTuple_GetItem(given, 2 + stage->read), 8, &stage->rows[stage->read]))
            return 0;
    stage->edges = length_in(&stage->rows[OF_EDGES], 8);
    stage->commons = length_in(&stage->rows[OF_COMMON], 8);
    const int64_t *codes = stage->rows[OF_CODES].buf;
    int64_t records = length_in(&stage->rows[OF_CODES], 8), grades = (stage->edges + 1) * (stage->commons + 1);
    if (length_in(&stage->rows[OF_REST], 8) != kinds || length_in(&stage->rows[OF_TABLE], 8) != (grades + 1) * kinds
        || grades > INT16_MAX || !read_values(PyTuple_GetItem(given, 0), PyTuple_GetItem(given, 1), &stage->values))
        return 0;
    for (int64_t record = 0; record < records; record++)
        if (codes[record] < -1 || codes[record] >= stage->values.count)
            return 0;
    return 1;
}

/* Compare two records by one field: their similarity and its grade, NAN and -1 if either has no value. */
static int64_t graded(const Stage *stage, int64_t first, int64_t second, double *similarity)
{
    const int64_t *codes = stage->rows[OF_CODES].buf;
    const double *edges = stage->rows[OF_EDGES].buf, *commons = stage->rows[OF_COMMON].buf;
    int64_t a = codes[first], b = codes[second], grade = 0;
    double share;
    *similarity = NAN;
    if (a < 0 || b < 0)
        return -1;
    *similarity = values_alike(&stage->values, a < b ? a : b, a < b ? b : a, &share);
    if (a == b || *similarity > 1)
        *similarity = 1;
    for (int64_t edge = 0; edge < stage->edges; edge++)
        grade += *similarity < edges[edge];
    grade *= stage->commons + 1;
    for (int64_t common = 0; common < stage->commons; common++)
        grade += share < commons[common];
    return grade;
}

typedef struct {
    int64_t from, to;      /* pairs that are compared */
    int64_t left, *places; /* of the pairs that are left */
    float *similarity;     /* of each pair and stage */
    int16_t *grades;
    double *against;       /* of one pair and each kind */
} Screened;

typedef struct {
    const int64_t *first, *second; /* records of each pair */
    const double *shares;          /* of each kind of other pairs */
    const Stage *stages;
    int64_t pairs, kinds, count; /* count: of stages */
    double most;
    Screened parts[MOST_THREADS];
    int threads, fine[MOST_THREADS];
} Screening;

static void screen(const Screening *all, const Stage *stages, Screened *found)
{
    int64_t kinds = all->kinds, count = all->count;
    for (int64_t pair = found->from; pair < found->to; pair++) {
        double *against = found->against;
        int open = 1;
        memcpy(against, all->shares, (size_t)kinds * sizeof(double));
        for (int64_t s = 0; s < count && open; s++) {
            const double *table = stages[s].rows[OF_TABLE].buf, *rest = stages[s].rows[OF_REST].buf;
            double similarity;
            int64_t grade = graded(&stages[s], all->first[pair], all->second[pair], &similarity);
            int64_t row = grade < 0 ? (stages[s].edges + 1) * (stages[s].commons + 1) : grade;
            found->similarity[found->left * count + s] = (float)similarity;
            found->grades[found->left * count + s] = (int16_t)grade;
            for (int64_t kind = 0; kind < kinds; kind++) {
                against[kind] += table[row * kinds + kind];
                open &= against[kind] + rest[kind] <= all->most;
            }
        }
        found->places[found->left] = pair;
        found->left += open;
    }
}

/* Compare the pairs of one thread, with notes of its own. */
static void screen_part(void *job, int number)
{
    Screening *all = job;
    Screened *part = all->parts + number;
    size_t stages = (size_t)all->count;
    part->from = all->pairs * number / all->threads;
    part->to = all->pairs * (number + 1) / all->threads;
    size_t pairs = (size_t)(part->to - part->from) + 1;
    Stage *own = malloc((stages + 1) * sizeof(Stage));
    part->places = malloc(pairs * sizeof(int64_t));
    part->similarity = malloc(pairs * stages * sizeof(float));
    part->grades = malloc(pairs * stages * sizeof(int16_t));
    part->against = malloc((size_t)all->kinds * sizeof(double));
    int fine = own && part->places && part->similarity && part->grades && part->against;
    int64_t ready = 0;
    if (fine)
        memcpy(own, all->stages, stages * sizeof(Stage));
    for (; fine && ready < all->count; ready++)
        if (own[ready].values.kind == OF_NAMES)
            fine = make_notes(&own[ready].values.names);
    if (fine)
        screen(all, own, part);
    while (ready-- > 0)
        if (own[ready].values.kind == OF_NAMES)
            free_notes(&own[ready].values.names);
    free(own);
    all->fine[number] = fine;
}

enum { SCREENED_ROWS = 3 };

/* What all parts have found, one row after the other. */
static PyObject *joined_parts(const Screening *all)
{
    const size_t sizes[SCREENED_ROWS] = {sizeof(int64_t), (size_t)all->count * sizeof(float), (size_t)all->count * sizeof(int16_t)};
    PyObject *rows[SCREENED_ROWS], *result = NULL;
    int64_t left = 0;
    int made = 0;
    for (int i = 0; i < all->threads; i++)
        left += all->parts[i].left;
    for (; made < SCREENED_ROWS && (rows[made] = bytes_of(NULL, left * (int64_t)sizes[made])); made++) {
        char *to = PyBytes_AsString(rows[made]);
        for (int i = 0; i < all->threads; i++) {
            const Screened *part = all->parts + i;
            const void *of[SCREENED_ROWS] = {part->places, part->similarity, part->grades};
            memcpy(to, of[made], (size_t)part->left * sizes[made]);
            to += (size_t)part->left * sizes[made];
        }
    }
    if (made == SCREENED_ROWS)
        result = Py_BuildValue("OOO", rows[0], rows[1], rows[2]);
    while (made-- > 0)
        Py_DECREF(rows[made]);
    return result;
}

static PyObject *screened_of(const Py_buffer *views, const Stage *stages, int64_t count, double most, int threads)
{
    Screening all = {.first = views[0].buf, .second = views[1].buf, .shares = views[2].buf, .stages = stages,
                     .pairs = length_in(&views[0], 8), .kinds = length_in(&views[2], 8), .count = count, .most = most};
    PyObject *result = NULL;
    Team team;
    int fine = 1;
    PyThreadState *released = PyEval_SaveThread();
    start_team(&team, all.pairs > SMALL ? threads : 1);
    all.threads = team.threads;
    do_together(&team, screen_part, &all);
    end_team(&team);
    PyEval_RestoreThread(released);
    for (int i = 0; i < all.threads; i++)
        fine = fine && all.fine[i];
    if (fine)
        result = joined_parts(&all);
    for (int i = 0; i < all.threads; i++) {
        free(all.parts[i].places);
        free(all.parts[i].similarity);
        free(all.parts[i].grades);
        free(all.parts[i].against);
    }
    return result;
}

static PyObject *screened(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3], *fields, *result = NULL;
    Py_buffer views[3];
    double most;
    int threads;
    if (!PyArg_ParseTuple(arguments, "OOOO!di:screened", &given[0], &given[1], &given[2], &PyTuple_Type, &fields, &most, &threads))
        return NULL;
    if (!get_rows(given, 3, views))
        return Py_NewRef(Py_None);
    int64_t pairs = length_in(&views[0], 8), kinds = length_in(&views[2], 8);
    int64_t count = (int64_t)PyTuple_Size(fields), ready = 0;
    Stage *stages = calloc((size_t)count + 1, sizeof(Stage));
    int fine = stages && count && kinds && length_in(&views[1], 8) == pairs;
    for (; fine && ready < count; ready++) {
        fine = read_stage(PyTuple_GetItem(fields, (Py_ssize_t)ready), kinds, &stages[ready]);
        int64_t records = fine ? length_in(&stages[ready].rows[OF_CODES], 8) : 0;
        fine = fine && all_within(views[0].buf, pairs, records) && all_within(views[1].buf, pairs, records);
    }
    if (fine)
        result = screened_of(views, stages, count, most, threads);
    while (ready-- > 0) {
        free_values(&stages[ready].values);
        while (stages[ready].read-- > 0)
            PyBuffer_Release(&stages[ready].rows[stages[ready].read]);
    }
    free(stages);
    release_rows(views, 3);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
