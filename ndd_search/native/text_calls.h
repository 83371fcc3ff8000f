/* What Python calls to sketch texts; arrays go back as bytes. */
#pragma once
#include "stable_abi.h"
#include "clean.h"
#include "edges.h"
#include "sketch.h"

/* What a thread needs to sketch texts one after the other. */
typedef struct {
    Recipe recipe;
    Key key; /* of a recipe that has one */
    int32_t *scratch;
    Cleaner cleaner;
    uint8_t *bytes; /* clean ones, room for so many */
    int64_t room;
    int32_t few[2 * (4 * COMMON_K + ROOM)]; /* the scratch of a recipe with no larger k: no memory to ask for */
} Tools;

typedef struct {
    const uint8_t *bytes;  /* all ASCII, */
    const uint32_t *codes; /* or code points */
    int64_t length;
} Text;

enum { WORTH = 10000 }; /* characters, above which sketching takes so long that other threads are let in */

/* plan: (words, size, seed or the numbers of a key, k). 0: it is none, or the table is no bytes, or there is no memory. */
static int get_tools(Tools *tools, PyObject *plan, PyObject *table)
{
    Recipe *recipe = &tools->recipe;
    Cleaner *cleaner = &tools->cleaner;
    tools->scratch = NULL;
    tools->bytes = NULL;
    tools->room = 0;
    *cleaner = (Cleaner){0};
    if (!PyTuple_Check(plan) || PyTuple_Size(plan) != 4)
        return 0;
    recipe->words = PyObject_IsTrue(PyTuple_GetItem(plan, 0));
    recipe->size = PyLong_AsLongLong(PyTuple_GetItem(plan, 1));
    PyObject *seed = PyTuple_GetItem(plan, 2);
    recipe->seed = 0;
    recipe->key = NULL;
    if (!PyBytes_Check(seed))
        recipe->seed = PyLong_AsUnsignedLongLong(seed);
    else if (PyBytes_Size(seed) == NUMBERS * (Py_ssize_t)sizeof(uint64_t))
        recipe->key = fill_key(&tools->key, PyBytes_AsString(seed));
    else
        recipe->size = 0; /* refused below */
    recipe->k = PyLong_AsLongLong(PyTuple_GetItem(plan, 3));
    if (table != Py_None && PyBytes_Check(table)) {
        cleaner->table = (const uint32_t *)PyBytes_AsString(table);
        cleaner->table_size = PyBytes_Size(table) / (int64_t)sizeof(uint32_t);
    }
    cleaner->ignored = recipe->words ? 0 : SINGLE;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (recipe->size < 1 || recipe->size > MOST_SIZE || recipe->k < 1 || recipe->k > MOST_K)
        return 0;
    tools->scratch = tools->few;
    if (recipe->k > COMMON_K)
        tools->scratch = malloc((size_t)(2 * room_for(recipe->k)) * sizeof *tools->scratch);
    return tools->scratch != NULL;
}

static void free_tools(Tools *tools)
{
    if (tools->scratch != tools->few)
        free(tools->scratch);
    free(tools->cleaner.points);
    free(tools->bytes);
}

/* Clean a text. Its length is -1 if it is left to numpy, or there is no memory. */
static Source clean(Tools *tools, const uint8_t *bytes, const uint32_t *codes, int64_t length)
{
    Source source = {NULL, NULL, -1};
    if (!bytes) {
        source.length = clean_text(&tools->cleaner, codes, length);
        source.points = tools->cleaner.points;
        return source;
    }
    if (2 * length + 2 * PIECE > tools->room) {
        free(tools->bytes);
        tools->room = 2 * length + 2 * PIECE;
        tools->bytes = malloc((size_t)tools->room);
    }
    if (tools->bytes)
        source.length = clean_bytes(bytes, length, !tools->cleaner.ignored, tools->bytes);
    source.bytes = tools->bytes;
    return source;
}

