/* Hashes of lines, and of sentences of stems: text/sentences.py says what a sentence is, text/shingles.py the formulas.
 *
 * Between two units stand characters that belong to no word, so each is cleaned by itself. Stems come from Python, and
 * those of the last words are kept.
 */
#pragma once
#include "text_calls.h"

enum { MOST_STEMS = 1 << 17, SHORT_WORD = 3 }; /* words; letters */

typedef struct {
    void *items;
    int64_t count, room;
} Growing;

/* Room for more items of a size. 0: no memory. */
static int reserve(Growing *array, int64_t more, size_t size)
{
    if (array->count + more <= array->room)
        return 1;
    int64_t room = 2 * (array->count + more) + BLOCK;
    void *larger = realloc(array->items, (size_t)room * size);
    if (larger)
        array->items = larger, array->room = room;
    return larger != NULL;
}

typedef struct {
    uint64_t sum, token; /* of the letters of a word times secret numbers, and the token of its stem */
    int64_t place;       /* of its stem in known.stems; -1: an empty slot */
    int64_t length;
} Known;

/* Words and their stems by one stemmer, read and written with the interpreter lock held. Of two different words of a text the
   sums are equal with a probability below 2**-40, whoever chose them. */
static struct {
    PyObject *stemmer;
    Known *slots;
    int64_t count, mask;
    Growing stems; /* in UTF-8, a space after each */
    uint64_t secret[BLOCK + 1];
} known;

/* The slot of a word, or the empty one where it would be. */
static Known *slot_of_word(uint64_t sum)
{
    for (int64_t at = (int64_t)((sum ^ sum >> 32) * B >> 32) & known.mask;; at = (at + 1) & known.mask)
        if (known.slots[at].place < 0 || known.slots[at].sum == sum)
            return known.slots + at;
}

/* Get ready for a stemmer, and for `more` words in all; those of another stemmer are forgotten. 0: no memory. */
static int know_stemmer(PyObject *stemmer, int64_t more)
{
    if (known.stemmer != stemmer || known.count > MOST_STEMS) {
        Py_XDECREF(known.stemmer);
        known.stemmer = Py_NewRef(stemmer);
        known.count = known.stems.count = 0;
        free(known.slots);
        known.slots = NULL;
    }
    int64_t slots = 1 << 12;
    while (slots < 2 * (known.count + more))
        slots *= 2;
    if (known.slots && known.mask >= slots - 1)
        return 1;
    Known *old = known.slots, *larger = malloc((size_t)slots * sizeof *larger);
    int64_t before = old ? known.mask + 1 : 0;
    if (!larger)
        return 0;
    known.slots = larger, known.mask = slots - 1;
    for (int64_t i = 0; i < slots; i++)
        larger[i].place = -1;
    for (int64_t i = 0; i < before; i++)
        if (old[i].place >= 0)
            *slot_of_word(old[i].sum) = old[i];
    free(old);
    return 1;
}

/* Add a word in UTF-8, and a space. 0: no memory. */
static int add_bytes(Growing *growing, const uint32_t *word, int64_t length)
{
    if (!reserve(growing, 4 * length + 1, 1))
        return 0;
    uint8_t *bytes = (uint8_t *)growing->items + growing->count, *next = bytes;
    for (int64_t i = 0; i < length; i++) {
        uint32_t c = word[i];
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
        *next++ = (uint8_t)(more ? (0xFF00u >> (more + 1)) | c >> 6 * more : c);
        while (more--)
            *next++ = (uint8_t)(0x80 | (c >> 6 * more & 0x3F));
    }
    *next++ = ' ';
    growing->count += next - bytes;
    return 1;
}

/* The letters of a text times factors, and the text itself: BLOCK letters at most. 0: it is none. */
static int read_word(PyObject *text, uint32_t *word, int64_t *length, const uint64_t *factors, uint64_t *sum)
{
    if (!PyUnicode_Check(text) || (*length = PyUnicode_GetLength(text)) > BLOCK || !PyUnicode_AsUCS4(text, word, BLOCK + 1, 1))
        return 0;
    *sum = 0;
    for (int64_t i = 0; i < *length; i++)
        *sum += word[i] * factors[i];
    return 1;
}

