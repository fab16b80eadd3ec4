/**
 * Operators: what there is, and calling one now.
 *
 * A *site* is one place of a program that calls one operator: its attributes are parsed once, its plans are
 * found at once. Attributes travel as a NULL-ended list of pairs: {"kernel", "(3, 3)", "num_filter", "20",
 * NULL}.
 */
#ifndef TENON_OP_H
#define TENON_OP_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tn_op; /* tenon/plugin/op.h */

/* ---- the vocabulary ------------------------------------------------------------------------------ */

/** What is to be known of an operator. Everything lives as long as the context. */
typedef struct tn_op_info {
    uint32_t struct_size;         /* set by the caller: TN_SIZE(tn_op_info) */
    uint32_t attr_count;
    const char *name, *doc;
    const char *plugin;           /* that brought it; "": built in, or the program */
    const char *const *aliases;   /* NULL-ended */
    const tn_attr_def *attrs;     /* in the order of their indices */
    const char *const *inputs;    /* NULL-ended; a last one such as "arg*" stands for any number */
    const char *const *outputs;   /* NULL-ended */
    uint64_t mutates;             /* bit i: input i is changed */
    uint32_t version, visible;    /* visible: outputs that callers see; 0: all */
    int32_t differentiable;       /* 1: it has a gradient (or one of zeros) */
    uint32_t random;              /* 1: it takes random numbers */
    const struct tn_op *definition;
    const char *family;           /* of the core's operators: "conv", "reduce"; "": not one of them */
} tn_op_info;

/** Operators known so far; those of plugins come when a name is not found, or at tn_plugin_load.
 * @threads any @since 0.1 */
TN_API tn_status tn_op_count(tn_ctx *ctx, size_t *count);

/** An operator by index, in the order of registration. TN_E_ARG: index too large, struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_op_at(tn_ctx *ctx, size_t index, tn_op_info *out);

/** An operator by name or alias. TN_E_KEY: unknown; the text suggests. @threads any @since 0.1 */
TN_API tn_status tn_op_find(tn_ctx *ctx, const char *name, tn_op_info *out);

/**
 * Adds an operator of the program: gradient, symbolic use and JSON as any other. Kernels for it come from a
 * plugin, or from tn_plugin_add.
 *
 * @param op lives as long as the context
 * @return TN_E_KEY: a name is taken · TN_E_ARG: the definition is not complete, or contradicts itself
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_op_register(tn_ctx *ctx, const struct tn_op *op);

/* ---- calling ------------------------------------------------------------------------------------- */

typedef struct tn_site tn_site;

/**
 * A call site of operator `op`.
 *
 * @param attrs pairs of name and text, NULL-ended; NULL: none. Operators with any number of inputs need
 *              theirs ("num_args") here.
 * @return TN_E_KEY: unknown operator · TN_E_UNSUPPORTED: a part of gradients (TN_OP_BACKWARD), which
 *         tn_backward alone calls · TN_E_ATTR: unknown, missing or bad attribute; the text names it
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_site_create(tn_ctx *ctx, const char *op, const char *const *attrs, tn_site **out);

/** Index of an attribute, for the calls below. TN_E_ATTR: the operator has none of this name.
 * @threads any @since 0.1 */
TN_API tn_status tn_site_attr(const tn_site *site, const char *name, uint32_t *index);

/** Sets an attribute that may change from call to call (lr, wd, t, scalar …). TN_E_ATTR: not such a one, not
 * a float, or out of range. @threads any @since 0.1 */
TN_API tn_status tn_site_set_float(tn_site *site, uint32_t index, double value);

/** The same for an integer, or a bool as 0 or 1. @threads any @since 0.1 */
TN_API tn_status tn_site_set_int(tn_site *site, uint32_t index, int64_t value);

/**
 * The same for a tuple: `x[i:i+n]` in a loop is one site of `slice` whose begin and end are set. Calls that
 * are queued already keep the values of their time.
 *
 * @param count 0 to 4096
 * @param items copied; TN_NONE_ITEM: None, where the attribute takes it
 * @return TN_E_ATTR: not a run-time attribute, no tuple of this kind, too many items, or one out of range ·
 *         TN_E_ARG: `items` is NULL · TN_E_NOMEM. The site is as it was.
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_site_set_tuple(tn_site *site, uint32_t index, uint32_t count, const int64_t *items);

/** The same for a tuple of floats (lrs, wds). @threads any @since 0.1 */
TN_API tn_status tn_site_set_floats(tn_site *site, uint32_t index, uint32_t count, const double *items);

/** Sets an attribute to None. TN_E_ATTR: not a run-time attribute, or one that cannot be None. @threads any
 * @since 0.1 */
TN_API tn_status tn_site_set_none(tn_site *site, uint32_t index);

/** Frees a site; calls already queued are not touched. NULL is fine. @threads any @since 0.1 */
TN_API void tn_site_release(tn_site *site);

/**
 * Calls the operator of a site. Queued; recorded if the thread is recording.
 *
 * @param in        `in_count` arrays, none NULL
 * @param out_count room in `out`: at least the visible outputs
 * @param out       out[i] NULL: a new array is made, yours; else it is overwritten (its shape and type must
 *                  fit)
 * @return TN_E_ARG: NULL arrays, a wrong number of inputs, too little room · TN_E_SHAPE, TN_E_DTYPE: the
 *         inputs do not fit · TN_E_UNSUPPORTED: no kernel serves this; the text lists candidates ·
 *         TN_E_DEVICE: inputs of two devices · TN_E_NOMEM. `out` is as it was.
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_invoke(tn_site *site, uint32_t in_count, tn_array *const *in, uint32_t out_count,
                           tn_array **out);

/** One call by name. */
typedef struct tn_op_call {
    uint32_t struct_size;      /* TN_SIZE(tn_op_call) */
    uint32_t in_count;
    const char *op;
    const char *const *attrs;  /* as for tn_site_create; the number of inputs may be left out */
    tn_array *const *in;
} tn_op_call;

/** Calls an operator by name: for tools and languages; a program that calls often makes a site. `made` (may
 * be NULL): how many outputs there are. Statuses of tn_site_create and tn_invoke. @threads any @since 0.1 */
TN_API tn_status tn_invoke_text(tn_ctx *ctx, const tn_op_call *call, uint32_t out_count, tn_array **out,
                                uint32_t *made);

#ifdef __cplusplus
}
#endif

#endif
