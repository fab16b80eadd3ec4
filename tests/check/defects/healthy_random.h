/*
 * A healthy plugin with an operator that draws, and a kernel that does not say it is deterministic. A file
 * that includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 *
 * defect_noise: output = data + level * (a number from [0, 1)); with level 0 nothing is drawn.
 */
#ifndef TN_DEFECTS_HEALTHY_RANDOM_H
#define TN_DEFECTS_HEALTHY_RANDOM_H

#include "tenon/plugin/attr.h"
#include "tenon/plugin/random.h"
#include "tenon/plugin/util.h"

enum { HEALTHY, FIXED_NUMBERS, OWN_GENERATOR, SEED_ONLY, STEP_ONLY, DRAW_ONLY, ONE_DEVICE };

static const tn_attr_def noise_attrs[] = {
    TN_ATTR_FLOAT_RUN("level", "0.0", "of the noise"),
    TN_ATTR_END,
};

static const char *const noise_in[] = {"data", NULL}, *const noise_out[] = {"output", NULL};

static tn_status noise_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status noise_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static const tn_op noise_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_noise",
    .doc = "Noise on top of data.",
    .attrs = noise_attrs,
    .inputs = noise_in,
    .outputs = noise_out,
    .effects = TN_EFFECT_RANDOM,
    .shape = noise_shape,
    .dtype = noise_dtype,
};

static const tn_op *const ops[] = {&noise_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

/* What a kernel takes for the draw. */
static tn_draw draw_of(const tn_rng *rng)
{
    static volatile uint64_t runs;
    const uint64_t run = DEFECT == OWN_GENERATOR ? ++runs : 0, step = *rng->step;
    const tn_rng taken[] = {
        [HEALTHY] = *rng,
        [FIXED_NUMBERS] = {.seed = 1, .step = &step, .step_add = 0 - step},
        [OWN_GENERATOR] = {.seed = rng->seed, .stream = rng->stream, .step = &run},
        [SEED_ONLY] = {.seed = rng->seed, .stream = rng->stream, .step = &step, .step_add = 0 - step},
        [STEP_ONLY] = {.seed = 1, .stream = rng->stream, .step = &step, .step_add = rng->step_add},
        [DRAW_ONLY] = {.seed = rng->seed, .stream = rng->stream, .step = &step},
        [ONE_DEVICE] = {.seed = rng->seed, .step = &step, .step_add = rng->step_add},
    };

    return tn_draw_of(&taken[DEFECT]);
}

static tn_status noise_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_draw d = draw_of(x->rng);
    const double level = tn_attrs_float(x->attrs, 0);

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n && x->modes[0] != TN_MODE_NONE; i++) {
        const double noise = level * tn_draw_unit(&d, (uint64_t)i);

        if (x->in[0]->dtype == TN_F32)
            ((float *)x->out[0]->data)[i] = ((const float *)x->in[0]->data)[i] + (float)noise;
        else
            ((double *)x->out[0]->data)[i] = ((const double *)x->in[0]->data)[i] + noise;
    }
    return TN_OK;
}

static tn_status noise_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->threads = 1;
    return TN_OK;
}

static const char *const noise_types[] = {"data:f32,f64", "*:=data", NULL};
static const tn_kernel noise_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                       .rank = 64,
                                       .op = "defect_noise",
                                       .name = "defect",
                                       .device = "cpu",
                                       .isa = "",
                                       .op_version_min = 1,
                                       .op_version_max = 1,
                                       .types = noise_types,
                                       .prepare = noise_prepare,
                                       .run = noise_run};
static const tn_kernel *const kernels[] = {&noise_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "op:defect_noise kernels@cpu",
                 NULL, NULL, NULL, tables);

#endif
