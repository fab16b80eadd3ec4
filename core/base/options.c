/*
 * The values of one context. Rows without a wildcard are there from the start with their defaults; open-ended
 * keys (kernel.Op@device, plugin.NAME.key) come when they are set. A value gives way only to one of the same
 * or a later origin, so the order in which files, environment and command line are read does not matter. A
 * text that was handed out stays valid until the options are destroyed: replaced ones are kept.
 */
#include <string.h>

#include "base/options_internal.h"

#define OPTIONS_MAX 65536       /* keys of one context, open-ended ones too */
#define REPLACED_MAX (1u << 20) /* changes of live options in one context */
#define ROWS_SUGGESTED_MAX 64   /* rows of a plugin that a misspelt name is compared with */

struct tni_options {
    tni_mutex lock;
    tni_map *values TN_GUARDED_BY(lock);       /* key -> option_value */
    tni_map *surroundings TN_GUARDED_BY(lock); /* TENON_ name of an open-ended key -> option_value */
    tni_vec order TN_GUARDED_BY(lock);         /* option_value *: rows first, then as they were set */
    tni_vec replaced TN_GUARDED_BY(lock);      /* char *: texts that somebody may still hold */
    atomic_ullong generation;
    tni_log log;
    void (*problem)(void *arg); /* collects what is wrong; NULL: the first failure ends the reading */
    void *problem_arg;
};

static void value_free(option_value *v)
{
    if (!v)
        return;
    tni_free(v->key);
    tni_free(v->text);
    tni_free(v->where);
    tni_free(v);
}

static tn_status value_create(const tni_option_def *def, const char *key, const char *text, int32_t origin,
                              const char *where, option_value **out)
{
    option_value *v = tni_zalloc(sizeof *v);
    char plain[24];
    tn_status st;

    if (!v)
        return TN_E_NOMEM;
    st = tni_option_parse(def, key, where, text, &v->integer, &v->number);
    if (!st && (strcmp(def->type, "bytes") == 0 || strcmp(def->type, "duration_ms") == 0)) {
        snprintf(plain, sizeof plain, "%lld", (long long)v->integer);
        text = plain;
    }
    v->def = def;
    v->origin = origin;
    v->key = tni_strdup(key);
    v->text = tni_strdup(text);
    v->where = tni_strdup(where);
    if (!st && (!v->key || !v->text || !v->where))
        st = TN_E_NOMEM;
    if (st) {
        value_free(v);
        return st;
    }
    *out = v;
    return TN_OK;
}

/* Puts `*v` [takes, on success] under its key; an older value's texts are kept for those who hold them. */
static tn_status value_place(tni_options *o, tni_map *map, const char *name, option_value *v)
    TN_REQUIRES(&o->lock);
static tn_status value_place(tni_options *o, tni_map *map, const char *name, option_value *v)
{
    void *found = NULL;
    option_value *old;
    tn_status st;

    if (!tni_map_get(map, name, &found)) {
        st = tni_vec_push(&o->order, &v);
        if (!st && (st = tni_map_set(map, name, v)))
            o->order.count--;
        return st;
    }
    old = found;
    if (v->origin < old->origin) {
        value_free(v);
        return TN_OK;
    }
    st = tni_vec_reserve(&o->replaced, o->replaced.count + 2);
    if (st)
        return st;
    tni_vec_push(&o->replaced, &old->text);
    tni_vec_push(&o->replaced, &old->where);
    old->text = v->text;
    old->where = v->where;
    old->integer = v->integer;
    old->number = v->number;
    old->origin = v->origin;
    v->text = NULL;
    v->where = NULL;
    value_free(v);
    return TN_OK;
}

static tn_status options_place(tni_options *o, bool surroundings, const char *name, option_value *v)
{
    tn_status st;

    tni_mutex_lock(&o->lock);
    st = value_place(o, surroundings ? o->surroundings : o->values, name, v);
    tni_mutex_unlock(&o->lock);
    if (st)
        value_free(v);
    else
        atomic_fetch_add(&o->generation, 1);
    return st;
}

