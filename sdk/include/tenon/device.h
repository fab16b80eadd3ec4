/**
 * Devices, their memory, and waiting for all work.
 *
 * A device has a type and an index: "cpu:0", "fake:1". The host "cpu" has any index below 64; others come
 * from plugins, which are loaded when a device is first named. A tn_device lives as long as its context:
 * nothing is released.
 */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_device tn_device;

/**
 * The device of this name: "cpu", "cpu:1", "cuda:0", also "cpu(0)"; NULL: the default of the calling thread
 * (the scope's, else device.default). Opens it at its first use.
 *
 * @return TN_E_ARG: not a device's name · TN_E_DEVICE: no plugin provides it, or it does not open (what was
 *         searched)
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_device_get(tn_ctx *ctx, const char *name, const tn_device **out);

/** "cpu"; "" for NULL. @threads any @since 0.1 */
TN_API const char *tn_device_type(const tn_device *device);

/** Index within its type; -1 for NULL. @threads any @since 0.1 */
TN_API int32_t tn_device_index(const tn_device *device);

/** Makes `device` the default of this thread's new arrays and of calls without inputs; NULL: device.default
 * again. Returns the one before, or NULL. @threads any @since 0.1 */
TN_API const tn_device *tn_device_use(const tn_device *device);

/** Devices opened so far. @threads any @since 0.1 */
TN_API tn_status tn_device_count(tn_ctx *ctx, size_t *count);

/** An opened device by index. TN_E_ARG: index too large. @threads any @since 0.1 */
TN_API tn_status tn_device_at(tn_ctx *ctx, size_t index, const tn_device **out);

/** How many devices of a type this machine has, without opening any. TN_E_DEVICE: no such type.
 * @threads any @since 0.1 */
TN_API tn_status tn_device_available(tn_ctx *ctx, const char *type, int32_t *count);

/** Memory of one kind on one device, in bytes; what is not known is 0. */
typedef struct tn_memory_stats {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_memory_stats) */
    uint32_t reserved;
    uint64_t free, total;  /* of the device */
    uint64_t live, cached; /* given out; kept by the pool for reuse */
    uint64_t peak;         /* of live */
    uint64_t largest_free; /* largest block in the pool */
    uint64_t hits, misses; /* requests that the pool served from what it kept, and others */
} tn_memory_stats;

/** @param kind TN_MEMORY_DEVICE or TN_MEMORY_PINNED. TN_E_ARG: another kind, struct_size 0; TN_E_DEVICE.
 * @threads any @since 0.1 */
TN_API tn_status tn_device_memory(tn_ctx *ctx, const tn_device *device, int32_t kind, tn_memory_stats *out);

/** Gives memory that the device's pools keep back to the system, until `keep_bytes` are left.
 * @threads any @since 0.1 */
TN_API tn_status tn_device_trim(tn_ctx *ctx, const tn_device *device, uint64_t keep_bytes);

/** Waits until all work of the context is done. The oldest error that no wait has told yet comes out here.
 * TN_E_STATE on a thread that the engine runs. @threads any @since 0.1 */
TN_API tn_status tn_wait_all(tn_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
