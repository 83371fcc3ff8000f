/* The native core: what sketches.py, counting.py, decision.py and groups.py compute with numpy, bit for bit the same,
 * several times faster.
 *
 * Plain C on Python's stable ABI (3.11): a compiler is all it takes to build it, one wheel serves every later Python,
 * and without it the package works the same. Only the regular case is here: a function returns None for anything else
 * (other types than int32, values out of order, no memory), and the caller goes the numpy way, which says what is
 * wrong.
 *
 * While the interpreter lock is released no Python object is touched, and no memory but our own.
 *
 * Its parts are headers, so that all of it is compiled as one file, which makes the fastest code: page.h, weights.h,
 * rule.h, index.h and search.h check pages, clean.h and sketch.h sketch texts, each in this order.
 */
#include "page_calls.h"
#include "text_calls.h"

/* Of what is called from Python: raised with every change to it, here and in native.py. */
enum { VERSION = 7 };

static PyMethodDef methods[] = {
    {"rows", rows, METH_VARARGS, rows_doc},
    {"leaders", leaders, METH_VARARGS, leaders_doc},
    {"common_table", common_table, METH_VARARGS, common_doc},
    {"pairs", pairs, METH_VARARGS, pairs_doc},
    {"sketch_text", (PyCFunction)(void (*)(void))sketch_text, METH_FASTCALL, sketch_text_doc},
    {"sketch_texts", sketch_texts, METH_VARARGS, sketch_texts_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core: see ndd_search/core/module.c.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyModule_Create(&definition);
    fill_lanes();
    fill_all_powers();
    if (module && PyModule_AddIntConstant(module, "version", VERSION) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
