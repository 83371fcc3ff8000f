/* Compares the values of one field, each kind as items/compare_values.py and items/compare_names.py do. */
#pragma once
#include "names.h"

enum { OF_NAMES, OF_DATES, OF_SETS, OF_NUMBERS, OF_PLACES, VALUE_KINDS }; /* as in items/compare_values.py */
enum { YEAR_DIGITS = 2, LATITUDE_LONGITUDE_COSINE = 3 };
enum { SHORT_CODE = 5, MOST_SLIPS = 1000 }; /* as in items/compare_values.py */

typedef struct {
    int kind, read;
    Py_buffer rows[NAME_ROWS];
    int64_t count; /* of values */
    Names names;
} Values;

/* The similarity of two dates, as in items/compare_values.py: Dates.compare. one, other: the year, and the digits of the
 * date, of 4 bits each. */
static double dates_alike(const int64_t *one, const int64_t *other)
{
    const int64_t years = 0xFFFF0000, months = 0xFF00, days = 0xFF;
    int64_t a = one[1], b = other[1], differ = a ^ b;
    int has_year = a & years && b & years, has_month = a & months && b & months, has_day = a & days && b & days;
    int same_year = has_year && !(differ & years), same_month = has_month && !(differ & months);
    int same_day = has_day && !(differ & days);
    if (!differ)
        return 1.0;
    if (same_year && same_month && !has_day)
        return 0.95;
    if (has_year && has_month && has_day) {
        int64_t places = (differ | differ >> 1 | differ >> 2 | differ >> 3) & 0x11111111; /* a bit for each digit that differs */
        int64_t last = (places & -places) * 15, wrong = differ & last;
        if (same_year && !((a ^ b >> 8) & days) && !((a >> 8 ^ b) & days))
            return 0.9;
        if (differ == wrong || (differ == wrong * 17 && ((a ^ a >> 4) & last) == wrong))
            return 0.8;
    }
    if (same_year)
        return same_month || same_day ? 0.75 : has_month ? 0.4 : 0.6;
    return same_month && same_day ? 0.5 : one[0] - other[0] == 1 || other[0] - one[0] == 1 ? 0.2 : 0;
}

/* Whether two codes that are long enough differ by a slip. */
static int is_slip(const int32_t *a, int64_t n, const int32_t *b, int64_t m)
{
    return n >= SHORT_CODE && m >= SHORT_CODE && n - m < 2 && m - n < 2 && is_one_slip(a, n, b, m);
}

/* Whether a code of one set is a slip of a code of another; of long sets nobody looks. */
static int have_slip(const Values *values, int64_t first, int64_t second)
{
    const int64_t *items = values->rows[0].buf, *offsets = values->rows[1].buf, *ends = values->rows[4].buf;
    const int32_t *letters = values->rows[3].buf;
    if ((offsets[first + 1] - offsets[first]) * (offsets[second + 1] - offsets[second]) > MOST_SLIPS)
        return 0;
    for (int64_t i = offsets[first]; i < offsets[first + 1]; i++)
        for (int64_t j = offsets[second]; j < offsets[second + 1]; j++) {
            int64_t one = items[i], other = items[j];
            if (is_slip(letters + ends[one], ends[one + 1] - ends[one], letters + ends[other], ends[other + 1] - ends[other]))
                return 1;
        }
    return 0;
}

/* Jaccard's coefficient of two sets, each ascending; *share is that of the rarest member in common. Of codes 0.5 more if
 * they have one in common, and 0.25 if one differs by a slip. */
static double sets_alike(const Values *values, int64_t first, int64_t second, double *share)
{
    const int64_t *items = values->rows[0].buf, *offsets = values->rows[1].buf;
    const double *shares = values->rows[2].buf;
    int64_t i = offsets[first], end = offsets[first + 1], j = offsets[second], stop = offsets[second + 1], common = 0;
    int64_t members = end - i + stop - j;
    while (i < end && j < stop) {
        if (items[i] == items[j]) {
            *share = shares[items[i]] < *share ? shares[items[i]] : *share;
            common++, i++, j++;
        } else if (items[i] < items[j]) {
            i++;
        } else {
            j++;
        }
    }
    double jaccard = (double)common / (double)(members > common ? members - common : 1);
    if (!length_in(&values->rows[4], 8))
        return jaccard;
    return common ? 0.5 + jaccard / 2 : have_slip(values, first, second) ? 0.25 : 0;
}

