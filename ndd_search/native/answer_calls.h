/* What Python calls before it parses a response: the sketches of the hits are decoded, and cut out of the text.
 *
 * They are cut from `hits.hits[].fields` of a response, or of each response of an `_msearch`, and `fields` is cut with
 * them if nothing else is in it. What is cut is valid JSON, between its neighbours' commas, so the rest of the text is
 * valid if the text is. A response is left as it is if any of its sketches is not understood: one that is malformed or
 * has more than k values, a name that is escaped, or used twice in one object. */
#pragma once
#include "json_text.h"
#include "stored_calls.h"

typedef struct {
    void *items;
    int64_t count, room;
} Array;

typedef struct {
    const char *end;    /* of the text */
    Part names[NAMES];  /* as in stored_sketches */
    int64_t k;
    Array cuts, counts; /* Part; int64_t, one for each hit of the current response */
    Array values;       /* int32_t, the sketches of the current response */
    int no_memory;
} Cutter;

/* The place behind the last item, with room for more items. NULL: no memory. */
static void *behind_last(Cutter *cutter, Array *array, int64_t more, size_t size)
{
    if (array->count + more > array->room) {
        int64_t room = 2 * array->room + more + 64;
        void *larger = realloc(array->items, (size_t)room * size);
        if (!larger) {
            cutter->no_memory = 1;
            return NULL;
        }
        array->items = larger;
        array->room = room;
    }
    return (char *)array->items + (size_t)array->count * size;
}

static void cut(Cutter *cutter, const char *from, const char *to)
{
    Part *part = behind_last(cutter, &cutter->cuts, 1, sizeof *part);
    if (part) {
        *part = (Part){from, to};
        cutter->cuts.count++;
    }
}

/* Keep the member of a walk, with the members before it. */
static void keep_member(Cutter *cutter, Walk *walk)
{
    if (walk->cut_from)
        cut(cutter, walk->cut_from, walk->name.from - 1);
    walk->cut_from = NULL;
    walk->kept = walk->at;
}

static void cut_member(Walk *walk)
{
    if (!walk->cut_from)
        walk->cut_from = walk->name.from - 1;
    walk->cut_to = walk->at;
}

/* Cut the last members of an object, with the comma before them. */
static void end_members(Cutter *cutter, const Walk *walk)
{
    if (walk->cut_from)
        cut(cutter, walk->kept ? walk->kept : walk->cut_from, walk->cut_to);
}

/* What was read of a sketch. count: of values, NOTHING if they are missing. */
typedef struct {
    int64_t count;
    Part recipe;
} Stored;

/* Read a member of `fields`. values: room for k integers. Returns its end, NULL for what is not understood.
   is_kept: whether it belongs to no sketch. */
static const char *read_member(const Cutter *cutter, const Walk *walk, int32_t *values, Stored *stored, int *is_kept)
{
    Part string;
    const char *at = walk->at, *end = cutter->end;
    if (is_part(walk->name, cutter->names[SKETCH_PATH]))
        return stored->count == NOTHING ? parse_integers(at, end, cutter->k, values, &stored->count) : NULL;
    if (is_part(walk->name, cutter->names[RECIPE_PATH])) {
        at = parse_one_string(at, end, &string);
        if (!at || stored->recipe.from || !is_printable(string))
            return NULL;
        stored->recipe = string;
        return at;
    }
    *is_kept = 1;
    return after_value(at, end);
}

/* The number of values of a sketch, as in stored_sketches; MALFORMED also for what only the Python code understands. */
static int64_t count_of(const Cutter *cutter, const Stored *stored, const int32_t *values)
{
    int64_t count = stored->count;
    if (!stored->recipe.from)
        return count == NOTHING ? NOTHING : FOREIGN;
    if (!is_part(stored->recipe, cutter->names[RECIPE_ID])) /* without values, only Python knows a recipe id */
        return count != NOTHING || is_text(stored->recipe, "stale") ? FOREIGN : MALFORMED;
    if (count == NOTHING)
        return 0;
    return are_ascending(values, count) ? count : MALFORMED;
}

