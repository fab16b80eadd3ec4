/*
 * Room api: one file per public header. A call checks its arguments, calls the room, and nothing else. What
 * the files share stands here.
 */
#ifndef TN_API_H
#define TN_API_H

#include "context/context.h"
#include "io/io.h"
#include "tenon/context.h"

/* TN_E_ARG: "tn_open: out is NULL". `what`: the arguments that were looked at, such as "ctx or out". */
tn_status api_null(const char *function, const char *what);
/* An options struct of the program into ours: members it does not know are zeros; members that we do not know
 * must be zeros. `in` starts with struct_size. */
tn_status api_options(const char *function, const void *in, void *out, uint32_t bytes);
/* Our struct into one of the program, as much as it has room for. Both start with struct_size. */
tn_status api_info(const char *function, const void *from, void *out, uint32_t bytes);
/* NULL becomes the thread's default; a device of another context is TN_E_ARG. */
tn_status api_device(tni_context *c, const void *device, tni_device **out);
/* Each is an array of `c`; NULL items are let pass. `arrays` may be NULL if `count` is 0. */
tn_status api_arrays(const char *function, const tni_context *c, uint32_t count, tni_array *const *arrays);

/* What a row of a table says of an option: all but key, value, origin. */
void api_option_fill(const tni_option_def *def, struct tn_option_info *info);

struct tn_inferred { /* symbol.c makes it, view.c reads it */
    tni_graph *graph;
    char **outputs;         /* names of the heads; one block */
    uint32_t *variables[2]; /* of arguments and aux states: nodes, in order */
    uint32_t count[2];
    bool complete;
};

/* The variable of `g` that is named as a parameter; TN_E_KEY: there is none (program.c). */
tn_status api_param_find(const tni_graph *g, const char *name, uint32_t *out);

/* Presets what the program knows of a variable of `g`, whose index is given back. TN_E_KEY: there is none of
 * that name; TN_E_SHAPE, TN_E_DTYPE: no shape, no type (symbol.c). */
struct tn_known;
tn_status api_known_set(const char *function, tni_graph *g, const struct tn_known *k, uint32_t *variable);

/* What a cached operator compiled last, copied (view.c). */
struct tn_program_view;
tn_status api_view_cached(tni_cached_op *op, struct tn_program_view **out);

#define API_ATTRS_MAX 128 /* attributes of one call: more than any operator may have */

typedef struct api_attrs { /* a list of pairs, taken apart; texts are borrowed */
    size_t count;
    const char *names[API_ATTRS_MAX + 1], *texts[API_ATTRS_MAX + 1];
} api_attrs;
/* `pairs` NULL: none. TN_E_ATTR: too many; TN_E_ARG: a name without a text. */
tn_status api_attrs_read(const char *function, const char *const *pairs, api_attrs *out);

#endif
