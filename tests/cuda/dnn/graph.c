/* Graphs of several operations, by the rules of NVIDIA's "cuDNN Backend API" 9 and its guide's patterns. */
#include "double.h"

bool double_is_virtual(const double_descriptor *t)
{
    const double_value *v = double_value_of(t, A(TENSOR_IS_VIRTUAL));

    return v && v->is.truth;
}

/* "CUDNN_BACKEND_POINTWISE_DESCRIPTOR": a mode, a type to compute in; NaN is not to be lost. */
const char *double_pointwise_check(const double_descriptor *d)
{
    const int32_t mode = V(d, POINTWISE_MODE).number, type = V(d, POINTWISE_MATH_PREC).number;
    const double_value *nan = double_value_of(d, NAN_PROPAGATION);

    return mode != CUDNN_POINTWISE_ADD && mode != CUDNN_POINTWISE_RELU_FWD
               ? "pointwise: a mode that the plugin has"
           : type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE ? "pointwise: computes in float or double"
           : mode == CUDNN_POINTWISE_RELU_FWD && (!nan || nan->is.number != 1)
               ? "pointwise: a relu that hands NaN on"
               : NULL;
}

static bool dims_broadcast(const double_descriptor *from, const double_descriptor *to)
{
    const double_value *a = double_value_of(from, A(TENSOR_DIMENSIONS)),
                       *b = double_value_of(to, A(TENSOR_DIMENSIONS));
    bool fit = a->count == b->count;

    for (int64_t i = 0; fit && i < a->count; i++)
        fit = a->is.ints[i] == b->is.ints[i] || a->is.ints[i] == 1;
    return fit;
}

static bool dims_equal(const double_descriptor *a, const double_descriptor *b)
{
    return dims_broadcast(a, b) && dims_broadcast(b, a);
}

/* "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR": an addition has B, which is broadcast; a relu has none. */
const char *double_pointwise_operation_check(const double_descriptor *d)
{
    const double_descriptor *function = double_of(d, A(OPERATION_POINTWISE_PW_DESCRIPTOR)),
                            *x = double_of(d, A(OPERATION_POINTWISE_XDESC)),
                            *y = double_of(d, A(OPERATION_POINTWISE_YDESC));
    const double_value *b = double_value_of(d, A(OPERATION_POINTWISE_BDESC));

    if (function->type != D(POINTWISE) || x->type != D(TENSOR) || y->type != D(TENSOR) ||
        (b && ((const double_descriptor *)b->is.pointers[0])->type != D(TENSOR)))
        return "pointwise operation: a function, and tensors";
    if ((V(function, POINTWISE_MODE).number == CUDNN_POINTWISE_ADD) != (b != NULL))
        return "pointwise operation: an addition has two inputs, a relu one";
    return dims_equal(x, y) && (!b || dims_broadcast(b->is.pointers[0], y))
               ? NULL
               : "pointwise operation: x and y have the same dimensions, b those or 1";
}

/* The operation `op` behind what gives `*y`, which then is what this one gives. */
static const char *follower_read(const double_descriptor *op, double_graph *g, const double_descriptor **y)
{
    const double_descriptor *function;

    if (op->type != D(OPERATION_POINTWISE) || double_of(op, A(OPERATION_POINTWISE_XDESC)) != *y)
        return "graph: what follows is pointwise, of what came before it";
    if (!double_is_virtual(*y) ||
        V(*y, TENSOR_DATA_TYPE).number !=
            V(double_of(g->convolution, A(OPERATION_CONVOLUTION_FORWARD_CONV_DESC)), CONVOLUTION_COMP_TYPE)
                .number)
        return "graph: what lies between is virtual, of the type that is computed in";
    if (g->relu)
        return "graph: a relu is the last of it";
    function = double_of(op, A(OPERATION_POINTWISE_PW_DESCRIPTOR));
    g->relu = V(function, POINTWISE_MODE).number == CUDNN_POINTWISE_RELU_FWD;
    if (!g->relu) {
        if (g->tensors[3])
            return "graph: an addend and a bias at most";
        g->tensors[3] = g->tensors[4]; /* the last addition is that of the bias */
        g->tensors[4] = double_of(op, A(OPERATION_POINTWISE_BDESC));
    }
    *y = double_of(op, A(OPERATION_POINTWISE_YDESC));
    return NULL;
}

/* "ConvBiasAct", the pattern of the precompiled engines: a forward convolution, an addend of its dimensions,
 * a bias (1, K, 1, …), an activation, each of which but the convolution may be absent. */
static const char *pattern_check(const double_graph *g)
{
    const double_descriptor *y = g->tensors[2], *addend = g->tensors[3], *bias = g->tensors[4];

    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            if (g->tensors[i] && g->tensors[k] &&
                V(g->tensors[i], TENSOR_UNIQUE_ID).ints[0] == V(g->tensors[k], TENSOR_UNIQUE_ID).ints[0])
                return "graph: an id stands there twice";
    for (int i = 0; i < 5; i++)
        if (g->tensors[i] && (double_is_virtual(g->tensors[i]) ||
                              V(g->tensors[i], TENSOR_DATA_TYPE).number != V(y, TENSOR_DATA_TYPE).number))
            return "graph: what is in memory is not virtual, and of one data type";
    if (addend && !dims_equal(addend, y))
        return "graph: an addend has the dimensions of the result";
    for (int64_t i = 0; bias && i < double_value_of(y, A(TENSOR_DIMENSIONS))->count; i++)
        if (V(bias, TENSOR_DIMENSIONS).ints[i] != (i == 1 ? V(y, TENSOR_DIMENSIONS).ints[1] : 1))
            return "graph: a bias has one number for each channel";
    return NULL;
}

const char *double_graph_read(const double_descriptor *graph, double_graph *out)
{
    const double_value *ops = double_value_of(graph, A(OPERATIONGRAPH_OPS));
    const double_descriptor *y;
    const double_roles *r;
    const char *broken = NULL;

    *out = (double_graph){.convolution = ops->is.pointers[0]};
    r = double_roles_of(out->convolution->type);
    if (!r || (ops->count > 1 && r->type != D(OPERATION_CONVOLUTION_FORWARD)))
        return "graph: of one convolution, and what follows a forward one";
    out->tensors[0] = double_of(out->convolution, r->x);
    out->tensors[1] = double_of(out->convolution, r->w);
    y = double_of(out->convolution, r->y);
    if (ops->count > 1 && double_value_of(out->convolution, r->beta)->is.wide != 0)
        return "graph: nothing is added to what is virtual";
    for (int64_t i = 1; i < ops->count && !broken; i++)
        broken = follower_read(ops->is.pointers[i], out, &y);
    out->tensors[2] = y;
    return broken ? broken : pattern_check(out);
}
