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

#define TOLD_MAX 64        /* operators; beyond that the log is full enough */
#define LAYOUTS_MAX 65536u /* different ones of a context, kept to its end: some 10 MiB, at most 260 */
#define LAYOUT_BUCKETS 1024u
#define LAYOUT_BYTES_MAX 4096u /* that describe one */

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
    const tni_opdef *told[TOLD_MAX]; /* that cut programs: the log has said so */
    uint32_t told_count;
    struct layout_copy *layouts[LAYOUT_BUCKETS]; /* every one that a plan asked for, once; as long as this */
    uint32_t layout_count;
};

typedef struct layout_copy {
    struct layout_copy *next; /* of the bucket */
    uint64_t hash;
    tn_layout layout;
    char bytes[]; /* of the layout, then its owner's name */
} layout_copy;

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
    if (tni_prepared_cache_create(&s->prepared) || tni_tuning_create(options, log, &s->tuning)) {
        tni_prepared_cache_destroy(s->prepared);
        tni_mutex_fini(&s->lock);
        tni_free(s);
        return TN_E_NOMEM;
    }
    *out = s;
    return TN_OK;
}

static void layouts_free(tni_selector *s)
{
    for (uint32_t b = 0; b < LAYOUT_BUCKETS; b++)
        while (s->layouts[b]) {
            layout_copy *next = s->layouts[b]->next;

            tni_free(s->layouts[b]);
            s->layouts[b] = next;
        }
}

void tni_selector_destroy(tni_selector *s)
{
    if (!s)
        return;
    tni_prepared_cache_destroy(s->prepared);
    tni_tuning_destroy(s->tuning);
    candidates_free(s);
    layouts_free(s);
    tni_mutex_fini(&s->lock);
    tni_free(s);
}

void tni_selector_tell_cut(tni_selector *s, const tni_opdef *def, const char *node, const char *why)
{
    bool told = false;

    tni_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->told_count && !told; i++)
        told = s->told[i] == def;
    if (!told && s->told_count < TOLD_MAX)
        s->told[s->told_count++] = def;
    else
        told = true;
    tni_mutex_unlock(&s->lock);
    if (!told)
        tni_logf(s->log, TN_LOG_WARNING,
                 "a program is cut at node \"%.200s\" (%s): %s; the rest stays compiled", node, def->op->name,
                 why);
}

/* ---- layouts ------------------------------------------------------------------------------------------- */

static bool layout_equal(const tn_layout *a, const tn_layout *b)
{
    return a->flags == b->flags && a->byte_count == b->byte_count && a->memory_bytes == b->memory_bytes &&
           !strcmp(a->owner, b->owner) && !memcmp(a->bytes, b->bytes, a->byte_count);
}

static layout_copy *layout_copied(const tn_layout *from)
{
    const size_t owner = strlen(from->owner) + 1u;
    layout_copy *made = tni_zalloc(sizeof *made + from->byte_count + owner);

    if (!made)
        return NULL;
    memcpy(made->bytes, from->bytes, from->byte_count);
    memcpy(made->bytes + from->byte_count, from->owner, owner);
    made->layout = (tn_layout){.struct_size = (uint32_t)TN_END(tn_layout, memory_bytes),
                               .flags = from->flags,
                               .owner = made->bytes + from->byte_count,
                               .bytes = made->bytes,
                               .byte_count = from->byte_count,
                               .memory_bytes = from->memory_bytes};
    return made;
}

static uint64_t layout_hash(const tn_layout *l)
{
    const uint64_t of = tni_hash_bytes(l->flags, l->bytes, l->byte_count);

    return tni_hash_bytes(of ^ l->memory_bytes, l->owner, strlen(l->owner));
}

/* The one copy of a layout: from here on equal ones have one address. `*at` NULL: there are too many. */
static tn_status layout_intern(tni_selector *s, const tn_layout **at)
{
    const uint64_t hash = layout_hash(*at);
    layout_copy **bucket = &s->layouts[hash % LAYOUT_BUCKETS], *found;
    tn_status st = TN_OK;

    tni_mutex_lock(&s->lock);
    for (found = *bucket; found && (found->hash != hash || !layout_equal(&found->layout, *at));)
        found = found->next;
    if (!found && s->layout_count < LAYOUTS_MAX) {
        if ((found = layout_copied(*at)) != NULL) {
            found->hash = hash;
            found->next = *bucket;
            *bucket = found;
            s->layout_count++;
        } else {
            st = TN_E_NOMEM;
        }
    }
    tni_mutex_unlock(&s->lock);
    if (!st)
        *at = found ? &found->layout : NULL;
    return st;
}

