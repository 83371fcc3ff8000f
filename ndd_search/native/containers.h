/* Texts that may stand word for word in longer ones (core/matching/contained_texts.py). */
#pragma once
#include "page_calls.h"

enum { PROBES = 8, MOST_HOLDERS = 16 }; /* as in contained_texts.py */

typedef struct {
    int32_t value, count, hits[MOST_HOLDERS]; /* a probe, and the longest texts that hold it, longest first */
} Holders;

typedef struct {
    Holders *probes;
    int32_t *slots; /* hash table: places in `probes`, -1 for an empty slot */
    int64_t used, mask;
    int32_t largest; /* value of a probe */
} Probes;

typedef struct {
    int64_t length, hit;
} Length;

static int is_longer(const void *one, const void *other)
{
    const Length *a = one, *b = other;
    if (a->length != b->length)
        return a->length > b->length ? -1 : 1;
    return a->hit < b->hit ? -1 : 1;
}

static int32_t *probe_slot(const Probes *probes, int32_t value)
{
    int64_t at = hash_of(value) >> 8 & probes->mask;
    while (probes->slots[at] >= 0 && probes->probes[probes->slots[at]].value != value)
        at = (at + 1) & probes->mask;
    return probes->slots + at;
}

static int64_t probes_of(const Page *page, int64_t hit)
{
    return length_of(page, hit) < PROBES ? length_of(page, hit) : PROBES;
}

/* The smallest values of every sketch, without holders. 0: no memory. */
static int make_probes(Probes *probes, const Page *page)
{
    int64_t slots = 16;
    while (slots < 2 * PROBES * page->count)
        slots *= 2;
    probes->mask = slots - 1;
    probes->probes = malloc((size_t)(PROBES * page->count + 1) * sizeof *probes->probes);
    probes->slots = malloc((size_t)slots * sizeof *probes->slots);
    if (!probes->probes || !probes->slots)
        return 0;
    memset(probes->slots, 0xFF, (size_t)slots * sizeof *probes->slots);
    for (int64_t hit = 0; hit < page->count; hit++)
        for (int64_t i = 0; i < probes_of(page, hit); i++) {
            int32_t value = values_of(page, hit)[i], *slot = probe_slot(probes, value);
            if (value > probes->largest)
                probes->largest = value;
            if (*slot < 0) {
                *slot = (int32_t)probes->used;
                probes->probes[probes->used].value = value;
                probes->probes[probes->used++].count = 0;
            }
        }
    return 1;
}

static void add_holders(Probes *probes, const Page *page, const Length *by_length)
{
    for (int64_t i = 0; i < page->count; i++) {
        int64_t hit = by_length[i].hit;
        for (int64_t j = 0; j < length_of(page, hit) && values_of(page, hit)[j] <= probes->largest; j++) {
            int32_t place = *probe_slot(probes, values_of(page, hit)[j]);
            Holders *probe = place < 0 ? NULL : probes->probes + place;
            if (probe && probe->count < MOST_HOLDERS)
                probe->hits[probe->count++] = (int32_t)hit;
        }
    }
}

/* Whether a longer text holds enough of the probes of a shorter one that its sketch would hold if it contained it. */
static int may_contain(const Page *page, int64_t longer, int64_t shorter, int64_t spoilt)
{
    int32_t limit = limit_of(page, longer);
    int64_t expected = 0, shared = 0;
    for (int64_t i = 0; i < probes_of(page, shorter) && expected - shared <= spoilt; i++) {
        int32_t value = values_of(page, shorter)[i];
        if (value > limit)
            break;
        int64_t rank = rank_in(values_of(page, longer), length_of(page, longer), value);
        expected++;
        shared += rank && values_of(page, longer)[rank - 1] == value;
    }
    return shared && expected - shared <= spoilt;
}

/* The pairs (shorter, longer), one after the other; -1 without memory. lengths: of each text. */
static int64_t find_containers(const Page *page, const int64_t *lengths, int64_t spoilt, int64_t **pairs)
{
    Probes probes = {0};
    Length *by_length = malloc(((size_t)page->count + 1) * sizeof *by_length);
    int64_t *met = calloc((size_t)page->count + 1, sizeof *met); /* 1 + the last text that met this one */
    int64_t found = 0, room = 0;
    int fine = by_length && met && make_probes(&probes, page);
    if (fine) {
        for (int64_t hit = 0; hit < page->count; hit++)
            by_length[hit] = (Length){lengths[hit], hit};
        qsort(by_length, (size_t)page->count, sizeof *by_length, is_longer);
        add_holders(&probes, page, by_length);
    }
    for (int64_t hit = 0; fine && hit < page->count; hit++)
        for (int64_t i = 0; fine && i < probes_of(page, hit); i++) {
            const Holders *probe = probes.probes + *probe_slot(&probes, values_of(page, hit)[i]);
            for (int32_t j = 0; fine && j < probe->count && lengths[probe->hits[j]] > lengths[hit]; j++) {
                int64_t longer = probe->hits[j];
                if (met[longer] == hit + 1)
                    continue;
                met[longer] = hit + 1;
                if (!may_contain(page, longer, hit, spoilt))
                    continue;
                if (2 * found == room) {
                    int64_t *larger = realloc(*pairs, (size_t)(room = 2 * room + 64) * sizeof *larger);
                    fine = larger != NULL;
                    *pairs = fine ? larger : *pairs;
                }
                if (fine) {
                    (*pairs)[2 * found] = hit;
                    (*pairs)[2 * found++ + 1] = longer;
                }
            }
        }
    free(probes.probes);
    free(probes.slots);
    free(by_length);
    free(met);
    return fine ? found : -1;
}

static PyObject *containers(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *sketches, *offsets, *lengths, *result = NULL;
    long long k, spoilt;
    Py_buffer view;
    Page page = {0};
    Weights none = {0};
    if (!PyArg_ParseTuple(arguments, "OOLOL:containers", &sketches, &offsets, &k, &lengths, &spoilt))
        return NULL;
    if (get_row(lengths, sizeof(int64_t), &view)) {
        int64_t found = -1, *pairs = NULL;
        if (copy_page(&page, sketches, offsets, k) && page.count < 1 << 24 && spoilt >= 0
            && view.len == page.count * (int64_t)sizeof(int64_t)) {
            Py_BEGIN_ALLOW_THREADS
            found = find_containers(&page, view.buf, spoilt, &pairs);
            Py_END_ALLOW_THREADS
        }
        if (found >= 0)
            result = bytes_of(pairs, 2 * found * (int64_t)sizeof *pairs);
        free(pairs);
        free_page(&page, &none);
        PyBuffer_Release(&view);
    }
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}
