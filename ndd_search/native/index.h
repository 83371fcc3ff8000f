/* The inverted index of a page: from values to the hits that contain them.
 *
 * A short posting list is a chain through `before`. A long one is a mask with one bit for each hit, so that values of a
 * whole page (boilerplate, edits of one text) cost no more than others. The masks of a hit's values are added up 64
 * hits at a time, as bit-sliced counters: plane p holds bit p of each counter.
 *
 * A slot of the hash table is only a position in page->values, so that the table fits the L1 cache. Most values of a
 * page occur once and find their slot free.
 */
#pragma once
#include <stdlib.h>
#include <string.h>
#include "asked.h"

enum { LANES = 8 }; /* hits that are added up at a time */
enum { LONG = 512 }; /* earlier hits, above which a list of the hits met is worth its cost */
enum { ALL_HITS = -1 };

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
    int32_t *touched;  /* of a long list: the hits where that is not 0, in any order; touched_count of them, */
    int64_t touched_count; /* or ALL_HITS: it may be any of them */
    int32_t least_of_full; /* the fewest values that a hit with a full sketch shares with one similar to it */
    uint32_t *weighed; /* and, if that was asked, what these weigh, */
    int can_weigh;     /* which fits, as no hit has many values */
    int32_t *others;   /* numbers of the present hit's values that found their slots taken */
    Held *held;
    int64_t held_count;
    const uint64_t **many; /* masks of those of them that many hold */
    void *parts[9];
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
    *index = (Index){.page = page, .asked = asked, .all = all, .least_of_full = INT32_MAX, .touched_count = ALL_HITS};
    for (int64_t hit = 0; hit < count; hit++) {
        int64_t length = indexed(index, hit);
        longest = length > longest ? length : longest;
        total += length;
    }
    while (1LL << bits < 2 * total)
        bits++;
    for (int64_t hit = 0; hit < count && count > LONG; hit++)
        if (length_of(page, hit) >= page->k && asked[hit].least < index->least_of_full)
            index->least_of_full = asked[hit].least;
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
    index->touched = part_of(index, count > LONG ? count : 0, sizeof *index->touched);
    index->weighed = index->shared + count + LANES;
    index->can_weigh = longest < FEW_VALUES;
    if (!index->failed)
        memset(index->slots, 0, sizeof *index->slots << bits);
    if (!index->failed && count > LONG)
        memset(index->shared, 0, (size_t)(count + LANES) * sizeof *index->shared);
    return !index->failed;
}

/* Find the values of a hit that earlier hits contain, and insert its other values. */
static void find_held(Index *index, int64_t hit)
{
    const int32_t *values = values_of(index->page, hit);
    int32_t *const slots = index->slots, *const others = index->others, start = (int32_t)index->page->offsets[hit];
    const int shift = index->shift;
    int64_t length = indexed(index, hit), taken = 0;
    index->held_count = 0;
    for (int64_t i = 0; i < length; i++)
        index->holders[start + i] = (Holder){(int32_t)hit, 0};
    for (int64_t i = 0; i < length; i++) { /* without a branch: taken slots are unpredictable */
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

/* Add `count` masks to `shared`, of hits before `hits`: two at a time, because a full adder adds three bits and
   carries one. */
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

/* Set `shared` back to 0, which the hit counted last has changed. */
static void forget_shared(Index *index, int64_t hit)
{
    if (index->touched_count == ALL_HITS)
        memset(index->shared, 0, (size_t)(hit + LANES) * sizeof *index->shared);
    else
        for (int64_t i = 0; i < index->touched_count; i++)
            index->shared[index->touched[i]] = 0;
    index->touched_count = 0;
}

/* Count who holds a value, along its chain, and list the hits met for the first time. Returns how many hold it. */
static int64_t list_chain(Index *index, const Holder *last)
{
    int64_t holding = 0;
    for (const Holder *holder = last; holder; holder = before(index, holder), holding++) {
        index->touched[index->touched_count] = holder->hit;
        index->touched_count += !index->shared[holder->hit]++;
    }
    return holding;
}

/* Add `count` masks to `shared` of those hits only that were met in chains. */
static void add_masks_to_touched(Index *index, int64_t count)
{
    for (int64_t i = 0; i < index->touched_count; i++) {
        int32_t hit = index->touched[i];
        for (int64_t j = 0; j < count; j++)
            index->shared[hit] += index->many[j][hit / 64] >> hit % 64 & 1;
    }
}

/* Count into `shared` the values that a hit shares with each hit inserted before. Returns 0 if it shares none.
 *
 * In a long list most hits share nothing with a given one. These are not visited, so that the work does not grow with
 * the square of the list. If a hit must share more values with a similar one than it has values with a mask, then each
 * similar hit is met in a chain, and the masks need not be scanned for further hits. */
static int count_shared(Index *index, int64_t hit)
{
    int64_t many = 0;
    find_held(index, hit);
    if (!index->held_count)
        return 0;
    if (hit < LONG)
        memset(index->shared, 0, (size_t)(hit + LANES) * sizeof *index->shared);
    else
        forget_shared(index, hit);
    for (int64_t j = 0; j < index->held_count; j++) {
        Holder *last = index->holders + *index->held[j].slot - 1;
        if (last->before < 0)
            index->many[many++] = mask_of(index, last);
        else {
            int64_t holding = 0;
            if (hit >= LONG)
                holding = list_chain(index, last);
            else
                for (const Holder *holder = last; holder; holder = before(index, holder), holding++)
                    index->shared[holder->hit]++;
            if (holding > index->words + 8)
                chain_to_mask(index, last);
        }
    }
    if (many && hit >= LONG && index->all && many < index->asked[hit].least && many < index->least_of_full)
        add_masks_to_touched(index, many);
    else if (many) {
        add_masks(index, many, hit);
        index->touched_count = ALL_HITS;
    }
    return 1;
}

/* The majority weight of the values found, if there is one: the values of a frame mostly have one weight. */
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

/* Sum the weights of the values that the hit counted last shares with each hit inserted, into `weighed`: the usual weight
   for each value, plus the difference for values of another weight, modulo 2**32. Unless exactly: a lower bound, which
   assumes that each hit shares all values of a lower weight. weights: of all positions. */
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

/* Insert the hit just counted, so that later hits find it. */
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