/* So many were asked for that no more are given: kernels are told so before they ask, and plan for dense
 * tensors. */
static bool layouts_given(tni_selector *s, const tni_request *r, const tni_candidate *c)
{
    bool room;

    tni_mutex_lock(&s->lock);
    room = s->layout_count < LAYOUTS_MAX;
    tni_mutex_unlock(&s->lock);
    return room && r->flags & TN_NODE_LAYOUTS && c->kernel->flags & TN_KERNEL_LAYOUTS;
}

static bool layout_valid(const tn_layout *l, const tn_tensor *t, const char *plugin)
{
    return l->struct_size >= TN_END(tn_layout, memory_bytes) && l->owner && !strcmp(l->owner, plugin) &&
           (l->bytes || !l->byte_count) && l->byte_count <= LAYOUT_BYTES_MAX && t->ndim >= 0 &&
           l->memory_bytes >= t->bytes && l->memory_bytes <= TN_SIZE_MAX / 2 &&
           !(l->flags & ~TN_LAYOUT_KNOWN);
}

/* What a plan asked for: copied, so that it outlives the plan. Text: why it cannot be given. */
static const char *layouts_take(tni_selector *s, const tni_request *r, tni_prepared *p, tn_status *st)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const bool output = i >= r->in_count;
        const tn_layout **at = output ? &p->plan.out_layout[i - r->in_count] : &p->plan.in_layout[i];
        const tn_tensor *t = output ? r->out[i - r->in_count] : r->in[i];

        p->layouts |= *at != NULL;
        if (!*at || *at == t->layout)
            continue;
        if (!(r->flags & TN_NODE_LAYOUTS) || !(p->kernel->flags & TN_KERNEL_LAYOUTS))
            return "asks for a private layout, which this host does not give here";
        if (!layout_valid(*at, t, p->plugin->descriptor->name))
            return "asks for a layout that is not its own, or whose size or flags are not sound";
        if (output && r->modes[i - r->in_count] == TN_MODE_ADD)
            return "asks for a private layout of an output that is added to";
        if ((*st = layout_intern(s, at)))
            return NULL;
        if (!*at)
            return "asks for a private layout, but this host keeps no more of them";
    }
    return p->layouts && p->near ? "asks for private layouts and for arguments in host memory" : NULL;
}

tni_opset *tni_selector_ops(const tni_selector *s)
{
    return s->ops;
}

