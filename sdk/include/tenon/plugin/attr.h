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

#endif
