/* Text to clean code points.
 *
 * As text/tokens.py, except for rare texts. unicode_tables.native_table has an entry for each code point. It
 * holds the code point it folds to, the rank of its combining class (of the last mark in it), and flags.
 */
#pragma once
#include <stdlib.h>
#include "signs.h"

enum { CODE_POINTS = 0x110000, POINT = 0x1FFFFF, RANK = 21, OF_MONEY = 61, RANKS = 63, MOST_MARKS = 30 };
enum { JOINER = 0x200C };
static const uint32_t FIRST = 1u << 27;    /* may be composed with what stands after it, */
static const uint32_t COMPOSES = 1u << 28; /* or before it */
static const uint32_t MARK = 1u << 29;     /* belongs to the character before it */
static const uint32_t SINGLE = 1u << 30;   /* a token by itself */
static const uint32_t SPECIAL = 1u << 31;  /* a sign or the joiner; or the place of a number and so many entries */

typedef struct {
    const uint32_t *table;
    int64_t table_size;
    uint32_t ignored; /* flags: SINGLE if such tokens are not to be separated */
    const uint32_t *codes; /* the text */
    int64_t length;
    uint32_t *points; /* clean */
    int64_t count, room;
    int toned; /* a letter may be Vietnamese, with a tone mark */
    uint32_t before;  /* the entry before the next one, */
    uint32_t base;    /* and the one that marks belong to; 0 for a separator */
    int marks;        /* in a row, of those that change places */
} Cleaner;

/* Make room for more points. 0: no memory. */
static int grow_points(Cleaner *cleaner, int64_t room)
{
    uint32_t *larger = realloc(cleaner->points, (size_t)room * sizeof *larger);
    if (larger)
        cleaner->points = larger, cleaner->room = room;
    return larger != NULL;
}

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
    cleaner->toned |= (composed & COMPOSES) != 0;
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
        cleaner->toned |= (entry & COMPOSES) != 0;
    }
    cleaner->before = entry;
    cleaner->points[cleaner->count++] = point;
    return 1;
}

/* Whether text[at] is the joiner between the parts of an Arabic word, which is a space. */
static int is_joiner(const uint32_t *text, int64_t at)
{
    uint32_t before = at ? text[at - 1] : 0;
    return text[at] == JOINER
        && ((before >= 0x600 && before <= 0x6FF) || (before >= 0x750 && before <= 0x77F)
            || (before >= 0xFB50 && before <= 0xFDFF) || (before >= 0xFE70 && before <= 0xFEFC));
}

/* Whether nothing becomes of text[at]. */
static int is_left_out(const Cleaner *cleaner, int64_t at)
{
    uint32_t entry = cleaner->table[cleaner->codes[at]], place = entry & POINT;
    if (cleaner->codes[at] == JOINER)
        return !is_joiner(cleaner->codes, at);
    return entry & SPECIAL && place >= CODE_POINTS && place < cleaner->table_size && !cleaner->table[place];
}

/* The place of the first code point from `at` on that is not left out. */
static int64_t next_of(const Cleaner *cleaner, int64_t at)
{
    while (at < cleaner->length && is_left_out(cleaner, at))
        at++;
    return at;
}

/* The first entry of what becomes of text[at], 0 behind the text. */
static uint32_t entry_at(const Cleaner *cleaner, int64_t at)
{
    uint32_t entry = at < cleaner->length ? cleaner->table[cleaner->codes[at]] : 0;
    int64_t place = entry & POINT;
    if (!(entry & SPECIAL) || place < CODE_POINTS)
        return place == JOINER ? 0 : entry;
    return place + 1 < cleaner->table_size ? cleaner->table[place + 1] : 0;
}

static int is_number_at(const Cleaner *cleaner, int64_t at)
{
    uint32_t entry = entry_at(cleaner, at), code = at < cleaner->length ? cleaner->codes[at] : 0;
    if (code == '.' || code == 0x2024 || code == 0xFE52 || code == 0xFF0E) /* full stops */
        return is_digit(entry_at(cleaner, next_of(cleaner, at + 1)));
    return is_digit(entry & POINT) || ((entry & (SPECIAL | MARK)) == 0 && rank_of(entry) == OF_MONEY);
}

