/**
 * Sketch: a plugin that reads and writes files of arrays. Hosts refuse this kind until the library loads and
 * saves through it; the table may change before.
 */
#ifndef TENON_PLUGIN_FORMAT_H
#define TENON_PLUGIN_FORMAT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_format_file tn_format_file; /* the plugin's: one open file */

/** The host's file: bytes by their place. Errors are in `err`. */
typedef struct tn_format_stream {
    uint32_t struct_size, reserved;
    void *self;
    uint64_t bytes; /* of a file that is read */
    tn_status (*read)(void *self, uint64_t at, void *out, uint64_t bytes, tn_err *err);
    tn_status (*write)(void *self, uint64_t at, const void *data, uint64_t bytes, tn_err *err);
} tn_format_stream;

/** Named arrays of a file: parameters, checkpoints. */
typedef struct tn_format_ops {
    tn_capability head;            /* kind TN_KIND_FORMAT, id: "npz" */
    const char *const *extensions; /* "npz", without a dot; NULL-ended */
    /** 1: the first bytes look like this format. */
    int32_t (*probe)(void *plugin, const void *head, uint64_t bytes);
    tn_status (*open)(void *plugin, const tn_format_stream *from, tn_format_file **out, tn_err *err);
    /** Name, shape and type of array `index`; TN_E_KEY: there is none. */
    tn_status (*entry)(tn_format_file *f, uint32_t index, const char **name, tn_tensor *about, tn_err *err);
    tn_status (*read)(tn_format_file *f, uint32_t index, const tn_tensor *out, tn_err *err);
    void (*close)(tn_format_file *f);
    tn_status (*write)(void *plugin, const tn_format_stream *to, uint32_t count, const char *const *names,
                       const tn_tensor *const *arrays, tn_err *err);
} tn_format_ops;

#ifdef __cplusplus
}
#endif

#endif
