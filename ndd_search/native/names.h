/* Compares names word by word: the same as items/compare_names.py does with rapidfuzz and numpy, up to rounding. */
#pragma once
#include "meetings.h"

static const double SYNONYM = 0.97, INITIAL = 0.85, LEAST_ALIKE = 0.8; /* as in items/compare_names.py */
static const double DIFFERENT = 0.99, WHOLE = 0.85, AS_ONE = 0.97;

enum { IS_NUMBER = 1, HAS_SYNONYMS = 2 };

typedef struct {
    const int32_t *letters; /* code points of all texts, one after the other */
    const int64_t *ends;    /* text i is letters[ends[i]] .. letters[ends[i + 1] - 1] */
} Texts;

typedef struct {
    Texts words, joined;
    const int64_t *kinds;                 /* of each word: IS_NUMBER, HAS_SYNONYMS */
    const double *weights, *shares;       /* of each word */
    const int64_t *items, *offsets;       /* the words of each name */
    const int64_t *digits;                /* of each name: equal for equal digits */
    const int64_t *synonyms, *synonyms_end; /* ascending low * count + high of words that are synonyms */
    int64_t count, names;                 /* of words and names */
    uint64_t *bits;                       /* of each word: see letter_bits */
    double *best;                         /* of each word of the second name: the similarity to the nearest of the first */
    uint8_t *used;                        /* letters that match; room for two words */
    int64_t *reach;                       /* see is_within */
} Names;

static int64_t size_of(const Texts *texts, int64_t text)
{
    return texts->ends[text + 1] - texts->ends[text];
}

/* A bit for each letter, by its code modulo 32, and another for its second occurrence; all bits after that. So the bits
 * that two words have in common are at least as many as the letters, except where both words have all bits. */
static uint64_t letter_bits(const int32_t *word, int64_t length)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < length; i++) {
        uint64_t bit = UINT64_C(1) << (word[i] & 31);
        if (bits & bit) {
            bit <<= 32;
            if (bits & bit)
                return UINT64_MAX;
        }
        bits |= bit;
    }
    return bits;
}

/* Winkler's similarity of words that differ, in the order of operations of rapidfuzz. */
static double jaro_winkler(const int32_t *a, int64_t n, const int32_t *b, int64_t m, uint8_t *used)
{
    int64_t matches = 0, swapped = 0, prefix = 0, bound = (n > m ? n : m) / 2;
    uint8_t *of_a = used, *of_b = used + n;
    bound -= bound > 0;
    memset(used, 0, (size_t)(n + m));
    for (int64_t j = 0; j < m; j++) {
        int64_t last = j + bound < n - 1 ? j + bound : n - 1;
        for (int64_t i = j > bound ? j - bound : 0; i <= last; i++)
            if (!of_a[i] && a[i] == b[j]) {
                of_a[i] = of_b[j] = 1;
                matches++;
                break;
            }
    }
    if (!matches)
        return 0;
    for (int64_t i = 0, j = 0; j < m; j++)
        if (of_b[j]) {
            while (!of_a[i])
                i++;
            swapped += a[i++] != b[j];
        }
    double similarity = (double)matches / (double)n;
    similarity += (double)matches / (double)m;
    similarity += ((double)matches - (double)(swapped / 2)) / (double)matches;
    similarity /= 3.0;
    while (prefix < n && prefix < m && prefix < 4 && a[prefix] == b[prefix])
        prefix++;
    return similarity > 0.7 ? similarity + (double)prefix * 0.1 * (1.0 - similarity) : similarity;
}

/* Whether one letter is added, left out or another one, or two neighbours are swapped. The words differ. */
static int is_one_slip(const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    int64_t start = 0, end = 0;
    while (start < n && start < m && a[start] == b[start])
        start++;
    while (end < n - start && end < m - start && a[n - 1 - end] == b[m - 1 - end])
        end++;
    n -= start + end;
    m -= start + end;
    return (n <= 1 && m <= 1)
           || (n == 2 && m == 2 && a[start] == b[start + 1] && a[start + 1] == b[start]);
}

