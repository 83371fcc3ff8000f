/* The edges of a short text: text/edges.py says what they are and finds the same, step by step. */
#pragma once
#include <stdint.h>
#include <string.h>

enum { MOST_MARKED = 64, MOST_LETTERS = 1280, MOST_SPACED = 26 };
enum { LEAST_INSIDE = 24, MOST_PIECES = 4, NEAR_NAMES = 12, ENCLOSED = 32, MOST_SHORT = 3, NEAR_SIGN = 8, TAIL = 60, SENTENCE = 40 };
enum { CASELESS = 0x590 }; /* the first letter of the scripts without capitals, whose words all count as names */
enum { SHORT = 1, CAPITAL = 2, CAPITALS = 4, A_NUMBER = 8, HANDLE = 16, BY = 32, TOLD = 64 /* what kinds a word has is known */ };

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
static const uint32_t signs[] = {'-', 0x2013, 0x2014, '|', 0x2022, 0xB7, 0}; /* with a space on each side */
static const uint32_t ends[] = {'.', '!', '?', 0x2026, 0x964, 0x3002, 0xFF01, 0xFF1F, 0x61F, 0x6D4, 0}; /* of sentences */
static const uint32_t before_words[] = {'(', '[', '{', '/', '"', '\'', 0x201C, 0x201D, 0x201E, 0xAB, 0x2018, 0};
static const uint32_t after_words[] = {')', ']', '}', '/', '"', '\'', 0x201C, 0x201D, 0x2019, 0xBB, '.', ',', ':', ';',
                                       '!', '?', 0x2026, '-', 0x2013, 0x2014, 0};

enum { BLANK = 1, IN_WORD_TOO = 2 }; /* neither in before_words nor in after_words */

static uint8_t classes[256];

static void fill_classes(void)
{
    for (uint32_t letter = 0; letter < 256; letter++)
        classes[letter] = (letter | 32) - 'a' < 26 || letter - '0' < 10 || letter > 0xBB ? IN_WORD_TOO : 0;
    classes['\t'] = classes['\n'] = classes['\r'] = classes[' '] = classes[0xA0] = BLANK;
}

static inline int class_of(uint32_t letter)
{
    return letter < 256 ? classes[letter] : letter < 0x2000 ? IN_WORD_TOO : letter == 0x3000 ? BLANK : 0;
}

static inline int is_space(uint32_t letter) { return class_of(letter) & BLANK; }

static inline int is_in_word(uint32_t letter) { return class_of(letter) & IN_WORD_TOO; }

static uint32_t small_letter(uint32_t letter)
{
    if (letter - 0x100 < 0x80)
        return letter + ((letter & 1) == (letter - 0x139 < 0x11 || letter > 0x178));
    return letter - 'A' < 26 || (letter - 0xC0 < 31 && letter != 0xD7) || letter - 0x391 < 25 || letter - 0x410 < 32
               ? letter + 32
               : letter;
}

