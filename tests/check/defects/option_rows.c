/* An option whose default lies outside its range. */
#include "healthy.h"

static const tn_option_row row = {(uint32_t)TN_END(tn_option_row, max),
                                  0,
                                  "region_kib",
                                  "int",
                                  NULL,
                                  "0",
                                  "size of a region",
                                  "0.1",
                                  1,
                                  1024};
static const tn_option_row *const rows[] = {&row, NULL};
static const tn_option_table table = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "defect-option-rows"), .rows = rows};
static const tn_capability *const tables[] = {&pool_ops.head, &table.head, NULL};

TN_PLUGIN_DEFINE("defect-option-rows", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit options", NULL, NULL, NULL, tables);
