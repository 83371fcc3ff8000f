/* The edges of a short text: text/edges.py says what they are and finds the same, step by step. */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KNOWN = 24 }; /* letters of a word */
enum { MOST_LETTERS = 640, MOST_SPACED = MOST_LETTERS / 2 + 1 };
enum { LEAST_INSIDE = 24, MOST_PIECES = 4, NEAR_KNOWN = 12, LONG_TEXT = 25, NEAR_SIGN = 8, ENCLOSED = 32, SHORT_NAME = 5 };
enum { CASELESS = 0x590 }; /* the first letter of the scripts without capitals, whose words all count as names */
enum {
    OF_MARK = 1, OF_AGENCY = 2, OF_BY = 4, OF_SOURCE = 8, OF_MORE = 16, OF_BEGINS = 32, OF_GOES_ON = 64, OF_RIGHTS = 128,
    OF_SITE = 256, OF_JOINS = 512, CAPITAL = 2048, CAPITALS = 4096, A_NUMBER = 8192, HANDLE = 16384, LINK = 32768,
    OTHER = 65536, TOLD = 131072 /* what kinds a word has is known */
};

typedef struct {
    uint64_t hash;
    int64_t kinds; /* 0: the slot is free */
} KnownWord;

static const KnownWord *known_words; /* a hash table, a power of two in size; NULL: no text has edges */
static uint64_t most_known;    /* its size less 1 */

typedef struct {
    int16_t start, end, inner, outer; /* outer 0: where punctuation ends and begins is not known yet */
    int kinds;                        /* 0: not known yet */
} Spaced;

typedef struct {
    uint32_t text[MOST_LETTERS];
    int length, count;
    Spaced words[MOST_SPACED];
} Parted;

static int is_one_of(uint32_t letter, const uint32_t *set)
{
    while (*set && *set != letter)
        set++;
    return letter && *set == letter;
}

static const uint32_t opens[] = {'(', '[', '{', '/', 0x3010, 0xFF08, 0xFF3B, 0x3014, 0};
static const uint32_t closes[] = {')', ']', '}', '/', 0x3011, 0xFF09, 0xFF3D, 0x3015, 0};
static const uint32_t dashes[] = {'-', 0x2013, 0x2014, 0};
static const uint32_t ends[] = {'.', '!', '?', 0x2026, 0x964, 0x3002, 0xFF01, 0xFF1F, 0x61F, 0x6D4, 0}; /* of sentences */
static const uint32_t before_words[] = {'(', '[', '{', '/', '"', '\'', 0x201C, 0x201D, 0x201E, 0xAB, 0x2018, 0};
static const uint32_t after_words[] = {')', ']', '}', '/', '"', '\'', 0x201C, 0x201D, 0x2019, 0xBB, '.', ',', ':', ';',
                                       '!', '?', 0x2026, '-', 0x2013, 0x2014, 0};

/* Whether a letter is a tab, a line end or a space, without a branch. */
static inline int is_space(uint32_t letter)
{
    return (letter == ' ') | (letter == '\t') | (letter == '\n') | (letter == '\r') | (letter == 0xA0) | (letter == 0x3000);
}

static int is_in_word(uint32_t letter) /* neither in before_words nor in after_words */
{
    return (letter | 32) - 'a' < 26 || letter - '0' < 10 || (letter > 0xBB && letter < 0x2000);
}

static uint32_t small_letter(uint32_t letter)
{
    if (letter - 0x100 < 0x80)
        return letter + ((letter & 1) == (letter - 0x139 < 0x11 || letter > 0x178));
    return letter - 'A' < 26 || (letter - 0xC0 < 31 && letter != 0xD7) || letter - 0x391 < 25 || letter - 0x410 < 32
               ? letter + 32
               : letter;
}


