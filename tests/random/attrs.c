/*
 * Texts of attribute values by type. A value that fits follows the name of the attribute where the name says
 * what it is (an axis, a shape) and the first input's shape; the node's maker tries again if inference
 * refuses it, so this need not be exact.
 */
#include "make.h"

#include <inttypes.h>
#include <string.h>

static bool named(const tn_attr_def *d, const char *part)
{
    return strstr(d->name, part) != NULL;
}

static bool is_axis(const tn_attr_def *d)
{
    return named(d, "axis") || named(d, "axes") || !strncmp(d->name, "dim", 3);
}

static int64_t bounded(const tn_attr_def *d, int64_t value)
{
    if (d->min > d->max)
        return value;
    if ((double)value < d->min)
        return (int64_t)d->min;
    return (double)value > d->max ? (int64_t)d->max : value;
}

static int64_t axis_of(fuzz_rng *r, const tn_shape *like)
{
    const int64_t ndim = like->ndim > 0 ? like->ndim : 1;

    return (int64_t)fuzz_below(r, (uint64_t)(2 * ndim)) - ndim;
}

static int64_t int_of(fuzz_rng *r, const tn_attr_def *d, const tn_shape *like)
{
    static const int64_t small[] = {0, 1, 1, 2, 2, 3, 4, 5, -1, -2};

    if (is_axis(d))
        return axis_of(r, like);
    if (like->ndim > 0 && fuzz_chance(r, 30))
        return bounded(d, like->dim[fuzz_below(r, (uint64_t)like->ndim)]);
    return bounded(d, FUZZ_PICK(r, small));
}

static double float_of(fuzz_rng *r, const tn_attr_def *d)
{
    static const double some[] = {0.5, 1, 2, 0.25, 0.9, 0.001, 0, -1, 3, -0.5, 7, 1e-5};
    const double value = FUZZ_PICK(r, some);

    if (d->min > d->max)
        return value;
    return value < d->min ? d->min : value > d->max ? d->max : value;
}

static uint32_t tuple_length(fuzz_rng *r, const tn_shape *like)
{
    const int32_t ndim = like->ndim < 0 ? (int32_t)fuzz_below(r, 4) : like->ndim;
    const int32_t lengths[] = {ndim, ndim, ndim - 2, ndim - 1, 1, 2, 0, ndim + 1};
    const int32_t length = FUZZ_PICK(r, lengths);

    return length < 0 ? 0 : (uint32_t)length;
}

/* Items of a shape: the same, with what stands for a dimension, stretched where it is 1. */
static int64_t shape_item(fuzz_rng *r, const tn_attr_def *d, const tn_shape *like, uint32_t i)
{
    const bool known = (int32_t)i < like->ndim;

    switch (fuzz_below(r, 7)) {
    case 0:
        return bounded(d, -1);
    case 6: /* codes of Reshape */
        return bounded(d, -(int64_t)fuzz_below(r, 5));
    case 1:
        return known ? 0 : 1;
    case 2:
        return bounded(d, 1 + (int64_t)fuzz_below(r, 4));
    case 3:
        return like->ndim > 0 ? like->dim[fuzz_below(r, (uint64_t)like->ndim)] : 2;
    default:
        return !known ? 1 : like->dim[i] == 1 ? 1 + (int64_t)fuzz_below(r, 3) : like->dim[i];
    }
}

static uint32_t tuple_fit(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d, const tn_shape *like)
{
    const bool axes = is_axis(d), shape = named(d, "shape") || named(d, "size");
    const bool order = axes && named(d, "axes") && fuzz_chance(r, 50);
    const uint32_t length = order && like->ndim > 0      ? (uint32_t)like->ndim
                            : axes && fuzz_chance(r, 70) ? fuzz_below(r, 3)
                                                         : tuple_length(r, like);
    const uint32_t turn = fuzz_below(r, length + 1u);
    uint32_t at = fuzz_text(c, "(");

    for (uint32_t i = 0; i < length; i++) {
        if (d->type == TN_ATTR_T_FLOATS)
            fuzz_text_more(c, "%.9g,", float_of(r, d));
        else if (d->type == TN_ATTR_T_OPT_TUPLE && fuzz_chance(r, 40))
            fuzz_text_more(c, "None,");
        else
            fuzz_text_more(c, "%" PRId64 ",",
                           order   ? (int64_t)((i + turn) % length)
                           : axes  ? axis_of(r, like)
                           : shape ? shape_item(r, d, like, i)
                                   : int_of(r, d, like));
    }
    fuzz_text_more(c, ")");
    return at;
}

