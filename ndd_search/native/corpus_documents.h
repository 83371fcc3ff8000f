/* What is kept of a collection, the guards of its documents, and which documents have the same values: see corpus.h. */
#pragma once
#include "stable_abi.h"
#ifdef __linux__
#include <sys/mman.h>
#endif
#include "own_content.h"

typedef struct {
    int64_t documents; /* that are different and not empty */
    int64_t met;       /* entries of lists that were read */
    int64_t compared;  /* pairs that were compared value by value */
    int64_t cut;       /* entries of lists that were not read because of `budget` */
} Effort;

typedef struct {
    int32_t with;   /* the document that met this one last, -1: none yet */
    uint8_t most;   /* values that the two can share at most */
    uint8_t seen;   /* lists in which the two have met */
    uint8_t least;  /* values that this one shares with any document it counts as a pair with, at least */
    uint8_t rare;   /* lists of values that are not hot in which the two have met */
    int8_t levels[PROFILES]; /* see set_levels */
} Meeting;

/* What keeps documents apart whatever they share. */
typedef struct {
    const int64_t *codes; /* of each document; only equal ones make a pair, and none below 0. NULL: all do */
    const double *times;  /* of each document, NaN makes no pair. NULL: all do */
    double apart;         /* of times, at most */
} Guards;

/* A document in a list. */
typedef struct {
    int32_t document;
    uint8_t behind; /* how many of its values come later in the global order */
} Listed;

typedef struct {
    int32_t start;  /* where it begins in `held` */
    int32_t filled; /* how many documents it has so far */
} List;

typedef struct {
    const Page *page;
    const Rule *rule;
    const Guards *guards;
    Weights *weights;   /* NULL: no value is common */
    uint64_t multiplier; /* of slots */
    int64_t *same;      /* of each document the first one with the same values; itself where there is none before it */
    int64_t *first;     /* document i has entries first[i] to first[i + 1] - 1 */
    int32_t *list;      /* of each entry the number of its list, or of the first of its SUBLISTS lists */
    uint8_t *after;     /* of each entry how many values of its document come later in the global order */
    uint8_t *kind;      /* of each entry: see Entry */
    List *lists;
    Listed *held;         /* the documents of all lists */
    Meeting *meetings;  /* of each document */
    int32_t *met;
} Corpus;

/* Zeroed memory that is read at random: on large pages, where the system has them. */
static void *calloc_large(size_t count, size_t size)
{
    char *room = calloc(count, size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    size_t page = 4096, start = (page - (size_t)((uintptr_t)room & (page - 1))) & (page - 1);
    if (room && count * size > 64 * page)
        (void)madvise(room + start, count * size - start, MADV_HUGEPAGE);
#endif
    return room;
}

/* How values are spread over slots, of which there are 2**(64 - shift). */
typedef struct {
    uint64_t multiplier;
    int shift;
} Slots;

static uint64_t slot_of(int32_t value, Slots slots) { return (uint32_t)value * slots.multiplier >> slots.shift; }

/* An odd number that depends on all values of a collection. The order of values, and so what `budget` leaves unread,
 * depends on their slots; therefore these are the same in each process, and yet nobody can choose values for them
 * without knowing and fixing those of the whole collection. */
static uint64_t multiplier_for(const Page *page)
{
    uint64_t a = 0x9E3779B97F4A7C15u, b = 0xD6E8FEB86659FD93u;
    for (int64_t at = 0; at < page->offsets[page->count]; at++) {
        a = (a ^ (uint32_t)page->values[at]) * 0xFF51AFD7ED558CCDu;
        a = (a << 29 | a >> 35) + b;
        b = (b ^ a >> 32) * 0xC4CEB9FE1A85EC53u + a;
    }
    for (int i = 0; i < 4; i++) {
        a = (a ^ a >> 32 ^ b) * 0xFF51AFD7ED558CCDu;
        b = (b ^ b >> 29 ^ a) * 0xC4CEB9FE1A85EC53u;
    }
    return (a ^ b ^ b >> 32) | 1;
}

enum { LEAST_SHIFT = 32 };

static int shift_for(int64_t items)
{
    int shift = 60;
    while (shift > LEAST_SHIFT && ((int64_t)1 << (64 - shift)) < items)
        shift--;
    return shift;
}

static int guards_allow(const Guards *guards, int64_t a, int64_t b)
{
    return (!guards->codes || (guards->codes[a] == guards->codes[b] && guards->codes[a] >= 0))
           && (!guards->times || fabs(guards->times[a] - guards->times[b]) <= guards->apart);
}

/* The key under which a value of a document is looked up. Documents of different codes have different keys, but for a few
 * that collide. */
static int32_t key_of(const Guards *guards, int64_t document, int32_t value)
{
    uint64_t code = guards->codes ? (uint64_t)guards->codes[document] + 1 : 0;
    return code ? (int32_t)((((uint64_t)(uint32_t)value << 32 | (uint32_t)value) ^ code * 0x9E3779B97F4A7C15u)
                            * 0xD6E8FEB86659FD93u >> 33) : value;
}

/* Whether two documents with the same values are one for all others. */
static int guards_equal(const Guards *guards, int64_t a, int64_t b)
{
    return guards_allow(guards, a, b) && (!guards->times || guards->times[a] == guards->times[b]);
}

static uint64_t hash_row(const Guards *guards, int64_t document, const int32_t *values, int64_t length)
{
    uint64_t hash = addend ^ (uint64_t)length ^ (guards->codes ? (uint64_t)guards->codes[document] << 8 : 0);
    if (guards->times) {
        uint64_t bits;
        memcpy(&bits, guards->times + document, sizeof bits);
        hash ^= bits * 0xD6E8FEB86659FD93u;
    }
    for (int64_t i = 0; i < length; i++) {
        hash = (hash ^ (uint64_t)(uint32_t)values[i]) * multiplier;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The first document with the same values, for each. 0: no memory. */
static int find_same(const Page *page, const Guards *guards, int64_t *same)
{
    int shift = shift_for(2 * page->count + 16);
    uint64_t most = ((uint64_t)1 << (64 - shift)) - 1;
    int32_t *slots = malloc((size_t)(most + 1) * sizeof *slots);
    if (!slots)
        return 0;
    memset(slots, 0xFF, (size_t)(most + 1) * sizeof *slots);
    for (int64_t i = 0; i < page->count; i++) {
        int64_t length = length_of(page, i);
        const int32_t *values = values_of(page, i);
        uint64_t at = (hash_row(guards, i, values, length) * multiplier) >> shift;
        same[i] = i;
        if (!length || !guards_equal(guards, i, i))
            continue;
        for (; slots[at] >= 0; at = (at + 1) & most)
            if (length_of(page, slots[at]) == length && guards_equal(guards, i, slots[at])
                && !memcmp(values_of(page, slots[at]), values, (size_t)length * sizeof *values)) {
                same[i] = slots[at];
                break;
            }
        if (same[i] == i)
            slots[at] = (int32_t)i;
    }
    free(slots);
    return 1;
}
