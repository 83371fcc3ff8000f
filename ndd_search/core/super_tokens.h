/* Tokens of two fields that are joined, so that they are rarer (items/candidates.py). */
#pragma once
#include "meetings.h"

typedef struct {
    uint64_t key; /* 1 + lower token * tokens + higher token; 0 is a free slot */
    int32_t held, id;
} JoinSlot;

typedef struct {
    const int64_t *token, *record, *field; /* of each entry, by record */
    const int64_t *allowed;                /* fields * fields: whether tokens of two fields are joined */
    int64_t entries, tokens, fields, records, most, holders;
} Joining;

typedef struct {
    JoinSlot *slot;
    int64_t first, second; /* entries */
} Join;

typedef struct {
    int64_t *token, *record, used, room;
    uint8_t *is_used; /* of each entry, whether it is part of a joined token */
    int32_t next;     /* id of a joined token */
} Joined;

static uint64_t join_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
    return key ^ key >> 32;
}

/* Where the entries of the record that begin at `start` end. */
static int64_t end_of_record(const Joining *joining, int64_t start)
{
    int64_t end = start;
    while (end < joining->entries && joining->record[end] == joining->record[start])
        end++;
    return end;
}

static uint64_t join_key(const Joining *joining, int64_t a, int64_t b)
{
    if (!joining->allowed[joining->field[a] * joining->fields + joining->field[b]])
        return 0;
    int64_t one = joining->token[a], other = joining->token[b];
    return 1 + (uint64_t)(one < other ? one : other) * (uint64_t)joining->tokens + (uint64_t)(one < other ? other : one);
}

static JoinSlot *join_slot(JoinSlot *slots, uint64_t mask, uint64_t key)
{
    uint64_t at = join_hash(key) & mask;
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & mask;
    return slots + at;
}

/* What one pass over all pairs of entries of a record does. */
typedef enum { COUNT, GUESS, COUNT_REPEATED, FILL } Pass;

static int64_t pass_over(const Joining *joining, Pass pass, uint8_t *guesses, uint64_t guess_mask, JoinSlot *slots, uint64_t mask)
{
    int64_t count = 0;
    for (int64_t start = 0, end; start < joining->entries; start = end) {
        end = end_of_record(joining, start);
        for (int64_t a = start; a < end; a++)
            for (int64_t b = a + 1; b < end; b++) {
                uint64_t key = join_key(joining, a, b);
                if (!key)
                    continue;
                count += pass == COUNT;
                if (pass == COUNT)
                    continue;
                uint8_t *guess = guesses + (join_hash(key) >> 7 & guess_mask);
                if (pass == GUESS)
                    *guess += *guess < 2;
                else if (*guess > 1) {
                    count++;
                    if (pass == FILL) {
                        JoinSlot *slot = join_slot(slots, mask, key);
                        slot->key = key;
                        slot->held++;
                    }
                }
            }
    }
    return count;
}

