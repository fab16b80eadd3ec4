/*
 * Choosing the kernel for a node.
 *
 * The order of candidates is total and depends on names and configuration only: pinned by [kernel] Op@device,
 * then the plugin that ran the forward, kernel.prefer, declared rank, plugin name, kernel name. Static rules
 * (device type, versions, instruction set, data types, determinism) are matched by rules.c; what is left is
 * asked of `prepare`, which may say TN_E_UNSUPPORTED. No kernel is an error that lists every reason.
 */
#include "compile/tuning.h"

#include <string.h>

#define LOGGED_MAX 64 /* operators; beyond that the log is full enough */

struct tni_selector {
    tni_opset *ops;
    tni_registry *plugins;
    tni_options *options;
    const tni_log *log;
    tni_mutex lock;
    tni_map *by_op;      /* operator name -> tni_vec of tni_candidate */
    uint64_t generation; /* of the registry when by_op was made */
    bool made;
    tni_prepared_cache *prepared;
    tni_tuning *tuning;
    const tni_opdef *logged[LOGGED_MAX]; /* that cut programs: the log has said so */
    uint32_t logged_count;
    tni_layouts *layouts;
};

static void candidates_free(tni_selector *s)
{
    size_t cursor = 0;
    const char *key;
    void *value;

    if (!s->by_op)
        return;
    while (tni_map_next(s->by_op, &cursor, &key, &value)) {
        tni_vec_fini(value);
        tni_free(value);
    }
    tni_map_destroy(s->by_op);
    s->by_op = NULL;
}

tn_status tni_selector_create(tni_opset *ops, tni_registry *plugins, tni_options *options, const tni_log *log,
                              tni_selector **out)
{
    tni_selector *s;
    tn_status st = tni_passes_check(options);

    if (st)
        return st;
    if (!(s = tni_zalloc(sizeof *s)))
        return TN_E_NOMEM;
    s->ops = ops;
    s->plugins = plugins;
    s->options = options;
    s->log = log;
    if (tni_mutex_init(&s->lock)) {
        tni_free(s);
        return TN_E_NOMEM;
    }
    if (tni_prepared_cache_create(&s->prepared) || tni_tuning_create(options, log, &s->tuning) ||
        tni_layouts_create(&s->layouts)) {
        tni_selector_destroy(s);
        return TN_E_NOMEM;
    }
    *out = s;
    return TN_OK;
}

void tni_selector_destroy(tni_selector *s)
{
    if (!s)
        return;
    tni_prepared_cache_destroy(s->prepared);
    tni_tuning_destroy(s->tuning);
    candidates_free(s);
    tni_layouts_destroy(s->layouts);
    tni_mutex_fini(&s->lock);
    tni_free(s);
}

void tni_selector_tell_cut(tni_selector *s, const tni_opdef *def, const char *node, const char *why)
{
    bool logged = false;

    tni_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->logged_count && !logged; i++)
        logged = s->logged[i] == def;
    if (!logged && s->logged_count < LOGGED_MAX)
        s->logged[s->logged_count++] = def;
    else
        logged = true;
    tni_mutex_unlock(&s->lock);
    if (!logged)
        tni_logf(s->log, TN_LOG_WARNING,
                 "a program is cut at node \"%.200s\" (%s): %s; the rest stays compiled", node, def->op->name,
                 why);
}

tni_opset *tni_selector_ops(const tni_selector *s)
{
    return s->ops;
}

const tni_options *tni_selector_options(const tni_selector *s)
{
    return s->options;
}

tni_layouts *tni_selector_layouts(const tni_selector *s)
{
    return s->layouts;
}

tni_tuning *tni_selector_tuning(const tni_selector *s)
{
    return s->tuning;
}

tni_registry *tni_selector_plugins(const tni_selector *s)
{
    return s->plugins;
}

static tn_status candidate_add(tni_selector *s, const tni_candidate *c)
{
    void *list = NULL;
    tn_status st;

    if (!tni_map_get(s->by_op, c->kernel->op, &list)) {
        if (!(list = tni_zalloc(sizeof(tni_vec))))
            return TN_E_NOMEM;
        tni_vec_init(list, sizeof(tni_candidate), TN_KERNELS_MAX);
        if ((st = tni_map_set(s->by_op, c->kernel->op, list))) {
            tni_free(list);
            return st;
        }
    }
    return tni_vec_push(list, c);
}

/* Gathers all kernels of all loaded plugins by operator. */
static tn_status candidates_make_locked(tni_selector *s)
{
    const tn_capability *head;
    tni_candidate c;
    tn_status st;

    if (s->made && s->generation == tni_registry_generation(s->plugins))
        return TN_OK;
    candidates_free(s);
    s->made = false;
    /* Before they are looked at: what is loaded meanwhile makes this old. */
    s->generation = tni_registry_generation(s->plugins);
    if ((st = tni_map_create(TN_OPERATORS_MAX, &s->by_op)))
        return st;
    for (size_t i = 0; tni_registry_capability(s->plugins, TN_KIND_KERNELS, i, &head, &c.plugin); i++) {
        c.table = (const tn_kernel_table *)head;
        for (const tn_kernel *const *k = c.table->kernels; *k; k++) {
            c.kernel = *k;
            if ((st = candidate_add(s, &c)))
                return st;
        }
    }
    s->made = true;
    return TN_OK;
}

