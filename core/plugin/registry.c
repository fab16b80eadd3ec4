/*
 * The candidates of a context and what the loaded ones bring. One thread loads at a time, under no lock (a
 * plugin's init may call back); others that want a plugin wait. A plugin that was loaded stays until the
 * registry is destroyed, its code until the process ends.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

#define SERVICES_MAX 64 /* tables that rooms above offer */
#define FOLDERS_MAX 128 /* that are searched: plugins.path and our own */

/* ---- loading --------------------------------------------------------------------------------- */

static tni_plugin *plugin_at(const tni_vec *v, size_t index)
{
    return ((tni_plugin **)v->data)[index];
}

/* Writes the tables of all loaded plugins and of `more` into `out`, in the order of names. */
static tn_status tables_collect(const tni_registry *r, const tni_plugin *more, const tn_plugin *descriptor,
                                tni_vec *out)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < r->plugins.count; i++) {
        tni_plugin *p = plugin_at(&r->plugins, i);
        const bool loaded = tni_plugin_state(p) == TNI_PLUGIN_LOADED;
        const tn_plugin *d = p == more ? descriptor : loaded ? p->descriptor : NULL;

        for (size_t k = 0; d && d->capabilities[k] && !st; k++) {
            const tni_table table = {.head = d->capabilities[k], .plugin = p};

            if (tni_kind_name(table.head->kind))
                st = tni_vec_push(out, &table);
        }
    }
    return st;
}

