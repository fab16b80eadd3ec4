/*
 * Inference: one round over one node. The definition's function fills in what follows from what is known;
 * this file wraps it with what holds for every operator: counts and names of arguments, one dtype where
 * nothing else is said, sizes that fit, errors that name the operator and its shapes. What fails may leave
 * shapes half filled in: the caller keeps its own copies.
 */
#include <inttypes.h>
#include <string.h>

#include "op/op.h"

tn_infer tni_infer_of(const tni_opdef *def, uint32_t function, const tni_attrs *attrs, const tni_args *args,
                      uint32_t flags, tn_err *err)
{
    err->code = TN_OK;
    err->message[0] = '\0';
    return (tn_infer){
        .struct_size = TN_END(tn_infer, bodies),
        .flags = flags,
        .op = tni_op_argument(def, function),
        .attrs = attrs ? attrs->values : def->defaults,
        .attr_count = def->attr_count,
        .in_count = args->in_count,
        .out_count = args->out_count,
        .visible_count = args->visible_count,
        .in_names = args->in_names,
        .out_names = args->out_names,
        .err = err,
        .bodies = args->bodies,
    };
}

/* ---- counts and names ------------------------------------------------------------------------- */

/* Inputs of a variadic operator: from the attribute that counts them, or what the caller has. A gradient has
 * more inputs than the attribute that it inherits says. */
static tn_status variadic_count(const tni_opdef *def, const tni_attrs *attrs, int64_t given, uint32_t *out)
{
    int32_t attr = def->count_attr;
    int64_t counted = -1;

    if (attrs && attr >= 0 && (attrs->given[attr / 64] >> (attr % 64) & 1u))
        counted = tn_value_int(attrs->values[attr]);
    if (counted < 0 && given < 0)
        return tni_error(TN_E_ATTR, "%s: how many inputs? attribute %s is missing", def->op->name,
                         attr >= 0 ? def->op->attrs[attr].name : "num_args");
    if (!(def->op->flags & TN_OP_BACKWARD) && counted >= 0 && given >= 0 && counted != given)
        return tni_error(TN_E_ARG, "%s: %s is %" PRId64 ", but there are %" PRId64 " inputs", def->op->name,
                         def->op->attrs[attr].name, counted, given);
    if (given < 0)
        given = counted;
    if (given > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%s: %" PRId64 " inputs, at most %d are allowed", def->op->name, given,
                         TN_NODE_INPUTS_MAX);
    *out = (uint32_t)given;
    return TN_OK;
}

static tn_status op_failed(const tni_opdef *def, tn_status st, const tn_err *err)
{
    return tni_error(st, "%s: %.495s", def->op->name, /* theirs: it may not end */
                     err->message[0] ? err->message : "not possible with these arguments");
}

tn_status tni_op_args(const tni_opdef *def, const tni_attrs *attrs, int64_t given, tni_args *out)
{
    const tn_op *op = def->op;
    tni_args args = {.in_count = def->input_count,
                     .out_count = tni_names_count(op->outputs),
                     .visible_count = op->visible};
    tn_status st;

    /* Without an attribute that counts inputs, `args` does. */
    if (def->variadic && (given >= 0 || def->count_attr >= 0 || !op->args) &&
        (st = variadic_count(def, attrs, given, &args.in_count)))
        return st;
    if (op->args) {
        tn_err err;
        tn_infer i = tni_infer_of(def, TNI_OF_ARGS, attrs, &args, 0, &err);

        if ((st = op->args(&i)))
            return op_failed(def, st, &err);
        args = (tni_args){i.in_count, i.out_count, i.visible_count, i.in_names, i.out_names, NULL};
    }
    if (args.in_count > TN_NODE_INPUTS_MAX || args.out_count > TN_NODE_INPUTS_MAX ||
        (args.out_count == 0 && !op->mutates) || /* what it changes may be all that it does */
        (op->flags & TN_OP_VIEW && args.in_count == 0))
        return tni_error(TN_E_ATTR, "%s: %u inputs and %u outputs, 1 to %d are allowed", op->name,
                         args.in_count, args.out_count, TN_NODE_INPUTS_MAX);
    if (args.visible_count == 0 || args.visible_count > args.out_count)
        args.visible_count = args.out_count;
    if (!args.in_names && !def->variadic && args.in_count <= def->input_count)
        args.in_names = op->inputs;
    if (!args.out_names && args.out_count <= tni_names_count(op->outputs))
        args.out_names = op->outputs;
    *out = args;
    return TN_OK;
}

