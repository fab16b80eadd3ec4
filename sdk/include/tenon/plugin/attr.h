/**
 * Rows of a table of attributes. A kernel reads the values in the order of the rows.
 *
 *     static const tn_attr_def pool_attrs[] = {
 *         TN_ATTR_TUPLE_IN("kernel", "()", 1, 1e6, "window size: (h, w)"),
 *         TN_ATTR_CHOICE("pool_type", "max", "max|avg|sum", "what is made of a window"),
 *         TN_ATTR_END,
 *     };
 *
 * A default is text, as a user would write it; TN_REQUIRED: there is none. `…_IN` rows bound the number, or
 * each item; in a row that is written out, `min` above `max` (1.0, 0.0) says that there are no bounds.
 *
 * A later release adds its attributes at the end, with a default that means what was before, and raises the
 * definition's `version`: TN_ATTR_ROW_SINCE says with which version a row came. Kernels of an older version
 * are not offered nodes where such an attribute differs from its default.
 */
#ifndef TENON_PLUGIN_ATTR_H
#define TENON_PLUGIN_ATTR_H

#include "op.h"

#define TN_REQUIRED NULL

#define TN_ATTR_ROW(name, type, flags, choices, fallback, min, max, doc)                                     \
    TN_ATTR_ROW_SINCE(1u, name, type, flags, choices, fallback, min, max, doc)
#define TN_ATTR_ROW_SINCE(since, name, type, flags, choices, fallback, min, max, doc)                        \
    {                                                                                                        \
        name, type, flags, choices, fallback, doc, min, max, since, 0u                                       \
    }

#define TN_ATTR_INT(name, fallback, doc) TN_ATTR_ROW(name, TN_ATTR_T_INT, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_INT_IN(name, fallback, min, max, doc)                                                        \
    TN_ATTR_ROW(name, TN_ATTR_T_INT, 0u, NULL, fallback, min, max, doc)
#define TN_ATTR_FLOAT(name, fallback, doc)                                                                   \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOAT, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_FLOAT_IN(name, fallback, min, max, doc)                                                      \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOAT, 0u, NULL, fallback, min, max, doc)
#define TN_ATTR_BOOL(name, fallback, doc) TN_ATTR_ROW(name, TN_ATTR_T_BOOL, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_CHOICE(name, fallback, choices, doc)                                                         \
    TN_ATTR_ROW(name, TN_ATTR_T_CHOICE, 0u, choices, fallback, 1.0, 0.0, doc)
