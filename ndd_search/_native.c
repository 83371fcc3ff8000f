/* The native core: what sketches.py, counting.py, decision.py and groups.py compute with numpy, bit for bit the same,
 * several times faster.
 *
 * Plain C on Python's stable ABI (3.11): a compiler is all it takes to build it, one wheel serves every later Python,
 * and without it the package works the same. Only the regular case is here: a function returns None for anything else
 * (other types than int32, values out of order, no memory), and the caller goes the numpy way, which says what is wrong.
 *
 * While the interpreter lock is released no Python object is touched, and no memory but our own.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of what is called from Python: raised with every change to it, here and in native.py. */
enum { VERSION = 7 };

/* ---------------------------------------------------------------- the sketches of a page */

typedef struct {
    int32_t *values;  /* one sketch after the other, ascending and distinct within each */
    int64_t *offsets; /* hit i has values[offsets[i]] to values[offsets[i + 1] - 1] */
    int64_t count;    /* hits */
    int64_t k;        /* a sketch of k values is a sample of its document, a shorter one the whole of it */
} Page;

static const int32_t *values_of(const Page *page, int64_t hit) { return page->values + page->offsets[hit]; }

static int64_t length_of(const Page *page, int64_t hit) { return page->offsets[hit + 1] - page->offsets[hit]; }

/* Up to which value we know all values of a document. */
static int32_t limit_of(const Page *page, int64_t hit)
{
    int64_t length = length_of(page, hit);
    return length >= page->k ? values_of(page, hit)[length - 1] : INT32_MAX;
}

/* How many shingles a document has, as similarity.estimated_shingles. */
static double shingles_of(const Page *page, int64_t hit)
{
    int64_t length = length_of(page, hit);
    if (length < page->k)
        return (double)length;
    return (double)(page->k > 1 ? page->k - 1 : 1) * 2147483648.0 / ((double)values_of(page, hit)[length - 1] + 1);
}

/* How many of ascending values are at most `limit`, without a branch that cannot be foreseen. */
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
    /* In two halves at a time: each step waits for the one before it, but not for those of the other half. */
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

/* The upper bits of this depend on all bits of a value. */
static uint32_t hash_of(int32_t value) { return (uint32_t)value * 0x9E3779B1u; }

/* ---------------------------------------------------------------- what common values weigh
 *
 * A table of them is made once (see common_table) and read on every page: a hash table, and after it eight bits for
 * each of its slots. Most values are in no table, and most of those find their bit unset, within the nearest cache.
 */

typedef struct {
    int32_t value; /* -1: the slot is free */
    uint32_t weight;
} Common;

typedef struct {
    const Common *slots;   /* NULL: no value weighs anything */
    const uint8_t *filter; /* the bits: whether there is a value of so large a hash */
    int shift;             /* of a 32-bit hash, to the number of a slot */
    uint32_t *weights;     /* of the values of each hit, */
    uint8_t *looked_up;    /* if they were asked for */
    int32_t *maybe;        /* numbers of the values of a hit that find their bit set */
} Weights;

static const double UNIT = 1 << 20; /* of a weight, as in common_values.py */
enum { FEW_VALUES = 1 << 11 };      /* what fewer of them weigh together fits 31 bits */

/* The slot that has a value, or a free one where it would be; any one of a table that is full. */
static int64_t common_slot(const Weights *weights, int32_t value)
{
    uint32_t most = UINT32_MAX >> weights->shift, at = hash_of(value) >> weights->shift;
    for (uint32_t tries = most; tries && weights->slots[at].value != value && weights->slots[at].value >= 0; tries--)
        at = (at + 1) & most;
    return at;
}

static uint32_t filter_bit(const Weights *weights, int32_t value) { return hash_of(value) >> (weights->shift - 3); }

