/* How long a kernel takes that does not say so: from what its operator's definition says of the cost. */
#include "compile/select.h"

/* One thread at an easy pace, and what a call takes at least. */
#define FLOPS_PER_NS 4u
#define BYTES_PER_NS 8u
#define LEAST_NS 100u

tn_status tni_guess_ns(const tni_request *r, uint64_t *ns)
{
    const uint32_t count = r->in_count + r->out_count;
    const tni_args args = {r->in_count, r->out_count, r->out_count, NULL, NULL, NULL};
    tn_shape *shapes = tni_calloc(count + 1, sizeof *shapes), **at = tni_calloc(count + 1, sizeof *at);
    int32_t *dtypes = tni_calloc(count + 1, sizeof *dtypes);
    bool known = shapes && at && dtypes;
    const tn_status st = known ? TN_OK : TN_E_NOMEM;
    tn_cost cost;

    *ns = 0;
    for (uint32_t i = 0; known && i < count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        at[i] = &shapes[i];
        dtypes[i] = t->dtype;
        shapes[i].ndim = t->ndim;
        for (int32_t d = 0; d < t->ndim; d++)
            shapes[i].dim[d] = t->shape[d];
        known = tn_shape_known(&shapes[i]);
    }
    if (known) {
        tni_op_cost(r->def, r->attrs, &args, at, at + r->in_count, dtypes, dtypes + r->in_count, &cost);
        if (cost.flops != TN_COST_UNKNOWN && cost.bytes != TN_COST_UNKNOWN) {
            *ns = cost.flops / FLOPS_PER_NS;
            *ns = LEAST_NS + (cost.bytes / BYTES_PER_NS > *ns ? cost.bytes / BYTES_PER_NS : *ns);
        }
    }
    tni_free(shapes);
    tni_free(at);
    tni_free(dtypes);
    return st;
}