/* Something that caches choose from; a pool, a transport or a format changes no operator. */
static bool chosen_from(const tni_plugin *p)
{
    static const uint32_t kinds[] = {TN_KIND_OPS, TN_KIND_KERNELS, TN_KIND_DEVICE, TN_KIND_PASS};
    bool any = false;

    for (size_t i = 0; p->descriptor->capabilities && p->descriptor->capabilities[i]; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            any |= p->descriptor->capabilities[i]->kind == kinds[k];
    return any;
}

/* Makes a started plugin visible. On failure nothing has changed. */
static tn_status plugin_enter(tni_registry *r, tni_plugin *p)
{
    tni_vec tables;
    tn_status st;

    tni_vec_init(&tables, r->tables.item_bytes, r->tables.max);
    st = tni_vec_reserve(&r->loaded, r->loaded.count + 1);
    if (!st)
        st = tables_collect(r, p, p->descriptor, &tables);
    if (st) {
        tni_vec_fini(&tables);
        return st;
    }
    tni_vec_fini(&r->tables);
    r->tables = tables;
    tni_vec_push(&r->loaded, &p);
    tni_plugin_turn(p, TNI_PLUGIN_LOADED);
    if (chosen_from(p))
        atomic_fetch_add(&r->choices, 1);
    atomic_fetch_add(&r->generation, 1);
    return TN_OK;
}

static void plugin_stop(tni_registry *r, tni_plugin *p)
{
    const tni_services *s = &tni_plugin_internal_of(p)->services;

    if (p->descriptor && p->descriptor->fini)
        p->descriptor->fini(p->self);
    p->self = NULL;
    p->descriptor = NULL;
    if (atomic_load(&s->blocks) || atomic_load(&s->threads))
        tni_logf(&r->log, TN_LOG_WARNING, "%s leaves %lld bytes in %lld blocks and %d threads behind",
                 s->name, atomic_load(&s->bytes), atomic_load(&s->blocks), atomic_load(&s->threads));
}

/* What came of starting `p`, if it was the plugin's fault. Out of memory may go away; so may a bad option. */
static void plugin_fail(tni_registry *r, tni_plugin *p, tn_status st)
{
    tn_err err;

    tni_error_get(&err);
    if (st == TN_E_NOMEM || !tni_refusal_code())
        return;
    tni_mutex_lock(&r->lock);
    p->code = tni_refusal_code();
    tni_refusal_reason(p->reason, sizeof p->reason);
    tni_plugin_turn(p, TNI_PLUGIN_FAILED);
    tni_mutex_unlock(&r->lock);
    tni_logf(&r->log, TN_LOG_WARNING, "L%02u %s: %s", p->code, p->path, p->reason);
    tni_error_set(&err);
}

static tn_status state_error(const tni_plugin *p)
{
    if (p->code)
        return tni_error_number(TNI_REFUSAL_BASE + p->code, TN_E_DEVICE, "plugin %s is unusable: L%02u %s",
                                p->note.body.name, p->code, p->reason);
    return tni_error(TN_E_STATE, "plugin %s is unusable: %s", p->note.body.name, p->reason);
}

/* Takes the right to load, unless there is nothing to do: then *done is true. */
static tn_status load_begin(tni_registry *r, const tni_plugin *p, bool *done)
{
    tn_status st = TN_OK;
    int32_t state;

    *done = false;
    tni_mutex_lock(&r->lock);
    while (r->loading && r->loading != tni_thread_id())
        tni_cond_wait(&r->changed, &r->lock);
    state = tni_plugin_state(p);
    if (state == TNI_PLUGIN_LOADED)
        *done = true;
    else if (state != TNI_PLUGIN_READY)
        st = state_error(p);
    else if (r->loading)
        st = tni_error(TN_E_STATE, "plugin %s asked for itself or another plugin while it was loaded",
                       p->note.body.name);
    else
        r->loading = tni_thread_id();
    if (!*done && !st)
        tni_hold(); /* until load_end */
    tni_mutex_unlock(&r->lock);
    return st;
}

static void load_end(tni_registry *r)
{
    tni_mutex_lock(&r->lock);
    r->loading = 0;
    tni_cond_broadcast(&r->changed);
    tni_mutex_unlock(&r->lock);
    tni_unhold();
}

tn_status tni_plugin_load(tni_registry *r, tni_plugin *p)
{
    bool done;
    tn_err err;
    tn_status st = load_begin(r, p, &done);

    if (st || done)
        return st;
    st = tni_plugin_start(r, p);
    if (st) {
        plugin_fail(r, p, st);
    } else {
        tni_mutex_lock(&r->lock);
        st = plugin_enter(r, p);
        tni_mutex_unlock(&r->lock);
        tni_error_get(&err);
        if (st) {
            plugin_stop(r, p);
            tni_error_set(&err);
        } else {
            tni_logf(&r->log, TN_LOG_DEBUG, "loaded %s %s", p->note.body.name, p->note.body.version);
        }
    }
    load_end(r);
    return st;
}

tni_plugin *tni_registry_at(const tni_registry *registry, size_t index)
{
    tni_registry *r = (tni_registry *)registry; /* for the lock */
    tni_plugin *p = NULL;

    tni_mutex_lock(&r->lock);
    if (index < r->plugins.count)
        p = plugin_at(&r->plugins, index);
    tni_mutex_unlock(&r->lock);
    return p;
}

tn_status tni_registry_load_providers(tni_registry *r, const char *kind, const char *id)
{
    unsigned opened;
    tni_plugin *p;

    do { /* again if a file was opened meanwhile: its plugin may stand where we had been */
        opened = atomic_load(&r->opened);
        for (size_t i = 0; (p = tni_registry_at(r, i)); i++) {
            tn_status st;

            if (tni_plugin_state(p) != TNI_PLUGIN_READY || !tni_note_provides(&p->note, kind, id))
                continue;
            st = tni_plugin_load(r, p);
            if (st && !tni_plugin_unusable(p))
                return st; /* the user's mistake or no memory: not the plugin's fault */
        }
    } while (opened != atomic_load(&r->opened));
    return TN_OK;
}

#define E_TRANSPORT 1401u /* TN number: a store's plugin is not here */

static tn_status table_lacks(tni_registry *r, uint32_t kind, const char *id)
{
    char list[256] = "", name[80], why[TNI_PLUGIN_WHY_BYTES] = "";
    const char *what = tni_kind_name(kind);
    const tn_capability *table;
    size_t used = 0;

    (void)tni_registry_load_providers(r, what, NULL); /* to name what there is */
    for (size_t i = 0; tni_registry_capability(r, kind, i, &table, NULL); i++)
        if (used + strlen(table->id) + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", table->id);
    (void)snprintf(name, sizeof name, "kv-%.70s", id);
    (void)tni_registry_lacks(r, name, why);
    return tni_error_number(E_TRANSPORT, TN_E_UNSUPPORTED,
                            "no plugin here has the %s %.70s (plugin %s: %.150s); %ss: %s", what, id, name,
                            why, what, used ? list : "none");
}

tn_status tni_registry_table(tni_registry *r, uint32_t kind, const char *id, const tn_capability **out,
                             tni_plugin **plugin)
{
    tn_status st = tni_registry_load_providers(r, tni_kind_name(kind), id);

    for (size_t i = 0; !st && tni_registry_capability(r, kind, i, out, plugin); i++)
        if (!strcmp((*out)->id, id))
            return TN_OK;
    return st ? st : table_lacks(r, kind, id);
}

tn_status tni_registry_transport(tni_registry *r, const char *id, const tn_transport_ops **ops,
                                 tni_plugin **plugin)
{
    const tn_capability *table;
    const tn_status st = tni_registry_table(r, TN_KIND_TRANSPORT, id, &table, plugin);

    if (!st)
        *ops = (const tn_transport_ops *)(const void *)table; /* whole: tni_refuse_transport */
    return st;
}

/* ---- the registry ---------------------------------------------------------------------------- */

static tn_status registry_init(tni_registry *r)
{
    tn_status st = tni_mutex_init(&r->lock);

    if (st)
        return st;
    st = tni_cond_init(&r->changed);
    if (st) {
        tni_mutex_fini(&r->lock);
        return st;
    }
    atomic_init(&r->generation, 1);
    tni_vec_init(&r->plugins, sizeof(tni_plugin *), TN_PLUGINS_MAX);
    tni_vec_init(&r->loaded, sizeof(tni_plugin *), TN_PLUGINS_MAX);
    tni_vec_init(&r->tables, sizeof(tni_table), (size_t)TN_PLUGINS_MAX * TNI_CAPABILITIES_MAX);
    tni_vec_init(&r->folders, sizeof(tni_folder), FOLDERS_MAX);
    tni_vec_init(&r->services, sizeof(const tn_service *), SERVICES_MAX);
    return TN_OK;
}

void tni_registry_warn(const tni_registry *r, const char *text)
{
    tni_logf(&r->log, TN_LOG_WARNING, "%s", text);
}

tn_status tni_registry_create(tni_options *options, const tni_log *log, tni_registry **out)
{
    tni_registry *r = tni_zalloc(sizeof *r);
    char library[TN_PATH_BYTES_MAX];
    tn_status st = r ? registry_init(r) : TN_E_NOMEM;

    if (st) {
        tni_free(r);
        return st;
    }
    r->options = options;
    if (log)
        r->log = *log;
    if ((st = tni_trust_create(options, tni_library_path(library, sizeof library), &r->trust)) ||
        (st = tni_registry_scan(r)) || (st = tni_registry_check_devices(r)) ||
        (st = tni_registry_require(r))) {
        tn_err err;

        tni_error_get(&err);
        tni_registry_destroy(r);
        tni_error_set(&err);
        return st;
    }
    *out = r;
    return TN_OK;
}

void tni_registry_destroy(tni_registry *r)
{
    if (!r)
        return;
    for (size_t i = r->loaded.count; i-- > 0;)
        plugin_stop(r, plugin_at(&r->loaded, i));
    for (size_t i = 0; i < r->plugins.count; i++)
        tni_plugin_destroy(plugin_at(&r->plugins, i));
    for (size_t i = 0; i < r->folders.count; i++)
        tni_free(((tni_folder *)tni_vec_at(&r->folders, i))->path);
    tni_vec_fini(&r->folders);
    tni_vec_fini(&r->plugins);
    tni_vec_fini(&r->loaded);
    tni_vec_fini(&r->tables);
    tni_vec_fini(&r->services);
    tni_cond_fini(&r->changed);
    tni_mutex_fini(&r->lock);
    tni_free(r);
}

size_t tni_registry_count(const tni_registry *registry)
{
    tni_registry *r = (tni_registry *)registry; /* for the lock */
    size_t count;

    tni_mutex_lock(&r->lock);
    count = r->plugins.count;
    tni_mutex_unlock(&r->lock);
    return count;
}

static tni_plugin *find_locked(const tni_registry *r, const char *name) TN_REQUIRES(&r->lock);
static tni_plugin *find_locked(const tni_registry *r, const char *name)
{
    for (size_t i = 0; i < r->plugins.count; i++) {
        tni_plugin *p = plugin_at(&r->plugins, i);

        if (tni_plugin_state(p) != TNI_PLUGIN_REFUSED && strcmp(p->note.body.name, name) == 0)
            return p;
    }
    return NULL;
}

tni_plugin *tni_registry_find(const tni_registry *registry, const char *name)
{
    tni_registry *r = (tni_registry *)registry; /* for the lock */
    tni_plugin *found;

    tni_mutex_lock(&r->lock);
    found = find_locked(r, name);
    tni_mutex_unlock(&r->lock);
    return found;
}

bool tni_registry_capability(const tni_registry *registry, uint32_t kind, size_t index,
                             const tn_capability **table, tni_plugin **plugin)
{
    tni_registry *r = (tni_registry *)registry; /* for the lock */
    bool found = false;

    tni_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->tables.count && !found; i++) {
        const tni_table *t = (const tni_table *)r->tables.data + i;

        if (t->head->kind != kind || index-- > 0)
            continue;
        *table = t->head;
        if (plugin)
            *plugin = t->plugin;
        found = true;
    }
    tni_mutex_unlock(&r->lock);
    return found;
}

uint64_t tni_registry_choices(const tni_registry *r)
{
    return atomic_load_explicit(&((tni_registry *)r)->choices, memory_order_acquire);
}

uint64_t tni_registry_generation(const tni_registry *r)
{
    return atomic_load_explicit(&((tni_registry *)r)->generation, memory_order_acquire);
}

/* ---- plugins inside the program -------------------------------------------------------------- */

/* A note made from the descriptor, as TN_PLUGIN_DEFINE would have. */
static tn_status note_of(const tn_plugin *d, tni_note *note)
{
    tn_note_body *b = &note->body;
    tni_str provides;
    tn_status st = TN_OK;

    *b = (tn_note_body){.struct_size = (uint32_t)sizeof *b,
                        .magic = d->magic,
                        .abi_major = d->abi_major,
                        .abi_minor = d->abi_minor,
                        .abi_minor_min = d->abi_minor_min,
                        .flags = d->flags,
                        .tag = TN_ABI_TAG};
    if (!d->name || !d->version || !d->license || strlen(d->name) >= sizeof b->name ||
        strlen(d->version) >= sizeof b->version || strlen(d->license) >= sizeof b->license ||
        !d->capabilities)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor lacks name, version, license or capabilities");
    snprintf(b->name, sizeof b->name, "%s", d->name);
    snprintf(b->version, sizeof b->version, "%s", d->version);
    snprintf(b->license, sizeof b->license, "%s", d->license);
    tni_str_init(&provides, TN_NOTE_PROVIDES_MAX - 1);
    for (size_t i = 0; d->capabilities[i] && !st; i++) {
        const tn_capability *c = d->capabilities[i];
        const char *kind = tni_kind_name(c->kind);

        if (kind && c->id)
            st = tni_str_addf(&provides, "%s%s%c%s", provides.length ? " " : "", kind,
                              c->kind == TN_KIND_KERNELS ? '@' : ':', c->id);
    }
    if (!st)
        st = tni_str_take(&provides, &note->provides);
    tni_str_fini(&provides);
    return st ? st : tni_note_check_texts(b);
}

tn_status tni_registry_add_static(tni_registry *r, const tn_plugin *descriptor, tni_plugin **out)
{
    tni_plugin *p = NULL;
    tni_plugin_internal *in;
    tn_status st;

    if (!descriptor || descriptor->struct_size < TN_END(tn_plugin, capabilities) ||
        descriptor->magic != TN_MAGIC)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor is of another size or ABI");
    st = tni_plugin_create(r, "(in the program)", &p);
    if (st)
        return st;
    in = tni_plugin_internal_of(p);
    in->fixed = descriptor;
    tni_plugin_turn(p, TNI_PLUGIN_READY);
    if ((st = note_of(descriptor, &p->note)) || (st = tni_refuse_note(&p->note, tni_abi_of_core())))
        goto cleanup;
    snprintf(in->services.name, sizeof in->services.name, "%s", p->note.body.name);
    tni_mutex_lock(&r->lock);
    st = find_locked(r, p->note.body.name)
             ? tni_refuse(15, TN_E_KEY, "there is a plugin %s already", p->note.body.name)
             : tni_vec_push(&r->plugins, &p);
    tni_registry_sort(r);
    tni_mutex_unlock(&r->lock);
    if (st)
        goto cleanup;
    st = tni_plugin_load(r, p);
    if (!st && out)
        *out = p;
    return st; /* a failed one stays in the list with its reason */

cleanup:
    tni_plugin_destroy(p);
    return st;
}

/* ---- services of rooms above, fork ----------------------------------------------------------- */

const tn_service *tni_registry_service(tni_registry *r, const char *id)
{
    const tn_service *found = NULL;

    tni_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->services.count && !found; i++) {
        const tn_service *s = ((const tn_service **)r->services.data)[i];

        if (strcmp(s->id, id) == 0)
            found = s;
    }
    tni_mutex_unlock(&r->lock);
    return found;
}