static void look_up(const Weights *weights, const Page *page, int64_t hit)
{
    const int32_t *values = values_of(page, hit);
    const uint8_t *const filter = weights->filter;
    uint32_t *of_values = weights->weights + page->offsets[hit];
    int32_t *const maybe = weights->maybe;
    int64_t length = length_of(page, hit), found = 0;
    const int shift = weights->shift - 3;
    for (int64_t i = 0; i < length; i++) { /* without a branch: which ones have their bit set cannot be foreseen */
        uint32_t bit = hash_of(values[i]) >> shift;
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

/* What the values of a hit weigh, looked up when somebody asks first. */
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

/* What the values that two hits share weigh. */
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

/* ---------------------------------------------------------------- which pairs count
 *
 * The rule of decision.py, which explains it and has its numbers: they come as arguments. A plain bar is the rule that
 * asks nothing more. Both say the same of every pair: all is exact, or rounded as IEEE 754 has it, but for pow(), whose
 * last bits differ from library to library. So what comes out closer to the bar than any of them errs is left to numpy.
 */

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

/* ---------------------------------------------------------------- who holds which value
 *
 * A hash table from values to the hits that hold them. Few holders are a chain through `before`; many are one bit each
 * in a mask, so that values shared by a whole page (boilerplate, edits of one text) cost no more than others: the masks
 * of a hit's values are added up 64 hits at a time, as numbers written vertically in `planes`, one bit a plane.
 *
 * A slot is as small as can be, a place in page->values, and most values find theirs free and are done: hardly any
 * value of a page is another one's. So the table stays within the nearest cache.
 */

enum { LANES = 8 }; /* hits that are added up at a time */

/* Eight bits of a mask as eight numbers, all ones or zero. */
static uint32_t lanes[1 << LANES][LANES];

static void fill_lanes(void)
{
    for (unsigned bits = 0; bits < 1 << LANES; bits++)
        for (int lane = 0; lane < LANES; lane++)
            lanes[bits][lane] = bits >> lane & 1 ? UINT32_MAX : 0;
}

/* Add a number to the sums of those of some hits, before `hits`, that are in a mask. */
static void add_where(uint32_t *sums, const uint64_t *mask, int64_t hits, uint32_t number)
{
    for (int64_t hit = 0; hit < hits; hit += LANES) {
        const uint32_t *lane = lanes[mask[hit / 64] >> hit % 64 & ((1 << LANES) - 1)];
        uint32_t added[LANES]; /* first all of them, as a compiler cannot know that the two do not overlap */
        for (int j = 0; j < LANES; j++)
            added[j] = sums[hit + j] + (lane[j] & number);
        for (int j = 0; j < LANES; j++)
            sums[hit + j] = added[j];
    }
}

typedef struct {
    int32_t hit;    /* that holds the value at a place */
    int32_t before; /* at the one inserted last: 1 + the place of the one before it, 0: none, below 0: - 1 - a mask */
} Holder;

typedef struct {
    int32_t *slot;
    int32_t place;
} Held; /* a value of the present hit that another one holds */

typedef struct {
    const Page *page;
    const Asked *asked;
    int all;           /* it has all values of each hit; else the smallest, among which similar hits must have one */
    int32_t *slots;    /* 1 + a place in page->values, where the hit inserted last holds the value, 0: free */
    int shift;         /* of a 32-bit hash, to the number of a slot */
    Holder *holders;   /* at each place */
    uint64_t *masks;   /* `words` each; there is room, as masks are made of chains longer than `words` */
    int64_t masks_used, words;
    uint64_t *planes;  /* plane p, word w: bit p of how many values the present hit shares with each of 64 others */
    int64_t plane_count;
    uint32_t *shared;  /* with each earlier hit: how many of its values in the index the present one has, */
    uint32_t *weighed; /* and, if that was asked, what these weigh, */
    int can_weigh;     /* which fits, as no hit has many values */
    int32_t *others;   /* numbers of the present hit's values that found their slots taken */
    Held *held;
    int64_t held_count;
    const uint64_t **many; /* masks of those of them that many hold */
    void *parts[8];
    int part_count, failed;
} Index;

static void *part_of(Index *index, int64_t count, size_t size)
{
    void *part = malloc((size_t)count * size + 1);
    index->failed |= !part;
    return index->parts[index->part_count++] = part;
}

static void free_index(Index *index)
{
    while (index->part_count)
        free(index->parts[--index->part_count]);
}

/* How many values of a hit are in the index. */
static int64_t indexed(const Index *index, int64_t hit)
{
    int64_t length = length_of(index->page, hit);
    return index->all || !length ? length : length - index->asked[hit].least + 1;
}

/* An empty index. 0: no memory. */
static int make_index(Index *index, const Page *page, const Asked *asked, int all)
{
    int64_t count = page->count, places = page->offsets[count], longest = 0, total = 0;
    int bits = 4;
    *index = (Index){.page = page, .asked = asked, .all = all};
    for (int64_t hit = 0; hit < count; hit++) {
        int64_t length = indexed(index, hit);
        longest = length > longest ? length : longest;
        total += length;
    }
    while (1LL << bits < 2 * total)
        bits++;
    while (longest >> index->plane_count)
        index->plane_count++;
    index->shift = 32 - bits;
    index->words = (count + 63) / 64;
    index->slots = part_of(index, 1LL << bits, sizeof *index->slots);
    index->holders = part_of(index, places, sizeof *index->holders);
    index->masks = part_of(index, total, sizeof *index->masks);
    index->planes = part_of(index, index->plane_count * index->words, sizeof *index->planes);
    index->shared = part_of(index, 2 * (count + LANES), sizeof *index->shared);
    index->others = part_of(index, longest, sizeof *index->others);
    index->held = part_of(index, longest, sizeof *index->held);
    index->many = part_of(index, longest, sizeof *index->many);
    index->weighed = index->shared + count + LANES;
    index->can_weigh = longest < FEW_VALUES;
    if (!index->failed)
        memset(index->slots, 0, sizeof *index->slots << bits);
    return !index->failed;
}

/* Find the values of a hit that others hold, and be the first to hold the rest of them. */
static void find_held(Index *index, int64_t hit)
{
    const int32_t *values = values_of(index->page, hit);
    int32_t *const slots = index->slots, *const others = index->others, start = (int32_t)index->page->offsets[hit];
    const int shift = index->shift;
    int64_t length = indexed(index, hit), taken = 0;
    index->held_count = 0;
    for (int64_t i = 0; i < length; i++)
        index->holders[start + i] = (Holder){(int32_t)hit, 0};
    for (int64_t i = 0; i < length; i++) { /* without a branch: most slots are free, but which cannot be foreseen */
        int32_t *slot = slots + (hash_of(values[i]) >> shift), there = *slot;
        *slot = there ? there : start + (int32_t)i + 1;
        others[taken] = (int32_t)i;
        taken += there != 0;
    }
    for (int64_t j = 0; j < taken; j++) {
        int32_t value = values[others[j]], place = start + others[j];
        int32_t *slot = slots + (hash_of(value) >> shift);
        while (*slot && index->page->values[*slot - 1] != value)
            slot = slot == slots + (UINT32_MAX >> shift) ? slots : slot + 1;
        if (*slot)
            index->held[index->held_count++] = (Held){slot, place};
        else
            *slot = place + 1;
    }
}

static uint64_t *mask_of(const Index *index, const Holder *last)
{
    return index->masks + (-1 - last->before) * index->words;
}

/* The holder before one, NULL where there is none. */
static const Holder *before(const Index *index, const Holder *holder)
{
    return holder->before ? index->holders + holder->before - 1 : NULL;
}

static void chain_to_mask(Index *index, Holder *last)
{
    uint64_t *mask = index->masks + index->masks_used * index->words;
    memset(mask, 0, (size_t)index->words * sizeof *mask);
    for (const Holder *holder = last; holder; holder = before(index, holder))
        mask[holder->hit / 64] |= (uint64_t)1 << holder->hit % 64;
    last->before = (int32_t)(-1 - index->masks_used++);
}

/* Add 64 bits to the vertical numbers, at a plane and those above it. */
static void add_bits(uint64_t *plane, uint64_t bits, int64_t words, int64_t planes)
{
    for (; bits && planes > 0; planes--, plane += words) {
        uint64_t carry = *plane & bits;
        *plane ^= bits;
        bits = carry;
    }
}

/* Add `count` masks to `shared`, of hits before `hits`: two at a time, as a full adder takes three bits and hands on
   one. */
static void add_masks(Index *index, int64_t count, int64_t hits)
{
    int64_t words = index->words, planes = 0;
    while (count >> planes)
        planes++;
    memset(index->planes, 0, (size_t)(planes * words) * sizeof(uint64_t));
    for (int64_t i = 0; i < count; i += 2)
        for (int64_t word = 0; word < words; word++) {
            uint64_t *plane = index->planes + word;
            uint64_t a = index->many[i][word], b = i + 1 < count ? index->many[i + 1][word] : 0, c = *plane;
            *plane = a ^ b ^ c;
            add_bits(plane + words, (a & b) | ((a ^ b) & c), words, planes - 1);
        }
    for (int64_t p = 0; p < planes; p++)
        add_where(index->shared, index->planes + p * words, hits, 1u << p);
}

/* Count into `shared` how many of its values a hit has in common with each of those inserted. 0: with nobody any. */
static int count_shared(Index *index, int64_t hit)
{
    int64_t many = 0;
    find_held(index, hit);
    if (!index->held_count)
        return 0;
    memset(index->shared, 0, (size_t)(hit + LANES) * sizeof *index->shared);
    for (int64_t j = 0; j < index->held_count; j++) {
        Holder *last = index->holders + *index->held[j].slot - 1;
        if (last->before < 0) {
            index->many[many++] = mask_of(index, last);
            continue;
        }
        int64_t holding = 0;
        for (const Holder *holder = last; holder; holder = before(index, holder), holding++)
            index->shared[holder->hit]++;
        if (holding > index->words + 8)
            chain_to_mask(index, last);
    }
    if (many)
        add_masks(index, many, hit);
    return 1;
}

/* The weight that most of the values found held have, if there is one: what a frame weighs is mostly the same. */
static uint32_t usual_weight(const Index *index, const uint32_t *weights)
{
    uint32_t usual = 0;
    int64_t ahead = 0;
    for (int64_t j = 0; j < index->held_count; j++) {
        uint32_t weight = weights[index->held[j].place];
        usual = ahead ? usual : weight;
        ahead += weight == usual ? 1 : -1;
    }
    return usual;
}

/* What the values weigh that the hit counted last shares with each of those inserted, into `weighed`: the usual weight
   for each of them, and the difference where it is another one, modulo 2**32. Not exactly: at least so much, as if each
   shared all that weigh less. weights: of all places. */
static void weigh_shared(Index *index, const uint32_t *weights, int64_t hit, int exactly)
{
    uint32_t usual = usual_weight(index, weights), less = 0;
    for (int64_t j = 0; !exactly && j < index->held_count; j++) {
        uint32_t weight = weights[index->held[j].place];
        less += weight < usual ? usual - weight : 0;
    }
    for (int64_t other = 0; other < hit; other++)
        index->weighed[other] = usual * index->shared[other] - less;
    for (int64_t j = 0; exactly && j < index->held_count; j++) {
        const Held *held = index->held + j;
        uint32_t more = weights[held->place] - usual;
        if (!more)
            continue;
        const Holder *last = index->holders + *held->slot - 1;
        if (last->before < 0)
            add_where(index->weighed, mask_of(index, last), hit, more);
        else
            for (const Holder *holder = last; holder; holder = before(index, holder))
                index->weighed[holder->hit] += more;
    }
}

/* Let later hits meet the one just counted. */
static void insert(Index *index)
{
    for (const Held *held = index->held; held < index->held + index->held_count; held++) {
        Holder *last = index->holders + *held->slot - 1, *holder = index->holders + held->place;
        if (last->before < 0)
            mask_of(index, last)[holder->hit / 64] |= (uint64_t)1 << holder->hit % 64;
        else {
            holder->before = *held->slot;
            *held->slot = held->place + 1;
        }
    }
}

/* ---------------------------------------------------------------- leaders and pairs
 *
 * Two hits at least `bar` alike have a value in common already among the smallest of each (all but as many as they must
 * share, and one more), so only those are looked up, and hits that meet there are compared value by value. When some
 * meet more others than a text has copies, the page is one of many that share something: from then on all values are
 * looked up, which counts what is shared with all hits at once.
 */

enum { FEW_COPIES = 4, AT_ONCE = 64 }; /* pairs looked at, on a page where many are met; else the first may well do */
enum { FEW_MET = 8 }; /* are judged one by one; of more it is told first which surely do not count */

typedef struct {
    const Page *page;
    const Rule *rule;
    Weights *weights;
    Asked *asked;      /* of each hit */
    Index smallest, all;
    Index *index;      /* the one in use */
    int64_t excess;    /* comparisons beyond a few for each hit */
    Sides sides;       /* of all hits, if there are weights */
    int32_t *met;      /* those to compare the present hit with */
    int32_t *possible; /* see tell_possible */
    int in_full;       /* of each pair that counts it is wanted what its values weigh */
    int weighed;       /* the index has summed up exactly what that weighs which the present hit shares with others */
} Search;

static int start_search(Search *search, const Page *page, const Rule *rule, Weights *weights)
{
    *search = (Search){.page = page, .rule = rule, .weights = weights, .index = &search->smallest};
    search->asked = malloc((size_t)page->count * sizeof *search->asked + 1);
    search->met = malloc((size_t)page->count * 2 * sizeof *search->met + 1);
    if (!search->asked || !search->met)
        return 0;
    search->possible = search->met + page->count;
    ask(search->asked, page, rule);
    if (weights && !make_sides(&search->sides, page, search->asked))
        return 0;
    return make_index(&search->smallest, page, search->asked, 0);
}

static void end_search(Search *search)
{
    free_index(&search->smallest);
    free_index(&search->all);
    free(search->asked);
    free(search->sides.room);
    free(search->met);
}

/* The bar of two hits, less ROUNDING. */
static double bar_for(const Search *search, int64_t first, int64_t second)
{
    return larger(search->asked[first].bar, search->asked[second].bar);
}

/* How many values the hit counted last shares with an earlier one, which it has met among the smallest of both. */
static int64_t shared_in_all(const Search *search, int64_t other, int64_t hit)
{
    const Page *page = search->page;
    const int32_t *a = values_of(page, other), *b = values_of(page, hit);
    int64_t a_count = indexed(search->index, other), b_count = indexed(search->index, hit);
    int32_t known = a[a_count - 1] < b[b_count - 1] ? a[a_count - 1] : b[b_count - 1]; /* up to here they are counted */
    Merge rest = {a + rank_in(a, a_count, known), a + length_of(page, other), b + rank_in(b, b_count, known),
                  b + length_of(page, hit)};
    return search->index->shared[other] + count_common(rest);
}

/* The earlier hits that may resemble the one counted last, by how many values they share, into search->met. Returns how
   many. */
static int64_t list_met(const Search *search, int64_t hit)
{
    const uint32_t *shared = search->index->shared;
    const Asked *own = search->asked + hit;
    int64_t met = 0;
    for (int64_t other = 0; other < hit; other++) { /* all values count of the one that ends first */
        const Asked *asked = search->asked + other;
        int32_t least = asked->limit < own->limit ? asked->least : own->least;
        search->met[met] = (int32_t)other;
        met += shared[other] >= (search->index->all ? (uint32_t)least : 1);
    }
    return met;
}

/* Count what a hit has in common with those inserted, the hits before it (leaders: those of them that are leaders), and
   list them. Returns how many, -1: no memory. */
static int64_t meet(Search *search, int64_t hit, const int64_t *leaders)
{
    int64_t met = 0;
    if (!count_shared(search->index, hit))
        return 0;
    for (int64_t other = 0; leaders && other < hit; other++)
        if (leaders[other] != other)
            search->index->shared[other] = 0; /* it was the first to hold some value, so it is found there */
    met = list_met(search, hit);
    search->excess += met > FEW_COPIES ? met - FEW_COPIES : 0;
    if (search->index->all || search->excess <= search->page->count / 8)
        return met;
    if (!make_index(&search->all, search->page, search->asked, 1))
        return -1;
    search->index = &search->all;
    for (int64_t other = 0; other < hit; other++)
        if (!leaders || leaders[other] == other) {
            find_held(search->index, other);
            insert(search->index);
        }
    return count_shared(search->index, hit) ? list_met(search, hit) : 0;
}

/* Weigh what the hit counted last shares with any other, exactly or at least. */
static void weigh_all(Search *search, int64_t hit, int exactly)
{
    weights_of(search->weights, search->page, hit);
    weigh_shared(search->index, search->weights->weights, hit, exactly);
    search->weighed = exactly;
}

/* Tell `sides` what is rare of a hit. */
static void tell_rare(Search *search, int64_t hit)
{
    const uint32_t *weights = weights_of(search->weights, search->page, hit);
    int64_t all = length_of(search->page, hit), part = up_to_mark(all);
    search->sides.rare_all[hit] = (float)rare((int32_t)all, sum_of(weights, all));
    search->sides.rare_part[hit] = (float)rare((int32_t)part, sum_of(weights, part));
}

/* Drop those of `met` that surely do not count, as long as they are so many that one by one would take longer: first
   without weighing exactly, which is enough where most in a frame weighs the same. Returns how many are left. */
static int64_t drop_different(Search *search, int64_t hit, int64_t met)
{
    Index *index = search->index;
    search->weighed = 0;
    if (!search->weights || search->in_full || !index->all || !index->can_weigh || met <= FEW_MET)
        return met;
    tell_rare(search, hit);
    for (int64_t i = 0; i < met; i++)
        if (search->sides.rare_all[search->met[i]] < 0)
            tell_rare(search, search->met[i]);
    for (int exactly = 0; exactly <= 1 && met > FEW_MET; exactly++) {
        int64_t left = 0;
        weigh_all(search, hit, exactly);
        tell_possible(search->rule, &search->sides, hit, index->shared, index->weighed, search->possible);
        for (int64_t i = 0; i < met; i++) {
            int32_t other = search->met[left] = search->met[i];
            left += search->possible[other];
        }
        met = left;
    }
    return met;
}

/* Those of `count` earlier hits that resemble the one counted last by their bars, as pairs. Returns how many. What
   falls out is overwritten by the next: which ones do cannot be foreseen, and a processor that guesses wrong waits
   longer than all of this takes. */
static int64_t find_resembling(const Search *search, int64_t hit, const int32_t *others, int64_t count, Pair *pairs)
{
    const Page *page = search->page;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t other = others[i], hit_ends_first = search->asked[hit].limit <= search->asked[other].limit;
        int64_t narrow = hit_ends_first ? hit : other, wide = other + hit - narrow;
        int64_t all = length_of(page, narrow); /* its values all count, of the other one these: */
        int64_t some = rank_in(values_of(page, wide), length_of(page, wide), search->asked[narrow].limit);
        int64_t shared = search->index->all ? search->index->shared[other] : shared_in_all(search, other, hit);
        pairs[found] = (Pair){{(int32_t)other, (int32_t)hit}, {(int32_t)(hit_ends_first ? some : all),
                              (int32_t)(hit_ends_first ? all : some)}, (int32_t)shared, {0}};
        found += (double)shared / (double)(all + some - shared) >= bar_for(search, other, hit);
    }
    return found;
}

/* What the values weigh that the hit counted last (second) shares with an earlier one. */
static uint64_t weigh_pair(Search *search, int64_t first, int64_t second)
{
    if (!search->index->all || !search->index->can_weigh)
        return weigh_common(search->weights, search->page, first, second);
    if (!search->weighed)
        weigh_all(search, second, 1);
    return search->index->weighed[first];
}

/* Whether a pair that resembles each other by its bar counts. */
static int judge(Search *search, Pair *pair)
{
    const Page *page = search->page;
    Weights *weights = search->weights;
    int64_t first = pair->hits[0], second = pair->hits[1], shortest = search->rule->shortest;
    if ((length_of(page, first) < shortest || length_of(page, second) < shortest) && resemblance_of(pair) < 1)
        return NO;
    if (!weights)
        return YES;
    double bar = bar_for(search, first, second);
    double margin = larger(search->asked[first].margin, search->asked[second].margin);
    pair->weights[0] = sum_of(weights_of(weights, page, first), pair->within[0]);
    if (!search->weighed && !search->in_full && surely_counts(search->rule, pair, bar, margin, pair->weights[0]))
        return YES;
    pair->weights[1] = sum_of(weights_of(weights, page, second), pair->within[1]);
    if (pair->weights[0] && pair->weights[1])
        pair->weights[2] = weigh_pair(search, first, second);
    return counts(search->rule, pair, bar, margin);
}

/* The leader of each hit and the similarity to it, 1 for leaders. The first `old` are leaders whatever they share.
   0: no memory, or unsure. */
static int find_leaders(const Page *page, const Rule *rule, Weights *weights, int64_t old, int64_t *leaders,
                        double *similarities)
{
    Search search;
    Pair pairs[AT_ONCE];
    int verdict = start_search(&search, page, rule, weights) ? NO : UNSURE;
    for (int64_t hit = 0; hit < page->count && verdict != UNSURE; hit++) {
        leaders[hit] = hit;
        similarities[hit] = 1;
        int64_t met = drop_different(&search, hit, meet(&search, hit, leaders)), size = search.index->all ? AT_ONCE : 1;
        verdict = met < 0 ? UNSURE : NO;
        for (int64_t i = 0; i < met && hit >= old && verdict == NO; i += size) {
            int64_t count = size < met - i ? size : met - i;
            count = find_resembling(&search, hit, search.met + i, count, pairs);
            for (int64_t j = 0; j < count && verdict == NO; j++)
                if ((verdict = judge(&search, pairs + j)) == YES) {
                    leaders[hit] = pairs[j].hits[0];
                    similarities[hit] = resemblance_of(pairs + j);
                }
        }
        if (verdict == NO)
            insert(search.index);
    }
    end_search(&search);
    return verdict != UNSURE;
}

/* All near-duplicates, ordered by the second, then the first; in_full: with what their values weigh. Returns how many,
   -1: no memory, or unsure. */
static int64_t find_pairs(const Page *page, const Rule *rule, Weights *weights, int in_full, Pair **pairs)
{
    Search search;
    int64_t found = 0, room = 0;
    int verdict = start_search(&search, page, rule, weights) ? NO : UNSURE;
    search.in_full = in_full;
    for (int64_t hit = 0; hit < page->count && verdict != UNSURE; hit++) {
        int64_t met = drop_different(&search, hit, meet(&search, hit, NULL));
        verdict = met < 0 ? UNSURE : NO;
        if (found + met > room) {
            room = 2 * (found + met);
            Pair *larger = realloc(*pairs, (size_t)room * sizeof(Pair));
            if (!larger) {
                verdict = UNSURE;
                break;
            }
            *pairs = larger;
        }
        int64_t end = met > 0 ? found + find_resembling(&search, hit, search.met, met, *pairs + found) : found;
        for (int64_t i = found; i < end && verdict != UNSURE; i++) {
            verdict = judge(&search, *pairs + i);
            (*pairs)[found] = (*pairs)[i];
            found += verdict == YES;
        }
        insert(search.index);
    }
    end_search(&search);
    return verdict == UNSURE ? -1 : found;
}

/* ---------------------------------------------------------------- text to clean code points
 *
 * As text.clean, for all but the rarest texts. unicode_table.native_table says what becomes of each code point: an
 * entry holds the code point it folds to, the rank of its combining class (of the last mark in it), and flags.
 */

enum { CODE_POINTS = 0x110000, POINT = 0x1FFFFF, RANK = 21, RANKS = 63, MOST_MARKS = 30 };
static const uint32_t FIRST = 1u << 27;    /* may be composed with what stands after it, */
static const uint32_t COMPOSES = 1u << 28; /* or before it */
static const uint32_t MARK = 1u << 29;     /* belongs to the character before it */
static const uint32_t SINGLE = 1u << 30;   /* a token by itself */
static const uint32_t SPECIAL = 1u << 31;  /* no code point, but the place of a number and so many entries */

typedef struct {
    const uint32_t *table;
    int64_t table_size;
    uint32_t ignored; /* flags: SINGLE where nobody wants such tokens apart */
    uint32_t *points;
    int64_t count, room;
    uint32_t before;  /* the entry before the next one, */
    uint32_t base;    /* and the one that marks belong to; 0 for a separator */
    int marks;        /* in a row, of those that change places */
} Cleaner;

static uint32_t rank_of(uint32_t entry) { return entry >> RANK & RANKS; }

/* What two code points compose into, 0 for nothing: the table ends with three arrays, of pairs and that, and their
   number. */
static uint32_t composed_of(const Cleaner *cleaner, uint32_t first, uint32_t second)
{
    const uint32_t *end = cleaner->table + cleaner->table_size - 1;
    int64_t number = *end, low = 0, high = number;
    if (number > (cleaner->table_size - CODE_POINTS - 1) / 3)
        return 0;
    const uint32_t *firsts = end - 3 * number, *seconds = end - 2 * number;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (firsts[middle] < first || (firsts[middle] == first && seconds[middle] < second))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == number || firsts[low] != first || seconds[low] != second || end[low - number] >= CODE_POINTS)
        return 0;
    return end[low - number];
}

