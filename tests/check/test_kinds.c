/*
 * Operators of kinds that the library has none of, each in a plugin (kinds/): the kit passes it, and finds
 * each fault that is planted in its twins.
 */
#include "kit.h"

static const kit_defect planted[] = {
    /* kinds/FILE.c and the fault, the rule, a rule that may fail with it, what is run */
    {"body_unreadable", "L-operator", NULL, "--only load/operators"},
    {"body_steep_always", "G-values", NULL, "--only gradient"},
    {"ends_other_body", "K-body", NULL, "--only kernel/values"},
    {"ends_nan_spreads", "K-pointwise", NULL, "--only kernel/special"},
    {"ends_inf_counted", "K-bounds", NULL, "--only kernel/special"},
    {"ends_nan_remembered", "K-special", NULL, "--only kernel/special"},
    {"ends_narrow_workspace", "K-sizes", NULL, "--only kernel/errors"},
    {"ends_narrow_saved", "K-sizes", NULL, "--only kernel/errors"},
    {"large_last_wrong", "K-values", NULL, "--only kernel/values"},
    {"large_four_inputs", "K-values", NULL, "--only kernel/values"},
    {"large_shared_scale", "K-threads", NULL, "--only kernel/threads"},
    {"large_saved_align", "K-plan", NULL, "--only kernel"},
    {"queue_impatient", "D-order", NULL, "--only device/order"},
    {"resize_no_flag", "K-resize", NULL, "--only kernel/values"},
    {"resize_past_end", "K-bounds", NULL, "--only kernel/bounds"},
    {"resize_last_wrong", "K-values", NULL, "--only kernel/values"},
    {"ruled_unreadable", "L-operator", NULL, "--only load/operators"},
    {"ruled_names_nothing", "L-operator", NULL, "--only load/operators"},
    {"ruled_no_meaning", "L-operator", NULL, "--only load/operators"},
    {"ruled_other_shape", "K-bounds", NULL, "--only kernel/bounds"},
    {"ruled_other_shape_out", "K-bounds", NULL, "--only kernel/bounds"},
    {"ruled_gamma_forgotten", "G-values", NULL, "--only gradient"},
    {"ruled_other_gradient", "G-values", NULL, "--only gradient"},
    {"ruled_input_unnamed", "K-bounds", "G-values", "--only kernel/values"},
    {"ruled_no_backward", "G-values", NULL, "--only gradient"},
    {"packed_high_first", "K-values", NULL, "--only kernel/values"},
    {"packed_no_sign", "K-values", NULL, "--only kernel/values"},
    {"packed_rows_aligned", "K-values", NULL, "--only kernel/values"},
    {"packed_reads_twice", "K-bounds", NULL, "--only kernel/bounds"},
    {"mutation_mean_kept", "K-mutates", NULL, "--only kernel/mutates"},
    {"mutation_first_alone", "K-mutates", NULL, "--only kernel/mutates"},
    {"mutation_value_written", "K-readonly", NULL, "--only kernel/bounds"},
    {"mutation_tail_forgotten", "K-mutates", NULL, "--only kernel/mutates"},
    {"sparse_reads_dense", "K-bounds", NULL, "--only kernel/bounds"},
    {"sparse_rows_reversed", "K-sparse", NULL, "--only kernel/values"},
    {"sparse_rows_one_more", "K-sparse", NULL, "--only kernel/values"},
    {"sparse_nan_uncounted", "K-bounds", NULL, "--only kernel/special"},
    {"sparse_no_resize", "K-resize", NULL, "--only kernel/values"},
    {"subgraph_steps_guessed", "I-directions", NULL, "--only infer/problems"},
    {"subgraph_state_lost", "G-values", NULL, "--only gradient"},
    {"subgraph_weight_written", "G-values", NULL, "--only gradient"},
    {"subgraph_other_backward", "G-values", NULL, "--only gradient"},
};

int main(void)
{
    static const char *const healthy[] = {"body",   "ends",  "large",  "mutation", "packed", "queue",
                                          "resize", "ruled", "sparse", "subgraph", NULL};

    return kit_defects("kinds", "kinds/kind-", planted, sizeof planted / sizeof *planted, healthy);
}