static double numbers_alike(const double *numbers, const double *limits, int64_t first, int64_t second)
{
    double a = numbers[first], b = numbers[second], larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    double allowed = larger * limits[0] > limits[1] ? larger * limits[0] : limits[1];
    return 1 / (1 + fabs(a - b) / (allowed > 1e-12 ? allowed : 1e-12));
}

/* By the great-circle distance. one, other: latitude and longitude in radians, and the cosine of the latitude. */
static double places_alike(const double *one, const double *other, double km)
{
    double north = sin((other[0] - one[0]) / 2), east = sin((other[1] - one[1]) / 2);
    double chord = north * north + one[2] * other[2] * (east * east);
    return 1 / (1 + 2 * 6371.0088 * asin(sqrt(chord < 0 ? 0 : chord > 1 ? 1 : chord)) / km);
}

/* Read the rows of a kind of values. 0: they are malformed, or there is no memory. */
static int read_values(PyObject *kind, PyObject *rows, Values *values)
{
    static const int counts[VALUE_KINDS] = {NAME_ROWS, 1, 5, 2, 2};
    values->kind = (int)PyLong_AsLong(kind);
    if (PyErr_Occurred())
        PyErr_Clear();
    if (values->kind < 0 || values->kind >= VALUE_KINDS || !PyTuple_Check(rows) || PyTuple_Size(rows) != counts[values->kind])
        return 0;
    for (; values->read < counts[values->kind]; values->read++) {
        int letters = values->kind == OF_NAMES ? values->read == OF_LETTERS || values->read == OF_JOINED
                                               : values->kind == OF_SETS && values->read == 3;
        if (!get_row(PyTuple_GetItem(rows, values->read), letters ? 4 : 8, &values->rows[values->read]))
            return 0;
    }
    int64_t first = length_in(&values->rows[0], 8), second = values->read > 1 ? length_in(&values->rows[1], 8) : 0;
    switch (values->kind) {
    case OF_NAMES:
        values->count = length_in(&values->rows[OF_OFFSETS], 8) - 1;
        return read_names(values->rows, &values->names);
    case OF_DATES:
        values->count = first / YEAR_DIGITS;
        return 1;
    case OF_SETS:
        values->count = second - 1;
        return are_ends(&values->rows[1], first)
               && all_within(values->rows[0].buf, first, length_in(&values->rows[2], 8))
               && (!length_in(&values->rows[4], 8) /* no codes */
                   || (length_in(&values->rows[4], 8) == length_in(&values->rows[2], 8) + 1
                       && are_ends(&values->rows[4], length_in(&values->rows[3], 4))));
    case OF_NUMBERS:
        values->count = first;
        return second == 2;
    default:
        values->count = first / LATITUDE_LONGITUDE_COSINE;
        return second == 1;
    }
}

static void free_values(Values *values)
{
    free_names(&values->names);
    while (values->read-- > 0)
        PyBuffer_Release(&values->rows[values->read]);
}

/* The similarity of two values; *share is that of the records that hold the rarest part in common, 1 if there is none. */
static double values_alike(const Values *values, int64_t first, int64_t second, double *share)
{
    const void *rows = values->rows[0].buf;
    double similarity;
    *share = 1.0;
    switch (values->kind) {
    case OF_NAMES: /* sums are rounded: numpy adds in another order */
        similarity = names_alike(&values->names, first, second, share);
        return similarity > 0 && similarity < 1 ? rint(similarity * 1e9) / 1e9 : similarity;
    case OF_DATES:
        return dates_alike((const int64_t *)rows + YEAR_DIGITS * first, (const int64_t *)rows + YEAR_DIGITS * second);
    case OF_SETS:
        return sets_alike(values, first, second, share);
    case OF_NUMBERS:
        return numbers_alike(rows, values->rows[1].buf, first, second);
    default:
        return rint(1e9 * places_alike((const double *)rows + LATITUDE_LONGITUDE_COSINE * first,
                                       (const double *)rows + LATITUDE_LONGITUDE_COSINE * second,
                                       *(const double *)values->rows[1].buf)) / 1e9;
    }
}
