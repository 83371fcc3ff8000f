/* Leaders and pairs of a whole collection.
 *
 * A page has a hundred hits; a collection has millions of documents, and some values stand in tens of thousands of them.
 * Three filters keep the work small, and none of them loses a pair:
 *
 * Prefix filter (Chaudhuri, Ganti and Kaushik 2006). The values of every document are put in one global order, values
 * with few holders first. Two documents that count as a pair share at least `least` values, so their first shared value
 * stands among all but the last least - 1 values of each. Only these values are looked up in lists of their holders.
 *
 * Positional filter (Xiao, Wang, Lin and Yu 2008). Where the shared values of two documents stand in that order says how
 * many values they can share at most.
 *
 * Own content filter (see set_levels). A hot value has more than HOT holders. Two documents with much content of their own
 * that share hot values only, or few others beside them, are refused by what is known of each. The same holds for the hot
 * values from one entry of a document on: later entries leave less that the two can share. So each hot value has several
 * lists, by how much content of its own a document has beside the values from this one on, and documents with much do not
 * look each other up there. Lists of values that are not hot are short, however large the collection is.
 *
 * `budget` bounds how many documents are met for one document. Entries of lists that this leaves unread are counted.
 *
 * Documents are taken in blocks. All threads look up the documents of a block among those of earlier blocks; then one
 * thread looks them up among each other. The result does not depend on the number of threads.
 */
#pragma once
#include "corpus_meetings.h"
#include "team.h"

/* Called now and then with the number of documents done; 0: stop. */
typedef struct {
    int (*go_on)(void *with, int64_t done);
    void *with;
} Watch;

enum { PART = 4096, CHUNK = 32 }; /* documents between two calls of it, and of one thread at a time */

/* What one thread needs of its own. */
typedef struct {
    Corpus corpus; /* with its own `meetings` and `met` */
    Effort effort;
    Pair *pairs;
    int64_t found, room;
    int failed; /* no memory */
} Seeker;

typedef struct {
    int64_t first, count; /* of the pairs of one seeker */
    int32_t seeker;
} Run;

typedef struct {
    Seeker seekers[MOST_THREADS];
    Team team;
    int64_t budget, old, start, end; /* of the block */
    int64_t each;                    /* pairs of one document with earlier ones at most; 0: only the first one, its leader */
    Run runs[PART];                  /* pairs of each document of the block with documents of earlier blocks */
} Quest;

/* Add pairs to others. 0: no memory. */
static int add_pairs(Pair **pairs, int64_t *found, int64_t *room, const Pair *more, int64_t count)
{
    Pair *larger = with_room(*pairs, room, *found + count, sizeof *larger);
    if (!larger)
        return 0;
    memcpy((*pairs = larger) + *found, more, (size_t)count * sizeof *more);
    *found += count;
    return 1;
}

/* The pairs of a document with those enlisted `from` some document on, to the end of the seeker's pairs: the first one, or
 * `each` less `already`, and what that leaves out counts as cut. Returns how many. */
static int64_t seek(const Quest *quest, Seeker *seeker, int64_t document, int64_t from, int64_t already)
{
    Corpus *corpus = &seeker->corpus;
    int64_t most = quest->each ? quest->each - already : 1;
    int64_t before = seeker->found, met = meet_enlisted(corpus, document, from, quest->budget, &seeker->effort);
    for (int64_t j = 0; j < met; j++) {
        if (seeker->found - before == most) {
            seeker->effort.cut += quest->each ? met - j : 0;
            break;
        }
        fetch_ahead(corpus, met, j);
        Pair pair;
        if (is_pair(corpus, corpus->met[j], document, &pair, &seeker->effort)
            && !add_pairs(&seeker->pairs, &seeker->found, &seeker->room, &pair, 1)) {
            seeker->failed = 1;
            break;
        }
    }
    return seeker->found - before;
}

/* The part of one thread: some documents of a block, among those of earlier blocks. */
static void seek_earlier(void *job, int number)
{
    Quest *quest = job;
    Seeker *seeker = quest->seekers + number;
    seeker->found = 0;
    for (int64_t chunk = quest->start + number * CHUNK; chunk < quest->end; chunk += quest->team.threads * CHUNK)
        for (int64_t i = chunk; i < chunk + CHUNK && i < quest->end && !seeker->failed; i++)
            if (seeker->corpus.same[i] == i && i >= quest->old) {
                int64_t first = seeker->found, count = seek(quest, seeker, i, 0, 0);
                quest->runs[i - quest->start] = (Run){first, count, number};
            }
}

