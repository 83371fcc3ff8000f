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
    return least_resemblance(rule, by_length ? shingles_of(page, hit) : 1);
}

static int64_t count_inner(const int32_t *values, int64_t length)
{
    int64_t inner = length;
    for (int64_t i = 0; i < length; i++)
        inner -= values[i] & 1;
    return inner;
}

/* How many values a hit shares at least with any near-duplicate, of which it has `length`. A pair shares at least `bar` times
 * the values of either of the two, whichever of them ends first; or of those inside, if they differ at their edges. */
static int64_t least_shared(const Page *page, const Rule *rule, int64_t hit, int edges, int64_t length)
{
    double bar = edges & IS_WHOLE ? rule->least : least_bar_of(page, rule, hit);
    if (edges & IS_MARKED)
        length -= length_of(page, hit) - count_inner(values_of(page, hit), length_of(page, hit));
    double least = (bar - 2 * ROUNDING) * (double)length;
    return least <= 1 ? 1 : (int64_t)ceil(least);
}

/* What two hits share, as the weight of their common values; and the largest weight of an inner value of one of them alone. */
static double weigh_shared_values(const Page *page, Weights *weights, int64_t first, int64_t second, double *most)
{
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    const uint32_t *of_a = weights_of(weights, page, first), *of_b = weights_of(weights, page, second);
    int64_t left = length_of(page, first), right = length_of(page, second), i = 0, j = 0;
    double usual = 0;
    while (i < left || j < right) {
        int32_t one = i < left ? a[i] >> 1 : INT32_MAX, other = j < right ? b[j] >> 1 : INT32_MAX;
        double weight = one < other ? of_a[i] : other < one ? of_b[j] : of_a[i] < of_b[j] ? of_a[i] : of_b[j];
        if (one == other)
            usual += weight;
        else if (!((one < other ? a[i] : b[j]) & 1) && weight > *most)
            *most = weight;
        i += one <= other, j += other <= one;
    }
    return usual;
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
    int64_t left = length_of(page, first), right = length_of(page, second), met = 0, shared = 0;
    int64_t inner[2] = {count_inner(a, left), count_inner(b, right)}, own[2] = {inner[0], inner[1]};
    for (int64_t i = 0, j = 0; i < left && j < right;) { /* without a branch: most pairs end here */
        int32_t one = a[i] >> 1, other = b[j] >> 1, same = one == other;
        met += same;
        shared += same & ~(a[i] | b[j]);
        own[0] -= same & ~a[i];
        own[1] -= same & ~b[j];
        i += one <= other, j += other <= one;
    }
    int64_t smaller = own[0] < own[1] ? own[0] : own[1], apart = own[0] + own[1], edges = left + right - 2 * met - apart;
    if ((double)shared < (rule->least - ROUNDING) * (double)(inner[0] > inner[1] ? inner[0] : inner[1]))
        return 0;
    if (!edges && !apart) /* the same words */
        return 1;
    if (!edges || shared < LEAST_SHARED || shared < smaller
        || 2 * smaller > (rule->twice > 0 ? MOST_APART : MOST_APART_UNTOLD))
        return 0;
    double most = 0, usual = weights ? weigh_shared_values(page, weights, first, second, &most) : 0, count = (double)met;
    if (!weights || usual < rule->twice * count) /* what they share is rare */
        return 1;
    /* Stored weights are rounded by less than one. */
    int64_t scarce = shared - count_commoner(page, weights, first, second, rule->twice + 1);
    if (scarce >= 2 * smaller && 3 * scarce >= 2 * shared)
        return 1;
    return apart <= MOST_APART
        && (!smaller || (most > 0 && (most + rule->twice) * count >= usual
            && FRAME * count_commoner(page, weights, first, second, usual / count + rule->twice) < shared));
}

/* Whether a pair counts whose resemblance may be enough: the first before the second. edges: see may_differ_at_edges.
 * weighs: what the values that both hold weigh, NULL if that is not known yet. */
static int decide(const Page *page, const Rule *rule, Weights *weights, Pair *pair, Sizes sizes, int edges,
                  const uint32_t *weighs)
{
    int64_t first = pair->hits[0], second = pair->hits[1];
    if ((length_of(page, first) < rule->shortest || length_of(page, second) < rule->shortest) && resemblance_of(pair) < 1)
        return NO;
    if (hardly_differs(rule, pair, sizes.shorter) || (edges && differ_at_edges(page, rule, weights, first, second)))
        return YES;
    if (!weights)
        return counts_unweighed(rule, pair, &sizes);
    pair->weights[0] = sum_of(weights_of(weights, page, first), pair->within[0]);
    if (!weighs && surely_counts(rule, pair, &sizes, pair->weights[0]))
        return YES;
    pair->weights[1] = sum_of(weights_of(weights, page, second), pair->within[1]);
    if (pair->weights[0] && pair->weights[1])
        pair->weights[2] = weighs ? *weighs : weigh_common(weights, page, first, second);
    return counts(rule, pair, &sizes);
}
