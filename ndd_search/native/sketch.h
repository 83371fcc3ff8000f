/* Sketch clean code points, or clean ASCII.
 *
 * text/shingles.py has the formulas. Polynomials are computed from prefix sums, so that no step depends on the one
 * before it: with S[i] the sum of term[j] * base**j over j < i, the polynomial over the terms from i to j - 1 is (S[j]
 * - S[i]) * base**-i, exact modulo 2**64. Terms are the characters of a word, the words of a shingle, or the characters
 * of a text. Texts are processed in blocks whose arrays fit the L1 cache, without branches that depend on the text,
 * because these would be mispredicted.
 */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t P = 0x9E3779B97F4A7C15u, Q = 0xC2B2AE3D27D4EB4Fu, R = 0xD6E8FEB86659FD93u;
static const uint64_t A = 0xFF51AFD7ED558CCDu, B = 0xC4CEB9FE1A85EC53u;

enum { BLOCK = 256, MOST_SIZE = 64, ROOM = 2 * BLOCK + MOST_SIZE, COMMON_K = 128, MOST_K = 4096, SPACE = 32 };

typedef struct {
    uint64_t power[ROOM], inverse[ROOM];
} Powers;

static Powers of_p, of_q; /* the inverse powers of P come times A */

static void fill_powers(Powers *powers, uint64_t base, uint64_t factor)
{
    uint64_t inverse = base; /* correct in 3 bits for any odd number; each step doubles the correct bits */
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

/* The secret numbers of a hash: see secret.HashNumbers and text/shingles.py. */
typedef struct {
    Powers p, q; /* the inverse powers of p times a */
    uint64_t add, times, seed, first, second;
} Key;

typedef struct {
    int words; /* else characters */
    int64_t size, k;
    uint64_t seed;
    const Key *key; /* NULL: none */
} Recipe;

enum { NUMBERS = 8 }; /* of a key */

/* bytes: of uint64 as in secret.HashNumbers. */
static const Key *fill_key(Key *key, const char *bytes)
{
    uint64_t numbers[NUMBERS];
    memcpy(numbers, bytes, sizeof numbers);
    key->add = numbers[0], key->times = numbers[1];
    fill_powers(&key->p, numbers[2], numbers[4]);
    fill_powers(&key->q, numbers[3], 1);
    key->seed = numbers[5], key->first = numbers[6], key->second = numbers[7];
    return key;
}

/* What stands for a code point in a polynomial. */
static inline uint64_t term_of(const Key *key, uint64_t point)
{
    uint64_t mixed = key ? (point + key->add) * key->times : point;
    return key ? mixed ^ mixed >> 32 : point;
}

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
        if (steps > PATIENCE * count) { /* hashes are even, unless an attacker chose the texts */
            qsort(spare, (size_t)count, sizeof *spare, compare);
            i = -1, kept = steps = 0, later = spare[0];
        }
    }
    smallest->count = kept < k ? kept : k;
    if (kept >= k)
        smallest->limit = values[k - 1];
}

/* The state of sketching one text. */
typedef struct {
    Smallest smallest;
    const Powers *powers, *of_points; /* of the terms, and of the code points of words */
    const Key *key;
    int64_t size;
    uint64_t seed, space; /* space: its term */
    int32_t kept; /* the bits of a value: the lowest one of words says whether they touch an edge, see edges.h */
    int rolled;
    int64_t count;
    uint64_t terms[ROOM]; /* words (times A) or characters of which not every shingle was hashed yet */
} Sketcher;

/* Hash all windows of `size` terms up to `end`, and keep the terms of unfinished windows. */
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
    int32_t *values = smallest->values, limit = smallest->limit, kept = sketcher->kept;
    int64_t count = smallest->count;
    const Key *key = sketcher->key;
    const uint64_t first = key ? key->first : B, second = key ? key->second : 0;
    for (int64_t i = 0; i < windows; i++) {
        uint64_t state = (ends[i] - sums[i]) * inverse[i] + seed;
        state = (state ^ state >> 32) * first;
        state = key ? (state ^ state >> 29) * second : state;
        int32_t value = (int32_t)(state >> 33) & kept;
        values[count] = value;
        count += value <= limit;
    }
    smallest->count = count;
    sketcher->count -= windows;
    sketcher->rolled = 1;
    memmove(sketcher->terms, sketcher->terms + windows, (size_t)sketcher->count * sizeof(uint64_t));
}

/* A clean text, 0 wherever tokens are separated: `bytes`, or `points`. */
typedef struct {
    const uint8_t *bytes;
    const uint32_t *points;
    int64_t length;
} Source;