static tn_status name_write(const char *text, size_t length, int64_t number, char *out, size_t size)
{
    char digits[24] = "";
    size_t more;

    if (number >= 0)
        snprintf(digits, sizeof digits, "%" PRId64, number);
    more = strlen(digits);
    if (length + more >= size)
        return tni_error(TN_E_ARG, "a name of %zu bytes does not fit in %zu", length + more, size);
    memcpy(out, text, length);
    memcpy(out + length, digits, more + 1);
    return TN_OK;
}

/* Name `index` of `count` by a list that may have variadic ones; without a list "prefix" and the index. */
static tn_status list_name(const char *const *own, const char *const *names, uint32_t count, uint32_t index,
                           const char *prefix, char *out, size_t size)
{
    uint32_t number;
    int32_t at = tn_op_argument(own, count, index, &number);

    if (at < 0)
        at = tn_op_argument(names, count, index, &number);
    else
        names = own;
    if (at < 0)
        return name_write(prefix, strlen(prefix), index, out, size);
    if (number == UINT32_MAX)
        return name_write(names[at], strlen(names[at]), -1, out, size);
    return name_write(names[at], strlen(names[at]) - 1, number, out, size);
}

tn_status tni_op_input_name(const tni_opdef *def, const tni_args *args, uint32_t index, char *out,
                            size_t size)
{
    if (index >= args->in_count)
        return tni_error(TN_E_ARG, "%s has no input %u, only %u", def->op->name, index, args->in_count);
    return list_name(args->in_names, def->op->inputs, args->in_count, index, "arg", out, size);
}

tn_status tni_op_output_name(const tni_opdef *def, const tni_args *args, uint32_t index, char *out,
                             size_t size)
{
    if (index >= args->out_count)
        return tni_error(TN_E_ARG, "%s has no output %u, only %u", def->op->name, index, args->out_count);
    return list_name(args->out_names, def->op->outputs, args->out_count, index, "output", out, size);
}

/* ---- shapes ----------------------------------------------------------------------------------- */

tn_status tni_shape_format(const tn_shape *s, tni_str *out)
{
    if (s->ndim < 0)
        return tni_str_add(out, "?");
    tni_str_add(out, "(");
    for (int32_t i = 0; i < s->ndim && i < TN_NDIM_MAX; i++) {
        tni_str_add(out, i > 0 ? ", " : "");
        if (s->dim[i] < 0)
            tni_str_add(out, "?");
        else
            tni_str_addf(out, "%" PRId64, s->dim[i]);
    }
    return tni_str_add(out, s->ndim == 1 ? ",)" : ")");
}

static bool shape_fits(const tn_shape *s)
{
    uint64_t bytes = 8; /* the widest element */

    if (s->ndim < -1 || s->ndim > TN_NDIM_MAX)
        return false;
    for (int32_t i = 0; i < s->ndim; i++) {
        if (s->dim[i] < -1)
            return false;
        if (s->dim[i] > 0 && !tni_size_mul(bytes, (uint64_t)s->dim[i], &bytes))
            return false;
    }
    return true;
}

/* Whether output 0 is the bytes of input 0: what is inferred must not make it larger than they are. */
static bool views(const tni_opdef *def, const tni_args *args)
{
    return def->op->flags & TN_OP_VIEW && args->in_count;
}