#define TN_ATTR_TEXT(name, fallback, doc) TN_ATTR_ROW(name, TN_ATTR_T_TEXT, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_TUPLE(name, fallback, doc)                                                                   \
    TN_ATTR_ROW(name, TN_ATTR_T_TUPLE, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_TUPLE_IN(name, fallback, min, max, doc)                                                      \
    TN_ATTR_ROW(name, TN_ATTR_T_TUPLE, 0u, NULL, fallback, min, max, doc)
#define TN_ATTR_OPT_TUPLE(name, fallback, doc)                                                               \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_TUPLE, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_DTYPE(name, fallback, doc)                                                                   \
    TN_ATTR_ROW(name, TN_ATTR_T_DTYPE, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_OPT_INT(name, fallback, doc)                                                                 \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_INT, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_OPT_FLOAT(name, fallback, doc)                                                               \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_FLOAT, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_OPT_BOOL(name, fallback, doc)                                                                \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_BOOL, 0u, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_FLOATS(name, fallback, doc)                                                                  \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOATS, 0u, NULL, fallback, 1.0, 0.0, doc)

/** Run-time numbers: not part of a signature, read by the kernel at each call. */
#define TN_ATTR_FLOAT_RUN(name, fallback, doc)                                                               \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOAT, TN_ATTR_F_RUNTIME, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_FLOAT_RUN_IN(name, fallback, min, max, doc)                                                  \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOAT, TN_ATTR_F_RUNTIME, NULL, fallback, min, max, doc)
#define TN_ATTR_INT_RUN(name, fallback, doc)                                                                 \
    TN_ATTR_ROW(name, TN_ATTR_T_INT, TN_ATTR_F_RUNTIME, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_TUPLE_RUN(name, fallback, doc)                                                               \
    TN_ATTR_ROW(name, TN_ATTR_T_TUPLE, TN_ATTR_F_RUNTIME, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_FLOATS_RUN(name, fallback, doc)                                                              \
    TN_ATTR_ROW(name, TN_ATTR_T_FLOATS, TN_ATTR_F_RUNTIME, NULL, fallback, 1.0, 0.0, doc)

/** Run-time numbers that decide shapes. A kernel checks them against the shapes before it uses them. */
#define TN_ATTR_SHAPES_ (TN_ATTR_F_RUNTIME | TN_ATTR_F_SHAPE)
#define TN_ATTR_INT_SHAPE(name, fallback, doc)                                                               \
    TN_ATTR_ROW(name, TN_ATTR_T_INT, TN_ATTR_SHAPES_, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_OPT_INT_SHAPE(name, fallback, doc)                                                           \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_INT, TN_ATTR_SHAPES_, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_TUPLE_SHAPE(name, fallback, doc)                                                             \
    TN_ATTR_ROW(name, TN_ATTR_T_TUPLE, TN_ATTR_SHAPES_, NULL, fallback, 1.0, 0.0, doc)
#define TN_ATTR_OPT_TUPLE_SHAPE(name, fallback, doc)                                                         \
    TN_ATTR_ROW(name, TN_ATTR_T_OPT_TUPLE, TN_ATTR_SHAPES_, NULL, fallback, 1.0, 0.0, doc)

/** The number of inputs of a variadic operator, "num_args" mostly. */
#define TN_ATTR_COUNT(name)                                                                                  \
    TN_ATTR_ROW(name, TN_ATTR_T_INT, TN_ATTR_F_COUNT, NULL, TN_REQUIRED, 0.0, 4096.0, "number of inputs")

#define TN_ATTR_END TN_ATTR_ROW(NULL, 0u, 0u, NULL, NULL, 1.0, 0.0, NULL)

/* ---- lists ------------------------------------------------------------------------------------------- */

/*
 * An operator whose kernels may be written elsewhere has its attributes as a list in a header, from which
 * come its table, the indices of the attributes and the numbers of the choices. Those of Tenon's own
 * operators are tenon/plugin/op/<family>.h.
 *
 *     #define TN_Pooling_pool_type_CHOICES(C, op, name) C(op, name, max) C(op, name, avg) C(op, name, sum)
 *     #define TN_Pooling_ATTRS(X)                                                    \
 *         X(Pooling, TUPLE, kernel, "()", TN_IN(1, 1e9), "window size: (h, w)")      \
 *         X(Pooling, CHOICE, pool_type, "max", TN_ANY, "what is made of a window")
 *     TN_ATTRS(Pooling);              TN_Pooling_kernel is 0, TN_Pooling_pool_type is 1
 *     TN_CHOICES(Pooling, pool_type); TN_Pooling_pool_type_max is 0, …
 *     static const tn_attr_def pooling_attrs[] = TN_ATTR_TABLE(Pooling);
 *
 * A row is X(operator, kind, name, default, limits, documentation). The kinds are the ends of TN_ATTR_KIND_…
 * below. The order is part of the ABI: new attributes and choices come at the end, an attribute with the
 * version that brought it as TN_ANY_SINCE or TN_IN_SINCE. The operator's name is written without underscores
 * in front; operators with the same attributes share one list.
 */
#define TN_ATTRS(op) enum { TN_##op##_ATTRS(TN_ATTR_INDEX_) }
#define TN_CHOICES(op, name) enum { TN_##op##_##name##_CHOICES(TN_CHOICE_INDEX_, op, name) }
#define TN_ATTR_TABLE(op)                                                                                    \
    {                                                                                                        \
        TN_##op##_ATTRS(TN_ATTR_ROW_) TN_ATTR_END                                                            \
    }

#define TN_ANY TN_ANY_SINCE(1u)
#define TN_IN(min, max) TN_IN_SINCE(1u, min, max)
#define TN_ANY_SINCE(version) 1.0, 0.0, version
#define TN_IN_SINCE(version, min, max) min, max, version

#define TN_ATTR_KIND_INT(op, name) TN_ATTR_T_INT, 0u, NULL
#define TN_ATTR_KIND_FLOAT(op, name) TN_ATTR_T_FLOAT, 0u, NULL
#define TN_ATTR_KIND_BOOL(op, name) TN_ATTR_T_BOOL, 0u, NULL
#define TN_ATTR_KIND_CHOICE(op, name) TN_ATTR_T_CHOICE, 0u, TN_CHOICE_TEXTS_(op, name)
#define TN_ATTR_KIND_TEXT(op, name) TN_ATTR_T_TEXT, 0u, NULL
#define TN_ATTR_KIND_TUPLE(op, name) TN_ATTR_T_TUPLE, 0u, NULL
#define TN_ATTR_KIND_PAIRS(op, name) TN_ATTR_T_TUPLE, TN_ATTR_F_PAIRS, NULL
#define TN_ATTR_KIND_DTYPE(op, name) TN_ATTR_T_DTYPE, 0u, NULL
#define TN_ATTR_KIND_OPT_INT(op, name) TN_ATTR_T_OPT_INT, 0u, NULL
#define TN_ATTR_KIND_OPT_FLOAT(op, name) TN_ATTR_T_OPT_FLOAT, 0u, NULL
#define TN_ATTR_KIND_OPT_BOOL(op, name) TN_ATTR_T_OPT_BOOL, 0u, NULL
#define TN_ATTR_KIND_FLOATS(op, name) TN_ATTR_T_FLOATS, 0u, NULL
#define TN_ATTR_KIND_OPT_TUPLE(op, name) TN_ATTR_T_OPT_TUPLE, 0u, NULL
#define TN_ATTR_KIND_INT_RUN(op, name) TN_ATTR_T_INT, TN_ATTR_F_RUNTIME, NULL
#define TN_ATTR_KIND_FLOAT_RUN(op, name) TN_ATTR_T_FLOAT, TN_ATTR_F_RUNTIME, NULL
#define TN_ATTR_KIND_TUPLE_RUN(op, name) TN_ATTR_T_TUPLE, TN_ATTR_F_RUNTIME, NULL
#define TN_ATTR_KIND_FLOATS_RUN(op, name) TN_ATTR_T_FLOATS, TN_ATTR_F_RUNTIME, NULL
#define TN_ATTR_KIND_INT_SHAPE(op, name) TN_ATTR_T_INT, TN_ATTR_SHAPES_, NULL
#define TN_ATTR_KIND_OPT_INT_SHAPE(op, name) TN_ATTR_T_OPT_INT, TN_ATTR_SHAPES_, NULL
#define TN_ATTR_KIND_TUPLE_SHAPE(op, name) TN_ATTR_T_TUPLE, TN_ATTR_SHAPES_, NULL
#define TN_ATTR_KIND_OPT_TUPLE_SHAPE(op, name) TN_ATTR_T_OPT_TUPLE, TN_ATTR_SHAPES_, NULL
#define TN_ATTR_KIND_COUNT(op, name) TN_ATTR_T_INT, TN_ATTR_F_COUNT, NULL

#define TN_ATTR_INDEX_(op, kind, name, fallback, limits, doc) TN_##op##_##name,
#define TN_ATTR_ROW_(op, kind, name, fallback, limits, doc)                                                  \
    {#name, TN_ATTR_KIND_##kind(op, name), fallback, doc, limits, 0u},
#define TN_CHOICE_INDEX_(op, name, value) TN_##op##_##name##_##value,
#define TN_CHOICE_TEXT_(op, name, value) "|" #value
#define TN_CHOICE_TEXTS_(op, name) (&(TN_##op##_##name##_CHOICES(TN_CHOICE_TEXT_, op, name))[1])

#endif