/* ---- order ------------------------------------------------------------------------------------------- */

/* Position of the plugin in kernel.prefer; INT32_MAX if it is not there. */
static int32_t prefer_position(const tni_selector *s, const char *plugin)
{
    size_t count = tni_option_list_count(s->options, "kernel.prefer");
    char item[64];

    for (size_t i = 0; i < count; i++)
        if (tni_option_list_item(s->options, "kernel.prefer", i, item, sizeof item) == TN_OK &&
            !strcmp(item, plugin))
            return (int32_t)i;
    return INT32_MAX;
}

/* "plugin" or "plugin/kernel" of [kernel] Op@device; "" if the operator is not pinned. */
const char *tni_pin_of(const tni_selector *s, const tni_request *r)
{
    char key[256];
    int n = snprintf(key, sizeof key, "kernel.%s@%s", r->def->op->name, r->device->type);

    return n > 0 && (size_t)n < sizeof key ? tni_option_text(s->options, key) : "";
}

static bool pin_matches(const char *pin, const tni_candidate *c)
{
    size_t plugin = strcspn(pin, "/");
    const char *name = c->plugin->descriptor->name;

    if (strlen(name) != plugin || memcmp(name, pin, plugin))
        return false;
    return !pin[plugin] || !strcmp(pin + plugin + 1, c->kernel->name);
}

static int ranked_compare(const tni_ranked *a, const tni_ranked *b)
{
    int by_name;

    if (a->pin != b->pin)
        return a->pin < b->pin ? -1 : 1;
    if (a->prefer != b->prefer)
        return a->prefer < b->prefer ? -1 : 1;
    if (a->c.kernel->rank != b->c.kernel->rank)
        return a->c.kernel->rank > b->c.kernel->rank ? -1 : 1;
    by_name = strcmp(a->c.plugin->descriptor->name, b->c.plugin->descriptor->name);
    return by_name ? by_name : strcmp(a->c.kernel->name, b->c.kernel->name);
}

tn_status tni_kernels_load(tni_registry *plugins, const tni_device *device)
{
    tn_status st = tni_registry_load_providers(plugins, "kernels", device->kernels_type);

    if (!st && device->kernels_type != device->type)
        st = tni_registry_load_providers(plugins, "kernels", device->type);
    return st;
}