/* Let an entry compose with the one before it. 1: done, 0: they do not compose, -1: left to numpy. */
static int compose(Cleaner *cleaner, uint32_t entry)
{
    uint32_t composed = composed_of(cleaner, cleaner->before & POINT, entry & POINT);
    if (!composed)
        return 0;
    composed = cleaner->table[composed] & ~cleaner->ignored;
    if (cleaner->before & MARK || entry & FIRST || composed & SPECIAL || rank_of(cleaner->before) == RANKS)
        return -1;
    if (entry & MARK && rank_of(entry) && ++cleaner->marks > MOST_MARKS)
        return -1;
    cleaner->points[cleaner->count - 1] = composed & POINT;
    cleaner->before = cleaner->base = composed;
    return 1;
}

/* Add a mark that changes places with the one before it, and with no other. 0: left to numpy. */
static int add_mark_before(Cleaner *cleaner, uint32_t entry)
{
    uint32_t *end = cleaner->points + cleaner->count, under = cleaner->count > 1 ? end[-2] : 0;
    if (!(cleaner->before & MARK) || (entry | cleaner->before) & (COMPOSES | FIRST) || under >= CODE_POINTS)
        return 0;
    if (cleaner->table[under] & SPECIAL || rank_of(entry) < rank_of(cleaner->table[under]))
        return 0;
    end[0] = end[-1];
    end[-1] = cleaner->base ? entry & POINT : 0;
    cleaner->count++;
    return 1;
}

