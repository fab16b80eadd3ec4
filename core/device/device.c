/*
 * Devices by type and index. The host device is made here; all others are opened through their plugin's table
 * at their first use and stay open until the set is destroyed.
 *
 * One thread at a time loads plugins, opens devices and makes pools (the `opening` right), and holds no lock
 * while it does; `devices` only grows, so that a found device is used without a lock.
 */
#include <string.h>

#include "device/internal.h"

#define HOST_ALIGNMENT 64u

/* ---- the set --------------------------------------------------------------------------------------- */

tn_status tni_device_set_create(tni_options *options, tni_registry *registry, const tni_log *log,
                                tni_device_set **out)
{
    tni_device_set *s = tni_zalloc(sizeof *s);
    tn_status st;

    if (!s)
        return TN_E_NOMEM;
    if ((st = tni_mutex_init(&s->lock)) || (st = tni_cond_init(&s->changed))) {
        tni_free(s);
        return st;
    }
    s->options = options;
    s->registry = registry;
    s->log = log;
    (void)snprintf(s->types[0], TNI_TYPE_BYTES, "cpu"); /* type_id 0 is the host */
    s->type_count = 1;
    *out = s;
    return TN_OK;
}

static void device_close(tni_device *d)
{
    device_impl *impl = tni_device_impl(d);
    bool forked = atomic_load(&d->set->forked);

    for (int i = 0; i < TNI_MEMORY_KINDS; i++)
        tni_pool_close(d->pools[i]);
    if (!d->host && !forked) {
        for (uint32_t i = 0; i < impl->event_count; i++)
            d->ops->event_destroy(impl->events[i]);
        d->ops->close(d->handle);
    }
    tni_mutex_fini(&impl->event_lock);
    tni_mutex_fini(&impl->recording_lock);
    tni_free(impl);
}

void tni_device_set_destroy(tni_device_set *s)
{
    if (!s)
        return;
    for (size_t i = atomic_load(&s->count); i-- > 0;)
        device_close(s->devices[i]);
    tni_cond_fini(&s->changed);
    tni_mutex_fini(&s->lock);
    tni_free(s);
}

tn_status tni_device_opening_begin(tni_device_set *s, uint32_t rank, const char *type, uint32_t *before)
{
    const uint64_t me = tni_thread_id();
    tn_status st = TN_OK;

    tni_mutex_lock(&s->lock);
    while (s->opening && s->opening != me)
        tni_cond_wait(&s->changed, &s->lock);
    *before = s->opening_rank;
    if (rank <= s->opening_rank) {
        st = tni_error(TN_E_STATE, "%s was asked for by a plugin that opens a device or makes a pool", type);
    } else {
        s->opening = me;
        s->opening_rank = rank;
        tni_hold(); /* until tni_device_opening_end */
    }
    tni_mutex_unlock(&s->lock);
    return st;
}

void tni_device_opening_end(tni_device_set *s, uint32_t before)
{
    tni_mutex_lock(&s->lock);
    if (!(s->opening_rank = before))
        s->opening = 0;
    tni_cond_broadcast(&s->changed);
    tni_mutex_unlock(&s->lock);
    tni_unhold();
}

void tni_device_set_relief(tni_device_set *s, bool (*relief)(void *arg), void *arg)
{
    s->relief_arg = arg;
    s->relief = relief;
}

size_t tni_device_count(tni_device_set *s)
{
    return atomic_load_explicit(&s->count, memory_order_acquire);
}

tni_device *tni_device_at(tni_device_set *s, size_t index)
{
    return index < tni_device_count(s) ? s->devices[index] : NULL;
}

