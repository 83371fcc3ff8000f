/* Tokens of two fields that are joined, so that they are rarer (items/candidate_pairs.py). */
#pragma once
#include "meetings.h"

typedef struct {
    uint64_t key; /* 1 + lower token * tokens + higher token; 0 is a free slot */
    int32_t held, id;
} JoinSlot;

typedef struct {
    const int64_t *token, *record, *field; /* of each entry, by record */
    const int64_t *allowed;                /* fields * fields: whether tokens of two fields are joined */
    int64_t entries, tokens, fields, most, holders;
    JoinSlot *slots; /* a table of joined tokens, at most half full */
    uint64_t mask;
    int64_t used, room, widest; /* slots in use; joined tokens that records keep; pairs of entries of one record */
} Joining;

static uint64_t join_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0xd6e8feb86659fd93);
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

/* The key of two entries, 0 if they are not joined. */
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

/* Double the table, or make it. 0: no memory. */
static int grow_joins(Joining *joining)
{
    uint64_t mask = joining->slots ? 2 * joining->mask + 1 : (1 << 16) - 1;
    JoinSlot *slots = calloc((size_t)mask + 1, sizeof(JoinSlot));
    if (!slots)
        return 0;
    for (uint64_t at = 0; joining->slots && at <= joining->mask; at++)
        if (joining->slots[at].key)
            *join_slot(slots, mask, joining->slots[at].key) = joining->slots[at];
    free(joining->slots);
    joining->slots = slots;
    joining->mask = mask;
    return 1;
}

/* Count the records that hold each joined token. 0: no memory. */
static int count_joins(Joining *joining)
{
    for (int64_t start = 0, end; start < joining->entries; start = end) {
        end = end_of_record(joining, start);
        int64_t pairs = (end - start) * (end - start - 1) / 2;
        joining->widest = pairs > joining->widest ? pairs : joining->widest;
        joining->room += pairs < joining->most ? pairs : joining->most;
        for (int64_t a = start; a < end; a++)
            for (int64_t b = a + 1; b < end; b++) {
                uint64_t key = join_key(joining, a, b);
                if (!key)
                    continue;
                if (2 * (uint64_t)joining->used >= joining->mask && !grow_joins(joining))
                    return 0;
                JoinSlot *slot = join_slot(joining->slots, joining->mask, key);
                joining->used += !slot->key;
                slot->key = key;
                slot->held++;
            }
    }
    return 1;
}

static int by_rareness(const void *one, const void *other)
{
    const JoinSlot *a = one, *b = other;
    return a->held != b->held ? (a->held > b->held) - (a->held < b->held) : (a->key > b->key) - (a->key < b->key);
}

/* List of each record the rarest joined tokens that are rare enough; own: has room for those of one record. */
static int64_t list_joins(const Joining *joining, JoinSlot *own, int64_t *token, int64_t *record)
{
    int64_t count = 0;
    int32_t next = 0;
    for (int64_t start = 0, end; start < joining->entries; start = end) {
        int64_t size = 0;
        end = end_of_record(joining, start);
        for (int64_t a = start; a < end; a++)
            for (int64_t b = a + 1; b < end; b++) {
                uint64_t key = join_key(joining, a, b);
                JoinSlot *slot = key ? join_slot(joining->slots, joining->mask, key) : NULL;
                if (!slot || slot->held < 2 || slot->held > joining->holders)
                    continue;
                if (!slot->id)
                    slot->id = ++next;
                own[size++] = *slot;
            }
        if (size > joining->most) {
            qsort(own, (size_t)size, sizeof(JoinSlot), by_rareness);
            size = joining->most;
        }
        for (int64_t i = 0; i < size; i++) {
            token[count] = own[i].id - 1;
            record[count++] = joining->record[start];
        }
    }
    return count;
}

PyDoc_STRVAR(joined_doc, "super_tokens(token, record, field, allowed, limits) -> (token, record), or None.\n"
                         "int64 arrays. limits: tokens, fields, most, holders.");

static PyObject *super_tokens(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[4], *result = NULL;
    Py_buffer views[4];
    long long tokens, fields, most, holders;
    int read = 0, fine = 1;
    if (!PyArg_ParseTuple(arguments, "OOOO(LLLL):super_tokens", &given[0], &given[1], &given[2], &given[3], &tokens,
                          &fields, &most, &holders))
        return NULL;
    while (read < 4 && (fine = get_row(given[read], sizeof(int64_t), &views[read])))
        read++;
    int64_t entries = fine ? length_in(&views[0], 8) : 0;
    if (fine && length_in(&views[1], 8) == entries && length_in(&views[2], 8) == entries && tokens < INT32_MAX && fields >= 0
        && fields < 1 << 15 && length_in(&views[3], 8) == fields * fields && most > 0 && entries < INT32_MAX
        && all_within(views[0].buf, entries, tokens) && all_within(views[2].buf, entries, fields)) {
        Joining joining = {views[0].buf, views[1].buf, views[2].buf, views[3].buf, entries, tokens, fields, most, holders,
                           NULL, 0, 0, 0, 0};
        int64_t *rows[2] = {NULL, NULL}, count = 0;
        PyThreadState *released = PyEval_SaveThread();
        fine = count_joins(&joining);
        JoinSlot *own = malloc(((size_t)joining.widest + 1) * sizeof(JoinSlot));
        for (int i = 0; fine && i < 2; i++)
            fine = (rows[i] = malloc(((size_t)joining.room + 1) * sizeof(int64_t))) != NULL;
        fine = fine && own;
        if (fine)
            count = list_joins(&joining, own, rows[0], rows[1]);
        PyEval_RestoreThread(released);
        if (fine)
            result = Py_BuildValue("NN", bytes_of(rows[0], count * (int64_t)sizeof(int64_t)),
                                   bytes_of(rows[1], count * (int64_t)sizeof(int64_t)));
        free(rows[0]);
        free(rows[1]);
        free(own);
        free(joining.slots);
    }
    while (read-- > 0)
        PyBuffer_Release(&views[read]);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