/* Add an entry that is not SPECIAL. 0: what becomes of it is left to numpy. */
static int add_entry(Cleaner *cleaner, uint32_t entry)
{
    uint32_t point = entry & POINT;
    int composed = entry & COMPOSES && cleaner->before & FIRST ? compose(cleaner, entry) : 0;
    if (composed)
        return composed > 0;
    if (entry & MARK) {
        cleaner->marks = rank_of(entry) ? cleaner->marks + 1 : 0;
        if (cleaner->marks > MOST_MARKS || rank_of(entry) == RANKS)
            return 0;
        if (rank_of(entry) && rank_of(entry) < rank_of(cleaner->before))
            return add_mark_before(cleaner, entry);
        if (rank_of(entry) && entry & COMPOSES && cleaner->before & MARK)
            return 0;
        point = cleaner->base ? point : 0;
    } else {
        if (point && cleaner->base && (entry | cleaner->base) & SINGLE)
            cleaner->points[cleaner->count++] = 0;
        cleaner->base = point ? entry : 0;
        cleaner->marks = 0;
    }
    cleaner->before = entry;
    cleaner->points[cleaner->count++] = point;
    return 1;
}

/* Add what a code point becomes that is none or several; `left`: code points after it. 0: as above, or no memory. */
static int add_special(Cleaner *cleaner, uint32_t entry, int64_t left)
{
    int64_t place = entry & POINT, number = place < cleaner->table_size ? cleaner->table[place] : POINT;
    if (number >= cleaner->table_size - place)
        return 0;
    if (cleaner->count + 2 * (number + left) > cleaner->room) {
        int64_t room = 2 * (cleaner->count + 2 * (number + left));
        uint32_t *larger = realloc(cleaner->points, (size_t)room * sizeof *larger);
        if (!larger)
            return 0;
        cleaner->points = larger;
        cleaner->room = room;
    }
    for (const uint32_t *next = cleaner->table + place + 1; number; number--, next++)
        if (*next & SPECIAL || !add_entry(cleaner, *next & ~cleaner->ignored))
            return 0;
    return 1;
}

/* Clean a text. Returns the number of cleaner->points, -1: it is left to numpy, or there is no memory. */
static int64_t clean_text(Cleaner *cleaner, const uint32_t *codes, int64_t length)
{
    uint32_t ignored = cleaner->ignored;
    if (cleaner->room < 2 * length) {
        free(cleaner->points);
        cleaner->points = malloc((size_t)(2 * length) * sizeof(uint32_t));
        cleaner->room = cleaner->points ? 2 * length : 0;
        if (!cleaner->points)
            return -1;
    }
    cleaner->count = cleaner->before = cleaner->base = 0;
    cleaner->marks = 0;
    const uint32_t *table = cleaner->table; /* these are not read from memory again at each step */
    uint32_t base = 0, *points = cleaner->points;
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++) {
        uint32_t entry = table[codes[i]] & ~ignored, point = entry & POINT;
        if (!(entry & (COMPOSES | MARK | SPECIAL))) { /* nearly all */
            if ((entry | base) & SINGLE && point && base)
                points[count++] = 0;
            points[count++] = point;
            base = point ? entry : 0;
            cleaner->before = entry;
            cleaner->marks = 0;
        } else if ((entry & (COMPOSES | MARK | SPECIAL)) == MARK && !rank_of(entry)) { /* most vowel signs */
            points[count++] = base ? point : 0;
            cleaner->before = entry;
            cleaner->marks = 0;
        } else {
            cleaner->count = count, cleaner->base = base;
            if (!(entry & SPECIAL ? add_special(cleaner, entry, length - i) : add_entry(cleaner, entry)))
                return -1;
            points = cleaner->points, count = cleaner->count, base = cleaner->base;
        }
    }
    cleaner->count = count;
    return cleaner->count;
}

