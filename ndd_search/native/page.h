/* The sketches of a page, and two rows of them read side by side. */
#pragma once
#include <stdint.h>

typedef struct {
    int32_t *values;  /* one sketch after the other, ascending and distinct within each */
    int64_t *offsets; /* hit i has values[offsets[i]] to values[offsets[i + 1] - 1] */
    int64_t count;    /* hits */
    int64_t k;        /* a sketch of k values is a sample of its document, a shorter one the whole of it */
} Page;

static const int32_t *values_of(const Page *page, int64_t hit) { return page->values + page->offsets[hit]; }

static int64_t length_of(const Page *page, int64_t hit) { return page->offsets[hit + 1] - page->offsets[hit]; }

/* The largest value up to which the sketch contains all values of the document. */
static int32_t limit_of(const Page *page, int64_t hit)
{
    int64_t length = length_of(page, hit);
    return length >= page->k ? values_of(page, hit)[length - 1] : INT32_MAX;
}

/* How many shingles a document has, as estimates.estimated_shingles. */
static double shingles_of(const Page *page, int64_t hit)
{
    int64_t length = length_of(page, hit);
    if (length < page->k)
        return (double)length;
    return (double)(page->k > 1 ? page->k - 1 : 1) * 2147483648.0 / ((double)values_of(page, hit)[length - 1] + 1);
}

/* How many of ascending values are at most `limit`, without a branch that the processor cannot predict. */
static int64_t rank_in(const int32_t *values, int64_t length, int32_t limit)
{
    const int32_t *low = values;
    if (!length)
        return 0;
    while (length > 1) {
        int64_t half = length / 2;
        low += half & -(int64_t)(low[half - 1] <= limit);
        length -= half;
    }
    return low - values + (*low <= limit);
}

/* Two ascending rows, read side by side. */
typedef struct {
    const int32_t *a, *a_end, *b, *b_end;
} Merge;

static int goes_on(const Merge *merge) { return merge->a < merge->a_end && merge->b < merge->b_end; }

/* One step on; whether the two values were equal. */
static int64_t step(Merge *merge)
{
    int32_t left = *merge->a, right = *merge->b;
    merge->a += left <= right;
    merge->b += right <= left;
    return left == right;
}

/* How many values two rows share. */
static int64_t count_common(Merge rows)
{
    int64_t common = 0, half = (rows.a_end - rows.a) / 2;
    if (!goes_on(&rows))
        return 0;
    /* Two halves at a time, because each step depends on the one before it, but not on those of the other half. */
    Merge lower = rows, upper = rows;
    lower.a_end = upper.a = rows.a + half;
    lower.b_end = upper.b = rows.b + rank_in(rows.b, rows.b_end - rows.b, *upper.a - 1);
    while (goes_on(&lower) && goes_on(&upper))
        common += step(&lower) + step(&upper);
    while (goes_on(&lower))
        common += step(&lower);
    while (goes_on(&upper))
        common += step(&upper);
    return common;
}

static int is_regular(const Page *page)
{
    for (int64_t hit = 0; hit < page->count; hit++) {
        const int32_t *values = values_of(page, hit);
        int64_t length = length_of(page, hit);
        int wrong = length && values[0] < 0;
        for (int64_t i = 1; i < length; i++)
            wrong |= values[i] <= values[i - 1];
        if (wrong)
            return 0;
    }
    return 1;
}

/* Random numbers of this process, the multiplier odd (see module.c). Values come from documents: who knew these numbers
 * could write documents whose values all have one slot. No result depends on them. */
static uint64_t multiplier, addend;

/* Multiply-shift hashing (Dietzfelbinger 1996): of two values that differ, each pair of hashes is equally likely. */
static uint32_t hash_of(int32_t value) { return (uint32_t)((multiplier * (uint32_t)value + addend) >> 32); }