static void shapes_format(tn_shape *const *shapes, uint32_t count, tni_str *text)
{
    for (uint32_t i = 0; i < count && i < 8; i++) {
        tni_str_add(text, i > 0 ? ", " : "");
        tni_shape_format(shapes[i], text);
    }
    if (count > 8)
        tni_str_add(text, ", ...");
}

static tn_status shape_failed(const tni_opdef *def, const tni_args *args, tn_shape *const *in, tn_status st,
                              const char *message)
{
    tni_str text;

    tni_str_init(&text, 4096);
    shapes_format(in, args->in_count, &text);
    st = tni_error(st, "%s: %.495s (inputs: %.200s)", def->op->name, message, text.text ? text.text : "none");
    tni_str_fini(&text);
    return st;
}

tn_status tni_op_infer_shape(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args,
                             uint32_t flags, tn_shape *const *in, tn_shape *const *out)
{
    tn_err err;
    tn_infer i = tni_infer_of(def, TNI_OF_SHAPE, attrs, args, flags, &err);
    tn_status st;

    if (!def->op->shape)
        return TN_OK;
    i.in_shape = in;
    i.out_shape = out;
    if ((st = def->op->shape(&i)))
        return shape_failed(def, args, in, st, err.message[0] ? err.message : "the shapes do not fit");
    for (uint32_t k = 0; k < args->in_count + args->out_count; k++) {
        const tn_shape *shape = k < args->in_count ? in[k] : out[k - args->in_count];

        if (!shape_fits(shape))
            return shape_failed(def, args, in, TN_E_SHAPE, "a shape is too large or has negative sizes");
        if (!def->family && shape->reserved)
            return shape_failed(def, args, in, TN_E_INTERNAL, "the shape function sets `reserved`");
    }
    if (views(def, args) && tn_shape_known(in[0]) && tn_shape_known(out[0]) &&
        tn_shape_count(in[0]) != tn_shape_count(out[0]))
        return shape_failed(def, args, in, TN_E_SHAPE, "a view has as many elements as what it shows");
    return TN_OK;
}

/* ---- dtypes and storage types ----------------------------------------------------------------- */

/* One value for all inputs and outputs; `unknown` where nobody knows it yet. */
static bool unify_all(int32_t *in, uint32_t in_count, int32_t *out, uint32_t out_count, int32_t clash[2])
{
    int32_t value = -1;

    for (uint32_t i = 0; i < in_count + out_count; i++) {
        int32_t v = i < in_count ? in[i] : out[i - in_count];

        if (v >= 0 && value >= 0 && v != value) {
            clash[0] = value;
            clash[1] = v;
            return false;
        }
        value = v >= 0 ? v : value;
    }
    for (uint32_t i = 0; i < in_count; i++)
        in[i] = value;
    for (uint32_t i = 0; i < out_count; i++)
        out[i] = value;
    return true;
}

static bool dtypes_valid(const int32_t *dtype, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (dtype[i] < -1 || dtype[i] >= TN_DTYPE_LIMIT)
            return false;
    return true;
}

tn_status tni_op_infer_dtype(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, int32_t *in,
                             int32_t *out)
{
    tn_err err;
    tn_infer i = tni_infer_of(def, TNI_OF_DTYPE, attrs, args, 0, &err);
    int32_t clash[2];
    tn_status st;

    if (!dtypes_valid(in, args->in_count) || !dtypes_valid(out, args->out_count))
        return tni_error(TN_E_DTYPE, "%s: an unknown data type number", def->op->name);
    if (!def->op->dtype) {
        if (unify_all(in, args->in_count, out, args->out_count, clash))
            return TN_OK;
        return tni_error(TN_E_DTYPE, "%s: %s and %s do not go together, cast one of them", def->op->name,
                         tni_dtype_name(clash[0]), tni_dtype_name(clash[1]));
    }
    i.in_dtype = in;
    i.out_dtype = out;
    if ((st = def->op->dtype(&i)))
        return op_failed(def, st, &err);
    if (!dtypes_valid(in, args->in_count) || !dtypes_valid(out, args->out_count))
        return tni_error(TN_E_INTERNAL, "%s inferred a data type that does not exist", def->op->name);
    if (views(def, args) && in[0] >= 0 && out[0] >= 0 && in[0] != out[0])
        return tni_error(TN_E_DTYPE, "%s: a view has the data type of what it shows", def->op->name);
    return TN_OK;
}