/* Read and cut the sketch in the `fields` of a hit. Returns the end of the object, NULL for what is not understood.
   count: of values, as in stored_sketches. is_empty: whether nothing else is in the object, which is then not cut. */
static const char *cut_sketch(Cutter *cutter, const char *fields, int64_t *count, int *is_empty)
{
    Stored stored = {NOTHING, {0}};
    int32_t *values = behind_last(cutter, &cutter->values, cutter->k, sizeof *values);
    if (!values)
        return NULL;
    Walk walk = members_of(fields);
    while (next_member(&walk, cutter->end)) {
        int is_kept = 0;
        if (!(walk.at = read_member(cutter, &walk, values, &stored, &is_kept)))
            return NULL;
        if (is_kept)
            keep_member(cutter, &walk);
        else
            cut_member(&walk);
    }
    *is_empty = walk.cut_from && !walk.kept;
    if (!*is_empty)
        end_members(cutter, &walk);
    *count = count_of(cutter, &stored, values);
    return *count == MALFORMED ? NULL : walk.at;
}

/* Cut the sketch of a hit. Returns the end of the hit, NULL for what is not understood. */
static const char *cut_hit(Cutter *cutter, const char *hit)
{
    int64_t count = NOTHING;
    int has_fields = 0, is_empty = 0;
    Walk walk = members_of(hit);
    while (next_member(&walk, cutter->end)) {
        int is_fields = is_text(walk.name, "fields");
        if (is_fields && (has_fields++ || !is_at(walk.at, cutter->end, '{')))
            return NULL;
        walk.at = is_fields ? cut_sketch(cutter, walk.at, &count, &is_empty) : after_value(walk.at, cutter->end);
        if (!walk.at)
            return NULL;
        if (is_fields && is_empty)
            cut_member(&walk);
        else
            keep_member(cutter, &walk);
    }
    int64_t *counts = walk.at ? behind_last(cutter, &cutter->counts, 1, sizeof *counts) : NULL;
    if (!counts)
        return NULL;
    end_members(cutter, &walk);
    *counts = count;
    cutter->counts.count++;
    cutter->values.count += count > 0 ? count : 0;
    return walk.at;
}

/* Cut the sketches of a list of hits. Returns the end of the list, NULL for what is not understood. */
static const char *cut_list(Cutter *cutter, const char *list)
{
    const char *at = next_item(list + 1, cutter->end, 1);
    while (at && *at == '{') {
        at = cut_hit(cutter, at);
        at = at ? next_item(at, cutter->end, 0) : NULL;
    }
    return at && *at == ']' ? at + 1 : NULL;
}

/* Cut the sketches of a response, or of the object `hits` in it. Returns its end, NULL for what is not understood. */
static const char *cut_hits(Cutter *cutter, const char *object, int is_response, int *has_hits)
{
    int found = 0;
    Walk walk = members_of(object);
    while (next_member(&walk, cutter->end)) {
        int is_hits = is_text(walk.name, "hits");
        if (is_response && is_text(walk.name, "responses"))
            return NULL;
        if (is_hits && (found++ || !is_at(walk.at, cutter->end, is_response ? '{' : '[')))
            return NULL;
        if (!is_hits)
            walk.at = after_value(walk.at, cutter->end);
        else if (is_response)
            walk.at = cut_hits(cutter, walk.at, 0, has_hits);
        else if ((walk.at = cut_list(cutter, walk.at)))
            *has_hits = 1;
        if (!walk.at)
            return NULL;
    }
    return walk.at;
}

/* Cut the sketches of a response, and add them to a list; None if it has no hits, or is not understood. Returns the end
   of the response, NULL if there is none, or for an error of Python. */
