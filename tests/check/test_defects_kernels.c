/*
 * Operators and kernels, each with one defect (defects/).
 */
#include "kit.h"

static const kit_defect defects[] = {
    {"op_writes_behind", "K-bounds", NULL, ""},
    {"op_reads_behind", "K-bounds", NULL, "--only kernel/bounds"},
    {"op_writes_before", "K-bounds", "K-saved", ""},
    {"op_writes_input", "K-readonly", NULL, ""},
    {"op_wrong_gradient", "G-values", NULL, ""},
    {"op_zero_gradient", "G-zero", NULL, ""},
    {"op_keeps_state", "K-state", NULL, "--only kernel/state"},
    {"op_keeps_first", "K-state", NULL, "--only kernel/state"},
    {"op_not_deterministic", "K-deterministic", NULL, "--only kernel/deterministic"},
    {"op_thread_sum", "K-thread-invariant", "K-precision", ""},
    {"op_ignores_strides", "K-strided", NULL, ""},
    {"op_ignores_add", "K-modes", NULL, ""},
    {"op_ignores_none", "K-modes", NULL, ""},
    {"op_leaks_plan", "K-leak", "M-leak", ""},
    {"op_reads_output", "K-uninitialised", NULL, "--only kernel/uninitialised"},
    {"op_reads_workspace", "K-uninitialised", NULL, "--only kernel/uninitialised"},
    {"op_short_workspace", "K-bounds", NULL, "--only kernel/bounds"},
    {"op_swallows_nomem", "K-nomem", NULL, ""},
    {"op_completes_twice", "K-complete", NULL, "--only kernel"},
    {"unknown_plan", "K-plan", NULL, "--only kernel/values"},
    {"op_shares_scratch", "K-threads", NULL, "--only kernel/threads"},
    {"op_infer_accepts", "I-contradiction", NULL, ""},
    {"op_infer_impure", "I-pure", NULL, "--only infer"},
    {"op_wrong_rank", "K-values", NULL, ""},
    {"op_wrong_dtype", "K-values", "R3", ""},
    {"op_wrong_large", "K-values", NULL, "--only kernel/values"},
    {"op_wrong_wide", "K-values", NULL, "--only kernel/values"},
    {"op_declared_only", "K-declared", NULL, ""},
    {"op_misaligned", "K-misaligned", "K-bounds", ""},
    {"op_runtime_early", "K-runtime-attrs", NULL, "--only kernel/runtime-attrs"},
    {"op_draws", "K-random", NULL, "--only kernel/values"},
    {"op_last_stride", "K-strided", NULL, "--only kernel/strided"},
    {"op_beyond_exec", "R3", NULL, "--only kernel/old-host"},
    {"op_needs_ops", "R3", NULL, "--only kernel/old-host"},
    {"op_rounds_up", "K-process", NULL, "--only kernel/process"},
    {"op_omp_threads", "K-process", NULL, "--only kernel/process"},
    {"op_reads_empty", "K-empty", NULL, ""},
    {"saved_beyond", "K-bounds", "G-values", ""},
    {"saved_elsewhere", "K-saved", NULL, ""},
    {"saved_unasked", "K-values", NULL, "--only kernel/values"},
    {"mask_shared", "K-threads", NULL, "--only kernel/threads"},
    {"mask_first", "K-state", NULL, "--only kernel/state"},
    {"mask_elsewhere", "K-saved", NULL, "--only kernel/saved"},
    {"needs_swallows", "K-nomem", NULL, "--only kernel/nomem"},
    {"needs_once", "K-saved", NULL, "--only kernel/saved"},
    {"kernels_wrong_stream", "K-stream", NULL, "--only kernel/stream"},
    {"kernels_too_early", "K-stream", NULL, "--only kernel/stream"},
    {"kernels_completes_early", "K-stream", NULL, "--only kernel"},
    {"kernels_holds_arguments", "K-arguments", NULL, "--only kernel/stream"},
    {"kernels_writes_behind", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_writes_before", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_writes_input", "K-readonly", NULL, "--only kernel/bounds"},
    {"kernels_short_workspace", "K-bounds", NULL, "--only kernel/bounds"},
    {"kernels_ignores_add", "K-modes", NULL, "--only kernel/modes"},
    {"kernels_saved_elsewhere", "K-saved", NULL, "--only kernel/saved"},
    {"kernels_reads_host", "K-values", NULL, "--only kernel/values"},
};

int main(void)
{
    static const char *const healthy[] = {"op", "saved", "mask", "needs", "kernels", NULL};

    return kit_defects("defects_kernels", "defects/defect-", defects, sizeof defects / sizeof *defects,
                       healthy);
}