static inline uint32_t point_at(const Source *source, int64_t i, int wide)
{
    return wide ? source->points[i] : source->bytes[i];
}

/* Up to BLOCK points of a text. */
static const uint32_t *block_of(const Source *source, int64_t start, int64_t size, uint32_t *room)
{
    if (!source->bytes)
        return source->points + start;
    for (int64_t i = 0; i < size; i++)
        room[i] = source->bytes[start + i];
    return room;
}

/* The words of a text as terms: first where words begin and end and the sums there, then the words. */
static void scan_words(Sketcher *sketcher, const Source *source)
{
    uint32_t room[BLOCK];
    uint64_t sums[BLOCK + 2];
    const uint64_t *power_of = sketcher->of_points->power, *inverse_of = sketcher->of_points->inverse;
    const Key *key = sketcher->key;
    int32_t edges[BLOCK + 2];
    for (int64_t start = 0, next; start < source->length; start = next) {
        int64_t size = source->length - start < BLOCK ? source->length - start : BLOCK, found = 0;
        uint64_t sum = 0, inside = 0;
        const uint32_t *points = block_of(source, start, size, room);
        next = start + size;
        if (sketcher->count + BLOCK > ROOM)
            roll(sketcher, sketcher->count);
        for (int64_t i = 0; i < size; i++) {
            uint32_t point = points[i];
            edges[found] = (int32_t)i, sums[found] = sum;
            found += (int64_t)(inside ^ (point != 0));
            inside = point != 0;
            sum += term_of(key, point) * power_of[i];
        }
        if (inside && next < source->length && edges[found - 1] > 0) /* unfinished: it begins the next block */
            next = start + edges[--found];
        else if (inside) {
            uint64_t point, power = power_of[BLOCK]; /* more than a block long, or the last of the text */
            for (; next < source->length && (point = point_at(source, next, !source->bytes)); next++, power *= power_of[1])
                sum += term_of(key, point) * power;
            edges[found] = (int32_t)size, sums[found++] = sum;
        }
        for (int64_t i = 0; i < found; i += 2)
            sketcher->terms[sketcher->count++] = (sums[i + 1] - sums[i]) * inverse_of[edges[i]];
    }
}

/* The characters of a text as terms, a space for whatever separates tokens. */
static inline void scan_characters(Sketcher *sketcher, const Source *source, int wide)
{
    uint64_t inside = 0;
    const uint64_t space = sketcher->space;
    const Key *key = sketcher->key;
    for (int64_t start = 0; start < source->length; start += BLOCK) {
        int64_t size = source->length - start < BLOCK ? source->length - start : BLOCK, count = sketcher->count;
        if (count + BLOCK > ROOM) {
            roll(sketcher, count - (sketcher->terms[count - 1] == space)); /* which may turn out to be the end */
            count = sketcher->count;
        }
        for (int64_t i = 0; i < size; i++) {
            uint32_t point = point_at(source, start + i, wide);
            uint64_t outside = point == 0;
            sketcher->terms[count] = term_of(key, point | outside * SPACE);
            count += (int64_t)(inside | (1 - outside));
            inside = 1 - outside;
        }
        sketcher->count = count;
    }
    sketcher->count -= sketcher->count && sketcher->terms[sketcher->count - 1] == space;
}

/* Most values that may wait to be sorted. */
static int64_t room_for(int64_t k) { return 4 * k + ROOM; }

/* Read a text into the k smallest values up to `limit`. Returns how many they are. */
static int64_t sketch_up_to(int32_t limit, const Source *source, const Recipe *recipe, int32_t *scratch)
{
    Sketcher sketcher;
    int64_t room = room_for(recipe->k);
    sketcher.smallest = (Smallest){recipe->k, scratch, scratch + room, 0, room, limit};
    sketcher.key = recipe->key;
    sketcher.of_points = recipe->key ? &recipe->key->p : &of_p;
    sketcher.powers = !recipe->words ? sketcher.of_points : recipe->key ? &recipe->key->q : &of_q;
    sketcher.size = recipe->size;
    sketcher.seed = recipe->key ? recipe->key->seed : recipe->seed * R * A;
    sketcher.space = term_of(recipe->key, SPACE);
    sketcher.kept = recipe->words ? ~1 : ~0;
    sketcher.rolled = 0;
    sketcher.count = 0;
    if (recipe->words)
        scan_words(&sketcher, source);
    else if (source->bytes)
        scan_characters(&sketcher, source, 0);
    else
        scan_characters(&sketcher, source, 1);
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