static const char *cut_response(Cutter *cutter, const char *response, PyObject *responses)
{
    int64_t cuts = cutter->cuts.count;
    int has_hits = 0;
    cutter->values.count = cutter->counts.count = 0;
    const char *at = is_at(response, cutter->end, '{') ? cut_hits(cutter, response, 1, &has_hits) : NULL;
    PyObject *sketches = NULL;
    if (!at) {
        cutter->cuts.count = cuts;
        at = after_value(response, cutter->end);
        sketches = Py_NewRef(Py_None);
    } else if (!has_hits)
        sketches = Py_NewRef(Py_None);
    else if (behind_last(cutter, &cutter->counts, 1, sizeof(int64_t)))
        sketches = sketches_read(cutter->values.items, cutter->counts.items, cutter->counts.count);
    int failed = !sketches || PyList_Append(responses, sketches) || cutter->no_memory;
    Py_XDECREF(sketches);
    return failed ? NULL : at;
}

/* Cut the sketches of a response, or of each response of an `_msearch`. Returns 0 for what is not understood. */
static int cut_root(Cutter *cutter, const char *root, PyObject *responses)
{
    int is_many = 0;
    if (!is_at(root, cutter->end, '{'))
        return 0;
    Walk walk = members_of(root);
    while (next_member(&walk, cutter->end)) {
        if (is_text(walk.name, "hits"))
            return !is_many && cut_response(cutter, root, responses);
        if (!is_text(walk.name, "responses")) {
            if (!(walk.at = after_value(walk.at, cutter->end)))
                return 0;
            continue;
        }
        if (is_many++ || !is_at(walk.at, cutter->end, '['))
            return 0;
        const char *at = next_item(walk.at + 1, cutter->end, 1);
        while (at && *at != ']') {
            at = cut_response(cutter, at, responses);
            at = at ? next_item(at, cutter->end, 0) : NULL;
        }
        if (!at)
            return 0;
        walk.at = at + 1;
    }
    return walk.at != NULL;
}

/* Copy a text without what is cut. Returns a str or bytes. */
static PyObject *without_cuts(const Cutter *cutter, const char *text, int is_str)
{
    const Part *cuts = cutter->cuts.items;
    Py_ssize_t length = cutter->end - text;
    for (int64_t i = 0; i < cutter->cuts.count; i++)
        length -= cuts[i].to - cuts[i].from;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, length);
    if (!bytes)
        return NULL;
    char *start = PyBytes_AsString(bytes), *to = start;
    for (int64_t i = 0; i < cutter->cuts.count; i++) {
        memcpy(to, text, (size_t)(cuts[i].from - text));
        to += cuts[i].from - text;
        text = cuts[i].to;
    }
    memcpy(to, text, (size_t)(cutter->end - text));
    if (!is_str)
        return bytes;
    PyObject *result = PyUnicode_DecodeUTF8(start, length, "strict");
    Py_DECREF(bytes);
    return result;
}

static PyObject *cut_sketches(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *given, *paths, *result = NULL, *names[NAMES];
    long long k;
    if (!PyArg_ParseTuple(arguments, "OO!L:cut_sketches", &given, &PyTuple_Type, &paths, &k) || !get_names(paths, names))
        return NULL;
    Py_ssize_t length = 0;
    const char *text = k < 1 || k > MOST_STORED ? NULL
                       : PyUnicode_Check(given) ? PyUnicode_AsUTF8AndSize(given, &length)
                       : PyBytes_Check(given)   ? (length = PyBytes_Size(given), PyBytes_AsString(given))
                                                : NULL;
    Cutter cutter = {.end = text + length, .k = k};
    for (int i = 0; text && i < NAMES; i++) {
        Py_ssize_t size;
        const char *name = PyUnicode_AsUTF8AndSize(names[i], &size);
        text = name ? text : NULL;
        cutter.names[i] = (Part){name, name + size};
    }
    PyObject *responses = text ? PyList_New(0) : NULL;
    if (responses && cut_root(&cutter, after_spaces(text, cutter.end), responses) && cutter.cuts.count) {
        PyObject *shorter = without_cuts(&cutter, text, PyUnicode_Check(given));
        result = shorter ? Py_BuildValue("NO", shorter, responses) : NULL;
    }
    Py_XDECREF(responses);
    free(cutter.cuts.items);
    free(cutter.counts.items);
    free(cutter.values.items);
    PyErr_Clear(); /* a lone surrogate, or no memory: the text stays as it is */
    return result ? result : Py_NewRef(Py_None);
}
