/* The lists of the documents that hold a value, and what the filters need to know of each document: see corpus.h. */
#pragma once
#include "corpus_documents.h"

/* The bar of any pair of a document, at least. */
static double least_bar(const Page *page, const Rule *rule, int64_t document)
{
    return bar_of(rule, rule->asked > 0 ? shingles_of(page, document) : rule->known);
}

/* How many values a document shares at least with any that it counts as a pair with. */
static int64_t least_of(const Page *page, const Rule *rule, int64_t document)
{
    double least = (least_bar(page, rule, document) - 2 * ROUNDING) * (double)length_of(page, document);
    return least <= 1 ? 1 : (int64_t)ceil(least);
}

enum { HOT = 32 }; /* holders of a value above which it may be hot */

static int is_hot(uint32_t weight, uint64_t holders) { return weight && holders > HOT; }

/* Set the levels of a document. Two documents that have a level of at least n in one profile are refused if they share at
 * most n values that are not hot. POOR: a pair may count that shares hot values only. */
static void set_levels(Corpus *corpus, int64_t document, const uint16_t *popular, int shift)
{
    const Page *page = corpus->page;
    const uint32_t *weights = weights_of(corpus->weights, page, document);
    const int32_t *values = values_of(page, document);
    Meeting *meeting = corpus->meetings + document;
    Content content = {.bar = least_bar(page, corpus->rule, document) * (1 - 1e-6), .power = corpus->rule->power};
    content.k = page->k;
    content.length = length_of(page, document);
    content.least = meeting->least;
    for (int64_t i = 0; i < content.length; i++) {
        content.rareness[i] = rareness_of(weights[i]);
        content.first[i + 1] = content.first[i] + content.rareness[i];
        int32_t key = key_of(corpus->guards, document, values[i]);
        content.is_hot[i] = (uint8_t)is_hot(weights[i], popular[slot_of(key, shift)]);
        content.hot += content.is_hot[i];
    }
    for (int profile = 0; profile < PROFILES; profile++) {
        int level = content.least < MOST_LEVEL ? (int)content.least : MOST_LEVEL;
        if (content.hot < content.least)
            level = 0; /* any pair shares other values, at least one of which is looked up */
        else
            while (level > POOR && !refuses(&content, profile, level))
                level--;
        meeting->levels[profile] = (int8_t)level;
    }
}

enum { HOT_BIT = 48, HOLDERS_BIT = 32 };

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
        int32_t key = key_of(corpus->guards, document, values[i]);
        uint64_t holders = popular[slot_of(key, shift)], hot = weights && is_hot(weights[i], holders);
        keys[found] = hot << HOT_BIT | holders << HOLDERS_BIT | (uint32_t)key;
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

