/*
 * BatchNorm, LayerNorm, InstanceNorm, GroupNorm. They leave what their backward needs as outputs that users
 * see only if they ask, or never: the mean, and 1 / sqrt(var + eps) (BatchNorm), sqrt(var + eps) (LayerNorm)
 * or the variance (InstanceNorm). L2Normalization's is sqrt(sum(x²) + eps).
 *
 * BatchNorm's running statistics are mutated inputs. They move in the forward pass of training:
 * moving = moving * momentum + batch * (1 - momentum), with the biased variance. `fix_gamma` takes gamma as 1
 * and gives it a gradient of 0.
 */
#include "tenon/plugin/op/norm.h"
#include "op/cost.h"
#include "op/infer_help.h"

/* ---- gradients of gradients -------------------------------------------------------------------------- */

/* With x' = (x - mean) r, r = 1 / sqrt(var + eps) and w = gamma dy both backward operators give
 *
 *     dx = r P(w), P(v) = v - mean(v) - x' mean(v x');    dgamma = sum(dy x');    dbeta = sum(dy)
 *
 * where means go over what is normalised together, and P(v) = v where running statistics normalise. P is its
 * own adjoint. Mean and r are functions of x here, so what reaches x through them is counted there. */
typedef struct second {
    tn_grad *g;
    tn_status st;
    char axis[32];                  /* of the parameters */
    const char *over;               /* axes that are normalised together; NULL: all but that one */
    char view[32];                  /* shape that the data is seen in; "": its own */
    bool running;                   /* by running statistics */
    tn_edge dy, data;               /* as seen */
    tn_edge like, gamma, r, scaled; /* like: has 1 in all axes but `axis`; gamma: none if it counts as 1 */
} second;

/* sum or mean over some axes; NULL: over all but that of the parameters. */
static tn_edge reduced(second *s, const char *op, const char *over, bool keep, tn_edge v)
{
    const tn_attr_text attrs[] = {{"axis", over ? over : s->axis},
                                  {"exclude", over ? "False" : "True"},
                                  {"keepdims", keep ? "True" : "False"}};
    tn_edge out = {NULL, 0, 0};

    if (!s->st)
        s->st = tn_grad_node(s->g, op, 1, &v, 3, attrs, &out);
    return out;
}

/* Nothing is 0. */
static tn_edge plus(second *s, tn_edge a, tn_edge b)
{
    return !a.node ? b : !b.node ? a : tni_grad_op2(s->g, &s->st, "broadcast_add", a, b);
}

static tn_edge minus(second *s, tn_edge a, tn_edge b)
{
    return tni_grad_op2(s->g, &s->st, "broadcast_sub", a, b);
}

static tn_edge times(second *s, tn_edge a, tn_edge b)
{
    return tni_grad_op2(s->g, &s->st, "broadcast_mul", a, b);
}

static tn_edge mean_of(second *s, tn_edge v)
{
    return reduced(s, "mean", s->over, true, v);
}

static tn_edge viewed(second *s, tn_edge v)
{
    const tn_attr_text shape[] = {{"shape", s->view}};
    tn_edge out = v;

    if (!s->st && v.node && s->view[0])
        s->st = tn_grad_node(s->g, "Reshape", 1, &v, 1, shape, &out);
    return out;
}

/* The gradient of the backward's dy or data. */
static void set_viewed(second *s, uint32_t input, tn_edge v)
{
    if (v.node && s->view[0])
        v = tni_grad_op2(s->g, &s->st, "_backward_reshape", v, tn_grad_input(s->g, input));
    if (v.node)
        s->st = tni_grad_set(s->g, &s->st, input, v);
}

/* (C) as a value that stretches over the data. */
static tn_edge shaped(second *s, tn_edge v)
{
    return v.node ? tni_grad_op2(s->g, &s->st, "_backward_reshape", v, s->like) : v;
}

static tn_edge weighted(second *s, tn_edge v)
{
    return s->gamma.node ? times(s, v, s->gamma) : v;
}

static tn_edge projected(second *s, tn_edge v)
{
    tn_edge rest;

    if (s->running)
        return v;
    rest = minus(s, v, mean_of(s, v));
    return minus(s, rest, times(s, s->scaled, mean_of(s, times(s, v, s->scaled))));
}

