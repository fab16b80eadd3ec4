/*
 * Files of named arrays of any kind: .params and .npy are read here, archives (.npz) by plugins. A plugin
 * gives the bytes of each entry, a .npy; an entry must have the size that the head of its .npy gives.
 */
#include "tenon/plugin/archive.h"
#include "io/internal.h"

#define HEAD_BYTES 64u

typedef struct found { /* an archive's kind */
    const tn_archive_ops *ops;
    tni_plugin *plugin;
} found;

/* By extension, or by what a file begins with. */
static tn_status kind_find(tni_registry *r, const char *extension, const void *head, uint64_t bytes,
                           found *out)
{
    const tn_capability *table;
    tn_status st = tni_registry_load_providers(r, "archive", extension);

    for (size_t i = 0; !st && tni_registry_capability(r, TN_KIND_ARCHIVE, i, &table, &out->plugin); i++) {
        out->ops = (const tn_archive_ops *)(const void *)table;
        if (extension ? !strcmp(table->id, extension) : out->ops->probe(out->plugin->self, head, bytes) == 1)
            return TN_OK;
    }
    out->ops = NULL;
    return st;
}

static tn_status kind_lacks(tni_registry *r, const char *path)
{
    char why[TNI_PLUGIN_WHY_BYTES] = "";

    (void)tni_registry_lacks(r, "npz", why);
    return tni_error_number(1304, TN_E_UNSUPPORTED, "%s: .npz needs the plugin npz; %s", path, why);
}

/* ---- reading ----------------------------------------------------------------------------------------- */

static tn_status input_read(void *self, uint64_t at, void *out, uint64_t bytes, tn_err *err)
{
    tn_status st = tni_file_read_at(self, at, out, bytes);

    if (st)
        tni_error_get(err);
    return st;
}

typedef struct reading {
    const char *path;
    const tn_archive_ops *ops;
    tn_archive *archive;
} reading;

static tn_status entry_pull(void *arg, void *out, uint64_t bytes)
{
    reading *r = arg;
    tn_err err = {0};
    tn_status st = bytes ? r->ops->read(r->archive, out, bytes, &err) : TN_OK;

    return st ? tni_error_take(st, &err, r->path) : TN_OK;
}

/* Entry `index` goes into `p`; TN_E_KEY: there is none. */
static tn_status entry_read(reading *r, tni_space *space, uint32_t index, tni_params *p)
{
    tn_archive_entry e = {.struct_size = (uint32_t)sizeof e};
    tni_source s = {.pull = entry_pull, .arg = r};
    tni_array *a = NULL;
    tn_err err = {0};
    char *name;
    tn_status st = r->ops->entry(r->archive, index, &e, &err);

    if (st || !e.name)
        return st == TN_E_KEY ? st : tni_error_take(st ? st : TN_E_INTERNAL, &err, r->path);
    if (!(name = tni_strdup(e.name)))
        return TN_E_NOMEM;
    if ((st = r->ops->begin(r->archive, index, &err)))
        st = tni_error_take(st, &err, r->path);
    s.left = e.bytes;
    s.name = name;
    if (!st && !(st = tni_npy_read(&s, space, name, &a)))
        st = tni_params_add(p, name, a);
    if (st == TN_E_KEY) /* to the caller that would mean: all are read */
        st = tni_error(TN_E_FORMAT, "%s has two arrays \"%.100s\"", r->path, name);
    tni_array_release(a);
    tni_free(name);
    return st;
}

static tn_status archive_load(tni_space *space, const found *kind, tni_file *file, const char *path,
                              tni_params **out)
{
    const tn_archive_input in = {
        .struct_size = (uint32_t)sizeof in, .self = file, .bytes = tni_file_left(file), .read = input_read};
    reading r = {path, kind->ops, NULL};
    tni_params *p = NULL;
    tn_err err = {0};
    tn_status st = kind->ops->open(kind->plugin->self, &in, &r.archive, &err);

    if (st)
        return tni_error_take(st, &err, path);
    st = tni_params_create(&p);
    for (uint32_t i = 0; !st; i++)
        st = entry_read(&r, space, i, p);
    kind->ops->close(r.archive);
    if (st == TN_E_KEY) { /* behind the last one */
        *out = p;
        return TN_OK;
    }
    tni_params_destroy(p);
    return st;
}

static tn_status npy_load(tni_space *space, const char *path, tni_params **out)
{
    tni_params *p = NULL;
    tni_array *a = NULL;
    tn_status st = tni_npy_load(space, path, &a);

    if (!st && !(st = tni_params_create(&p)) && (st = tni_params_add(p, NULL, a))) {
        tni_params_destroy(p);
        p = NULL;
    }
    tni_array_release(a);
    if (!st)
        *out = p;
    return st;
}

