/* Which pairs count.
 *
 * The rule of decision.py, which explains it and has its numbers: they come as arguments. A plain bar is the rule that
 * asks nothing more. Both say the same of every pair: all is exact, or rounded as IEEE 754 has it, but for pow(), whose
 * last bits differ from library to library. So what comes out closer to the bar than any of them errs is left to numpy.
 */
#pragma once
#include <math.h>
#include <stdlib.h>
#include "weights.h"

typedef struct {
    double least, asked, few, known; /* the bar of a pair is least + asked / shingles of the shorter in few..known, */
    double power, margin;       /* and of its resemblance as much is taken off as these make of what is common */
    int64_t shortest;           /* a hit of fewer values is similar only to one with the same values */
} Rule;

static const double ROUNDING = 1e-9; /* as in decision.py and counting.py */
static const double SURE = 1e-12;

typedef struct {
    int32_t hits[2];     /* the first before the second */
    int32_t within[2];   /* values of each up to the smaller limit of the two */
    int32_t shared;      /* values that both hold */
    uint64_t weights[3]; /* of all these values: of the first, of the second, shared */
} Pair;

enum { NO, YES, UNSURE = -1 }; /* whether a pair counts; unsure without memory, too */

static double larger(double a, double b) { return a > b ? a : b; }

/* The bar of a pair whose shorter document has so many shingles. */
static double bar_of(const Rule *rule, double shingles)
{
    double evidence = shingles < rule->few ? rule->few : shingles;
    double bar = rule->least + rule->asked / (evidence < rule->known ? evidence : rule->known);
    return bar < 1 ? bar : 1;
}

/* Resemblance, in its KMV form (see similarity.py). */
static double resemblance_of(const Pair *pair)
{
    return (double)pair->shared / (double)(pair->within[0] + pair->within[1] - pair->shared);
}

/* What is rare of a number of values that weigh so much. */
static double rare(int32_t number, uint64_t weight) { return number - (double)weight / UNIT; }

/* Whether a pair surely counts, of whose shared values it is only known what they weigh at most: enough to tell copies,
 * with the values of one of the two looked up. margin: as a share of the shorter document. */
static int surely_counts(const Rule *rule, const Pair *pair, double bar, double margin, uint64_t weight)
{
    double resemblance = resemblance_of(pair), different = 1 - resemblance + margin;
    double power = rule->power * (different < 1 ? different : 1);
    double specificity = rare(pair->shared, weight) / pair->shared; /* at least, as nothing is rarer than 1, */
    double fourth = 1 - power / 4 * (1 / specificity - 1); /* and its power's fourth root, as log(x) >= 1 - 1 / x */
    return specificity > 0 && fourth > 0 && resemblance * (fourth * fourth * fourth * fourth) > bar + ROUNDING;
}

/* Whether a pair that resembles each other by its bar still does without what common values pretend. */
static int counts(const Rule *rule, const Pair *pair, double bar, double margin)
{
    double shared = rare(pair->shared, pair->weights[2]);
    double own_left = rare(pair->within[0], pair->weights[0]) - shared;
    double own_right = rare(pair->within[1], pair->weights[1]) - shared;
    double own = own_left + own_right > ROUNDING ? own_left + own_right : ROUNDING;
    double smaller = own_left < own_right ? own_left : own_right;
    int32_t apart = pair->within[0] + pair->within[1] - 2 * pair->shared;
    if (!apart || !pair->weights[2] || rule->power == 0)
        return YES;
    double specificity = shared / pair->shared * (apart / own), mutuality = 2 * (smaller > 0 ? smaller : 0) / own;
    double resemblance = resemblance_of(pair), different = 1 - resemblance + margin;
    double power = rule->power * (different < 1 ? different : 1) * mutuality;
    if (specificity > 1)
        specificity = 1;
    /* e**x >= 1 + x and log(x) <= x - 1 make of a power a product: that parts most texts in a frame at once. */
    if (resemblance < (bar - SURE) * (1 + power * (1 - specificity)))
        return NO;
    double over = resemblance * pow(specificity, power) - bar;
    return over > SURE ? YES : over < -SURE ? NO : UNSURE;
}

/* What is asked of a hit. */
typedef struct {
    double bar;    /* the bar of a pair is the larger one of the two; this, and it, less ROUNDING */
    double margin; /* of the rule, as a share of its shingles; of a pair, the larger one of the two */
    int32_t limit; /* see limit_of */
    int32_t least; /* how many values it shares at least with any hit it is similar to, 1 or more */
} Asked;

static void ask(Asked *asked, const Page *page, const Rule *rule)
{
    double bar = bar_of(rule, rule->known);
    for (int64_t hit = 0; hit < page->count; hit++) {
        asked[hit].margin = 0;
        if (rule->asked > 0 || rule->power > 0) {
            double shingles = shingles_of(page, hit);
            bar = bar_of(rule, shingles);
            asked[hit].margin = rule->margin / (shingles < 1 ? 1 : shingles);
        }
        /* A pair shares at least `bar` times the values of either of the two, whichever of them ends first. */
        double least = (bar - 2 * ROUNDING) * (double)length_of(page, hit);
        asked[hit].bar = bar - ROUNDING;
        asked[hit].limit = limit_of(page, hit);
        asked[hit].least = least <= 1 ? 1 : (int32_t)least + ((double)(int32_t)least < least);
    }
}

/* What is known of each hit without looking up the limit of another one in it: an array for each number, all of them 32
 * bits wide, so that a compiler has four hits compared at a time. */
typedef struct {
    int32_t *limit, *mark;       /* see limit_of; the value at five eighths of its values */
    float *bar;                  /* see Asked */
    float *all, *part;           /* how many values it has, and up to its mark; */
    float *rare_all, *rare_part; /* and what is rare of these, if that was asked; else below 0 */
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

/* Which of those before a hit may count as a pair with it, by how many values they share and what these weigh at least:
 * 0 for those that surely do not. That tells nearly all texts in one frame apart without looking up how many values of
 * one are up to the limit of the other: at least as many as up to its mark, if that is. What is not known is taken as
 * the worst it can be, and a little worse for what floats lose, in
 *
 *     shared < bar * (union + 2 * power * smaller * (1 - specificity))
 *
 * where a pair does not count (see Decision.surely_refuses); what is divided there is multiplied out. */
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
        /* Of the one that ends first all values count, of the other one at least a part. */
        float all = its_all < alls[i] ? its_all : alls[i], part = its_part < parts[i] ? its_part : parts[i];
        float rare_all = its_rare_all < rare_alls[i] ? its_rare_all : rare_alls[i];
        float rare_part = its_rare_part < rare_parts[i] ? its_rare_part : rare_parts[i];
        /* What is rare that only one of them holds: of the one that has less of it, and of both. */
        float smaller = rare_part - rare_shared, own = rare_all - rare_shared + smaller;
        float unspecific = shared * own * exact - rare_shared * (both - 2 * shared); /* 1 - s / d, times shared * own */
        float joins = (shared - bar * (all + part - shared)) * shared * own;
        float sets_apart = bar * twice_power * smaller * unspecific;
        possible[i] = (its_mark > limits[i]) | (marks[i] > its_limit) | (smaller <= 0) | (joins >= sets_apart);
    }
}
