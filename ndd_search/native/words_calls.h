/* The words of texts, or their stems, as text: units of text/shingles.py are hashed from it. */
#pragma once
#include "text_calls.h"

enum { SHORT_WORD = 3 }; /* letters: as in text/sentences.py */

typedef struct {
    uint8_t *bytes; /* UTF-8 */
    int64_t count, room;
} Written;

/* Room for more bytes. 0: no memory. */
static int reserve(Written *written, int64_t more)
{
    if (written->count + more <= written->room)
        return 1;
    uint8_t *larger = with_room(written->bytes, &written->room, written->count + more, sizeof *larger);
    if (larger)
        written->bytes = larger;
    return larger != NULL;
}

/* Replace what was written from `start` on, a word, by its stem. 0: an error was raised, or there is no memory. */
static int write_stem(Written *written, int64_t start, PyObject *stems)
{
    const char *bytes = (const char *)written->bytes + start;
    PyObject *word = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)(written->count - start), "surrogatepass");
    PyObject *stem = word ? PyObject_GetItem(stems, word) : NULL;
    Py_ssize_t length = 0;
    const char *found = stem && PyUnicode_Check(stem) ? PyUnicode_AsUTF8AndSize(stem, &length) : NULL;
    written->count = start;
    int fine = found && reserve(written, length + 1);
    if (fine) {
        memcpy(written->bytes + start, found, (size_t)length);
        written->count += length;
    }
    Py_XDECREF(word);
    Py_XDECREF(stem);
    return fine;
}

/* Write a word from `first` on, or its stem, and a space. 0: as above. */
static int write_word(Written *written, const Source *source, int64_t first, int64_t length, PyObject *stems)
{
    int64_t start = written->count;
    if (!reserve(written, 4 * length + 1))
        return 0;
    uint8_t *next = written->bytes + start;
    for (int64_t i = first; i < first + length; i++) {
        uint32_t c = point_at(source, i, !source->bytes);
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
        *next++ = (uint8_t)(more ? (0xFF00u >> (more + 1)) | c >> 6 * more : c);
        while (more--)
            *next++ = (uint8_t)(0x80 | (c >> 6 * more & 0x3F));
    }
    written->count = next - written->bytes;
    if (stems && !write_stem(written, start, stems))
        return 0;
    written->bytes[written->count++] = ' ';
    return 1;
}

/* Write the words of a text, and the end of a line. 0: as above, or it is left to Python. */
static int write_words(Written *written, Tools *tools, const Text *text, PyObject *stems)
{
    const Source source = clean(tools, text->bytes, text->codes, text->length);
    int64_t start = written->count;
    for (int64_t i = 0, first = 0; i <= source.length; i++)
        if (i == source.length || !point_at(&source, i, !source.bytes)) {
            if (i - first > (stems ? SHORT_WORD : 0) && !write_word(written, &source, first, i - first, stems))
                return 0;
            first = i + 1;
        }
    written->count -= written->count > start; /* the last space */
    if (source.length < 0 || !reserve(written, 1))
        return 0;
    written->bytes[written->count++] = '\n';
    return 1;
}

static PyObject *words_of(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *result = NULL, *stems;
    Tools tools;
    Batch batch;
    Written written = {0};
    int fine = get_batch(&batch, &tools, arguments, "Oy#OOO:words_of", &stems);
    for (int64_t i = 0; fine > 0 && i < batch.count; i++)
        fine = write_words(&written, &tools, batch.texts + i, stems == Py_None ? NULL : stems);
    if (fine > 0)
        result = bytes_of(written.bytes, written.count);
    free(written.bytes);
    return end_batch(&batch, &tools, result);
}
