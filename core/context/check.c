/*
 * Checking a configuration: the steps of opening a context, each going on after what is wrong. Files,
 * settings and variables are read collecting; plugins that have a section are loaded, which compares the
 * section with their options; devices that have one are opened with their pools. Nothing of it stays.
 */
#include "context/context.h"

#include <string.h>

#define NAME_BYTES 64
#define PLUGIN_ABSENT 1207 /* of errors.list */

typedef struct check {
    tni_check_fn fn;
    void *arg;
    tni_log log;
    tni_options *options;
    tni_registry *plugins;
    tni_device_set *devices;
    tni_opset *ops;
    char last[sizeof((tn_err *)0)->message]; /* what found() said last */
} check;

static void error_found(void *arg)
{
    check *c = arg;
    tn_err err;

    tni_error_get(&err);
    c->fn(c->arg, TN_LOG_ERROR, &err);
    tni_error_clear();
}

/* Tells in front of the error what it is of. */
static void error_prefix(const char *text)
{
    tn_err err, longer;

    tni_error_get(&err);
    longer = err;
    (void)snprintf(longer.message, sizeof longer.message, "%.190s: %.300s", text, err.message);
    tni_error_set(&longer);
}

/* An error that begins with the key of an option is told with the line that set it. */
static void place_add(const check *c)
{
    const char *key, *value, *where;
    int32_t origin;
    tn_err err;

    tni_error_get(&err);
    for (size_t i = 0; tni_options_at(c->options, i, &key, &value, &origin, &where); i++) {
        const size_t length = strlen(key);

        if (strncmp(err.message, key, length) != 0 || !strchr(" :", err.message[length]))
            continue;
        if (where[0])
            error_prefix(where);
        return;
    }
}

/* Only TN_E_NOMEM ends the check. What several steps meet is told once. */
static tn_status found(check *c, tn_status st)
{
    tn_err err;

    if (!st || st == TN_E_NOMEM)
        return st;
    place_add(c);
    tni_error_get(&err);
    if (strcmp(err.message, c->last) != 0)
        error_found(c);
    memcpy(c->last, err.message, sizeof c->last);
    tni_error_clear();
    return TN_OK;
}

/* A warning or a note; as errors are, it is one line without control characters. */
static void tell(check *c, int32_t level, const tn_err *raw)
{
    tn_err err, pending;

    tni_error_get(&pending);
    tni_error_set(raw);
    tni_error_get(&err);
    tni_error_set(&pending);
    c->fn(c->arg, level, &err);
}

static void line_found(void *arg, int32_t level, const char *message)
{
    check *c = arg;
    tn_err err = {0};

    (void)snprintf(err.message, sizeof err.message, "%s", message);
    tell(c, level, &err);
}

static void TN_PRINTF(4, 5) say(check *c, int32_t level, uint32_t number, const char *format, ...)
{
    tn_err err = {.number = number};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    tell(c, level, &err);
}

/* The part of the key between `prefix` and `end`; false: the key is of another kind. */
static bool part_of(const char *key, const char *prefix, char end, char out[NAME_BYTES])
{
    const char *from = key + strlen(prefix);
    size_t length;

    if (strncmp(key, prefix, strlen(prefix)) != 0)
        return false;
    length = strcspn(from, (const char[]){end, '\0'});
    if (length == 0 || length >= NAME_BYTES || from[length] != end)
        return false;
    memcpy(out, from, length);
    out[length] = '\0';
    return true;
}

/* ---- [plugin.NAME] ----------------------------------------------------------------------------------- */

/* Whether a variable such as TENON_PLUGIN_CPU_OPENBLAS__TILE is of the plugin cpu-openblas. */
static bool variable_of(const char *key, const char *plugin)
{
    char name[2 * NAME_BYTES];
    size_t at = (size_t)snprintf(name, sizeof name, "TENON_PLUGIN_%.63s__", plugin);

    for (size_t i = 0; i < at; i++)
        name[i] = (char)(strchr(".-@", name[i])             ? '_'
                         : name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A'
                                                            : name[i]);
    return strncmp(key, name, at) == 0;
}