static tn_status defaults_place(tni_options *o)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < option_def_count && !st; i++) {
        const tni_option_def *def = &option_defs[i];
        option_value *v;

        if (option_is_pattern(def))
            continue;
        st = value_create(def, def->key, def->default_text, TN_ORIGIN_DEFAULT, "", &v);
        if (!st)
            st = options_place(o, false, def->key, v);
    }
    return st;
}

tn_status tni_options_create(const tni_log *log, tni_options **out)
{
    tni_options *o = tni_zalloc(sizeof *o);
    tn_status st;

    if (!o)
        return TN_E_NOMEM;
    st = tni_mutex_init(&o->lock);
    if (st) {
        tni_free(o);
        return st;
    }
    if (log)
        o->log = *log;
    tni_vec_init(&o->order, sizeof(option_value *), OPTIONS_MAX);
    tni_vec_init(&o->replaced, sizeof(char *), REPLACED_MAX);
    if ((st = tni_map_create(OPTIONS_MAX, &o->values)) ||
        (st = tni_map_create(OPTIONS_MAX, &o->surroundings)) || (st = defaults_place(o))) {
        tni_options_destroy(o);
        return st;
    }
    *out = o;
    return TN_OK;
}

TN_NO_THREAD_CHECK void tni_options_destroy(tni_options *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->order.count; i++)
        value_free(((option_value **)o->order.data)[i]);
    for (size_t i = 0; i < o->replaced.count; i++)
        tni_free(((char **)o->replaced.data)[i]);
    tni_vec_fini(&o->order);
    tni_vec_fini(&o->replaced);
    tni_map_destroy(o->values);
    tni_map_destroy(o->surroundings);
    tni_mutex_fini(&o->lock);
    tni_free(o);
}

/* ---- setting --------------------------------------------------------------------------------- */

void tni_options_collect(tni_options *o, void (*problem)(void *arg), void *arg)
{
    o->problem = problem;
    o->problem_arg = arg;
}

bool tni_options_collected(const tni_options *o)
{
    return o->problem != NULL;
}

tn_status tni_options_problem(tni_options *o, tn_status st)
{
    if (!st || !o->problem || st == TN_E_NOMEM)
        return st;
    o->problem(o->problem_arg);
    tni_error_clear();
    return TN_OK;
}

tn_status tni_options_set_value(tni_options *o, const char *key, const char *value, int32_t origin,
                                const char *where)
{
    const tni_option_def *def = option_def_find(key);
    option_value *v;
    tn_status st;

    if (!def)
        return option_unknown(key, where);
    st = value_create(def, key, value, origin, where, &v);
    return st ? st : options_place(o, false, key, v);
}

tn_status option_env_place(tni_options *o, const tni_option_def *pattern, const char *name, const char *value)
{
    option_value *v;
    tn_status st = value_create(pattern, name, value, TN_ORIGIN_ENVIRONMENT, name, &v);

    return st ? st : options_place(o, true, name, v);
}

tn_status tni_options_set(tni_options *o, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    char key[OPTION_KEY_MAX];

    if (!equals || equals == assignment)
        return tni_error(TN_E_ARG, "%.100s: expected section.key=value", assignment);
    if ((size_t)(equals - assignment) >= sizeof key)
        return tni_error_number(1204, TN_E_KEY, "no option %.100s…", assignment);
    memcpy(key, assignment, (size_t)(equals - assignment));
    key[equals - assignment] = '\0';
    return tni_options_set_value(o, key, equals + 1, TN_ORIGIN_SET, "");
}

typedef struct file_reading {
    tni_options *options;
    const char *path;
    bool trusted;
} file_reading;

