/*
 * Private layouts that plans asked for: each is copied once, and equal ones have one address from then on,
 * for as long as the selector. So they outlive the plans, and are compared by address.
 */
#include <string.h>

#include "compile/select.h"

#define LAYOUTS_MAX 65536u /* different ones of a context, kept to its end: some 10 MiB, at most 260 */
#define LAYOUT_BUCKETS 1024u
#define LAYOUT_BYTES_MAX 4096u /* that describe one */

typedef struct layout_copy {
    struct layout_copy *next; /* of the bucket */
    uint64_t hash;
    tn_layout layout;
    char bytes[]; /* of the layout, then its owner's name */
} layout_copy;

struct tni_layouts {
    tni_mutex lock;
    layout_copy *bucket[LAYOUT_BUCKETS];
    uint32_t count;
};

tn_status tni_layouts_create(tni_layouts **out)
{
    tni_layouts *s = tni_zalloc(sizeof *s);

    if (!s || tni_mutex_init(&s->lock)) {
        tni_free(s);
        return TN_E_NOMEM;
    }
    *out = s;
    return TN_OK;
}

void tni_layouts_destroy(tni_layouts *s)
{
    if (!s)
        return;
    for (uint32_t b = 0; b < LAYOUT_BUCKETS; b++)
        while (s->bucket[b]) {
            layout_copy *next = s->bucket[b]->next;

            tni_free(s->bucket[b]);
            s->bucket[b] = next;
        }
    tni_mutex_fini(&s->lock);
    tni_free(s);
}

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
static tn_status layout_intern(tni_layouts *s, const tn_layout **at)
{
    const uint64_t hash = layout_hash(*at);
    layout_copy **bucket = &s->bucket[hash % LAYOUT_BUCKETS], *found;
    tn_status st = TN_OK;

    tni_mutex_lock(&s->lock);
    for (found = *bucket; found && (found->hash != hash || !layout_equal(&found->layout, *at));)
        found = found->next;
    if (!found && s->count < LAYOUTS_MAX) {
        if ((found = layout_copied(*at)) != NULL) {
            found->hash = hash;
            found->next = *bucket;
            *bucket = found;
            s->count++;
        } else {
            st = TN_E_NOMEM;
        }
    }
    tni_mutex_unlock(&s->lock);
    if (!st)
        *at = found ? &found->layout : NULL;
    return st;
}

bool tni_layouts_given(tni_layouts *s, const tni_request *r, const tni_candidate *c)
{
    bool room;

    tni_mutex_lock(&s->lock);
    room = s->count < LAYOUTS_MAX;
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

const char *tni_layouts_take(tni_layouts *s, const tni_request *r, tni_prepared *p, tn_status *st)
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
        if (output && p->adds && r->modes[i - r->in_count] == TN_MODE_ADD)
            return "asks for a private layout of an output that is added to";
        if ((*st = layout_intern(s, at)))
            return NULL;
        if (!*at)
            return "asks for a private layout, but this host keeps no more of them";
    }
    return p->layouts && p->on_host ? "asks for private layouts and for arguments in host memory" : NULL;
}