static bool has_section(const check *c, const char *plugin)
{
    const char *key, *value, *where;
    char name[NAME_BYTES];
    int32_t origin;

    for (size_t i = 0; tni_options_at(c->options, i, &key, &value, &origin, &where); i++)
        if ((part_of(key, "plugin.", '.', name) && strcmp(name, plugin) == 0) || variable_of(key, plugin))
            return true;
    return false;
}

static tn_status plugins_check(check *c)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < tni_registry_count(c->plugins) && !st; i++) {
        tni_plugin *p = tni_registry_at(c->plugins, i);

        if (tni_plugin_state(p) == TNI_PLUGIN_READY && has_section(c, p->note.body.name))
            st = found(c, tni_plugin_load(c->plugins, p));
    }
    return st;
}

static void plugins_absent(check *c)
{
    const char *key, *value, *where;
    char name[NAME_BYTES], last[NAME_BYTES] = "", why[TNI_PLUGIN_WHY_BYTES];
    int32_t origin;

    for (size_t i = 0; tni_options_at(c->options, i, &key, &value, &origin, &where); i++) {
        const char *similar = NULL;

        if (!part_of(key, "plugin.", '.', name) || strcmp(name, last) == 0 ||
            tni_registry_find(c->plugins, name))
            continue;
        if (tni_registry_lacks(c->plugins, name, why))
            similar = strstr(why, "; did you mean");
        memcpy(last, name, sizeof last);
        say(c, TN_LOG_INFO, 0, "%s%s[plugin.%s] was not checked: this plugin is not here%s", where,
            where[0] ? ": " : "", name, similar ? similar : "");
    }
}

/* ---- [kernel], [memory.D], what nothing reads -------------------------------------------------------- */

static void operator_check(check *c, const char *key, const char *where)
{
    const tni_opdef *def;
    char name[NAME_BYTES];

    if (!part_of(key, "kernel.", '@', name) || !tni_opset_find(c->ops, name, &def))
        return;
    say(c, TN_LOG_WARNING, 0, "%s%s%s: %s", where, where[0] ? ": " : "", key, tni_error_message());
    tni_error_clear();
}

/* One plugin that an option names; `kernels`: to run operators. */
static void plugin_check(check *c, const char *key, const char *where, const char *name, bool kernels)
{
    const char *gap = where[0] ? ": " : "";
    char why[TNI_PLUGIN_WHY_BYTES];

    if (tni_registry_lacks(c->plugins, name, why))
        say(c, TN_LOG_WARNING, PLUGIN_ABSENT, "%s%s%s names the plugin %.64s: %s", where, gap, key, name,
            why);
    else if (kernels && !tni_note_provides(&tni_registry_find(c->plugins, name)->note, "kernels", NULL))
        say(c, TN_LOG_WARNING, PLUGIN_ABSENT, "%s%s%s names the plugin %.64s, which brings no kernels", where,
            gap, key, name);
}

/* Kernels of a plugin for an operator, as "a, b". False if `kernel` is one of them. */
static bool kernel_lacks(const check *c, const tni_plugin *p, const char *op, const char *kernel,
                         tni_str *there)
{
    const tn_capability *head;
    tni_plugin *owner;

    for (size_t i = 0; tni_registry_capability(c->plugins, TN_KIND_KERNELS, i, &head, &owner); i++)
        for (const tn_kernel *const *k = ((const tn_kernel_table *)head)->kernels; owner == p && *k; k++) {
            if (strcmp((*k)->op, op) != 0)
                continue;
            if (strcmp((*k)->name, kernel) == 0)
                return false;
            (void)tni_str_addf(there, "%s%.64s", there->length ? ", " : "", (*k)->name);
        }
    return true;
}

/* "plugin" or "plugin/kernel". */
static void pin_check(check *c, const char *key, const char *where, const char *pin)
{
    const size_t length = strcspn(pin, "/");
    char name[NAME_BYTES * 2], op[NAME_BYTES];
    tni_plugin *p;
    tni_str there;

    (void)snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), pin);
    plugin_check(c, key, where, name, true);
    if (!pin[length] || !(p = tni_registry_find(c->plugins, name)) || !part_of(key, "kernel.", '@', op))
        return;
    if (tni_plugin_load(c->plugins, p)) {
        tni_error_clear(); /* whatever keeps it from being loaded has been said */
        return;
    }
    tni_str_init(&there, TNI_PLUGIN_WHY_BYTES);
    if (kernel_lacks(c, p, op, pin + length + 1, &there))
        say(c, TN_LOG_WARNING, PLUGIN_ABSENT, "%s%s%s names the kernel %.64s; plugin %.64s has for %s: %s",
            where, where[0] ? ": " : "", key, pin + length + 1, name, op, there.length ? there.text : "none");
    tni_str_fini(&there);
}

