/* Densities and their gradients: kernels/pdf.cu. */
#include "tenon/plugin/op/pdf.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define SHORT 64 /* samples that a block is too much for */

static const char *const densities[] = {
#define PDF(name, count, moves, group, log, slope) #name,
#include "../common/pdf.list"
#undef PDF
};
static const uint8_t parameters[] = {
#define PDF(name, count, moves, group, log, slope) count,
#include "../common/pdf.list"
#undef PDF
};
#define DENSITIES (sizeof parameters)

typedef struct pdf_state {
    size_t of; /* DENSITIES: Dirichlet's */
    uint32_t out_count;
    tncuda_call_args args;
} pdf_state;

static tn_status plan_make(void *plugin, const tn_node *node, tn_plan *plan, uint32_t first, tn_err *err)
{
    const tn_tensor *sample = node->in[first], *parameter = node->in[first + 1];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(pdf_state), err);
    pdf_state *s = plan->state;
    int32_t lead;

    if (st)
        return st;
    while (s->of < DENSITIES && strcmp(strstr(node->op, "_pdf_") + 5, densities[s->of]) != 0)
        s->of++;
    s->out_count = node->out_count < TNCUDA_CALL_OUT ? node->out_count : TNCUDA_CALL_OUT;
    lead = s->of < DENSITIES ? parameter->ndim : parameter->ndim - 1;
    s->args.outer = tnb_dims(parameter, 0, lead);
    s->args.inner = tnb_dims(sample, lead, s->of < DENSITIES ? sample->ndim : sample->ndim - 1);
    s->args.size = s->of < DENSITIES ? 1 : sample->shape[sample->ndim - 1];
    s->args.n[0] = tn_value_int(node->attrs[TN_pdf_is_log]) != 0;
    if (s->of == DENSITIES && first)
        plan->workspace_bytes = (uint64_t)(s->args.outer * s->args.inner) * sizeof(double);
    return TN_OK;
}

static tn_status pdf_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return plan_make(plugin, node, plan, 0, err);
}

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return plan_make(plugin, node, plan, 1, err);
}

static uint32_t arrays_of(const pdf_state *s)
{
    return 1u + (s->of < DENSITIES ? parameters[s->of] : 1u);
}

static tn_status pdf_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pdf_state *s = plan->state;
    tncuda_call_args a = s->args;
    char name[TNCUDA_NAME_BYTES];

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.count = a.outer * a.inner;
    tncuda_call_arrays(x, arrays_of(s), 1, &a);
    (void)snprintf(name, sizeof name, "pdf_%s", s->of < DENSITIES ? densities[s->of] : "dirichlet");
    return tncuda_launch(x, "pdf", name, a.count, &a, err);
}

static tn_status dirichlet_back(const tn_exec *x, tncuda_call_args *a, tn_err *err)
{
    tn_status st;

    a->count = a->outer * a->inner;
    if ((st = tncuda_launch(x, "pdf", "pdf_dirichlet_samples", a->count, a, err)) ||
        x->modes[1] == TN_MODE_NONE)
        return st;
    a->count = a->outer * a->size;
    return tncuda_launch(x, "pdf", "pdf_dirichlet_back", a->count, a, err);
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pdf_state *s = plan->state;
    tncuda_call_args a = s->args;
    char name[TNCUDA_NAME_BYTES];

    tncuda_call_arrays(x, 1 + arrays_of(s), s->out_count, &a);
    if (s->of == DENSITIES)
        return dirichlet_back(x, &a, err);
    a.count = a.outer;
    (void)snprintf(name, sizeof name, "pdf_%s_back%s", densities[s->of], a.inner < SHORT ? "_short" : "");
    return a.inner < SHORT ? tncuda_launch(x, "pdf", name, a.count, &a, err)
                           : tncuda_launch_blocks(x, "pdf", name, tnb_least(a.count, 65535), &a, err);
}

static const char *const types[] = {"sample:" TNCUDA_FLOATS, "*:=sample", NULL};

#define ROWS(name)                                                                                           \
    TNCUDA_ROW("_random_pdf_" #name, types, 0, pdf_prepare, pdf_run),                                        \
        TNCUDA_ROW("_backward__random_pdf_" #name, types, TN_KERNEL_EMPTY_OK, back_prepare, back_run),
#define PDF(name, count, moves, group, log, slope) ROWS(name)

const tn_kernel *const tncuda_family_pdf[] = {
#include "../common/pdf.list"
    ROWS(dirichlet) NULL,
};