static int by_rareness(const void *one, const void *other)
{
    const JoinSlot *a = ((const Join *)one)->slot, *b = ((const Join *)other)->slot;
    if (a->held != b->held)
        return a->held < b->held ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Add the rarest joined tokens of each record. 0: no memory. */
static int choose_joined(const Joining *joining, const uint8_t *guesses, uint64_t guess_mask, JoinSlot *slots, uint64_t mask,
                         Joined *joined)
{
    int64_t room = 0;
    Join *found = NULL;
    int fine = 1;
    for (int64_t start = 0, end; fine && start < joining->entries; start = end) {
        int64_t count = 0, width;
        end = end_of_record(joining, start);
        width = end - start;
        if (width * width > room) {
            room = 2 * width * width;
            free(found);
            found = malloc((size_t)room * sizeof(Join));
        }
        fine = found != NULL;
        for (int64_t a = start; fine && a < end; a++)
            for (int64_t b = a + 1; b < end; b++) {
                uint64_t key = join_key(joining, a, b);
                if (!key || guesses[join_hash(key) >> 7 & guess_mask] < 2)
                    continue;
                JoinSlot *slot = join_slot(slots, mask, key);
                if (slot->held > 1 && slot->held <= joining->holders) {
                    found[count++] = (Join){slot, a, b};
                    joined->is_used[a] = joined->is_used[b] = 1;
                }
            }
        if (fine && count > joining->most) {
            qsort(found, (size_t)count, sizeof(Join), by_rareness);
            count = joining->most;
        }
        if (fine && joined->used + count > joined->room) {
            joined->room = 2 * joined->room + count;
            int64_t *token = realloc(joined->token, (size_t)joined->room * sizeof(int64_t));
            joined->token = token ? token : joined->token;
            int64_t *record = realloc(joined->record, (size_t)joined->room * sizeof(int64_t));
            joined->record = record ? record : joined->record;
            fine = token && record;
        }
        for (int64_t i = 0; fine && i < count; i++) {
            if (found[i].slot->id == 0)
                found[i].slot->id = ++joined->next;
            joined->token[joined->used] = found[i].slot->id - 1;
            joined->record[joined->used++] = joining->record[start];
        }
    }
    free(found);
    return fine;
}

static uint64_t mask_for(int64_t count)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)count)
        size *= 2;
    return size - 1;
}

/* Join tokens; a first pass leaves out most of those that only one record holds. 0: no memory. */
static int join_tokens(const Joining *joining, Joined *joined)
{
    uint64_t guess_mask = mask_for(pass_over(joining, COUNT, NULL, 0, NULL, 0)), mask = 0;
    uint8_t *guesses = calloc((size_t)guess_mask + 1, 1);
    JoinSlot *slots = NULL;
    joined->is_used = calloc((size_t)joining->entries + 1, 1);
    if (guesses) {
        pass_over(joining, GUESS, guesses, guess_mask, NULL, 0);
        mask = mask_for(pass_over(joining, COUNT_REPEATED, guesses, guess_mask, NULL, 0));
        slots = calloc((size_t)mask + 1, sizeof(JoinSlot));
    }
    int fine = slots && joined->is_used;
    if (fine) {
        pass_over(joining, FILL, guesses, guess_mask, slots, mask);
        fine = choose_joined(joining, guesses, guess_mask, slots, mask, joined);
    }
    free(guesses);
    free(slots);
    return fine;
}

PyDoc_STRVAR(joined_doc, "super_tokens(token, record, field, allowed, limits) -> (token, record, used), or None.\n"
                         "int64 arrays. limits: tokens, records, fields, most, holders. used: a byte of each entry.");

static PyObject *super_tokens(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[4], *result = NULL;
    Py_buffer views[4];
    long long tokens, records, fields, most, holders;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOO(LLLLL):super_tokens", &given[0], &given[1], &given[2], &given[3], &tokens,
                          &records, &fields, &most, &holders))
        return NULL;
    while (read < 4 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t entries = fine ? length_in(&views[0], 8) : 0;
    if (fine && length_in(&views[1], 8) == entries && length_in(&views[2], 8) == entries && tokens < INT32_MAX
        && fields >= 0 && fields < 1 << 15 && length_in(&views[3], 8) == fields * fields && most > 0 && entries < INT32_MAX
        && all_within(views[0].buf, entries, tokens) && all_within(views[1].buf, entries, records)
        && all_within(views[2].buf, entries, fields)) {
        Joining joining = {views[0].buf, views[1].buf, views[2].buf, views[3].buf, entries, tokens, fields, records, most, holders};
        Joined joined = {0};
        PyThreadState *released = PyEval_SaveThread();
        fine = join_tokens(&joining, &joined);
        PyEval_RestoreThread(released);
        if (fine) {
            PyObject *token = bytes_of(joined.token, joined.used * (int64_t)sizeof(int64_t));
            PyObject *record = bytes_of(joined.record, joined.used * (int64_t)sizeof(int64_t));
            PyObject *used = bytes_of(joined.is_used, entries);
            result = token && record && used ? Py_BuildValue("NNN", token, record, used) : NULL;
        }
        free(joined.token);
        free(joined.record);
        free(joined.is_used);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