static int compare_keys(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static int are_synonyms(const Names *names, int64_t low, int64_t high)
{
    int64_t key = low * names->count + high, pairs = names->synonyms_end - names->synonyms;
    return bsearch(&key, names->synonyms, (size_t)pairs, sizeof key, compare_keys) != NULL;
}

/* The similarity of two words, 0 below LEAST_ALIKE. */
static double words_alike(const Names *names, int64_t one, int64_t other)
{
    if (one == other)
        return 1.0;
    int64_t low = one < other ? one : other, high = one < other ? other : one;
    const int32_t *a = names->words.letters + names->words.ends[low], *b = names->words.letters + names->words.ends[high];
    int64_t n = size_of(&names->words, low), m = size_of(&names->words, high);
    int64_t kinds = names->kinds[low] | names->kinds[high];
    if (kinds & HAS_SYNONYMS && are_synonyms(names, low, high))
        return SYNONYM;
    if (kinds & IS_NUMBER)
        return n > 2 && m > 2 && n - m < 2 && m - n < 2 && is_one_slip(a, n, b, m) ? LEAST_ALIKE : 0.0;
    if (n == 1 || m == 1)
        return a[0] == b[0] ? INITIAL : 0.0;
    /* Jaro's similarity is at most (matching / n + matching / m + 1) / 3, and at most as many letters match as both words
     * contain, which their bits bound. So most unlike words are ruled out without a look at their letters. Where the
     * first letters are equal, less is enough: equal beginnings add up to 0.4 of what is missing to 1 (Winkler). */
    uint64_t common = names->bits[low] & names->bits[high];
    double matching = common == UINT64_MAX ? (double)(n < m ? n : m) : ones_in(common), lengths = (double)(n * m);
    double least = (a[0] == b[0] ? (LEAST_ALIKE - 0.4) / 0.6 : LEAST_ALIKE) - 1e-6;
    if (matching * (double)(n + m) + lengths < 3 * least * lengths)
        return 0.0;
    double similarity = jaro_winkler(a, n, b, m, names->used);
    return similarity < LEAST_ALIKE - 1e-9 ? 0.0 : similarity > DIFFERENT ? DIFFERENT : similarity;
}

/* Whether at most `most` letters have to be added and left out; *least is how many. (Myers 1986) */
static int is_within(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int64_t most, int64_t *reach, int64_t *least)
{
    int64_t *at = reach + most + 1; /* at[d]: how far a matches on the diagonal d */
    at[1] = 0;
    for (*least = 0; *least <= most; ++*least)
        for (int64_t d = -*least; d <= *least; d += 2) {
            int64_t i = d == -*least || (d != *least && at[d - 1] < at[d + 1]) ? at[d + 1] : at[d - 1] + 1, j = i - d;
            while (i < n && j < m && a[i] == b[j])
                i++, j++;
            at[d] = i;
            if (i >= n && j >= m)
                return 1;
        }
    return 0;
}

/* The similarity of two names as one word, which is at least WHOLE, or 0. */
static double alike_as_one(const Names *names, int64_t first, int64_t second)
{
    int64_t n = size_of(&names->joined, first), m = size_of(&names->joined, second), least;
    if (names->digits[first] != names->digits[second])
        return 0.0;
    int64_t most = (int64_t)((1 - WHOLE) * (double)(n + m) + 1e-9);
    const int32_t *letters = names->joined.letters;
    if (n - m > most || m - n > most)
        return 0.0;
    const int32_t *a = letters + names->joined.ends[first], *b = letters + names->joined.ends[second];
    return is_within(a, n, b, m, most, names->reach, &least) ? (1 - (double)least / (double)(n + m)) * AS_ONE : 0.0;
}

/* Compare two different names; *share is that of the rarest words that meet. */
static double names_alike(const Names *names, int64_t first, int64_t second, double *share)
{
    const int64_t *left = names->items + names->offsets[first], *right = names->items + names->offsets[second];
    int64_t n = names->offsets[first + 1] - names->offsets[first], m = names->offsets[second + 1] - names->offsets[second];
    double met = 0, total = 0, similarity = 0;
    *share = 1.0;
    if (n == 1 && m == 1) {
        similarity = words_alike(names, *left, *right);
        if (similarity >= INITIAL)
            *share = names->shares[*left] > names->shares[*right] ? names->shares[*left] : names->shares[*right];
        return similarity;
    }
    for (int64_t j = 0; j < m; j++)
        names->best[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        double best = 0, weight = names->weights[left[i]];
        for (int64_t j = 0; j < m; j++) {
            double alike = words_alike(names, left[i], right[j]);
            best = alike > best ? alike : best;
            names->best[j] = alike > names->best[j] ? alike : names->best[j];
            if (alike >= INITIAL) {
                double one = names->shares[left[i]], other = names->shares[right[j]];
                double common = one > other ? one : other;
                *share = common < *share ? common : *share;
            }
        }
        met += best * weight;
        total += weight;
    }
    for (int64_t j = 0; j < m; j++) {
        met += names->best[j] * names->weights[right[j]];
        total += names->weights[right[j]];
    }
    similarity = met / (total > 1e-12 ? total : 1e-12);
    if (similarity < AS_ONE) {
        double as_one = alike_as_one(names, first, second);
        similarity = as_one > similarity ? as_one : similarity;
    }
    return similarity > DIFFERENT ? DIFFERENT : similarity;
}

static int are_ends(const Py_buffer *ends, int64_t total)
{
    const int64_t *at = ends->buf;
    int64_t count = ends->len / (int64_t)sizeof(int64_t) - 1;
    int fine = count >= 0 && at[0] == 0 && at[count < 0 ? 0 : count] == total;
    for (int64_t i = 0; fine && i < count; i++)
        fine = at[i] <= at[i + 1];
    return fine;
}

static int64_t longest_of(const int64_t *ends, int64_t count)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = ends[i + 1] - ends[i] > longest ? ends[i + 1] - ends[i] : longest;
    return longest;
}

