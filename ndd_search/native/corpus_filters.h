/* What the prefix, size and bitmap filters need to know of each document: see corpus.h. */
#pragma once
#include "corpus_documents.h"

/* The bar of any pair of a document, at least. */
static double least_bar(const Page *page, const Rule *rule, int64_t document)
{
    return least_bar_of(page, rule, document, edges_of(page, rule, document));
}

/* How many values a document shares at least with any that it counts as a pair with. */
static int64_t least_of(const Page *page, const Rule *rule, int64_t document)
{
    int64_t length = length_of(page, document);
    if (rule->measure == BY_SHORTER && length > rule->shortest) /* the other one may be as short as that */
        length = rule->shortest;
    double least = (least_bar(page, rule, document) - 2 * ROUNDING) * (double)length;
    return least <= 1 ? 1 : (int64_t)ceil(least);
}

static Bitmap bitmap_of(const Page *page, int64_t document, uint64_t multiplier)
{
    Bitmap bitmap = {{0}};
    for (int64_t at = page->offsets[document]; at < page->offsets[document + 1]; at++) {
        uint64_t bit = slot_of(page->values[at], (Slots){multiplier, 64 - 9});
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

/* Set in which zone the largest value of a sketch is, and how many of its values are in lower zones. Other measures than
 * KMV do not ask how many values count, so that all their sketches are OPEN. */
static void set_zone(Corpus *corpus, int64_t document)
{
    const Page *page = corpus->page;
    int64_t length = length_of(page, document);
    Meeting *meeting = corpus->meetings + document;
    meeting->zone = OPEN;
    if (length < page->k || corpus->rule->measure != BY_KMV)
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

/* How many values a document shares at least with one that is 0, 1, ... zones lower and counts as a pair with it. */
static void set_needs(const Corpus *corpus, int64_t document, uint8_t *needs)
{
    double bar = least_bar(corpus->page, corpus->rule, document) - 2 * ROUNDING;
    for (int i = 0; i < NEAR; i++)
        needs[i] = (uint8_t)ceil(bar * (double)(corpus->page->k + corpus->meetings[document].below[i]) / (1 + bar));
}
