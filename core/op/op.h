/*
 * The interface of room op: the vocabulary. Definitions in tables (one file per family), attribute values,
 * inference.
 *
 * A definition is a `tn_op`, whoever brought it: the core's families, a plugin, or a program.
 */
#ifndef TN_OP_H
#define TN_OP_H

#include "tenon/plugin/op.h"
#include "tensor/tensor.h"

typedef struct tni_opdef {
    const tn_op *op;
    uint32_t attr_count;
    uint32_t id;          /* dense within the set */
    uint32_t input_count; /* fixed ones: without a variadic last */
    bool variadic;
    int32_t count_attr;              /* index of the TN_ATTR_F_COUNT attribute, -1 none */
    const tn_value *defaults;        /* attr_count values */
    uint64_t runtime_mask[2];        /* attributes that are TN_ATTR_F_RUNTIME, by bit */
    uint32_t by_run;                 /* TNI_BY_RUN_…: what they decide, asked at every call */
    tni_plugin *plugin;              /* NULL: core or program */
    void *kernels;                   /* room compile keeps its candidates here */
    const char *family;              /* the core's file that defines it; NULL: a plugin's, or the program's */
    const struct tni_opdef *meaning; /* whose kernels serve it; NULL: its own */
    uint32_t borrowed;     /* TNI_OF_…: functions that are the meaning's and are asked as the meaning's */
    struct tni_body *body; /* of a definition with one: its code (body.h); owned */
    void *function;        /* room exec's: a forward and backward of the program; NULL: kernels serve it */
} tni_opdef;

#define TNI_BY_RUN_ARGS 1u   /* some are tuples, whose lengths `args` checks */
#define TNI_BY_RUN_SHAPES 2u /* some decide shapes: TN_ATTR_F_SHAPE */

#define TNI_OF_ARGS 1u
#define TNI_OF_SHAPE 2u
#define TNI_OF_DTYPE 4u
#define TNI_OF_STORAGE 8u
#define TNI_OF_GRADIENT 16u
#define TNI_OF_COST 32u

/* How many names a list has, which ends with NULL or is that. */
static inline uint32_t tni_names_count(const char *const *names)
{
    uint32_t count = 0;

    while (names && names[count])
        count++;
    return count;
}

/* The definition that kernels are for. */
static inline const tni_opdef *tni_op_meaning(const tni_opdef *def)
{
    return def->meaning ? def->meaning : def;
}

/* The operator that a function of the definition is told of: rows are found by its name. */
static inline const tn_op *tni_op_argument(const tni_opdef *def, uint32_t function)
{
    return def->borrowed & function ? def->meaning->op : def->op;
}

/* ---- registry.c --------------------------------------------------------------------------------------- */

typedef struct tni_opset tni_opset;
tn_status tni_opset_create(tni_registry *plugins,
                           tni_opset **out); /* core families; plugins' on first miss */
void tni_opset_destroy(tni_opset *s);
tn_status tni_opset_add(tni_opset *s, const tn_op *op,
                        tni_plugin *plugin); /* checked; name taken: TN_E_KEY */
tn_status tni_opset_add_function(tni_opset *s, const tn_op *op, void *function); /* the same */
/* By name or alias; TN_E_KEY with suggestions. Definitions live as long as the set. */
tn_status tni_opset_find(tni_opset *s, const char *name, const tni_opdef **out);
/* The same for a name that a user or a file gives: an operator that only gradients are made of
 * (TN_OP_BACKWARD), or that passes and copies make (TN_OP_INTERNAL), is TN_E_UNSUPPORTED. Gradients and
 * programs are built behind tni_opset_find. */
tn_status tni_opset_find_offered(tni_opset *s, const char *name, const tni_opdef **out);
/* The same for files that keep gradients: TN_OP_BACKWARD is taken. */
tn_status tni_opset_find_kept(tni_opset *s, const char *name, const tni_opdef **out);
/* Takes in the operators of plugins that were loaded since, and loads none; a bad definition is a warning. */
void tni_opset_refresh(tni_opset *s);
size_t tni_opset_count(const tni_opset *s);
const tni_opdef *tni_opset_at(const tni_opset *s, size_t index); /* by order of registration */

/* ---- attr.c: values of attributes; immutable, shared --------------------------------------------------- */

#define TNI_ATTR_ITEMS_MAX 4096 /* of a tuple: multi-tensor optimizers carry one rate per weight */

typedef struct tni_attrs {
    tni_refcount refs;
    const tni_opdef *def;
    const tn_value *values; /* def->attr_count */
    int64_t *slots;         /* where run-time values lie that are pointed to; NULL: there are none */
    uint64_t given[2];      /* bit i: attribute i was given, not defaulted (JSON writes only these) */
    uint64_t hash;          /* of the structural values */
} tni_attrs;
/* Unknown name (suggestions), missing required, bad text or out of range: TN_E_ATTR naming operator and
 * attribute. Names that begin and end with "__" are passed over. At most 128 attributes. */
tn_status tni_attrs_parse(const tni_opdef *def, size_t count, const char *const *names,
                          const char *const *texts, tni_attrs **out);
/* The same values but attribute `index` = `value` (copied deep). */
tn_status tni_attrs_with(const tni_attrs *a, uint32_t index, tn_value value, tni_attrs **out);
/* `spare`, which nobody else holds, gets these values and allocates nothing. False: it stays as it was, since
 * it is held, has no room for them, or the two differ in more than what changes from call to call. */
