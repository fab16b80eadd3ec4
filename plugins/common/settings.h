/* On the host, for plugins: options as a table, which are read into a struct; statistics as JSON. */
#ifndef TNB_SETTINGS_H
#define TNB_SETTINGS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "tenon/plugin/plugin.h"
#include "tenon/plugin/util.h"

/* An option that is a whole number, and where it goes in the plugin's struct: an int64_t. */
typedef struct setting {
    tn_option_row row;
    size_t at;
} setting;

/* The option `key_` of the library, or of the plugin where it is its own. */
#define SETTING_OF(struct_, field_, key_, default_, help_, min_, max_)                                       \
    {                                                                                                        \
        .row = {.struct_size = (uint32_t)TN_END(tn_option_row, max),                                         \
                .key = (key_),                                                                               \
                .type = "int",                                                                               \
                .default_text = (default_),                                                                  \
                .help = (help_),                                                                             \
                .since = "0.1",                                                                              \
                .min = (min_),                                                                               \
                .max = (max_)},                                                                              \
        .at = offsetof(struct_, field_)                                                                      \
    }
#define SETTING(struct_, field_, default_, help_, min_, max_)                                                \
    SETTING_OF(struct_, field_, #field_, default_, help_, min_, max_)

static inline tn_status settings_read(const tn_host *host, const setting *s, size_t count, void *to,
                                      tn_err *err)
{
    const tn_options_service *o = tn_host_service(host, TN_SERVICE_OPTIONS);
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < count; i++) {
        int64_t *const value = (int64_t *)(void *)((char *)to + s[i].at);

        *value = strtoll(s[i].row.default_text, NULL, 10);
        if (o && TN_OFFERS(o, tn_options_service, integer))
            st = o->integer(host, s[i].row.key, *value, value);
    }
    return st ? tn_fail(err, st, "an option of the plugin cannot be read") : TN_OK;
}

/* A plugin's state of `bytes`, all 0 but its options. */
static inline tn_status settings_plugin(const tn_host *host, const setting *s, size_t count, size_t bytes,
                                        void **plugin, tn_err *err)
{
    void *p = calloc(1, bytes);
    const tn_status st =
        p ? settings_read(host, s, count, p, err) : tn_fail(err, TN_E_NOMEM, "out of memory");

    if (st) {
        free(p);
        return st;
    }
    *plugin = p;
    return TN_OK;
}

typedef struct statistic {
    const char *name;
    uint64_t value;
} statistic;

/* {"name": value, ...}; `out` has room for it. */
static inline const char *statistics_print(const statistic *s, size_t count, char *out, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, room - used, "%s\"%s\": %llu", i ? ", " : "{", s[i].name,
                                 (unsigned long long)s[i].value);
    (void)snprintf(out + used, room - used, "}");
    return out;
}

#endif
