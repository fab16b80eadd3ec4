/*
 * Folding of BatchNorm's statistics into the parameters of the layer before it. Everything is computed in
 * double and rounded once. Programs do it once, where parameters are constants.
 */
#include <math.h>

#include "loops.h"
#include "tenon/plugin/op/fused.h"

typedef struct fold_call {
    const tn_exec *x;
    int64_t inner; /* elements of one output channel */
    double eps;
    bool fixed;
    uint32_t gamma, var; /* inputs */
} fold_call;

static double scale_of(const fold_call *f, int64_t channel)
{
    const double inverse = 1 / sqrt(tncpu_number(f->x->in[f->var], channel) + f->eps);

    return f->fixed ? inverse : inverse * tncpu_number(f->x->in[f->gamma], channel);
}

static void weight_part(void *arg, int64_t begin, int64_t end)
{
    const fold_call *f = arg;
    double tile[TNCPU_TILE];

    for (int64_t channel = begin; channel < end; channel++) {
        const double scale = scale_of(f, channel);

        for (int64_t i = 0; i < f->inner; i += TNCPU_TILE) {
            const int64_t at = channel * f->inner + i, n = tncpu_min(TNCPU_TILE, f->inner - i);

            tncpu_numbers(f->x->in[0], at, 1, n, tile);
            for (int64_t k = 0; k < n; k++)
                tile[k] *= scale;
            tncpu_numbers_store(f->x->out[0], at, 1, n, tile);
        }
    }
}

static tn_status weight_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    plan->inplace[0] = 0;
    tncpu_plan_tasks(node, plan, 20 + (double)tn_tensor_count(node->in[0]), node->in[0]->shape[0]);
    return TN_OK;
}

static tn_status weight_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *weight = x->in[0];
    fold_call call = {.x = x,
                      .inner = tncpu_dims(weight, 1, weight->ndim),
                      .eps = tn_value_float(x->attrs[TN_fold_weight_eps]),
                      .fixed = x->attrs[TN_fold_weight_fix_gamma] != 0,
                      .gamma = 1,
                      .var = 2};

    (void)err;
    if (x->modes[0] != TN_MODE_NONE)
        tncpu_for(plan, x, weight->shape[0], 1, weight_part, &call);
    return TN_OK;
}

TNCPU_PREPARE(bias_prepare, tncpu_plan_tasks(node, plan, 20 + 20 * (double)tn_tensor_count(node->in[0]), 1))

/* in: gamma, beta, mean, var and perhaps bias */
static tn_status bias_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool biased = x->attrs[TN_fold_bias_no_bias] == 0;
    const fold_call f = {.x = x,
                         .eps = tn_value_float(x->attrs[TN_fold_bias_eps]),
                         .fixed = x->attrs[TN_fold_bias_fix_gamma] != 0,
                         .gamma = 0,
                         .var = 3};

    (void)plan, (void)err;
    for (int64_t c = 0; x->modes[0] != TN_MODE_NONE && c < x->out[0]->shape[0]; c++) {
        const double bias = biased ? tncpu_number(x->in[4], c) : 0;
        const double folded =
            tncpu_number(x->in[1], c) + (bias - tncpu_number(x->in[2], c)) * scale_of(&f, c);

        tncpu_numbers_store(x->out[0], c, 1, 1, &folded);
    }
    return TN_OK;
}

static const char *const weight_types[] = {"weight:" TNCPU_FLOATS, "output:=weight", "*:f32,f64", NULL};
static const char *const bias_types[] = {"output:" TNCPU_FLOATS, "bias:=output", "*:f32,f64", NULL};

const tn_kernel *const tncpu_family_fused[] = {
    TNCPU_ROW("_fold_weight", weight_types, 0, weight_prepare, weight_run),
    TNCPU_ROW("_fold_bias", bias_types, 0, bias_prepare, bias_run),
    NULL,
};