/* What arrives at dx and, through it, at the statistics: `rp` is r P(h). */
static tn_edge data_part(second *s, tn_edge h, tn_edge rp, tn_edge to_scaled)
{
    const tn_edge w = weighted(s, s->dy), none = {NULL, 0, 0};
    tn_edge sum, back;

    if (h.node && !s->running) {
        sum = plus(s, times(s, h, mean_of(s, times(s, w, s->scaled))),
                   times(s, w, mean_of(s, times(s, h, s->scaled))));
        sum = times(s, s->r, sum);
        to_scaled = to_scaled.node ? minus(s, to_scaled, sum) : tni_grad_op1(s->g, &s->st, "negative", sum);
    }
    if (!to_scaled.node)
        return none;
    back = times(s, s->r, projected(s, to_scaled));
    if (!h.node || s->running)
        return back;
    return minus(s, back, times(s, times(s, s->r, s->scaled), mean_of(s, times(s, w, rp))));
}

static tn_status norm_back_grad(second *s, bool fixed)
{
    tn_grad *g = s->g;
    const tn_edge dy = s->dy, none = {NULL, 0, 0}, h = viewed(s, tn_grad_of(g, 0));
    const tn_edge hg = fixed ? none : shaped(s, tn_grad_of(g, 1)), hb = shaped(s, tn_grad_of(g, 2));
    const tn_edge rp = h.node ? times(s, s->r, projected(s, h)) : none;
    tn_edge to_dy = rp.node ? weighted(s, rp) : none;

    if (hg.node)
        to_dy = plus(s, to_dy, times(s, hg, s->scaled));
    if (hb.node)
        to_dy = plus(s, to_dy, tni_grad_op2(g, &s->st, "broadcast_like", hb, dy));
    set_viewed(s, 0, to_dy);
    if (!s->st && rp.node && !fixed)
        s->st = tni_grad_set(g, &s->st, 2, reduced(s, "sum", NULL, false, times(s, dy, rp)));
    if (!s->st && g->ops->needs(g, 1))
        set_viewed(s, 1, data_part(s, h, rp, hg.node ? times(s, hg, dy) : none));
    return s->st;
}

static void second_init(second *s, tn_grad *g, int64_t axis)
{
    s->g = g;
    snprintf(s->axis, sizeof s->axis, "%lld", (long long)axis);
    s->dy = viewed(s, tn_grad_input(g, 0));
    s->data = viewed(s, tn_grad_input(g, 1));
    s->like = reduced(s, "sum", NULL, true, s->dy);
}

static tn_status batch_norm_back_grad(tn_grad *g)
{
    const bool fixed = tni_attr_bool(g->attrs, TN_BatchNorm_fix_gamma);
    second s = {0};

    if (!tni_grad_arrives(g))
        return TN_OK;
    second_init(&s, g, tni_attr_int(g->attrs, TN_BatchNorm_axis));
    s.running = !(g->flags & TN_GRAD_TRAIN) || tni_attr_bool(g->attrs, TN_BatchNorm_use_global_stats);
    s.r = shaped(&s, tn_grad_input(g, 4));
    s.scaled = times(&s, minus(&s, s.data, shaped(&s, tn_grad_input(g, 3))), s.r);
    if (!fixed)
        s.gamma = shaped(&s, tn_grad_input(g, 2));
    return norm_back_grad(&s, fixed);
}

static tn_status layer_norm_back_grad(tn_grad *g)
{
    second s = {.over = s.axis};

    if (!tni_grad_arrives(g))
        return TN_OK;
    second_init(&s, g, tni_attr_int(g->attrs, TN_LayerNorm_axis));
    s.r = tni_grad_op1(g, &s.st, "reciprocal", tn_grad_input(g, 4));
    s.scaled = times(&s, minus(&s, s.data, tn_grad_input(g, 3)), s.r);
    s.gamma = shaped(&s, tn_grad_input(g, 2));
    return norm_back_grad(&s, false);
}

/* (N, groups, elements): rows along the last axis, one parameter for each group. `r` is (N, groups). */
static tn_status grouped_back_grad(second *s, tn_grad *g, tn_edge r)
{
    tn_edge mean = tn_grad_input(g, 3), rows;

    second_init(s, g, 1);
    rows = reduced(s, "sum", s->over = "2", true, s->data);
    s->r = tni_grad_op2(g, &s->st, "_backward_reshape", r, rows);
    mean = tni_grad_op2(g, &s->st, "_backward_reshape", mean, rows);
    s->scaled = times(s, minus(s, s->data, mean), s->r);
    s->gamma = shaped(s, tn_grad_input(g, 2));
    return norm_back_grad(s, false);
}