static int is_link(const uint32_t *letters, int length)
{
    static const char *const begins[] = {"http://", "https://", "www."};
    for (int which = 0; which < 3; which++) {
        int i = 0;
        while (begins[which][i] && i < length && letters[i] == (uint32_t)begins[which][i])
            i++;
        if (!begins[which][i])
            return 1;
    }
    return 0;
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

static int begins_byline(const uint32_t *letters, int length)
{
    static const char *const words[] = {"by", "von", "par", "por", "di", "da"};
    for (int which = 0; which < 6; which++) {
        int i = 0;
        while (i < length && words[which][i] && small_letter(letters[i]) == (uint32_t)words[which][i])
            i++;
        if (i == length && !words[which][i])
            return 1;
    }
    return 0;
}

static int tell_kinds(const uint32_t *letters, int length)
{
    if (!length)
        return 0;
    if (*letters == '@' || *letters == '#')
        return HANDLE;
    int kinds = length <= MOST_SHORT && *letters < CASELESS ? SHORT | (begins_byline(letters, length) ? BY : 0) : 0;
    if (small_letter(*letters) != *letters || *letters >= CASELESS)
        return kinds | CAPITAL | (length > 1 && consists_of(letters, length, 1) ? CAPITALS : 0);
    return consists_of(letters, length, 0) ? A_NUMBER : kinds;
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

/* Whether a text has a word of this number. Words are found when they are asked for: most edges are told by a few. */
static int has_word(Parted *parted, int number)
{
    const uint32_t *text = parted->text;
    while (parted->count <= number && parted->count < MOST_SPACED) {
        int start = parted->count ? parted->words[parted->count - 1].end : 0, end;
        while (start < parted->length && is_space(text[start]))
            start++;
        for (end = start; end < parted->length && !is_space(text[end]);)
            end++;
        if (start == end)
            return 0;
        parted->words[parted->count++] = (Spaced){.start = (int16_t)start, .end = (int16_t)end};
    }
    return number < parted->count;
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

/* The end of an edge that no space sets apart, "UPDATE 2-Oil", but not "US 2-year"; -1: there is none. */
static int glued(Parted *parted, int number)
{
    const Spaced *word = word_of(parted, number);
    int at = word->start;
    while (at < word->end && parted->text[at] - '0' < 10)
        at++;
    if (word->start == at || at + 1 >= word->end || parted->text[at] != '-')
        return -1;
    return tell_kinds(parted->text + at + 1, word->end - at - 1) & CAPITAL ? at + 1 : -1;
}

/* Where the text goes on behind brackets at `at`, as in "[Update] "; `at`: there are none. */
static int behind_brackets(const Parted *parted, int at)
{
    const uint32_t *text = parted->text;
    int start = at;
    while (start < parted->length && (is_space(text[start]) || is_one_of(text[start], dashes)))
        start++;
    if (start < parted->length && is_one_of(text[start], opens))
        for (int place = start + 1; place < parted->length - 1 && place < start + ENCLOSED; place++)
            if (is_one_of(text[place], closes))
                return place + 1;
    return at;
}

static int behind_signs(Parted *parted, int number)
{
    while (has_word(parted, number + 1) && is_sign(parted, number))
        number++;
    return number;
}

/* The word behind "PARIS, 3 mai (AFP) - ", "@ann" or "3)" at word `first`; 0: there is none. */
static int behind_line(Parted *parted, int first)
{
    int dated = 0, comma = 0, named = 1;
    for (int number = first; number < first + NEAR_SIGN && has_word(parted, number + 1); number++) {
        const Spaced *word = word_of(parted, number);
        uint32_t last = parted->text[word->end - 1];
        named = named && kinds_of(parted, number) & (CAPITAL | A_NUMBER);
        if (word->outer == word->end && !comma && number > first)
            continue; /* most words */
        int sign = is_sign(parted, number + 1), close = word->outer;
        if (number == first && (kinds_of(parted, number) & HANDLE || (last == ')' && kinds_of(parted, number) & A_NUMBER)))
            return number + 1;
        dated |= comma && kinds_of(parted, number) & A_NUMBER;
        comma |= last == ',';
        while (close < word->end && !is_one_of(parted->text[close], closes))
            close++;
        int stopped = last == '.' || (number && parted->text[word[-1].end - 1] == '.');
        stopped = stopped && (named || dated) && is_one_of(parted->text[word->start], opens)
                  && kinds_of(parted, number) & CAPITALS;
        if ((dated && sign) || (close < word->end && (sign || stopped || last == ':' || is_one_of(last, dashes))))
            return behind_signs(parted, number + 1);
    }
    return 0;
}

/* Where the text starts behind an edge at word *first, which becomes the word there; -1: there is none. */
static int piece_at_start(Parted *parted, int *first)
{
    const uint32_t *text = parted->text;
    int begin = *first, names = 0, all_capitals = 1;
    while (has_word(parted, begin) && is_sign(parted, begin))
        begin++;
    int line_behind = behind_line(parted, begin);
    if (line_behind) {
        *first = line_behind;
        return parted->words[line_behind].start;
    }
    for (int number = begin; number < begin + NEAR_NAMES && has_word(parted, number + 1); number++) {
        const Spaced *word = word_of(parted, number);
        int sign = is_sign(parted, number), own = sign ? 0 : kinds_of(parted, number);
        uint32_t last = text[word->end - 1];
        if (own == TOLD) {
            *first = number;
            return names && all_capitals ? glued(parted, number) : -1;
        }
        if (!sign) {
            all_capitals &= (own & (CAPITALS | A_NUMBER | HANDLE)) != 0;
            names += (own & CAPITAL) != 0;
        }
        int apart = sign || last == ':';
        if (!apart && last != '.' && text[word->end] != '\n')
            continue; /* most words */
        int begins = kinds_of(parted, begin);
        if ((apart && names && all_capitals) || (begins & BY && names >= 2 + !!(begins & CAPITAL))) {
            *first = behind_signs(parted, number + 1);
            return parted->words[*first].start;
        }
    }
    return -1;
}

static int start_of(Parted *parted)
{
    int at = 0, first = 0;
    for (int behind; (behind = behind_brackets(parted, at)) > at;)
        at = behind;
    while (has_word(parted, first + 1) && parted->words[first].start < at)
        first++;
    for (int piece = 0; piece < MOST_PIECES; piece++) {
        int found = piece_at_start(parted, &first);
        if (found < 0)
            break;
        at = found;
    }
    return at;
}

/* Where the tail of the text begins; its length: there is none. */
static int tail_of(const Parted *parted)
{
    const uint32_t *text = parted->text;
    int length = parted->length, at = length > TAIL ? length - TAIL : 0, last = length - 1;
    at = at > length / 2 ? at : length / 2;
    while (is_space(text[last]))
        last--;
    int end = -1; /* of the paragraph before the last one */
    for (int i = at; i < last - 1; i++)
        end = (text[i] == '\n') & (text[i + 1] == '\n') ? i : end;
    while (end > at && text[end - 1] == '\n')
        end--;
    at = end > at ? end : at;
    int sentence = length > SENTENCE ? length - SENTENCE : -1;
    for (int i = sentence > 0 ? sentence : 0; i < length; i++)
        sentence = (text[i] == ':') | (text[i] == 0xFF1A) ? i : sentence;
    for (at = at > 1 ? at : 1; at < last; at++) {
        uint32_t before = text[at - 1], letter = text[at];
        int ahead = is_in_word(letter), within = class_of(before);
        if (before < CASELESS && (within & IN_WORD_TOO ? class_of(letter) : ahead && letter != 'h' && letter != 'w'))
            continue; /* most letters: no sign, and no first one of a link */
        int spaced = is_space(before), begins = spaced || before >= CASELESS || letter >= CASELESS;
        if ((begins && (letter == '#' || letter == '@' || is_one_of(letter, opens)))
            || (spaced && is_space(text[at + 1]) && is_one_of(letter, signs))
            || (spaced && is_link(text + at, length - at))
            || (at >= sentence && (is_space(letter) || before >= CASELESS) && is_one_of(before, ends)))
            return at;
    }
    return length;
}

/* Where what is between the edges of a text of at most MOST_LETTERS starts and ends: `bytes` that are all ASCII, or `codes`. */
static void find_edges(const uint8_t *bytes, const uint32_t *codes, int length, int *start, int *end)
{
    Parted parted;
    *start = 0;
    *end = length;
    if (length <= LEAST_INSIDE)
        return;
    parted.length = length;
    parted.count = 0;
    for (int i = 0; bytes && i < length; i++)
        parted.text[i] = bytes[i];
    if (!bytes)
        memcpy(parted.text, codes, (size_t)length * sizeof *codes);
    if (!has_word(&parted, 0))
        return;
    int first = start_of(&parted), last = tail_of(&parted);
    if (last >= LEAST_INSIDE && 5 * last >= 2 * length)
        *end = last;
    if (*end - first >= LEAST_INSIDE && 5 * (*end - first) >= 2 * length)
        *start = first;
}

/* Copy what is between the edges of a text of at most MOST_LETTERS, and of each of its lines. Returns how many letters. */
static int copy_between_edges(const uint8_t *bytes, const uint32_t *codes, int length, void *copy)
{
    const char *text = bytes ? (const char *)bytes : (const char *)codes;
    size_t size = bytes ? sizeof *bytes : sizeof *codes;
    int start, end, copied = 0;
    find_edges(bytes, codes, length, &start, &end);
    for (int begin = start, stop; begin <= end; begin = stop + 1) {
        int first = 0, last;
        for (stop = begin; stop < end && (bytes ? bytes[stop] : codes[stop]) != '\n';)
            stop++;
        last = stop - begin;
        if (begin > start || stop < end)
            find_edges(bytes ? bytes + begin : NULL, bytes ? NULL : codes + begin, stop - begin, &first, &last);
        if (begin > start)
            memcpy((char *)copy + size * (size_t)copied++, text + size * (size_t)(begin - 1), size); /* the end of a line */
        first = begin > start ? first : 0;
        last = stop < end ? last : stop - begin;
        memcpy((char *)copy + size * (size_t)copied, text + size * (size_t)(begin + first), size * (size_t)(last - first));
        copied += last - first;
    }
    return copied;
}
