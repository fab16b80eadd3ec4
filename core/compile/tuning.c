/*
 * The host's side of kernels that measure. A blob belongs to a key, a text of everything that the best way
 * may depend on: plugin, build, kernel, device, and the request as `prepare` sees it. Only names and numbers
 * that mean the same in every process stand in it. Where run.deterministic asks for the same bits from run to
 * run, nothing is measured and nothing that was measured is obeyed.
 */
#include "compile/tuning.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define SCRATCH_BLOCKS_MAX 64u /* of one prepare: inputs, outputs, a workspace, with room to spare */

struct tni_tuning {
    bool on;
    uint64_t budget_ns;
    tni_tuning_store *store;
};

struct tni_tuning_block {
    tni_tuning_block *next;
    tni_block block;
};

/* ---- where blobs are kept ------------------------------------------------------------------------------ */

/* "": nowhere. A relative XDG_CACHE_HOME does not count, as its specification says. */
static void path_find(const tni_options *options, char path[TN_PATH_BYTES_MAX])
{
    const char *given = tni_option_text(options, "tuning.file");
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;

    if (*given)
        length = strcmp(given, "none") ? snprintf(path, TN_PATH_BYTES_MAX, "%s", given) : 0;
    else if (xdg && xdg[0] == '/')
        length = snprintf(path, TN_PATH_BYTES_MAX, "%s/tenon/tuning.bin", xdg);
    else if (home && home[0] == '/')
        length = snprintf(path, TN_PATH_BYTES_MAX, "%s/.cache/tenon/tuning.bin", home);
    if (length <= 0 || length >= TN_PATH_BYTES_MAX)
        path[0] = '\0';
}

tn_status tni_tuning_create(const tni_options *options, const tni_log *log, tni_tuning **out)
{
    tni_tuning *t = tni_zalloc(sizeof *t);
    char path[TN_PATH_BYTES_MAX];
    tn_status st;

    if (!t)
        return TN_E_NOMEM;
    t->on = !strcmp(tni_option_text(options, "run.deterministic"), "off");
    t->budget_ns = (uint64_t)tni_option_int(options, "tuning.budget_ms") * 1000000u;
    path_find(options, path);
    if ((st = tni_tuning_store_create(path, log, &t->store))) {
        tni_free(t);
        return st;
    }
    *out = t;
    return TN_OK;
}

void tni_tuning_destroy(tni_tuning *t)
{
    if (!t)
        return;
    tni_tuning_store_destroy(t->store);
    tni_free(t);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static char processor[256];
static pthread_once_t processor_once = PTHREAD_ONCE_INIT;

/* Lines of /proc/cpuinfo that tell what a processor is; others change while it runs. */
static bool line_tells(const char *line)
{
    static const char *const names[] = {"vendor_id",  "cpu family", "model",           "stepping",
                                        "cache size", "flags",      "CPU implementer", "CPU variant",
                                        "CPU part",   "Features"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(line, names[i], strlen(names[i])))
            return true;
    return false;
}

/* The machine's architecture, and the first processor's model and a checksum of what else it is. */
static void processor_read(void)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192], model[128] = "";
    struct utsname machine;
    uint32_t crc = 0;

    while (file && fgets(line, sizeof line, file) && *line != '\n') {
        if (line_tells(line))
            crc = tni_crc32(crc, line, strlen(line));
        if (!strncmp(line, "model name", 10) && strchr(line, ':'))
            snprintf(model, sizeof model, "%.120s", strchr(line, ':') + 1);
    }
    if (file)
        (void)fclose(file);
    model[strcspn(model, "\n")] = '\0';
    snprintf(processor, sizeof processor, "%s%s %08x", uname(&machine) ? "" : machine.machine, model, crc);
}

static void device_put(tni_str *k, tni_device *d)
{
    tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    tn_err err = {0};

    (void)pthread_once(&processor_once, processor_read);
    (void)tni_str_addf(k, "%s on %s", d->type, processor);
    if (!d->host && !d->ops->info(d->handle, &info, &err))
        (void)tni_str_addf(k, ", %.63s %u.%u %u, %s", info.name, info.compute_major, info.compute_minor,
                           info.units, d->plugin ? d->plugin->note.build_id : "");
}

