/* Text to clean code points.
 *
 * As tokens.clean, except for rare texts. unicode_tables.native_table has an entry for each code point. It
 * holds the code point it folds to, the rank of its combining class (of the last mark in it), and flags.
 */
#pragma once
#include <stdint.h>
#include <stdlib.h>

enum { CODE_POINTS = 0x110000, POINT = 0x1FFFFF, RANK = 21, RANKS = 63, MOST_MARKS = 30 };
static const uint32_t FIRST = 1u << 27;    /* may be composed with what stands after it, */
static const uint32_t COMPOSES = 1u << 28; /* or before it */
static const uint32_t MARK = 1u << 29;     /* belongs to the character before it */
static const uint32_t SINGLE = 1u << 30;   /* a token by itself */
static const uint32_t SPECIAL = 1u << 31;  /* no code point, but the place of a number and so many entries */

typedef struct {
    const uint32_t *table;
    int64_t table_size;
    uint32_t ignored; /* flags: SINGLE if such tokens are not to be separated */
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
