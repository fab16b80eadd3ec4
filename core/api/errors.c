/* tenon/errors.h: the rows of errors.list. */
#include "tenon/errors.h"
#include "api/api.h"

static tn_status row_give(const char *function, const tni_error_row *row, tn_error_info *out)
{
    const tn_error_info info = {.number = row->number,
                                .refusal = row->refusal,
                                .status = row->status,
                                .exit_code = row->exit_code,
                                .sentence = row->sentence,
                                .advice = row->advice};

    return api_info(function, &info, out, (uint32_t)sizeof info);
}

size_t tn_error_count(void)
{
    size_t count;

    tni_error_rows(&count);
    return count;
}

tn_status tn_error_at(size_t index, tn_error_info *out)
{
    size_t count;
    const tni_error_row *rows = tni_error_rows(&count);

    if (!out)
        return api_null(__func__, "out");
    if (index >= count)
        return tni_error(TN_E_ARG, "error %zu of %zu", index, count);
    return row_give(__func__, &rows[index], out);
}

tn_status tn_error_find(uint32_t number, tn_error_info *out)
{
    const tni_error_row *row = tni_error_row_find(number);

    if (!out)
        return api_null(__func__, "out");
    if (!row)
        return tni_error(TN_E_KEY, "there is no error TN-%u", number);
    return row_give(__func__, row, out);
}

size_t tn_text_escape(char *out, size_t size, const char *text)
{
    return out && size ? tni_text_escape(out, size, text ? text : "") : 0;
}

uint32_t tn_error_number(void)
{
    tn_err err;

    tni_error_get(&err);
    return err.number ? err.number : (uint32_t)err.code;
}
