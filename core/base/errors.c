/* The table of errors.list. */
#include "base/base.h"

static const tni_error_row rows[] = {
#define TN_ERROR(number_, refusal_, status_, exit_, sentence_, advice_)                                      \
    {.number = number_,                                                                                      \
     .refusal = refusal_,                                                                                    \
     .status = status_,                                                                                      \
     .exit_code = exit_,                                                                                     \
     .sentence = sentence_,                                                                                  \
     .advice = advice_},
#include "base/errors.list"
#undef TN_ERROR
};

const tni_error_row *tni_error_rows(size_t *count)
{
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const tni_error_row *tni_error_row_find(uint32_t number)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}
