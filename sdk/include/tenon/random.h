/**
 * Random numbers: Philox, with a seed and a draw counter per device. The same seed and the same order of
 * calls give the same numbers, eager or hybridized, on any number of threads.
 */
#ifndef TENON_RANDOM_H
#define TENON_RANDOM_H

#include "device.h"
#include "plugin/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Seeds one device, or all of the context (`device` NULL), and sets the counters to 0.
 * @threads any @since 0.1 */
TN_API tn_status tn_random_seed(tn_ctx *ctx, uint64_t seed, const tn_device *device);

/** Where a device's random numbers stand, for checkpoints (`device` NULL: the default).
 * @threads any @since 0.1 */
TN_API tn_status tn_random_save(tn_ctx *ctx, const tn_device *device, uint64_t *seed, uint64_t *position);

/** Puts a device's random numbers back to where they stood. @threads any @since 0.1 */
TN_API tn_status tn_random_restore(tn_ctx *ctx, const tn_device *device, uint64_t seed, uint64_t position);

#ifdef __cplusplus
}
#endif

#endif
