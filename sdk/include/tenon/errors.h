/** The list of what can go wrong: what `tenon explain` prints. */
#ifndef TENON_ERRORS_H
#define TENON_ERRORS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One row of the list. Texts are constant. */
typedef struct tn_error_info {
    uint32_t struct_size; /* set by the caller: sizeof(tn_error_info) */
    uint32_t number;      /* TN number: 1 to 15 stand for the statuses */
    uint32_t refusal;     /* of a plugin: 5 is L05; 0: no refusal */
    tn_status status;
    int32_t exit_code;    /* of the tool */
    uint32_t reserved;
    const char *sentence, *advice;
} tn_error_info;

/** Rows of the list. @threads any @since 0.1 */
TN_API size_t tn_error_count(void);

/** A row by index. TN_E_ARG: index too large, or struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_error_at(size_t index, tn_error_info *out);

/** A row by TN number. TN_E_KEY: no such number. @threads any @since 0.1 */
TN_API tn_status tn_error_find(uint32_t number, tn_error_info *out);

/** TN number of this thread's last error; its status if it has no row of its own; 0: no error.
 * @threads any @since 0.1 */
TN_API uint32_t tn_error_number(void);

#ifdef __cplusplus
}
#endif

#endif
