/* Leaders and pairs of a whole collection.
 *
 * A page has a hundred hits; a collection has millions of documents, and some values stand in tens of thousands of them.
 * Five filters keep the work small, and none of them loses a pair:
 *
 * Prefix filter (Chaudhuri, Ganti and Kaushik 2006). The values of every document are put in one global order, values
 * with few holders first. Two documents that count as a pair share at least `least` values, so their first shared value
 * stands among all but the last least - 1 values of each. Only these values are looked up in lists of their holders.
 *
 * Positional filter (Xiao, Wang, Lin and Yu 2008). Where the shared values of two documents stand in that order says how
 * many values they can share at most.
 *
 * Size filter (see set_zone). Of two full sketches, all values of one count, and of the other one those up to the largest
 * value of the first. How many these are at least says how many values a pair shares at least.
 *
 * Own content filter (see set_levels). A hot value is one of the table of common values that has more than HOT holders.
 * Two documents with much content of their own that share hot values only, or few others beside them, are refused by what
 * is known of each. So each hot value has several lists, for documents with more and with less content of their own, and
 * documents with much do not look each other up there.
 *
 * Bitmap filter (Sandes, Teodoro and Melo 2020). A bitmap of each sketch bounds how many values two sketches share, at
 * the cost of one line of memory.
 *
 * `budget` bounds how many documents are met for one document. Entries of lists that this leaves unread are counted.
 *
 * Documents are taken in blocks. All threads look up the documents of a block among those of earlier blocks; then one
 * thread looks them up among each other. The result does not depend on the number of threads.
 */
#pragma once
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "own_content.h"
#include "team.h"

typedef struct {
    int64_t documents; /* that are different and not empty */
    int64_t met;       /* entries of lists that were read */
    int64_t compared;  /* pairs that were compared value by value */
    int64_t cut;       /* entries of lists that were not read because of `budget` */
} Effort;

/* Zones of values: OCTAVE of them halve a value. OPEN: that of a sketch which is not full. */
enum { NEAR = 4, OCTAVE = 6, ZONES = 31 * OCTAVE + NEAR + 2, OPEN = UINT8_MAX };

typedef struct {
    int32_t with;   /* the document that met this one last, -1: none yet */
    uint8_t most;   /* values that the two can share at most */
    uint8_t seen;   /* lists in which the two have met */
    uint8_t least;  /* values that this one shares with any document it counts as a pair with, at least */
    uint8_t rare;   /* lists of values that are not hot in which the two have met */
    int8_t levels[PROFILES]; /* see set_levels */
    uint8_t zone;   /* of its largest value, see set_zone */
    uint8_t below[NEAR]; /* how many of its values are below each of the next lower zones */
} Meeting;

enum { WORDS = 8 };

/* A bit for the hash of each value of a sketch. */
typedef struct {
    uint64_t words[WORDS];
} Bitmap;

/* What keeps documents apart whatever they share. */
typedef struct {
    const int64_t *codes; /* of each document; only equal ones make a pair, and none below 0. NULL: all do */
    const double *times;  /* of each document, NaN makes no pair. NULL: all do */
    double apart;         /* of times, at most */
} Guards;

typedef struct {
    const Page *page;
    const Rule *rule;
    const Guards *guards;
    Weights *weights;   /* NULL: no value is common */
    int64_t *same;      /* of each document the first one with the same values; itself where there is none before it */
    int64_t *first;     /* document i has entries first[i] to first[i + 1] - 1 */
    int32_t *list;      /* of each entry the number of its list, or ~number of the first of its SUBLISTS lists */
    uint8_t *after;     /* of each entry how many values of its document come later in the global order */
    int64_t *start;     /* of each list where it begins in `held` and `behind` */
    int32_t *filled;    /* of each list how many documents it has so far */
    int32_t *held;      /* the documents of the lists, */
    uint8_t *behind;    /* how many of their values come later in the global order, */
    uint8_t *zones;     /* their zones, */
    uint8_t *apart;     /* and how many zones a smaller sketch must be away for a pair to be possible, see `reaches` */
    Meeting *meetings;  /* of each document */
    Bitmap *bitmaps;    /* of each document; NULL without weights */
    int32_t tops[ZONES]; /* the largest value of each zone, descending */
    int32_t *met;
} Corpus;

