/* What Python calls about whole collections. Sketches are one int32 array with int64 offsets, read where
 * they lie if they are read-only. */
#pragma once
#include "corpus.h"
#include "page_calls.h"

typedef struct {
    Question question;
    Py_buffer values, offsets, codes, times, asked; /* asked: the pairs of corpus_check */
    Guards guards;
    Corpus corpus;           /* of corpus_check */
    long long budget, each, old, threads;
    PyObject *progress;      /* called with a number of documents, or None */
    PyThreadState *released; /* of this thread while the interpreter lock is released */
} Inquiry;

/* Let Python handle signals (Ctrl-C), and tell how far the work is. 0: an exception was raised. */
static int tell_python(void *with, int64_t done)
{
    Inquiry *inquiry = with;
    PyEval_RestoreThread(inquiry->released);
    int fine = PyErr_CheckSignals() == 0;
    if (fine && inquiry->progress != Py_None) {
        PyObject *answer = PyObject_CallFunction(inquiry->progress, "L", (long long)done);
        fine = answer != NULL;
        Py_XDECREF(answer);
    }
    inquiry->released = PyEval_SaveThread();
    return fine;
}

static PyObject *end_inquiry(Inquiry *inquiry, PyObject *result)
{
    free(inquiry->corpus.meetings);
    inquiry->question.page.values = NULL; /* not ours */
    inquiry->question.page.offsets = NULL;
    PyBuffer_Release(&inquiry->values);
    PyBuffer_Release(&inquiry->offsets);
    PyBuffer_Release(&inquiry->codes);
    PyBuffer_Release(&inquiry->times);
    PyBuffer_Release(&inquiry->asked);
    return answer(&inquiry->question, result);
}

/* Read the arguments. size: of the numbers that are asked about; 0 for a format with `progress` and limits instead.
 * 1: done; 0: something is not regular; -1: it is an error. */
static int get_inquiry(Inquiry *inquiry, PyObject *arguments, const char *format, Py_ssize_t size)
{
    PyObject *values, *offsets, *numbers, *table, *guards, *codes, *times;
    long long k;
    Question *question = &inquiry->question;
    Rule *rule = &question->rule;
    Page *page = &question->page;
    *inquiry = (Inquiry){.budget = 1, .threads = 1}; /* valid limits for formats without them */
    if (!PyArg_ParseTuple(arguments, format, &values, &offsets, &k, &PyTuple_Type, &numbers, &table, &PyTuple_Type, &guards,
                          &inquiry->progress, &inquiry->budget, &inquiry->each, &inquiry->old, &inquiry->threads)
        || !get_rule(numbers, rule)
        || !PyArg_ParseTuple(guards, "OOd:guards", &codes, &times, &inquiry->guards.apart)) /* which it holds */
        return -1;
    page->k = k;
    if (!rule_is_regular(rule) || rule->measure < BY_KMV || rule->measure >= MEASURES || k < 1 || k > MOST_VALUES
        || inquiry->budget < 1 || inquiry->threads < 1 || inquiry->threads > MOST_THREADS)
        return 0;
    if (!get_row(values, sizeof(int32_t), &inquiry->values) || !get_row(offsets, sizeof(int64_t), &inquiry->offsets)
        || (size && !get_row(inquiry->progress, size, &inquiry->asked)))
        return 0;
    if ((codes != Py_None && !get_row(codes, sizeof(int64_t), &inquiry->codes))
        || (times != Py_None && !get_row(times, sizeof(double), &inquiry->times)))
        return 0;
    inquiry->guards.codes = inquiry->codes.buf;
    inquiry->guards.times = inquiry->times.buf;
    page->values = inquiry->values.buf;
    page->offsets = inquiry->offsets.buf;
    page->count = inquiry->offsets.len / (int64_t)sizeof(int64_t) - 1;
    if (page->count < 0 || page->count >= INT32_MAX || page->offsets[0]
        || page->offsets[page->count] != inquiry->values.len / (int64_t)sizeof(int32_t))
        return 0;
    if ((codes != Py_None && inquiry->codes.len != page->count * (int64_t)sizeof(int64_t))
        || (times != Py_None && inquiry->times.len != page->count * (int64_t)sizeof(double)))
        return 0;
    for (int64_t i = 0; i < page->count; i++)
        if (length_of(page, i) < 0 || length_of(page, i) > k)
            return 0;
    if (!is_regular(page) || !get_weights(&question->weights, table, page))
        return 0;
    question->common = table == Py_None ? NULL : &question->weights;
    inquiry->corpus = (Corpus){.page = page, .rule = rule, .guards = &inquiry->guards, .weights = question->common};
    return !size || (inquiry->corpus.meetings = calloc_large((size_t)page->count + 1, sizeof(Meeting)));
}

static PyObject *effort_of(const Effort *effort)
{
    return Py_BuildValue("LLLL", (long long)effort->documents, (long long)effort->met, (long long)effort->compared,
                         (long long)effort->cut);
}

static PyObject *corpus_pairs(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Inquiry inquiry;
    Effort effort = {0};
    Pair *pairs = NULL;
    PyObject *result = NULL, *same = NULL, *columns = NULL;
    int64_t count = -1;
    int fine = get_inquiry(&inquiry, arguments, "OOLO!OO!O(LLLL):corpus_pairs", 0);
    const Page *page = &inquiry.question.page;
    if (fine > 0 && (same = bytes_of(NULL, page->count * (int64_t)sizeof(int64_t)))) {
        int64_t *first = (int64_t *)PyBytes_AsString(same);
        Watch watch = {tell_python, &inquiry};
        inquiry.released = PyEval_SaveThread();
        count = pair_corpus(page, &inquiry.question.rule, &inquiry.guards, inquiry.question.common, inquiry.budget,
                            inquiry.each, inquiry.old, (int)inquiry.threads, &pairs, first, &effort, &watch);
        PyEval_RestoreThread(inquiry.released);
        if (count >= 0 && (columns = columns_of(page, pairs, count)))
            result = Py_BuildValue("OOOON", PyTuple_GetItem(columns, 0), PyTuple_GetItem(columns, 1),
                                   PyTuple_GetItem(columns, 2), same, effort_of(&effort));
    }
    Py_XDECREF(columns);
    Py_XDECREF(same);
    free(pairs);
    return end_inquiry(&inquiry, result);
}

static PyObject *corpus_check(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Inquiry inquiry;
    Effort effort = {0};
    Pair pair;
    PyObject *result = NULL;
    int fine = get_inquiry(&inquiry, arguments, "OOLO!OO!O:corpus_check", sizeof(int64_t)) > 0;
    const Page *page = &inquiry.question.page;
    int64_t all = fine ? inquiry.asked.len / (int64_t)sizeof(int64_t) : 0, count = all / 2;
    const int64_t *rows = inquiry.asked.buf;
    fine = fine && all == 2 * count;
    for (int64_t i = 0; fine && i < all; i++)
        fine = rows[i] >= 0 && rows[i] < page->count;
    if (fine)
        result = bytes_of(NULL, count * (int64_t)sizeof(double));
    if (result) {
        double *similarities = (double *)PyBytes_AsString(result);
        for (int64_t i = 0; i < page->count; i++)
            inquiry.corpus.meetings[i].most = MOST_VALUES;
        for (int64_t i = 0; i < count; i++) {
            int counts = is_pair(&inquiry.corpus, rows[i], rows[count + i], &pair, &effort);
            similarities[i] = counts ? resemblance_of(&pair) : -1;
        }
    }
    return end_inquiry(&inquiry, result);
}
