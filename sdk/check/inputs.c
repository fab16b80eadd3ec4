/* Elements of inputs: within the bounds that cases.list gives them, as matrices where it says so. */
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "internal.h"

static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t chk_mix(uint64_t x)
{
    return mix(x);
}

/* "indices:0:3 A:0:1:d": bounds of argument `name`, and what else is said of its matrices. */
static void values_range(const char *values, const char *name, double *low, double *high, char *kind)
{
    const size_t length = strlen(name);

    for (const char *at = values ? values : ""; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");

        if (word > length && !memcmp(at, name, length) && at[length] == ':')
            (void)sscanf(at + length, ":%lf:%lf:%c", low, high, kind);
        at += word;
    }
}

/* Elements `first` to `end` of what chk_fill makes. */
static void fill_part(void *data, int32_t dtype, int64_t first, int64_t end, double low, double high,
                      uint64_t seed)
{
    const bool whole = !chk_is_float(dtype);
    double values[CHK_BLOCK];

    for (; first < end; first += CHK_BLOCK) {
        const int64_t count = end - first < CHK_BLOCK ? end - first : CHK_BLOCK;

        for (int64_t k = 0; k < count; k++) {
            const double unit = (double)(mix(seed + (uint64_t)(first + k)) >> 11) / 9007199254740992.0;
            const double v = low + (high - low) * unit;

            values[k] = whole && v < 0 ? v - 0.999 : v;
        }
        chk_set_all(data, dtype, first, count, values);
    }
}

/* What was made before. An element follows from its number, so a shorter array is the beginning of a longer
 * one: the problems of a test ask for the same few arrays thousands of times. */
typedef struct made {
    double low, high;
    uint64_t seed;
    int64_t count;
    int32_t dtype;
    char *data; /* MADE_ELEMENTS of them, `count` are made; NULL: nothing yet */
} made;

#define MADE_ELEMENTS 16384
#define MADE_COUNT 64

/* The main thread of a process alone makes problems. */
static const void *made_before(int32_t dtype, int64_t count, double low, double high, uint64_t seed)
{
    static made all[MADE_COUNT];
    made *m = &all[mix(seed + (uint64_t)dtype) % MADE_COUNT];

    if (m->data && (m->dtype != dtype || m->low != low || m->high != high || m->seed != seed)) {
        free(m->data);
        *m = (made){0};
    }
    if (!m->data) {
        *m = (made){.low = low, .high = high, .seed = seed, .dtype = dtype};
        m->data = malloc((size_t)tn_dtype_size(dtype, MADE_ELEMENTS));
    }
    if (m->data && m->count < count) {
        fill_part(m->data, dtype, m->count, count, low, high, seed);
        m->count = count;
    }
    return m->data;
}

void chk_fill(void *data, int32_t dtype, int64_t count, double low, double high, uint64_t seed)
{
    const bool keeps = count <= MADE_ELEMENTS && tn_dtype_bits(dtype) >= 8;
    const void *before = keeps ? made_before(dtype, count, low, high, seed) : NULL;

    if (before)
        memcpy(data, before, (size_t)tn_dtype_size(dtype, (uint64_t)count));
    else
        fill_part(data, dtype, 0, count, low, high, seed);
}

/* Matrices in the last two axes, as far as they are square: symmetric ('s'), or with a diagonal ('d') that is
 * larger by their size. */
static void matrices_make(void *data, int32_t dtype, const tn_shape *s, int64_t count, char kind)
{
    const int64_t n = s->ndim > 1 ? s->dim[s->ndim - 1] : 0;

    for (int64_t k = 0; n > 0 && s->dim[s->ndim - 2] == n && k < count; k++) {
        const int64_t i = k / n % n, j = k % n;

        if (kind == 's' && j < i)
            chk_set(data, dtype, k, chk_get(data, dtype, k + (j - i) * (n - 1)));
        if (kind == 'd' && j == i)
            chk_set(data, dtype, k, chk_get(data, dtype, k) + (double)n);
    }
}

void chk_problem_values(chk_lab *lab, chk_problem *p, uint64_t seed)
{
    const char *values = NULL;

    for (const chk_hint *const *h = chk_hints_of(p->op->name); *h; h++)
        values = (*h)->values ? (*h)->values : values;
    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const int32_t dtype = p->f.dtype[i];
        const int64_t count = chk_elements(p, i);
        double low = chk_is_float(dtype)      ? -2
                     : chk_is_unsigned(dtype) ? 0
                                              : -3,
               high = chk_is_float(dtype) ? 2 : 9;
        char kind = '\0';

        values_range(values, chk_argument_name(p->op, &p->f.args, i), &low, &high, &kind);
        p->in_data[i] = chk_take(&lab->arena, (uint64_t)count * tn_dtype_bytes(dtype) + 1);
        chk_fill(p->in_data[i], dtype, count, low, high, chk_mix(seed * 64 + i + 1));
        matrices_make(p->in_data[i], dtype, &p->f.shape[i], count, kind);
        chk_sparse_zero(p->f.storage[i], &p->f.shape[i], dtype, p->in_data[i]);
    }
}
