/* An operator without a name. */
#include "tenon/plugin/util.h"

static const char *const data[] = {"data", NULL}, *const output[] = {"output", NULL};

static tn_status shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static const tn_op nameless = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                               .version = 1,
                               .doc = "Nobody can ask for it.",
                               .inputs = data,
                               .outputs = output,
                               .shape = shape};
static const tn_op *const ops[] = {&nameless, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};
static const tn_capability *const tables[] = {&op_table.head, NULL};

TN_PLUGIN_DEFINE("defect-op-no-name", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "op:defect_nameless", NULL, NULL, NULL, tables);