const tni_options *tni_selector_options(const tni_selector *s)
{
    return s->options;
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

/* ---- preparing --------------------------------------------------------------------------------------- */

void tni_prepared_retain(tni_prepared *p)
{
    tni_ref_retain(&p->refs);
}

void tni_prepared_release(tni_prepared *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    if (p->kernel->release)
        p->kernel->release(&p->plan);
    if (p->plan.tuning.release)
        p->plan.tuning.release(p->plan.tuning.data);
    tni_prepared_release(p->forward);
    tni_free(p->plan.inplace);
    tni_free((void *)p->plan.in_layout);
    tni_free((void *)p->plan.out_layout);
    tni_free(p);
}

/* Kernels compute narrow types in a wider one and would round a sum once; the core rounds what is added
 * first, as a kernel that writes does. */
static bool any_narrow(const tni_request *r)
{
    for (uint32_t o = 0; o < r->out_count; o++)
        if (r->out[o]->dtype == TN_F16 || r->out[o]->dtype == TN_BF16)
            return true;
    return false;
}

static bool any_added(const tni_request *r)
{
    for (uint32_t o = 0; o < r->out_count; o++)
        if (r->modes[o] == TN_MODE_ADD)
            return true;
    return false;
}

static tn_status prepared_create(const tni_request *r, const tni_candidate *c, tni_prepared **out)
{
    tni_prepared *p = tni_zalloc(sizeof *p);

    if (!p)
        return TN_E_NOMEM;
    tni_ref_init(&p->refs);
    p->kernel = c->kernel;
    p->table = c->table;
    p->plugin = c->plugin;
    p->in_count = r->in_count;
    p->out_count = r->out_count;
    p->near = !r->device->host && (c->kernel->host_in | c->kernel->host_out);
    p->adds =
        (c->kernel->flags & TN_KERNEL_ADD_TO) && (r->moves || !any_narrow(r)) && !(p->near && any_added(r));
    p->plan.struct_size = (uint32_t)TN_END(tn_plan, tuning);
    p->plan.threads = 1;
    p->plan.workspace_align = p->plan.saved_align = 64;
    p->plan.inplace = tni_calloc(r->out_count + 1u, sizeof *p->plan.inplace);
    p->plan.in_layout = tni_calloc(r->in_count + 1u, sizeof *p->plan.in_layout);
    p->plan.out_layout = tni_calloc(r->out_count + 1u, sizeof *p->plan.out_layout);
    if (!p->plan.inplace || !p->plan.in_layout || !p->plan.out_layout) {
        tni_free(p->plan.inplace);
        tni_free((void *)p->plan.in_layout);
        tni_free((void *)p->plan.out_layout);
        tni_free(p);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < r->out_count; i++)
        p->plan.inplace[i] = -1;
    *out = p;
    return TN_OK;
}

/* A tensor as if it were row-major; `stride` has room for ndim. */
static void tensor_dense(const tn_tensor *t, tn_tensor *out, int64_t *stride)
{
    *out = *t;
    out->stride = stride;
    out->bytes = tn_dtype_size(t->dtype, (uint64_t)tni_row_major(t->ndim, t->shape, stride));
}

static bool near_bit(uint32_t bits, uint32_t at)
{
    return at < 32 && bits >> at & 1u;
}

/* A mutated input and its output are one memory: if either is to lie there, both do. */
bool tni_kernel_near(const tn_kernel *k, const tn_op *op, uint32_t in_count, uint32_t out_count,
                     uint32_t index)
{
    uint32_t at = in_count + out_count;

    for (uint32_t i = op->mutates ? in_count : 0; i-- > 0;)
        if (tn_op_mutates(op, in_count, i) && --at >= in_count && (index == i || index == at))
            return near_bit(k->host_in, i) || near_bit(k->host_out, at - in_count);
    return index < in_count ? near_bit(k->host_in, index) : near_bit(k->host_out, index - in_count);
}

static bool argument_near(const tni_request *r, const tni_prepared *p, uint32_t index)
{
    return p->near && tni_kernel_near(p->kernel, r->def->op, r->in_count, r->out_count, index);
}

typedef struct dense_copy { /* what a kernel without STRIDED is shown */
    tn_tensor *tensors;
    const tn_tensor **in, **out;
    int64_t *strides;
    uint8_t *modes;
} dense_copy;

static void dense_fini(dense_copy *d)
{
    tni_free(d->tensors);
    tni_free((void *)d->in);
    tni_free(d->strides);
    tni_free(d->modes);
}

static tn_status dense_init(const tni_request *r, const tni_prepared *p, bool layouts, dense_copy *d)
{
    const bool strided = (p->kernel->flags & TN_KERNEL_STRIDED) != 0;
    uint32_t count = r->in_count + r->out_count;

    d->tensors = tni_calloc(count + 1u, sizeof *d->tensors);
    d->in = tni_calloc(count + 1u, sizeof *d->in);
    d->strides = tni_calloc((uint64_t)count + 1u, TN_NDIM_MAX * sizeof *d->strides);
    d->modes = tni_calloc(r->out_count + 1u, 1);
    if (!d->tensors || !d->in || !d->strides || !d->modes)
        return TN_E_NOMEM;
    d->out = d->in + r->in_count;
    for (uint32_t i = 0; i < count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        const bool near = argument_near(r, p, i);

        if (t->ndim < 0 || (strided && !near))
            d->tensors[i] = *t;
        else
            tensor_dense(t, &d->tensors[i], d->strides + (size_t)i * TN_NDIM_MAX);
        if (near)
            d->tensors[i].memory = TN_MEMORY_HOST;
        if (!layouts)
            d->tensors[i].layout = NULL; /* it comes dense */
        d->in[i] = &d->tensors[i];
    }
    for (uint32_t i = 0; i < r->out_count; i++)
        d->modes[i] = r->modes[i] == TN_MODE_ADD && !p->adds ? TN_MODE_WRITE : r->modes[i];
    return TN_OK;
}

static bool any_strided(const tni_request *r, const tni_prepared *p)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        if (!tni_is_row_major(t->ndim, t->shape, t->stride) && !argument_near(r, p, i))
            return true;
    }
    return false;
}

#define SAVED_ALIGN_MAX 64  /* where blocks of their own begin */
#define WORK_ALIGN_MAX 4096 /* a page; the block grows by it */

/* What the core would do for the kernel, if it could touch the device's memory; NULL: nothing. */
static const char *needs_reach(const tni_request *r, const tni_prepared *p)
{
    if (r->device->host_addressable)
        return NULL;
    if (p->dense)
        return "takes dense tensors only, and the host does not reach this device's memory to make them so";
    return !p->adds && any_added(r)
               ? "only overwrites, and the host does not reach this device's memory to add"
               : NULL;
}

