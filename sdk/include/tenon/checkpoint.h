/**
 * Checkpoints: a folder of numbered files, each whole or absent, each section with a checksum; the newest
 * whole file counts. A checkpoint holds arrays and one JSON text of the program's.
 */
#ifndef TENON_CHECKPOINT_H
#define TENON_CHECKPOINT_H

#include "params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_checkpoint tn_checkpoint;

/**
 * Writes one more checkpoint and removes the oldest until `keep` are left (0: all stay). Waits for the
 * values.
 *
 * @param json a text of the program's, valid JSON
 * @param path of the new file, yours (tn_free); may be NULL
 * @return TN_E_IO: full disk, no permission; earlier checkpoints are as they were · TN_E_FORMAT: `json` is
 *         not JSON
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_checkpoint_save(const char *folder, const char *json, const tn_params *params,
                                    uint32_t keep, char **path);

/** Reads the newest whole checkpoint of a folder, its arrays on `device` (NULL: the default). TN_E_KEY: there
 * is none · TN_E_FORMAT: all are damaged. @threads any @since 0.1 */
TN_API tn_status tn_checkpoint_load(tn_ctx *ctx, const char *folder, const tn_device *device,
                                    tn_checkpoint **out);

/** Reads one checkpoint file, whether or not it is the newest, its arrays on `device` (NULL: the default).
 * TN_E_IO · TN_E_FORMAT: damaged, torn or no checkpoint · TN_E_UNSUPPORTED: arrays of a later version.
 * @threads any @since 0.1 */
TN_API tn_status tn_checkpoint_load_file(tn_ctx *ctx, const char *path, const tn_device *device,
                                         tn_checkpoint **out);

/** NULL is fine. @threads owner @since 0.1 */
TN_API void tn_checkpoint_destroy(tn_checkpoint *c);

/** The JSON text it was saved with, borrowed; "" for NULL. @threads any @since 0.1 */
TN_API const char *tn_checkpoint_json(const tn_checkpoint *c);

/** Its file, borrowed; "" for NULL. @threads any @since 0.1 */
TN_API const char *tn_checkpoint_path(const tn_checkpoint *c);

/** Newer files that were damaged and passed over, one line each, borrowed; "": none.
 * @threads any @since 0.1 */
TN_API const char *tn_checkpoint_skipped(const tn_checkpoint *c);

/** Its number, from 1; 0 for NULL. @threads any @since 0.1 */
TN_API uint32_t tn_checkpoint_number(const tn_checkpoint *c);

/** Its arrays, borrowed; NULL for NULL. @threads any @since 0.1 */
TN_API const tn_params *tn_checkpoint_params(const tn_checkpoint *c);

#ifdef __cplusplus
}
#endif

#endif
