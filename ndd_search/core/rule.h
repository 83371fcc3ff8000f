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
    double least, asked, few, known; /* the bar is least + asked / shingles of the shorter, limited to few..known */
    double power, margin;       /* of the discount of the resemblance for common values */
    double content;             /* shingles of both documents' own that put `own_bar` half-way to 1 - least; 0: none do */
    int64_t shortest;           /* a hit of fewer values is a near-duplicate only of one with the same values */
} Rule;

static const double ROUNDING = 1e-9; /* as in decision.py and shared_values.py */
static const double SURE = 1e-12;

typedef struct {
    int32_t hits[2];     /* the first before the second */
    int32_t within[2];   /* values of each up to the smaller limit of the two */
    int32_t shared;      /* values that both hold */
    uint64_t weights[3]; /* sums of weights: of within[0], within[1] and shared */
} Pair;

enum { NO, YES, UNSURE = -1 }; /* whether a pair is accepted; UNSURE also without memory */

static double larger(double a, double b) { return a > b ? a : b; }

/* The bar of a pair whose shorter document has this number of shingles. */
static double bar_of(const Rule *rule, double shingles)
{
    double evidence = shingles < rule->few ? rule->few : shingles;
    double bar = rule->least + rule->asked / (evidence < rule->known ? evidence : rule->known);
    return bar < 1 ? bar : 1;
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

/* Resemblance, KMV estimate (see sketching/estimates.py). */
static double resemblance_of(const Pair *pair)
{
    return (double)pair->shared / (double)(pair->within[0] + pair->within[1] - pair->shared);
}

/* The sum of the idf of values: each has an idf of 1 - weight / UNIT. */
static double rare(int32_t number, uint64_t weight) { return number - (double)weight / UNIT; }

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
    double bar = bar_of(rule, sizes->shorter), resemblance = resemblance_of(pair);
    double power = rule->power * differing(rule, pair, sizes);
    double specificity = rare(pair->shared, weight) / pair->shared; /* a lower bound, as idf is at most 1 */
    double fourth = 1 - power / 4 * (1 / specificity - 1); /* of the power: log(x) >= 1 - 1 / x */
    return specificity > 0 && fourth > 0 && resemblance * (fourth * fourth * fourth * fourth) > bar + ROUNDING
           && resemblance > own_bar(rule, bar, pair, most_own(pair), sizes->longer) + ROUNDING;
}

/* Whether a pair without common values is accepted. */
static int counts_unweighed(const Rule *rule, const Pair *pair, const Sizes *sizes)
{
    double bar = bar_of(rule, sizes->shorter);
    return resemblance_of(pair) >= own_bar(rule, bar, pair, most_own(pair), sizes->longer) - ROUNDING;
}

