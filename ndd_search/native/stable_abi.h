/* Python's stable ABI, and helpers of all parts. */
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

/* A function that makes the loops of its callers slower where it is a part of them. */
#ifdef __GNUC__
#define KEPT_APART __attribute__((noinline))
#else
#define KEPT_APART
#endif

/* An array with room for `needed` items, which has moved if it had less. NULL: no memory, and the array stays. */
KEPT_APART static void *with_room(void *array, int64_t *room, int64_t needed, size_t size)
{
    if (needed <= *room)
        return array;
    void *larger = realloc(array, (size_t)(2 * needed) * size);
    *room = larger ? 2 * needed : *room;
    return larger;
}

/* NULL: a MemoryError was raised. Py_BuildValue passes it on, and releases what its other "N" have got. */
static PyObject *bytes_of(const void *array, int64_t size)
{
    return PyBytes_FromStringAndSize(array, (Py_ssize_t)size);
}
