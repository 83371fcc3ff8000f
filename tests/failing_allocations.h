/* Compiled into the native core with `-include` by test_own_faults.py: one of its allocations fails on demand. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

static long allocations, failing = -1, all_after;

/* Let the nth allocation from now on fail, counted from 0, and all later ones if `later`. Returns how many were made. */
__attribute__((visibility("default"))) long fail_allocation(long nth, int later)
{
    long made = allocations;
    allocations = 0;
    failing = nth;
    all_after = later;
    return made;
}

static int allocation_fails(void)
{
    long number = __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return failing >= 0 && (number == failing || (all_after && number > failing));
}

#define malloc(size) (allocation_fails() ? NULL : malloc(size))
#define calloc(count, size) (allocation_fails() ? NULL : calloc(count, size))
#define realloc(part, size) (allocation_fails() ? NULL : realloc(part, size))
