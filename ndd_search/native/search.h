/* Find leaders and pairs.
 *
 * Candidates are found by prefix filtering: two hits that must share `least` values have a common one among all but the
 * least - 1 largest values of each. Only these are indexed, and candidates are compared value by value. If hits have
 * more candidates than a text usually has copies, many hits of the page share something. From then on all values are
 * indexed, which counts the shared values with all hits at once.
 */
#pragma once
#include "index.h"

enum { FEW_COPIES = 4, AT_ONCE = 64 }; /* pairs compared at a time once all values are indexed; else 1 */
enum { FEW_OF = 128 }; /* weighing one pair takes as long as weighing this many hits at once */
enum { FEW_MET = 8 }; /* candidates: up to so many are judged one by one; of more, certain rejections are dropped */

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
    int few;           /* so few hits of a long list were met that weighing all hits would take longer */
    int weighed;       /* index->weighed is exact for the present hit */
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

/* Whether an earlier hit may resemble the one counted last, by how many values they share. */
static inline int may_resemble(const Asked *asked, const Asked *own, uint32_t shared, int all)
{
    int32_t least = asked->limit < own->limit ? asked->least : own->least; /* of the hit with the smaller limit */
    return shared >= (all ? (uint32_t)least : 1);
}

static int ascending(const void *a, const void *b) { return *(const int32_t *)a < *(const int32_t *)b ? -1 : 1; }

/* As list_met, of those that are listed as touched. leaders: as in `meet`. */
static int64_t list_touched(Search *search, int64_t hit, const int64_t *leaders)
{
    const Index *index = search->index;
    const Asked *own = search->asked + hit;
    int64_t met = 0;
    for (int64_t i = 0; i < index->touched_count; i++) {
        int32_t other = search->met[met] = index->touched[i];
        int counts = !leaders || leaders[other] == other;
        met += counts && may_resemble(search->asked + other, own, index->shared[other], index->all);
    }
    search->few = met < hit / FEW_OF;
    qsort(search->met, (size_t)met, sizeof *search->met, ascending);
    return met;
}

/* The earlier hits that may resemble the one counted last, by how many values they share, into search->met, ascending.
   Returns how many. leaders: as in `meet`. */
static int64_t list_met(Search *search, int64_t hit, const int64_t *leaders)
{
    uint32_t *shared = search->index->shared;
    const Asked *own = search->asked + hit;
    int64_t met = 0;
    if (search->index->touched_count != ALL_HITS)
        return list_touched(search, hit, leaders);
    search->few = 0;
    for (int64_t other = 0; leaders && other < hit; other++)
        if (leaders[other] != other)
            shared[other] = 0; /* it was the first to hold some value, so it is found there */
    for (int64_t other = 0; other < hit; other++) {
        search->met[met] = (int32_t)other;
        met += may_resemble(search->asked + other, own, shared[other], search->index->all);
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
    met = list_met(search, hit, leaders);
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
    return count_shared(search->index, hit) ? list_met(search, hit, leaders) : 0;
}

/* Set the idf sums of a hit in `sides`. */
static void tell_rare(Search *search, int64_t hit)
{
    const uint32_t *weights = weights_of(search->weights, search->page, hit);
    int64_t all = length_of(search->page, hit), part = up_to_mark(all);
    search->sides.rare_all[hit] = (float)rare((int32_t)all, sum_of(weights, all));
    search->sides.rare_part[hit] = (float)rare((int32_t)part, sum_of(weights, part));
}

/* Whether a pair may count although `tell_possible` rejects it. */
static int counts_anyway(const Search *search, int64_t other, int64_t hit)
{
    int64_t left = length_of(search->page, other), right = length_of(search->page, hit), smaller = left < right ? left : right;
    return may_differ_at_edges(search->asked[other].edges, search->asked[hit].edges)
           || (double)search->index->shared[other] >= (1 - search->rule->differ * ENOUGH - ROUNDING) * (double)smaller;
}

/* Drop candidates that are certainly no near-duplicates, while there are more than FEW_MET: first with bounds of the
   weights, which suffice if most values of a frame have one weight, then exactly. Returns how many are left. */
static int64_t drop_different(Search *search, int64_t hit, int64_t met)
{
    Index *index = search->index;
    search->weighed = 0;
    if (!search->weights || !index->all || !index->can_weigh || search->few || met <= FEW_MET)
        return met;
    tell_rare(search, hit);
    for (int64_t i = 0; i < met; i++)
        if (search->sides.rare_all[search->met[i]] < 0)
            tell_rare(search, search->met[i]);
    for (int exactly = 0; exactly <= 1 && met > FEW_MET; exactly++) {
        int64_t left = 0;
        weigh_shared(index, search->weights->weights, hit, exactly); /* those of the hit are looked up */
        search->weighed = exactly;
        tell_possible(search->rule, &search->sides, hit, index->shared, index->weighed, search->possible);
        for (int64_t i = 0; i < met; i++) {
            int32_t other = search->met[left] = search->met[i];
            left += search->possible[other] || counts_anyway(search, other, hit);
        }
        met = left;
    }
    return met;
}

/* Those of `count` earlier hits that may resemble the one counted last by their bars, as pairs. Returns how many.
   A rejected pair is overwritten by the next one instead of skipped by a branch, which would often be mispredicted. */
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
        const Asked *own = search->asked + hit, *others_own = search->asked + other;
        found += may_differ_at_edges(own->edges, others_own->edges)
                     ? shared >= own->least && shared >= others_own->least
                     : (double)shared / (double)(all + some - shared) >= bar_for(search, other, hit);
    }
    return found;
}

/* Whether a pair of find_resembling counts. */
static int judge(const Search *search, Pair *pair)
{
    const Asked *first = search->asked + pair->hits[0], *second = search->asked + pair->hits[1];
    return decide(search->page, search->rule, search->weights, pair, sizes_of(first->shingles, second->shingles),
                  may_differ_at_edges(first->edges, second->edges),
                  search->weighed ? search->index->weighed + pair->hits[0] : NULL);
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
        if (hit < old) {
            find_held(search.index, hit);
            insert(search.index);
            continue;
        }
        int64_t met = drop_different(&search, hit, meet(&search, hit, leaders)), size = search.index->all ? AT_ONCE : 1;
        verdict = met < 0 ? UNSURE : NO;
        for (int64_t i = 0; i < met && verdict == NO; i += size) {
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

/* All near-duplicates, ordered by the second, then the first. Returns how many, -1: no memory, or unsure. */
static int64_t find_pairs(const Page *page, const Rule *rule, Weights *weights, Pair **pairs)
{
    Search search;
    int64_t found = 0, room = 0;
    int verdict = start_search(&search, page, rule, weights) ? NO : UNSURE;
    for (int64_t hit = 0; hit < page->count && verdict != UNSURE; hit++) {
        int64_t met = drop_different(&search, hit, meet(&search, hit, NULL));
        verdict = met < 0 ? UNSURE : NO;
        Pair *larger = with_room(*pairs, &room, found + (met > 0 ? met : 0), sizeof *larger);
        if (met > 0 && !larger) {
            verdict = UNSURE;
            break;
        }
        *pairs = larger;
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
