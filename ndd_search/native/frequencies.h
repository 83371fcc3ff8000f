/* The frequency table of a list of hits; see matching/document_frequency.py.
 *
 * Only lists of long texts are counted here. All operations are rounded as numpy rounds them, except log(), whose last
 * bits differ between libraries. A weight that log() could round either way is left to numpy.
 */
#pragma once
#include "page_calls.h"

enum { SUMMED = 500 }; /* rows whose sums are compared with one another */
static const double EDITED = 0.68; /* as in document_frequency.py */
enum { BARE = 2 };     /* a story counts once if it has at most this many sketches without edges for each with edges */

/* Whether no earlier hit has the same values. */
static int is_new(const Page *page, int64_t hit)
{
    size_t size = (size_t)length_of(page, hit) * sizeof(int32_t);
    int64_t other = 0;
    while (other < hit && (length_of(page, other) != length_of(page, hit)
                           || memcmp(values_of(page, other), values_of(page, hit), size)))
        other++;
    return other == hit;
}

/* Write the places of the rows that are not empty and equal no earlier one, and how many different hits that equal them
   have edges. Returns how many. page: without values that touch an edge; whole: with them. sums: room for all. */
static int64_t list_different(const Page *page, const Page *whole, const Rule *rule, int64_t *sums, int64_t *places,
                              int64_t *edged)
{
    int64_t found = 0;
    for (int64_t hit = 0; hit < page->count; hit++) {
        const int32_t *values = values_of(page, hit);
        int64_t length = length_of(page, hit), sum = 0, other = 0;
        for (int64_t i = 0; i < length; i++)
            sum += values[i];
        while (other < found && (sums[other] != sum || length_of(page, places[other]) != length
                                 || memcmp(values_of(page, places[other]), values, (size_t)length * sizeof *values)))
            other++;
        if (length && other == found) {
            sums[found] = sum;
            places[found] = hit;
            edged[found++] = 0;
        }
        if (length)
            edged[other] += edges_of(whole, rule, hit) & IS_MARKED && is_new(whole, hit);
    }
    return found;
}

enum { BUCKETS = 1 << 13 }; /* by the low bits of values */

/* Sort keys by their values, value * 2**31 + row, and leave those of one value in their order. room: for as many. */
static void sort_keys(int64_t *keys, int64_t count, int64_t *room)
{
    for (int shift = 31; shift < 63; shift += 8) { /* four times, so that they end where they began */
        int64_t next[257] = {0}, *from = keys;
        for (int64_t i = 0; i < count; i++)
            next[(from[i] >> shift & 0xFF) + 1]++;
        for (int digit = 0; digit < 256; digit++)
            next[digit + 1] += next[digit];
        for (int64_t i = 0; i < count; i++)
            room[next[from[i] >> shift & 0xFF]++] = from[i];
        keys = room;
        room = from;
    }
}

/* List value * 2**31 + row for the values of a page, ascending, without most of those that are in no more than `handful`
   rows. keys: room, for all twice. Returns how many. */
static int64_t list_keys(const Page *page, double handful, int64_t *keys)
{
    int32_t holders[BUCKETS] = {0}; /* at most so many rows hold a value of the bucket */
    int64_t count = 0;
    for (int64_t i = 0; i < page->offsets[page->count]; i++)
        holders[page->values[i] & (BUCKETS - 1)]++;
    for (int64_t hit = 0; hit < page->count; hit++)
        for (int64_t i = 0; i < length_of(page, hit); i++) {
            int32_t value = values_of(page, hit)[i];
            keys[count] = (int64_t)value << 31 | hit;
            count += (double)holders[value & (BUCKETS - 1)] > handful;
        }
    sort_keys(keys, count, keys + page->offsets[page->count]);
    return count;
}

/* Documents, where g of one group count sqrt(g), or 1 if it is a story; and the values that more of them than
   `handful` hold. */
typedef struct {
    double documents;
    int64_t found;
    int32_t *values;
    double *counts;
    int64_t *keys; /* see list_keys */
    int64_t key_count;
} Frequencies;

/* Returns 0 without memory. */
static int make_frequencies(Frequencies *frequencies, const Page *page, double handful)
{
    size_t most = (size_t)page->offsets[page->count] + 1;
    frequencies->values = malloc(most * sizeof *frequencies->values);
    frequencies->counts = malloc(most * sizeof *frequencies->counts);
    frequencies->keys = malloc(2 * most * sizeof *frequencies->keys);
    if (!frequencies->values || !frequencies->counts || !frequencies->keys)
        return 0;
    frequencies->key_count = list_keys(page, handful, frequencies->keys);
    return 1;
}

static void free_frequencies(Frequencies *frequencies)
{
    free(frequencies->values);
    free(frequencies->counts);
    free(frequencies->keys);
}

/* What `size` rows of one group count. balance: of its sketches with edges against the others, see count_groups. */
static double counted_as(int64_t size, int64_t balance) { return size > 1 && balance >= 0 ? 1 : sqrt((double)size); }