/* ---------------------------------------------------------------- sketches
 *
 * See shingles.py for the formulas. No step waits for the one before it: with S[i] the sum of term[j] * base**j over
 * j < i, the polynomial over the terms from i to j - 1 is (S[j] - S[i]) * base**-i, exact modulo 2**64. Its terms are
 * the characters of a word, its words, or the characters of a text. Everything goes block by block through arrays that
 * stay in the first cache of a processor, and without branches that depend on the text, which cannot be foreseen.
 */

static const uint64_t P = 0x9E3779B97F4A7C15u, Q = 0xC2B2AE3D27D4EB4Fu, R = 0xD6E8FEB86659FD93u;
static const uint64_t A = 0xFF51AFD7ED558CCDu, B = 0xC4CEB9FE1A85EC53u;

enum { BLOCK = 256, MOST_SIZE = 64, ROOM = 2 * BLOCK + MOST_SIZE, COMMON_K = 128, MOST_K = 4096, SPACE = 32 };

typedef struct {
    uint64_t power[ROOM], inverse[ROOM];
} Powers;

static Powers of_p, of_q; /* the inverse powers of P come times A */

static void fill_powers(Powers *powers, uint64_t base, uint64_t factor)
{
    uint64_t inverse = base; /* right in 3 bits, as of every odd number, and every step doubles them */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - base * inverse;
    powers->power[0] = 1, powers->inverse[0] = factor;
    for (int i = 1; i < ROOM; i++) {
        powers->power[i] = powers->power[i - 1] * base;
        powers->inverse[i] = powers->inverse[i - 1] * inverse;
    }
}

static void fill_all_powers(void)
{
    fill_powers(&of_p, P, A);
    fill_powers(&of_q, Q, 1);
}

typedef struct {
    int words; /* else characters */
    int64_t size, k;
    uint64_t seed;
} Recipe;

typedef struct {
    int64_t k;
    int32_t *values, *spare; /* `room` each */
    int64_t count, room;
    int32_t limit; /* above it a value is not among the k smallest */
} Smallest;

static int compare(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Bring the k smallest distinct of the values to the front, ascending. Hashes are spread evenly, so one round of
   placing them by size, in more buckets than there are values, leaves little to move. */
static void settle(Smallest *smallest)
{
    enum { MOST_BITS = 12, PATIENCE = 16 };
    int32_t starts[(1 << MOST_BITS) + 1], *values = smallest->values, *spare = smallest->spare;
    int64_t count = smallest->count, k = smallest->k, kept = 0, steps = 0;
    int bits = 4;
    while (bits < MOST_BITS && count >> (bits - 1))
        bits++;
    uint64_t scale = ((uint64_t)1 << (32 + bits)) / ((uint64_t)smallest->limit + 1);
    memset(starts, 0, (((size_t)1 << bits) + 1) * sizeof *starts);
    for (int64_t i = 0; i < count; i++)
        starts[((uint64_t)values[i] * scale >> 32) + 1]++;
    for (int i = 0; i < 1 << bits; i++)
        starts[i + 1] += starts[i];
    for (int64_t i = 0; i < count; i++)
        spare[starts[(uint64_t)values[i] * scale >> 32]++] = values[i];
    int32_t later = count ? spare[0] : 0; /* of two neighbours: most of what is out of order, without a branch */
    for (int64_t i = 0; i < count; i++) {
        int32_t next = i + 1 < count ? spare[i + 1] : INT32_MAX, value = later < next ? later : next;
        later = later < next ? next : later;
        if (!kept || value > values[kept - 1]) {
            if (kept >= k && (uint64_t)value * scale >> 32 > (uint64_t)values[k - 1] * scale >> 32)
                break;
            values[kept++] = value;
            continue;
        }
        int64_t at = kept;
        while (at && values[at - 1] > value)
            at--;
        steps += kept - at;
        if (!at || values[at - 1] != value) {
            memmove(values + at + 1, values + at, (size_t)(kept++ - at) * sizeof *values);
            values[at] = value;
        }
        if (steps > PATIENCE * count) { /* not what hashes do, but somebody may choose texts for it */
            qsort(spare, (size_t)count, sizeof *spare, compare);
            i = -1, kept = steps = 0, later = spare[0];
        }
    }
    smallest->count = kept < k ? kept : k;
    if (kept >= k)
        smallest->limit = values[k - 1];
}

/* One text on its way to its sketch. */
typedef struct {
    Smallest smallest;
    const Powers *powers;
    int64_t size;
    uint64_t seed;
    int rolled;
    int64_t count;
    uint64_t terms[ROOM]; /* words (times A) or characters of which not every shingle was hashed yet */
} Sketcher;

/* Hash every `size` of the terms in a row up to `end`, and leave those of which more is to come. */
static void roll(Sketcher *sketcher, int64_t end)
{
    const uint64_t *power = sketcher->powers->power, *inverse = sketcher->powers->inverse;
    uint64_t sums[ROOM + 1], seed = sketcher->seed;
    int64_t windows = end - sketcher->size + 1;
    Smallest *smallest = &sketcher->smallest;
    if (windows <= 0)
        return;
    sums[0] = 0;
    for (int64_t i = 0; i < end; i++)
        sums[i + 1] = sums[i] + sketcher->terms[i] * power[i];
    if (smallest->count + windows > smallest->room)
        settle(smallest);
    const uint64_t *ends = sums + sketcher->size;
    int32_t *values = smallest->values, limit = smallest->limit;
    int64_t count = smallest->count;
    for (int64_t i = 0; i < windows; i++) {
        uint64_t state = (ends[i] - sums[i]) * inverse[i] + seed;
        int32_t value = (int32_t)((state ^ state >> 32) * B >> 33);
        values[count] = value;
        count += value <= limit;
    }
    smallest->count = count;
    sketcher->count -= windows;
    sketcher->rolled = 1;
    memmove(sketcher->terms, sketcher->terms + windows, (size_t)sketcher->count * sizeof(uint64_t));
}

/* A text: `bytes` that are all ASCII, or `points` that are clean, 0 wherever tokens are separated. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *points;
    int64_t length;
} Source;

static inline uint32_t clean_ascii(uint8_t c)
{
    uint8_t lower = c | 0x20; /* which digits are already */
    return (uint8_t)(lower - 'a') < 26 || (uint8_t)(c - '0') < 10 ? lower : 0;
}

static uint32_t point_at(const Source *source, int64_t i)
{
    return source->bytes ? clean_ascii(source->bytes[i]) : source->points[i];
}

/* Up to BLOCK clean points of a text; room: for so many. */
static const uint32_t *block_of(const Source *source, int64_t start, int64_t size, uint32_t *room)
{
    if (!source->bytes)
        return source->points + start;
    for (int64_t i = 0; i < size; i++)
        room[i] = clean_ascii(source->bytes[start + i]);
    return room;
}

/* The words of a text as terms: first where words begin and end and the sums there, then the words. */
static void scan_words(Sketcher *sketcher, const Source *source)
{
    uint32_t room[BLOCK];
    uint64_t sums[BLOCK + 2];
    int32_t edges[BLOCK + 2];
    for (int64_t start = 0, next; start < source->length; start = next) {
        int64_t size = source->length - start < BLOCK ? source->length - start : BLOCK, found = 0;
        const uint32_t *points = block_of(source, start, size, room);
        uint64_t sum = 0, inside = 0;
        next = start + size;
        if (sketcher->count + BLOCK > ROOM)
            roll(sketcher, sketcher->count);
        for (int64_t i = 0; i < size; i++) {
            edges[found] = (int32_t)i, sums[found] = sum;
            found += (int64_t)(inside ^ (points[i] != 0));
            inside = points[i] != 0;
            sum += points[i] * of_p.power[i];
        }
        if (inside && next < source->length && edges[found - 1] > 0) /* unfinished: it begins the next block */
            next = start + edges[--found];
        else if (inside) {
            uint64_t point, power = of_p.power[BLOCK]; /* more than a block long, or the last of the text */
            for (; next < source->length && (point = point_at(source, next)); next++, power *= P)
                sum += point * power;
            edges[found] = (int32_t)size, sums[found++] = sum;
        }
        for (int64_t i = 0; i < found; i += 2)
            sketcher->terms[sketcher->count++] = (sums[i + 1] - sums[i]) * of_p.inverse[edges[i]];
    }
}