tn_status tni_load(tni_space *space, tni_registry *registry, const char *path, tni_params **out)
{
    unsigned char head[HEAD_BYTES];
    found kind = {NULL, NULL};
    tni_device *host;
    tni_file *file = NULL;
    uint64_t bytes;
    tn_status st;

    if ((st = tni_device_get(space->devices, "cpu", 0, &host)) || (st = tni_file_open(path, &file)))
        return st;
    bytes = tni_file_left(file) < sizeof head ? tni_file_left(file) : sizeof head;
    st = tni_file_read_at(file, 0, head, bytes);
    if (!st && bytes >= 6 && !memcmp(head, "\x93NUMPY", 6)) {
        st = npy_load(space, path, out);
    } else if (!st && bytes >= 4 && !memcmp(head, "\x12\1\0\0", 4)) {
        st = tni_params_load(space, host, path, out);
    } else if (!st && !(st = kind_find(registry, NULL, head, bytes, &kind))) {
        if (kind.ops)
            st = archive_load(space, &kind, file, path, out);
        else
            st = bytes >= 2 && !memcmp(head, "PK", 2) ? kind_lacks(registry, path)
                                                      : tni_params_load(space, host, path, out);
    }
    tni_file_close(file);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------------------- */

typedef struct item { /* an array on its way out */
    tni_str head;
    const void *data;
    void *copy;
    char name[32]; /* of one without a name */
} item;

typedef struct saving {
    item *items;
    tn_archive_entry *entries;
    tni_writer *writer;
} saving;

static tn_status item_read(void *self, uint32_t index, uint64_t at, void *out, uint64_t bytes, tn_err *err)
{
    const saving *s = self;
    const item *i = &s->items[index];
    const uint64_t length = i->head.length, ahead = at < length ? length - at : 0;
    const uint64_t first = ahead < bytes ? ahead : bytes;

    if (at > s->entries[index].bytes || bytes > s->entries[index].bytes - at) {
        tni_err_format(err, TN_E_INTERNAL, "more bytes are asked for than entry %u has", index);
        return TN_E_INTERNAL;
    }
    if (first)
        memcpy(out, i->head.text + at, first);
    if (bytes > first)
        memcpy((char *)out + first, (const char *)i->data + (at + first - length), bytes - first);
    return TN_OK;
}

static tn_status output_write(void *self, const void *data, uint64_t bytes, tn_err *err)
{
    tn_status st = tni_writer_write(((const saving *)self)->writer, data, bytes);

    if (st)
        tni_error_get(err);
    return st;
}

static tn_status items_fill(const tni_params *p, saving *s)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < p->count; i++)
        tni_str_init(&s->items[i].head, TNI_NPY_HEAD_MAX);
    for (size_t i = 0; !st && i < p->count; i++) {
        item *to = &s->items[i];

        if (!p->arrays[i])
            return tni_error(TN_E_UNSUPPORTED, "entry \"%.100s\" has no value, and .npy no such arrays",
                             p->names[i]);
        (void)snprintf(to->name, sizeof to->name, "arr_%zu", i); /* as numpy.savez calls it */
        if (!(st = tni_npy_head(&to->head, p->arrays[i])))
            st = tni_array_borrow(p->arrays[i], &to->data, &to->copy);
        s->entries[i] = (tn_archive_entry){.struct_size = (uint32_t)sizeof s->entries[i],
                                           .name = p->named ? p->names[i] : to->name,
                                           .bytes = to->head.length + tni_array_bytes(p->arrays[i])};
    }
    return st;
}

static tn_status archive_save(const tni_params *p, const found *kind, const char *path)
{
    saving s = {tni_zalloc((p->count + 1) * sizeof *s.items), tni_zalloc((p->count + 1) * sizeof *s.entries),
                NULL};
    const tn_archive_output to = {.struct_size = (uint32_t)sizeof to,
                                  .count = (uint32_t)p->count,
                                  .self = &s,
                                  .entries = s.entries,
                                  .read = item_read,
                                  .write = output_write};
    tn_err err = {0};
    tn_status st = s.items && s.entries ? TN_OK : TN_E_NOMEM;

    if (!st && !(st = items_fill(p, &s)) && !(st = tni_writer_open(path, &s.writer)) &&
        (st = kind->ops->write(kind->plugin->self, &to, &err)))
        st = tni_error_take(st, &err, path);
    if (st)
        tni_writer_abandon(s.writer);
    else
        st = tni_writer_commit(s.writer);
    for (size_t i = 0; s.items && i < p->count; i++) {
        tni_str_fini(&s.items[i].head);
        tni_free(s.items[i].copy);
    }
    tni_free(s.items);
    tni_free(s.entries);
    return st;
}

tn_status tni_save(tni_registry *registry, const tni_params *p, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    found kind = {NULL, NULL};
    tn_status st;

    if (!dot || !strcmp(dot, ".params"))
        return tni_params_save(p, path);
    if (!strcmp(dot, ".npy"))
        return p->count == 1 && p->arrays[0]
                   ? tni_npy_save(p->arrays[0], path)
                   : tni_error(TN_E_ARG, "%s: a .npy holds one array, not %zu", path, p->count);
    if ((st = kind_find(registry, dot + 1, NULL, 0, &kind)))
        return st;
    if (kind.ops)
        return archive_save(p, &kind, path);
    return strcmp(dot, ".npz") ? tni_params_save(p, path) : kind_lacks(registry, path);
}