static uint64_t hash_word(const uint32_t *letters, int length)
{
    uint64_t hash = (uint64_t)length;
    for (int i = 0; i < length; i++)
        hash = (hash ^ small_letter(letters[i])) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

static int known_kinds(const uint32_t *letters, int length)
{
    if (length > MOST_KNOWN)
        return 0;
    uint64_t hash = hash_word(letters, length), at = hash & most_known;
    while (known_words[at].kinds && known_words[at].hash != hash)
        at = (at + 1) & most_known;
    return (int)known_words[at].kinds;
}

static inline int begins_with(const uint32_t *letters, int length, const char *ascii)
{
    for (; *ascii; ascii++, letters++, length--)
        if (!length || small_letter(*letters) != (uint32_t)*ascii)
            return 0;
    return 1;
}

static int is_link(const uint32_t *letters, int length)
{
    int point = -1, slash = 0;
    while (slash < length && letters[slash] != '/')
        slash++;
    if (slash == length && !begins_with(letters, length, "www."))
        return 0;
    for (int i = 1; i < slash - 1; i++)
        point = letters[i] == '.' ? i : point;
    return (point > 0 && (slash < length || begins_with(letters, length, "www.")))
           || begins_with(letters, length, "http://") || begins_with(letters, length, "https://");
}

/* LINK, HANDLE or 0. */
static int leads_away(const uint32_t *letters, int length)
{
    if (length && is_link(letters, length))
        return LINK;
    return length && (*letters == '@' || *letters == '#') ? HANDLE : 0;
}

/* Whether a word is a number, or all in capitals, with some signs in it. */
static int consists_of(const uint32_t *letters, int length, int capitals)
{
    static const uint32_t joins[2][5] = {{'.', ':', '-', '/', 0}, {'.', '-', '\'', '&', 0}};
    int i = 0;
    while (i < length
           && ((capitals ? small_letter(letters[i]) != letters[i] : letters[i] - '0' < 10) || is_one_of(letters[i], joins[capitals])))
        i++;
    return i == length;
}

static int tell_kinds(const uint32_t *letters, int length)
{
    int leads = leads_away(letters, length);
    if (leads || !length)
        return leads;
    int kinds = known_kinds(letters, length);
    if (small_letter(*letters) != *letters || *letters >= CASELESS)
        kinds |= CAPITAL | (length > 1 && consists_of(letters, length, 1) ? CAPITALS : 0);
    else if (consists_of(letters, length, 0))
        kinds |= A_NUMBER;
    return kinds ? kinds : OTHER;
}

/* A word, with the part of it that is no punctuation. */
static const Spaced *word_of(Parted *parted, int number)
{
    const uint32_t *text = parted->text;
    Spaced *word = parted->words + number;
    if (!word->outer) {
        word->inner = word->start;
        word->outer = word->end;
        while (word->inner < word->outer && !is_in_word(text[word->inner]) && is_one_of(text[word->inner], before_words))
            word->inner++;
        while (word->outer > word->inner && !is_in_word(text[word->outer - 1])
               && is_one_of(text[word->outer - 1], after_words))
            word->outer--;
    }
    return word;
}

static int kinds_of(Parted *parted, int number)
{
    Spaced *word = parted->words + number;
    if (!word->kinds && word_of(parted, number))
        word->kinds = TOLD | tell_kinds(parted->text + word->inner, word->outer - word->inner);
    return word->kinds;
}

/* Read a text of 1 to MOST_LETTERS: `bytes` that are all ASCII, or `codes`. Spaces are unpredictable: no branch. */
static void read_letters(Parted *parted, const uint8_t *bytes, const uint32_t *codes, int length)
{
    int16_t bounds[MOST_LETTERS + 2];
    int found = 0, before = 1; /* whether a space was before the letter, as before the text */
    for (int i = 0; i < length; i++) {
        uint32_t letter = bytes ? bytes[i] : codes[i];
        int space = is_space(letter);
        parted->text[i] = letter;
        bounds[found] = (int16_t)i;
        found += space != before;
        before = space;
    }
    bounds[found] = (int16_t)length;
    parted->length = length;
    parted->count = (found + 1) / 2;
    for (int number = 0; number < parted->count; number++)
        parted->words[number] = (Spaced){.start = bounds[2 * number], .end = bounds[2 * number + 1]};
}

static int is_sign(Parted *parted, int number)
{
    uint32_t letter = parted->text[parted->words[number].start];
    if (is_in_word(letter))
        return 0;
    const Spaced *word = word_of(parted, number);
    return word->inner == word->outer
           || (word->end == word->start + 1 && (letter == '|' || letter == 0x2022 || letter == 0xB7));
}

/* Whether the punctuation behind a word ends with two letters, the second a hyphen. */
static int ends_with(const Parted *parted, const Spaced *word, uint32_t first)
{
    return word->end - word->outer >= 2 && parted->text[word->end - 1] == '-' && parted->text[word->end - 2] == first;
}

/* The end of an edge like "UPDATE 2-" that no space sets apart from the first word; -1: there is none. */
static int glued(Parted *parted, int number)
{
    const Spaced *word = word_of(parted, number);
    int at = word->start;
    while (at < word->end && parted->text[at] - '0' < 10)
        at++;
    return word->start < at && at < word->end && parted->text[at] == '-' ? at + 1 : -1;
}

/* Where the text goes on behind brackets at `at`, as in "[Update] "; `at`: there are none. */
static int behind_brackets(const Parted *parted, int at)
{
    const uint32_t *text = parted->text;
    int start = at;
    while (start < parted->length && (is_space(text[start]) || is_one_of(text[start], dashes)))
        start++;
    if (start < parted->length && is_one_of(text[start], opens))
        for (int place = start + 1; place < start + ENCLOSED && place < parted->length - 1; place++)
            if (is_one_of(text[place], closes))
                return text[place] < 128 && ((text[place + 1] | 32) - 'a' < 26 || text[place + 1] - '0' < 10) ? at : place + 1;
    return at;
}

static int ends_sentence(const Parted *parted, int end)
{
    return is_one_of(parted->text[end - 1], ends) || (end > 1 && is_one_of(parted->text[end - 2], ends));
}

/* Where brackets begin that stand at `end` behind a sentence, as in ". (dpa)"; `end`: there are none. */
static int before_brackets(const Parted *parted, int end)
{
    const uint32_t *text = parted->text;
    if (is_one_of(text[end - 1], closes))
        for (int place = end - 2; place > 0 && place > end - 2 - ENCLOSED; place--)
            if (is_one_of(text[place], opens)) {
                int before = place - 1;
                while (before > 0 && is_space(text[before]))
                    before--;
                return ends_sentence(parted, before + 1) ? place : end;
            }
    return end;
}

static int behind_signs(Parted *parted, int number)
{
    while (number < parted->count - 1 && is_sign(parted, number))
        number++;
    return number;
}

/* The word behind "PARIS, 3 mai (AFP) - ", "@ann" or "3)" at word `first`; 0: there is none. */
static int behind_line(Parted *parted, int first)
{
    int dated = 0, comma = 0, stop = first + NEAR_SIGN < parted->count - 1 ? first + NEAR_SIGN : parted->count - 1;
    for (int number = first; number < stop; number++) {
        const Spaced *word = word_of(parted, number);
        uint32_t last = parted->text[word->end - 1];
        if (word->outer == word->end && !comma && number > first)
            continue; /* most words */
        int sign = is_sign(parted, number + 1), close = word->outer;
        if (number == first && (kinds_of(parted, number) & HANDLE || (last == ')' && kinds_of(parted, number) & A_NUMBER)))
            return number + 1;
        dated |= comma && kinds_of(parted, number) & A_NUMBER;
        comma |= last == ',';
        while (close < word->end && !is_one_of(parted->text[close], closes))
            close++;
        if ((dated && sign)
            || (close < word->end
                && (sign || last == ':' || is_one_of(last, dashes)
                    || (parted->text[word->start] == '/' && parted->text[word->outer] == '/'))))
            return behind_signs(parted, number + 1);
    }
    return 0;
}

/* Where the text starts behind a known edge at word *first, which becomes the word there; -1: there is none. */
static int piece_at_start(Parted *parted, int *first)
{
    const uint32_t *text = parted->text;
    int begin = *first, kinds = 0, capitals = 0, all_capitals = 1;
    while (begin < parted->count && is_sign(parted, begin))
        begin++;
    int line_behind = behind_line(parted, begin);
    if (line_behind) {
        *first = line_behind;
        return parted->words[line_behind].start;
    }
    int stop = begin + NEAR_KNOWN < parted->count - 1 ? begin + NEAR_KNOWN : parted->count - 1;
    for (int number = begin; number < stop; number++) {
        const Spaced *word = word_of(parted, number);
        int own = kinds_of(parted, number), sign = is_sign(parted, number), begins = kinds_of(parted, begin);
        if (!sign) {
            if (own & OTHER) {
                *first = number;
                return begins & OF_MARK ? glued(parted, number) : -1;
            }
            kinds |= own;
            all_capitals &= (own & CAPITALS) != 0;
            capitals += (own & (CAPITAL | OF_AGENCY)) == CAPITAL;
        }
        uint32_t last = text[word->end - 1];
        int enclosed = is_one_of(text[word->start], opens) && word->outer < word->end
                       && is_one_of(text[word->outer], closes);
        int apart = sign || last == ':' || ends_with(parted, word, '-') || ends_with(parted, word, '.');
        int line = apart || last == '.' || text[word->end] == '\n';
        if ((enclosed && own & OF_AGENCY) || (apart && (kinds & OF_AGENCY || begins & OF_MARK))
            || (line && begins & OF_BY && capitals > 1)
            || (sign && all_capitals && number > begin) || (last == ':' && all_capitals)) {
            *first = behind_signs(parted, number + 1);
            return parted->words[*first].start;
        }
    }
    return -1;
}

static int known_start(Parted *parted)
{
    int at = 0, first = 0;
    for (int behind; (behind = behind_brackets(parted, at)) > at;)
        at = behind;
    while (first < parted->count - 1 && parted->words[first].start < at)
        first++;
    for (int piece = 0; piece < MOST_PIECES; piece++) {
        int found = piece_at_start(parted, &first);
        if (found < 0)
            break;
        at = found;
    }
    return at;
}

/* Whether a word and the one after it begin a line like "Read more at ..." or "Source: ...". */
static int begins_more(Parted *parted, int number)
{
    const Spaced *word = parted->words + number, *next = word + 1;
    uint32_t first = parted->text[word->start];
    if (small_letter(first) == first && first != 0xA9)
        return 0;
    int kinds = kinds_of(parted, number);
    int colon = parted->text[word->end - 1] == ':' || (next->end == next->start + 1 && parted->text[next->start] == ':');
    return kinds & OF_MORE || (kinds & OF_BEGINS && kinds_of(parted, number + 1) & OF_GOES_ON)
           || (kinds & OF_SOURCE && colon) || (kinds & OF_RIGHTS && kinds_of(parted, number + 1) & A_NUMBER);
}

/* The word with which a known edge before word `end` begins; `end`: there is none. */
static int piece_at_end(Parted *parted, int end)
{
    int at = end;
    uint32_t last = parted->text[parted->words[end - 1].end - 1];
    while (at > 1 && kinds_of(parted, at - 1) & (LINK | HANDLE))
        at--;
    if (at < end)
        return at > 1 && kinds_of(parted, at - 1) & OF_SOURCE ? at - 1 : at;
    for (int number = end - 1; number > 0 && number > end - 1 - NEAR_KNOWN; number--) {
        uint32_t begins = parted->text[parted->words[number].start];
        if (begins - 'a' < 26 || begins - '0' < 10)
            continue; /* most words */
        int sign = is_sign(parted, number), opened = (last == ')' || last == ']') && (begins == '(' || begins == '[');
        if (sign || opened) {
            int names = number + sign < end, kinds = 0, is_short = end - number - sign <= SHORT_NAME;
            for (int i = number + sign; i < end; i++) {
                int own = kinds_of(parted, i);
                names &= (own & (CAPITAL | A_NUMBER | OF_JOINS)) != 0;
                kinds |= own;
            }
            int known = sign ? is_short
                                   && ((names && (begins == '|' || kinds & (OF_SITE | OF_AGENCY)))
                                       || ends_sentence(parted, parted->words[number - 1].end))
                             : kinds_of(parted, number) & OF_SOURCE || kinds & OF_AGENCY
                                   || (names && (kinds & OF_SITE || begins == '['));
            return known ? number : end;
        }
        if (number + 1 < end && begins_more(parted, number))
            return number;
    }
    return end;
}

static int known_end(Parted *parted)
{
    int whole = parted->words[parted->count - 1].end, stop = before_brackets(parted, whole), end = parted->count;
    while (end > 1 && parted->words[end - 1].start >= stop)
        end--;
    for (int piece = 0; piece < MOST_PIECES; piece++) {
        int before = piece_at_end(parted, end);
        if (before == end)
            break;
        end = before;
    }
    int at = end < parted->count ? parted->words[end].start : parted->length;
    return stop < whole && stop < at ? stop : at;
}

/* Where the text starts behind the last sign among its first words. */
static int start_set_apart(Parted *parted)
{
    int found = 0, stop = NEAR_SIGN < parted->count - 1 ? NEAR_SIGN : parted->count - 1;
    for (int number = 0; number < stop; number++) {
        const Spaced *word = parted->words + number;
        uint32_t last = parted->text[word->end - 1];
        int dashes = last == '-' && word->end > word->start + 1 && parted->text[word->end - 2] == '-';
        if ((number && is_sign(parted, number) && parted->text[word->start] != '|') || last == ':' || last == ')' || last == ']' || dashes)
            found = word[1].start;
    }
    return found;
}

/* Where the text ends before the first sign among its last words. */
static int end_set_apart(Parted *parted)
{
    for (int number = parted->count - NEAR_SIGN; number < parted->count; number++) {
        const Spaced *word = parted->words + number;
        uint32_t begins = parted->text[word->start];
        if ((is_sign(parted, number) && number < parted->count - 1) || begins == '(' || begins == '[')
            return word->start;
    }
    return parted->length;
}

/* Where the text between the edges starts and ends, see read_letters. 0: the text has no edges. */
static int find_edges(const uint8_t *bytes, const uint32_t *codes, int64_t length, int *start, int *end)
{
    Parted parted;
    if (!known_words || !length || length > MOST_LETTERS)
        return 0;
    read_letters(&parted, bytes, codes, (int)length);
    if (!parted.count)
        return 0;
    *start = known_start(&parted);
    *end = known_end(&parted);
    if (*end - *start < LEAST_INSIDE || 5 * (*end - *start) < 2 * parted.length)
        *start = 0, *end = parted.length;
    if (parted.count >= LONG_TEXT) {
        int far = start_set_apart(&parted), near = end_set_apart(&parted);
        far = far > *start ? far : *start;
        near = near < *end ? near : *end;
        if (2 * (near - far) >= parted.length)
            *start = far, *end = near;
    }
    return *start > 0 || *end < parted.length;
}