bool tni_attrs_become(tni_attrs *spare, const tni_attrs *a, uint32_t index, tn_value value);
/* From values of another definition: attributes of equal name and type are taken over, then `texts` win. */
tn_status tni_attrs_inherit(const tni_opdef *def, const tni_attrs *from, size_t count,
                            const tn_attr_text *texts, tni_attrs **out);
tni_attrs *tni_attrs_retain(const tni_attrs *a);
void tni_attrs_release(tni_attrs *a);
bool tni_attrs_equal_structural(const tni_attrs *a, const tni_attrs *b); /* run-time attributes left out */
bool tni_attrs_equal(const tni_attrs *a, const tni_attrs *b);            /* all of them */
uint64_t tni_attrs_hash(const tni_attrs *a);                             /* of all of them */
/* The first attribute that came after `version` of the operator and says something: it is not at its default,
 * or it may change from call to call. NULL: none. */
const tn_attr_def *tni_attrs_newer(const tni_attrs *a, uint32_t version);
/* One value as MXNet writes it: "(3, 3)", "True", "relu", "0.9", "None", "float32". */
tn_status tni_attr_format(const tn_attr_def *def, tn_value value, tni_str *out);
int32_t tni_attr_index(const tni_opdef *def, const char *name); /* -1: no such */

/* ---- infer.c ----------------------------------------------------------------------------------------- */

typedef struct tni_args { /* what a node of this operator has, given its attributes */
    uint32_t in_count, out_count, visible_count;
    const char *const *in_names, *const *out_names; /* NULL for a variadic's: see tni_op_input_name */
    const tn_bodies *bodies;                        /* of the node, for shapes and types; NULL: it has none */
} tni_args;
/* What a function of the definition is told of a node; the caller adds shapes and types. `err` is emptied. */
tn_infer tni_infer_of(const tni_opdef *def, uint32_t function, const tni_attrs *attrs, const tni_args *args,
                      uint32_t flags, tn_err *err);
/* `given`: inputs that the caller has, or -1; decides a variadic's count where the attribute was
 * not given. */
tn_status tni_op_args(const tni_opdef *def, const tni_attrs *attrs, int64_t given, tni_args *out);
/* Name of input `index`: "weight", "arg3". `out` has TN_NAME_MAX bytes at most; truncated never. */
tn_status tni_op_input_name(const tni_opdef *def, const tni_args *args, uint32_t index, char *out,
                            size_t size);
tn_status tni_op_output_name(const tni_opdef *def, const tni_args *args, uint32_t index, char *out,
                             size_t size);
/* One round of one kind: fills in what follows. Afterwards every known size is checked (dims >= 0, product
 * fits). Errors name the operator and the shapes. */
tn_status tni_op_infer_shape(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args,
                             uint32_t flags, tn_shape *const *in, tn_shape *const *out);
tn_status tni_op_infer_dtype(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, int32_t *in,
                             int32_t *out);
tn_status tni_op_infer_storage(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args,
                               int32_t *in, int32_t *out);
/* What a run of these shapes and data types, all known, costs at least; never fails. */
void tni_op_cost(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, tn_shape *const *in,
                 tn_shape *const *out, int32_t *in_dtype, int32_t *out_dtype, tn_cost *cost);
/* Where each output lies within input 0, whose strides are `stride`: `views` per output. TN_E_UNSUPPORTED:
 * the definition does not say, which is no message; TN_E_ARG: it says something that cannot be. */
tn_status tni_op_views(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, uint32_t flags,
                       tn_shape *const *in, tn_shape *const *out, const int64_t *stride, tn_view *views);
tn_status tni_shape_format(const tn_shape *s, tni_str *out); /* "(64, 1, ?, 28)", "?" */

/* Attribute access inside definitions: value of attribute `i` of an infer or grad. */
static inline int64_t tni_attr_int(const tn_value *attrs, uint32_t i)
{
    return tn_value_int(attrs[i]);
}

#include "op/body.h"

/* ---- storage.c: how operators without kernels for sparse arrays take them all the same ----------------- */

typedef enum tni_stored_way {
    TNI_STORED_NONE,    /* nobody says how: dense copies are made, which is told */
    TNI_STORED_DENSE,   /* dense copies, as MXNet does without a word */
    TNI_STORED_VALUES,  /* on the values: 0 stays 0; the output has the places of the input */
    TNI_STORED_NUMBER,  /* on the values: the rest adds nothing to what comes out, which is dense */
    TNI_STORED_ALIGNED, /* on the values at the places of all inputs */
    TNI_STORED_MASKED,  /* on the values at the places of the first sparse input */
    TNI_STORED_ROWS,    /* an update of the rows that the gradient, input 1, stores */
    TNI_STORED_PRODUCT  /* FullyConnected, as dot and a sum; recorded as these */
} tni_stored_way;

/* all_finite with init_output=False: an array that is given keeps its value where 1 comes out, or gets 0. */
bool tni_op_keeps(const tni_opdef *def, const tni_attrs *attrs);
/* Of a call whose inputs have these storage types, one of them sparse. `*out`: the type of output 0. */
tni_stored_way tni_op_stored(const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                             const int32_t *storage, int32_t *out);

#endif
