/* The lists of the documents that hold a value: see corpus.h. */
#pragma once
#include "corpus_documents.h"

/* How many values a document shares at least with any that it counts as a pair with. */
static int64_t least_of(const Page *page, const Rule *rule, int64_t document)
{
    int64_t length = length_of(page, document);
    if (rule->measure == BY_SHORTER && length > rule->shortest) /* the other one may be as short as that */
        length = rule->shortest;
    return least_shared(page, rule, document, edges_of(page, rule, document), length);
}

enum { HOT = 32 }; /* holders of a value above which it is hot, if documents are weighed */

/* The values of a document that others hold too, as `keys` in the global order. */
enum { COMMON_BIT = 56, HOLDERS_BIT = 40, KEY_BIT = 8 }; /* the lowest bits are the place of the value in the sketch */

static int is_hot(uint64_t key) { return (key >> HOLDERS_BIT & UINT16_MAX) > HOT; }

/* An entry of a document in the list of a value. kind: 0 for a value that is not hot; for a hot one SUBLISTS and, as bits,
 * the profiles in which the entry is closed. Two documents are refused whose first shared value, in the global order, is
 * that of two entries which are closed in one profile. */
typedef struct {
    int32_t key;
    uint8_t after, kind;
} Entry;

/* Whether a pair is refused that shares hot values only, from one of `keys` on in the global order, of which `sorted` are
 * at the head in that order. */
static int refuses_from(Content *content, int profile, const uint64_t *keys, int64_t sorted, int64_t from, int others)
{
    for (int64_t j = 0; j < sorted; j++)
        content->is_hot[(uint8_t)keys[j]] = (uint8_t)(j >= from && is_hot(keys[j]));
    return refuses(content, profile, others);
}

/* Set the levels of a document, and close those of its entries that can be closed. Two documents that have a level of at
 * least n in one profile are refused if they share at most n values that are not hot. POOR: a pair may count that shares
 * hot values only. keys: `sorted` of them are at the head in the global order, as many as there are entries; `content`
 * holds all hot values. */
static void set_levels(Corpus *corpus, int64_t document, Content *content, const uint64_t *keys, int64_t sorted,
                       Entry *entries)
{
    const Page *page = corpus->page;
    const uint32_t *weights = weights_of(corpus->weights, page, document);
    Meeting *meeting = corpus->meetings + document;
    content->bar = least_bar_of(page, corpus->rule, document) * (1 - 1e-6);
    content->power = corpus->rule->power;
    content->sure = 1 - corpus->rule->differ * ENOUGH - ROUNDING;
    content->k = page->k;
    content->length = length_of(page, document);
    content->least = meeting->least;
    content->hot = 0;
    int marked = edges_of(page, corpus->rule, document) & IS_MARKED;
    content->first[0] = 0;
    for (int64_t i = 0; i < content->length; i++) {
        content->rareness[i] = rareness_of(weights[i]);
        content->first[i + 1] = content->first[i] + content->rareness[i];
        content->hot += content->is_hot[i];
    }
    int64_t start = 0; /* of the hot ones among the entries */
    while (start < sorted && !is_hot(keys[start]))
        start++;
    for (int profile = 0; profile < PROFILES; profile++) {
        int level = content->least < MOST_LEVEL ? (int)content->least : MOST_LEVEL;
        if (marked) {
            meeting->levels[profile] = POOR; /* a form too may be a copy that differs at its edges */
            continue;
        }
        if (content->hot < content->least)
            level = 0; /* any pair shares other values, at least one of which is looked up */
        else
            while (level > POOR && !refuses_from(content, profile, keys, sorted, start, level))
                level--;
        meeting->levels[profile] = (int8_t)level;
        int64_t open = start, closed = level > POOR ? start : sorted; /* the first closed entry is among open..closed */
        while (open < closed) {
            int64_t middle = (open + closed) / 2;
            if (refuses_from(content, profile, keys, sorted, middle, 0))
                closed = middle;
            else
                open = middle + 1;
        }
        for (int64_t j = closed; j < sorted; j++)
            entries[j].kind |= (uint8_t)(1 << profile);
    }
}

/* The values of a document that others hold too, as `keys`; the values that no other document holds come first in the
 * global order. Sets what is known of hot values in `content`. Returns how many keys there are. */
