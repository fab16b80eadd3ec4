/*
 * Images read at the places of a grid. Forward tasks are rows of the output, for all channels; backward tasks
 * are planes of the data, then rows of the grid.
 */
#include <math.h>

#include "../../common/storage.h"
#include "forms.h"
#include "tenon/plugin/op/sampler.h"

#define BODY "../plain/sampler.inc"
#include "../common/floats.inc"

static int64_t output_rows(const tn_node *node)
{
    return node->out[0]->shape[0] * node->out[0]->shape[2];
}

/* in: dy, data, grid */
static int64_t backward_tasks(const tn_node *node)
{
    const tn_tensor *grid = node->in[2];

    return tncpu_planes(node->in[1]) + (tn_tensor_count(grid) ? grid->shape[0] * grid->shape[2] : 0);
}

/* A row of the grid, in float64 at most: where the output is not asked for. */
static uint64_t grid_room(const tn_node *node)
{
    return 2 * (uint64_t)node->out[0]->shape[3] * sizeof(double);
}

static int64_t matrices(const tn_node *node)
{
    return node->out[0]->shape[0];
}

#define EMPTY TN_KERNEL_EMPTY_OK
#define SAMPLERS(X)                                                                                          \
    X("BilinearSampler", tncpu_floats, EMPTY, sampler, output_rows, sampler, NULL)                           \
    X("_backward_BilinearSampler", tncpu_floats, EMPTY, sampler, backward_tasks, backward_sampler, NULL)     \
    X("GridGenerator", tncpu_floats, 0, sampler, output_rows, grid, NULL)                                    \
    X("_backward_GridGenerator", tncpu_floats, EMPTY, shaped, matrices, backward_grid, NULL)                 \
    X("SpatialTransformer", tncpu_floats, EMPTY, sampler, output_rows, transformer, grid_room)

static const tncpu_form forms[] = {SAMPLERS(TNCPU_FORM)};
TNCPU_FORMS(sampler, forms, 0)
TNCPU_FORMS(shaped, forms, 1u << 1)
const tn_kernel *const tncpu_family_sampler[] = {SAMPLERS(TNCPU_FORM_ROW) NULL};
