/*
 * Variables of MXNet, dmlc-core, ps-lite and OpenMP: which option each stands for and how its values read
 * there, or why it means nothing here. The table is taken apart once from options.list, where translations
 * stand, and variables.list, which names the rest. A variable that stands for several options has several
 * rows; a later row wins over an earlier one of the same option.
 */
#include <pthread.h>
#include <string.h>

#include "base/options_internal.h"

#define VARIABLES_MAX 512
#define TEXTS_BYTES 32768 /* names and translations with their NUL */

static const tni_variable unused[] = {
#define TN_VARIABLE(name_, reason_) {.name = name_, .key = "", .values = "", .reason = reason_},
#include "base/variables.list"
#undef TN_VARIABLE
};
#define UNUSED_COUNT (sizeof unused / sizeof unused[0])

static tni_variable variables[VARIABLES_MAX];
static size_t variable_count;
static char texts[TEXTS_BYTES];
static size_t texts_used;
static pthread_once_t variables_once = PTHREAD_ONCE_INIT;

static const char *text_keep(const char *text, size_t length)
{
    char *kept = texts + texts_used;

    if (length >= TEXTS_BYTES - texts_used)
        return NULL;
    memcpy(kept, text, length);
    kept[length] = '\0';
    texts_used += length + 1;
    return kept;
}

/* Adds each of "NAME{…},NAME". */
static void names_add(const char *names, const char *key)
{
    while (*names && variable_count < VARIABLES_MAX - UNUSED_COUNT) {
        size_t length = strcspn(names, ",{"), pairs = 0;
        tni_variable v = {.name = text_keep(names, length), .key = key, .values = "", .reason = ""};

        names += length;
        if (*names == '{') {
            pairs = strcspn(++names, "}");
            v.values = text_keep(names, pairs);
            names += pairs + 1;
        }
        names += *names == ',';
        if (v.name && v.values)
            variables[variable_count++] = v;
    }
}

static void variables_make(void)
{
    for (size_t i = 0; i < option_def_count; i++)
        names_add(option_defs[i].env, option_defs[i].key);
    for (size_t i = 0; i < option_foreign_count; i++)
        names_add(option_foreigns[i].names, option_foreigns[i].key);
    for (size_t i = 0; i < UNUSED_COUNT; i++)
        variables[variable_count++] = unused[i];
}

const tni_variable *tni_variables(size_t *count)
{
    (void)pthread_once(&variables_once, variables_make);
    *count = variable_count;
    return variables;
}

/* ---- values ------------------------------------------------------------------------------------------ */

static bool multiplied(const char *factor, const char *value, char *out, size_t size)
{
    int64_t by = 0, number = 0;

    if (!tni_parse_i64(factor, &by) || !tni_parse_i64(value, &number) || number < 0 || by <= 0 ||
        number > INT64_MAX / by)
        return false;
    return snprintf(out, size, "%lld", (long long)(number * by)) < (int)size;
}

/* Ours of one pair: `length` bytes, in which `*` is the value and a leading x with a digit a factor. */
static bool pair_apply(const char *ours, size_t length, const char *value, char *out, size_t size)
{
    const char *star = memchr(ours, '*', length);
    char plain[64];

    if (length >= sizeof plain)
        return false;
    (void)snprintf(plain, sizeof plain, "%.*s", (int)length, ours);
    if (plain[0] == 'x' && plain[1] >= '0' && plain[1] <= '9')
        return multiplied(plain + 1, value, out, size);
    if (!star)
        return snprintf(out, size, "%s", plain) < (int)size;
    return snprintf(out, size, "%.*s%s%s", (int)(star - ours), plain, value, plain + (star - ours) + 1) <
           (int)size;
}

/* Finds `value` in "theirs:ours;theirs:ours". */
static bool value_translate(const char *pairs, const char *value, char *out, size_t size)
{
    while (*pairs) {
        size_t pair = strcspn(pairs, ";"), left = strcspn(pairs, ":;");
        bool any = left == 1 && *pairs == '*';

        if (left < pair && (any || (strlen(value) == left && strncmp(pairs, value, left) == 0)))
            return pair_apply(pairs + left + 1, pair - left - 1, value, out, size);
        pairs += pair + (pairs[pair] == ';');
    }
    return false;
}

tn_status tni_variable_translate(const tni_variable *v, const char *value, char *out, size_t size)
{
    const tni_option_def *def = option_def_find(v->key);
    int64_t integer;
    double number;

    if (!def)
        return tni_error(TN_E_KEY, "%s means nothing here: %s", v->name, v->reason);
    /* OMP_NUM_THREADS=4,2 has one number per nesting level */
    if (v->values[0]
            ? !value_translate(v->values, value, out, size)
            : snprintf(out, size, "%.*s", (int)strcspn(value, strcmp(def->type, "int") == 0 ? "," : ""),
                       value) >= (int)size)
        return tni_error_number(1205, TN_E_ARG, "%s=%.100s is not understood", v->name, value);
    if (!out[0])
        return TN_OK;
    return tni_option_parse(def, v->key, v->name, out, &integer, &number);
}

/* ---- names ------------------------------------------------------------------------------------------- */

/* The known variable that `name` looks like, NULL if none is within two letters. */
const char *option_variable_similar(const char *name)
{
    size_t count, best = 3;
    const tni_variable *all = tni_variables(&count);
    const char *found = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t distance = tni_edit_distance(name, all[i].name, best - 1);

        if (distance < best) {
            best = distance;
            found = all[i].name;
        }
        if (best == 0)
            return found;
    }
    return found;
}