/* The characters of a text as terms, a space for whatever separates tokens. */
static void scan_characters(Sketcher *sketcher, const Source *source)
{
    uint32_t room[BLOCK];
    uint64_t inside = 0;
    for (int64_t start = 0; start < source->length; start += BLOCK) {
        int64_t size = source->length - start < BLOCK ? source->length - start : BLOCK, count = sketcher->count;
        const uint32_t *points = block_of(source, start, size, room);
        if (count + BLOCK > ROOM) {
            roll(sketcher, count - (sketcher->terms[count - 1] == SPACE)); /* which may turn out to be the end */
            count = sketcher->count;
        }
        for (int64_t i = 0; i < size; i++) {
            uint64_t outside = points[i] == 0;
            sketcher->terms[count] = points[i] | outside * SPACE;
            count += (int64_t)(inside | (1 - outside));
            inside = 1 - outside;
        }
        sketcher->count = count;
    }
    sketcher->count -= sketcher->count && sketcher->terms[sketcher->count - 1] == SPACE;
}

/* Most values that may wait to be sorted. */
static int64_t room_for(int64_t k) { return 4 * k + ROOM; }

/* Read a text into the k smallest values up to `limit`. Returns how many they are. */
static int64_t sketch_up_to(int32_t limit, const Source *source, const Recipe *recipe, int32_t *scratch)
{
    Sketcher sketcher;
    int64_t room = room_for(recipe->k);
    sketcher.smallest = (Smallest){recipe->k, scratch, scratch + room, 0, room, limit};
    sketcher.powers = recipe->words ? &of_q : &of_p;
    sketcher.size = recipe->size;
    sketcher.seed = recipe->seed * R * A;
    sketcher.rolled = 0;
    sketcher.count = 0;
    if (recipe->words)
        scan_words(&sketcher, source);
    else
        scan_characters(&sketcher, source);
    if (!sketcher.rolled && sketcher.count && sketcher.count < sketcher.size)
        sketcher.size = sketcher.count; /* one shingle of what there is */
    roll(&sketcher, sketcher.count);
    settle(&sketcher.smallest);
    return sketcher.smallest.count;
}

/* Sketch a text. scratch: two times room_for(k); the values are at its start. Returns how many they are. Values above
   where the k-th of so many evenly spread ones is expected are left out, with some to spare, as texts repeat
   themselves; where that was not enough all are taken. */
static int64_t sketch_source(const Source *source, const Recipe *recipe, int32_t *scratch)
{
    enum { WORD = 8, LATER = 8 }; /* characters of a long word; times k, from where on the limit falls anyway */
    int64_t shingles = recipe->words ? source->length / WORD : source->length;
    int64_t wanted = (recipe->words ? 3 : 6) * recipe->k / 2 + 24;
    if (shingles > LATER * recipe->k)
        shingles = LATER * recipe->k;
    if (wanted < shingles && sketch_up_to((int32_t)((wanted << 31) / shingles), source, recipe, scratch) == recipe->k)
        return recipe->k;
    return sketch_up_to(INT32_MAX, source, recipe, scratch);
}

/* ---------------------------------------------------------------- Python
 *
 * Sketches come as a list or tuple of int32 arrays, or as one int32 array with int64 offsets; arrays go back as bytes.
 */

static int is_row_of(const Py_buffer *view, Py_ssize_t size)
{
    return view->ndim == 1 && view->itemsize == size && view->format && strchr("ilqIL", *view->format)
           && view->format[0] && !view->format[1];
}

/* One row of signed numbers of `size` bytes each, C-contiguous. 0: it is something else. */
static int get_row(PyObject *array, Py_ssize_t size, Py_buffer *view)
{
    if (PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_ND) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (is_row_of(view, size))
        return 1;
    PyBuffer_Release(view);
    return 0;
}

static int copy_flat(Page *page, PyObject *values, PyObject *offsets)
{
    Py_buffer from, at;
    int fine = 0;
    if (!get_row(values, sizeof(int32_t), &from))
        return 0;
    if (get_row(offsets, sizeof(int64_t), &at)) {
        page->count = at.len / (int64_t)sizeof(int64_t) - 1;
        page->values = malloc((size_t)from.len + 1);
        page->offsets = malloc((size_t)at.len + 1);
        fine = page->count >= 0 && page->values && page->offsets;
        if (fine) {
            memcpy(page->values, from.buf, (size_t)from.len);
            memcpy(page->offsets, at.buf, (size_t)at.len);
            fine = page->offsets[0] == 0 && page->offsets[page->count] == from.len / (int64_t)sizeof(int32_t);
            for (int64_t hit = 0; hit < page->count; hit++)
                fine &= page->offsets[hit] <= page->offsets[hit + 1];
        }
        PyBuffer_Release(&at);
    }
    PyBuffer_Release(&from);
    return fine;
}

static int copy_rows(Page *page, PyObject *sketches)
{
    PyObject *rows = PySequence_Tuple(sketches);
    int64_t room = 0, used = 0, hit = 0;
    if (!rows) {
        PyErr_Clear();
        return 0;
    }
    page->count = PyTuple_Size(rows);
    page->offsets = calloc((size_t)(page->count + 1), sizeof(int64_t));
    for (; page->offsets && hit < page->count; hit++) {
        Py_buffer view;
        if (!get_row(PyTuple_GetItem(rows, hit), sizeof(int32_t), &view))
            break;
        int64_t length = view.len / (int64_t)sizeof(int32_t);
        if (used + length >= room) { /* most sketches of a page have one length */
            room = 2 * room + length * page->count + 1;
            int32_t *larger = realloc(page->values, (size_t)room * sizeof(int32_t));
            if (!larger) {
                PyBuffer_Release(&view);
                break;
            }
            page->values = larger;
        }
        memcpy(page->values + used, view.buf, (size_t)length * sizeof(int32_t));
        page->offsets[hit + 1] = used += length;
        PyBuffer_Release(&view);
    }
    Py_DECREF(rows);
    return page->offsets && hit == page->count;
}

/* A copy of a page's sketches, of each at most k values. 0: they are not as they should be, or there is no memory. */
static int copy_page(Page *page, PyObject *sketches, PyObject *offsets, int64_t k)
{
    page->k = k;
    if (k < 1 || !(offsets == Py_None ? copy_rows(page, sketches) : copy_flat(page, sketches, offsets)))
        return 0;
    if (page->offsets[page->count] >= 1 << 29 || page->count >= 1 << 29 || !is_regular(page))
        return 0;
    int64_t used = 0;
    for (int64_t hit = 0; hit < page->count; hit++) {
        int64_t length = length_of(page, hit) < k ? length_of(page, hit) : k;
        if (used < page->offsets[hit])
            memmove(page->values + used, values_of(page, hit), (size_t)length * sizeof(int32_t));
        page->offsets[hit] = used; /* behind us: only the next one is still read */
        used += length;
    }
    page->offsets[page->count] = used;
    return 1;
}

static void free_page(Page *page, Weights *weights)
{
    free(page->values);
    free(page->offsets);
    free(weights->weights);
    free(weights->looked_up);
    free(weights->maybe);
}

static PyObject *bytes_of(const void *array, int64_t size) { return PyBytes_FromStringAndSize(array, (Py_ssize_t)size); }

PyDoc_STRVAR(rows_doc, "rows(sketches, offsets, k) -> (values, offsets) as bytes of int32 and int64, or None.");

static PyObject *rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *result = NULL;
    long long k;
    Page page = {0};
    Weights none = {0};
    if (!PyArg_ParseTuple(arguments, "OOL", &sketches, &offsets, &k))
        return NULL;
    if (copy_page(&page, sketches, offsets, k))
        result = Py_BuildValue("NN", bytes_of(page.values, page.offsets[page.count] * (int64_t)sizeof(int32_t)),
                               bytes_of(page.offsets, (page.count + 1) * (int64_t)sizeof(int64_t)));
    else
        result = Py_NewRef(Py_None);
    free_page(&page, &none);
    return result;
}

/* How the bytes of a table of common values are laid out. */
static void lay_out(Weights *weights, const char *table, int64_t slots)
{
    weights->slots = (const Common *)table;
    weights->filter = (const uint8_t *)(weights->slots + slots);
    for (weights->shift = 32; slots > 1; slots /= 2)
        weights->shift--;
}

PyDoc_STRVAR(common_doc, "common_table(values, weights) -> bytes, for leaders and pairs; or None.\n\n"
                         "values: int32, at least 0; weights: int64, at most 2**20.");

