/* A row of options has a flag that means nothing. */
#include "healthy.h"

static const tn_option_row row = {.struct_size = (uint32_t)TN_END(tn_option_row, max),
                                  .flags = 2,
                                  .key = "region_kib",
                                  .type = "int",
                                  .default_text = "64",
                                  .help = "size of a region",
                                  .since = "0.1",
                                  .min = 1,
                                  .max = 1024};
static const tn_option_row *const rows[] = {&row, NULL};
static const tn_option_table table = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "defect-unknown-option"), .rows = rows};
static const tn_capability *const tables[] = {&pool_ops.head, &table.head, NULL};

TN_PLUGIN_DEFINE("defect-unknown-option", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit options", NULL, NULL, NULL, tables);
