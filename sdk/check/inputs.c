/* Elements of inputs: within the bounds that cases.list gives them, as matrices where it says so. */
#include <string.h>

#include "generate.h"
#include "internal.h"

uint64_t chk_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
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

void chk_fill(void *data, int32_t dtype, int64_t count, double low, double high, uint64_t seed)
{
    const bool whole = !chk_is_float(dtype);

    for (int64_t k = 0; k < count; k++) {
        const double unit = (double)(chk_mix(seed + (uint64_t)k) >> 11) / 9007199254740992.0;
        const double v = low + (high - low) * unit;

        chk_set(data, dtype, k, whole && v < 0 ? v - 0.999 : v);
    }
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
