/* Leaders and pairs of a whole collection.
 *
 * A page has a hundred hits; a collection has millions of documents, and some values stand in tens of thousands of them.
 * Three rules keep the work small, and none of them loses a pair:
 *
 * Prefix filter (Chaudhuri, Ganti and Kaushik 2006). The values of every document are put in one global order, values
 * with few holders first. Two documents that count as a pair share at least `least` values, so their first shared value
 * stands among all but the last least - 1 values of each. Only these values are looked up in lists of their holders.
 *
 * Positional filter (Xiao, Wang, Lin and Yu 2008). Where the shared values of two documents stand in that order says how
 * many values they can share at most.
 *
 * Own content filter (see Own). With a table of common values, two documents that both have much of their own and share
 * only common values cannot count as a pair. So each common value has two lists, and the documents of the second one,
 * which are rich in values of their own, do not look each other up there. The common values are the last in the order:
 * two documents that meet in no list of another value share common values only, and most of such pairs are refused by
 * what is known of each.
 *
 * `budget` bounds how many documents are met for one document. Entries of lists that this leaves unread are counted.
 */
#pragma once
#include "search.h"

typedef struct {
    int64_t documents; /* that are different and not empty */
    int64_t met;       /* entries of lists that were read */
    int64_t compared;  /* pairs that were compared value by value */
    int64_t cut;       /* entries of lists that were not read because of `budget` */
} Effort;

typedef struct {
    int32_t with;   /* the document that met this one last, -1: none yet */
    uint8_t most;   /* values that the two can share at most */
    uint8_t seen;   /* lists in which the two have met */
    uint8_t least;  /* values that this one shares with any document it counts as a pair with, at least */
    uint8_t rich;   /* see is_rich */
    uint8_t rare;   /* whether the two have met in the list of a value that is not common */
} Meeting;

/* What a document has of its own beside any other one that it shares only common values with; see own_of. */
typedef struct {
    float resemblance; /* at most */
    float specificity; /* mean rareness of the shared values, at most */
    float own;         /* mean rareness of the values that only it has, at least */
    float smaller;     /* their rareness in sum, at least */
} Own;

typedef struct {
    const Page *page;
    const Rule *rule;
    Weights *weights;   /* NULL: no value is common */
    int64_t *same;      /* of each document the first one with the same values; itself where there is none before it */
    int64_t *first;     /* document i has entries first[i] to first[i + 1] - 1 */
    int32_t *list;      /* of each entry the number of its list, or ~number of the first of its two lists */
    uint8_t *after;     /* of each entry how many values of its document come later in the global order */
    int64_t *start;     /* of each list where it begins in `held` and `behind` */
    int32_t *filled;    /* of each list how many documents it has so far */
    int32_t *held;      /* the documents of the lists, */
    uint8_t *behind;    /* and how many of their values come later in the global order */
    Meeting *meetings;  /* of each document */
    Own *owns;          /* of each document; NULL without weights */
    int32_t *met;
} Corpus;

/* Called now and then with the number of documents done; 0: stop. */
typedef struct {
    int (*go_on)(void *with, int64_t done);
    void *with;
} Watch;

enum { EVERY = 4096 }; /* documents between two calls of it */

enum { MOST_VALUES = 255 }; /* in a sketch, for numbers of them to fit a byte */

/* A slot of `count` (a power of two) for a value. */
static uint64_t slot_of(int32_t value, int shift) { return ((uint64_t)(uint32_t)value * 0x9E3779B97F4A7C15u) >> shift; }

static int shift_for(int64_t items)
{
    int shift = 60;
    while (shift > 32 && ((int64_t)1 << (64 - shift)) < items)
        shift--;
    return shift;
}

