/* The native core: what pairs.py and sketch.py compute with numpy, bit for bit the same, several times faster.
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
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the sketches of a page */

typedef struct {
    int32_t *values;   /* one sketch after the other, ascending and distinct within each */
    int64_t *offsets;  /* hit i has values[offsets[i]] to values[offsets[i + 1] - 1] */
    int64_t count;     /* hits */
    int64_t k;         /* a sketch of k values is a sample of its document, a shorter one the whole of it */
    uint64_t *weights; /* of each value, NULL for zeros */
    int64_t *least;    /* how many values each hit shares at least with one that is similar to it, 1 or more */
} Page;

static const int32_t *values_of(const Page *page, int64_t hit) { return page->values + page->offsets[hit]; }

static int64_t length_of(const Page *page, int64_t hit) { return page->offsets[hit + 1] - page->offsets[hit]; }

/* Up to which value we know all values of a document. */
static int32_t limit_of(const Page *page, int64_t hit)
{
    int64_t length = length_of(page, hit);
    return length >= page->k ? values_of(page, hit)[length - 1] : INT32_MAX;
}

/* How many of ascending values are at most `limit`. */
static int64_t rank_in(const int32_t *values, int64_t length, int32_t limit)
{
    int64_t low = 0, high = length;
    if (!high || values[high - 1] <= limit)
        return high;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (values[middle] <= limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
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

/* How many values two hits share, and the sum of their weights. */
static int64_t count_common(const Page *page, int64_t first, int64_t second, uint64_t *weight)
{
    const int32_t *a = values_of(page, first), *b = values_of(page, second);
    int64_t a_length = length_of(page, first), b_length = length_of(page, second), common = 0;
    *weight = 0;
    if (!a_length || !b_length)
        return 0;
    /* In two halves at a time: each step waits for the one before it, but not for those of the other half. */
    int64_t a_half = a_length / 2, b_half = rank_in(b, b_length, a[a_half]);
    b_half -= b_half && b[b_half - 1] == a[a_half];
    Merge lower = {a, a + a_half, b, b + b_half}, upper = {a + a_half, a + a_length, b + b_half, b + b_length};
    if (page->weights) {
        upper.a = a, upper.b = b;
        for (const int32_t *at = a; goes_on(&upper); at = upper.a)
            if (step(&upper)) {
                *weight += page->weights[at - page->values];
                common++;
            }
        return common;
    }
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

/* ---------------------------------------------------------------- who holds which value
 *
 * A hash table from values to the hits that hold them. Few holders are a chain through `before`; many are one bit each
 * in a mask, so that values shared by a whole page (boilerplate, edits of one text) cost no more than others: the masks
 * of a hit's values are added up 64 hits at a time, as numbers written vertically in `planes`, one bit a plane.
 */

static const double ROUNDING = 1e-9; /* as in pairs.py */

enum { NOBODY = -1 }; /* as Slot.last; at and above 0 it is the place of a value in the index, below NOBODY a mask */

typedef struct {
    int32_t value; /* -1: the slot is free */
    int32_t last;  /* the holder inserted last */
} Slot;

typedef struct {
    const Page *page;
    int64_t *starts;       /* of each hit: where its values start in the index, which may hold only the smallest */
    Slot *slots;
    int shift;             /* of a 32-bit hash, to the number of a slot */
    uint32_t most;         /* number of slots - 1 */
    int32_t *holder;       /* at each place: the hit that holds the value */
    int32_t *before;       /* at each place: the place of the holder before */
    uint64_t *masks;       /* `words` each; there is room, as masks are made of chains longer than `words` */
    int64_t masks_used, words;
    uint64_t *planes;      /* plane p, word w: bit p of how many values the present hit shares with each of 64 others */
    int64_t plane_count;
    uint32_t *shared;      /* with each earlier hit: how many of its values in the index the present one has, */
    uint64_t *weighed;     /* and the sum of the weights of these; NULL where nobody asks */
    Slot **found;          /* the slots of the present hit's values */
    int32_t *order;        /* the numbers of these, values that nobody holds first, */
    int sorted;            /* if they were brought into that order */
    const uint64_t **many; /* the masks of the present hit's values */
    void *parts[11];
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
static int64_t indexed(const Index *index, int64_t hit) { return index->starts[hit + 1] - index->starts[hit]; }

/* An empty index, for all values of all hits or only for the smallest of each, among which those of a similar hit must
   have one, too. 0: no memory. */
static int make_index(Index *index, const Page *page, int all)
{
    int64_t count = page->count, longest = 0, total = 0;
    int bits = 4;
    memset(index, 0, sizeof *index);
    index->page = page;
    index->starts = part_of(index, count + 1, sizeof *index->starts);
    if (index->failed)
        return 0;
    for (int64_t hit = 0; hit < count; hit++) {
        int64_t length = length_of(page, hit);
        if (!all && length)
            length -= page->least[hit] - 1;
        longest = length > longest ? length : longest;
        index->starts[hit] = total;
        total += length;
    }
    index->starts[count] = total;
    while (1LL << bits < 2 * total)
        bits++;
    while (longest >> index->plane_count)
        index->plane_count++;
    index->shift = 32 - bits;
    index->most = (1u << bits) - 1;
    index->words = (count + 63) / 64;
    index->slots = part_of(index, 1LL << bits, sizeof *index->slots);
    index->holder = part_of(index, total, sizeof *index->holder);
    index->before = part_of(index, total, sizeof *index->before);
    index->masks = part_of(index, total, sizeof *index->masks);
    index->planes = part_of(index, index->plane_count * index->words, sizeof *index->planes);
    index->shared = part_of(index, count, sizeof *index->shared);
    if (all && page->weights)
        index->weighed = part_of(index, count, sizeof *index->weighed);
    index->found = part_of(index, longest, sizeof *index->found);
    index->order = part_of(index, longest, sizeof *index->order);
    index->many = part_of(index, longest, sizeof *index->many);
    if (!index->failed)
        memset(index->slots, 0xFF, sizeof *index->slots << bits);
    return !index->failed;
}

static uint64_t *mask_of(const Index *index, const Slot *slot)
{
    return index->masks + (NOBODY - 1 - slot->last) * index->words;
}

static void chain_to_mask(Index *index, Slot *slot)
{
    int32_t place = slot->last;
    slot->last = (int32_t)(NOBODY - 1 - index->masks_used++);
    uint64_t *mask = mask_of(index, slot);
    memset(mask, 0, (size_t)index->words * sizeof(uint64_t));
    for (; place >= 0; place = index->before[place])
        mask[index->holder[place] / 64] |= (uint64_t)1 << index->holder[place] % 64;
}

/* Find the slots of a hit's values, taking a free one for a value that nobody had. 0: nobody holds any of them. */
static int find_slots(Index *index, int64_t hit)
{
    const int32_t *values = values_of(index->page, hit);
    int64_t length = indexed(index, hit), others = 0;
    int held = 0;
    for (int64_t i = 0; i < length; i++) { /* without a branch: most slots are free, but which cannot be foreseen */
        Slot *slot = index->slots + (((uint32_t)values[i] * 0x9E3779B1u) >> index->shift);
        int32_t there = slot->value;
        slot->value = there < 0 ? values[i] : there;
        index->found[i] = slot;
        index->order[others] = (int32_t)i;
        others += there >= 0;
    }
    for (int64_t j = 0; j < others; j++) {
        int32_t value = values[index->order[j]];
        Slot *slot = index->found[index->order[j]];
        while (slot->value != value && slot->value >= 0)
            slot = slot == index->slots + index->most ? index->slots : slot + 1;
        slot->value = value;
        index->found[index->order[j]] = slot;
        held |= slot->last != NOBODY;
    }
    return held;
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

/* Add `count` masks to `shared`: two at a time, as a full adder takes three bits and hands on one. */
static void add_masks(Index *index, int64_t count)
{
    int64_t words = index->words, planes = index->plane_count;
    memset(index->planes, 0, (size_t)(planes * words) * sizeof(uint64_t));
    for (int64_t i = 0; i < count; i += 2)
        for (int64_t word = 0; word < words; word++) {
            uint64_t *plane = index->planes + word;
            uint64_t a = index->many[i][word], b = i + 1 < count ? index->many[i + 1][word] : 0, c = *plane;
            *plane = a ^ b ^ c;
            add_bits(plane + words, (a & b) | ((a ^ b) & c), words, planes - 1);
        }
    for (int64_t hit = 0; hit < index->page->count; hit++)
        for (int64_t p = 0; p < planes; p++)
            index->shared[hit] += (uint32_t)(index->planes[p * words + hit / 64] >> hit % 64 & 1) << p;
}

static void weigh_mask(Index *index, const uint64_t *mask, uint64_t weight)
{
    for (int64_t hit = 0; hit < index->page->count; hit++)
        index->weighed[hit] += mask[hit / 64] >> hit % 64 & 1 ? weight : 0;
}

/* Count into `shared` how many of its values a hit has in common with each of those inserted. 0: with nobody any. */
static int count_shared(Index *index, int64_t hit)
{
    int64_t length = indexed(index, hit), fresh = 0, held = length, many = 0;
    index->sorted = find_slots(index, hit);
    if (!index->sorted)
        return 0;
    for (int64_t i = 0; i < length; i++) { /* fresh values to the front, those that somebody holds to the back */
        int is_fresh = index->found[i]->last == NOBODY;
        index->order[fresh] = index->order[held - 1] = (int32_t)i;
        fresh += is_fresh;
        held -= !is_fresh;
    }
    memset(index->shared, 0, (size_t)index->page->count * sizeof *index->shared);
    if (index->weighed)
        memset(index->weighed, 0, (size_t)index->page->count * sizeof *index->weighed);
    for (int64_t i = fresh; i < length; i++) {
        Slot *slot = index->found[index->order[i]];
        uint64_t weight = index->weighed ? index->page->weights[index->page->offsets[hit] + index->order[i]] : 0;
        if (slot->last < NOBODY) {
            index->many[many++] = mask_of(index, slot);
            if (weight)
                weigh_mask(index, mask_of(index, slot), weight);
            continue;
        }
        int64_t holding = 0;
        for (int32_t place = slot->last; place >= 0; place = index->before[place], holding++) {
            index->shared[index->holder[place]]++;
            if (weight)
                index->weighed[index->holder[place]] += weight;
        }
        if (holding > index->words + 8)
            chain_to_mask(index, slot);
    }
    if (many)
        add_masks(index, many);
    return 1;
}

/* Let later hits meet the one just counted. */
static void insert(Index *index, int64_t hit)
{
    int32_t start = (int32_t)index->starts[hit];
    for (int64_t j = 0; j < indexed(index, hit); j++) {
        int32_t i = index->sorted ? index->order[j] : (int32_t)j;
        Slot *slot = index->found[i];
        if (slot->last < NOBODY)
            mask_of(index, slot)[hit / 64] |= (uint64_t)1 << hit % 64;
        else {
            index->holder[start + i] = (int32_t)hit;
            index->before[start + i] = slot->last;
            slot->last = start + i;
        }
    }
}

/* ---------------------------------------------------------------- leaders and pairs
 *
 * Two hits at least `bar` alike have a value in common already among the smallest of each (all but as many as they must
 * share, and one more), so only those are looked up, and hits that meet there are compared value by value. When that
 * would be more than a comparison for each hit, the page is one of many that share something: from then on all values
 * are looked up, which counts what is shared with all hits at once.
 */

typedef struct {
    const Page *page;
    double bar;
    Index smallest, all;
    Index *index;      /* the one in use */
    int64_t compared;
} Search;

static int start_search(Search *search, Page *page, double bar)
{
    search->page = page;
    search->bar = bar - ROUNDING;
    search->index = &search->smallest;
    search->compared = 0;
    search->smallest.part_count = search->all.part_count = 0;
    page->least = malloc((size_t)(page->count + 1) * sizeof(int64_t));
    if (!page->least)
        return 0;
    for (int64_t hit = 0; hit < page->count; hit++) {
        /* A pair shares at least `bar` times the values of either of the two, whichever of them ends first. */
        double least = (search->bar - ROUNDING) * (double)length_of(page, hit);
        page->least[hit] = least <= 1 ? 1 : (int64_t)least + ((double)(int64_t)least < least);
    }
    return make_index(&search->smallest, page, 0);
}

static void end_search(Search *search)
{
    free_index(&search->smallest);
    free_index(&search->all);
    free(search->page->least);
}

/* Count what a hit has in common with those inserted, the hits before it (leaders: those of them that are leaders).
   1: with some, 0: with none, -1: no memory. */
static int meet(Search *search, int64_t hit, const int64_t *leaders)
{
    if (!count_shared(search->index, hit))
        return 0;
    if (search->index == &search->all)
        return 1;
    for (int64_t other = 0; other < hit; other++)
        search->compared += search->index->shared[other] > 0;
    if (search->compared <= search->page->count / 2)
        return 1;
    if (!make_index(&search->all, search->page, 1))
        return -1;
    search->index = &search->all;
    for (int64_t other = 0; other < hit; other++)
        if (!leaders || leaders[other] == other) {
            count_shared(search->index, other);
            insert(search->index, other);
        }
    return count_shared(search->index, hit);
}

typedef struct {
    int32_t first, second; /* hits, first < second */
    int32_t shared;        /* values that both hold */
    int32_t left, right;   /* values of each up to the smaller limit of the two */
    uint64_t weight;       /* of the shared values together */
} Pair;

/* Whether the hit counted last and an earlier one resemble each other by the bar, in the KMV form (see similarity.py). */
static int is_similar(const Search *search, int64_t other, int64_t hit, Pair *pair)
{
    const Page *page = search->page;
    int64_t shared = search->index->shared[other];
    uint64_t weight = 0;
    if (!shared)
        return 0;
    if (search->index == &search->smallest)
        shared = count_common(page, other, hit, &weight);
    else if (search->index->weighed)
        weight = search->index->weighed[other];
    if (shared < page->least[hit] && shared < page->least[other])
        return 0;
    int32_t a = limit_of(page, other), b = limit_of(page, hit), limit = a < b ? a : b;
    int64_t left = rank_in(values_of(page, other), length_of(page, other), limit);
    int64_t right = rank_in(values_of(page, hit), length_of(page, hit), limit);
    *pair = (Pair){(int32_t)other, (int32_t)hit, (int32_t)shared, (int32_t)left, (int32_t)right, weight};
    return (double)shared / (double)(left + right - shared) >= search->bar;
}

static int find_leaders(Page *page, double bar, int64_t *leaders)
{
    Search search;
    Pair pair;
    int met = start_search(&search, page, bar) ? 0 : -1;
    for (int64_t hit = 0; hit < page->count && met >= 0; hit++) {
        leaders[hit] = hit;
        if ((met = meet(&search, hit, leaders)) > 0)
            for (int64_t other = 0; other < hit && leaders[hit] == hit; other++)
                if (is_similar(&search, other, hit, &pair))
                    leaders[hit] = other;
        if (met >= 0 && leaders[hit] == hit)
            insert(search.index, hit);
    }
    end_search(&search);
    return met >= 0;
}

/* All similar pairs, ordered by the second, then the first. Returns how many, -1: no memory. */
static int64_t find_pairs(Page *page, double bar, Pair **pairs)
{
    Search search;
    int64_t found = 0, room = 0;
    int met = start_search(&search, page, bar) ? 0 : -1;
    for (int64_t hit = 0; hit < page->count && met >= 0; hit++) {
        if ((met = meet(&search, hit, NULL)) > 0) {
            if (found + hit > room) {
                room = 2 * (found + hit);
                Pair *larger = realloc(*pairs, (size_t)room * sizeof(Pair));
                if (!larger) {
                    met = -1;
                    break;
                }
                *pairs = larger;
            }
            for (int64_t other = 0; other < hit; other++)
                found += is_similar(&search, other, hit, *pairs + found);
        }
        if (met >= 0)
            insert(search.index, hit);
    }
    end_search(&search);
    return met < 0 ? -1 : found;
}

/* ---------------------------------------------------------------- sketches
 *
 * See shingles.py for the formula. The polynomial over a window of tokens (or characters) rolls: without the oldest,
 * over the base, with the newest at the top, which is exact modulo 2**64.
 */

static const uint64_t P = 0x9E3779B97F4A7C15u, Q = 0xC2B2AE3D27D4EB4Fu, R = 0xD6E8FEB86659FD93u;
static const uint64_t A = 0xFF51AFD7ED558CCDu, B = 0xC4CEB9FE1A85EC53u;

enum { SPACE = 32, FEW = 48 };

typedef struct {
    int64_t k;
    int32_t *values, *spare; /* `room` each */
    int64_t count, room;
    int32_t limit; /* above it a value is no longer among the k smallest */
} Smallest;

/* Bring the k smallest distinct of the values to the front, ascending. */
static void settle(Smallest *smallest)
{
    int32_t *values = smallest->values, *spare = smallest->spare;
    int64_t count = smallest->count, kept = 0;
    if (count <= FEW)
        for (int64_t i = 1; i < count; i++) {
            int32_t value = values[i];
            int64_t at = i;
            for (; at && values[at - 1] > value; at--)
                values[at] = values[at - 1];
            values[at] = value;
        }
    else
        for (int shift = 0; shift < 32; shift += 8) { /* four rounds: back in `values` at the end */
            int64_t starts[257] = {0};
            for (int64_t i = 0; i < count; i++)
                starts[(values[i] >> shift & 255) + 1]++;
            for (int i = 0; i < 256; i++)
                starts[i + 1] += starts[i];
            for (int64_t i = 0; i < count; i++)
                spare[starts[values[i] >> shift & 255]++] = values[i];
            int32_t *swapped = values;
            values = spare, spare = swapped;
        }
    for (int64_t i = 0; i < count && kept < smallest->k; i++)
        if (!kept || values[i] != values[kept - 1])
            values[kept++] = values[i];
    smallest->count = kept;
    if (kept == smallest->k)
        smallest->limit = values[kept - 1] - 1;
}

typedef struct {
    Smallest *smallest;
    uint64_t *ring; /* the last `size` terms */
    int64_t size, at, seen;
    uint64_t state, base, inverse, power, seed; /* power: of the base, for the next term while the window fills */
} Window;

static void emit(Window *window)
{
    Smallest *smallest = window->smallest;
    uint64_t state = window->state + window->seed;
    state ^= state >> 32;
    state *= B;
    int32_t value = (int32_t)(state >> 33);
    if (value > smallest->limit)
        return;
    smallest->values[smallest->count++] = value;
    if (smallest->count == smallest->room)
        settle(smallest);
}

static void push(Window *window, uint64_t term)
{
    if (window->seen < window->size) {
        window->state += term * window->power;
        if (++window->seen < window->size)
            window->power *= window->base;
    } else
        window->state = (window->state - window->ring[window->at]) * window->inverse + term * window->power;
    window->ring[window->at] = term;
    if (++window->at == window->size)
        window->at = 0;
    if (window->seen == window->size)
        emit(window);
}

static uint64_t inverse_of(uint64_t odd)
{
    uint64_t inverse = odd; /* right in 3 bits, and every step doubles them */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    return inverse;
}

typedef struct {
    int words;     /* else characters */
    int64_t size, k;
    uint64_t seed;
    uint64_t *ring;
    int32_t *values;
} Recipe;

static void start_text(Window *window, Smallest *smallest, const Recipe *recipe)
{
    int64_t room = 4 * recipe->k + 64;
    *smallest = (Smallest){recipe->k, recipe->values, recipe->values + room, 0, room, INT32_MAX};
    *window = (Window){.smallest = smallest, .ring = recipe->ring, .size = recipe->size, .power = 1};
    window->base = recipe->words ? Q : P;
    window->inverse = inverse_of(window->base);
    window->seed = recipe->seed * R * A;
}

static int64_t end_text(Window *window)
{
    if (window->seen && window->seen < window->size)
        emit(window);
    settle(window->smallest);
    return window->smallest->count;
}

/* Sketch one text into recipe->values; returns how many values it has. Of a text that is all ASCII `narrow` has the
   bytes and `table` what becomes of each; else `wide` has clean code points. 0 separates tokens. */
static inline int64_t sketch_points(const uint8_t *narrow, const uint8_t *table, const uint32_t *wide, int64_t length,
                                    const Recipe *recipe)
{
    Smallest smallest;
    Window window;
    int64_t i = 0;
    start_text(&window, &smallest, recipe);
    while (i < length) {
        uint64_t point = narrow ? table[narrow[i]] : wide[i], token = 0, power = A;
        if (!point) {
            i++;
            continue;
        }
        if (!recipe->words && window.seen)
            push(&window, SPACE * A);
        do {
            if (recipe->words) {
                token += point * power;
                power *= P;
            } else
                push(&window, point * A);
        } while (++i < length && (point = narrow ? table[narrow[i]] : wide[i]));
        if (recipe->words)
            push(&window, token);
    }
    return end_text(&window);
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

static void free_page(Page *page)
{
    free(page->values);
    free(page->offsets);
    free(page->weights);
}

static PyObject *bytes_of(const void *array, int64_t size) { return PyBytes_FromStringAndSize(array, (Py_ssize_t)size); }

PyDoc_STRVAR(rows_doc, "rows(sketches, offsets, k) -> (values, offsets) as bytes of int32 and int64, or None.");

static PyObject *rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *result = NULL;
    long long k;
    Page page = {0};
    if (!PyArg_ParseTuple(arguments, "OOL", &sketches, &offsets, &k))
        return NULL;
    if (copy_page(&page, sketches, offsets, k))
        result = Py_BuildValue("NN", bytes_of(page.values, page.offsets[page.count] * (int64_t)sizeof(int32_t)),
                               bytes_of(page.offsets, (page.count + 1) * (int64_t)sizeof(int64_t)));
    else
        result = Py_NewRef(Py_None);
    free_page(&page);
    return result;
}

PyDoc_STRVAR(leaders_doc, "leaders(sketches, offsets, k, min_similarity) -> bytes of int64, or None.");

static PyObject *leaders(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *result = NULL;
    long long k;
    double bar;
    Page page = {0};
    int fine = 0;
    if (!PyArg_ParseTuple(arguments, "OOLd", &sketches, &offsets, &k, &bar))
        return NULL;
    if (bar >= 0 && bar <= 1 && copy_page(&page, sketches, offsets, k) && (result = bytes_of(NULL, page.count * (int64_t)sizeof(int64_t)))) {
        int64_t *found = (int64_t *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        fine = find_leaders(&page, bar, found);
        Py_END_ALLOW_THREADS
    }
    free_page(&page);
    if (fine || PyErr_Occurred())
        return result;
    Py_XDECREF(result);
    return Py_NewRef(Py_None);
}

static int copy_weights(Page *page, PyObject *weights)
{
    Py_buffer view;
    if (weights == Py_None)
        return 1;
    if (!get_row(weights, sizeof(uint64_t), &view))
        return 0;
    int fine = view.len / (int64_t)sizeof(uint64_t) == page->offsets[page->count];
    if (fine && (page->weights = malloc((size_t)view.len + 1)))
        memcpy(page->weights, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return fine && page->weights;
}

PyDoc_STRVAR(pairs_doc, "pairs(sketches, offsets, k, min_similarity, weights) -> (first, second, shared, left, right, "
                        "weight) as bytes of int64, ordered by the first, then the second; or None.");

static PyObject *pairs(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    enum { COLUMNS = 6 };
    PyObject *sketches, *offsets, *weights, *result = NULL;
    long long k;
    double bar;
    Page page = {0};
    Pair *found = NULL;
    int64_t count = -1;
    if (!PyArg_ParseTuple(arguments, "OOLdO", &sketches, &offsets, &k, &bar, &weights))
        return NULL;
    if (bar >= 0 && bar <= 1 && copy_page(&page, sketches, offsets, k) && copy_weights(&page, weights)) {
        Py_BEGIN_ALLOW_THREADS
        count = find_pairs(&page, bar, &found);
        Py_END_ALLOW_THREADS
    }
    if (count >= 0 && (result = PyTuple_New(COLUMNS))) {
        int64_t *column[COLUMNS], *next = page.offsets; /* of no more use, and one longer than the hits */
        for (int i = 0; i < COLUMNS; i++) {
            PyObject *bytes = bytes_of(NULL, count * (int64_t)sizeof(int64_t));
            if (!bytes) {
                Py_DECREF(result);
                result = NULL;
                goto end;
            }
            column[i] = (int64_t *)PyBytes_AsString(bytes);
            PyTuple_SetItem(result, i, bytes);
        }
        memset(next, 0, (size_t)(page.count + 1) * sizeof(int64_t));
        for (int64_t i = 0; i < count; i++)
            next[found[i].first + 1]++;
        for (int64_t hit = 0; hit < page.count; hit++)
            next[hit + 1] += next[hit];
        for (int64_t i = 0; i < count; i++) {
            int64_t at = next[found[i].first]++;
            column[0][at] = found[i].first, column[1][at] = found[i].second, column[2][at] = found[i].shared;
            column[3][at] = found[i].left, column[4][at] = found[i].right, column[5][at] = (int64_t)found[i].weight;
        }
    }
end:
    free(found);
    free_page(&page);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* What is sketched: texts that are all ASCII with a table (see sketch_points), or clean code points. */
typedef struct {
    int64_t count;
    const uint8_t **narrow;
    const uint8_t *table;
    uint32_t *wide;
    int64_t *offsets; /* text i has wide[offsets[i]] to wide[offsets[i + 1] - 2] */
    int64_t *lengths; /* of narrow texts */
} Texts;

/* Sketch all texts, one after the other into `values`, which has room. */
static void sketch_all(const Texts *texts, const Recipe *recipe, int32_t *values, int64_t *offsets)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < texts->count; i++) {
        int64_t count = texts->wide ? sketch_points(NULL, NULL, texts->wide + texts->offsets[i],
                                                    texts->offsets[i + 1] - texts->offsets[i] - 1, recipe)
                                    : sketch_points(texts->narrow[i], texts->table, NULL, texts->lengths[i], recipe);
        memcpy(values + offsets[i], recipe->values, (size_t)count * sizeof(int32_t));
        offsets[i + 1] = offsets[i] + count;
    }
}

/* The sketches as (values, offsets), or None without memory. length: of all texts together. */
static PyObject *sketches_of(const Texts *texts, Recipe *recipe, int64_t length)
{
    PyObject *result = NULL;
    int64_t most = texts->count > length / recipe->k ? length : texts->count * recipe->k;
    recipe->ring = malloc((size_t)recipe->size * sizeof(uint64_t));
    recipe->values = malloc((size_t)(2 * (4 * recipe->k + 64)) * sizeof(int32_t));
    int32_t *values = malloc((size_t)most * sizeof(int32_t) + 1);
    int64_t *offsets = malloc((size_t)(texts->count + 1) * sizeof(int64_t));
    if (recipe->ring && recipe->values && values && offsets) {
        Py_BEGIN_ALLOW_THREADS
        sketch_all(texts, recipe, values, offsets);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("NN", bytes_of(values, offsets[texts->count] * (int64_t)sizeof(int32_t)),
                               bytes_of(offsets, (texts->count + 1) * (int64_t)sizeof(int64_t)));
    }
    free(recipe->ring);
    free(recipe->values);
    free(values);
    free(offsets);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

static int is_sound(const Recipe *recipe)
{
    return recipe->size >= 1 && recipe->k >= 1 && recipe->size <= 1 << 20 && recipe->k <= 1 << 20;
}

PyDoc_STRVAR(sketch_texts_doc, "sketch_texts(texts, table, words, size, seed, k) -> (values, offsets) as bytes of int32 and "
                               "int64, or None for texts that are not ASCII. table: what becomes of each of 256 bytes.");

static PyObject *sketch_texts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sequence, *result = NULL;
    const char *table;
    Py_ssize_t table_size;
    long long size, k;
    unsigned long long seed;
    Recipe recipe = {0};
    Texts texts = {0};
    int64_t total = 0;
    if (!PyArg_ParseTuple(arguments, "Oy#pLKL", &sequence, &table, &table_size, &recipe.words, &size, &seed, &k))
        return NULL;
    recipe.size = size, recipe.seed = seed, recipe.k = k;
    PyObject *items = PySequence_Tuple(sequence); /* keeps the texts alive while we read them */
    if (!items)
        return NULL;
    texts.count = PyTuple_Size(items);
    texts.table = (const uint8_t *)table;
    texts.narrow = malloc((size_t)texts.count * sizeof *texts.narrow + 1);
    texts.lengths = malloc((size_t)texts.count * sizeof *texts.lengths + 1);
    int fine = texts.narrow && texts.lengths && table_size == 256 && is_sound(&recipe);
    for (int64_t i = 0; fine && i < texts.count; i++) {
        PyObject *text = PyTuple_GetItem(items, i);
        Py_ssize_t length = 0;
        const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
        fine = bytes && length == PyUnicode_GetLength(text);
        texts.narrow[i] = (const uint8_t *)bytes;
        texts.lengths[i] = length;
        total += length;
    }
    PyErr_Clear();
    result = fine ? sketches_of(&texts, &recipe, total) : Py_NewRef(Py_None);
    free(texts.narrow);
    free(texts.lengths);
    Py_DECREF(items);
    return result;
}

PyDoc_STRVAR(sketch_points_doc, "sketch_points(points, offsets, words, size, seed, k) -> as sketch_texts, of clean code points "
                                "(uint32, see text.Clean).");

static PyObject *sketch_points_of(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *points, *offsets;
    long long size, k;
    unsigned long long seed;
    Recipe recipe = {0};
    Texts texts = {0};
    Py_buffer from = {0}, at = {0};
    if (!PyArg_ParseTuple(arguments, "OOpLKL", &points, &offsets, &recipe.words, &size, &seed, &k))
        return NULL;
    recipe.size = size, recipe.seed = seed, recipe.k = k;
    int has_points = get_row(points, sizeof(uint32_t), &from), has_offsets = get_row(offsets, sizeof(int64_t), &at);
    int64_t total = from.len / (int64_t)sizeof(uint32_t);
    int fine = has_points && has_offsets && at.len > 0 && is_sound(&recipe);
    if (fine) { /* copies, because others could write to the arrays while we read */
        texts.count = at.len / (int64_t)sizeof(int64_t) - 1;
        texts.wide = malloc((size_t)from.len + 1);
        texts.offsets = malloc((size_t)at.len);
        fine = texts.wide && texts.offsets;
    }
    if (fine) {
        memcpy(texts.wide, from.buf, (size_t)from.len);
        memcpy(texts.offsets, at.buf, (size_t)at.len);
        fine = texts.offsets[0] >= 0 && texts.offsets[texts.count] <= total;
        for (int64_t i = 0; i < texts.count; i++)
            fine &= texts.offsets[i] < texts.offsets[i + 1];
    }
    if (has_points)
        PyBuffer_Release(&from);
    if (has_offsets)
        PyBuffer_Release(&at);
    PyObject *result = fine ? sketches_of(&texts, &recipe, total) : Py_NewRef(Py_None);
    free(texts.wide);
    free(texts.offsets);
    return result;
}

static PyMethodDef methods[] = {
    {"rows", rows, METH_VARARGS, rows_doc},
    {"leaders", leaders, METH_VARARGS, leaders_doc},
    {"pairs", pairs, METH_VARARGS, pairs_doc},
    {"sketch_texts", sketch_texts, METH_VARARGS, sketch_texts_doc},
    {"sketch_points", sketch_points_of, METH_VARARGS, sketch_points_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core: see _native.c.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&definition); }