static bool size_open(const tni_request *r)
{
    for (uint32_t o = 0; o < r->out_count; o++) {
        if (r->out[o]->ndim < 0)
            return true;
        for (int32_t k = 0; k < r->out[o]->ndim; k++)
            if (r->out[o]->shape[k] < 0)
                return true;
    }
    return false;
}

/* What a plan may ask for and this version does not give; NULL: nothing. */
static const char *asks_too_much(const tni_request *r, const tni_prepared *p)
{
    if (p->plan.flags & ~TN_PLAN_KNOWN || p->plan.reserved)
        return "gives a plan with flags, or with a `reserved`, that are not known";
    if (p->near && p->plan.flags & TN_PLAN_RESIZES)
        return "decides on the size of its outputs and takes arguments in host memory";
    if (p->plan.saved_bytes && p->plan.saved_align > SAVED_ALIGN_MAX)
        return "asks for a saved block aligned to more than 64 bytes";
    if (p->plan.workspace_align > WORK_ALIGN_MAX || p->plan.workspace_align & (p->plan.workspace_align - 1))
        return "asks for a workspace whose alignment is no power of two up to 4096";
    if (!(p->plan.flags & TN_PLAN_RESIZES) && size_open(r))
        return "does not say that it gives its outputs their size, which the operator leaves open";
    if (p->plan.saved_bytes && tni_prepared_reads(p))
        return "asks for a saved block although it reads its forward's";
    if (p->plan.workspace_bytes > TN_SIZE_MAX / 2)
        return "asks for a workspace that no memory holds";
    return p->plan.saved_bytes > TN_SIZE_MAX / 2 ? "asks for a saved block that no memory holds" : NULL;
}

tn_status tni_candidate_prepare(tni_selector *s, const tni_request *r, const tni_candidate *c, bool measure,
                                tni_prepared **out, tn_err *err)
{
    const bool strided = (c->kernel->flags & TN_KERNEL_STRIDED) != 0, layouts = layouts_given(s, r, c);
    dense_copy dense = {0};
    tni_prepared *p = NULL;
    tn_node node = {.struct_size = (uint32_t)TN_END(tn_node, host)};
    tni_tuned tuned;
    const char *why;
    tn_status st;

    tni_tuned_init(&tuned, s->tuning, r, c, measure);
    if ((st = prepared_create(r, c, &p)) || (st = dense_init(r, p, layouts, &dense)))
        goto cleanup;
    p->dense = !strided && any_strided(r, p);
    node.op_version = r->def->op->version;
    node.flags = layouts ? r->flags : (uint16_t)(r->flags & ~TN_NODE_LAYOUTS);
    node.op = r->def->op->name;
    node.attrs = r->attrs->values;
    node.attr_count = r->def->attr_count;
    node.in_count = r->in_count;
    node.out_count = r->out_count;
    node.threads = r->threads;
    node.in = dense.in;
    node.out = dense.out;
    node.modes = dense.modes;
    if (r->forward && r->forward->plugin == c->plugin) {
        p->forward = r->forward;
        tni_prepared_retain(p->forward);
        node.forward = &p->forward->plan;
    }
    node.host = &tuned.ops;
    if (c->kernel->prepare && (st = c->kernel->prepare(c->plugin->self, &node, &p->plan, err)))
        goto cleanup;
    why = layouts_take(s, r, p, &st);
    if (st)
        goto cleanup;
    if (why || (why = asks_too_much(r, p)) != NULL || (why = tni_moves_not(r, p)) != NULL ||
        (why = needs_reach(r, p)) != NULL) {
        st = tn_fail(err, TN_E_UNSUPPORTED, why);
        goto cleanup;
    }
    if ((r->flags & TN_NODE_THREAD_INVARIANT) && !(p->plan.flags & TN_PLAN_THREAD_INVARIANT)) {
        st = tn_fail(err, TN_E_UNSUPPORTED, "its bits depend on the number of threads");
        goto cleanup;
    }
    p->est_ns = p->plan.est_ns;
    if (!p->est_ns && (st = tni_guess_ns(r, &p->est_ns)))
        goto cleanup;
    tni_tuned_take(&tuned, &p->plan);
    *out = p;
    p = NULL;

cleanup:
    tni_tuned_fini(&tuned);
    tni_prepared_release(p);
    dense_fini(&dense);
    return st;
}

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

/* Nobody has a kernel; plugins that say they have some for the device and may not run are told. */
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
