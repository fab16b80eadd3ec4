/* Shared by option_table.c (rows, reading of values), options.c (values of one context) and option_env.c. */
#ifndef TN_BASE_OPTIONS_INTERNAL_H
#define TN_BASE_OPTIONS_INTERNAL_H

#include "base/base.h"

#define OPTION_KEY_MAX 160 /* bytes of a key: section, name, and what the wildcards stand for */

typedef struct option_value {
    const tni_option_def *def;
    char *key, *text, *where;
    int64_t integer;
    double number;
    int32_t origin;
} option_value;

typedef struct option_foreign {
    const char *names, *key;
} option_foreign;

extern const tni_option_def option_defs[];
extern const size_t option_def_count;
extern const option_foreign option_foreigns[];
extern const size_t option_foreign_count;

bool option_is_pattern(const tni_option_def *def);
/* `*` stands for one or more characters other than those of `stops`. */
bool option_stops(const char *stops, char c);
bool option_glob(const char *pattern, const char *text, const char *stops);
const tni_option_def *option_def_find(const char *key);       /* NULL: unknown */
tn_status option_unknown(const char *key, const char *where); /* TN_E_KEY with suggestions */
/* As tni_suggest_text() among the rows; `environment`: in the spelling of variables. */
void option_suggest_row(const char *wrong, bool environment, char *out, size_t size);
const char *option_variable_similar(const char *name);
/* "memory.cpu.pool" -> "TENON_MEMORY_CPU__POOL"; wildcards stay. */
void option_env_name(const char *key, char out[OPTION_KEY_MAX + 16]);

const tni_option_def *option_env_find(const char *name); /* the row of a TENON_ variable; NULL: none */

/* TN_OK also if a later origin holds. `name`: as the environment spells it. */
tn_status option_env_place(tni_options *o, const tni_option_def *pattern, const char *name,
                           const char *value);
const tni_log *option_log(const tni_options *o);

#endif