static tn_status instance_norm_back_grad(tn_grad *g)
{
    second s = {.view = "(0,0,-1)"};
    char eps[32];
    tn_edge r;

    if (!tni_grad_arrives(g))
        return TN_OK;
    snprintf(eps, sizeof eps, "%.17g", tni_attr_float(g->attrs, TN_InstanceNorm_eps));
    r = tni_grad_op1(g, &s.st, "rsqrt", tni_grad_scalar(g, &s.st, "_plus_scalar", tn_grad_input(g, 4), eps));
    return grouped_back_grad(&s, g, r);
}

static tn_status group_norm_back_grad(tn_grad *g)
{
    second s = {0};

    if (!tni_grad_arrives(g))
        return TN_OK;
    snprintf(s.view, sizeof s.view, "(0,%lld,-1)",
             (long long)tni_attr_int(g->attrs, TN_GroupNorm_num_groups));
    return grouped_back_grad(&s, g, tni_grad_op1(g, &s.st, "reciprocal", tn_grad_input(g, 4)));
}

/* With n = sqrt(sum(x²) + eps), p = sum(h x), q = sum(dy x), sums over what is normalised together:
 *     dx = dy / n - x q / n³
 *     to dy goes h / n - x p / n³,   to x goes (3 p q x / n² - sum(h dy) x - q h - p dy) / n³ */
static tn_status l2_normalization_back_grad(tn_grad *g)
{
    static const char *const axes[] = {"1", "(0,)", "(0,1)"}; /* summed over: the first; all but the others */
    const int64_t mode = tni_attr_int(g->attrs, TN_L2Normalization_mode);
    const tn_edge dy = tn_grad_input(g, 0), x = tn_grad_input(g, 1), h = tn_grad_of(g, 0);
    second s = {.g = g, .over = mode == TN_L2Normalization_mode_channel ? axes[mode] : NULL};
    tn_edge p, q, r, cube, to_x;

    if (!h.node)
        return TN_OK;
    snprintf(s.axis, sizeof s.axis, "%s", axes[mode]);
    p = reduced(&s, "sum", s.over, true, times(&s, h, x));
    q = reduced(&s, "sum", s.over, true, times(&s, dy, x));
    r = tni_grad_op1(g, &s.st, "reciprocal",
                     tni_grad_op2(g, &s.st, "_backward_reshape", tn_grad_input(g, 2), p));
    cube = times(&s, r, tni_grad_op1(g, &s.st, "square", r));
    s.st = tni_grad_set(g, &s.st, 0, minus(&s, times(&s, h, r), times(&s, x, times(&s, p, cube))));
    if (s.st || !g->ops->needs(g, 1))
        return s.st;
    to_x = times(&s, times(&s, p, q), tni_grad_op1(g, &s.st, "square", r));
    to_x = minus(&s, tni_grad_scalar(g, &s.st, "_mul_scalar", to_x, "3"),
                 reduced(&s, "sum", s.over, true, times(&s, h, dy)));
    to_x = minus(&s, times(&s, to_x, x), plus(&s, times(&s, q, h), times(&s, p, dy)));
    return tni_grad_set(g, &s.st, 1, times(&s, to_x, cube));
}

/* ---- BatchNorm's relatives ---------------------------------------------------------------------------- */

/* The gradient is BatchNorm's, of what arrives at its output. */
static tn_status batch_norm_relu_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1), tn_grad_output(g, 1),
                    tn_grad_output(g, 2)};

    if (!in[0].node)
        return TN_OK;
    in[0] = tni_grad_op2(g, &st, "elemwise_mul", in[0],
                         tni_grad_scalar(g, &st, "_greater_scalar", tn_grad_output(g, 0), "0"));
    return st ? st : tn_grad_emit_all(g, "_backward_BatchNorm", 5, in, 0, 3);
}

/* Of one device: BatchNorm's along axis 1, which is what `ndev` says there. */
static tn_status sync_batch_norm_back_grad(tn_grad *g)
{
    _Static_assert((int)TN_contrib_SyncBatchNorm_ndev == (int)TN_BatchNorm_axis, "ndev 1 is read as axis 1");
    return tni_attr_int(g->attrs, TN_contrib_SyncBatchNorm_ndev) == 1
               ? batch_norm_back_grad(g)
               : tn_fail(g->err, TN_E_UNSUPPORTED, "gradients of gradients need ndev=1");
}