/* A text as it is sketched; codes: room for the code points of one that is not ASCII. 0: it is no text. */
static int get_text(Text *text, PyObject *object, int is_ascii, const Tools *tools, uint32_t *codes)
{
    Py_ssize_t length = 0;
    *text = (Text){0};
    if (!PyUnicode_Check(object))
        return 0;
    text->length = PyUnicode_GetLength(object);
    if (is_ascii) {
        text->bytes = (const uint8_t *)PyUnicode_AsUTF8AndSize(object, &length);
        return text->bytes && length == text->length;
    }
    text->codes = codes;
    return tools->cleaner.table_size >= CODE_POINTS && codes && PyUnicode_AsUCS4(object, codes, text->length, 0);
}

/* Make those of `count` even values in tools->scratch odd whose shingles touch an edge of the text wherever they occur: all
   but those of the text between its edges. Returns count, -1: the text is left to numpy. */
static int64_t mark_edges(Tools *tools, const Text *text, int64_t count)
{
    uint32_t letters[MOST_LETTERS];
    int32_t values[MOST_MARKED];
    if (count >= tools->recipe.k || count >= MOST_MARKED)
        return count; /* of a sample or a longer text, nobody asks what is inside */
    int length = copy_between_edges(text->bytes, text->codes, (int)text->length, letters);
    if (length == text->length)
        return count;
    if (text->bytes)
        ((uint8_t *)letters)[length] = 0;
    Source inside = clean(tools, text->bytes ? (const uint8_t *)letters : NULL, letters, length);
    if (inside.length < 0)
        return -1;
    memcpy(values, tools->scratch, (size_t)count * sizeof *values);
    int64_t inner = sketch_source(&inside, &tools->recipe, tools->scratch), at = 0;
    for (int64_t i = 0; i < count; i++) {
        while (at < inner && tools->scratch[at] < values[i])
            at++;
        values[i] |= at == inner || tools->scratch[at] != values[i];
    }
    memcpy(tools->scratch, values, (size_t)count * sizeof *values);
    return count;
}

/* Sketch a text into tools->scratch. Returns the number of values, -1: it is left to numpy. */
static int64_t sketch_any(Tools *tools, const Text *text)
{
    Source source = clean(tools, text->bytes, text->codes, text->length);
    if (source.length < 0)
        return -1;
    int64_t count = sketch_source(&source, &tools->recipe, tools->scratch);
    return tools->recipe.words && text->length <= MOST_LETTERS ? mark_edges(tools, text, count) : count;
}