static PyObject *common_table(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *values, *weights, *result = NULL;
    Py_buffer of = {0}, are = {0};
    if (!PyArg_ParseTuple(arguments, "OO", &values, &weights))
        return NULL;
    int has_values = get_row(values, sizeof(int32_t), &of), has_weights = get_row(weights, sizeof(int64_t), &are);
    int64_t count = of.len / (int64_t)sizeof(int32_t), slots = 16;
    if (has_values && has_weights && count == are.len / (int64_t)sizeof(int64_t) && count < 1 << 26) {
        while (slots < 3 * count)
            slots *= 2;
        result = bytes_of(NULL, slots * (int64_t)(sizeof(Common) + 1));
    }
    if (result) {
        Weights table;
        lay_out(&table, PyBytes_AsString(result), slots);
        memset((void *)table.slots, 0xFF, (size_t)slots * sizeof(Common));
        memset((void *)table.filter, 0, (size_t)slots);
        for (int64_t i = 0; i < count; i++) {
            int32_t value = ((int32_t *)of.buf)[i];
            uint32_t bit = filter_bit(&table, value);
            ((Common *)table.slots)[common_slot(&table, value)] = (Common){value, (uint32_t)((int64_t *)are.buf)[i]};
            ((uint8_t *)table.filter)[bit / 8] |= (uint8_t)(1 << bit % 8);
        }
    }
    if (has_values)
        PyBuffer_Release(&of);
    if (has_weights)
        PyBuffer_Release(&are);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* What the values of a page weigh, from a common_table or None. 0: it is neither, or there is no memory. */
static int get_weights(Weights *weights, PyObject *table, const Page *page)
{
    if (table == Py_None)
        return 1;
    int64_t size = PyBytes_Check(table) ? PyBytes_Size(table) : 0, slots = size / (int64_t)(sizeof(Common) + 1);
    if (slots < 16 || slots & (slots - 1) || slots > 1 << 28 || size % (int64_t)(sizeof(Common) + 1))
        return 0;
    lay_out(weights, PyBytes_AsString(table), slots);
    weights->weights = malloc((size_t)page->offsets[page->count] * sizeof *weights->weights + 1);
    weights->looked_up = calloc((size_t)page->count + 1, 1);
    weights->maybe = malloc((size_t)page->offsets[page->count] * sizeof *weights->maybe + 1);
    return weights->weights && weights->looked_up && weights->maybe;
}

/* What `leaders` and `pairs` are asked. */
typedef struct {
    Page page;
    Rule rule;
    Weights weights;
    Weights *common; /* these, or NULL: nothing is common */
    long long last;  /* the last argument */
} Question;

/* Read the arguments of `leaders` and `pairs`. 1: done, 0: something is not regular, -1: it is an error. */
static int get_question(Question *question, PyObject *arguments, const char *format)
{
    PyObject *sketches, *offsets, *table;
    long long k, shortest;
    Rule *rule = &question->rule;
    *question = (Question){0};
    if (!PyArg_ParseTuple(arguments, format, &sketches, &offsets, &k, &rule->least, &rule->asked, &rule->few,
                          &rule->known, &rule->power, &rule->margin, &shortest, &table, &question->last))
        return -1;
    rule->shortest = shortest;
    if (!(rule->least >= 0 && rule->least <= 1 && rule->asked >= 0 && rule->few > 0 && rule->known >= rule->few &&
          rule->power >= 0 && rule->margin >= 0))
        return 0;
    if (!copy_page(&question->page, sketches, offsets, k) || !get_weights(&question->weights, table, &question->page))
        return 0;
    question->common = table == Py_None ? NULL : &question->weights;
    return 1;
}

static PyObject *answer(Question *question, PyObject *result)
{
    free_page(&question->page, &question->weights);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

PyDoc_STRVAR(leaders_doc, "leaders(sketches, offsets, k, rule, common, old) -> (leaders, similarities), or None.\n\n"
                          "They are bytes of int64 and float64.");

static PyObject *leaders(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Question question;
    PyObject *result = NULL;
    int fine = get_question(&question, arguments, "OOL(ddddddL)OL:leaders");
    int64_t size = question.page.count * (int64_t)sizeof(int64_t);
    if (fine > 0 && (result = Py_BuildValue("NN", bytes_of(NULL, size), bytes_of(NULL, size)))) {
        int64_t *found = (int64_t *)PyBytes_AsString(PyTuple_GetItem(result, 0));
        double *similarities = (double *)PyBytes_AsString(PyTuple_GetItem(result, 1));
        Py_BEGIN_ALLOW_THREADS
        fine = find_leaders(&question.page, &question.rule, question.common, question.last, found, similarities);
        Py_END_ALLOW_THREADS
        if (!fine)
            Py_CLEAR(result);
    }
    return answer(&question, result);
}

/* The columns of `pairs`: the first three, or all. */
enum {
    FIRST_HIT, SECOND_HIT, SIMILARITY, BRIEF,
    SHARED = BRIEF, LEFT, RIGHT, SHORTER, RARE_SHARED, RARE_LEFT, RARE_RIGHT, COLUMNS
};

static void write_pair(const Page *page, const Pair *pair, int64_t at, int columns, int64_t **whole, double **real)
{
    whole[FIRST_HIT][at] = pair->hits[0];
    whole[SECOND_HIT][at] = pair->hits[1];
    real[SIMILARITY][at] = resemblance_of(pair);
    if (columns == BRIEF)
        return;
    double first = shingles_of(page, pair->hits[0]), second = shingles_of(page, pair->hits[1]);
    whole[SHARED][at] = pair->shared;
    whole[LEFT][at] = pair->within[0];
    whole[RIGHT][at] = pair->within[1];
    real[SHORTER][at] = first < second ? first : second;
    real[RARE_SHARED][at] = rare(pair->shared, pair->weights[2]);
    real[RARE_LEFT][at] = rare(pair->within[0], pair->weights[0]);
    real[RARE_RIGHT][at] = rare(pair->within[1], pair->weights[1]);
}

/* Pairs as columns, ordered by the first, then the second. NULL: no memory. */
static PyObject *columns_of(const Page *page, const Pair *pairs, int64_t count, int columns)
{
    int64_t *whole[COLUMNS], *next = calloc((size_t)page->count + 1, sizeof *next);
    double *real[COLUMNS];
    PyObject *result = PyTuple_New(columns);
    for (int i = 0; next && result && i < columns; i++) {
        PyObject *bytes = bytes_of(NULL, count * (int64_t)sizeof(int64_t));
        if (!bytes)
            Py_CLEAR(result);
        else {
            real[i] = (double *)(whole[i] = (int64_t *)PyBytes_AsString(bytes));
            PyTuple_SetItem(result, i, bytes);
        }
    }
    if (next && result) {
        for (int64_t i = 0; i < count; i++)
            next[pairs[i].hits[0] + 1]++;
        for (int64_t hit = 0; hit < page->count; hit++)
            next[hit + 1] += next[hit];
        for (int64_t i = 0; i < count; i++)
            write_pair(page, pairs + i, next[pairs[i].hits[0]]++, columns, whole, real);
    } else
        Py_CLEAR(result);
    free(next);
    return result;
}

PyDoc_STRVAR(pairs_doc, "pairs(sketches, offsets, k, rule, common, brief) -> (first, second, similarity) and, unless\n"
                        "brief, (shared, left, right, shorter, rare_shared, rare_left, rare_right), or None.\n\n"
                        "See pairs.Pairs and decision.Overlaps; they are bytes of int64 and float64, ordered by the\n"
                        "first, then the second.");

static PyObject *pairs(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Question question;
    Pair *found = NULL;
    PyObject *result = NULL;
    int64_t count = -1;
    if (get_question(&question, arguments, "OOL(ddddddL)OL:pairs") > 0) {
        Py_BEGIN_ALLOW_THREADS
        count = find_pairs(&question.page, &question.rule, question.common, !question.last, &found);
        Py_END_ALLOW_THREADS
    }
    if (count >= 0)
        result = columns_of(&question.page, found, count, question.last ? BRIEF : COLUMNS);
    free(found);
    return answer(&question, result);
}

/* What a thread needs to sketch texts one after the other. */
typedef struct {
    Recipe recipe;
    int32_t *scratch;
    Cleaner cleaner;
    int32_t few[2 * (4 * COMMON_K + ROOM)]; /* the scratch of a recipe with no larger k: no memory to ask for */
} Tools;

typedef struct {
    const uint8_t *bytes;  /* all ASCII, */
    const uint32_t *codes; /* or code points */
    int64_t length;
} Text;

enum { WORTH = 10000 }; /* characters, above which sketching takes so long that other threads are let in */

/* plan: (words, size, seed, k). 0: it is none, or the table is no bytes, or there is no memory. */
static int get_tools(Tools *tools, PyObject *plan, PyObject *table)
{
    Recipe *recipe = &tools->recipe;
    Cleaner *cleaner = &tools->cleaner;
    tools->scratch = NULL;
    *cleaner = (Cleaner){0};
    if (!PyTuple_Check(plan) || PyTuple_Size(plan) != 4)
        return 0;
    recipe->words = PyObject_IsTrue(PyTuple_GetItem(plan, 0));
    recipe->size = PyLong_AsLongLong(PyTuple_GetItem(plan, 1));
    recipe->seed = PyLong_AsUnsignedLongLong(PyTuple_GetItem(plan, 2));
    recipe->k = PyLong_AsLongLong(PyTuple_GetItem(plan, 3));
    if (table != Py_None && PyBytes_Check(table)) {
        cleaner->table = (const uint32_t *)PyBytes_AsString(table);
        cleaner->table_size = PyBytes_Size(table) / (int64_t)sizeof(uint32_t);
    }
    cleaner->ignored = recipe->words ? 0 : SINGLE;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (recipe->size < 1 || recipe->size > MOST_SIZE || recipe->k < 1 || recipe->k > MOST_K)
        return 0;
    tools->scratch = tools->few;
    if (recipe->k > COMMON_K)
        tools->scratch = malloc((size_t)(2 * room_for(recipe->k)) * sizeof *tools->scratch);
    return tools->scratch != NULL;
}

static void free_tools(Tools *tools)
{
    if (tools->scratch != tools->few)
        free(tools->scratch);
    free(tools->cleaner.points);
}

/* A text as it is sketched; codes: room for the code points of one that is not ASCII. 0: it is no text. */
static int get_text(Text *text, PyObject *object, int is_ascii, const Tools *tools, uint32_t *codes)
{
    Py_ssize_t length = 0;
    *text = (Text){0};
    if (!PyUnicode_Check(object))
        return 0;
    text->length = PyUnicode_GetLength(object);
    if (is_ascii) {
        text->bytes = (const uint8_t *)PyUnicode_AsUTF8AndSize(object, &length);
        return text->bytes && length == text->length;
    }
    text->codes = codes;
    return tools->cleaner.table_size >= CODE_POINTS && codes && PyUnicode_AsUCS4(object, codes, text->length, 0);
}

/* Sketch a text into tools->scratch. Returns the number of values, -1: it is left to numpy. */
static int64_t sketch_any(Tools *tools, const Text *text)
{
    Source source = {text->bytes, NULL, text->length};
    if (!text->bytes) {
        source.length = clean_text(&tools->cleaner, text->codes, text->length);
        source.points = tools->cleaner.points;
    }
    return source.length < 0 ? -1 : sketch_source(&source, &tools->recipe, tools->scratch);
}

PyDoc_STRVAR(sketch_text_doc, "sketch_text(text, plan, table) -> values as bytes of int32, or None.\n\n"
                              "table: None for a text that is all ASCII.");

static PyObject *sketch_text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t number)
{
    Tools tools;
    Text text;
    PyObject *result = NULL;
    uint32_t *codes = NULL;
    int64_t count = -1;
    if (number != 3) {
        PyErr_SetString(PyExc_TypeError, "sketch_text takes a text, a plan and a table");
        return NULL;
    }
    if (get_tools(&tools, arguments[1], arguments[2])) {
        int is_ascii = arguments[2] == Py_None;
        if (!is_ascii && PyUnicode_Check(arguments[0]))
            codes = malloc((size_t)PyUnicode_GetLength(arguments[0]) * sizeof *codes + 1);
        if (get_text(&text, arguments[0], is_ascii, &tools, codes)) {
            if (text.length > WORTH) {
                Py_BEGIN_ALLOW_THREADS
                count = sketch_any(&tools, &text);
                Py_END_ALLOW_THREADS
            } else
                count = sketch_any(&tools, &text);
        }
        PyErr_Clear();
        if (count >= 0)
            result = bytes_of(tools.scratch, count * (int64_t)sizeof(int32_t));
    }
    free(codes);
    free_tools(&tools);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* The sketches of many texts. */
typedef struct {
    int64_t count;
    Text *texts;
    int32_t *values;
    int64_t *offsets, room;
    int64_t *left, left_count; /* the numbers of those left to numpy, which get no values */
} Batch;

/* 0: no memory. */
static int sketch_batch(Batch *batch, Tools *tools)
{
    int64_t used = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t count = sketch_any(tools, batch->texts + i);
        if (count < 0) {
            batch->left[batch->left_count++] = i;
            count = 0;
        }
        if (used + count > batch->room) {
            int64_t room = 2 * (used + count) + (batch->count - i) * 16;
            int32_t *larger = realloc(batch->values, (size_t)room * sizeof *larger);
            if (!larger)
                return 0;
            batch->values = larger;
            batch->room = room;
        }
        if (count)
            memcpy(batch->values + used, tools->scratch, (size_t)count * sizeof(int32_t));
        batch->offsets[i] = used;
        used += count;
    }
    batch->offsets[batch->count] = used;
    return 1;
}

/* Read the texts into a batch; is_ascii: a byte for each. Returns their code points, NULL: something is no text. */
static uint32_t *get_batch(Batch *batch, PyObject *items, const char *is_ascii, const Tools *tools)
{
    int64_t wide = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        PyObject *text = PyTuple_GetItem(items, i);
        if (!is_ascii[i] && PyUnicode_Check(text))
            wide += PyUnicode_GetLength(text);
    }
    uint32_t *codes = malloc((size_t)wide * sizeof *codes + 1), *next = codes;
    for (int64_t i = 0; codes && i < batch->count; i++) {
        if (!get_text(batch->texts + i, PyTuple_GetItem(items, i), is_ascii[i], tools, next)) {
            free(codes);
            return NULL;
        }
        next += is_ascii[i] ? 0 : batch->texts[i].length;
    }
    return codes;
}