static tn_status file_key(void *arg, const char *section, const char *key, const char *value, uint32_t line)
{
    const file_reading *r = arg;
    char full[OPTION_KEY_MAX], where[TN_PATH_BYTES_MAX];
    const tni_option_def *def;
    tn_status st;

    snprintf(where, sizeof where, "%s:%u", r->path, line);
    snprintf(full, sizeof full, "%s.%s", section, key);
    def = option_def_find(full);
    if (!section[0])
        st = tni_error(TN_E_KEY, "%s: %s stands in no section; write [section] above it", where, key);
    else if (def && (def->flags & TN_OPTION_TRUSTED) && !r->trusted)
        st = tni_error_number(1206, TN_E_KEY,
                              "%s: %s may not be set here; use --config, --set or the system's configuration",
                              where, full);
    else
        st = tni_options_set_value(r->options, full, value, TN_ORIGIN_FILE, where);
    return tni_options_problem(r->options, st);
}

static void file_problem(void *arg)
{
    const file_reading *r = arg;

    r->options->problem(r->options->problem_arg);
}

tn_status tni_options_read_file(tni_options *o, const char *path, bool trusted)
{
    file_reading r = {.options = o, .path = path, .trusted = trusted};

    return tni_options_problem(o, tni_ini_read(path, file_key, o->problem ? file_problem : NULL, &r));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Copies the value out under the lock; texts in it stay valid. An open-ended key that the environment names
 * in its own spelling is found by that spelling. */
static bool value_get(const tni_options *options, const char *key, option_value *out)
{
    tni_options *o = (tni_options *)options; /* for the lock */
    char name[OPTION_KEY_MAX + 16];
    void *v = NULL;
    bool found;

    tni_mutex_lock(&o->lock);
    found = tni_map_get(o->values, key, &v);
    if (found)
        *out = *(option_value *)v;
    if ((!found || (out->origin < TN_ORIGIN_ENVIRONMENT && option_is_pattern(out->def))) &&
        tni_map_count(o->surroundings)) {
        option_env_name(key, name);
        for (char *c = name; *c; c++)
            if (*c >= 'a' && *c <= 'z')
                *c = (char)(*c - 'a' + 'A');
        if (tni_map_get(o->surroundings, name, &v)) {
            *out = *(option_value *)v;
            found = true;
        }
    }
    tni_mutex_unlock(&o->lock);
    return found;
}

/* The value, or the default of the row that fits; zeros for an unknown key. */
static option_value value_of(const tni_options *o, const char *key)
{
    option_value v = {.text = NULL};

    if (value_get(o, key, &v))
        return v;
    v.def = option_def_find(key);
    if (v.def && tni_option_parse(v.def, key, "", v.def->default_text, &v.integer, &v.number))
        v.def = NULL;
    return v;
}

static const char *value_text(const option_value *v)
{
    if (v->text)
        return v->text;
    return v->def ? v->def->default_text : "";
}

static bool value_is_text(const option_value *v)
{
    return v->def && strcmp(v->def->type, "text") == 0;
}

const char *tni_option_text(const tni_options *o, const char *key)
{
    option_value v = value_of(o, key);

    return value_text(&v);
}

int64_t tni_option_int(const tni_options *o, const char *key)
{
    option_value v = value_of(o, key);

    if (value_is_text(&v) && !tni_parse_i64(value_text(&v), &v.integer))
        v.integer = 0;
    return v.integer;
}

double tni_option_float(const tni_options *o, const char *key)
{
    option_value v = value_of(o, key);

    if (value_is_text(&v) && !tni_parse_f64(value_text(&v), &v.number))
        v.number = 0;
    return v.number;
}

bool tni_option_bool(const tni_options *o, const char *key)
{
    option_value v = value_of(o, key);

    return v.integer != 0;
}

bool tni_option_is_set(const tni_options *o, const char *key)
{
    option_value v;

    return value_get(o, key, &v) && v.origin > TN_ORIGIN_DEFAULT;
}

uint64_t tni_options_generation(const tni_options *o)
{
    return atomic_load(&((tni_options *)o)->generation);
}

bool tni_options_at(const tni_options *options, size_t index, const char **key, const char **value,
                    int32_t *origin, const char **where)
{
    tni_options *o = (tni_options *)options;
    option_value *v = NULL;

    tni_mutex_lock(&o->lock);
    if (index < o->order.count) {
        v = ((option_value **)o->order.data)[index];
        *key = v->key;
        *value = v->text;
        *origin = v->origin;
        *where = v->where;
    }
    tni_mutex_unlock(&o->lock);
    return v != NULL;
}

const tni_log *option_log(const tni_options *o)
{
    return &o->log;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The item that begins at or behind `*at`, without spaces around it; empty ones are passed over. */
static bool list_next(const char **at, const char **item, size_t *length)
{
    while (**at) {
        const char *first = *at + strspn(*at, " \t");
        size_t count = strcspn(first, ",");

        *at = first[count] ? first + count + 1 : first + count;
        while (count > 0 && (first[count - 1] == ' ' || first[count - 1] == '\t'))
            count--;
        *item = first;
        *length = count;
        if (count)
            return true;
    }
    return false;
}

size_t tni_option_list_count(const tni_options *o, const char *key)
{
    const char *at = tni_option_text(o, key), *item;
    size_t count = 0, length;

    while (list_next(&at, &item, &length))
        count++;
    return count;
}

tn_status tni_option_list_item(const tni_options *o, const char *key, size_t index, char *out, size_t size)
{
    const char *at = tni_option_text(o, key), *item;
    size_t length;

    for (size_t i = 0; list_next(&at, &item, &length); i++) {
        if (i < index)
            continue;
        if (length >= size)
            return tni_error(TN_E_ARG, "%s: an item has %zu bytes, at most %zu are allowed here", key, length,
                             size - 1);
        memcpy(out, item, length);
        out[length] = '\0';
        return TN_OK;
    }
    return tni_error(TN_E_KEY, "%s has fewer than %zu items", key, index + 1);
}

/* ---- rows of a plugin ------------------------------------------------------------------------ */

static const tni_option_def *row_find(const tni_option_def *rows, size_t count, const char *name,
                                      bool environment)
{
    char env[OPTION_KEY_MAX + 16], key[OPTION_KEY_MAX];

    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "x.%s", rows[i].key);
        option_env_name(key, env);
        if (strcmp(environment ? env + strlen("TENON_X__") : rows[i].key, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static tn_status row_check(const char *key, const char *value, const char *where, const tni_option_def *row,
                           const char *similar)
{
    int64_t integer;
    double number;

    if (row)
        return tni_option_parse(row, key, where, value, &integer, &number);
    return tni_error_number(1204, TN_E_KEY, "%s%sno option %.100s%s", where, where[0] ? ": " : "", key,
                            similar);
}

tn_status tni_options_check_plugin(tni_options *o, const char *plugin, const tni_option_def *rows,
                                   size_t count)
{
    char prefix[OPTION_KEY_MAX], sample[OPTION_KEY_MAX], env[OPTION_KEY_MAX + 16], similar[300];
    const char *key, *value, *where, *names[ROWS_SUGGESTED_MAX + 1];
    int32_t origin;
    tn_status st = TN_OK;
    size_t n = 0;

    snprintf(prefix, sizeof prefix, "plugin.%s.", plugin);
    snprintf(sample, sizeof sample, "plugin.%s.x", plugin);
    option_env_name(sample, env);
    env[strlen(env) - 1] = '\0';
    for (; n < count && n < ROWS_SUGGESTED_MAX; n++)
        names[n] = rows[n].key;
    names[n] = NULL;
    for (size_t i = 0; !st && tni_options_at(o, i, &key, &value, &origin, &where); i++) {
        bool ours = strncmp(key, prefix, strlen(prefix)) == 0;
        const char *name = key + strlen(ours ? prefix : env);

        if (!ours && strncmp(key, env, strlen(env)) != 0)
            continue;
        tni_suggest_text(name, names, similar, sizeof similar);
        st =
            tni_options_problem(o, row_check(key, value, where, row_find(rows, count, name, !ours), similar));
    }
    return st;
}