/* Sum up what each group counts. sizes: of the groups; they are 0 afterwards. */
static double sum_counts(const int64_t *groups, const int64_t *keys, int64_t count, int64_t *sizes,
                         const int64_t *balances)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sizes[groups[keys[i] & INT32_MAX]]++;
    for (int64_t i = 0; i < count; i++) {
        int64_t group = groups[keys[i] & INT32_MAX];
        sum += counted_as(sizes[group], balances[group]);
        sizes[group] = 0;
    }
    return rint(sum * 1000) / 1000; /* as numpy rounds */
}

/* Count documents and values. groups: the first row of the group of each row. edged: how many different sketches with
   edges each row stands for, NULL if that does not count. sizes: room, for twice as many. */
static void count_groups(Frequencies *frequencies, const Page *page, const int64_t *groups, const int64_t *edged,
                         int64_t *sizes, double handful)
{
    const int64_t *keys = frequencies->keys;
    int64_t *balances = sizes + page->count;
    double documents = 0;
    memset(sizes, 0, 2 * (size_t)page->count * sizeof *sizes);
    for (int64_t hit = 0; hit < page->count; hit++) {
        sizes[groups[hit]]++;
        balances[groups[hit]] += edged && edged[hit] ? BARE * edged[hit] : -1;
    }
    for (int64_t hit = 0; hit < page->count; hit++)
        documents += counted_as(sizes[hit], balances[hit]);
    frequencies->documents = rint(documents * 1000) / 1000;
    frequencies->found = 0;
    memset(sizes, 0, (size_t)page->count * sizeof *sizes);
    for (int64_t i = 0, end; i < frequencies->key_count; i = end) {
        for (end = i + 1; end < frequencies->key_count && keys[end] >> 31 == keys[i] >> 31;)
            end++;
        double sum = sum_counts(groups, keys + i, end - i, sizes, balances);
        if (sum > handful) {
            frequencies->values[frequencies->found] = (int32_t)(keys[i] >> 31);
            frequencies->counts[frequencies->found++] = sum;
        }
    }
}

/* Whether two texts count as one that was edited: they would still resemble if `margin` shingles more were changed. */
static int is_edited(const Page *page, const Rule *rule, const Pair *pair)
{
    double shorter = sizes_of(shingles_of(page, pair->hits[0]), shingles_of(page, pair->hits[1])).shorter;
    return resemblance_of(pair) >= larger(EDITED, rule->least + rule->margin / shorter) - ROUNDING;
}

/* Connect rows by pairs: the group of a row is the first one of its connected component. edited: of which rule, or NULL for
 * all pairs. */
static void connect(const Page *page, const Pair *pairs, int64_t count, const Rule *edited, int64_t *groups)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t left = pairs[i].hits[0], right = pairs[i].hits[1];
        if (edited && !is_edited(page, edited, pairs + i))
            continue;
        while (groups[left] != left) /* each visit halves the path */
            left = groups[left] = groups[groups[left]];
        while (groups[right] != right)
            right = groups[right] = groups[groups[right]];
        groups[left > right ? left : right] = left < right ? left : right;
    }
    for (int64_t hit = 0; hit < page->count; hit++)
        groups[hit] = groups[groups[hit]]; /* that of an earlier row is final */
}

/* Whether log() could round a number either way. */
static int is_between(double number) { return fabs(number - floor(number) - 0.5) < 1e-6; }

/* The rule and the weights of a frequency table, for a page. weights: cleared; table: freed by the caller.
   1: done, 0: no memory, or a weight that log() could round either way. */
static int apply_frequencies(const Frequencies *frequencies, const Page *page, double handful, Rule *rule,
                             Weights *weights, char **table)
{
    int64_t slots = slots_for(frequencies->found);
    if (frequencies->documents <= handful) /* too few to tell common values from rare ones */
        return 1;
    double scale = log(frequencies->documents / handful);
    double twice = UNIT * log(2) / scale;
    if (is_between(twice))
        return 0;
    rule->twice = rint(twice);
    if (!frequencies->found)
        return 1;
    if (!(*table = malloc(size_of_table(slots))))
        return 0;
    clear_table(weights, *table, slots);
    for (int64_t i = 0; i < frequencies->found; i++) {
        double idf = log(frequencies->documents / frequencies->counts[i]) / log(frequencies->documents / handful);
        double weight = (1 - idf) * UNIT;
        if (is_between(weight))
            return 0;
        put_weight(weights, frequencies->values[i], (uint32_t)(int64_t)rint(weight));
    }
    return make_room(weights, page);
}

/* Count the values of different long texts in two passes. Returns 0 if it cannot.
   edged: different sketches with edges that each stands for. groups: room, for three times as many. */
