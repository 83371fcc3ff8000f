/* The decision whether a pair of hits is a near-duplicate.
 *
 * This is the rule of matching/decision.py, which explains it; its numbers are arguments (native.Rule). With power 0
 * and asked 0 the rule is a fixed bar on resemblance. Both implementations decide the same for each pair: all
 * operations are exact or rounded by IEEE 754, except pow(), whose last bits differ between libraries. A result that is
 * closer to the bar than the error of pow() is UNSURE, and numpy decides.
 */
#pragma once
#include <math.h>
#include <stdlib.h>
#include "weights.h"

typedef struct {
    double least, asked, common; /* of the bar, see bar_of */
    double power, margin;       /* of the discount of the resemblance for common values */
    double differ;              /* the share that may differ whatever the idf, for each of ENOUGH shingles */
    double edges;               /* 1: odd values touch an edge of their text, see short_copies.h; */
    double twice;               /* a weight, see there */
    double adds;                /* the share of the idf of either text that the other may lack */
    double content;             /* shingles of both documents' own that put `own_bar` half-way to 1 - least; 0: none do */
    int64_t shortest;           /* a hit of fewer values is a near-duplicate only of one with the same values */
    int64_t measure;            /* that `least` is a bar on; only collections read it, see is_measured_pair */
} Rule;

enum { BY_KMV, BY_BRODER, BY_OVERLAP, BY_SHORTER, MEASURES }; /* see matching/similarity_measures.py */

static const double ROUNDING = 1e-9; /* as in decision.py and shared_sketch_values.py */
static const double SURE = 1e-12;

typedef struct {
    int32_t hits[2];     /* the first before the second */
    int32_t within[2];   /* values of each up to the smaller limit of the two */
    int32_t shared;      /* values that both hold */
    uint64_t weights[3]; /* sums of weights: of within[0], within[1] and shared */
} Pair;

enum { NO, YES, UNSURE = -1 }; /* whether a pair is accepted; UNSURE also without memory */

static double larger(double a, double b) { return a > b ? a : b; }

/* The bar of a pair whose shorter document has this number of shingles. commonness: 1 - the mean idf of what both hold; the
 * bar grows with it. */
static double bar_of(const Rule *rule, double shingles, double commonness)
{
    if (!rule->asked)
        return rule->least;
    double family = commonness / rule->common + 0.5;
    double bar = rule->least + rule->asked * (family < 1 ? family : 1) / shingles;
    return bar < 1 ? bar : 1;
}

enum { ENOUGH = 80 };

/* The resemblance that such a pair has at least: of its bar, or because hardly anything differs. */
static double least_resemblance(const Rule *rule, double shingles)
{
    double bar = bar_of(rule, shingles, 0), sure = 1 - rule->differ * ENOUGH;
    return bar < sure ? bar : sure;
}

/* The bar on the resemblance itself: the bar of the pair, raised for content of both documents' own.
 * own: the smaller idf sum of the values that only one of them has. longer: shingles of the longer document. */
static double own_bar(const Rule *rule, double bar, const Pair *pair, double own, double longer)
{
    if (rule->content == 0)
        return bar;
    double pages = larger(own, 0) * (longer / (double)(pair->within[0] > pair->within[1] ? pair->within[0]
                                                                                          : pair->within[1]));
    pages /= rule->content;
    double square = pages * pages, sixth = square * square * square;
    return bar + larger(1 - rule->least - bar, 0) * (sixth / (1 + sixth));
}

/* An upper bound of `own` in `own_bar`, exact without weights: each value has an idf of at most 1. */
static double most_own(const Pair *pair)
{
    return (pair->within[0] < pair->within[1] ? pair->within[0] : pair->within[1]) - pair->shared;
}

/* Resemblance, KMV estimate (see sketching/estimate_similarity.py). */
static double resemblance_of(const Pair *pair)
{
    return (double)pair->shared / (double)(pair->within[0] + pair->within[1] - pair->shared);
}

/* The sum of the idf of values: each has an idf of 1 - weight / UNIT. */
static double rare(int32_t number, uint64_t weight) { return number - (double)weight / UNIT; }

