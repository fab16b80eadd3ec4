/* Configuration files: the line reader and, with what it reads, the options of a context. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define HEAP_MAX(bytes) (50u * (uint64_t)(bytes) + (64u << 20))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tn_status key_take(void *arg, const char *section, const char *key, const char *value, uint32_t line)
{
    char full[2 * TN_INI_NAME_MAX + 2];
    char where[16];
    tn_status st;

    if (strlen(section) > TN_INI_NAME_MAX || strlen(key) > TN_INI_NAME_MAX ||
        strlen(value) > 2 * TN_OPTION_VALUE_MAX || line == 0)
        abort();
    snprintf(full, sizeof full, "%s.%s", section, key);
    snprintf(where, sizeof where, "f:%u", line);
    st = tni_options_set_value(arg, full, value, TN_ORIGIN_FILE, where);
    if (st && !tni_error_message()[0])
        abort();
    return st == TN_E_NOMEM ? st : TN_OK;
}

static size_t wrong;

static void line_wrong(void *arg)
{
    (void)arg;
    wrong++;
    if (strncmp(tni_error_message(), "f:", 2) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_options *options;
    tni_mem_stats before, after;
    tn_status st;

    tni_mem_stats_get(&before);
    if (tni_options_create(NULL, &options))
        abort();
    st = tni_ini_read_memory("f", (const char *)data, size, key_take, options);
    if (st && strncmp(tni_error_message(), "f:", 2) != 0 && st == TN_E_FORMAT)
        abort(); /* an error without its place */
    wrong = 0;
    if (tni_ini_read_all("f", (const char *)data, size, key_take, line_wrong, options) == TN_E_FORMAT &&
        size <= TN_INI_BYTES_MAX)
        abort(); /* what is wrong is told and passed over */
    if ((st == TN_E_FORMAT) != (wrong > 0) && st != TN_E_NOMEM)
        abort(); /* both readers see the same */
    tni_options_destroy(options);
    tni_mem_stats_get(&after);
    if (after.live_count != before.live_count || after.peak_bytes > HEAP_MAX(size))
        abort();
    return 0;
}