/* Whether a pair is accepted: by its resemblance alone, and after the discount for common values. */
static int counts(const Rule *rule, const Pair *pair, const Sizes *sizes)
{
    double shared = rare(pair->shared, pair->weights[2]);
    double own_left = rare(pair->within[0], pair->weights[0]) - shared;
    double own_right = rare(pair->within[1], pair->weights[1]) - shared;
    double own = own_left + own_right > ROUNDING ? own_left + own_right : ROUNDING;
    double smaller = own_left < own_right ? own_left : own_right;
    double least = bar_of(rule, sizes->shorter), bar = least - ROUNDING, resemblance = resemblance_of(pair);
    int32_t apart = pair->within[0] + pair->within[1] - 2 * pair->shared;
    if (resemblance < own_bar(rule, least, pair, smaller, sizes->longer) - ROUNDING)
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

/* What a hit requires of its pairs. */
typedef struct {
    double bar;      /* less ROUNDING; the bar of a pair is at least the larger one of its hits (see own_bar) */
    double shingles; /* of the document; 1 if the rule does not use them */
    int32_t limit;   /* see limit_of */
    int32_t least;   /* minimum number of shared values with a similar hit, 1 or more */
} Asked;

static void ask(Asked *asked, const Page *page, const Rule *rule)
{
    double bar = bar_of(rule, rule->known);
    for (int64_t hit = 0; hit < page->count; hit++) {
        asked[hit].shingles = 1;
        if (rule->asked > 0 || rule->power > 0 || rule->content > 0)
            bar = bar_of(rule, asked[hit].shingles = shingles_of(page, hit));
        /* A pair shares at least `bar` times the values of either of the two, whichever of them ends first. */
        double least = (bar - 2 * ROUNDING) * (double)length_of(page, hit);
        asked[hit].bar = bar - ROUNDING;
        asked[hit].limit = limit_of(page, hit);
        asked[hit].least = least <= 1 ? 1 : (int32_t)least + ((double)(int32_t)least < least);
    }
}

/* Numbers of each hit that do not depend on the limit of another hit. One array for each number, 32 bits wide, so that
 * the compiler can vectorise the comparison of hits. */
typedef struct {
    int32_t *limit, *mark;       /* see limit_of; the value at five eighths of its values */
    float *bar;                  /* see Asked */
    float *all, *part;           /* how many values it has, and up to its mark; */
    float *rare_all, *rare_part; /* and the sums of their idf, below 0 if not computed yet */
    void *room;
} Sides;

static int64_t up_to_mark(int64_t length) { return length - length * 3 / 8; }

/* 0: no memory. */
static int make_sides(Sides *sides, const Page *page, const Asked *asked)
{
    int64_t count = page->count;
    float *next = sides->room = calloc((size_t)(7 * count + 1), sizeof *next);
    if (!next)
        return 0;
    sides->limit = (int32_t *)next;
    sides->mark = (int32_t *)(next += count);
    float **rest[] = {&sides->bar, &sides->all, &sides->part, &sides->rare_all, &sides->rare_part};
    for (int i = 0; i < 5; i++)
        *rest[i] = next += count;
    for (int64_t hit = 0; hit < count; hit++) {
        int64_t all = length_of(page, hit), part = up_to_mark(all);
        sides->limit[hit] = asked[hit].limit;
        sides->mark[hit] = all ? values_of(page, hit)[part - 1] : INT32_MAX;
        sides->bar[hit] = (float)asked[hit].bar;
        sides->all[hit] = (float)all;
        sides->part[hit] = (float)part;
        sides->rare_all[hit] = -1;
    }
    return 1;
}

/* Set possible[i] to 0 for each earlier hit i that is certainly no near-duplicate of a hit, given the number of shared
 * values and a lower bound of their weight. This rejects nearly all texts in one frame without looking up how many
 * values of one hit are up to the limit of the other: at least those up to its mark, if the mark is below the limit.
 * Unknown values are bounded by their worst case, with a tolerance for float arithmetic. A pair is rejected if
 *
 *     shared < bar * (union + 2 * power * smaller * (1 - specificity))
 *
 * (see Decision.surely_refuses). The code multiplies by the denominators. */
static void tell_possible(const Rule *rule, const Sides *sides, int64_t hit, const uint32_t *shares,
                          const uint32_t *weighs, int32_t *restrict possible)
{
    const float twice_power = (float)(2 * rule->power), unit = (float)(1 / UNIT), exact = 1 - 1e-4f, lost = 5e-3f;
    const int32_t *limits = sides->limit, *marks = sides->mark, its_limit = limits[hit], its_mark = marks[hit];
    const float *bars = sides->bar, *alls = sides->all, *parts = sides->part;
    const float *rare_alls = sides->rare_all, *rare_parts = sides->rare_part;
    const float its_bar = bars[hit], its_all = alls[hit], its_part = parts[hit];
    const float its_rare_all = rare_alls[hit], its_rare_part = rare_parts[hit];
    for (int64_t i = 0; i < hit; i++) {
        float shared = (float)(int32_t)shares[i], rare_shared = shared - (float)(int32_t)weighs[i] * unit + lost;
        float bar = (its_bar > bars[i] ? its_bar : bars[i]) * exact, both = its_all + alls[i];
        /* All values of the hit with the smaller limit are compared, and at least the part of the other one. */
        float all = its_all < alls[i] ? its_all : alls[i], part = its_part < parts[i] ? its_part : parts[i];
        float rare_all = its_rare_all < rare_alls[i] ? its_rare_all : rare_alls[i];
        float rare_part = its_rare_part < rare_parts[i] ? its_rare_part : rare_parts[i];
        /* Idf sums of the values that only one of them contains: the smaller one, and of both. */
        float smaller = rare_part - rare_shared, own = rare_all - rare_shared + smaller;
        float unspecific = shared * own * exact - rare_shared * (both - 2 * shared); /* 1 - s / d, times shared * own */
        float joins = (shared - bar * (all + part - shared)) * shared * own;
        float sets_apart = bar * twice_power * smaller * unspecific;
        possible[i] = (its_mark > limits[i]) | (marks[i] > its_limit) | (smaller <= 0) | (joins >= sets_apart);
    }
}
