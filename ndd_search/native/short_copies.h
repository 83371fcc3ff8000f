/* Which short texts are copies that differ at their edges: as matching/short_copies.py, which says what that is. */
#pragma once
#include "rule.h"

enum { LEAST_SHARED = 4, MOST_APART = 12, MOST_APART_UNTOLD = 11, FRAME = 4 }; /* values inside; UNTOLD: without a table */
enum { IS_WHOLE = 1, IS_MARKED = 2 };

/* IS_WHOLE: a sketch has all values of its document, none of them as an odd and an even one; IS_MARKED: some are odd as well. */
static int edges_of(const Page *page, const Rule *rule, int64_t hit)
{
    const int32_t *values = values_of(page, hit);
    int64_t length = length_of(page, hit);
    int odd = 0, twins = 0;
    if (rule->edges == 0 || length >= page->k)
        return 0;
    for (int64_t i = 0; i < length; i++)
        odd |= values[i] & 1;
    for (int64_t i = 1; odd && i < length; i++)
        twins |= values[i] >> 1 == values[i - 1] >> 1;
    return twins ? 0 : odd ? IS_WHOLE | IS_MARKED : IS_WHOLE;
}

/* Whether two hits can be copies of this kind. edges: of both, see edges_of. */
static int may_differ_at_edges(int edges, int others) { return edges & others & IS_WHOLE && (edges | others) & IS_MARKED; }

/* The bar of any pair of a hit, at least; but of pairs that differ at their edges. */
static double least_bar_of(const Page *page, const Rule *rule, int64_t hit)
{
    int by_length = rule->asked > 0 || rule->power > 0 || rule->content > 0;
    return least_resemblance(rule, by_length ? shingles_of(page, hit) : rule->known);
}

/* How many values a hit shares at least with any near-duplicate, of which it has `length`. A pair shares at least `bar` times
 * the values of either of the two, whichever of them ends first; or of those inside, if they differ at their edges. */
static int64_t least_shared(const Page *page, const Rule *rule, int64_t hit, int edges, int64_t length)
{
    double bar = edges & IS_WHOLE ? rule->least : least_bar_of(page, rule, hit);
    if (edges & IS_MARKED)
        for (int64_t i = 0; i < length_of(page, hit); i++)
            length -= values_of(page, hit)[i] & 1;
    double least = (bar - 2 * ROUNDING) * (double)length;
    return least <= 1 ? 1 : (int64_t)ceil(least);
}

/* How many of the inner values that two hits share weigh more than a bound. */
static int64_t count_commoner(const Page *page, Weights *weights, int64_t first, int64_t second, double bound)
{
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    const uint32_t *of_a = weights_of(weights, page, first), *of_b = weights_of(weights, page, second);
    int64_t left = length_of(page, first), right = length_of(page, second), i = 0, j = 0, count = 0;
    while (i < left && j < right) {
        int32_t one = a[i] >> 1, other = b[j] >> 1;
        if (one == other)
            count += !((a[i] | b[j]) & 1) && (of_a[i] < of_b[j] ? of_a[i] : of_b[j]) > bound;
        i += one <= other, j += other <= one;
    }
    return count;
}

/* Whether two hits that can be are such copies. weights: NULL without a table. */
static int differ_at_edges(const Page *page, const Rule *rule, Weights *weights, int64_t first, int64_t second)
{
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    const uint32_t *of_a = weights ? weights_of(weights, page, first) : NULL;
    const uint32_t *of_b = weights ? weights_of(weights, page, second) : NULL;
    int64_t left = length_of(page, first), right = length_of(page, second), i = 0, j = 0;
    int64_t own[2] = {0, 0}, inner[2] = {0, 0}, shared = 0; /* inside: of one only, of each, and of both */
    double met = 0, usual = 0, most = 0;
    int edge = 0;
    while (i < left || j < right) {
        int32_t one = i < left ? a[i] >> 1 : INT32_MAX, other = j < right ? b[j] >> 1 : INT32_MAX;
        if (one == other) {
            if (weights)
                usual += of_a[i] < of_b[j] ? of_a[i] : of_b[j];
            inner[0] += !(a[i] & 1);
            inner[1] += !(b[j] & 1);
            shared += !((a[i] | b[j]) & 1);
            met++, i++, j++;
            continue;
        }
        int of_second = other < one;
        int32_t value = of_second ? b[j] : a[i];
        double weight = !weights ? 0 : of_second ? of_b[j] : of_a[i];
        if (value & 1)
            edge = 1;
        else {
            own[of_second]++;
            inner[of_second]++;
            most = weight > most ? weight : most;
        }
        i += !of_second, j += of_second;
    }
    int rare = !weights || usual < rule->few_hold * met;
    int64_t smaller = own[0] < own[1] ? own[0] : own[1], apart = rare ? 2 * smaller : own[0] + own[1];
    if ((double)shared < (rule->least - ROUNDING) * (double)(inner[0] > inner[1] ? inner[0] : inner[1]))
        return 0;
    if (!edge && !own[0] && !own[1]) /* the same words */
        return 1;
    if (!edge || shared < LEAST_SHARED || shared < smaller || apart > (rule->few_hold > 0 ? MOST_APART : MOST_APART_UNTOLD))
        return 0;
    if (rare || !smaller)
        return 1;
    return most > 0 && (most + rule->third) * met >= usual
        && FRAME * count_commoner(page, weights, first, second, usual / met + rule->few_hold) < shared;
}