/* Whether hardly anything differs, as decision.surely_copies. */
static int hardly_differs(const Rule *rule, const Pair *pair, double shorter)
{
    return rule->differ > 0
           && 1 - resemblance_of(pair) <= rule->differ * (shorter < ENOUGH ? shorter : ENOUGH) + ROUNDING;
}

/* Whether a text whose values have this idf adds too much to one that has `shared` of it. own: what the other lacks. */
static int adds_much(const Rule *rule, double own, double shared) { return own > rule->adds * (own + shared) + ROUNDING; }

/* What the decision of a pair needs to know of its documents: the shingles of the shorter and the longer one. */
typedef struct {
    double shorter, longer;
} Sizes;

static Sizes sizes_of(double one, double other) { return one < other ? (Sizes){one, other} : (Sizes){other, one}; }

/* The part of the exponent that depends on how much differs. */
static double differing(const Rule *rule, const Pair *pair, const Sizes *sizes)
{
    double different = 1 - resemblance_of(pair) + rule->margin / larger(sizes->shorter, 1);
    return different < 1 ? different : 1;
}

/* Whether a pair is certainly accepted, given an upper bound of the weight of its shared values: the weight of all
 * values of one hit. This decides most copies with one look-up. */
static int surely_counts(const Rule *rule, const Pair *pair, const Sizes *sizes, uint64_t weight)
{
    double specificity = rare(pair->shared, weight) / pair->shared; /* a lower bound, as idf is at most 1 */
    double bar = bar_of(rule, sizes->shorter, 1 - specificity), resemblance = resemblance_of(pair);
    double power = rule->power * differing(rule, pair, sizes);
    double fourth = 1 - power / 4 * (1 / specificity - 1); /* of the power: log(x) >= 1 - 1 / x */
    int32_t longer = pair->within[0] > pair->within[1] ? pair->within[0] : pair->within[1];
    return specificity > 0 && fourth > 0 && !adds_much(rule, longer - pair->shared, rare(pair->shared, weight))
           && resemblance * (fourth * fourth * fourth * fourth) > bar + ROUNDING
           && resemblance > own_bar(rule, bar, pair, most_own(pair), sizes->longer) + ROUNDING;
}

/* Whether a pair without common values is accepted. */
static int counts_unweighed(const Rule *rule, const Pair *pair, const Sizes *sizes)
{
    double bar = bar_of(rule, sizes->shorter, 0);
    int32_t longer = pair->within[0] > pair->within[1] ? pair->within[0] : pair->within[1];
    return !adds_much(rule, longer - pair->shared, pair->shared)
           && resemblance_of(pair) >= own_bar(rule, bar, pair, most_own(pair), sizes->longer) - ROUNDING;
}

/* Whether a pair is accepted: by its resemblance alone, and after the discount for common values. */
static int counts(const Rule *rule, const Pair *pair, const Sizes *sizes)
{
    double shared = rare(pair->shared, pair->weights[2]);
    double own_left = rare(pair->within[0], pair->weights[0]) - shared;
    double own_right = rare(pair->within[1], pair->weights[1]) - shared;
    double own = own_left + own_right > ROUNDING ? own_left + own_right : ROUNDING;
    double smaller = own_left < own_right ? own_left : own_right;
    double commonness = (pair->shared - shared) / larger(pair->shared, 1);
    double least = bar_of(rule, sizes->shorter, commonness), bar = least - ROUNDING, resemblance = resemblance_of(pair);
    int32_t apart = pair->within[0] + pair->within[1] - 2 * pair->shared;
    if (adds_much(rule, own_left > own_right ? own_left : own_right, shared)
        || resemblance < own_bar(rule, least, pair, smaller, sizes->longer) - ROUNDING)
        return NO;
    if (!apart || !pair->weights[2] || rule->power == 0)
        return YES;
    double specificity = shared / pair->shared * (apart / own), mutuality = 2 * (smaller > 0 ? smaller : 0) / own;
    double power = rule->power * differing(rule, pair, sizes) * mutuality;
    if (specificity > 1)
        specificity = 1;
    /* e**x >= 1 + x and log(x) <= x - 1 bound the power by a product, which rejects most texts in a frame early. */
    if (resemblance < (bar - SURE) * (1 + power * (1 - specificity)))
        return NO;
    double over = resemblance * pow(specificity, power) - bar;
    return over > SURE ? YES : over < -SURE ? NO : UNSURE;
}