/* `mode`: of outputs. */
static void tensor_put(tni_str *k, const tn_tensor *t, uint32_t mode)
{
    const tn_layout *l = t->layout;

    (void)tni_str_addf(k, "\n%d %u %u %u", t->dtype, t->storage, t->memory, mode);
    if (l)
        (void)tni_str_addf(k, " %s %u %llu %llx", l->owner, l->flags, (unsigned long long)l->memory_bytes,
                           (unsigned long long)tni_hash_bytes(l->byte_count, l->bytes, l->byte_count));
    for (int32_t i = 0; i < t->ndim; i++)
        (void)tni_str_addf(k, " %lld:%lld", (long long)t->shape[i], (long long)t->stride[i]);
    if (t->ndim < 0)
        (void)tni_str_add(k, " open");
}

static void attrs_put(tni_str *k, const tni_request *r)
{
    const tni_opdef *def = r->def;

    for (uint32_t i = 0; i < def->attr_count; i++) {
        if (def->runtime_mask[i / 64] >> i % 64 & 1u)
            continue;
        (void)tni_str_addf(k, "\n%s=", def->op->attrs[i].name);
        if (tni_attr_format(&def->op->attrs[i], r->attrs->values[i], k))
            k->status = k->status ? k->status : TN_E_NOMEM;
    }
}

static tn_status key_make(tni_str *k, const tni_request *r, const tni_candidate *c)
{
    const tni_plugin *p = c->plugin;

    (void)tni_str_addf(k, "%s %s %s\n", p->descriptor->name, p->note.build_id, c->kernel->name);
    device_put(k, r->device);
    (void)tni_str_addf(
        k, "\n%s %u, %u threads, flags %x, %llu saved", r->def->op->name, r->def->op->version, r->threads,
        r->flags,
        r->forward && r->forward->plugin == p ? (unsigned long long)r->forward->plan.saved_bytes + 1 : 0ull);
    attrs_put(k, r);
    for (uint32_t i = 0; i < r->in_count; i++)
        tensor_put(k, r->in[i], TN_MODE_NONE);
    for (uint32_t i = 0; i < r->out_count; i++)
        tensor_put(k, r->out[i], r->modes[i]);
    return k->status;
}

/* ---- one prepare --------------------------------------------------------------------------------------- */

static void *scratch(void *arg, uint64_t bytes)
{
    tni_tuned *d = arg;
    tni_tuning_block *b;
    tn_err err;
    tn_status st;

    if (d->block_count == SCRATCH_BLOCKS_MAX || bytes > TN_SIZE_MAX / 2)
        return NULL;
    tni_error_get(&err); /* of whoever prepares: the kernel may do without */
    b = tni_zalloc(sizeof *b);
    st = !b ? TN_E_NOMEM
            : tni_block_alloc(d->device, TN_MEMORY_DEVICE, bytes ? bytes : 1, NULL, "kernel tuning",
                              &b->block);
    tni_error_set(&err);
    if (st) {
        tni_free(b);
        return NULL;
    }
    b->next = d->blocks;
    d->blocks = b;
    d->block_count++;
    return b->block.memory.data;
}

void tni_tuned_init(tni_tuned *out, tni_tuning *t, const tni_request *r, const tni_candidate *c, bool measure)
{
    const bool on = t->on && !(r->flags & TN_NODE_DETERMINISTIC);
    tn_err err;

    *out = (tni_tuned){.tuning = t, .device = r->device};
    out->ops = (tn_prepare_ops){.struct_size = (uint32_t)TN_END(tn_prepare_ops, tuned_bytes),
                                .host = &c->plugin->host,
                                .arg = out,
                                .tuning_budget_ns = on && measure && r->device->host ? t->budget_ns : 0,
                                .scratch = scratch};
    tni_str_init(&out->key, TNI_TUNING_KEY_MAX);
    if (!on || !c->plugin->note.build_id[0])
        return;
    tni_error_get(&err);
    if (key_make(&out->key, r, c))
        tni_str_fini(&out->key); /* too long, or out of memory: as if nothing were kept */
    else
        out->stored = tni_tuning_store_find(t->store, &out->key, &out->ops.tuned_bytes);
    out->ops.tuned = out->stored;
    tni_error_set(&err);
}

void tni_tuned_take(tni_tuned *d, tn_plan *plan)
{
    if (d->key.text && plan->tuning.data)
        tni_tuning_store_set(d->tuning->store, &d->key, plan->tuning.data, plan->tuning.bytes);
    if (plan->tuning.release)
        plan->tuning.release(plan->tuning.data);
    plan->tuning = (tn_blob){0};
}

void tni_tuned_fini(tni_tuned *d)
{
    while (d->blocks) {
        tni_tuning_block *next = d->blocks->next;

        tni_block_free(&d->blocks->block, NULL);
        tni_free(d->blocks);
        d->blocks = next;
    }
    tni_str_fini(&d->key);
    tni_free(d->stored);
}