/* Add text[at], a sign or the joiner. 0: as above. */
static int add_sign(Cleaner *cleaner, uint32_t sign, int64_t at)
{
    const uint32_t *codes = cleaner->codes, *table = cleaner->table, base = table[cleaner->base & POINT];
    int64_t before = at - 1, ahead = next_of(cleaner, at + 1);
    uint32_t next = entry_at(cleaner, ahead), code = ahead < cleaner->length ? codes[ahead] : 0;
    if (sign == JOINER)
        return is_joiner(codes, at) ? add_entry(cleaner, 0) : 1;
    while (before >= 0 && (is_left_out(cleaner, before) || (table[codes[before]] & (SPECIAL | MARK)) == MARK))
        before--;
    uint32_t behind = before < 0 ? 0 : codes[before];
    int is_blank = code == ' ' || code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F
        || code == 0x3000 || code == JOINER;
    Around around = {
        .word = cleaner->base && !(base & SINGLE),
        .apart = !cleaner->base || (base & SINGLE && rank_of(base) < OF_MONEY),
        .sign = table[behind] & SPECIAL && is_a_sign(table[behind] & POINT),
        .first = !behind || ends_line(behind),
        .number = is_number_at(cleaner, ahead),
        .later = is_blank && is_number_at(cleaner, next_of(cleaner, ahead + 1)),
        .last = !next && !ends_line(code),
    };
    for (int64_t i = cleaner->count; around.word && i && cleaner->points[i - 1]; i--) {
        uint32_t point = cleaner->points[i - 1], entry = table[point];
        if (entry & SINGLE && !(entry & SPECIAL))
            break;
        around.letters += (entry & (SPECIAL | MARK)) != MARK;
        if (is_digit(point) || around.letters > BEFORE_DASH) {
            around.letters = 0;
            break;
        }
    }
    int role = role_of(sign, &around);
    if (next & MARK && (sign == '<' || sign == '>')) /* they may be one character */
        return 0;
    return add_entry(cleaner, role == SEPARATES ? 0 : role == IN_WORD ? sign : sign | (SINGLE & ~cleaner->ignored));
}

/* Add text[at], of which something else becomes than one entry. 0: as above, or no memory. */
static int add_special(Cleaner *cleaner, uint32_t entry, int64_t at)
{
    int64_t place = entry & POINT, left = cleaner->length - at;
    if (place < CODE_POINTS)
        return add_sign(cleaner, entry & POINT, at);
    int64_t number = place < cleaner->table_size ? cleaner->table[place] : POINT;
    if (number >= cleaner->table_size - place)
        return 0;
    int64_t needed = cleaner->count + 2 * (number + left);
    if (needed > cleaner->room && !grow_points(cleaner, 2 * needed))
        return 0;
    for (const uint32_t *next = cleaner->table + place + 1; number; number--, next++)
        if (*next & SPECIAL || !add_entry(cleaner, *next & ~cleaner->ignored))
            return 0;
    return 1;
}

/* Move the tone marks of Vietnamese to the second vowel: hoà for hòa. */
static void move_tones(uint32_t *points, int64_t count)
{
    enum { VOWELS = 5, TONES = 5 };
    static const uint16_t plain[VOWELS] = {'o', 'u', 'a', 'e', 'y'};
    static const uint16_t toned[VOWELS][TONES] = {{0xF2, 0xF3, 0x1ECF, 0xF5, 0x1ECD}, {0xF9, 0xFA, 0x1EE7, 0x169, 0x1EE5},
        {0xE0, 0xE1, 0x1EA3, 0xE3, 0x1EA1}, {0xE8, 0xE9, 0x1EBB, 0x1EBD, 0x1EB9}, {0x1EF3, 0xFD, 0x1EF7, 0x1EF9, 0x1EF5}};
    for (int64_t i = 0; i + 1 < count; i++) {
        uint32_t next = points[i + 1];
        if (points[i] < 0xF2 || (next != 'a' && next != 'e' && next != 'y'))
            continue;
        int first = next == 'y', second = next == 'a' ? 2 : next == 'e' ? 3 : 4;
        for (int tone = 0; tone < TONES; tone++)
            if (points[i] == toned[first][tone]) {
                points[i] = plain[first], points[i + 1] = toned[second][tone];
                break;
            }
    }
}

/* Clean a text. Returns the number of cleaner->points, -1: it is left to numpy, or there is no memory. */
static int64_t clean_text(Cleaner *cleaner, const uint32_t *codes, int64_t length)
{
    uint32_t ignored = cleaner->ignored;
    cleaner->count = cleaner->before = cleaner->base = 0;
    cleaner->codes = codes, cleaner->length = length;
    cleaner->marks = cleaner->toned = 0;
    if (2 * length > cleaner->room && !grow_points(cleaner, 2 * length))
        return -1;
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
            if (!(entry & SPECIAL ? add_special(cleaner, entry, i) : add_entry(cleaner, entry)))
                return -1;
            points = cleaner->points, count = cleaner->count, base = cleaner->base;
        }
    }
    if (cleaner->toned)
        move_tones(points, count);
    return count;
}