static uint32_t choice_of(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d)
{
    uint32_t count = 1, wanted;
    const char *p = d->choices;

    for (const char *q = p; *q; q++)
        count += *q == '|';
    for (wanted = fuzz_below(r, count); wanted; p++)
        wanted -= *p == '|';
    return fuzz_text(c, "%.*s", (int)strcspn(p, "|"), p);
}

uint32_t fuzz_attr_fit(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d, const tn_shape *like)
{
    static const char *const truths[] = {"True", "False", "1", "0"};

    switch (d->type) {
    case TN_ATTR_T_OPT_INT:
        if (fuzz_chance(r, 30))
            return fuzz_text(c, "None");
        /* fallthrough */
    case TN_ATTR_T_INT:
        return fuzz_text(c, "%" PRId64, int_of(r, d, like));
    case TN_ATTR_T_OPT_FLOAT:
        if (fuzz_chance(r, 30))
            return fuzz_text(c, "None");
        /* fallthrough */
    case TN_ATTR_T_FLOAT:
        return fuzz_text(c, "%.17g", float_of(r, d));
    case TN_ATTR_T_OPT_BOOL:
    case TN_ATTR_T_BOOL:
        return fuzz_text(c, "%s", FUZZ_PICK(r, truths));
    case TN_ATTR_T_CHOICE:
        return choice_of(c, r, d);
    case TN_ATTR_T_DTYPE:
        return fuzz_text(c, "%s", tni_dtype_name(fuzz_dtype_fit(r)));
    case TN_ATTR_T_TEXT:
        return fuzz_text(c, "%s", fuzz_chance(r, 50) ? "" : "cpu(0)");
    default:
        return tuple_fit(c, r, d, like);
    }
}

/* ---- wild ---------------------------------------------------------------------------------------------- */

static const char *const wild_ints[] = {"0",
                                        "-1",
                                        "1",
                                        "2",
                                        "31",
                                        "32",
                                        "33",
                                        "63",
                                        "64",
                                        "65",
                                        "127",
                                        "4096",
                                        "4097",
                                        "65536",
                                        "1000000007",
                                        "2147483647",
                                        "-2147483648",
                                        "4294967295",
                                        "4294967296",
                                        "1152921504606846976",
                                        "4611686018427387904",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "-9223372036854775807",
                                        "9223372036854775808"};
static const char *const wild_floats[] = {"nan",    "inf",  "-inf",   "1e308", "-1e308", "1e39",
                                          "1e-320", "-0.0", "0",      "1e400", "-1e400", "65520",
                                          "1e-45",  "3e38", "2.5e-8", "1e19",  "-1e19",  "9e18"};
static const char *const nonsense[] = {"",    "None", "nope",    "((1,2))",  "(1,",     "()",
                                       "[]",  "1.5",  "1e3",     "0x10",     " 1 ",     "True",
                                       "(,)", "1L",   "(None,)", "\xff\xfe", "float32", ")"};

static uint32_t tuple_wild(fuzz_case *c, fuzz_rng *r)
{
    static const uint32_t lengths[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 31, 32, 33, 64, 100, 4096, 4097};
    const uint32_t length = FUZZ_PICK(r, lengths);
    const bool same = length > 33;
    const char *item = fuzz_chance(r, 70) ? "1" : FUZZ_PICK(r, wild_ints);
    uint32_t at = fuzz_text(c, "(");

    for (uint32_t i = 0; i < length; i++) {
        if (!same)
            item = fuzz_chance(r, 40) ? "1" : fuzz_chance(r, 10) ? "None" : FUZZ_PICK(r, wild_ints);
        fuzz_text_more(c, "%s,", item);
    }
    fuzz_text_more(c, ")");
    return at;
}

uint32_t fuzz_attr_wild(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d)
{
    if (fuzz_chance(r, 10))
        return fuzz_text(c, "%s", FUZZ_PICK(r, nonsense));
    switch (d->type) {
    case TN_ATTR_T_FLOAT:
    case TN_ATTR_T_OPT_FLOAT:
        return fuzz_text(c, "%s", FUZZ_PICK(r, wild_floats));
    case TN_ATTR_T_INT:
    case TN_ATTR_T_OPT_INT:
        return fuzz_text(c, "%s", FUZZ_PICK(r, wild_ints));
    case TN_ATTR_T_TUPLE:
    case TN_ATTR_T_OPT_TUPLE:
    case TN_ATTR_T_FLOATS:
        return tuple_wild(c, r);
    case TN_ATTR_T_DTYPE:
        return fuzz_text(c, "%s", tni_dtype_name(fuzz_dtype_any(r)));
    case TN_ATTR_T_TEXT:
        return fuzz_text(c, "%s", fuzz_chance(r, 50) ? "gpu(0)" : "cpu(-1)");
    default:
        return fuzz_text(c, "%s", FUZZ_PICK(r, nonsense));
    }
}
