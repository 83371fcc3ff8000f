/* The own content filter: documents that a frame alone cannot make near-duplicates of one another.
 *
 * A document of a collection has hot values, which many others hold (the frame of a site, phrases), and values of its
 * own. Most hot values are in the frequency table; some of a frame are too rare in its sample. Whether the rule refuses a
 * pair depends on both documents. A profile lets each of them be checked by itself: it says how rare the own values of the
 * other document are at least. If both documents pass the check of one profile, and have themselves what it demands, the
 * rule refuses the pair.
 */
#pragma once
#include "search.h"

enum { MOST_VALUES = 255 }; /* in a sketch, for numbers of them to fit a byte */
enum { MOST_LEVEL = 3, POOR = -1 };
enum { PROFILES = 3, SUBLISTS = 1 << PROFILES };

static double rareness_of(uint32_t weight) { return 1 - weight / UNIT; }

/* What a profile demands: the mean rareness of the values that only one document of a pair has, the one whose sketch ends
 * first. The first profile fits frames of a small part of the collection, the others frames of a large part: their values
 * are so common that those which are not shared make the mean low. */
static double own_rareness(int profile, int64_t k, int64_t shared)
{
    const double least[PROFILES] = {0.65, 0.5, 0.35}, more[PROFILES] = {0.4, 0, 0};
    double rareness = least[profile] + more[profile] * (double)shared / (double)k;
    return rareness < 0.95 ? rareness : 0.95;
}

/* The values of a document in ascending order, and of each n the rareness of the first n of them. */
typedef struct {
    double bar, power, sure; /* sure: the resemblance from which no pair is refused */
    int64_t k, length, least, hot;
    double rareness[MOST_VALUES + 1];
    double first[MOST_VALUES + 1];
    uint8_t is_hot[MOST_VALUES + 1];
} Content;

/* The c rarest hot values among the first ones, for each c. */
typedef struct {
    int64_t count;
    double rareness[MOST_VALUES + 1], sum[MOST_VALUES + 1];
} Rarest;

static void add_hot(Rarest *rarest, double rareness)
{
    int64_t at = rarest->count++;
    for (; at && rarest->rareness[at - 1] < rareness; at--)
        rarest->rareness[at] = rarest->rareness[at - 1];
    rarest->rareness[at] = rareness;
    for (; at < rarest->count; at++)
        rarest->sum[at + 1] = rarest->sum[at] + rarest->rareness[at];
}

/* Whether the rule refuses a pair: resemblance * specificity ** exponent is below the bar.
 *
 * shared: values that both have, the sum of their rareness is at most `rare`. all: different values in both. count: values
 * that only one of the two has; the sums of their rareness are at least `own` and `other`. With s and w the mean rareness
 * of shared and other values, the exponent is at least 2 * power * min(own, other) / all, -log(s / w) is at least
 * x + x * x / 2 with x = 1 - s / w, and exp(y) at least 1 + y + y * y / 2. */
static int is_refused(const Content *content, int64_t shared, double rare, double all, double count, double own,
                      double other)
{
    double resemblance = (double)shared / all, smaller = own < other ? own : other;
    if (resemblance < content->bar)
        return 1;
    if (resemblance >= content->sure)
        return 0;
    double x = 1 - rare / (double)shared * count / (own + other);
    if (count <= 0 || smaller <= 0 || x <= 0)
        return 0;
    double y = 2 * content->power * smaller / all * (x + x * x / 2);
    return resemblance < content->bar * (1 + y + y * y / 2);
}

/* Whether a document has what a profile demands, and is refused with every other one that has it, if the two share at most
 * `others` values that are not hot. Of the sketch that ends first all values count, of the other one those up to the last
 * value of the first. The other document is unknown, so both cases are checked, for each number of shared values: the other
 * sketch ends first (the first loop tries all n values of this one that may count), or this one does (the second loop). */
static int refuses(const Content *content, int profile, int64_t others)
{
    Rarest rarest;
    rarest.count = 0;
    rarest.sum[0] = 0;
    int64_t k = content->k, length = content->length;
    for (int64_t n = 1; n <= length; n++) {
        if (content->is_hot[n - 1])
            add_hot(&rarest, content->rareness[n - 1]);
        /* The other one ends first and has k values, this one has n up to there. */
        int64_t c = (int64_t)(content->bar * (double)(k + n) / (1 + content->bar)) - others;
        for (c = c < 0 ? 0 : c; c <= rarest.count && c + others <= n; c++) {
            int64_t shared = c + others;
            double rare = rarest.sum[c] + (double)others;
            double other = own_rareness(profile, k, shared) * (double)(k - shared);
            if (!is_refused(content, shared, rare, (double)(k + n - shared), (double)(k + n - 2 * shared),
                            content->first[n] - rare, other))
                return 0;
        }
    }
    /* This one ends first; or both are whole documents, and this one is not the longer one. */
    for (int64_t c = content->least - others; c <= rarest.count && c + others <= length; c++) {
        int64_t shared = c + others, alone = length - shared;
        double rare = rarest.sum[c] + (double)others, own = content->first[length] - rare;
        double least = own_rareness(profile, k, shared);
        if (own < least * (double)alone)
            return 0;
        for (int64_t more = 0; length < k && length + more < k; more++)
            if (!is_refused(content, shared, rare, (double)(length + alone + more), (double)(2 * alone + more), own,
                            least * (double)(alone + more)))
                return 0;
    }
    return 1;
}
