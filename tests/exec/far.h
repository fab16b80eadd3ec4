/*
 * Devices of the test program with streams, which do all work at once. The host does not reach the memory of
 * "far" and of "farther", which has no stream_call; it does reach that of "beside". Kernels reach an array's
 * elements through `far_near`.
 */
#ifndef TN_TEST_EXEC_FAR_H
#define TN_TEST_EXEC_FAR_H

#include "context.h"
#include "tenon/plugin/device.h"

extern const tn_device_ops far_ops, farther_ops, beside_ops;
void *far_near(const tn_tensor *t); /* of a device's or the host's memory */
bool far_pinned(const void *data);  /* in memory that one of them gave as pinned */

#endif
