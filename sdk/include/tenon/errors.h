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

/**
 * Copies text of unknown origin, such as a name out of a file, for a message: UTF-8 stays as it is. Bytes
 * that are none, control characters and those that turn the direction of writing are shown as a backslash, x
 * and two hexadecimal digits. All messages of the library went through it.
 *
 * @param out    gets at most `size` bytes with the NUL, cut behind a whole character or such a group of four
 * @param text   NULL: ""
 * @return length of the text written; 0 if `out` is NULL or `size` is 0
 * @threads any
 * @since 0.1
 */
TN_API size_t tn_text_escape(char *out, size_t size, const char *text);

#ifdef __cplusplus
}
#endif

#endif
