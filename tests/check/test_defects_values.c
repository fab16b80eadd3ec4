/*
 * Kernels that give numbers and not always the right ones (defects/): attributes read too early, draws of
 * their own, broadcasting, float64 in name only.
 */
#include "kit.h"

static const kit_defect defects[] = {
    {"runtime_level", "K-runtime-attrs", NULL, "--only kernel/runtime-attrs"},
    {"runtime_times", "K-runtime-attrs", NULL, "--only kernel/runtime-attrs"},
    {"runtime_negate", "K-runtime-attrs", NULL, "--only kernel/runtime-attrs"},
    {"runtime_unit", "K-runtime-attrs", NULL, "--only kernel/runtime-attrs"},
    {"runtime_shape", "I-runtime", NULL, "--only infer/runtime"},
    {"random_fixed", "K-random", NULL, "--only kernel/random"},
    {"random_own", "K-random", NULL, "--only kernel/random"},
    {"random_seed_only", "K-random", NULL, "--only kernel/random"},
    {"random_step_only", "K-random", NULL, "--only kernel/random"},
    {"random_draw_only", "K-random", NULL, "--only kernel/random"},
    {"random_one_device", "K-random", NULL, "--only kernel/random"},
    {"broadcast_last", "K-values", NULL, "--only kernel/values"},
    {"broadcast_middle", "K-values", NULL, "--only kernel/values"},
    {"broadcast_all", "K-values", NULL, "--only kernel/values"},
    {"broadcast_rank", "K-values", NULL, "--only kernel/values"},
    {"broadcast_left", "K-values", NULL, "--only kernel/values"},
    {"precision_input", "K-precision", NULL, "--only kernel/precision"},
    {"precision_output", "K-precision", NULL, "--only kernel/precision"},
    {"precision_inside", "K-precision", NULL, "--only kernel/precision"},
    {"precision_sum", "K-precision", NULL, "--only kernel/precision"},
    {"precision_gradient", "K-precision", NULL, "--only kernel/precision"},
    {"blend_first_attributes", "K-state", NULL, "--only kernel/state"},
    {"blend_one_plan", "K-state", NULL, "--only kernel/state"},
    {"vector_by_size", "K-state", NULL, "--only kernel/state"},
    {"blend_single_eps", "K-precision", NULL, "--only kernel/precision"},
    {"blend_single_coef", "K-precision", NULL, "--only kernel/precision"},
    {"blend_label_none", "K-values", NULL, "--only kernel/values"},
    {"blend_first_head", "G-values", NULL, "--only gradient"},
    {"blend_wants_second", "G-values", NULL, "--only gradient"},
    {"blend_gradient_times", "G-values", NULL, "--only gradient"},
    {"blend_gradient_large", "G-values", NULL, "--only gradient"},
    {"blend_refusal_leaks", "K-leak", NULL, "--only kernel/errors"},
    {"blend_no_status", "R1", NULL, "--only kernel/values"},
    {"blend_writes_plan", "K-plan", NULL, "--only kernel/values"},
    {"blend_writes_tensor", "K-readonly", NULL, "--only kernel/values"},
    {"blend_writes_inplace", "K-bounds", NULL, "--only kernel/values"},
    {"blend_other_element", "K-pointwise", NULL, "--only kernel/values"},
    {"blend_infer_leaks", "M-leak", NULL, "--only infer/fuzz"},
    {"blend_infer_guesses", "I-directions", NULL, "--only infer/problems"},
    {"vector_loses_nan", "K-values", NULL, "--only kernel/values"},
    {"vector_ends_at_max", "K-values", NULL, "--only kernel/values"},
    {"vector_by_double", "K-values", NULL, "--only kernel/values"},
    {"vector_by_difference", "K-values", NULL, "--only kernel/values"},
    {"vector_joins_equal", "K-values", NULL, "--only kernel/values"},
    {"vector_thread_left", "R9", NULL, "--only kernel/process"},
    {"vector_own_locale", "K-process", NULL, "--only kernel/process"},
    {"vector_leaks_large", "K-leak", NULL, "--only kernel/leak"},
};

int main(void)
{
    static const char *const healthy[] = {"runtime", "random", "broadcast", "precision",
                                          "blend",   "vector", "mixed",     NULL};

    return kit_defects("defects_values", "defects/defect-", defects, sizeof defects / sizeof *defects,
                       healthy);
}