/* The candidates of the request's operator and device type, best first. */
tn_status tni_ranked_list(tni_selector *s, const tni_request *r, tni_vec *out)
{
    const char *pin = tni_pin_of(s, r);
    void *list = NULL;
    tn_status st;

    if ((st = tni_kernels_load(s->plugins, r->device)))
        return st;
    tni_mutex_lock(&s->lock);
    if (!(st = candidates_make_locked(s)))
        (void)tni_map_get(s->by_op, r->def->op->name, &list);
    for (size_t i = 0; !st && list && i < ((tni_vec *)list)->count; i++) {
        const tni_candidate *c = tni_vec_at(list, i);
        tni_ranked item = {.c = *c, .pin = 2, .prefer = INT32_MAX};
        size_t at;

        if (strcmp(c->kernel->device, r->device->kernels_type) && strcmp(c->kernel->device, r->device->type))
            continue;
        item.prefer = prefer_position(s, c->plugin->descriptor->name);
        if (*pin && pin_matches(pin, c))
            item.pin = 0;
        else if (r->forward && r->forward->plugin == c->plugin)
            item.pin = 1;
        if ((st = tni_vec_push(out, &item)))
            break;
        for (at = out->count - 1; at > 0; at--) { /* insertion: lists are short */
            tni_ranked *here = tni_vec_at(out, at), *before = tni_vec_at(out, at - 1), swap = *here;

            if (ranked_compare(before, here) <= 0)
                break;
            *here = *before;
            *before = swap;
        }
    }
    tni_mutex_unlock(&s->lock);
    return st;
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

/* Tries the candidates in order; lines of what was refused go to `text`. */
static tn_status candidates_try(tni_selector *s, const tni_request *r, const tni_vec *list, const char *pin,
                                tni_prepared **out, tni_str *text)
{
    for (size_t i = 0; i < list->count; i++) {
        const tni_ranked *item = tni_vec_at(list, i);
        tn_err err = {0};
        char why[512] = "";
        tn_status st = TN_E_UNSUPPORTED;

        if (*pin && item->pin != 0)
            snprintf(why, sizeof why, "not the pinned one");
        else if (tni_rules_match(r, &item->c, why, sizeof why)) {
            st = tni_candidate_prepare(s, r, &item->c, true, out, &err);
            if (st == TN_OK) {
                (void)tni_str_addf(text, "%s/%s, rank %d: chosen; ", item->c.plugin->descriptor->name,
                                   item->c.kernel->name, item->c.kernel->rank);
                return TN_OK;
            }
            err.message[sizeof err.message - 1] = '\0'; /* theirs */
            if (st != TN_E_UNSUPPORTED)
                return st == TN_E_NOMEM && !err.message[0]
                           ? tni_error(st, "out of memory while a kernel is prepared")
                           : tni_error_take(st, &err, item->c.kernel->name);
            snprintf(why, sizeof why, "%s", err.message[0] ? err.message : "does not serve this case");
        }
        (void)tni_str_addf(text, "%s/%s, rank %d: %s; ", item->c.plugin->descriptor->name,
                           item->c.kernel->name, item->c.kernel->rank, why);
    }
    return TN_E_UNSUPPORTED;
}

/* Nobody has a kernel; plugins that say they have some for the device and may not run are named. */
static void none_tell(tni_selector *s, const tni_request *r, tni_str *text)
{
    tni_registry *plugins = tni_selector_plugins(s);

    (void)tni_str_add(text, "no loaded plugin has one; ");
    for (size_t i = 0; i < tni_registry_count(plugins); i++) {
        const tni_plugin *p = tni_registry_at(plugins, i);

        if (p && tni_plugin_unusable(p) &&
            (tni_note_provides(&p->note, "kernels", r->device->kernels_type) ||
             tni_note_provides(&p->note, "kernels", r->device->type)))
            (void)tni_str_addf(text, "%s was refused: %.240s; ", p->note.body.name, p->reason);
    }
}

static tn_status select_with(tni_selector *s, const tni_request *r, tni_prepared **out, tni_str *text,
                             bool *none)
{
    tni_vec list;
    tn_status st;

    tni_vec_init(&list, sizeof(tni_ranked), TN_KERNELS_MAX);
    st = tni_ranked_list(s, r, &list);
    if (!st)
        st = candidates_try(s, r, &list, tni_pin_of(s, r), out, text);
    *none = !list.count;
    if (st == TN_E_UNSUPPORTED && *none)
        none_tell(s, r, text);
    tni_vec_fini(&list);
    return st;
}

/* What was said of the candidates: "; " stands behind each, and a plugin's text may end in a line break. */
static void end_trim(tni_str *s)
{
    while (s->length && strchr("; \n", s->text[s->length - 1]))
        s->text[--s->length] = '\0';
}

static uint64_t generation_of(const tni_selector *s)
{
    return tni_options_generation(s->options) << 20 ^ tni_registry_choices(s->plugins);
}

/* `text`: what was said of the candidates. */
static tn_status none_serves(const tni_request *r, bool none, const char *text)
{
    const char *op = r->def->op->name, *device = r->device->type;

    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        if (t->storage != TN_STORAGE_DENSE)
            return tni_error(TN_E_UNSUPPORTED,
                             "operator %s: %s %u is sparse (%s), no kernel on device %s: %s", op,
                             i < r->in_count ? "input" : "output", i < r->in_count ? i : i - r->in_count,
                             tni_storage_type_name(t->storage), device, text);
    }
    return tni_error_number(none ? 1302 : 0, TN_E_UNSUPPORTED, "operator %s has no kernel on device %s: %s",
                            op, device, text);
}

static tn_status select_anew(void *arg, const tni_request *r, tni_prepared **out)
{
    tni_selector *s = arg;
    bool none = false;
    tni_str text;
    tn_status st;

    tni_str_init(&text, 1u << 16);
    st = select_with(s, r, out, &text, &none);
    if (st == TN_E_UNSUPPORTED && r->def->body) /* its own kernels come first */
        st = tni_body_select(s, r, out, &text);
    if (st == TN_E_UNSUPPORTED) {
        if (text.text)
            end_trim(&text);
        st = none_serves(r, none, text.text ? text.text : "");
    }
    tni_str_fini(&text);
    return st;
}

tn_status tni_select(tni_selector *s, const tni_request *r, tni_prepared **out)
{
    tn_status st = tni_kernels_load(s->plugins, r->device);

    return st ? st : tni_prepared_find(s->prepared, r, generation_of(s), select_anew, s, out);
}

tn_status tni_select_count(tni_selector *s, const tni_opdef *def, tni_device *device, uint32_t *count,
                           uint32_t *prompt)
{
    const tni_request r = {.def = tni_op_meaning(def), .device = device};
    tni_vec list;
    tn_status st = tni_body_count(s, r.def, device, count, prompt);

    tni_vec_init(&list, sizeof(tni_ranked), TN_KERNELS_MAX);
    if (!st && !(st = tni_ranked_list(s, &r, &list))) {
        for (size_t i = 0; i < list.count; i++) {
            const tni_ranked *item = tni_vec_at(&list, i);

            if (device->kernels_plugin && strcmp(item->c.kernel->device, device->type) != 0 &&
                strcmp(device->kernels_plugin, item->c.plugin->descriptor->name) != 0)
                continue;
            ++*count;
            *prompt += !(item->c.kernel->flags & TN_KERNEL_ASYNC) &&
                       (device->host || !(item->c.kernel->host_in | item->c.kernel->host_out));
        }
    }
    tni_vec_fini(&list);
    return st;
}