tn_status tni_op_infer_storage(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args,
                               int32_t *in, int32_t *out)
{
    tn_err err;
    tn_infer i = tni_infer_of(def, TNI_OF_STORAGE, attrs, args, 0, &err);
    tn_status st;

    if (!def->op->storage) {
        for (uint32_t k = 0; k < args->in_count + args->out_count; k++) {
            int32_t *v = k < args->in_count ? &in[k] : &out[k - args->in_count];

            if (*v != TN_STORAGE_UNKNOWN && *v != TN_STORAGE_DENSE)
                return tni_error(TN_E_UNSUPPORTED,
                                 "operator %s: %s %u is sparse (%s), only dense arrays are taken",
                                 def->op->name, k < args->in_count ? "input" : "output",
                                 k < args->in_count ? k : k - args->in_count,
                                 tni_storage_type_name(*v) ? tni_storage_type_name(*v) : "?");
            *v = TN_STORAGE_DENSE;
        }
        return TN_OK;
    }
    i.in_storage = in;
    i.out_storage = out;
    if ((st = def->op->storage(&i)))
        return op_failed(def, st, &err);
    for (uint32_t k = 0; k < args->in_count + args->out_count; k++) {
        const int32_t v = k < args->in_count ? in[k] : out[k - args->in_count];

        if (v < TN_STORAGE_UNKNOWN || v > TN_STORAGE_CSR)
            return tni_error(TN_E_INTERNAL, "%s inferred a storage type that does not exist", def->op->name);
    }
    return TN_OK;
}

/* ---- views ------------------------------------------------------------------------------------- */

/* The last element of a strided block of these sizes, counted from its first; -1: it does not fit. */
static int64_t last_of(const tn_shape *s, const int64_t *stride, int64_t least)
{
    int64_t last = 0, along;

    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] > 1 && (stride[d] < least || __builtin_mul_overflow(s->dim[d] - 1, stride[d], &along) ||
                              __builtin_add_overflow(last, along, &last)))
            return -1;
    return last;
}

static tn_status view_check(const tni_opdef *def, const tn_shape *in, const tn_shape *out,
                            const int64_t *stride, const tn_view *v)
{
    const int64_t have = last_of(in, stride, 0), last = last_of(out, v->stride, 1);

    if (v->offset >= 0 && last >= 0 && have >= v->offset && have - v->offset >= last)
        return TN_OK;
    return tni_error(TN_E_ARG, "%s: the view of output %u (offset %" PRId64 ") does not lie within input 0",
                     def->op->name, v->output, v->offset);
}

tn_status tni_op_views(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, uint32_t flags,
                       tn_shape *const *in, tn_shape *const *out, const int64_t *stride, tn_view *views)
{
    tn_err err;
    tn_infer i = tni_infer_of(def, 0, attrs, args, flags, &err);
    tn_status st = TN_OK;

    if (def->op->struct_size < TN_END(tn_op, view) || !def->op->view)
        return TN_E_UNSUPPORTED;
    i.in_shape = in;
    i.out_shape = out;
    for (uint32_t o = 0; o < args->out_count && !st; o++) {
        views[o] = (tn_view){.struct_size = TN_END(tn_view, stride), .output = o, .in_stride = stride};
        for (uint32_t d = 0; d < TN_NDIM_MAX; d++)
            views[o].stride[d] = 1;
        if ((st = def->op->view(&i, &views[o])) == TN_E_UNSUPPORTED)
            return st;
        st = st ? op_failed(def, st, &err) : view_check(def, in[0], out[o], stride, &views[o]);
    }
    return st;
}
