/*
 * A defect is a healthy plugin with one thing wrong. This is the healthy one: the pool template, with its
 * descriptor left out, so that the file that includes it defines its own.
 */
#ifndef TN_DEFECTS_HEALTHY_H
#define TN_DEFECTS_HEALTHY_H

#include "tenon/plugin/pool.h"

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "acme_pool.c"
#pragma pop_macro("TN_PLUGIN_DEFINE")

/* The descriptor of a pool that is well, with other functions for the plugin as a whole. */
#define HEALTHY_POOL(NAME, INIT, FINI)                                                                       \
    TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "pool:first-fit", INIT,    \
                     FINI, NULL, capabilities)

/* A pool that is well but for the functions given. */
#define DEFECT_POOL(NAME, ...)                                                                               \
    static const tn_pool_ops defect_ops = {                                                                  \
        .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "first-fit"), __VA_ARGS__};                \
    static const tn_capability *const defect_tables[] = {&defect_ops.head, NULL};                            \
    TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "pool:first-fit", NULL,    \
                     NULL, NULL, defect_tables)

/* create for such a pool: the table of its functions is the defect's. */
#define DEFECT_CREATE                                                                                        \
    static const tn_pool_ops defect_ops;                                                                     \
    static tn_status create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)          \
    {                                                                                                        \
        tn_status st = pool_create(plugin, source, out, err);                                                \
        if (!st)                                                                                             \
            (*out)->ops = &defect_ops;                                                                       \
        return st;                                                                                           \
    }

#endif
