/**
 * Sketch: a plugin that reads training data. Hosts refuse this kind until the program's iterators come from
 * plugins; the table may change before.
 */
#ifndef TENON_PLUGIN_ITER_H
#define TENON_PLUGIN_ITER_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_iter tn_iter; /* the plugin's: one pass over data */

/** What each batch holds: arrays by name, all dense, in host memory. */
typedef struct tn_iter_info {
    uint32_t struct_size, array_count;
    const char *const *names;       /* "data", "label" */
    const tn_tensor *const *arrays; /* shapes and types; no data */
    int64_t batches;                /* -1: not known */
} tn_iter_info;

typedef struct tn_iter_ops {
    tn_capability head; /* kind TN_KIND_ITER, id: "image-record" */
    /** `options`: names and texts in turn, NULL-ended. */
    tn_status (*open)(void *plugin, const char *const *options, tn_iter **out, tn_err *err);
    tn_status (*info)(tn_iter *i, tn_iter_info *out, tn_err *err);
    /** Fills the host's arrays; `*pad`: how many of the last rows are filler; -1: the end. */
    tn_status (*next)(tn_iter *i, const tn_tensor *const *arrays, int64_t *pad, tn_err *err);
    /** Back to the beginning, in the order that `seed` gives. */
    tn_status (*reset)(tn_iter *i, uint64_t seed, tn_err *err);
    /** Where it stands, for checkpoints; `seek` goes back there. */
    tn_status (*tell)(tn_iter *i, tn_blob *out, tn_err *err);
    tn_status (*seek)(tn_iter *i, const tn_blob *to, tn_err *err);
    void (*close)(tn_iter *i);
} tn_iter_ops;

#ifdef __cplusplus
}
#endif

#endif