static uint64_t hash_row(const int32_t *values, int64_t length)
{
    uint64_t hash = (uint64_t)length;
    for (int64_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)(uint32_t)values[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The first document with the same values, for each. 0: no memory. */
static int find_same(const Page *page, int64_t *same)
{
    int shift = shift_for(2 * page->count + 16);
    uint64_t most = ((uint64_t)1 << (64 - shift)) - 1;
    int32_t *slots = malloc((size_t)(most + 1) * sizeof *slots);
    if (!slots)
        return 0;
    memset(slots, 0xFF, (size_t)(most + 1) * sizeof *slots);
    for (int64_t i = 0; i < page->count; i++) {
        int64_t length = length_of(page, i);
        const int32_t *values = values_of(page, i);
        uint64_t at = (hash_row(values, length) * 0x9E3779B97F4A7C15u) >> shift;
        same[i] = i;
        if (!length)
            continue;
        for (; slots[at] >= 0; at = (at + 1) & most)
            if (length_of(page, slots[at]) == length
                && !memcmp(values_of(page, slots[at]), values, (size_t)length * sizeof *values)) {
                same[i] = slots[at];
                break;
            }
        if (same[i] == i)
            slots[at] = (int32_t)i;
    }
    free(slots);
    return 1;
}

/* How many values a document shares at least with any that it counts as a pair with. */
static int64_t least_of(const Page *page, const Rule *rule, int64_t document)
{
    double bar = bar_of(rule, rule->asked > 0 ? shingles_of(page, document) : rule->known);
    double least = (bar - 2 * ROUNDING) * (double)length_of(page, document);
    return least <= 1 ? 1 : (int64_t)ceil(least);
}

/* Values whose rareness is at most this are common ones in the own content filter; see also is_rich. */
static const double COMMON_RARENESS = 0.9, OWN_RARENESS = 0.9;

static double rareness_of(uint32_t weight) { return 1 - weight / UNIT; }

/* Bounds on what a document and any other one have, if all values that they share are common ones.
 *
 * The rule refuses a pair with resemblance j, of whose u different values c are shared and x are not, when
 *     j * ((rare_shared / c) * (x / own)) ** (power * (x / u) * 2 * smaller / own) < bar,
 * where `own` is the rareness of the x values, own <= x, and `smaller` the part of it on the side that has less. Let n be
 * the number of values of this document up to the smaller limit of the two. All of the c values are common ones among
 * these n, so only such n are possible that have `least` common values, and j <= all common values / all values. For each
 * possible n the rare values among the n are its own, and so is the rareness of common values that are not shared. */
static Own own_of(const Page *page, const Rule *rule, const Weights *weights, int64_t document)
{
    const uint32_t *of_values = weights_of(weights, page, document);
    int64_t length = length_of(page, document), least = least_of(page, rule, document), all = 0, common = 0;
    double top[MOST_VALUES + 1], rareness = 0, smaller = -1; /* of common values, the rarest first; then sums of these */
    double own = 1;
    for (int64_t i = 0; i < length; i++) {
        double one = rareness_of(of_values[i]);
        if (one > COMMON_RARENESS)
            continue;
        int64_t at = all++;
        for (; at && top[at - 1] < one; at--)
            top[at] = top[at - 1];
        top[at] = one;
    }
    if (all < least)
        return (Own){0, 0, 1, 0}; /* too few common values for any pair */
    for (int64_t i = 1; i < all; i++)
        top[i] += top[i - 1];
    for (int64_t n = 1; n <= length; n++) {
        double one = rareness_of(of_values[n - 1]);
        rareness += one;
        common += one <= COMMON_RARENESS;
        if (common >= least && smaller < 0)
            smaller = (double)(n - common);
        for (int64_t c = least; c <= common; c++)
            if (n == c || rareness - top[c - 1] < own * (double)(n - c))
                own = n == c ? 0 : (rareness - top[c - 1]) / (double)(n - c);
    }
    return (Own){(float)((double)all / (double)length), (float)(top[least - 1] / (double)least), (float)own, (float)smaller};
}

static const float FLOAT_ERROR = 1e-4f; /* more than floats lose below */

/* Whether the rule refuses two documents that share only common values; least: values that they share, at least. Of the
 * rule it uses j * s ** e <= j * exp(-y) <= j / (1 + y + y * y / 2) with y = e * (1 - s). */
static int refuses_own(const Rule *rule, const Page *page, const Own *a, const Own *b, int64_t least)
{
    float resemblance = a->resemblance < b->resemblance ? a->resemblance : b->resemblance;
    float shared = a->specificity < b->specificity ? a->specificity : b->specificity;
    float own = a->own < b->own ? a->own : b->own, smaller = a->smaller < b->smaller ? a->smaller : b->smaller;
    float bar = (float)bar_of(rule, rule->known) * (1 - FLOAT_ERROR);
    if (resemblance < bar)
        return 1;
    if (own <= shared)
        return 0;
    float y = (float)(rule->power * 2) * smaller / (float)(2 * page->k - least) * (1 - shared / own) * (1 - FLOAT_ERROR);
    return resemblance < bar * (1 + y + y * y / 2);
}

/* Whether a document has so much of its own that any two of which this is true are refused. */
static int is_rich(const Rule *rule, const Page *page, const Own *own, int64_t least)
{
    Own other = {own->resemblance, own->specificity, (float)OWN_RARENESS, own->smaller};
    return own->own >= (float)OWN_RARENESS && refuses_own(rule, page, own, &other, least);
}

enum { COMMON_BIT = 48, HOLDERS_BIT = 32 };

/* The values of a document that others hold too, as `keys` whose numbers are in the global order; `alone` counts the
 * values that no other document holds, which come first in it. Returns how many keys are to be looked up. */
static int64_t keys_of(const Corpus *corpus, int64_t document, const uint16_t *popular, int shift, uint64_t *keys,
                       int64_t *alone)
{
    const Page *page = corpus->page;
    const int32_t *values = values_of(page, document);
    const uint32_t *weights = corpus->weights ? weights_of(corpus->weights, page, document) : NULL;
    int64_t length = length_of(page, document), found = 0, wanted;
    for (int64_t i = 0; i < length; i++) {
        uint64_t holders = popular[slot_of(values[i], shift)];
        uint64_t common = weights && weights[i] && rareness_of(weights[i]) <= COMMON_RARENESS;
        keys[found] = common << COMMON_BIT | holders << HOLDERS_BIT | (uint32_t)values[i];
        found += holders > 1;
    }
    *alone = length - found;
    wanted = length - corpus->meetings[document].least + 1 - *alone;
    return wanted < 0 ? 0 : wanted < found ? wanted : found;
}

/* The `wanted` smallest of some keys, ascending, to their head. */
static void sort_smallest(uint64_t *keys, int64_t count, int64_t wanted)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t key = keys[i];
        int64_t at = i < wanted ? i : wanted;
        if (at == wanted && key >= keys[wanted - 1])
            continue;
        for (at -= at == wanted; at && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

typedef struct {
    int32_t value;
    int32_t list; /* as in Corpus */
    int32_t used;
} Slot;

/* What is known of each document by itself, and in how many documents each value stands, for `popular`. */
static void look_at_all(Corpus *corpus, uint16_t *popular, int shift, Effort *effort)
{
    const Page *page = corpus->page;
    for (int64_t i = 0; i < page->count; i++) {
        corpus->meetings[i] = (Meeting){-1, 0, 0, 1, 0, 0};
        if (corpus->same[i] != i || !length_of(page, i))
            continue;
        effort->documents++;
        int64_t least = least_of(page, corpus->rule, i);
        corpus->meetings[i].least = (uint8_t)least;
        if (corpus->weights) {
            corpus->owns[i] = own_of(page, corpus->rule, corpus->weights, i);
            corpus->meetings[i].rich = (uint8_t)is_rich(corpus->rule, page, corpus->owns + i, least);
        }
        for (int64_t at = page->offsets[i]; at < page->offsets[i + 1]; at++) {
            uint16_t *holders = popular + slot_of(page->values[at], shift);
            *holders += *holders < UINT16_MAX;
        }
    }
}

/* The slot of a value, taken for it where there is none yet; a common value gets two lists. */
static Slot *slot_for(Slot *slots, int shift, int32_t value, int common, int64_t *lists)
{
    uint64_t most = ((uint64_t)1 << (64 - shift)) - 1, at = slot_of(value, shift);
    while (slots[at].used && slots[at].value != value)
        at = (at + 1) & most;
    if (!slots[at].used) {
        slots[at] = (Slot){value, common ? ~(int32_t)*lists : (int32_t)*lists, 1};
        *lists += 1 + common;
    }
    return slots + at;
}

/* The list that a document is in, by an entry's `list`. */
static int64_t own_list(int32_t list, int rich) { return list >= 0 ? list : ~list + rich; }

/* The lists and entries of all documents. 0: no memory. */
static int make_lists(Corpus *corpus, Effort *effort)
{
    const Page *page = corpus->page;
    int64_t all = page->offsets[page->count], entries = 0, lists = 0, alone;
    int shift = shift_for(all + 16);
    uint64_t keys[MOST_VALUES + 1];
    uint16_t *popular = calloc((size_t)1 << (64 - shift), sizeof *popular);
    if (!popular)
        return 0;
    look_at_all(corpus, popular, shift, effort);
    for (int64_t i = 0; i < page->count; i++) {
        corpus->first[i] = entries;
        if (corpus->same[i] == i)
            entries += keys_of(corpus, i, popular, shift, keys, &alone);
    }
    corpus->first[page->count] = entries;
    int wide = shift_for(2 * entries + 16);
    Slot *slots = entries < INT32_MAX / 2 ? calloc((size_t)1 << (64 - wide), sizeof *slots) : NULL;
    corpus->list = malloc((size_t)entries * sizeof *corpus->list + 1);
    corpus->after = malloc((size_t)entries + 1);
    corpus->held = malloc((size_t)entries * sizeof *corpus->held + 1);
    corpus->behind = malloc((size_t)entries + 1);
    corpus->filled = calloc((size_t)entries * 2 + 2, sizeof *corpus->filled);
    int fine = slots && corpus->list && corpus->after && corpus->held && corpus->behind && corpus->filled;
    for (int64_t i = 0; fine && i < page->count; i++) {
        if (corpus->same[i] != i)
            continue;
        int64_t count = keys_of(corpus, i, popular, shift, keys, &alone), entry = corpus->first[i];
        if (count)
            sort_smallest(keys, length_of(page, i) - alone, count);
        for (int64_t j = 0; j < count; j++, entry++) {
            int common = (int)(keys[j] >> COMMON_BIT);
            int32_t list = slot_for(slots, wide, (int32_t)(uint32_t)keys[j], common, &lists)->list;
            corpus->list[entry] = list;
            corpus->after[entry] = (uint8_t)(length_of(page, i) - alone - j - 1);
            corpus->filled[own_list(list, corpus->meetings[i].rich)]++;
        }
    }
    free(slots);
    free(popular);
    corpus->start = fine ? malloc((size_t)(lists + 1) * sizeof *corpus->start) : NULL;
    if (!corpus->start)
        return 0;
    corpus->start[0] = 0;
    for (int64_t i = 0; i < lists; i++) {
        corpus->start[i + 1] = corpus->start[i] + corpus->filled[i];
        corpus->filled[i] = 0;
    }
    return 1;
}

static void free_corpus(Corpus *corpus)
{
    void *rooms[] = {corpus->same, corpus->first, corpus->list, corpus->after, corpus->start, corpus->filled,
                     corpus->held, corpus->behind, corpus->meetings, corpus->owns, corpus->met};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]);
}

/* 0: no memory, or a sketch is too long. */
static int start_corpus(Corpus *corpus, const Page *page, const Rule *rule, Weights *weights, Effort *effort)
{
    size_t count = (size_t)page->count + 1;
    *corpus = (Corpus){.page = page, .rule = rule, .weights = weights};
    corpus->same = malloc(count * sizeof *corpus->same);
    corpus->first = malloc(count * sizeof *corpus->first);
    corpus->meetings = malloc(count * sizeof *corpus->meetings);
    corpus->met = malloc(count * sizeof *corpus->met);
    corpus->owns = weights ? malloc(count * sizeof *corpus->owns) : NULL;
    if (page->k > MOST_VALUES || !corpus->same || !corpus->first || !corpus->meetings || !corpus->met
        || (weights && !corpus->owns))
        return 0;
    return find_same(page, corpus->same) && make_lists(corpus, effort);
}

/* From now on others meet a document. */
static void enlist(Corpus *corpus, int64_t document)
{
    for (int64_t entry = corpus->first[document]; entry < corpus->first[document + 1]; entry++) {
        int64_t list = own_list(corpus->list[entry], corpus->meetings[document].rich);
        int64_t at = corpus->start[list] + corpus->filled[list]++;
        corpus->held[at] = (int32_t)document;
        corpus->behind[at] = corpus->after[entry];
    }
}

typedef struct {
    int64_t document, met, budget; /* documents met so far, and at most */
    int64_t missed;                /* lists that were not read to their end */
} Reading;

/* Meet the documents of a list, in which the reader has `after` values behind this one. */
static void read_list(Corpus *corpus, Reading *reading, int64_t list, int common, uint8_t after, Effort *effort)
{
    int64_t count = corpus->filled[list], i = 0;
    const int32_t *held = corpus->held + corpus->start[list];
    const uint8_t *behind = corpus->behind + corpus->start[list];
    for (; i < count; i++) {
        Meeting *meeting = corpus->meetings + held[i];
        if (meeting->with != (int32_t)reading->document) {
            if (reading->met == reading->budget)
                break;
            meeting->with = (int32_t)reading->document;
            meeting->seen = meeting->rare = 0;
            corpus->met[reading->met++] = held[i];
        }
        meeting->seen++;
        meeting->rare |= !common;
        meeting->most = (uint8_t)(meeting->seen + (after < behind[i] ? after : behind[i]));
    }
    effort->met += i;
    effort->cut += count - i;
    reading->missed += i < count;
}

enum { AHEAD = 8, LINE = 64 / sizeof(int32_t) };

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

/* The documents enlisted that may share enough values with a document, into corpus->met, ascending. Returns how many. */
static int64_t meet_enlisted(Corpus *corpus, int64_t document, int64_t budget, Effort *effort)
{
    const Page *page = corpus->page;
    const Meeting own = corpus->meetings[document];
    Reading reading = {document, 0, budget, 0};
    int64_t left = 0;
    for (int64_t entry = corpus->first[document]; entry < corpus->first[document + 1]; entry++) {
        int32_t list = corpus->list[entry];
        read_list(corpus, &reading, list < 0 ? ~list : list, list < 0, corpus->after[entry], effort);
        if (list < 0 && !own.rich)
            read_list(corpus, &reading, ~list + 1, 1, corpus->after[entry], effort);
    }
    for (int64_t i = 0; i < reading.met; i++) {
        int32_t other = corpus->met[i];
        Meeting *meeting = corpus->meetings + other;
        int64_t most = meeting->most + reading.missed;
        meeting->most = (uint8_t)(most < MOST_VALUES ? most : MOST_VALUES);
        int64_t least = meeting->least > own.least ? meeting->least : own.least;
        int common = corpus->owns && !meeting->rare && !reading.missed;
        corpus->met[left] = other;
        left += meeting->most >= least
                && !(common && refuses_own(corpus->rule, page, corpus->owns + document, corpus->owns + other, least));
    }
    for (int64_t i = 0; i < left; i++)
        fetch_offsets(corpus, corpus->met[i]);
    if (left > 1)
        qsort(corpus->met, (size_t)left, sizeof *corpus->met, ascending);
    return left;
}

/* Whether two documents count as a pair, the first before the second. */
static int is_pair(Corpus *corpus, int64_t first, int64_t second, Pair *pair, Effort *effort)
{
    const Page *page = corpus->page;
    const Rule *rule = corpus->rule;
    int32_t limit_first = limit_of(page, first), limit_second = limit_of(page, second);
    int second_ends_first = limit_second <= limit_first;
    int64_t narrow = second_ends_first ? second : first, wide = second_ends_first ? first : second;
    int32_t limit = second_ends_first ? limit_second : limit_first;
    int64_t all = length_of(page, narrow), most = corpus->meetings[first].most;
    Sizes sizes = sizes_of(shingles_of(page, first), shingles_of(page, second));
    double bar = bar_of(rule, rule->asked > 0 ? sizes.shorter : rule->known) - ROUNDING;
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
    if ((double)common < bar * (double)(all + some - common))
        return NO;
    if ((length_of(page, first) < rule->shortest || length_of(page, second) < rule->shortest)
        && resemblance_of(pair) < 1)
        return NO;
    Weights *weights = corpus->weights;
    if (!weights)
        return rule->content == 0 || counts_unweighed(rule, pair, &sizes);
    pair->weights[0] = sum_of(weights_of(weights, page, first), pair->within[0]);
    if (surely_counts(rule, pair, &sizes, pair->weights[0]))
        return YES;
    pair->weights[1] = sum_of(weights_of(weights, page, second), pair->within[1]);
    if (pair->weights[0] && pair->weights[1])
        pair->weights[2] = weigh_common(weights, page, first, second);
    return counts(rule, pair, &sizes) != NO; /* closer to the bar than any power function errs: it counts */
}

/* The leader of each document and the similarity to it, as find_leaders: the first `old` are leaders whatever they share. 0: no memory, or stopped. */
static int lead_corpus(const Page *page, const Rule *rule, Weights *weights, int64_t budget, int64_t old,
                       int64_t *leaders, double *similarities, Effort *effort, const Watch *watch)
{
    Corpus corpus;
    Pair pair;
    int fine = start_corpus(&corpus, page, rule, weights, effort);
    for (int64_t i = 0; fine && i < page->count; i++) {
        int64_t same = corpus.same[i];
        if (i % EVERY == 0 && !(fine = watch->go_on(watch->with, i)))
            break;
        leaders[i] = i;
        similarities[i] = 1;
        if (i < old) {
            if (same == i)
                enlist(&corpus, i);
            continue;
        }
        if (same != i) { /* it would meet the same leaders */
            leaders[i] = leaders[same];
            similarities[i] = similarities[same];
            continue;
        }
        int64_t met = meet_enlisted(&corpus, i, budget, effort);
        for (int64_t j = 0; j < met && leaders[i] == i; j++) {
            fetch_ahead(&corpus, met, j);
            if (is_pair(&corpus, corpus.met[j], i, &pair, effort)) {
                leaders[i] = corpus.met[j];
                similarities[i] = resemblance_of(&pair);
            }
        }
        if (leaders[i] == i)
            enlist(&corpus, i);
    }
    free_corpus(&corpus);
    return fine;
}

/* All pairs of different documents, at most `each` of one document with earlier ones (what that leaves out counts as
 * cut), ordered by the second, then the first. Returns how many, -1: no memory, or
 * stopped. */
static int64_t pair_corpus(const Page *page, const Rule *rule, Weights *weights, int64_t budget, int64_t each,
                           Pair **pairs, int64_t *same, Effort *effort, const Watch *watch)
{
    Corpus corpus;
    int64_t found = 0, room = 0;
    int fine = start_corpus(&corpus, page, rule, weights, effort);
    for (int64_t i = 0; fine && i < page->count; i++) {
        if (i % EVERY == 0 && !(fine = watch->go_on(watch->with, i)))
            break;
        if (corpus.same[i] != i)
            continue;
        int64_t met = meet_enlisted(&corpus, i, budget, effort);
        int64_t before = found;
        for (int64_t j = 0; fine && j < met; j++) {
            if (found - before == each) {
                effort->cut += met - j;
                break;
            }
            fetch_ahead(&corpus, met, j);
            if (found == room) {
                room = 2 * room + 1024;
                Pair *larger = realloc(*pairs, (size_t)room * sizeof(Pair));
                fine = larger != NULL;
                *pairs = larger ? larger : *pairs;
            }
            if (fine)
                found += is_pair(&corpus, corpus.met[j], i, *pairs + found, effort);
        }
        enlist(&corpus, i);
    }
    if (fine)
        memcpy(same, corpus.same, (size_t)page->count * sizeof *same);
    free_corpus(&corpus);
    return fine ? found : -1;
}