static PyObject *sketch_text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t number)
{
    Tools tools;
    Text text;
    PyObject *result = NULL;
    uint32_t *codes = NULL;
    int64_t count = -1;
    if (number != 3) {
        PyErr_SetString(PyExc_TypeError, "sketch_text takes a text, a plan and a table");
        return NULL;
    }
    if (get_tools(&tools, arguments[1], arguments[2])) {
        int is_ascii = arguments[2] == Py_None;
        if (!is_ascii && PyUnicode_Check(arguments[0]))
            codes = malloc((size_t)PyUnicode_GetLength(arguments[0]) * sizeof *codes + 1);
        if (get_text(&text, arguments[0], is_ascii, &tools, codes)) {
            if (text.length > WORTH) {
                Py_BEGIN_ALLOW_THREADS
                count = sketch_any(&tools, &text);
                Py_END_ALLOW_THREADS
            } else
                count = sketch_any(&tools, &text);
        }
        PyErr_Clear();
        if (count >= 0)
            result = bytes_of(tools.scratch, count * (int64_t)sizeof(int32_t));
    }
    free(codes);
    free_tools(&tools);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* Many texts. items keeps them alive; codes: the code points of those that are not ASCII. */
typedef struct {
    PyObject *items;
    int64_t count;
    Text *texts;
    uint32_t *codes;
} Batch;

/* Read the texts of a call; stems: a last argument, for a format that has one. 1: done, 0: something is no text or no plan,
 * or there is no memory, -1: it is an error. end_batch follows in any case. */
static int get_batch(Batch *batch, Tools *tools, PyObject *arguments, const char *format, PyObject **stems)
{
    PyObject *sequence, *plan, *table;
    const char *is_ascii; /* a byte for each text */
    Py_ssize_t number;
    int64_t wide = 0;
    *batch = (Batch){0};
    tools->scratch = tools->few, tools->cleaner.points = NULL, tools->bytes = NULL;
    if (!PyArg_ParseTuple(arguments, format, &sequence, &is_ascii, &number, &plan, &table, stems)
        || !(batch->items = PySequence_Tuple(sequence)))
        return -1;
    batch->count = PyTuple_Size(batch->items);
    if (!get_tools(tools, plan, table) || batch->count != number)
        return 0;
    for (int64_t i = 0; i < number; i++) {
        PyObject *text = PyTuple_GetItem(batch->items, i);
        wide += !is_ascii[i] && PyUnicode_Check(text) ? PyUnicode_GetLength(text) : 0;
    }
    uint32_t *next = batch->codes = malloc((size_t)wide * sizeof *next + 1);
    batch->texts = malloc((size_t)number * sizeof *batch->texts + 1);
    int fine = batch->codes && batch->texts;
    for (int64_t i = 0; fine && i < number; i++) {
        fine = get_text(batch->texts + i, PyTuple_GetItem(batch->items, i), is_ascii[i], tools, next);
        next += is_ascii[i] ? 0 : batch->texts[i].length;
    }
    PyErr_Clear();
    return fine;
}

static PyObject *end_batch(Batch *batch, Tools *tools, PyObject *result)
{
    free(batch->codes);
    free(batch->texts);
    free_tools(tools);
    Py_XDECREF(batch->items);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* The sketches of many texts. */
typedef struct {
    int32_t *values;
    int64_t *offsets, room;
    int64_t *left, left_count; /* the numbers of the texts left to numpy, which get no values */
} Sketched;

/* 0: no memory. */
static int sketch_batch(const Batch *batch, Tools *tools, Sketched *sketched)
{
    int64_t used = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t count = sketch_any(tools, batch->texts + i);
        if (count < 0) {
            sketched->left[sketched->left_count++] = i;
            count = 0;
        }
        int32_t *larger = with_room(sketched->values, &sketched->room, used + count, sizeof *larger);
        if (count && !larger)
            return 0;
        if (count)
            memcpy((sketched->values = larger) + used, tools->scratch, (size_t)count * sizeof *larger);
        sketched->offsets[i] = used;
        used += count;
    }
    sketched->offsets[batch->count] = used;
    return 1;
}

static PyObject *sketch_texts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *result = NULL;
    Tools tools;
    Batch batch;
    Sketched sketched = {0};
    int fine = get_batch(&batch, &tools, arguments, "Oy#OO:sketch_texts", NULL);
    if (fine > 0) {
        sketched.offsets = malloc((size_t)(batch.count + 1) * sizeof *sketched.offsets);
        sketched.left = malloc((size_t)batch.count * sizeof *sketched.left + 1);
    }
    if (sketched.offsets && sketched.left) {
        Py_BEGIN_ALLOW_THREADS
        fine = sketch_batch(&batch, &tools, &sketched);
        Py_END_ALLOW_THREADS
        if (fine)
            result = Py_BuildValue("NNN", bytes_of(sketched.values, sketched.offsets[batch.count] * (int64_t)sizeof(int32_t)),
                                   bytes_of(sketched.offsets, (batch.count + 1) * (int64_t)sizeof(int64_t)),
                                   bytes_of(sketched.left, sketched.left_count * (int64_t)sizeof(int64_t)));
    }
    free(sketched.values);
    free(sketched.offsets);
    free(sketched.left);
    return end_batch(&batch, &tools, result);
}
