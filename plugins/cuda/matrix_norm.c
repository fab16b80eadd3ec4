/* _npi_norm and its gradient: ../common/norms.inc, in kernels/linalg.cu. */
#include "../common/norms.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS_MAX 128 /* matrices that have room at a time */

typedef struct norm_state {
    bool back;
    int64_t blocks;
    tncuda_norm_args args;
} norm_state;

static tn_status norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[back];
    const tnb_norm_plan p = tnb_norm_of(node, data);
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(norm_state), err);
    norm_state *s = plan->state;

    if (st)
        return st;
    s->back = back;
    s->args.what = p.what;
    s->args.over.outer = back && !tn_tensor_count(data) ? 0 : p.kept.count;
    s->args.over.outer_ndim = p.kept.ndim;
    memcpy(s->args.over.outer_shape, p.kept.shape, (size_t)p.kept.ndim * sizeof *p.kept.shape);
    memcpy(s->args.over.outer_stride, p.kept.stride, (size_t)p.kept.ndim * sizeof *p.kept.stride);
    s->blocks = tnb_least(s->args.over.outer, BLOCKS_MAX);
    if (tn_tensor_count(data))
        s->args.room_each = tnb_norm_room(&p.what);
    plan->workspace_bytes = (uint64_t)(s->blocks * s->args.room_each) * sizeof(double);
    plan->workspace_align = sizeof(double);
    return TN_OK;
}

static tn_status norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_state *s = plan->state;
    const tn_tensor *data = x->in[s->back], *to = x->out[0];
    const bool vectors = s->args.what.kind == TNB_NORM_VECTOR;
    tncuda_norm_args a = s->args;
    char kernel[TNCUDA_NAME_BYTES];

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.dy = (tncuda_array){x->in[0]->data, x->in[0]->dtype, TN_MODE_NONE};
    a.data = (tncuda_array){data->data, data->dtype, TN_MODE_NONE};
    a.to = (tncuda_array){to->data, to->dtype, x->modes[0]};
    a.room = x->workspace;
    (void)snprintf(kernel, sizeof kernel, "norm_%s%s", vectors ? "vectors" : "matrices",
                   s->back ? "_back" : "");
    return vectors ? tncuda_launch(x, "linalg", kernel, a.over.outer, &a, err)
                   : tncuda_launch_blocks(x, "linalg", kernel, s->blocks, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_ALL, "*:=data", NULL};
static const char *const back_types[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_matrix_norm[] = {
    TNCUDA_ROW("_npi_norm", types, TN_KERNEL_EMPTY_OK, norm_prepare, norm_run),
    TNCUDA_ROW("_backward__npi_norm", back_types, TN_KERNEL_EMPTY_OK, norm_prepare, norm_run),
    NULL,
};
