/**
 * A plugin that reads and writes archives: files that hold other files, each of one array.
 *
 * The plugin knows the container, the host what lies in it: an entry is bytes, which the host reads and
 * writes as a .npy file of NumPy. So a plugin parses no array, and the host no archive. No size in a file is
 * trusted: the plugin compares the sizes in the container with the bytes that are there, the host compares
 * an entry's size with the head of its .npy before it takes memory.
 *
 * All functions are [any], for one file one at a time. Streams are the host's; they may be used until the
 * function returns, the one that `open` was given until `close` returns.
 */
#ifndef TENON_PLUGIN_ARCHIVE_H
#define TENON_PLUGIN_ARCHIVE_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_archive tn_archive; /* the plugin's: one open file */

/** The host's file that is read. */
typedef struct tn_archive_input {
    uint32_t struct_size, reserved;
    void *self;
    uint64_t bytes;
    /** Exactly `bytes` bytes from `at` on. TN_E_FORMAT: the file ends before. */
    tn_status (*read)(void *self, uint64_t at, void *out, uint64_t bytes, tn_err *err);
} tn_archive_input;

/** One array of the archive. */
typedef struct tn_archive_entry {
    uint32_t struct_size, reserved;
    const char *name; /* without an extension; the owner's while the file is open */
    uint64_t bytes;   /* of its .npy, unpacked */
} tn_archive_entry;

/** The host's file that is written, and what goes into it. */
typedef struct tn_archive_output {
    uint32_t struct_size, count; /* count: of entries, in their order */
    void *self;
    const tn_archive_entry *entries;
    /** `bytes` bytes of entry `index` from `at` on, which it has. */
    tn_status (*read)(void *self, uint32_t index, uint64_t at, void *out, uint64_t bytes, tn_err *err);
    /** Appends to the file. */
    tn_status (*write)(void *self, const void *data, uint64_t bytes, tn_err *err);
} tn_archive_output;

typedef struct tn_archive_ops {
    tn_capability head; /* kind TN_KIND_ARCHIVE, id: the extension of its files, "npz" */
    /** 1: a file that begins with these bytes (at most 64) may be one. */
    int32_t (*probe)(void *plugin, const void *head, uint64_t bytes);
    /** TN_E_FORMAT: damaged; TN_E_UNSUPPORTED: encrypted, or packed in a way that is not known. */
    tn_status (*open)(void *plugin, const tn_archive_input *from, tn_archive **out, tn_err *err);
    /** Fills `out`. TN_E_KEY: there is no entry `index`. */
    tn_status (*entry)(tn_archive *a, uint32_t index, tn_archive_entry *out, tn_err *err);
    /** `read` goes on at the first byte of entry `index`. */
    tn_status (*begin)(tn_archive *a, uint32_t index, tn_err *err);
    /** Exactly `bytes` more of it. TN_E_FORMAT: it is damaged, or has no more; the read of its last byte also
     * says whether its checksum differs. */
    tn_status (*read)(tn_archive *a, void *out, uint64_t bytes, tn_err *err);
    void (*close)(tn_archive *a);
    tn_status (*write)(void *plugin, const tn_archive_output *to, tn_err *err);
} tn_archive_ops;

#ifdef __cplusplus
}
#endif

#endif