tn_status tni_registry_add_service(tni_registry *r, const tn_service *table)
{
    tn_status st;

    if (tni_registry_service(r, table->id))
        return tni_error(TN_E_KEY, "there is a service %s already", table->id);
    tni_mutex_lock(&r->lock);
    st = tni_vec_push(&r->services, &table);
    tni_mutex_unlock(&r->lock);
    return st;
}

void tni_plugin_memory(const tni_plugin *p, uint64_t *bytes, uint64_t *blocks)
{
    const tni_services *s = &tni_plugin_internal_of(p)->services;

    *bytes = (uint64_t)atomic_load((atomic_llong *)&s->bytes);
    *blocks = (uint64_t)atomic_load((atomic_llong *)&s->blocks);
}

static tni_plugin *loaded_at(tni_registry *r, size_t index)
{
    tni_plugin *p;

    tni_mutex_lock(&r->lock);
    p = index < r->loaded.count ? plugin_at(&r->loaded, index) : NULL;
    tni_mutex_unlock(&r->lock);
    return p;
}

/* Between PREPARE and PARENT or CHILD no other thread holds anything, so that nobody loads: each plugin sees
 * all phases or none. A child whose own thread is not the one that loaded gives that right back. */
void tni_registry_fork(tni_registry *r, uint32_t phase)
{
    tni_plugin *p;

    tni_mutex_lock(&r->lock);
    if (phase == TN_FORK_CHILD && r->loading != tni_thread_id())
        r->loading = 0;
    tni_mutex_unlock(&r->lock);
    for (size_t i = 0; (p = loaded_at(r, i)); i++)
        if (p->descriptor->fork)
            p->descriptor->fork(p->self, phase);
}
