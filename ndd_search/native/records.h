/* Compares pairs of records field by field (items/grades.py). */
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
    const int64_t *first, *second; /* records of each pair */
    const double *shares;          /* of each kind of other pairs */
    const Stage *stages;
    int64_t pairs, kinds, count; /* count: of stages */
    double most;
    float *similarity; /* of each stage and pair, as are the grades */
    int16_t *grades;
    char *left; /* of each pair whether no stage has ruled it out */
    int threads, fine[MOST_THREADS];
} Screening;

static int is_left(const Screening *all, const Stage *stages, int64_t pair, double *against)
{
    memcpy(against, all->shares, (size_t)all->kinds * sizeof(double));
    for (int64_t s = 0; s < all->count; s++) {
        const double *table = stages[s].rows[OF_TABLE].buf, *rest = stages[s].rows[OF_REST].buf;
        double similarity;
        int64_t grade = graded(&stages[s], all->first[pair], all->second[pair], &similarity);
        int64_t row = grade < 0 ? (stages[s].edges + 1) * (stages[s].commons + 1) : grade;
        all->similarity[s * all->pairs + pair] = (float)similarity;
        all->grades[s * all->pairs + pair] = (int16_t)grade;
        for (int64_t kind = 0; kind < all->kinds; kind++) {
            against[kind] += table[row * all->kinds + kind];
            if (!(against[kind] + rest[kind] <= all->most))
                return 0;
        }
    }
    return 1;
}

/* Compare the pairs of one thread, with notes of its own. */
static void screen_part(void *job, int number)
{
    Screening *all = job;
    size_t stages = (size_t)all->count;
    Stage *own = malloc((stages + 1) * sizeof(Stage));
    double *against = malloc((size_t)all->kinds * sizeof(double));
    int fine = own && against;
    int64_t ready = 0, to = all->pairs * (number + 1) / all->threads;
    if (fine)
        memcpy(own, all->stages, stages * sizeof(Stage));
    for (; fine && ready < all->count; ready++)
        if (own[ready].values.kind == OF_NAMES)
            fine = make_notes(&own[ready].values.names);
    for (int64_t pair = all->pairs * number / all->threads; fine && pair < to; pair++)
        all->left[pair] = (char)is_left(all, own, pair, against);
    while (ready-- > 0)
        if (own[ready].values.kind == OF_NAMES)
            free_notes(&own[ready].values.names);
    free(own);
    free(against);
    all->fine[number] = fine;
}

static PyObject *screened_of(const Py_buffer *views, const Stage *stages, int64_t count, double most, int threads)
{
    Screening all = {.first = views[0].buf, .second = views[1].buf, .shares = views[2].buf, .stages = stages,
                     .pairs = length_in(&views[0], 8), .kinds = length_in(&views[2], 8), .count = count, .most = most};
    int64_t cells = all.pairs * count;
    PyObject *result = Py_BuildValue("NNN", bytes_of(NULL, cells * (int64_t)sizeof(float)),
                                     bytes_of(NULL, cells * (int64_t)sizeof(int16_t)), bytes_of(NULL, all.pairs));
    if (!result)
        return NULL;
    all.similarity = (float *)PyBytes_AsString(PyTuple_GetItem(result, 0));
    all.grades = (int16_t *)PyBytes_AsString(PyTuple_GetItem(result, 1));
    all.left = PyBytes_AsString(PyTuple_GetItem(result, 2));
    Team team;
    PyThreadState *released = PyEval_SaveThread();
    start_team(&team, all.pairs > SMALL ? threads : 1);
    all.threads = team.threads;
    do_together(&team, screen_part, &all);
    end_team(&team);
    PyEval_RestoreThread(released);
    for (int i = 0; i < all.threads; i++)
        if (!all.fine[i])
            Py_CLEAR(result);
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
