/**
 * Parameters of a net by patterns of their names, gradients by hand, and hooks: what Gluon's collect_params,
 * setattr, zero_grad, apply, clip_global_norm and register_forward_hook are, for C.
 *
 * A pattern is a POSIX extended expression that fits a structural name ("features.0.weight") from its
 * beginning on: ".*bias", "features".
 *
 * @threads one thread at a time per app
 * @since 0.1
 */
#ifndef TENON_NN_PARAMS_H
#define TENON_NN_PARAMS_H

#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_param_options {
    TN_NN_HEAD;
    /* write: a backward overwrites the gradient · add: it adds to it, until tn_net_zero_grad() · none: there
     * is no gradient, and trainers leave the parameter as it is. Running statistics never have one. NULL: as
     * it was */
    const char *grad;
    double lr_mult, wd_mult; /* factors of the rate and of weight decay; 0: as they were, below 0: 0 */
} tn_param_options;

/**
 * Sets what the options have, of all parameters that the pattern fits. Which parameters are trained is
 * settled by a trainer's first step: an error behind it.
 * @return how many parameters; 0: failed, or the pattern fits none, which is TN_E_KEY
 * @since 0.1
 */
TN_API size_t tn_net_set_(tn_net *net, const char *pattern, const tn_param_options *options);
/**
 * Index of the first parameter from `from` on that the pattern fits; tn_net_param_count(): there is none.
 * @since 0.1
 */
TN_API size_t tn_net_match(tn_net *net, const char *pattern, size_t from);
/** Gradients become zeros, on all devices. @since 0.1 */
TN_API void tn_net_zero_grad(tn_net *net);
/** Calls `function` of each net within, then of the net itself. @since 0.1 */
TN_API void tn_net_apply(tn_net *net, void (*function)(void *arg, tn_net *net), void *arg);
/** Names from the outermost net on: "net.features". Borrowed; "": failed. @since 0.1 */
TN_API const char *tn_net_path(const tn_net *net);

/**
 * The norm of all arrays together; where it is above `norm_max`, they are scaled down to that. One that is
 * not finite changes nothing. Waits.
 * @param norm_max above 0
 * @return the norm as it was; NaN on error
 * @since 0.1
 */
TN_API double tn_app_clip_norm(tn_app *app, size_t count, tn_array *const *arrays, double norm_max);

/** A call of a net, or of a layer within it. */
typedef struct tn_call_info {
    uint32_t struct_size;
    uint32_t reserved;
    const char *path; /* "net", "net.stage1.conv0" */
    const char *op;   /* of a layer: its operator; NULL: a net */
    size_t in_count, out_count;
    const tn_x *in, *out; /* out_count 0: the call is still to come */
} tn_call_info;

typedef struct tn_hook_options {
    TN_NN_HEAD;
    /* May ask for sizes and read numbers (tn_read), and must not call layers. It hears of calls on arrays: a
     * hybridized net runs as one program, in which there are none. */
    void (*hook)(void *arg, const tn_call_info *call);
    void *arg;
    int32_t before; /* 1: before the calls; 0: behind them */
    int32_t layers; /* 1: of the calls of all layers within the net, too */
} tn_hook_options;

/** Has a function called around the net's calls. At most 16 of a net. @return its number, for
 * tn_net_unhook(); 0: failed @since 0.1 */
TN_API int32_t tn_net_hook_(tn_net *net, const tn_hook_options *options);
/** Takes it off again. TN_E_KEY: there is no such. @since 0.1 */
TN_API void tn_net_unhook(tn_net *net, int32_t hook);

#ifndef __cplusplus
/* tn_net_set(net, ".*bias", .wd_mult = -1) */
#define tn_net_set(...) TN_NN_SET_(__VA_ARGS__, )
#define TN_NN_SET_(net, pattern, ...)                                                                        \
    tn_net_set_(net, pattern, &(const tn_param_options){TN_NN_HERE_(tn_param_options), __VA_ARGS__})
/* tn_net_hook(net, .hook = f) */
#define tn_net_hook(...) TN_NN_CALL_(tn_net_hook_, tn_hook_options, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
