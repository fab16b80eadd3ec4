/**
 * Named arrays, in order: the weights of a net. Files are MXNet's .params: versions 0 to 3 are read.
 */
#ifndef TENON_PARAMS_H
#define TENON_PARAMS_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_params tn_params;

/** An empty list. @threads any @since 0.1 */
TN_API tn_status tn_params_create(tn_params **out);

/** Frees the list and its references. NULL is fine. @threads owner @since 0.1 */
TN_API void tn_params_destroy(tn_params *p);

/** Appends an array; the list keeps a reference. `name` may begin with "arg:" or "aux:". TN_E_KEY: the name
 * is taken.
 * @threads owner @since 0.1 */
TN_API tn_status tn_params_add(tn_params *p, const char *name, tn_array *a);

/** The array of `name`, else of "arg:name", else of "aux:name"; yours to release. TN_E_KEY: there is none.
 * @threads any @since 0.1 */
TN_API tn_status tn_params_get(const tn_params *p, const char *name, tn_array **out);

/** Number of entries; 0 for NULL. @threads any @since 0.1 */
TN_API size_t tn_params_count(const tn_params *p);

/** Name of an entry, as it stands in the file; borrowed; "" if the list has no names; NULL: index too large.
 * @threads any @since 0.1 */
TN_API const char *tn_params_name(const tn_params *p, size_t index);

/** Array of an entry, yours to release; *out is NULL for an entry without a value. TN_E_ARG: index too large.
 * @threads any @since 0.1 */
TN_API tn_status tn_params_at(const tn_params *p, size_t index, tn_array **out);

/** Reads a .params file into arrays on `device` (NULL: the default). TN_E_IO · TN_E_FORMAT: damaged, with
 * entry and reason · TN_E_UNSUPPORTED: another kind of file. @threads any @since 0.1 */
TN_API tn_status tn_params_load(tn_ctx *ctx, const char *path, const tn_device *device, tn_params **out);

/**
 * A file of arrays of any kind that is known here: .params, .npy (one entry without a name), .npz by the
 * plugin `npz`. The first bytes of the file decide, not its name.
 *
 * @param out the arrays lie on the host
 * @return TN_E_IO · TN_E_FORMAT: damaged, with the entry and the reason · TN_E_UNSUPPORTED: a file of another
 * kind; of a .npz without its plugin TN-1304 · TN_E_NOMEM
 * @threads any @since 0.1
 */
TN_API tn_status tn_load(tn_ctx *ctx, const char *path, tn_params **out);

/**
 * Writes one by its extension: .npy (a single array) and .npz (names as they are; arr_0, arr_1 … where the
 * list has none), all else as .params. It is whole or absent.
 *
 * @return TN_E_IO · TN_E_ARG: several arrays for a .npy, a name that no entry may have · TN_E_UNSUPPORTED:
 * bfloat16, sparse or no value in .npy and .npz; a .npz without its plugin (TN-1304) · TN_E_NOMEM
 * @threads any @since 0.1
 */
TN_API tn_status tn_save(tn_ctx *ctx, const tn_params *p, const char *path);

/** The same from memory, which is not kept. @threads any @since 0.1 */
TN_API tn_status tn_params_from_memory(tn_ctx *ctx, const void *data, uint64_t bytes, const tn_device *device,
                                       tn_params **out);

/** Writes a .params file; it is whole or absent. Waits for the values. @threads any @since 0.1 */
TN_API tn_status tn_params_save(const tn_params *p, const char *path);

/** The same as bytes, yours (tn_free). @threads any @since 0.1 */
TN_API tn_status tn_params_to_memory(const tn_params *p, void **data, uint64_t *bytes);

/** SHA-256 over names, data types, shapes and little-endian values, in order: 64 hexadecimal digits and NUL.
 * @threads any @since 0.1 */
TN_API tn_status tn_params_sha256(const tn_params *p, char hex[65]);

#ifdef __cplusplus
}
#endif

#endif
