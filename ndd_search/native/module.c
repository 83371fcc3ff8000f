/* The native core: computes the same as sketching/sketches.py and matching/ do with numpy, bit for bit, several times
 * faster.
 *
 * It is plain C on Python's stable ABI (3.11): a C compiler suffices to build it, and one wheel serves all later
 * Pythons. Without it the package works the same. A function returns None for irregular input (other types than int32,
 * values out of order) or if there is no memory. The caller then uses the numpy code, which raises the error.
 *
 * While the interpreter lock is released, no Python object is touched. Calls read copies of what they are
 * given, except arrays that are read-only: copies of a collection would double the memory, and a Corpus keeps its sketches
 * read-only.
 *
 * The parts are headers, so that they are compiled as one file, which gives the fastest code. page.h, weights.h,
 * rule.h, index.h and search.h find near-duplicates on a page; frequencies.h counts its values; corpus.h, with
 * corpus_documents.h, corpus_lists.h and corpus_meetings.h, finds them in whole collections, with
 * the threads of team.h; meetings.h and super_tokens.h find records that share tokens, names.h, values.h and records.h
 * compare them; clean.h and sketch.h sketch texts, words_calls.h writes their words;
 * stored_calls.h reads the sketches of hits; answer_calls.h cuts them out of the text of a response. Each includes the
 * ones before.
 */
#include "page_calls.h"
#include "frequencies.h"
#include "corpus_calls.h"
#include "meetings.h"
#include "super_tokens.h"
#include "names.h"
#include "records.h"
#include "text_calls.h"
#include "words_calls.h"
#include "stored_calls.h"
#include "answer_calls.h"

/* Version of the functions below: raise it with each change of their interface, here and in native/__init__.py. */
enum { VERSION = 39 };

/* native/__init__.py says what each function takes and returns. */
static PyMethodDef methods[] = {
    {"rows", rows, METH_VARARGS, NULL},
    {"leaders", leaders, METH_VARARGS, NULL},
    {"counted", counted, METH_VARARGS, NULL},
    {"common_table", common_table, METH_VARARGS, NULL},
    {"pairs", pairs, METH_VARARGS, NULL},
    {"corpus_pairs", corpus_pairs, METH_VARARGS, NULL},
    {"meetings", meetings, METH_VARARGS, NULL},
    {"super_tokens", super_tokens, METH_VARARGS, NULL},
    {"screened", screened, METH_VARARGS, NULL},
    {"corpus_check", corpus_check, METH_VARARGS, NULL},
    {"sketch_text", (PyCFunction)(void (*)(void))sketch_text, METH_FASTCALL, NULL},
    {"sketch_texts", sketch_texts, METH_VARARGS, NULL},
    {"words_of", words_of, METH_VARARGS, NULL},
    {"stored_sketches", stored_sketches, METH_VARARGS, NULL},
    {"cut_sketches", cut_sketches, METH_VARARGS, NULL},
    {"is_plain", is_plain, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core: see ndd_search/native/module.c.", 0, methods, NULL, NULL, NULL, NULL,
};

/* Draw the random numbers of page.h, once in a process. 0: an error was raised. */
static int draw_random(void)
{
    uint64_t numbers[2];
    if (multiplier)
        return 1;
    PyObject *os = PyImport_ImportModule("os"), *drawn = os ? PyObject_CallMethod(os, "urandom", "i", (int)sizeof numbers) : NULL;
    int fine = drawn && PyBytes_Check(drawn) && PyBytes_Size(drawn) == (Py_ssize_t)sizeof numbers;
    if (fine) {
        memcpy(numbers, PyBytes_AsString(drawn), sizeof numbers);
        multiplier = numbers[0] | 1;
        addend = numbers[1];
    }
    Py_XDECREF(os);
    Py_XDECREF(drawn);
    return fine;
}

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);
    fill_lanes();
    fill_all_powers();
    fill_classes();
    if (module && (!draw_random() || PyModule_AddIntConstant(module, "version", VERSION) < 0)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
