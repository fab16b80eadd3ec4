/**
 * DLPack 1.1: arrays from and to other libraries of the process, without a copy.
 *
 * The structs are DLPack's own (dmlc.github.io/dlpack): include its header to look into them.
 */
#ifndef TENON_DLPACK_H
#define TENON_DLPACK_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;
struct DLManagedTensor;

/** Waits for the value and hands it out; the consumer calls the deleter. `writable` 0: marked read-only.
 * TN_E_DTYPE, TN_E_UNSUPPORTED: what DLPack cannot say. @threads any @since 0.1 */
TN_API tn_status tn_array_to_dlpack(tn_array *a, int32_t writable, struct DLManagedTensorVersioned **out);

/** The form before version 1, which knows no read-only memory. @threads any @since 0.1 */
TN_API tn_status tn_array_to_dlpack_legacy(tn_array *a, struct DLManagedTensor **out);

/** An array around foreign memory; its deleter is called when the last view is gone. @param tensor [takes]
 * @return TN_E_DTYPE, TN_E_SHAPE, TN_E_DEVICE, TN_E_UNSUPPORTED: `tensor` stays the caller's
 * @threads any @since 0.1 */
TN_API tn_status tn_array_from_dlpack(tn_ctx *ctx, struct DLManagedTensorVersioned *tensor, tn_array **out);

/** The form before version 1. @param tensor [takes] @threads any @since 0.1 */
TN_API tn_status tn_array_from_dlpack_legacy(tn_ctx *ctx, struct DLManagedTensor *tensor, tn_array **out);

#ifdef __cplusplus
}
#endif

#endif
