/* What a hit requires of its pairs, and bounds that reject most of them. */
#pragma once
#include "short_copies.h"

/* What a hit requires of its pairs. */
typedef struct {
    int edges;       /* see edges_of */
    double bar;      /* less ROUNDING; the bar of a pair is at least the larger one of its hits (see own_bar), */
    double shingles; /* of the document; 1 if the rule does not use them */
    int32_t limit;   /* see limit_of */
    int32_t least;   /* or it shares at least the larger one of these, 1 or more, if it may differ at its edges */
} Asked;

static void ask(Asked *asked, const Page *page, const Rule *rule)
{
    for (int64_t hit = 0; hit < page->count; hit++) {
        asked[hit].edges = edges_of(page, rule, hit);
        asked[hit].shingles = rule->asked > 0 || rule->power > 0 || rule->content > 0 ? shingles_of(page, hit) : 1;
        asked[hit].bar = least_bar_of(page, rule, hit) - ROUNDING;
        asked[hit].limit = limit_of(page, hit);
        asked[hit].least = (int32_t)least_shared(page, rule, hit, asked[hit].edges, length_of(page, hit));
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
 * because with p the exponent of s / d, s / d to the p is at most 1 / (1 + p * (1 - s / d)), and p is at least
 * 2 * power * smaller / union: 1 - j is apart / union, m at least 2 * smaller / apart, as no idf is above 1.
 * The code multiplies by the denominators. */
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
