/* Python's stable ABI, and helpers of text_calls.h and page_calls.h. */
#pragma once
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ask memory for what is read soon. */
#ifdef __GNUC__
#define FETCH(address) __builtin_prefetch(address)
#else
#define FETCH(address) ((void)(address))
#endif

/* NULL: a MemoryError was raised. Py_BuildValue passes it on, and releases what its other "N" have got. */
static PyObject *bytes_of(const void *array, int64_t size)
{
    return PyBytes_FromStringAndSize(array, (Py_ssize_t)size);
}
