/* ../../common/shape.inc; reshapes that cannot be views (another device, a given output); shapes as
 * arrays. */
#include "move.h"

#include <string.h>

#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/shape.h"

#define ALL_TYPES TNCPU_ALL
#include "../../common/shape.inc"

/* ---- copies ------------------------------------------------------------------------------------------ */

static tn_status copy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 20 + 0.3 * (double)tn_tensor_count(node->in[0]), 1);
    plan->inplace[0] = 0;
    return TN_OK;
}

TNCPU_RUN(copy_run, tncpu_copy(x->in[0], x->out[0]))

/* ---- shapes as arrays -------------------------------------------------------------------------------- */

TNCPU_PREPARE(info_prepare, tncpu_plan_tasks(node, plan, 20, 1))
TNCPU_RUN(shape_array_run, memcpy(x->out[0]->data, x->in[0]->shape, (size_t)x->in[0]->ndim * sizeof(int64_t)))
TNCPU_RUN(size_array_run, *(int64_t *)x->out[0]->data = tn_tensor_count(x->in[0]))

static const char *const like_types[] = {"lhs:" TNCPU_ALL, "rhs:" TNCPU_ALL, "output:=lhs", NULL};
static const char *const info_types[] = {"data:" TNCPU_ALL, "output:i64", NULL};

const tn_kernel *const tncpu_family_shape[] = {
    SHAPE_ROWS(TNCPU_ROW),
    TNCPU_ROW("Reshape", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("Flatten", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("expand_dims", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("squeeze", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("_backward_reshape", shape_back_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("_np_reshape", any_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("_npx_reshape", any_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("reshape_like", like_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("shape_array", info_types, TN_KERNEL_EMPTY_OK, info_prepare, shape_array_run),
    TNCPU_ROW("size_array", info_types, TN_KERNEL_EMPTY_OK, info_prepare, size_array_run),
    NULL,
};
