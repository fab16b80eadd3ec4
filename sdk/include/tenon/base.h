/**
 * Statuses, data types, errors: what every public header needs.
 *
 * Every call returns a tn_status and writes its outputs last, on success only. After a failure
 * tn_error_text() says what happened, on the thread that made the call.
 */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include "plugin/base.h"

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What the last failed call of this thread says: one line; "" if none failed. @threads any @since 0.1 */
TN_API const char *tn_error_text(void);

/** The status of the last failed call of this thread. @threads any @since 0.1 */
TN_API tn_status tn_error_code(void);

/** Forgets this thread's error. @threads any @since 0.1 */
TN_API void tn_error_clear(void);

/** Name of a status, such as "TN_E_SHAPE"; borrowed, never NULL. @threads any @since 0.1 */
TN_API const char *tn_status_name(tn_status status);

/** Version of the library, such as "0.1.0"; borrowed. @threads any @since 0.1 */
TN_API const char *tn_version(void);

/** Build id of the library, in hexadecimal; borrowed, "" if the file carries none. @threads any @since 0.1 */
TN_API const char *tn_build_id(void);

/** MXNet's name of a data type ("float32"); NULL if there is no such type. @threads any @since 0.1 */
TN_API const char *tn_dtype_name(int32_t dtype);

/** Reads "float32" or "f32"; TN_E_DTYPE if it is neither. @threads any @since 0.1 */
TN_API tn_status tn_dtype_parse(const char *text, int32_t *dtype);

#ifdef __cplusplus
}
#endif

#endif
