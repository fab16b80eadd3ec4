/**
 * Kernels: which ones the loaded plugins have, and why one is chosen for an operator.
 */
#ifndef TENON_KERNEL_H
#define TENON_KERNEL_H

#include "device.h"
#include "symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what there is ------------------------------------------------------------------------------- */

#define TN_KERNEL_IS_DETERMINISTIC 1u /* the same bits from run to run on one machine and thread count */
#define TN_KERNEL_IS_STRIDED 2u       /* takes strided arrays as they are */
#define TN_KERNEL_IS_ADDING 4u        /* adds to its output itself */
#define TN_KERNEL_IS_ASYNC 8u         /* completes later */

/** One kernel of a loaded plugin. All texts live as long as the context. */
typedef struct tn_kernel_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_kernel_info) */
    uint32_t flags;       /* TN_KERNEL_IS_… */
    const char *op, *name, *plugin;
    const char *device;       /* type: "cpu" */
    const char *isa;          /* instruction set it needs: "x86-64-v3", "" */
    const char *const *types; /* rules such as "data:f32,f16", "weight:=data", NULL-ended */
    int32_t rank;             /* 64 plain, 128 library, 192 tuned */
    uint32_t op_version_min, op_version_max;
    uint32_t host_in, host_out; /* bit i: input or output i must lie in host memory, whatever the device */
    int32_t usable;             /* 1: this processor has `isa` */
} tn_kernel_info;

/** How many kernels the plugins loaded so far have. @threads any @since 0.1 */
TN_API tn_status tn_kernel_count(tn_ctx *ctx, size_t *count);

/** A kernel by index: by plugin, then in the plugin's order; indices move when a plugin is loaded.
 * TN_E_ARG: index too large, or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_kernel_at(tn_ctx *ctx, size_t index, tn_kernel_info *out);

/* ---- why one is chosen --------------------------------------------------------------------------- */

typedef struct tn_choice tn_choice;

#define TN_CHOICE_TRAIN 1u /* as in training */

/** What is asked: an operator with attributes, for inputs of a type. */
typedef struct tn_choice_query {
    uint32_t struct_size; /* TN_SIZE(tn_choice_query) */
    uint32_t flags;       /* TN_CHOICE_TRAIN */
    const char *op;
    const char *const *attrs; /* pairs of name and text, NULL-ended; NULL: none. Without shapes required ones
                                 may be left out if none is given. */
    const tn_device *device;  /* NULL: the default */
    const tn_known
        *inputs;          /* shapes of some inputs, by name ("data"; NULL: in order); the rest is inferred */
    uint32_t input_count; /* 0: no shapes; then kernels are not asked, and prepare may still decline */
    int32_t dtype;        /* of the first input; -1: float32. Others follow from it, or have it too. */
} tn_choice_query;

/**
 * Tells which kernel would serve a call, and why. Plugins with kernels for the device are loaded; nothing
 * runs.
 *
 * @return TN_E_KEY: no such operator (the text suggests), or it has no input of that name · TN_E_ATTR ·
 *         TN_E_SHAPE, TN_E_DTYPE: the inputs do not fit, or a shape stays unknown · TN_E_ARG: another flag,
 *         no operator · TN_E_NOMEM. That no kernel serves is TN_OK: see tn_choice_info.
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_choice_create(tn_ctx *ctx, const tn_choice_query *query, tn_choice **out);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_choice_destroy(tn_choice *choice);

#define TN_RULE_NONE 0   /* no kernel serves this */
#define TN_RULE_CORE 1   /* needs none: the result is a view of the input */
#define TN_RULE_PIN 2    /* [kernel] Op@device */
#define TN_RULE_PREFER 3 /* kernel.prefer */
#define TN_RULE_RANK 4   /* the higher declared rank */
#define TN_RULE_NAME 5   /* equal ranks: the first name */
#define TN_RULE_ONLY 6   /* no other candidate serves this */
#define TN_RULE_LOAD 7   /* no other plugin with kernels for the device is in plugins.load */
#define TN_RULE_BODY 8   /* needs none of its own: its body runs by a kernel of _fused_pointwise */

/** What was decided. Texts live as long as the choice. */
typedef struct tn_choice_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_choice_info) */
    int32_t rule;         /* TN_RULE_…: what put the chosen one before the next that serves */
    uint32_t count;       /* candidates */
    uint32_t chosen;      /* index; UINT32_MAX: none */
    int32_t asked;        /* 1: shapes were known and kernels were asked */
    uint32_t input_count, output_count;
    uint32_t reserved;
    const char *op;          /* its own name, if an alias was given */
    const char *device;      /* "cpu:0" */
    const char *option;      /* option of the rule: "kernel.FullyConnected@cpu", "kernel.prefer"; "" */
    const char *value;       /* its value; "" */
    const tn_known *inputs;  /* as inferred */
    const tn_known *outputs; /* ndim -1: not known */
} tn_choice_info;

/** TN_E_ARG: struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_choice_get(const tn_choice *choice, tn_choice_info *out);

/** One candidate. Texts live as long as the context, `reason` as long as the choice. */
typedef struct tn_candidate_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_candidate_info) */
    int32_t serves;       /* 1: yes, as far as it was asked */
    const char *plugin;
    const char *kernel; /* "": the plugin may not run, `reason` says why */
    const char *reason; /* why it does not serve; "" */
    int32_t rank;
    int32_t pinned; /* 1: by [kernel] Op@device */
    int32_t prefer; /* place in kernel.prefer; -1: not there */
    uint32_t reserved;
} tn_candidate_info;

/** A candidate by index, in order of preference. TN_E_ARG: index too large, or struct_size 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_choice_candidate(const tn_choice *choice, uint32_t index, tn_candidate_info *out);

#ifdef __cplusplus
}
#endif

#endif