/* Lists and pins; what plugins.require names has been asked for at the start. */
static void names_check(check *c, const char *key, const char *where, const char *value)
{
    const bool prefer = strcmp(key, "kernel.prefer") == 0;
    const char *at = strchr(key, '@');
    char name[NAME_BYTES * 2];

    if (strncmp(key, "kernel.", 7) == 0 && at) {
        if (value[0] && tni_registry_has_device(c->plugins, at + 1)) /* an absent one's has been noted */
            pin_check(c, key, where, value);
        return;
    }
    if (!prefer && strcmp(key, "plugins.load") != 0)
        return;
    for (size_t i = 0; i < tni_option_list_count(c->options, key); i++) {
        if (tni_option_list_item(c->options, key, i, name, sizeof name)) {
            say(c, TN_LOG_WARNING, PLUGIN_ABSENT, "%s%s%s: name %zu is too long for a plugin", where,
                where[0] ? ": " : "", key, i + 1);
            tni_error_clear();
        } else if (prefer || strcmp(name, "auto") != 0) {
            plugin_check(c, key, where, name, prefer);
        }
    }
}

static tn_status memory_check(check *c, const char *key)
{
    tni_memory_stats stats;
    tni_device *d;
    char type[NAME_BYTES];
    int32_t count = 0;

    if (!part_of(key, "memory.", '.', type))
        return TN_OK;
    if (tni_device_type_count(c->devices, type, &count) || count == 0 ||
        tni_device_get(c->devices, type, 0, &d)) {
        tni_error_clear(); /* absent here: has been said */
        return TN_OK;
    }
    return found(c,
                 tni_device_memory(d, strstr(key, ".pinned.") ? TN_MEMORY_PINNED : TN_MEMORY_DEVICE, &stats));
}

static tn_status keys_check(check *c)
{
    const char *key, *value, *where;
    const tni_option_def *def;
    int32_t origin;
    tn_status st = TN_OK;

    for (size_t i = 0; !st && tni_options_at(c->options, i, &key, &value, &origin, &where); i++) {
        if (origin == TN_ORIGIN_DEFAULT || tni_option_def_find(key, &def)) {
            tni_error_clear();
            continue;
        }
        operator_check(c, key, where);
        names_check(c, key, where, value);
        st = memory_check(c, key);
    }
    return st;
}

static tn_status rooms_check(check *c)
{
    tni_device *device;
    tni_memory_stats stats;
    tn_status st;

    if ((st = tni_registry_create(c->options, &c->log, &c->plugins)))
        return found(c, st);
    plugins_absent(c);
    if ((st = plugins_check(c)) ||
        (st = tni_device_set_create(c->options, c->plugins, &c->log, &c->devices)) ||
        (st = tni_opset_create(c->plugins, &c->ops)))
        return found(c, st);
    if ((st = tni_device_first(c->devices, tni_option_text(c->options, "device.default"), &device)))
        error_prefix("device.default");
    else
        st = tni_device_memory(device, TN_MEMORY_DEVICE, &stats);
    st = found(c, st);
    return st ? st : keys_check(c);
}

tn_status tni_context_check(const tni_context_options *o, tni_check_fn fn, void *arg)
{
    check c = {.fn = fn, .arg = arg};
    tn_status st;

    c.log = (tni_log){.fn = line_found, .arg = &c, .level = TN_LOG_INFO};
    if ((st = tni_options_create(&c.log, &c.options)))
        return st;
    tni_options_collect(c.options, error_found, &c);
    if (!(st = tni_context_options_read(o, c.options)))
        st = rooms_check(&c);
    tni_opset_destroy(c.ops);
    tni_device_set_destroy(c.devices);
    tni_registry_destroy(c.plugins);
    tni_options_destroy(c.options);
    return st;
}