/* ---- table -------------------------------------------------------------------------------------------- */

#define BATCH_NORM(name_, attrs_, doc_, data, ...)                                                           \
    TNI_ROW(name_, .flags = TN_OP_MUTATES_TRAINING, .doc = doc_, .attrs = attrs_,                            \
            .mutates = 1u << 3 | 1u << 4,                                                                    \
            .shapes = "data:" data " gamma:(C) beta:(C) moving_mean:(C) moving_var:(C) "                     \
                      "-> output:data mean~output_mean_var:(C) var~output_mean_var:(C)",                     \
            .types = "T:float; gamma,beta,moving_mean,moving_var,mean,var:stat(T)",                          \
            .cost = tni_cost_normalise, __VA_ARGS__)

const tn_op *const tni_family_norm[] = {
    BATCH_NORM("BatchNorm", TNI_ATTRS(BatchNorm),
               "Normalises each channel over the batch, or by running statistics outside of training.",
               "(A..,C:channels@axis,B..)", .aliases = TNI_NAMES("_npx_batch_norm"),
               .gradients = "own: dy data gamma mean var -> data gamma beta", .second = batch_norm_back_grad),
    BATCH_NORM("_contrib_BatchNormWithReLU", TNI_ATTRS(contrib_BatchNormWithReLU),
               "BatchNorm, then negative values become 0.", "(A..,C:channels@axis,B..)",
               .gradient = batch_norm_relu_grad),
    BATCH_NORM("_contrib_SyncBatchNorm", TNI_ATTRS(contrib_SyncBatchNorm),
               "BatchNorm of the parts of `ndev` devices together.", "(N,C:channels,S..)",
               .gradients = "own: dy data gamma mean var -> data gamma beta",
               .second = sync_batch_norm_back_grad),
    TNI_ROW("LayerNorm", .doc = "Normalises along one axis.", .aliases = TNI_NAMES("_npx_layer_norm"),
            .attrs = TNI_ATTRS(LayerNorm),
            .shapes =
                "data:(A..,C@axis,B..) gamma:(C) beta:(C) "
                "-> output:data mean~output_mean_var:(A..,1@axis,B..) std~output_mean_var:(A..,1@axis,B..)",
            .gradients = "own: dy data gamma mean std -> data gamma beta", .second = layer_norm_back_grad,
            .types = "T:float", .cost = tni_cost_normalise),
    TNI_ROW("InstanceNorm", .doc = "Normalises each channel of each example.",
            .attrs = TNI_ATTRS(InstanceNorm),
            .shapes = "data:(N,C:channels,D,S..) gamma:(C) beta:(C) -> output:data mean~:(N,C) var~:(N,C)",
            .gradients = "own: dy data gamma mean var -> data gamma beta", .second = instance_norm_back_grad,
            .types = "T:float", .cost = tni_cost_normalise),
    TNI_ROW("GroupNorm",
            .doc = "Normalises groups of channels of each example; gamma and beta are those of groups.",
            .attrs = TNI_ATTRS(GroupNorm),
            .shapes = "data:(N,C*num_groups,D,S..) gamma:(num_groups) beta:(num_groups) "
                      "-> output:data mean~output_mean_var:(N,num_groups) std~output_mean_var:(N,num_groups)",
            .gradients = "own: dy data gamma mean std -> data gamma beta", .second = group_norm_back_grad,
            .types = "T:float", .cost = tni_cost_normalise),
    TNI_ROW("L2Normalization", .doc = "Divides vectors by their Euclidean norm.",
            .attrs = TNI_ATTRS(L2Normalization),
            .shapes = "[mode=instance] data:(N,S..) -> output:data norm~:(N) "
                      "| [mode=channel] data:(N,C,D,T..) -> output:data norm~:(N,1,D,T..) "
                      "| data:(N,C,D,T..) -> output:data norm~:(N,C)",
            .gradients = "own: dy data norm -> data", .second = l2_normalization_back_grad,
            .types = "T:float", .cost = tni_cost_normalise),
    TNI_ROW("LRN", .doc = "Divides by a power of the squares of the channels around.",
            .attrs = TNI_ATTRS(LRN), .shapes = "data:(N,C,H,W) -> output:data tmp_norm~:data",
            .gradients = "once: dy data output tmp_norm -> data", .types = "T:float",
            .cost = tni_cost_normalise),
    NULL,
};
