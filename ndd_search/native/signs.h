/* Which of the signs + # - < > count: the same as text/signs.py, which has the rule. */
#pragma once
#include <stdint.h>
#include <string.h>

enum { SEPARATES, IN_WORD, ALONE }; /* what a sign does */
enum { BEFORE_DASH = 3 };                 /* letters of a word that may end with - */

/* What stands around a sign. */
typedef struct {
    int word;    /* the sign is directly behind a letter or digit, */
    int letters; /* and that many letters and no digit are its word, if they are at most BEFORE_DASH */
    int apart;   /* behind something else that is no token by itself but a character of a script without spaces */
    int sign;    /* behind another sign */
    int first;   /* of a line */
    int number;  /* before a number, */
    int later;   /* or before a space and a number */
    int last;    /* before what separates tokens, but no sign and no line break */
} Around;

static int role_of(uint32_t sign, const Around *around)
{
    if (sign == '<' || sign == '>')
        return (around->number || around->later) && !around->sign && !around->first ? ALONE : SEPARATES;
    if (sign != '-' && around->word)
        return IN_WORD;
    if (sign != '#' && around->number && around->apart && !around->sign)
        return IN_WORD;
    return sign == '-' && around->last && around->letters ? IN_WORD : SEPARATES;
}

static int is_digit(uint32_t point) { return point - '0' < 10; }

static int is_a_sign(uint32_t point)
{
    return point == '+' || point == '#' || point == '-' || point == '<' || point == '>';
}

static int ends_line(uint32_t point) { return point == '\n' || point == '\r'; }

/* What follows is for texts that are all ASCII. */

static inline uint8_t clean_ascii(uint8_t c)
{
    uint8_t lower = c | 0x20; /* which digits are already */
    return ((uint8_t)(lower - 'a') < 26) | ((uint8_t)(c - '0') < 10) ? lower : 0;
}

/* Signs, and $ and %. */
static inline uint8_t may_count(uint8_t c)
{
    return ((uint8_t)(c - '#') < 3) | (c == '+') | (c == '-') | ((c | 2) == '>');
}

static int is_alone(uint8_t clean) { return clean == '$' || clean == '%' || clean == '<' || clean == '>'; }

static int begins_number(const uint8_t *text, int64_t left)
{
    return left > 0 && (is_digit(*text) || *text == '$' || (*text == '.' && left > 1 && is_digit(text[1])));
}

/* The role of text[at]; clean: what stands before it, `count` characters. */
static int role_in(const uint8_t *text, int64_t length, int64_t at, const uint8_t *clean, int64_t count)
{
    const uint8_t before = at ? text[at - 1] : 0, ahead = at + 1 < length ? text[at + 1] : 0, *next = text + at + 1;
    if (text[at] == '$' || text[at] == '%')
        return ALONE;
    if (text[at] == '-' && (clean_ascii(ahead) > '9' || is_digit(before) || (before == ' ' && before == ahead)))
        return SEPARATES;
    Around around = {
        .word = clean_ascii(before) || ((before == '+' || before == '#') && count && clean[count - 1]),
        .apart = before != '$' && before != '%',
        .sign = is_a_sign(before),
        .first = !before || ends_line(before),
        .number = begins_number(next, length - at - 1),
        .later = ahead == ' ' && begins_number(next + 1, length - at - 2),
        .last = !clean_ascii(ahead) && !may_count(ahead) && !ends_line(ahead),
    };
    around.apart = around.apart && !around.word;
    for (int64_t i = count; around.word && i && clean[i - 1] && !is_alone(clean[i - 1]); i--)
        if (is_digit(clean[i - 1]) || ++around.letters > BEFORE_DASH) {
            around.letters = 0;
            break;
        }
    return role_of(text[at], &around);
}

enum { PIECE = 64 };

/* Eight bytes as a number whose lowest byte is the first one. */
static inline uint64_t in_order(uint64_t eight)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(eight);
#else
    return eight;
#endif
}

/* The number of the lowest byte that is 1, of eight that are 0 or 1. */
static inline int64_t first_of(uint64_t marks)
{
    return (int64_t)((marks & (0 - marks)) * UINT64_C(0x0001020304050607) >> 56);
}

static inline uint8_t hyphen_before(uint8_t sign, uint8_t ahead)
{
    return (sign == '-') & ((uint8_t)((ahead | 0x20) - 'a') < 26);
}

/* Clean up to PIECE characters as if no sign counted, and mark the signs. Returns 0 if there are none. */
static uint8_t clean_piece(const uint8_t *restrict text, int64_t size, uint8_t *restrict clean,
                           uint8_t *restrict marked)
{
    uint8_t any = 0;
    for (int64_t i = 0; i < size; i++) {
        uint8_t sign = may_count(text[i]) & !hyphen_before(text[i], text[i + 1]);
        clean[i] = clean_ascii(text[i]);
        marked[i] = sign;
        any |= sign;
    }
    return any;
}

/* Clean a text, behind which a byte may be read; apart: whether signs that are ALONE are set apart; clean: room for twice its length and two PIECEs.
   Returns the number of characters: small letters, digits, signs that count, and 0 for what separates tokens.
   Inside its caller, this would make the loops of texts in other scripts up to a third slower. */
KEPT_APART static int64_t clean_bytes(const uint8_t *text, int64_t length, int apart, uint8_t *clean)
{
    uint64_t eight[PIECE / 8] = {0}; /* not 0 where one of eight characters may count */
    uint8_t piece[2 * PIECE] = {0}, *marked = (uint8_t *)eight;
    int64_t count = 0;
    for (int64_t start = 0, size; start < length; start += size) {
        size = length - start < PIECE ? length - start : PIECE;
        int64_t done = 0;
        uint8_t any = size == PIECE ? clean_piece(text + start, PIECE, clean + count, marked)
                                    : clean_piece(text + start, size, clean + count, marked);
        if (any && size < PIECE)
            memset(marked + size, 0, (size_t)(PIECE - size));
        if (any)
            memcpy(piece, clean + count, PIECE);
        for (int64_t of_eight = 0, i; any && of_eight < PIECE; of_eight += 8)
            for (uint64_t left = in_order(eight[of_eight / 8]); left; left &= left - 1) {
                i = of_eight + first_of(left);
                count += i - done, done = i;
                int role = role_in(text, length, start + i, clean, count);
                if (role != SEPARATES)
                    clean[count] = text[start + i];
                if (role != ALONE || !apart)
                    continue;
                if (count && clean[count - 1])
                    clean[count++] = 0;
                clean[count++] = text[start + i];
                clean[count++] = 0;
                memcpy(clean + count, piece + i + 1, PIECE); /* more than is left: no loop */
                done = i + 1;
            }
        count += size - done;
    }
    return count;
}
