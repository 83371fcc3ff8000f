/* Compiled into the native core with `-include` by guided_fuzz.py: gcc reports each block that runs, libFuzzer counts
 * blocks in an array. */
#include <stdint.h>

#define BLOCKS 65536
static uint8_t counters[BLOCKS];

void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *end);

__attribute__((constructor)) static void register_counters(void)
{
    __sanitizer_cov_8bit_counters_init(counters, counters + BLOCKS);
}

__attribute__((visibility("hidden"), no_sanitize_coverage, no_sanitize("address", "undefined")))
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t block = (uintptr_t)__builtin_return_address(0);
    counters[(block ^ block >> 16) % BLOCKS]++;
}

/* gcc reports comparisons of real numbers as well; libFuzzer has no use for them. */
__attribute__((visibility("hidden"), no_sanitize_coverage)) void __sanitizer_cov_trace_cmpf(float a, float b)
{
    (void)a, (void)b;
}

__attribute__((visibility("hidden"), no_sanitize_coverage)) void __sanitizer_cov_trace_cmpd(double a, double b)
{
    (void)a, (void)b;
}