static Bitmap bitmap_of(const Page *page, int64_t document)
{
    Bitmap bitmap = {{0}};
    for (int64_t at = page->offsets[document]; at < page->offsets[document + 1]; at++) {
        uint32_t bit = hash_of(page->values[at]) >> 23;
        bitmap.words[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return bitmap;
}

/* How many bits are set in only one of two bitmaps. At least so many values are in only one of the two sketches. */
static int64_t differing_bits(const Bitmap *a, const Bitmap *b)
{
    const uint64_t ones = 0x5555555555555555u, twos = 0x3333333333333333u, fours = 0x0F0F0F0F0F0F0F0Fu;
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) {
        uint64_t x = a->words[i] ^ b->words[i];
        x -= x >> 1 & ones;
        x = (x & twos) + (x >> 2 & twos);
        sum += (x + (x >> 4)) & fours;
    }
    return (int64_t)(((sum & 0x00FF00FF00FF00FFu) + (sum >> 8 & 0x00FF00FF00FF00FFu)) * 0x0001000100010001u >> 48);
}

/* Set in which zone the largest value of a sketch is, and how many of its values are in lower zones. */
static void set_zone(Corpus *corpus, int64_t document)
{
    const Page *page = corpus->page;
    int64_t length = length_of(page, document);
    Meeting *meeting = corpus->meetings + document;
    meeting->zone = OPEN;
    if (length < page->k)
        return;
    const int32_t *values = values_of(page, document), *tops = corpus->tops;
    int zone = 0;
    for (int step = 128; step; step /= 2)
        if (zone + step < ZONES - NEAR && tops[zone + step] >= values[length - 1])
            zone += step;
    meeting->zone = (uint8_t)zone;
    for (int i = 0; i < NEAR; i++)
        meeting->below[i] = (uint8_t)rank_in(values, length, tops[zone + i + 1]);
}

/* How many values of two documents count at least, of both together: all k of the one in the lower zone, and those of the
 * other one that are not above them. */
static int64_t least_counted(const Meeting *a, const Meeting *b, int64_t k)
{
    int apart = (int)b->zone - (int)a->zone;
    if (!apart && a->zone == OPEN)
        return 0;
    if (!apart)
        return k + (a->below[0] < b->below[0] ? a->below[0] : b->below[0]);
    if (apart >= NEAR || apart <= -NEAR)
        return k;
    return k + (apart > 0 ? a->below[apart] : b->below[-apart]);
}

/* What is known of each document by itself, and in how many documents each value stands, for `popular`. */
static void look_at_all(Corpus *corpus, uint16_t *popular, int shift, Effort *effort)
{
    const Page *page = corpus->page;
    for (int64_t i = 0; i < page->count; i++) {
        corpus->meetings[i] = (Meeting){.with = -1, .least = 1};
        if (corpus->same[i] != i || !length_of(page, i))
            continue;
        effort->documents++;
        corpus->meetings[i].least = (uint8_t)least_of(page, corpus->rule, i);
        set_zone(corpus, i);
        if (corpus->bitmaps)
            corpus->bitmaps[i] = bitmap_of(page, i);
        for (int64_t at = page->offsets[i]; at < page->offsets[i + 1]; at++) {
            uint16_t *holders = popular + slot_of(key_of(corpus->guards, i, page->values[at]), shift);
            *holders += *holders < UINT16_MAX;
        }
    }
}

/* The slot of a key, taken for it where there is none yet; a hot one gets SUBLISTS lists. Two values of one code may have
 * the same key, so it has a slot for hot values and another one for the others. */
static Slot *slot_for(Slot *slots, int shift, int32_t value, int hot, int64_t *lists)
{
    uint64_t most = ((uint64_t)1 << (64 - shift)) - 1, at = slot_of(value, shift);
    while (slots[at].used && (slots[at].value != value || (slots[at].list < 0) != hot))
        at = (at + 1) & most;
    if (!slots[at].used) {
        slots[at] = (Slot){value, hot ? ~(int32_t)*lists : (int32_t)*lists, 1};
        *lists += hot ? SUBLISTS : 1;
    }
    return slots + at;
}

/* The profiles in which a document is not poor, as bits. */
static int profiles_of(const Meeting *meeting)
{
    int profiles = 0;
    for (int profile = 0; profile < PROFILES; profile++)
        profiles |= (meeting->levels[profile] != POOR) << profile;
    return profiles;
}

/* The list that a document is in, by an entry's `list`. */
static int64_t own_list(int32_t list, int profiles) { return list >= 0 ? list : ~list + profiles; }

/* The lists and entries of all documents. 0: no memory. */
static int make_lists(Corpus *corpus, Effort *effort)
{
    const Page *page = corpus->page;
    int64_t all = page->offsets[page->count], entries = 0, lists = 0, alone;
    int shift = shift_for(all + 16);
    uint64_t keys[MOST_VALUES + 1];
    uint16_t *popular = calloc_large((size_t)1 << (64 - shift), sizeof *popular);
    if (!popular)
        return 0;
    look_at_all(corpus, popular, shift, effort);
    for (int64_t i = 0; i < page->count; i++) {
        corpus->first[i] = entries;
        if (corpus->same[i] != i || !length_of(page, i))
            continue;
        entries += keys_of(corpus, i, popular, shift, keys, &alone);
        if (corpus->weights)
            set_levels(corpus, i, popular, shift);
    }
    corpus->first[page->count] = entries;
    int wide = shift_for(2 * entries + 16);
    Slot *slots = entries < INT32_MAX / 2 ? calloc_large((size_t)1 << (64 - wide), sizeof *slots) : NULL;
    corpus->list = malloc((size_t)entries * sizeof *corpus->list + 1);
    corpus->after = malloc((size_t)entries + 1);
    corpus->held = malloc((size_t)entries * sizeof *corpus->held + 1);
    corpus->behind = malloc((size_t)entries + 1);
    corpus->zones = malloc((size_t)entries + 1);
    corpus->apart = malloc((size_t)entries + 1);
    corpus->filled = calloc((size_t)entries * SUBLISTS + 1, sizeof *corpus->filled);
    int fine = slots && corpus->list && corpus->after && corpus->held && corpus->behind && corpus->zones
               && corpus->apart && corpus->filled;
    for (int64_t i = 0; fine && i < page->count; i++) {
        if (corpus->same[i] != i)
            continue;
        int64_t count = keys_of(corpus, i, popular, shift, keys, &alone), entry = corpus->first[i];
        if (count)
            sort_smallest(keys, length_of(page, i) - alone, count);
        for (int64_t j = 0; j < count; j++, entry++) {
            int hot = (int)(keys[j] >> HOT_BIT);
            int32_t list = slot_for(slots, wide, (int32_t)(uint32_t)keys[j], hot, &lists)->list;
            corpus->list[entry] = list;
            corpus->after[entry] = (uint8_t)(length_of(page, i) - alone - j - 1);
            corpus->filled[own_list(list, profiles_of(corpus->meetings + i))]++;
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
                     corpus->held, corpus->behind, corpus->zones, corpus->apart, corpus->meetings, corpus->bitmaps,
                     corpus->met};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]);
}