/* 0: no memory. */
static int start_quest(Quest *quest, const Corpus *corpus, int threads)
{
    size_t count = (size_t)corpus->page->count + 1;
    start_team(&quest->team, corpus->page->count > PART ? threads : 1);
    int fine = 1;
    for (int i = 0; i < quest->team.threads; i++) {
        Seeker *seeker = quest->seekers + i;
        *seeker = (Seeker){.corpus = *corpus};
        if (!i)
            continue;
        seeker->corpus.met = malloc(count * sizeof *corpus->met);
        seeker->corpus.meetings = calloc_large(count, sizeof *corpus->meetings);
        fine = fine && seeker->corpus.met && seeker->corpus.meetings;
        if (fine)
            memcpy(seeker->corpus.meetings, corpus->meetings, count * sizeof *corpus->meetings);
    }
    return fine;
}

static void end_quest(Quest *quest, Effort *effort)
{
    end_team(&quest->team);
    for (int i = 0; i < quest->team.threads; i++) {
        Seeker *seeker = quest->seekers + i;
        effort->met += seeker->effort.met;
        effort->compared += seeker->effort.compared;
        effort->cut += seeker->effort.cut;
        free(seeker->pairs);
        if (i) {
            free(seeker->corpus.met);
            free(seeker->corpus.meetings);
        }
    }
}

/* Look up the next block among earlier ones, by all threads. 0: no memory, or stopped. */
static int seek_block(Quest *quest, int64_t count, const Watch *watch)
{
    quest->end = quest->start + PART < count ? quest->start + PART : count;
    if (!watch->go_on(watch->with, quest->start))
        return 0;
    do_together(&quest->team, seek_earlier, quest);
    for (int i = 0; i < quest->team.threads; i++)
        if (quest->seekers[i].failed)
            return 0;
    return 1;
}

/* All pairs of different documents, ordered by the second, then the first: at most `each` of one document with earlier ones
 * (what that leaves out counts as cut). each: 0 gives the pair of each document with its leader, as find_leaders; the first
 * `old` documents are leaders whatever they share. Returns how many, -1: no memory, or stopped. */
static int64_t pair_corpus(const Page *page, const Rule *rule, const Guards *guards, Weights *weights, int64_t budget,
                           int64_t each, int64_t old, int threads, Pair **pairs, int64_t *same, Effort *effort,
                           const Watch *watch)
{
    Corpus corpus;
    int64_t found = 0, room = 0;
    Quest *quest = malloc(sizeof *quest);
    int fine = start_corpus(&corpus, page, rule, guards, weights, effort) && quest;
    if (fine) {
        quest->budget = budget;
        quest->old = old;
        quest->each = each;
        fine = start_quest(quest, &corpus, threads);
        Seeker *own = quest->seekers;
        for (quest->start = 0; fine && quest->start < page->count; quest->start = quest->end) {
            fine = seek_block(quest, page->count, watch);
            for (int64_t i = quest->start; fine && i < quest->end; i++) {
                if (corpus.same[i] != i)
                    continue;
                Run run = i < old ? (Run){0} : quest->runs[i - quest->start];
                if (run.count)
                    fine = add_pairs(pairs, &found, &room, quest->seekers[run.seeker].pairs + run.first, run.count);
                int is_led = run.count && !each;
                int64_t first = own->found, count = i < old || is_led ? 0 : seek(quest, own, i, quest->start, run.count);
                fine = fine && !own->failed;
                if (fine && count)
                    fine = add_pairs(pairs, &found, &room, own->pairs + first, count);
                own->found = first;
                if (each || !(count || is_led))
                    enlist(&corpus, i);
            }
        }
        end_quest(quest, effort);
    }
    if (fine)
        memcpy(same, corpus.same, (size_t)page->count * sizeof *same);
    free(quest);
    free_corpus(&corpus);
    return fine ? found : -1;
}