/* Learn the stems of words. 0: an error was raised, there is no memory, or a stem is too long. */
static int learn(PyObject *words, PyObject *stemmer)
{
    Py_ssize_t count = PyList_Size(words);
    PyObject *stems = PyObject_CallFunctionObjArgs(stemmer, words, NULL);
    int fine = stems && PyList_Check(stems) && PyList_Size(stems) == count && know_stemmer(stemmer, count);
    for (Py_ssize_t i = 0; fine && i < count; i++) {
        uint32_t word[BLOCK + 1];
        int64_t length, place = known.stems.count;
        uint64_t sum, token;
        fine = read_word(PyList_GetItem(words, i), word, &length, known.secret, &sum)
            && read_word(PyList_GetItem(stems, i), word, &length, of_p.power, &token);
        Known *slot = fine ? slot_of_word(sum) : NULL;
        if (slot && slot->place < 0 && (fine = add_bytes(&known.stems, word, length))) {
            *slot = (Known){sum, token * A, place, known.stems.count - place};
            known.count++;
        }
    }
    Py_XDECREF(stems);
    return fine;
}

typedef struct {
    int sentences, crc; /* else lines; else mix64 */
    int64_t size;
    uint64_t seed;
    PyObject *stemmer; /* NULL: none */
    PyObject *unknown; /* words whose stems are not known */
    Growing words;     /* of the units of one text, uint64: those of stems; for a CRC in UTF-8, a space after each */
    Growing ends;      /* where each unit ends there, int64 */
    Growing folded;    /* a unit in ASCII, uint32 */
    Growing hashes;    /* uint64 */
} Units;

static uint32_t code_of(const Text *text, int64_t i) { return text->bytes ? text->bytes[i] : text->codes[i]; }

/* As str.isspace. */
static int is_white(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680
        || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* As _IN_WORD and the capitals of sentences.py. */
static int joins_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z') || (c >= 0xC0 && c <= 0x24F)
        || (c >= 0x370 && c <= 0x52F);
}

static int is_capital(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x410 && c <= 0x42F);
}

/* Whether a full stop belongs to an abbreviation. */
static int is_abbreviated(const Text *text, int64_t stop)
{
    static const char *const titles[] = {"Mr", "Ms", "Dr", "St", "Mrs", "Prof"};
    if (stop > 0 && is_capital(code_of(text, stop - 1)) && (stop == 1 || !joins_word(code_of(text, stop - 2))))
        return 1;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        int64_t start = stop - (int64_t)strlen(titles[i]), at = start;
        if (start < 0 || (start > 0 && joins_word(code_of(text, start - 1))))
            continue;
        while (at < stop && code_of(text, at) == (uint8_t)titles[i][at - start])
            at++;
        if (at == stop)
            return 1;
    }
    return 0;
}

static int ends_sentence(const Text *text, int64_t at, uint32_t c)
{
    int64_t next = at + 1;
    switch (c) {
    case '\n':
        while (next < text->length && code_of(text, next) != '\n' && is_white(code_of(text, next)))
            next++;
        return next < text->length && code_of(text, next) == '\n';
    case 0x3002: case 0xFF01: case 0xFF1F: case 0xFF61:
        return 1;
    case '.':
        if (is_abbreviated(text, at))
            return 0; /* fall through */
    case '!': case '?': case 0x2026: case 0x61F: case 0x6D4: case 0x964: case 0x965:
        for (; next < text->length; next++) {
            uint32_t closing = code_of(text, next);
            if (closing != '"' && closing != '\'' && closing != ')' && closing != ']' && closing != 0xBB && closing != 0x2019
                && closing != 0x201D)
                return is_white(closing);
        }
    }
    return 0;
}