/* 0: no memory, or a sketch is too long. */
static int start_corpus(Corpus *corpus, const Page *page, const Rule *rule, const Guards *guards, Weights *weights,
                        Effort *effort)
{
    size_t count = (size_t)page->count + 1;
    *corpus = (Corpus){.page = page, .rule = rule, .guards = guards, .weights = weights};
    for (int zone = 0; zone < ZONES; zone++)
        corpus->tops[zone] = (int32_t)(INT32_MAX * exp2(-(double)zone / OCTAVE));
    corpus->same = malloc(count * sizeof *corpus->same);
    corpus->first = malloc(count * sizeof *corpus->first);
    corpus->meetings = calloc_large(count, sizeof *corpus->meetings);
    corpus->met = malloc(count * sizeof *corpus->met);
    corpus->bitmaps = weights ? calloc_large(count, sizeof *corpus->bitmaps) : NULL;
    if (page->k > MOST_VALUES || !corpus->same || !corpus->first || !corpus->meetings || !corpus->met
        || (weights && !corpus->bitmaps))
        return 0;
    return find_same(page, guards, corpus->same) && make_lists(corpus, effort);
}

/* How many values a document shares at least with one that is 0, 1, ... zones lower and counts as a pair with it. */
static void set_needs(const Corpus *corpus, int64_t document, uint8_t *needs)
{
    double bar = least_bar(corpus->page, corpus->rule, document) - 2 * ROUNDING;
    for (int i = 0; i < NEAR; i++)
        needs[i] = (uint8_t)ceil(bar * (double)(corpus->page->k + corpus->meetings[document].below[i]) / (1 + bar));
}

/* From now on others meet a document. */
static void enlist(Corpus *corpus, int64_t document)
{
    uint8_t needs[NEAR];
    set_needs(corpus, document, needs);
    for (int64_t entry = corpus->first[document]; entry < corpus->first[document + 1]; entry++) {
        int64_t list = own_list(corpus->list[entry], profiles_of(corpus->meetings + document));
        int64_t at = corpus->start[list] + corpus->filled[list]++;
        corpus->held[at] = (int32_t)document;
        corpus->behind[at] = corpus->after[entry];
        corpus->zones[at] = corpus->meetings[document].zone;
        corpus->apart[at] = 0;
        while (corpus->apart[at] < NEAR && corpus->after[entry] + 1 < needs[corpus->apart[at]])
            corpus->apart[at]++;
    }
}