static int count_different(Frequencies *frequencies, const Page *page, const int64_t *edged, Rule rule, double handful,
                           int64_t *groups)
{
    Rule alike = {.least = rule.least, .common = 1, .adds = 1};
    Weights weights = {0};
    Pair *pairs = NULL;
    char *table = NULL;
    int64_t met = find_pairs(page, &alike, NULL, &pairs), *sizes = groups + page->count;
    int fine = met >= 0 && make_frequencies(frequencies, page, handful);
    if (fine) {
        for (int64_t hit = 0; hit < page->count; hit++)
            groups[hit] = hit;
        connect(page, pairs, met, &rule, groups);
        count_groups(frequencies, page, groups, NULL, sizes, handful);
    }
    if (fine && met) {
        rule.differ = 0;
        rule.asked = INFINITY; /* none but pairs that differ at their edges */
        met = apply_frequencies(frequencies, page, handful, &rule, &weights, &table)
                  ? find_pairs(page, &rule, weights.slots ? &weights : NULL, &pairs)
                  : -1;
        if ((fine = met >= 0)) {
            connect(page, pairs, met, NULL, groups);
            count_groups(frequencies, page, groups, edged, sizes, handful);
        }
    }
    free_weights(&weights);
    free(table);
    free(pairs);
    return fine;
}

/* Copy a page without values that touch an edge, so that copies which differ only there are equal. */
static int copy_insides(Page *to, const Page *from, const Rule *rule)
{
    int64_t used = 0;
    *to = (Page){.k = from->k, .count = from->count};
    to->values = malloc((size_t)from->offsets[from->count] * sizeof *to->values + 1);
    to->offsets = calloc((size_t)from->count + 1, sizeof *to->offsets);
    for (int64_t hit = 0; to->values && to->offsets && hit < from->count; hit++) {
        int32_t marked = edges_of(from, rule, hit) & IS_MARKED ? 1 : 0;
        for (int64_t i = 0; i < length_of(from, hit); i++) {
            to->values[used] = values_of(from, hit)[i];
            used += !(to->values[used] & marked);
        }
        to->offsets[hit + 1] = used;
    }
    return to->values && to->offsets;
}

static int copy_places(Page *to, const Page *from, const int64_t *places, int64_t count)
{
    *to = (Page){.k = from->k, .count = count};
    to->values = malloc((size_t)from->offsets[from->count] * sizeof *to->values + 1);
    to->offsets = calloc((size_t)count + 1, sizeof *to->offsets);
    for (int64_t i = 0; to->values && to->offsets && i < count; i++) {
        int64_t length = length_of(from, places[i]);
        memcpy(to->values + to->offsets[i], values_of(from, places[i]), (size_t)length * sizeof *to->values);
        to->offsets[i + 1] = to->offsets[i] + length;
    }
    return to->values && to->offsets;
}

/* Whether all texts are long enough to tell copies from texts in one form, as decision.telling_shingles. */
static int all_are_long(const Page *page, const Rule *rule)
{
    double shortest = rule->margin / (1 - rule->least);
    for (int64_t hit = 0; hit < page->count; hit++)
        if ((double)length_of(page, hit) < shortest && length_of(page, hit) < page->k)
            return 0;
    return 1;
}

/* Count the values of a list. unseen: documents without any of the values, counted with the list. room: for
   6 * page->count. Returns 0 if it cannot. */
static int count_list(const Page *page, Rule rule, double handful, double unseen, Frequencies *frequencies, int64_t *room)
{
    Page insides = {0}, different = {0};
    int64_t *places = room + page->count, *edged = places + page->count;
    int fine = copy_insides(&insides, page, &rule);
    if (fine) {
        int64_t count = list_different(&insides, page, &rule, room, places, edged);
        fine = copy_places(&different, page, places, count) && all_are_long(&different, &rule)
               && count_different(frequencies, &different, edged, rule, handful, edged + page->count);
    }
    if (frequencies->documents > handful)
        frequencies->documents += unseen;
    free_page(&different);
    free_page(&insides);
    return fine;
}

static PyObject *counted(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *numbers, *result = NULL;
    long long k;
    double handful, unseen;
    Rule rule = {0};
    Page page = {0};
    Frequencies frequencies = {0};
    if (!PyArg_ParseTuple(arguments, "OOLO!dd:counted", &sketches, &offsets, &k, &PyTuple_Type, &numbers, &handful, &unseen)
        || !get_rule(numbers, &rule))
        return NULL;
    if (rule_is_regular(&rule) && rule.measure == BY_KMV && rule.least < 1 && handful > 0 && unseen >= 0
        && copy_page(&page, sketches, offsets, k) && page.count <= SUMMED) {
        int64_t *room = malloc(6 * (size_t)page.count * sizeof *room + 1);
        int fine = room != NULL;
        if (fine) {
            Py_BEGIN_ALLOW_THREADS
            fine = count_list(&page, rule, handful, unseen, &frequencies, room);
            Py_END_ALLOW_THREADS
        }
        if (fine)
            result = Py_BuildValue("dNN", frequencies.documents,
                                   bytes_of(frequencies.values, frequencies.found * (int64_t)sizeof(int32_t)),
                                   bytes_of(frequencies.counts, frequencies.found * (int64_t)sizeof(double)));
        free(room);
    }
    free_frequencies(&frequencies);
    free_page(&page);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
