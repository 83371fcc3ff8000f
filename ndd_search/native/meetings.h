/* Records that share tokens: of each record, those that share most information with it (items/candidate_pairs.py). */
#pragma once
#include "page_calls.h"
#include "team.h"

enum { SMALL = 1 << 14 }; /* entries or pairs that are not worth a second thread */

typedef struct {
    int64_t *pairs, used, room; /* lower record * records + higher record of each pair; a pair may be there twice */
} Met;

/* A record that shares something with another one, as a number: the more is shared, the larger, then the first record. */
static int64_t candidate_of(int64_t shared, int32_t record)
{
    return (shared < INT32_MAX ? shared : INT32_MAX) << 31 | (INT32_MAX - record);
}

static int32_t record_of(int64_t candidate)
{
    return INT32_MAX - (int32_t)(candidate & INT32_MAX);
}

/* Move the `most` largest of some candidates to the front (Hoare 1961, "Algorithm 65: find"). */
static void select_largest(int64_t *candidates, int64_t count, int64_t most)
{
    for (int64_t from = 0, to = count - 1; from < to && most < count;) {
        int64_t pivot = candidates[from + (to - from) / 2], low = from, high = to;
        while (low <= high) {
            while (candidates[low] > pivot)
                low++;
            while (candidates[high] < pivot)
                high--;
            if (low <= high) {
                int64_t moved = candidates[low];
                candidates[low++] = candidates[high];
                candidates[high--] = moved;
            }
        }
        if (most - 1 <= high)
            to = high;
        else if (most - 1 >= low)
            from = low;
        else
            return;
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

static int add_meetings(Met *met, int64_t records, int64_t record, const int64_t *kept, int64_t size)
{
    int64_t *larger = with_room(met->pairs, &met->room, met->used + size, sizeof *larger);
    if (size && !larger)
        return 0;
    met->pairs = larger;
    for (int64_t i = 0; i < size; i++) {
        int64_t other = record_of(kept[i]);
        met->pairs[met->used++] = record < other ? record * records + other : other * records + record;
    }
    return 1;
}

typedef struct {
    int64_t first, information; /* of the records that hold a token the first one; those of the next token follow */
} Token;

/* What all threads read. */
typedef struct {
    Token *tokens;
    int64_t *record_ends;     /* where the tokens of each record begin */
    int32_t *holders, *held;  /* records of each token, tokens of each record */
    int64_t records, most, step;
    int threads;
    Met *met;                 /* of each thread */
    int *fine;                /* of each thread, whether there was memory */
} Meetings;

/* Look up the tokens of a record: the records that hold one, of which there are `count`, and what is shared with each. */
static int64_t meet_holders(const Meetings *all, int64_t one, int64_t *shared, int32_t *touched)
{
    int64_t count = 0, end = all->record_ends[one + 1];
    int64_t next = one + all->step < all->records ? one + all->step : one, next_end = all->record_ends[next + 1];
    for (int64_t i = all->record_ends[next]; i < next_end; i++) /* they are at random places: ask for them in advance */
        FETCH(all->tokens + all->held[i]);
    for (int64_t i = all->record_ends[one]; i < end; i++)
        FETCH(all->holders + all->tokens[all->held[i]].first);
    for (int64_t i = all->record_ends[one]; i < end; i++) {
        const Token *token = all->tokens + all->held[i];
        for (int64_t j = token->first; j < token[1].first; j++) {
            int32_t other = all->holders[j];
            touched[count] = other;
            count += shared[other] == 0;
            shared[other] += token->information + (shared[other] == 0);
        }
    }
    return count;
}

/* Find the pairs of every so many records, `number` the first; see find_meetings. */
static void meet_records(void *job, int number)
{
    const Meetings *all = job;
    Met *met = all->met + number;
    int64_t *shared = calloc((size_t)all->records + 1, sizeof(int64_t)); /* 1 + what is shared with a record; 0: nothing */
    int32_t *touched = malloc(((size_t)all->records + 1) * sizeof(int32_t));
    int64_t *candidates = malloc(((size_t)all->records + 1) * sizeof(int64_t));
    int fine = shared && touched && candidates;
    for (int64_t one = number * all->step; fine && one < all->records; one += all->threads * all->step) {
        int64_t count = meet_holders(all, one, shared, touched), size = 0;
        for (int64_t i = 0; i < count; i++) {
            if (touched[i] != one)
                candidates[size++] = candidate_of(shared[touched[i]], touched[i]);
            shared[touched[i]] = 0;
        }
        select_largest(candidates, size, all->most);
        size = size < all->most ? size : all->most;
        fine = add_meetings(met, all->records, one, candidates, size);
    }
    free(shared);
    free(touched);
    free(candidates);
    all->fine[number] = fine;
}

/* Find the pairs among the `most` best of either record; a pair that is among those of both is listed twice.
 * token, record: of each entry. information: of each token, at least 0. step: only of each step-th record are the best
 * looked for. met: of each thread. 0: no memory. */
static int find_meetings(const int64_t *token, const int64_t *record, int64_t entries, const int64_t *information,
                         int64_t tokens, int64_t records, int64_t most, int64_t step, int threads, Met *met)
{
    int fine[MOST_THREADS] = {0}, all_fine = 1;
    int64_t *ends = NULL;
    Meetings all = {.records = records, .most = most, .step = step, .met = met, .fine = fine};
    Team team;
    all.tokens = malloc(((size_t)tokens + 1) * sizeof(Token));
    all_fine = order_by(token, record, entries, tokens, &ends, &all.holders)
               && order_by(record, token, entries, records, &all.record_ends, &all.held) && all.tokens;
    for (int64_t i = 0; all_fine && i <= tokens; i++)
        all.tokens[i] = (Token){ends[i], i < tokens ? information[i] : 0};
    if (all_fine) {
        start_team(&team, entries > SMALL ? threads : 1);
        all.threads = team.threads;
        do_together(&team, meet_records, &all);
        end_team(&team);
        for (int i = 0; i < team.threads; i++)
            all_fine = all_fine && fine[i];
    }
    free(all.tokens);
    free(all.holders);
    free(all.held);
    free(all.record_ends);
    free(ends);
    return all_fine;
}

static int all_within(const int64_t *values, int64_t count, int64_t bound)
{
    for (int64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] >= bound)
            return 0;
    return 1;
}

static PyObject *meetings(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[3], *result = NULL;
    Py_buffer views[3];
    long long records, most, step;
    int threads;
    if (!PyArg_ParseTuple(arguments, "OOO(LLLi):meetings", &given[0], &given[1], &given[2], &records, &most, &step, &threads))
        return NULL;
    if (!get_rows(given, 3, views))
        return Py_NewRef(Py_None);
    int64_t entries = length_in(&views[0], 8), tokens = length_in(&views[2], 8);
    if (views[0].len == views[1].len && records >= 0 && records < INT32_MAX && most > 0 && step > 0 && step < INT32_MAX
        && tokens < INT32_MAX && all_within(views[0].buf, entries, tokens) && all_within(views[1].buf, entries, records)
        && all_within(views[2].buf, tokens, INT32_MAX)) {
        Met found[MOST_THREADS] = {{0}};
        int64_t used = 0;
        PyThreadState *released = PyEval_SaveThread();
        int fine = find_meetings(views[0].buf, views[1].buf, entries, views[2].buf, tokens, records, most, step, threads, found);
        PyEval_RestoreThread(released);
        for (int i = 0; i < MOST_THREADS; i++)
            used += found[i].used;
        if (fine && (result = bytes_of(NULL, used * (int64_t)sizeof(int64_t))) != NULL) {
            char *to = PyBytes_AsString(result);
            for (int i = 0; i < MOST_THREADS; i++) {
                size_t size = (size_t)found[i].used * sizeof(int64_t);
                if (size)
                    memcpy(to, found[i].pairs, size);
                to += size;
            }
        }
        for (int i = 0; i < MOST_THREADS; i++)
            free(found[i].pairs);
    }
    release_rows(views, 3);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