static int64_t keys_of(const Corpus *corpus, int64_t document, const uint16_t *popular, Slots slots, uint64_t *keys,
                       Content *content)
{
    const Page *page = corpus->page;
    const int32_t *values = values_of(page, document);
    const uint32_t *weights = corpus->weights ? weights_of(corpus->weights, page, document) : NULL;
    int64_t length = length_of(page, document), found = 0;
    for (int64_t i = 0; i < length; i++) {
        int32_t key = key_of(corpus->guards, document, values[i]);
        uint64_t holders = popular[slot_of(key, slots)], common = weights && weights[i] && holders > HOT;
        keys[found] = common << COMMON_BIT | holders << HOLDERS_BIT | (uint64_t)(uint32_t)key << KEY_BIT | (uint64_t)i;
        content->is_hot[i] = (uint8_t)is_hot(keys[found]);
        found += holders > 1;
    }
    return found;
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

/* The entries of a document, in the global order. Returns how many there are. */
static int64_t enter(Corpus *corpus, int64_t document, const uint16_t *popular, Slots slots, Entry *entries)
{
    uint64_t keys[MOST_VALUES + 1];
    Content content;
    int64_t found = keys_of(corpus, document, popular, slots, keys, &content);
    int64_t count = found - corpus->meetings[document].least + 1;
    if (count > 0)
        sort_smallest(keys, found, count);
    count = count > 0 ? count : 0;
    for (int64_t j = 0; j < count; j++) {
        int hot = corpus->weights && is_hot(keys[j]);
        entries[j] = (Entry){(int32_t)(keys[j] >> KEY_BIT), (uint8_t)(found - j - 1), hot ? SUBLISTS : 0};
    }
    if (corpus->weights)
        set_levels(corpus, document, &content, keys, count, entries);
    return count;
}

/* Ask memory for the holders of the values of a document, if there is one. */
static void fetch_holders(const Corpus *corpus, int64_t document, const uint16_t *popular, Slots slots)
{
    const Page *page = corpus->page;
    if (document < page->count)
        for (int64_t at = page->offsets[document]; at < page->offsets[document + 1]; at++)
            FETCH(popular + slot_of(key_of(corpus->guards, document, page->values[at]), slots));
}

/* What is known of each document by itself, and in how many documents each value stands, for `popular`. */
static void look_at_all(Corpus *corpus, uint16_t *popular, Slots slots, Effort *effort)
{
    const Page *page = corpus->page;
    for (int64_t i = 0; i < page->count; i++) {
        fetch_holders(corpus, i + 1, popular, slots);
        corpus->meetings[i] = (Meeting){.with = -1, .least = 1};
        if (corpus->same[i] != i || !length_of(page, i))
            continue;
        effort->documents++;
        corpus->meetings[i].least = (uint8_t)least_of(page, corpus->rule, i);
        for (int64_t at = page->offsets[i]; at < page->offsets[i + 1]; at++) {
            uint16_t *holders = popular + slot_of(key_of(corpus->guards, i, page->values[at]), slots);
            *holders += *holders < UINT16_MAX;
        }
    }
}

/* Numbers for keys, in the order of their first use, by a bitmap of hashes. Few keys have one hash and so one number. */
typedef struct {
    uint32_t bits, before; /* set in all words before this one */
} Word;

typedef struct {
    Word *words;
    Slots slots;
    int32_t *numbers; /* of each bit that is set, 0: none yet */
} Numbers;

enum { SOON = 16 }; /* entries ahead for which memory is asked */

static uint64_t bit_of(const Numbers *numbers, int32_t key) { return slot_of(key, numbers->slots); }

static int ones_in(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    return (int)(((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

/* slots: of `popular`. Keys of one bit have one slot there, so all of them are hot or none is. 0: no memory. */
static int start_numbers(Numbers *numbers, Slots slots)
{
    int shift = slots.shift - 2 > LEAST_SHIFT ? slots.shift - 2 : LEAST_SHIFT; /* four bits a value */
    numbers->slots = (Slots){slots.multiplier, shift};
    numbers->words = calloc_large((size_t)1 << (64 - 5 - shift), sizeof *numbers->words);
    return numbers->words != NULL;
}

static void mark_key(const Numbers *numbers, int32_t key)
{
    uint64_t bit = bit_of(numbers, key);
    numbers->words[bit / 32].bits |= 1u << bit % 32;
}

/* 0: no memory. */
static int count_marked(Numbers *numbers)
{
    uint32_t before = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << (64 - 5 - numbers->slots.shift); i++) {
        numbers->words[i].before = before;
        before += (uint32_t)ones_in(numbers->words[i].bits);
    }
    numbers->numbers = calloc_large((size_t)before + 1, sizeof *numbers->numbers);
    return numbers->numbers != NULL;
}

/* Where the number of a marked key is kept. */
static int32_t *number_of(const Numbers *numbers, int32_t key)
{
    uint64_t bit = bit_of(numbers, key);
    Word word = numbers->words[bit / 32];
    return numbers->numbers + word.before + ones_in(word.bits & ((1u << bit % 32) - 1));
}

/* The list that an entry's document is in. */
static int64_t own_list(const Corpus *corpus, int64_t entry)
{
    return corpus->list[entry] + corpus->kind[entry] % SUBLISTS;
}

/* Replace the keys in corpus->list by numbers of lists. Returns how many lists there are. */
static int64_t number_lists(Corpus *corpus, const Numbers *numbers, int64_t entries)
{
    int64_t lists = 0;
    for (int64_t entry = 0; entry < entries; entry++) {
        if (entry + 2 * SOON < entries)
            FETCH(numbers->words + bit_of(numbers, corpus->list[entry + 2 * SOON]) / 32);
        if (entry + SOON < entries)
            FETCH(number_of(numbers, corpus->list[entry + SOON]));
        int32_t *number = number_of(numbers, corpus->list[entry]);
        if (!*number) {
            *number = (int32_t)lists + 1;
            lists += corpus->kind[entry] ? SUBLISTS : 1;
        }
        corpus->list[entry] = *number - 1;
    }
    return lists;
}

/* The entries of all documents, with keys in place of lists. Returns how many there are. */
static int64_t enter_all(Corpus *corpus, const uint16_t *popular, Slots slots, const Numbers *numbers)
{
    const Page *page = corpus->page;
    Entry own[MOST_VALUES + 1];
    int64_t entries = 0;
    for (int64_t i = 0; i < page->count; i++) {
        corpus->first[i] = entries;
        fetch_holders(corpus, i + 1, popular, slots);
        if (corpus->same[i] != i || !length_of(page, i))
            continue;
        int64_t count = enter(corpus, i, popular, slots, own);
        for (int64_t j = 0; j < count; j++, entries++) {
            corpus->list[entries] = own[j].key;
            corpus->after[entries] = own[j].after;
            corpus->kind[entries] = own[j].kind;
            mark_key(numbers, own[j].key);
        }
    }
    corpus->first[page->count] = entries;
    return entries;
}

/* The lists and entries of all documents. 0: no memory. */
static int make_lists(Corpus *corpus, Effort *effort)
{
    const Page *page = corpus->page;
    int64_t all = page->offsets[page->count], entries = 0, lists = 0;
    Slots slots = {corpus->multiplier, shift_for(all + 16)};
    uint16_t *popular = calloc_large((size_t)1 << (64 - slots.shift), sizeof *popular);
    Numbers numbers = {0};
    corpus->list = malloc((size_t)all * sizeof *corpus->list + 1); /* the system lends what is written to */
    corpus->after = malloc((size_t)all + 1);
    corpus->kind = malloc((size_t)all + 1);
    int fine = popular && corpus->list && corpus->after && corpus->kind && start_numbers(&numbers, slots);
    if (fine) {
        look_at_all(corpus, popular, slots, effort);
        entries = enter_all(corpus, popular, slots, &numbers);
    }
    free(popular);
    fine = fine && entries < INT32_MAX / 2 && count_marked(&numbers);
    if (fine)
        lists = number_lists(corpus, &numbers, entries);
    fine = fine && lists < INT32_MAX;
    free(numbers.words);
    free(numbers.numbers);
    corpus->lists = fine ? calloc_large((size_t)lists + 1, sizeof *corpus->lists) : NULL;
    corpus->held = fine ? calloc_large((size_t)entries + 1, sizeof *corpus->held) : NULL;
    if (!corpus->lists || !corpus->held)
        return 0;
    for (int64_t entry = 0; entry < entries; entry++)
        corpus->lists[own_list(corpus, entry)].filled++;
    int32_t start = 0;
    for (int64_t i = 0; i < lists; i++) {
        int32_t count = corpus->lists[i].filled;
        corpus->lists[i] = (List){start, 0};
        start += count;
    }
    return 1;
}

static void free_corpus(Corpus *corpus)
{
    void *rooms[] = {corpus->same, corpus->first, corpus->list, corpus->after, corpus->kind, corpus->lists,
                     corpus->held, corpus->meetings, corpus->met};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]);
}

/* 0: no memory, or a sketch is too long. */
static int start_corpus(Corpus *corpus, const Page *page, const Rule *rule, const Guards *guards, Weights *weights,
                        Effort *effort)
{
    size_t count = (size_t)page->count + 1;
    *corpus = (Corpus){.page = page, .rule = rule, .guards = guards, .weights = weights, .multiplier = multiplier_for(page)};
    corpus->same = malloc(count * sizeof *corpus->same);
    corpus->first = malloc(count * sizeof *corpus->first);
    corpus->meetings = calloc_large(count, sizeof *corpus->meetings);
    corpus->met = malloc(count * sizeof *corpus->met);
    if (page->k > MOST_VALUES || !corpus->same || !corpus->first || !corpus->meetings || !corpus->met)
        return 0;
    return find_same(page, guards, corpus->same) && make_lists(corpus, effort);
}

/* From now on others meet a document. */
static void enlist(Corpus *corpus, int64_t document)
{
    for (int64_t entry = corpus->first[document]; entry < corpus->first[document + 1]; entry++) {
        List *list = corpus->lists + own_list(corpus, entry);
        corpus->held[list->start + list->filled++] = (Listed){(int32_t)document, corpus->after[entry]};
    }
}