/* As str.splitlines. */
static int ends_line(uint32_t c)
{
    return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* Where the unit ends that starts here. */
static int64_t end_of_unit(const Units *units, const Text *text, int64_t start)
{
    static const uint8_t may_end[128] = {[10] = 1, [11] = 1, [12] = 1, [13] = 1, [28] = 1, [29] = 1, [30] = 1, ['.'] = 1, ['!'] = 1, ['?'] = 1};
    for (int64_t i = start; i < text->length; i++) {
        while (text->bytes && i < text->length - 1 && !may_end[text->bytes[i]])
            i++;
        uint32_t c = code_of(text, i);
        if ((c > 127 || may_end[c]) && (units->sentences ? ends_sentence(text, i, c) : ends_line(c)))
            return i;
    }
    return text->length;
}

/* Add a word, or its stem. sum: of its letters times secret numbers, or powers of P. 0: no memory, or left to Python. */
static int add_word(Units *units, const uint32_t *word, int64_t length, uint64_t sum)
{
    uint64_t token = sum * A;
    const Known *slot = NULL;
    if (units->sentences && length <= SHORT_WORD)
        return 1;
    if (units->stemmer) {
        slot = slot_of_word(sum);
        if (slot->place < 0) {
            PyObject *text = PyUnicode_DecodeUTF32((const char *)word, (Py_ssize_t)length * 4, "surrogatepass", NULL);
            int fine = text && !PyList_Append(units->unknown, text);
            Py_XDECREF(text);
            return fine;
        }
        token = slot->token;
    }
    if (units->crc && !slot)
        return add_bytes(&units->words, word, length);
    if (!reserve(&units->words, units->crc ? slot->length : 1, units->crc ? 1 : sizeof token))
        return 0;
    if (units->crc) {
        memcpy((char *)units->words.items + units->words.count, (char *)known.stems.items + slot->place, (size_t)slot->length);
        units->words.count += slot->length;
    } else
        ((uint64_t *)units->words.items)[units->words.count++] = token;
    return 1;
}

/* Read the words of a unit. 0: as above. */
static int read_unit(Units *units, const uint32_t *points, int64_t length)
{
    const uint64_t *factors = units->stemmer ? known.secret : of_p.power;
    uint64_t sum = 0;
    for (int64_t i = 0, first = 0; i <= length; i++) {
        if (i < length && points[i]) {
            if (i - first == BLOCK)
                return 0;
            sum += points[i] * factors[i - first];
            continue;
        }
        if (i > first && !add_word(units, points + first, i - first, sum))
            return 0;
        first = i + 1, sum = 0;
    }
    return 1;
}

/* Read the words of a text. 0: as above. */
static int read_units(Units *units, Cleaner *cleaner, const Text *text)
{
    units->words.count = units->ends.count = 0;
    for (int64_t start = 0, end; start < text->length; start = end + 1) {
        end = end_of_unit(units, text, start);
        int64_t length = end - start, before = units->words.count;
        uint32_t *points = NULL;
        if (!text->bytes) {
            length = clean_text(cleaner, text->codes + start, length);
            points = cleaner->points;
        } else if (reserve(&units->folded, length, sizeof *points)) {
            points = units->folded.items;
            for (int64_t i = 0; i < length; i++)
                points[i] = clean_ascii(text->bytes[start + i]);
        } else
            return 0;
        if (length < 0 || !read_unit(units, points, length) || !reserve(&units->ends, 1, sizeof(int64_t)))
            return 0;
        if (units->words.count > before)
            ((int64_t *)units->ends.items)[units->ends.count++] = units->words.count;
    }
    return 1;
}

static uint64_t mixed(const uint64_t *tokens, int64_t count, uint64_t seed)
{
    uint64_t state = seed * R * A, power = 1;
    for (int64_t i = 0; i < count; i++, power *= Q)
        state += tokens[i] * power;
    return (state ^ state >> 32) * B;
}

static uint32_t crc_table[4][256]; /* of a byte, and of one that 1 to 3 bytes follow */

/* Before the first call; `secret`: a random number. */
static void fill_units(uint64_t secret)
{
    for (int i = 0; i <= BLOCK; i++) {
        secret += P; /* as splitmix64 */
        uint64_t x = (secret ^ secret >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        known.secret[i] = x ^ x >> 31;
    }
    for (int i = 0; i < 4 * 256; i++) {
        uint32_t entry = i < 256 ? (uint32_t)i : crc_table[i / 256 - 1][i % 256];
        for (int bit = 0; bit < 8; bit++)
            entry = entry >> 1 ^ (entry & 1 ? 0xEDB88320u : 0);
        crc_table[i / 256][i % 256] = entry;
    }
}

/* The CRC-32 of bytes, in the high half. */
static uint64_t crc_of(const uint8_t *bytes, int64_t count)
{
    uint32_t crc = UINT32_MAX;
    for (; count >= 4; bytes += 4, count -= 4) {
        crc ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        crc = crc_table[3][crc & 0xFF] ^ crc_table[2][crc >> 8 & 0xFF] ^ crc_table[1][crc >> 16 & 0xFF] ^ crc_table[0][crc >> 24];
    }
    while (count--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *bytes++) & 0xFF];
    return (uint64_t)~crc << 32;
}

/* Hash every `size` units of the text that was read. 0: no memory. */
static int hash_windows(Units *units)
{
    int64_t number = units->ends.count, size = number < units->size ? number : units->size;
    int64_t windows = number ? number - size + 1 : 0;
    const int64_t *ends = units->ends.items;
    if (!reserve(&units->hashes, windows, sizeof(uint64_t)))
        return 0;
    for (int64_t i = 0; i < windows; i++) {
        int64_t start = i ? ends[i - 1] : 0, length = ends[i + size - 1] - start;
        ((uint64_t *)units->hashes.items)[units->hashes.count++] = units->crc
            ? crc_of((const uint8_t *)units->words.items + start, length - 1)
            : mixed((const uint64_t *)units->words.items + start, length, units->seed);
    }
    return 1;
}

/* Hash texts. counts: of the hashes of each. 0: no memory, no text, or left to Python. */
static int hash_texts(Units *units, PyObject *items, const char *is_ascii, Tools *tools, int64_t *counts)
{
    Growing codes = {0}; /* uint32 */
    int fine = 1;
    units->hashes.count = 0;
    for (Py_ssize_t i = 0; fine && i < PyTuple_Size(items); i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        int64_t before = units->hashes.count;
        Text text;
        fine = (is_ascii[i] || !PyUnicode_Check(item) || reserve(&codes, PyUnicode_GetLength(item) + 1, sizeof(uint32_t)))
            && get_text(&text, item, is_ascii[i], tools, codes.items) && read_units(units, &tools->cleaner, &text)
            && (PyList_Size(units->unknown) > 0 || hash_windows(units));
        counts[i] = units->hashes.count - before;
    }
    free(codes.items);
    return fine;
}

PyDoc_STRVAR(hash_units_doc, "hash_units(texts, is_ascii, plan, table, crc, stemmer) -> (hashes, counts), or None.\n\n"
                             "They are bytes of uint64 and int64. stemmer: from a list of words to their stems, or None.");

static PyObject *hash_units(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sequence, *plan, *table, *stemmer, *result = NULL;
    const char *is_ascii;
    Py_ssize_t number;
    Tools tools;
    Units units = {0};
    if (!PyArg_ParseTuple(arguments, "Oy#OOpO", &sequence, &is_ascii, &number, &plan, &table, &units.crc, &stemmer))
        return NULL;
    PyObject *items = PySequence_Tuple(sequence);
    if (!items)
        return NULL;
    int64_t *counts = malloc((size_t)number * sizeof *counts + 1);
    if (get_tools(&tools, plan, table) && counts && PyTuple_Size(items) == number && (units.unknown = PyList_New(0))) {
        units.stemmer = stemmer == Py_None ? NULL : stemmer;
        units.sentences = !tools.recipe.words;
        units.size = tools.recipe.size;
        units.seed = tools.recipe.seed;
        int fine = (!units.stemmer || know_stemmer(stemmer, 0)) && hash_texts(&units, items, is_ascii, &tools, counts);
        if (fine && PyList_Size(units.unknown) > 0) {
            fine = learn(units.unknown, stemmer) && !PyList_SetSlice(units.unknown, 0, PyList_Size(units.unknown), NULL)
                && hash_texts(&units, items, is_ascii, &tools, counts) && !PyList_Size(units.unknown);
        }
        if (fine)
            result = Py_BuildValue("NN", bytes_of(units.hashes.items, units.hashes.count * (int64_t)sizeof(uint64_t)),
                                   bytes_of(counts, number * (int64_t)sizeof(int64_t)));
    }
    free(counts);
    free(units.words.items);
    free(units.ends.items);
    free(units.folded.items);
    free(units.hashes.items);
    Py_XDECREF(units.unknown);
    free_tools(&tools);
    Py_DECREF(items);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
