/* Two common tokens of a record that are joined, so that they are rarer (items/candidate_pairs.py). */
#pragma once
#include "meetings.h"

enum { PART_JOINS = 1 << 13, ROUND_JOINS = 1 << 22, MOST_PARTS = 1 << 20 }; /* a part fits into the cache of a processor */

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
    uint64_t key;
    int64_t record;
} Join;

/* Pairs of entries, divided by the hash of their key into parts that are counted one after the other. */
typedef struct {
    int shift;        /* the part of a key is its hash >> shift */
    int64_t count;    /* of parts */
    int64_t *ends;    /* where the pairs of each part begin, and the last part ends, in `joins` of a round */
    Join *joins;      /* of a round: of some parts */
    JoinSlot *slots;  /* of a part */
} Parts;

typedef struct {
    int64_t *ends;    /* where the joined tokens of each record begin and have room until the next record's */
    int64_t *used;    /* how many each record has */
    JoinSlot *heaps;  /* of each record the rarest ones, the most common one of these first if there is no more room */
    int32_t next;     /* id of a joined token */
} Joined;

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

static uint64_t join_key(const Joining *joining, int64_t a, int64_t b)
{
    if (!joining->allowed[joining->field[a] * joining->fields + joining->field[b]])
        return 0;
    int64_t one = joining->token[a], other = joining->token[b];
    return 1 + (uint64_t)(one < other ? one : other) * (uint64_t)joining->tokens + (uint64_t)(one < other ? other : one);
}

/* Count the pairs of each part, or list those of parts from..to - 1: `ends` is then where the next pair goes. */
static void pass_over(const Joining *joining, Parts *parts, int64_t from, int64_t to)
{
    for (int64_t start = 0, end; start < joining->entries; start = end) {
        end = end_of_record(joining, start);
        for (int64_t a = start; a < end; a++)
            for (int64_t b = a + 1; b < end; b++) {
                uint64_t key = join_key(joining, a, b);
                int64_t part = (int64_t)(join_hash(key) >> parts->shift);
                if (!key || part < from || part >= to)
                    continue;
                if (parts->joins)
                    parts->joins[parts->ends[part]] = (Join){key, joining->record[a]};
                parts->ends[part]++;
            }
    }
}

static JoinSlot *join_slot(JoinSlot *slots, uint64_t mask, uint64_t key)
{
    uint64_t at = join_hash(key) & mask;
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & mask;
    return slots + at;
}

static int is_rarer(JoinSlot one, JoinSlot other)
{
    return one.held != other.held ? one.held < other.held : one.key < other.key;
}

/* Restore a heap whose root is the most common token, after `place` has changed. */
static void sink(JoinSlot *heap, int64_t size, int64_t place)
{
    for (int64_t child; (child = 2 * place + 1) < size; place = child) {
        if (child + 1 < size && is_rarer(heap[child], heap[child + 1]))
            child++;
        if (!is_rarer(heap[place], heap[child]))
            return;
        JoinSlot moved = heap[place];
        heap[place] = heap[child];
        heap[child] = moved;
    }
}

static void add_joined(Joined *joined, int64_t record, JoinSlot token)
{
    JoinSlot *heap = joined->heaps + joined->ends[record];
    int64_t room = joined->ends[record + 1] - joined->ends[record], *used = joined->used + record;
    if (*used < room) {
        heap[(*used)++] = token;
        for (int64_t place = *used == room ? room / 2 : 0; place-- > 0;)
            sink(heap, room, place);
    } else if (is_rarer(token, heap[0])) {
        heap[0] = token;
        sink(heap, room, 0);
    }
}

static uint64_t mask_for(int64_t count)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)count)
        size *= 2;
    return size - 1;
}

/* Add the joined tokens of a part that are rare enough. */
static void join_part(const Joining *joining, const Join *joins, int64_t count, JoinSlot *slots, Joined *joined)
{
    uint64_t mask = mask_for(count);
    memset(slots, 0, ((size_t)mask + 1) * sizeof(JoinSlot));
    for (int64_t i = 0; i < count; i++) {
        JoinSlot *slot = join_slot(slots, mask, joins[i].key);
        slot->key = joins[i].key;
        slot->held++;
    }
    for (int64_t i = 0; i < count; i++) {
        JoinSlot *slot = join_slot(slots, mask, joins[i].key);
        if (slot->held < 2 || slot->held > joining->holders)
            continue;
        if (slot->id == 0)
            slot->id = ++joined->next;
        add_joined(joined, joins[i].record, *slot);
    }
}

/* Give each record room for its joined tokens. Returns how many pairs of entries there may be. */
static int64_t room_for_joined(const Joining *joining, Joined *joined)
{
    int64_t pairs = 0;
    for (int64_t start = 0, end; start < joining->entries; start = end) {
        end = end_of_record(joining, start);
        int64_t own = (end - start) * (end - start - 1) / 2;
        joined->ends[joining->record[start] + 1] += own;
        pairs += own;
    }
    for (int64_t record = 0; record < joining->records; record++) {
        int64_t *room = joined->ends + record + 1;
        *room = room[-1] + (*room < joining->most ? *room : joining->most);
    }
    return pairs;
}

