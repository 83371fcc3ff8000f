/* The documents that meet a document in these lists and pass the filters, and the comparison of two: see corpus.h. */
#pragma once
#include "corpus_lists.h"

typedef struct {
    int64_t document, met, budget; /* documents met so far, and at most */
    int64_t missed;                /* lists that were not read to their end */
    int64_t from;                  /* documents before this one are not met */
} Reading;

enum { AHEAD = 8, FAR_AHEAD = 32, LINE = 64 / sizeof(int32_t) };

/* Meet the documents of a list, in which the reader has `after` values behind this one. */
static void read_list(Corpus *corpus, Reading *reading, const List *list, int hot, uint8_t after, Effort *effort)
{
    int64_t count = list->filled, first = 0;
    const Listed *held = corpus->held + list->start;
    if (reading->from)
        for (first = count; first && held[first - 1].document >= reading->from; first--)
            ;
    int64_t i = first;
    for (; i < count; i++) {
        int rest = after < held[i].behind ? after : held[i].behind;
        Meeting *meeting = corpus->meetings + held[i].document;
#ifdef __GNUC__
        if (i + FAR_AHEAD < count)
            __builtin_prefetch(corpus->meetings + held[i + FAR_AHEAD].document, 1);
#endif
        if (meeting->with != (int32_t)reading->document) {
            if (reading->met == reading->budget)
                break;
            meeting->with = (int32_t)reading->document;
            meeting->seen = meeting->rare = 0;
            corpus->met[reading->met++] = held[i].document;
        }
        meeting->seen += meeting->seen < UINT8_MAX; /* two values of one list count up to four times */
        meeting->rare += !hot && meeting->rare < UINT8_MAX;
        int most = meeting->seen + rest; /* above the number of values only if two have one list */
        meeting->most = (uint8_t)(most < MOST_VALUES ? most : MOST_VALUES);
    }
    effort->met += i - first;
    effort->cut += count - i;
    reading->missed += i < count;
}

/* Ask memory for what is_pair reads of a document, which takes longer than to compare it. */
static void fetch_offsets(const Corpus *corpus, int64_t document)
{
#ifdef __GNUC__
    __builtin_prefetch(corpus->page->offsets + document);
#endif
}

static void fetch_values(const Corpus *corpus, int64_t document)
{
#ifdef __GNUC__
    const Page *page = corpus->page;
    int64_t length = length_of(page, document);
    for (int64_t i = 0; i < length; i += LINE) {
        __builtin_prefetch(values_of(page, document) + i);
        if (corpus->weights)
            __builtin_prefetch(corpus->weights->weights + page->offsets[document] + i);
    }
#endif
}

/* Before the documents met are compared from `at` on: of the first ones, and then of one more each time. */
static void fetch_ahead(const Corpus *corpus, int64_t met, int64_t at)
{
    for (int64_t i = at ? at + AHEAD : 0; i < met && i <= at + AHEAD; i++)
        fetch_values(corpus, corpus->met[i]);
}

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* The documents enlisted, `from` or later ones, that may share enough values with a document, into corpus->met, ascending.
 * Returns how many. */
static int64_t meet_enlisted(Corpus *corpus, int64_t document, int64_t from, int64_t budget, Effort *effort)
{
    const Meeting own = corpus->meetings[document];
    Reading reading = {.document = document, .budget = budget, .from = from};
    int64_t left = 0;
    int64_t first = corpus->first[document], end = corpus->first[document + 1];
    for (int64_t entry = first; entry < end; entry++)
        FETCH(corpus->lists + corpus->list[entry]);
    for (int64_t entry = first; entry < end; entry++)
        FETCH(corpus->held + corpus->lists[corpus->list[entry]].start);
    for (int64_t entry = first; entry < end; entry++) {
        const List *list = corpus->lists + corpus->list[entry];
        int hot = corpus->kind[entry] > 0, closed = corpus->kind[entry] % SUBLISTS;
        for (int i = 0; i < (hot ? SUBLISTS : 1); i++)
            if (!(i & closed))
                read_list(corpus, &reading, list + i, hot, corpus->after[entry], effort);
    }
    for (int64_t i = 0; i < reading.met; i++) {
        int32_t other = corpus->met[i];
        Meeting *meeting = corpus->meetings + other;
        int64_t most = meeting->most + reading.missed;
        meeting->most = (uint8_t)(most < MOST_VALUES ? most : MOST_VALUES);
        int refused = 0;
        for (int profile = 0; profile < PROFILES; profile++)
            refused |= meeting->rare <= own.levels[profile] && meeting->rare <= meeting->levels[profile];
        corpus->met[left] = other;
        refused &= corpus->weights && !reading.missed;
        left += meeting->most >= larger_of(meeting->least, own.least) && !refused;
    }
    for (int64_t i = 0; i < left; i++)
        fetch_offsets(corpus, corpus->met[i]);
    if (left > 1)
        qsort(corpus->met, (size_t)left, sizeof *corpus->met, ascending);
    return left;
}