enum { OF_LETTERS, OF_ENDS, OF_KINDS, OF_WEIGHTS, OF_SHARES, OF_ITEMS, OF_OFFSETS, OF_JOINED, OF_JOINED_ENDS, OF_DIGITS, OF_SYNONYMS, NAME_ROWS };

/* Allocate what a comparison writes; each thread has its own. 0: no memory. */
static int make_notes(Names *names)
{
    names->best = malloc(((size_t)longest_of(names->offsets, names->names) + 1) * sizeof(double));
    names->used = malloc(2 * (size_t)longest_of(names->words.ends, names->count) + 1);
    names->reach = malloc((2 * (size_t)longest_of(names->joined.ends, names->names) + 4) * sizeof(int64_t));
    return names->best && names->used && names->reach;
}

static void free_notes(Names *names)
{
    free(names->best);
    free(names->used);
    free(names->reach);
}

static int read_names(const Py_buffer *views, Names *names)
{
    const Py_ssize_t wide = sizeof(int64_t);
    names->count = length_in(&views[OF_ENDS], wide) - 1;
    names->names = length_in(&views[OF_OFFSETS], wide) - 1;
    if (!are_ends(&views[OF_ENDS], length_in(&views[OF_LETTERS], 4)) || !are_ends(&views[OF_OFFSETS], length_in(&views[OF_ITEMS], wide))
        || !are_ends(&views[OF_JOINED_ENDS], length_in(&views[OF_JOINED], 4)) || names->count >= INT32_MAX
        || length_in(&views[OF_KINDS], wide) != names->count || length_in(&views[OF_WEIGHTS], wide) != names->count
        || length_in(&views[OF_SHARES], wide) != names->count || length_in(&views[OF_JOINED_ENDS], wide) != names->names + 1
        || length_in(&views[OF_DIGITS], wide) != names->names
        || !all_within(views[OF_ITEMS].buf, length_in(&views[OF_ITEMS], wide), names->count))
        return 0;
    names->words = (Texts){views[OF_LETTERS].buf, views[OF_ENDS].buf};
    names->joined = (Texts){views[OF_JOINED].buf, views[OF_JOINED_ENDS].buf};
    names->kinds = views[OF_KINDS].buf;
    names->weights = views[OF_WEIGHTS].buf;
    names->shares = views[OF_SHARES].buf;
    names->items = views[OF_ITEMS].buf;
    names->offsets = views[OF_OFFSETS].buf;
    names->digits = views[OF_DIGITS].buf;
    names->synonyms = views[OF_SYNONYMS].buf;
    names->synonyms_end = names->synonyms + length_in(&views[OF_SYNONYMS], wide);
    for (int64_t word = 0; word < names->count; word++)
        if (size_of(&names->words, word) == 0)
            return 0;
    names->bits = malloc(((size_t)names->count + 1) * sizeof(uint64_t));
    for (int64_t word = 0; names->bits && word < names->count; word++)
        names->bits[word] = letter_bits(names->words.letters + names->words.ends[word], size_of(&names->words, word));
    return names->bits && make_notes(names);
}

static void free_names(Names *names)
{
    free(names->bits);
    free_notes(names);
}