void tni_device_set_forked(tni_device_set *s)
{
    if (s->opening != tni_thread_id()) {
        s->opening = 0; /* of a thread that is not here */
        s->opening_rank = 0;
    }
    atomic_store(&s->forked, true);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static tni_device *device_find(tni_device_set *s, const char *type, int32_t index)
{
    size_t count = tni_device_count(s);

    for (size_t i = 0; i < count; i++)
        if (s->devices[i]->index == index && !strcmp(s->devices[i]->type, type))
            return s->devices[i];
    return NULL;
}

static tn_status type_intern(tni_device_set *s, const char *type, uint16_t *out)
{
    for (uint16_t i = 0; i < s->type_count; i++)
        if (!strcmp(s->types[i], type)) {
            *out = i;
            return TN_OK;
        }
    if (s->type_count == TNI_TYPES_MAX)
        return tni_error(TN_E_DEVICE, "more than %d device types", TNI_TYPES_MAX);
    (void)snprintf(s->types[s->type_count], TNI_TYPE_BYTES, "%s", type);
    *out = s->type_count++;
    return TN_OK;
}

static bool ops_whole(const tn_device_ops *o)
{
    return o->head.struct_size >= TN_END(tn_device_ops, copy) && o->count && o->open && o->close && o->info &&
           o->alloc && o->free && o->stream_create && o->stream_destroy && o->stream_wait &&
           o->event_create && o->event_destroy && o->event_record && o->event_wait && o->event_query &&
           o->event_notify && o->copy && (o->stream_call || !o->runs_kernels_of);
}

/* "no plugin provides device 'x'", the types that there are, and plugins of this type that were refused. */
static tn_status device_absent(tni_device_set *s, const char *type)
{
    const size_t plugins = s->registry ? tni_registry_count(s->registry) : 0;
    tni_str there, refused;
    tn_status st;

    tni_str_init(&there, 400);
    tni_str_init(&refused, 400);
    for (size_t i = 0; i < plugins; i++) {
        const tni_plugin *p = tni_registry_at(s->registry, i);
        const char *at = p->note.provides ? strstr(p->note.provides, "device:") : NULL;

        if (tni_plugin_unusable(p) && tni_note_provides(&p->note, "device", type))
            (void)tni_str_addf(&refused, "; %s was refused: %s", p->note.body.name, p->reason);
        for (; at && !tni_plugin_unusable(p); at = strstr(at + 1, "device:"))
            (void)tni_str_addf(&there, ", %.*s", (int)strcspn(at + 7, " "), at + 7);
    }
    st = tni_error(TN_E_DEVICE, "no plugin provides device '%s'%s; there are cpu%s", type,
                   refused.text ? refused.text : "", there.text ? there.text : "");
    tni_str_fini(&there);
    tni_str_fini(&refused);
    return st;
}

static tn_status ops_find(tni_device_set *s, const char *type, const tn_device_ops **ops, tni_plugin **plugin)
{
    const tn_capability *table;
    tn_status st;

    if (!s->registry)
        return device_absent(s, type);
    if ((st = tni_registry_load_providers(s->registry, "device", type)))
        return st;
    for (size_t i = 0; tni_registry_capability(s->registry, TN_KIND_DEVICE, i, &table, plugin); i++) {
        if (strcmp(table->id, type))
            continue;
        *ops = (const tn_device_ops *)(const void *)table;
        return ops_whole(*ops)
                   ? TN_OK
                   : tni_error(TN_E_DEVICE, "the table of device '%s' lacks a function it must have", type);
    }
    return device_absent(s, type);
}

/* The device type for which the plugin that `runs_kernels_of` names has kernels. */
static void kernels_of(tni_device_set *s, device_impl *impl, const char *plugin_name)
{
    const tn_capability *table;
    tni_plugin *plugin;

    (void)snprintf(impl->kernels_type, TNI_TYPE_BYTES, "cpu");
    (void)tni_registry_load_providers(s->registry, "kernels", "cpu");
    for (size_t i = 0; tni_registry_capability(s->registry, TN_KIND_KERNELS, i, &table, &plugin); i++)
        if (!strcmp(plugin->note.body.name, plugin_name)) {
            (void)snprintf(impl->kernels_type, TNI_TYPE_BYTES, "%s", table->id);
            return;
        }
}

static tn_status plugin_device_open(device_impl *impl, int32_t index)
{
    tni_device *d = &impl->device;
    tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    tn_err err = {0};
    int32_t count = 0;
    tn_status st;

    if ((st = ops_find(d->set, d->type, &d->ops, &d->plugin)))
        return st;
    if ((st = d->ops->count(d->plugin->self, &count, &err)))
        return tni_error_take(st, &err, d->type);
    if (index >= count)
        return tni_error(TN_E_DEVICE, "device %s:%d, but there %s %d of this type", d->type, index,
                         count == 1 ? "is" : "are", count);
    if ((st = d->ops->open(d->plugin->self, index, &d->handle, &err)))
        return tni_error_take(st, &err, d->type);
    if ((st = d->ops->info(d->handle, &info, &err))) {
        st = tni_error_take(st, &err, d->type);
        d->ops->close(d->handle);
        return st;
    }
    if (info.flags & ~TN_DEVICE_F_KNOWN) {
        d->ops->close(d->handle);
        return tni_error(TN_E_UNSUPPORTED, "device %s:%d has the flags %#x, which are not known", d->type,
                         index, info.flags & ~TN_DEVICE_F_KNOWN);
    }
    d->host_addressable = (info.flags & TN_DEVICE_F_HOST_ADDRESSABLE) != 0;
    impl->alignment = info.alignment >= HOST_ALIGNMENT ? info.alignment : HOST_ALIGNMENT;
    if (d->ops->runs_kernels_of) {
        kernels_of(d->set, impl, d->ops->runs_kernels_of);
        d->kernels_type = impl->kernels_type;
        d->kernels_plugin = d->ops->runs_kernels_of;
    }
    return TN_OK;
}

static tn_status device_open(tni_device_set *s, const char *type, int32_t index, tni_device **out)
{
    device_impl *impl = tni_zalloc(sizeof *impl);
    tni_device *d;
    tn_status st;

    if (!impl)
        return TN_E_NOMEM;
    d = &impl->device;
    if ((st = tni_mutex_init(&impl->event_lock)) || (st = tni_mutex_init(&impl->recording_lock)) ||
        (st = type_intern(s, type, &d->type_id)))
        goto cleanup;
    d->set = s;
    d->type = d->kernels_type = s->types[d->type_id];
    d->index = index;
    d->host = d->host_addressable = d->type_id == 0;
    impl->alignment = HOST_ALIGNMENT;
    if (!d->host && (st = plugin_device_open(impl, index)))
        goto cleanup;
    d->ordinal = (uint32_t)tni_device_count(s);
    s->devices[d->ordinal] = d;
    atomic_store_explicit(&s->count, d->ordinal + 1u, memory_order_release);
    *out = d;
    return TN_OK;

cleanup:
    tni_free(impl);
    return st;
}

tn_status tni_device_get(tni_device_set *s, const char *type, int32_t index, tni_device **out)
{
    const bool host = type && !strcmp(type, "cpu");
    tni_device *d;
    uint32_t before;
    tn_status st = TN_OK;

    if (!type || !type[0] || strlen(type) >= TNI_TYPE_BYTES)
        return tni_error(TN_E_ARG, "a device type has 1 to %d bytes", TNI_TYPE_BYTES - 1);
    if (index < 0 || index >= TN_DEVICES_MAX)
        return tni_error(TN_E_ARG, "device index %d, but indices are 0 to %d", index, TN_DEVICES_MAX - 1);
    if (!host && atomic_load(&s->forked))
        return tni_error(TN_E_STATE,
                         "device %s:%d cannot be used after fork: the child has host devices only", type,
                         index);
    if ((d = device_find(s, type, index))) {
        *out = d;
        return TN_OK;
    }
    if ((st = tni_device_opening_begin(s, host ? OPENING_HOST : OPENING_DEVICE, type, &before)))
        return st;
    if (!(d = device_find(s, type, index))) {
        if (tni_device_count(s) == TN_DEVICES_MAX)
            st = tni_error(TN_E_DEVICE, "%d devices are open, the limit", TN_DEVICES_MAX);
        else
            st = device_open(s, type, index, &d);
    }
    tni_device_opening_end(s, before);
    if (!st)
        *out = d;
    return st;
}

/* ---- text ------------------------------------------------------------------------------------------ */

static bool type_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

tn_status tni_device_parse(tni_device_set *s, const char *text, tni_device **out)
{
    char type[TNI_TYPE_BYTES];
    size_t n = 0;
    int32_t index = 0;
    const char *at;

    if (!text)
        return tni_error(TN_E_ARG, "no device given");
    while (n + 1 < sizeof type && type_char(text[n]))
        n++;
    memcpy(type, text, n);
    type[n] = '\0';
    at = text + n;
    if (*at == ':' || *at == '(') {
        char end = *at++ == '(' ? ')' : '\0';
        const char *digits = at;

        for (; *at >= '0' && *at <= '9'; at++)
            index = index < TN_DEVICES_MAX ? index * 10 + (*at - '0') : TN_DEVICES_MAX; /* refused by get */
        if (at == digits || *at != end)
            n = 0;
        else
            at += end != '\0';
    }
    if (!n || *at)
        return tni_error(TN_E_ARG, "'%.60s' is no device; examples: cpu, cpu:1, cuda:0, gpu(0)", text);
    return tni_device_get(s, strcmp(type, "gpu") ? type : "cuda", index, out); /* MXNet's gpu(0) */
}

tn_status tni_device_first(tni_device_set *s, const char *list, tni_device **out)
{
    const size_t length = list ? strcspn(list, ",") : 0;
    char *one = tni_strndup(list ? list : "", length);
    tn_status st;

    if (!one)
        return TN_E_NOMEM;
    while (*one && one[strlen(one) - 1] == ' ')
        one[strlen(one) - 1] = '\0';
    st = tni_device_parse(s, one, out);
    tni_free(one);
    return st;
}

tn_status tni_device_type_count(tni_device_set *s, const char *type, int32_t *out)
{
    const tn_device_ops *ops;
    tni_plugin *plugin;
    tn_err err = {0};
    int32_t count = 0;
    uint32_t before;
    tn_status st;

    if (!type || strlen(type) >= TNI_TYPE_BYTES)
        return tni_error(TN_E_ARG, "a device type has 1 to %d bytes", TNI_TYPE_BYTES - 1);
    if (!strcmp(type, "cpu")) {
        *out = 1;
        return TN_OK;
    }
    if (atomic_load(&s->forked))
        return tni_error(TN_E_STATE, "device %s cannot be used after fork", type);
    if ((st = tni_device_opening_begin(s, OPENING_DEVICE, type, &before)))
        return st;
    st = ops_find(s, type, &ops, &plugin);
    tni_device_opening_end(s, before);
    if (st)
        return st;
    if ((st = ops->count(plugin->self, &count, &err)))
        return tni_error_take(st, &err, type);
    *out = count;
    return TN_OK;
}