/* Whether a pair counts by another measure than KMV: the values shared, among the k smallest of the union for BRODER, are
 * divided by the number of these, by the values of the longer or by those of the shorter sketch. `most` can be shared.
 * resemblance_of the pair is then this similarity. */
static int is_measured_pair(const Page *page, const Rule *rule, int64_t first, int64_t second, int64_t most, Pair *pair,
                            Effort *effort)
{
    int64_t left = length_of(page, first), right = length_of(page, second), shared = 0, seen = 0;
    int64_t shorter = left < right ? left : right, parts = rule->measure == BY_SHORTER ? shorter : left + right - shorter;
    int is_short = shorter < rule->shortest;
    if (!shorter || (double)most < (rule->least - ROUNDING) * (double)parts || (is_short && rule->measure == BY_SHORTER))
        return NO;
    effort->compared++;
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    Merge merge = {a, a + left, b, b + right};
    if (rule->measure == BY_BRODER) {
        for (; seen < page->k && goes_on(&merge); seen++)
            shared += step(&merge);
        parts = seen < page->k && left + right - shared < page->k ? left + right - shared : page->k;
    }
    else
        shared = count_common(merge);
    *pair = (Pair){{(int32_t)first, (int32_t)second}, {(int32_t)parts, (int32_t)shared}, (int32_t)shared, {0}};
    double similarity = resemblance_of(pair);
    return shared && similarity >= rule->least - ROUNDING && (!is_short || similarity >= 1);
}

/* Whether two documents count as a pair, the first before the second. */
static int is_pair(Corpus *corpus, int64_t first, int64_t second, Pair *pair, Effort *effort)
{
    const Page *page = corpus->page;
    const Rule *rule = corpus->rule;
    if (!guards_allow(corpus->guards, first, second))
        return NO;
    if (rule->measure != BY_KMV)
        return is_measured_pair(page, rule, first, second, corpus->meetings[first].most, pair, effort);
    int32_t limit_first = limit_of(page, first), limit_second = limit_of(page, second);
    int second_ends_first = limit_second <= limit_first;
    int64_t narrow = second_ends_first ? second : first, wide = second_ends_first ? first : second;
    int32_t limit = second_ends_first ? limit_second : limit_first;
    int64_t all = length_of(page, narrow), most = corpus->meetings[first].most;
    Sizes sizes = sizes_of(shingles_of(page, first), shingles_of(page, second));
    int edges = may_differ_at_edges(edges_of(page, rule, first), edges_of(page, rule, second));
    double bar = edges ? 0 : least_resemblance(rule, rule->asked > 0 ? sizes.shorter : 1) - ROUNDING;
    if ((double)most < bar * (double)all) /* all values count of the one that ends first */
        return NO;
    int64_t some = rank_in(values_of(page, wide), length_of(page, wide), limit);
    if ((double)most * (1 + bar) < bar * (double)(all + some))
        return NO;
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    effort->compared++;
    int64_t common = count_common((Merge){a, a + length_of(page, first), b, b + length_of(page, second)});
    *pair = (Pair){{(int32_t)first, (int32_t)second}, {(int32_t)(second_ends_first ? some : all),
                   (int32_t)(second_ends_first ? all : some)}, (int32_t)common, {0}};
    if (!common || (double)common < bar * (double)(all + some - common)) /* empty sketches make no pair */
        return NO;
    /* closer to the bar than any power function errs: it counts */
    return decide(page, rule, corpus->weights, pair, sizes, edges, NULL) != NO;
}