PyDoc_STRVAR(sketch_texts_doc, "sketch_texts(texts, is_ascii, plan, table) -> (values, offsets, left), or None.\n\n"
                               "They are bytes of int32, int64 and int64. is_ascii: bytes, one for each text.\n"
                               "left: the numbers of texts that get no values.");

static PyObject *sketch_texts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sequence, *plan, *table, *result = NULL;
    const char *is_ascii;
    Py_ssize_t number;
    Tools tools;
    Batch batch = {0};
    uint32_t *codes = NULL;
    int fine = 0;
    if (!PyArg_ParseTuple(arguments, "Oy#OO", &sequence, &is_ascii, &number, &plan, &table))
        return NULL;
    PyObject *items = PySequence_Tuple(sequence); /* keeps the texts alive while we read them */
    if (!items)
        return NULL;
    batch.count = PyTuple_Size(items);
    if (get_tools(&tools, plan, table) && batch.count == number) {
        batch.texts = malloc((size_t)number * sizeof *batch.texts + 1);
        batch.offsets = malloc((size_t)(number + 1) * sizeof *batch.offsets);
        batch.left = malloc((size_t)number * sizeof *batch.left + 1);
        if (batch.texts && batch.offsets && batch.left)
            codes = get_batch(&batch, items, is_ascii, &tools);
        PyErr_Clear();
    }
    if (codes) {
        Py_BEGIN_ALLOW_THREADS
        fine = sketch_batch(&batch, &tools);
        Py_END_ALLOW_THREADS
    }
    if (fine)
        result = Py_BuildValue("NNN", bytes_of(batch.values, batch.offsets[number] * (int64_t)sizeof(int32_t)),
                               bytes_of(batch.offsets, (number + 1) * (int64_t)sizeof(int64_t)),
                               bytes_of(batch.left, batch.left_count * (int64_t)sizeof(int64_t)));
    free(codes);
    free(batch.texts);
    free(batch.values);
    free(batch.offsets);
    free(batch.left);
    free_tools(&tools);
    Py_DECREF(items);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"rows", rows, METH_VARARGS, rows_doc},
    {"leaders", leaders, METH_VARARGS, leaders_doc},
    {"common_table", common_table, METH_VARARGS, common_doc},
    {"pairs", pairs, METH_VARARGS, pairs_doc},
    {"sketch_text", (PyCFunction)(void (*)(void))sketch_text, METH_FASTCALL, sketch_text_doc},
    {"sketch_texts", sketch_texts, METH_VARARGS, sketch_texts_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core: see _native.c.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);
    fill_lanes();
    fill_all_powers();
    if (module && PyModule_AddIntConstant(module, "version", VERSION) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
