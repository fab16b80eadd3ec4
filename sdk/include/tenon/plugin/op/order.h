/** Attributes of the operators of the family order. */
#ifndef TENON_PLUGIN_OP_ORDER_H
#define TENON_PLUGIN_OP_ORDER_H

#include "../attr.h"

#define TN_sort_ATTRS(X)                                                                                     \
    X(sort, OPT_INT, axis, "-1", TN_ANY, "along which is sorted; None: the input counts as flat")            \
    X(sort, BOOL, is_ascend, "1", TN_ANY, "the smallest first")
TN_ATTRS(sort);

#define TN_argsort_ATTRS(X)                                                                                  \
    X(argsort, OPT_INT, axis, "-1", TN_ANY, "along which is sorted; None: the input counts as flat")         \
    X(argsort, BOOL, is_ascend, "1", TN_ANY, "the smallest first")                                           \
    X(argsort, DTYPE, dtype, "float32", TN_ANY,                                                              \
      "of the indices: float16, float32, float64, uint8, int32 or int64")
TN_ATTRS(argsort);

#define TN_topk_ret_typ_CHOICES(C, op, name)                                                                 \
    C(op, name, both) C(op, name, indices) C(op, name, mask) C(op, name, value)
#define TN_topk_ATTRS(X)                                                                                     \
    X(topk, OPT_INT, axis, "-1", TN_ANY, "along which is chosen; None: the input counts as flat")            \
    X(topk, INT, k, "1", TN_ANY, "how many are chosen; 0 or below: all")                                     \
    X(topk, CHOICE, ret_typ, "indices", TN_ANY, "what comes out; mask: 1 at what is chosen, else 0")         \
    X(topk, BOOL, is_ascend, "0", TN_ANY, "the smallest instead of the largest")                             \
    X(topk, DTYPE, dtype, "float32", TN_ANY,                                                                 \
      "of the indices: float16, float32, float64, uint8, int32 or int64")
TN_ATTRS(topk);
TN_CHOICES(topk, ret_typ);

#endif
