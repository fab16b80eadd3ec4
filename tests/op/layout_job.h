/*
 * One node whose kernel asks for private layouts: what it gives with inputs and outputs in the layouts that
 * its plan names, brought there and back by the plugin's own `_reorder`. Memory is full of numbers that are
 * none before every run. Used by the tests of this folder.
 */
#ifndef TN_TESTS_OP_LAYOUT_JOB_H
#define TN_TESTS_OP_LAYOUT_JOB_H

#include "plugin/plugin.h"
#include "support/op_case.h"
#include "support/op_run.h"

#define ARGS_MAX 8
#define TOLERANCE 3e-5
#define THREADS 2
#define ONEDNN "cpu-onednn/onednn"

typedef struct layout_case {
    const char *op, *attrs;
    const char *in[ARGS_MAX];
    const char *from;      /* attributes of a convolution: input 0 is offered as it makes its output */
    const char *layer;     /* of a fused operator; NULL: the operator itself */
    double (*act)(double); /* what follows the layer */
    bool with_sum, train;
} layout_case;

typedef struct layout_job {
    const tni_opdef *def;
    tni_attrs *attrs;
    op_kernel kernel;
    uint32_t flags, in_count, out_count, own_outputs; /* out_count: with the mutated inputs */
    op_tensor in[ARGS_MAX], out[ARGS_MAX];
    const tn_prepare_ops *host; /* NULL: no services */
    tn_plan plan;
    int32_t inplace[ARGS_MAX];
    const tn_layout *in_layout[ARGS_MAX], *out_layout[ARGS_MAX];
} layout_job;

typedef struct layout_run {
    uint32_t planned, threads; /* that the plan is made for, and that run it */
    uint32_t flags;            /* of the node beside TN_NODE_LAYOUTS */
    double tolerance;
} layout_run;

extern uint32_t layout_asked, layout_declined; /* layouts, and runs, in all */

void layout_must(tn_status st, const char *what);
/* `from`: "plugin" or "plugin/kernel". */
bool layout_kernel_of(const char *op, const char *from, op_kernel *out);
/* Inputs from text, outputs of their shapes; mutated inputs are outputs, too. */
void layout_job_open(layout_job *j, const layout_case *c, const char *op, const char *from);
tn_status layout_job_prepare(layout_job *j, uint32_t threads);
void layout_job_free(layout_job *j);
/* `x` in another layout, or as rows; x is freed. */
void layout_bring(op_tensor *x, const tn_layout *to);
bool layouts_equal(const tn_layout *a, const tn_layout *b);
/* What the plain kernels say. */
void layout_expected(const layout_case *c, layout_job *j);
/* The layout in which a convolution with the attributes `from` makes its output of the shape of `x`. */
const tn_layout *layout_offered(const layout_case *c, layout_job *j);
/* Runs a prepared node; how many outputs are not as expected, which it prints. Outputs are rows then. */
uint32_t layout_served_run(layout_job *j, uint32_t threads, const layout_job *expected, double tolerance,
                           const char *what);
/* Opens, prepares and runs; with `out` the node stays there. */
uint32_t layout_kernel_run(const layout_case *c, const char *from, const layout_run *r,
                           const layout_job *expected, layout_job *out);

#endif
