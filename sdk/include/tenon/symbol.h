/**
 * Symbols: graphs of operators without data. A symbol stands for one or more outputs of a graph and never
 * changes, but for the attributes of its head (tn_symbol_attr_set). Files are MXNet's -symbol.json, versions
 * 0.8 to 1.9.
 */
#ifndef TENON_SYMBOL_H
#define TENON_SYMBOL_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_symbol tn_symbol;

/* ---- composing ----------------------------------------------------------------------------------- */

/** A free variable: data, a weight. TN_E_ARG: empty name. @threads any @since 0.1 */
TN_API tn_status tn_symbol_variable(tn_ctx *ctx, const char *name, tn_symbol **out);

/** One operator over symbols. */
typedef struct tn_symbol_call {
    uint32_t struct_size;         /* TN_SIZE(tn_symbol_call) */
    uint32_t in_count;
    const char *op;
    const char *name;             /* of the node; NULL: made up (convolution0) */
    const char *const *attrs;     /* pairs of name and text, NULL-ended; also such as __lr_mult__ */
    tn_symbol *const *in;         /* each with one output */
    const char *const *in_names;  /* names of the inputs they are for ("weight"); NULL: by position */
    tn_symbol *const *bodies;     /* graphs that the operator runs within itself (a loop's); NULL: none */
    uint32_t body_count, reserved;
} tn_symbol_call;

/**
 * An operator over symbols. Inputs that are not given become variables called NAME_weight and so on; the
 * number of inputs of an operator that takes any is filled in.
 *
 * @return TN_E_KEY: unknown operator, or input name · TN_E_ATTR: unknown, missing or bad attribute ·
 *         TN_E_ARG: too many inputs, or one with several outputs; bodies of an operator that runs none, or
 *         nested too deep · TN_E_UNSUPPORTED: a part of gradients
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_symbol_op(tn_ctx *ctx, const tn_symbol_call *call, tn_symbol **out);

/** Replaces variables of `s` by symbols, by name; those without a symbol stay. Makes a new symbol. TN_E_KEY:
 * no such variable. @threads any @since 0.1 */
TN_API tn_status tn_symbol_substitute(tn_symbol *s, size_t count, const char *const *names,
                                      tn_symbol *const *by, tn_symbol **out);

/** All outputs of several symbols as one. @threads any @since 0.1 */
TN_API tn_status tn_symbol_group(size_t count, tn_symbol *const *parts, tn_symbol **out);

/** Every visible output of every node. @threads any @since 0.1 */
TN_API tn_status tn_symbol_internals(tn_symbol *s, tn_symbol **out);

/** The inputs of its node, as one symbol; *out is NULL if it has none. @threads any @since 0.1 */
TN_API tn_status tn_symbol_children(tn_symbol *s, tn_symbol **out);

/** One output. TN_E_ARG: index too large. @threads any @since 0.1 */
TN_API tn_status tn_symbol_output(tn_symbol *s, uint32_t index, tn_symbol **out);

/** How many outputs it stands for; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_symbol_output_count(const tn_symbol *s);

/** Index of an output by name ("fc1_output"). TN_E_KEY: no such output. @threads any @since 0.1 */
TN_API tn_status tn_symbol_find(tn_symbol *s, const char *output, uint32_t *index);

/** One more reference. NULL is fine. @threads any @since 0.1 */
TN_API void tn_symbol_retain(tn_symbol *s);

/** One reference less. NULL is fine. @threads any @since 0.1 */
TN_API void tn_symbol_release(tn_symbol *s);

/** Begins a scope of made-up names on this thread: own counters, `prefix` in front ("net0_"); scopes nest.
 * @threads any @since 0.1 */
TN_API tn_status tn_symbol_prefix_push(const char *prefix);

/** Ends the innermost scope of names; nothing if there is none. @threads any @since 0.1 */
TN_API void tn_symbol_prefix_pop(void);

/* ---- names, shapes, attributes ------------------------------------------------------------------- */

#define TN_LIST_ARGUMENTS 0
#define TN_LIST_AUX 1     /* states that operators change: moving averages */
#define TN_LIST_OUTPUTS 2
#define TN_LIST_INPUTS 3  /* arguments and aux, in order of appearance: the inputs of a cached operator */

/** Names, depth first. `names`: `count` texts in one block, yours (tn_free). @threads any @since 0.1 */
TN_API tn_status tn_symbol_list(tn_symbol *s, int32_t what, size_t *count, char ***names);

/** What is known, or was found, of one variable or output. */
typedef struct tn_known {
    const char *name;
    const int64_t *shape; /* a dimension of -1 is not known */
    int32_t ndim;         /* -1: not known */
    int32_t dtype;        /* -1: not known */
} tn_known;

typedef struct tn_inferred tn_inferred;

#define TN_SYMBOL_PARTIAL 1u /* what stays unknown is no error */

/**
 * Finds shapes and data types of all variables and outputs from those of some, in both directions.
 *
 * @param known `count` of them, by name
 * @param flags TN_SYMBOL_PARTIAL
 * @return TN_E_KEY: no such variable · TN_E_SHAPE, TN_E_DTYPE: contradictions, with node and shapes; a shape
 *         that stays unknown
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_symbol_infer(tn_symbol *s, size_t count, const tn_known *known, uint32_t flags,
                                 tn_inferred **out);

/** An item of the lists that tn_symbol_list gives for `what`; borrowed from `i`. TN_E_ARG: index too large.
 * @threads any @since 0.1 */
TN_API tn_status tn_inferred_at(const tn_inferred *i, int32_t what, size_t index, tn_known *out);

/** 1 if every shape and data type was found. @threads any @since 0.1 */
TN_API int32_t tn_inferred_complete(const tn_inferred *i);

/** NULL is fine. @threads any @since 0.1 */
TN_API void tn_inferred_destroy(tn_inferred *i);

/** An attribute of the head node, borrowed from `s` until it is set again; NULL: unset. TN_E_ARG: it has
 * several heads.
 * @threads any @since 0.1 */
TN_API tn_status tn_symbol_attr_get(tn_symbol *s, const char *key, const char **text);

/** Sets an attribute of the head node ("__lr_mult__"). TN_E_ATTR: one of the operator's own. @threads owner
 * @since 0.1 */
TN_API tn_status tn_symbol_attr_set(tn_symbol *s, const char *key, const char *text);

/* ---- files --------------------------------------------------------------------------------------- */

/** Reads a -symbol.json file. TN_E_IO · TN_E_FORMAT: damaged · TN_E_KEY: an unknown operator ·
 * TN_E_UNSUPPORTED: parts of gradients, in a file that does not say that it holds some. @threads any
 * @since 0.1 */
TN_API tn_status tn_symbol_load(tn_ctx *ctx, const char *path, tn_symbol **out);

/** The same from memory: `bytes` bytes of UTF-8. @threads any @since 0.1 */
TN_API tn_status tn_symbol_from_json(tn_ctx *ctx, const char *text, uint64_t bytes, tn_symbol **out);

/** Writes a -symbol.json file as MXNet 1.9 does; the file is whole or absent. @threads any @since 0.1 */
TN_API tn_status tn_symbol_save(tn_symbol *s, const char *path);

/** The same as text, NUL-ended, yours (tn_free). @threads any @since 0.1 */
TN_API tn_status tn_symbol_to_json(tn_symbol *s, char **text);

#ifdef __cplusplus
}
#endif

#endif
