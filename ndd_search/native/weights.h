/* The weights of common values.
 *
 * The table is made once (see common_table) and read on every page, also by other processes. It begins with the numbers
 * by which its values are hashed. A hash table follows, and a Bloom filter of eight bits for each slot. Most values are
 * not in the table, and the filter rejects most of these within the L1 cache.
 */
#pragma once
#include <stdlib.h>
#include <string.h>
#include "page.h"

typedef struct {
    int32_t value; /* -1: the slot is free */
    uint32_t weight;
} Common;

/* How a table begins, see hash_of. */
typedef struct {
    uint64_t multiplier, addend;
} Hashing;

typedef struct {
    Hashing hashing;
    const Common *slots;   /* NULL: no value weighs anything */
    const uint8_t *filter; /* a bit is set if a value has this hash */
    int shift;             /* of a 32-bit hash, to the number of a slot */
    uint32_t *weights;     /* of the values of each hit, */
    uint8_t *looked_up;    /* if they were asked for */
    int32_t *maybe;        /* numbers of the values of a hit that find their bit set */
} Weights;

static const double UNIT = 1 << 20; /* of a weight, as in frequency_table.py */
enum { FEW_VALUES = 1 << 11 };      /* the weights of fewer values add up to less than 2**31 */

static uint32_t table_hash(const Hashing *hashing, int32_t value)
{
    return (uint32_t)((hashing->multiplier * (uint32_t)value + hashing->addend) >> 32);
}

/* The slot that has a value, or a free one where it would be; any one of a table that is full. */
static int64_t common_slot(const Weights *weights, int32_t value)
{
    uint32_t most = UINT32_MAX >> weights->shift, at = table_hash(&weights->hashing, value) >> weights->shift;
    for (uint32_t tries = most; tries && weights->slots[at].value != value && weights->slots[at].value >= 0; tries--)
        at = (at + 1) & most;
    return at;
}

static uint32_t filter_bit(const Weights *weights, int32_t value)
{
    return table_hash(&weights->hashing, value) >> (weights->shift - 3);
}

static void look_up(const Weights *weights, const Page *page, int64_t hit)
{
    const int32_t *values = values_of(page, hit);
    const uint8_t *const filter = weights->filter;
    uint32_t *of_values = weights->weights + page->offsets[hit];
    int32_t *const maybe = weights->maybe;
    int64_t length = length_of(page, hit), found = 0;
    const Hashing hashing = weights->hashing;
    const int shift = weights->shift - 3;
    for (int64_t i = 0; i < length; i++) { /* without a branch: set bits are unpredictable */
        uint32_t bit = table_hash(&hashing, values[i]) >> shift;
        maybe[found] = (int32_t)i;
        found += filter[bit / 8] >> bit % 8 & 1;
    }
    memset(of_values, 0, (size_t)length * sizeof *of_values);
    for (int64_t j = 0; j < found; j++) {
        const Common *slot = weights->slots + common_slot(weights, values[maybe[j]]);
        of_values[maybe[j]] = slot->value == values[maybe[j]] ? slot->weight : 0;
    }
    weights->looked_up[hit] = 1;
}

/* The weights of the values of a hit, looked up at the first use. */
static const uint32_t *weights_of(const Weights *weights, const Page *page, int64_t hit)
{
    if (!weights->looked_up[hit])
        look_up(weights, page, hit);
    return weights->weights + page->offsets[hit];
}

static uint64_t sum_of(const uint32_t *weights, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t end; count; count -= end, weights += end) {
        uint32_t part = 0; /* four are added at a time, as long as they fit */
        end = count < FEW_VALUES ? count : FEW_VALUES;
        for (int64_t i = 0; i < end; i++)
            part += weights[i];
        sum += part;
    }
    return sum;
}

/* The weight of the values that two hits share. */
static uint64_t weigh_common(const Weights *weights, const Page *page, int64_t first, int64_t second)
{
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    const uint32_t *of_first = weights_of(weights, page, first);
    Merge merge = {a, a + length_of(page, first), b, b + length_of(page, second)};
    uint64_t weight = 0;
    for (const int32_t *at = a; goes_on(&merge); at = merge.a)
        weight += of_first[at - a] & (uint32_t)-step(&merge);
    return weight;
}