/* Join tokens, as many parts at a time as there is room for in a round. 0: no memory. */
static int join_tokens(const Joining *joining, Joined *joined)
{
    Parts parts = {.shift = 63, .count = 2};
    joined->ends = calloc((size_t)joining->records + 1, sizeof(int64_t));
    joined->used = calloc((size_t)joining->records + 1, sizeof(int64_t));
    if (!joined->ends || !joined->used)
        return 0;
    int64_t pairs = room_for_joined(joining, joined), most = 0, largest = 0;
    while (parts.count < MOST_PARTS && parts.count * PART_JOINS < pairs)
        parts.shift--, parts.count *= 2;
    int64_t *sizes = calloc((size_t)parts.count, sizeof(int64_t));
    joined->heaps = malloc(((size_t)joined->ends[joining->records] + 1) * sizeof(JoinSlot));
    parts.ends = sizes;
    if (sizes)
        pass_over(joining, &parts, 0, parts.count);
    for (int64_t part = 0; sizes && part < parts.count; part++)
        most = sizes[part] > most ? sizes[part] : most;
    largest = most > ROUND_JOINS ? most : pairs < ROUND_JOINS ? pairs : ROUND_JOINS;
    parts.ends = malloc((size_t)parts.count * sizeof(int64_t));
    parts.joins = malloc(((size_t)largest + 1) * sizeof(Join));
    parts.slots = malloc(((size_t)mask_for(most) + 1) * sizeof(JoinSlot));
    int fine = sizes && joined->heaps && parts.ends && parts.joins && parts.slots;
    for (int64_t from = 0, to; fine && from < parts.count; from = to) {
        int64_t total = 0, start = 0;
        for (to = from; to < parts.count && total + sizes[to] <= largest; total += sizes[to++])
            parts.ends[to] = total;
        pass_over(joining, &parts, from, to);
        for (int64_t part = from; part < to; start += sizes[part++])
            join_part(joining, parts.joins + start, sizes[part], parts.slots, joined);
    }
    free(sizes);
    free(parts.ends);
    free(parts.joins);
    free(parts.slots);
    return fine;
}

/* The joined tokens one after the other: `token` and `record` have room for all. Returns how many there are. */
static int64_t list_joined(const Joining *joining, const Joined *joined, int64_t *token, int64_t *record)
{
    int64_t count = 0;
    for (int64_t one = 0; one < joining->records; one++)
        for (int64_t i = 0; i < joined->used[one]; i++) {
            token[count] = joined->heaps[joined->ends[one] + i].id - 1;
            record[count++] = one;
        }
    return count;
}

static PyObject *super_tokens(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given[4], *result = NULL;
    Py_buffer views[4];
    long long tokens, fields, most, holders;
    if (!PyArg_ParseTuple(arguments, "OOOO(LLLL):super_tokens", &given[0], &given[1], &given[2], &given[3], &tokens,
                          &fields, &most, &holders))
        return NULL;
    if (!get_rows(given, 4, views))
        return Py_NewRef(Py_None);
    int64_t entries = length_in(&views[0], 8);
    if (length_in(&views[1], 8) == entries && length_in(&views[2], 8) == entries && tokens < INT32_MAX
        && fields >= 0 && fields < 1 << 15 && length_in(&views[3], 8) == fields * fields && most > 0 && entries < INT32_MAX
        && all_within(views[0].buf, entries, tokens) && all_within(views[1].buf, entries, INT32_MAX)
        && all_within(views[2].buf, entries, fields)) {
        const int64_t *own = views[1].buf;
        int64_t records = 0;
        for (int64_t i = 0; i < entries; i++)
            records = own[i] >= records ? own[i] + 1 : records;
        Joining joining = {views[0].buf, views[1].buf, views[2].buf, views[3].buf, entries, tokens, fields, records, most, holders};
        Joined joined = {0};
        int64_t *rows[2] = {NULL, NULL}, count = 0;
        PyThreadState *released = PyEval_SaveThread();
        int fine = join_tokens(&joining, &joined);
        for (int i = 0; fine && i < 2; i++)
            fine = (rows[i] = malloc(((size_t)joined.ends[records] + 1) * sizeof(int64_t))) != NULL;
        if (fine)
            count = list_joined(&joining, &joined, rows[0], rows[1]);
        PyEval_RestoreThread(released);
        if (fine)
            result = Py_BuildValue("NN", bytes_of(rows[0], count * (int64_t)sizeof(int64_t)),
                                   bytes_of(rows[1], count * (int64_t)sizeof(int64_t)));
        free(rows[0]);
        free(rows[1]);
        free(joined.ends);
        free(joined.used);
        free(joined.heaps);
    }
    release_rows(views, 4);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