/* Called now and then with the number of documents done; 0: stop. */
typedef struct {
    int (*go_on)(void *with, int64_t done);
    void *with;
} Watch;

enum { PART = 4096, CHUNK = 32 }; /* documents between two calls of it, and of one thread at a time */

/* Zeroed memory that is read at random: on large pages, where the system has them. */
static void *calloc_large(size_t count, size_t size)
{
    char *room = calloc(count, size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    size_t page = 4096, start = (page - (size_t)((uintptr_t)room & (page - 1))) & (page - 1);
    if (room && count * size > 64 * page)
        (void)madvise(room + start, count * size - start, MADV_HUGEPAGE);
#endif
    return room;
}

/* A slot of `count` (a power of two) for a value. */
static uint64_t slot_of(int32_t value, int shift) { return ((uint64_t)(uint32_t)value * 0x9E3779B97F4A7C15u) >> shift; }

static int shift_for(int64_t items)
{
    int shift = 60;
    while (shift > 32 && ((int64_t)1 << (64 - shift)) < items)
        shift--;
    return shift;
}

static int guards_allow(const Guards *guards, int64_t a, int64_t b)
{
    return (!guards->codes || (guards->codes[a] == guards->codes[b] && guards->codes[a] >= 0))
           && (!guards->times || fabs(guards->times[a] - guards->times[b]) <= guards->apart);
}

/* The key under which a value of a document is looked up. Documents of different codes have different keys, but for a few
 * that collide. */
static int32_t key_of(const Guards *guards, int64_t document, int32_t value)
{
    uint64_t code = guards->codes ? (uint64_t)guards->codes[document] + 1 : 0;
    return code ? (int32_t)((((uint64_t)(uint32_t)value << 32 | (uint32_t)value) ^ code * 0x9E3779B97F4A7C15u)
                            * 0xD6E8FEB86659FD93u >> 33) : value;
}

/* Whether two documents with the same values are one for all others. */
static int guards_equal(const Guards *guards, int64_t a, int64_t b)
{
    return guards_allow(guards, a, b) && (!guards->times || guards->times[a] == guards->times[b]);
}

static uint64_t hash_row(const Guards *guards, int64_t document, const int32_t *values, int64_t length)
{
    uint64_t hash = (uint64_t)length ^ (guards->codes ? (uint64_t)guards->codes[document] << 8 : 0);
    if (guards->times) {
        uint64_t bits;
        memcpy(&bits, guards->times + document, sizeof bits);
        hash ^= bits * 0xD6E8FEB86659FD93u;
    }
    for (int64_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)(uint32_t)values[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The first document with the same values, for each. 0: no memory. */
static int find_same(const Page *page, const Guards *guards, int64_t *same)
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
        uint64_t at = (hash_row(guards, i, values, length) * 0x9E3779B97F4A7C15u) >> shift;
        same[i] = i;
        if (!length || !guards_equal(guards, i, i))
            continue;
        for (; slots[at] >= 0; at = (at + 1) & most)
            if (length_of(page, slots[at]) == length && guards_equal(guards, i, slots[at])
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

typedef struct {
    int64_t document, met, budget; /* documents met so far, and at most */
    int64_t missed;                /* lists that were not read to their end */
    int64_t from;                  /* documents before this one are not met */
    uint8_t zone, needs[NEAR];     /* of the document */
} Reading;

/* Whether a pair is possible whose first shared value is that of an entry of a list. shared: values that the two can share
 * from there on. */
static int reaches(const Corpus *corpus, const Reading *reading, int64_t at, int shared)
{
    int lower = (int)corpus->zones[at] - (int)reading->zone;
    if (corpus->zones[at] == OPEN || reading->zone == OPEN || lower >= NEAR)
        return 1;
    if (lower > 0)
        return shared >= reading->needs[lower];
    return -lower >= corpus->apart[at] || (!lower && shared >= reading->needs[0]);
}

enum { AHEAD = 8, FAR_AHEAD = 32, LINE = 64 / sizeof(int32_t) };

/* Meet the documents of a list, in which the reader has `after` values behind this one. */
static void read_list(Corpus *corpus, Reading *reading, int64_t list, int hot, uint8_t after, Effort *effort)
{
    int64_t count = corpus->filled[list], first = 0;
    const int32_t *held = corpus->held + corpus->start[list];
    const uint8_t *behind = corpus->behind + corpus->start[list];
    int filtered = hot || !corpus->weights; /* the other values are counted */
    if (reading->from)
        for (first = count; first && held[first - 1] >= reading->from; first--)
            ;
    int64_t i = first;
    for (; i < count; i++) {
        int rest = after < behind[i] ? after : behind[i];
        if (filtered && !reaches(corpus, reading, corpus->start[list] + i, rest + 1))
            continue;
        Meeting *meeting = corpus->meetings + held[i];
#ifdef __GNUC__
        if (!filtered && i + FAR_AHEAD < count)
            __builtin_prefetch(corpus->meetings + held[i + FAR_AHEAD], 1);
#endif
        if (meeting->with != (int32_t)reading->document) {
            if (reading->met == reading->budget)
                break;
            meeting->with = (int32_t)reading->document;
            meeting->seen = meeting->rare = 0;
            corpus->met[reading->met++] = held[i];
        }
        meeting->seen++;
        meeting->rare += !hot;
        meeting->most = (uint8_t)(meeting->seen + rest);
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

/* Drop those of `met` documents whose bitmap shows that they share too few values with a document. Returns how many are
 * left. */
static int64_t drop_by_bitmap(Corpus *corpus, int64_t document, int64_t met)
{
    const Page *page = corpus->page;
    const Bitmap own = corpus->bitmaps[document];
    int64_t length = length_of(page, document), least = corpus->meetings[document].least, left = 0;
    for (int64_t i = 0; i < met; i++) {
        int32_t other = corpus->met[i];
#ifdef __GNUC__
        if (i + AHEAD < met) {
            __builtin_prefetch(corpus->bitmaps + corpus->met[i + AHEAD]);
            __builtin_prefetch(page->offsets + corpus->met[i + AHEAD]);
        }
#endif
        int64_t most = (length + length_of(page, other) - differing_bits(&own, corpus->bitmaps + other)) / 2;
        corpus->met[left] = other;
        left += most >= larger_of(corpus->meetings[other].least, least);
    }
    return left;
}

/* The documents enlisted, `from` or later ones, that may share enough values with a document, into corpus->met, ascending.
 * Returns how many. */
static int64_t meet_enlisted(Corpus *corpus, int64_t document, int64_t from, int64_t budget, Effort *effort)
{
    const Meeting own = corpus->meetings[document];
    Reading reading = {.document = document, .budget = budget, .from = from, .zone = own.zone};
    set_needs(corpus, document, reading.needs);
    double bar = least_bar(corpus->page, corpus->rule, document) - 2 * ROUNDING;
    int64_t left = 0;
    int profiles = profiles_of(&own);
    for (int64_t entry = corpus->first[document]; entry < corpus->first[document + 1]; entry++) {
        int32_t list = corpus->list[entry];
        if (list >= 0)
            read_list(corpus, &reading, list, 0, corpus->after[entry], effort);
        for (int i = 0; list < 0 && i < SUBLISTS; i++)
            if (!(i & profiles))
                read_list(corpus, &reading, ~list + i, 1, corpus->after[entry], effort);
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
        if (meeting->most < larger_of(meeting->least, own.least) || refused)
            continue;
        left += (double)meeting->most * (1 + bar) >= bar * (double)least_counted(&own, meeting, corpus->page->k);
    }
    if (corpus->bitmaps)
        left = drop_by_bitmap(corpus, document, left);
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
    if (!guards_allow(corpus->guards, first, second))
        return NO;
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

/* What one thread needs of its own. */
typedef struct {
    Corpus corpus; /* with its own `meetings` and `met` */
    Effort effort;
    Pair *pairs;
    int64_t found, room;
    int failed; /* no memory */
} Seeker;

typedef struct {
    int64_t first, count; /* of the pairs of one seeker */
    int32_t seeker;
} Run;

typedef struct {
    Seeker seekers[MOST_THREADS];
    Team team;
    int64_t budget, old, start, end; /* of the block */
    int64_t each;                    /* pairs of one document with earlier ones at most; 0: only the first one counts */
    Run runs[PART];                  /* pairs of each document of the block with documents of earlier blocks */
} Quest;

/* The pairs of a document with those enlisted `from` some document on, to the end of the seeker's pairs: the first one, or
 * `each` less `already`, and what that leaves out counts as cut. Returns how many. */
static int64_t seek(const Quest *quest, Seeker *seeker, int64_t document, int64_t from, int64_t already)
{
    Corpus *corpus = &seeker->corpus;
    int64_t most = quest->each ? quest->each - already : 1;
    int64_t before = seeker->found, met = meet_enlisted(corpus, document, from, quest->budget, &seeker->effort);
    for (int64_t j = 0; j < met; j++) {
        if (seeker->found - before == most) {
            seeker->effort.cut += quest->each ? met - j : 0;
            break;
        }
        fetch_ahead(corpus, met, j);
        if (seeker->found == seeker->room) {
            int64_t room = 2 * seeker->room + 1024;
            Pair *larger = realloc(seeker->pairs, (size_t)room * sizeof *larger);
            if (!larger) {
                seeker->failed = 1;
                break;
            }
            seeker->pairs = larger;
            seeker->room = room;
        }
        seeker->found += is_pair(corpus, corpus->met[j], document, seeker->pairs + seeker->found, &seeker->effort);
    }
    return seeker->found - before;
}

/* The part of one thread: some documents of a block, among those of earlier blocks. */
static void seek_earlier(void *job, int number)
{
    Quest *quest = job;
    Seeker *seeker = quest->seekers + number;
    seeker->found = 0;
    for (int64_t chunk = quest->start + number * CHUNK; chunk < quest->end; chunk += quest->team.threads * CHUNK)
        for (int64_t i = chunk; i < chunk + CHUNK && i < quest->end && !seeker->failed; i++)
            if (seeker->corpus.same[i] == i && i >= quest->old) {
                int64_t first = seeker->found, count = seek(quest, seeker, i, 0, 0);
                quest->runs[i - quest->start] = (Run){first, count, number};
            }
}

/* 0: no memory. */
static int start_quest(Quest *quest, const Corpus *corpus, int threads)
{
    size_t count = (size_t)corpus->page->count + 1;
    start_team(&quest->team, corpus->page->count > PART ? threads : 1);
    int fine = 1;
    for (int i = 0; i < quest->team.threads; i++) {
        Seeker *seeker = quest->seekers + i;
        *seeker = (Seeker){.corpus = *corpus};
        if (!i)
            continue;
        seeker->corpus.met = malloc(count * sizeof *corpus->met);
        seeker->corpus.meetings = calloc_large(count, sizeof *corpus->meetings);
        fine = fine && seeker->corpus.met && seeker->corpus.meetings;
        if (fine)
            memcpy(seeker->corpus.meetings, corpus->meetings, count * sizeof *corpus->meetings);
    }
    return fine;
}

static void end_quest(Quest *quest, Effort *effort)
{
    end_team(&quest->team);
    for (int i = 0; i < quest->team.threads; i++) {
        Seeker *seeker = quest->seekers + i;
        effort->met += seeker->effort.met;
        effort->compared += seeker->effort.compared;
        effort->cut += seeker->effort.cut;
        free(seeker->pairs);
        if (i) {
            free(seeker->corpus.met);
            free(seeker->corpus.meetings);
        }
    }
}

/* Look up the next block among earlier ones, by all threads. 0: no memory, or stopped. */
static int seek_block(Quest *quest, int64_t count, const Watch *watch)
{
    quest->end = quest->start + PART < count ? quest->start + PART : count;
    if (!watch->go_on(watch->with, quest->start))
        return 0;
    do_together(&quest->team, seek_earlier, quest);
    for (int i = 0; i < quest->team.threads; i++)
        if (quest->seekers[i].failed)
            return 0;
    return 1;
}

/* The leader of each document and the similarity to it, as find_leaders: the first `old` are leaders whatever they share.
 * 0: no memory, or stopped. */
static int lead_corpus(const Page *page, const Rule *rule, const Guards *guards, Weights *weights, int64_t budget,
                       int64_t old, int threads, int64_t *leaders, double *similarities, Effort *effort,
                       const Watch *watch)
{
    Corpus corpus;
    Quest *quest = malloc(sizeof *quest);
    int fine = start_corpus(&corpus, page, rule, guards, weights, effort) && quest;
    if (fine) {
        quest->budget = budget;
        quest->old = old;
        quest->each = 0;
        fine = start_quest(quest, &corpus, threads);
        Seeker *own = quest->seekers;
        for (quest->start = 0; fine && quest->start < page->count; quest->start = quest->end) {
            fine = seek_block(quest, page->count, watch);
            for (int64_t i = quest->start; fine && i < quest->end; i++) {
                int64_t same = corpus.same[i];
                leaders[i] = i;
                similarities[i] = 1;
                if (same != i && i >= old) { /* it would meet the same leaders */
                    leaders[i] = leaders[same];
                    similarities[i] = similarities[same];
                }
                if (same != i)
                    continue;
                const Pair *pair = NULL;
                if (i >= old) {
                    Run run = quest->runs[i - quest->start];
                    if (run.count)
                        pair = quest->seekers[run.seeker].pairs + run.first;
                    else if (seek(quest, own, i, quest->start, 0))
                        pair = own->pairs + --own->found;
                }
                fine = !own->failed;
                if (pair) {
                    leaders[i] = pair->hits[0];
                    similarities[i] = resemblance_of(pair);
                }
                else
                    enlist(&corpus, i);
            }
        }
        end_quest(quest, effort);
    }
    free(quest);
    free_corpus(&corpus);
    return fine;
}

/* Add pairs to others. 0: no memory. */
static int add_pairs(Pair **pairs, int64_t *found, int64_t *room, const Pair *more, int64_t count)
{
    if (*found + count > *room) {
        *room = 2 * *room + count + 1024;
        Pair *larger = realloc(*pairs, (size_t)*room * sizeof *larger);
        if (!larger)
            return 0;
        *pairs = larger;
    }
    memcpy(*pairs + *found, more, (size_t)count * sizeof *more);
    *found += count;
    return 1;
}

/* All pairs of different documents, at most `each` of one document with earlier ones (what that leaves out counts as
 * cut), ordered by the second, then the first. Returns how many, -1: no memory, or
 * stopped. */
static int64_t pair_corpus(const Page *page, const Rule *rule, const Guards *guards, Weights *weights, int64_t budget,
                           int64_t each, int threads, Pair **pairs, int64_t *same, Effort *effort, const Watch *watch)
{
    Corpus corpus;
    int64_t found = 0, room = 0;
    Quest *quest = malloc(sizeof *quest);
    int fine = start_corpus(&corpus, page, rule, guards, weights, effort) && quest;
    if (fine) {
        quest->budget = budget;
        quest->old = 0;
        quest->each = each;
        fine = start_quest(quest, &corpus, threads);
        Seeker *own = quest->seekers;
        for (quest->start = 0; fine && quest->start < page->count; quest->start = quest->end) {
            fine = seek_block(quest, page->count, watch);
            for (int64_t i = quest->start; fine && i < quest->end; i++) {
                if (corpus.same[i] != i)
                    continue;
                Run run = quest->runs[i - quest->start];
                if (run.count)
                    fine = add_pairs(pairs, &found, &room, quest->seekers[run.seeker].pairs + run.first, run.count);
                int64_t first = own->found, count = seek(quest, own, i, quest->start, run.count);
                fine = fine && !own->failed;
                if (fine && count)
                    fine = add_pairs(pairs, &found, &room, own->pairs + first, count);
                own->found = first;
                enlist(&corpus, i);
            }
        }
        end_quest(quest, effort);
    }
    if (fine)
        memcpy(same, corpus.same, (size_t)page->count * sizeof *same);
    free(quest);
    free_corpus(&corpus);
    return fine ? found : -1;
}
