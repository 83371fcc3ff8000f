/* Records that share tokens: of each record, those that share most information with it (items/candidates.py). */
#pragma once
#include "page_calls.h"

typedef struct {
    int64_t shared, record; /* information that is shared, and with which record */
} Candidate;

typedef struct {
    int64_t *pairs, used, room; /* first and second of each pair, one after the other */
    int64_t met, distinct;      /* how often two records met at a token, and how many pairs did */
} Met;

static int is_better(Candidate a, Candidate b)
{
    return a.shared != b.shared ? a.shared > b.shared : a.record < b.record;
}

/* Restore a heap whose root is the worst candidate, after `place` has changed. */
static void sift_down(Candidate *heap, int64_t size, int64_t place)
{
    for (int64_t child; (child = 2 * place + 1) < size; place = child) {
        if (child + 1 < size && is_better(heap[child], heap[child + 1]))
            child++;
        if (!is_better(heap[place], heap[child]))
            return;
        Candidate moved = heap[place];
        heap[place] = heap[child];
        heap[child] = moved;
    }
}

/* Order entries by a key below `keys`: offsets of each key, and the values of its entries. 0: no memory. */
static int order_by(const int64_t *key, const int64_t *value, int64_t count, int64_t keys, int64_t **offsets, int32_t **values)
{
    *offsets = calloc((size_t)keys + 2, sizeof(int64_t));
    *values = malloc(((size_t)count + 1) * sizeof(int32_t));
    if (!*offsets || !*values)
        return 0;
    int64_t *next = *offsets + 1; /* while filling, next[k] is where the next entry of key k goes */
    for (int64_t i = 0; i < count; i++)
        next[key[i] + 1]++;
    for (int64_t k = 0; k < keys; k++)
        next[k + 1] += next[k];
    for (int64_t i = 0; i < count; i++)
        (*values)[next[key[i]]++] = (int32_t)value[i];
    return 1;
}

static int add_meetings(Met *met, int64_t record, const Candidate *kept, int64_t size)
{
    if (met->used + 2 * size > met->room) {
        int64_t room = 2 * met->room + 2 * size;
        int64_t *larger = realloc(met->pairs, (size_t)room * sizeof(int64_t));
        if (!larger)
            return 0;
        met->pairs = larger;
        met->room = room;
    }
    for (int64_t i = 0; i < size; i++) {
        int64_t other = kept[i].record;
        met->pairs[met->used++] = record < other ? record : other;
        met->pairs[met->used++] = record < other ? other : record;
    }
    return 1;
}

/* Find the pairs among the `most` best of either record; a pair that is among those of both is listed twice.
 * token, record: of each entry. information: of each token, at least 0. step: only of each step-th record are the best
 * looked for. 0: no memory. */
static int find_meetings(const int64_t *token, const int64_t *record, int64_t entries, const int64_t *information,
                         int64_t tokens, int64_t records, int64_t most, int64_t step, Met *met)
{
    int64_t *token_ends = NULL, *record_ends = NULL;
    int32_t *holders = NULL, *held = NULL; /* records of each token, tokens of each record */
    int64_t *shared = calloc((size_t)records + 1, sizeof(int64_t)); /* 1 + what is shared with this record; 0 if nothing */
    int32_t *touched = malloc(((size_t)records + 1) * sizeof(int32_t));
    Candidate *heap = malloc((size_t)(most < records ? most + 1 : records + 1) * sizeof(Candidate));
    int fine = order_by(token, record, entries, tokens, &token_ends, &holders)
               && order_by(record, token, entries, records, &record_ends, &held) && shared && touched && heap;
    for (int64_t one = 0; fine && one < records; one += step) {
        int64_t count = 0, size = 0;
        for (int64_t i = record_ends[one]; i < record_ends[one + 1]; i++) {
            int64_t more = information[held[i]];
            for (int64_t j = token_ends[held[i]]; j < token_ends[held[i] + 1]; j++) {
                int32_t other = holders[j];
                touched[count] = other;
                count += shared[other] == 0;
                shared[other] += more + (shared[other] == 0);
                met->met += other < one;
            }
        }
        for (int64_t i = 0; i < count; i++) {
            Candidate candidate = {shared[touched[i]], touched[i]};
            shared[touched[i]] = 0;
            if (touched[i] == one)
                continue;
            met->distinct += touched[i] < one;
            if (size < most) {
                heap[size++] = candidate;
                if (size == most)
                    for (int64_t place = size / 2; place-- > 0;)
                        sift_down(heap, size, place);
            } else if (is_better(candidate, heap[0])) {
                heap[0] = candidate;
                sift_down(heap, size, 0);
            }
        }
        fine = add_meetings(met, one, heap, size);
    }
    free(token_ends);
    free(holders);
    free(record_ends);
    free(held);
    free(shared);
    free(touched);
    free(heap);
    return fine;
}

static int64_t length_in(const Py_buffer *view, Py_ssize_t size)
{
    return (int64_t)(view->len / size);
}

static int all_within(const int64_t *values, int64_t count, int64_t bound)
{
    for (int64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] >= bound)
            return 0;
    return 1;
}

PyDoc_STRVAR(meetings_doc, "meetings(token, record, information, records, most, step) -> (pairs, met, distinct), or None.\n"
                           "int64 arrays. pairs: first and second of each, some of them twice.");

static PyObject *meetings(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3], *result = NULL;
    Py_buffer views[3];
    long long records, most, step;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOLLL:meetings", &given[0], &given[1], &given[2], &records, &most, &step))
        return NULL;
    while (read < 3 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t entries = fine ? views[0].len / (int64_t)sizeof(int64_t) : 0;
    int64_t tokens = fine ? views[2].len / (int64_t)sizeof(int64_t) : 0;
    if (fine && views[0].len == views[1].len && records >= 0 && records < INT32_MAX && most > 0 && step > 0 && tokens < INT32_MAX
        && all_within(views[0].buf, entries, tokens) && all_within(views[1].buf, entries, records)
        && all_within(views[2].buf, tokens, INT32_MAX)) {
        Met met = {0};
        PyThreadState *released = PyEval_SaveThread();
        fine = find_meetings(views[0].buf, views[1].buf, entries, views[2].buf, tokens, records, most, step, &met);
        PyEval_RestoreThread(released);
        if (fine) {
            PyObject *pairs = bytes_of(met.pairs, met.used * (int64_t)sizeof(int64_t));
            result = pairs ? Py_BuildValue("NLL", pairs, (long long)met.met, (long long)met.distinct) : NULL;
        }
        free(met.pairs);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
