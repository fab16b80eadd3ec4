/*
 * The file, as the kit opens it: without the core's checks (those are a test of their own), once for each
 * process.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

#define ENTRY "tn_plugin_v1"

const tn_plugin *chk_descriptor(chk_env *env)
{
    chk_case *c = chk_case_of(env);
    const tn_plugin *d;
    struct stat info;

    if (c->descriptor)
        return c->descriptor;
    if (stat(env->file, &info) || !S_ISREG(info.st_mode)) /* opening a FIFO would wait for a writer */
        chk_fail(env, "load", "is no regular file");
    if (!c->handle)
        c->handle = dlopen(env->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!c->handle)
        chk_fail(env, "load", "cannot be opened: %s", dlerror());
    d = dlsym(c->handle, ENTRY);
    chk_fail_if(env, !d, "R7", "exports no " ENTRY ": not a plugin");
    if (d->struct_size < TN_END(tn_plugin, capabilities) || d->magic != TN_MAGIC ||
        d->abi_major != TN_ABI_MAJOR)
        chk_fail(
            env, "R2",
            "its descriptor is of another ABI: size %u, magic %08x, major %u; this kit knows %u, %08x, %u",
            (unsigned)d->struct_size, (unsigned)d->magic, (unsigned)d->abi_major,
            (unsigned)TN_END(tn_plugin, capabilities), (unsigned)TN_MAGIC, (unsigned)TN_ABI_MAJOR);
    if (!d->name || !d->version || !d->capabilities)
        chk_fail(env, "R2", "its descriptor lacks a name, a version or the list of capabilities");
    chk_fail_if(env, !chk_imports_redirect(c->handle), "kit", "its entries for malloc cannot be redirected");
    c->descriptor = d;
    return d;
}

const void *chk_capability(chk_env *env, uint32_t kind, const char *id, const void *after)
{
    const tn_plugin *d = chk_descriptor(env);
    bool seen = !after;

    for (size_t i = 0; d->capabilities[i]; i++) {
        const tn_capability *at = d->capabilities[i];

        if (seen && at->kind == kind && (!id || (at->id && strcmp(at->id, id) == 0)))
            return at;
        seen |= at == after;
    }
    return NULL;
}

tn_status chk_plugin_init(chk_env *env, chk_plugin *plugin, tn_err *err)
{
    tn_status st = TN_OK;

    memset(err, 0, sizeof *err);
    plugin->self = NULL;
    if (plugin->descriptor->init)
        st = plugin->descriptor->init(chk_host_table(plugin->host), &plugin->self, err);
    if (err->message[sizeof err->message - 1])
        chk_fail(env, "R1", "init gives %s and a text without an end", tn_status_name(st));
    chk_fail_if(env, st < TN_OK || st > TN_E_INTERNAL, "R1", "init returns %d, which is no status", (int)st);
    if (!st)
        atomic_fetch_add(&chk_case_of(env)->open, 1);
    return st;
}

tn_status chk_plugin_try(chk_env *env, chk_host_kind kind, chk_plugin *out, tn_err *err)
{
    *out = (chk_plugin){.descriptor = chk_descriptor(env), .handle = chk_case_of(env)->handle};
    out->host = chk_host_create(env, kind);
    return chk_plugin_init(env, out, err);
}

/* Which rule a failed init breaks: where it went well before, and fails now on today's host too, coming again
 * is what fails; else it is the host of another version. */
static const char *init_rule(chk_env *env, chk_host_kind kind)
{
    chk_plugin again;
    tn_err err;

    if (kind == CHK_HOST_EXACT)
        return chk_case_of(env)->inits ? "R9" : "L-init";
    return chk_case_of(env)->inits && chk_plugin_try(env, CHK_HOST_EXACT, &again, &err) ? "R9" : "R3";
}

bool chk_plugin_open(chk_env *env, chk_host_kind kind, chk_plugin *out)
{
    tn_err err;
    tn_status st = chk_plugin_try(env, kind, out, &err);

    if (st)
        chk_fail(env, init_rule(env, kind), "init fails with %s: %s", tn_status_name(st), err.message);
    chk_case_of(env)->inits++;
    return true;
}

/* Threads that the plugin began without the host end with its last instance. */
static void threads_check(chk_env *env)
{
    const struct timespec end = chk_deadline(CHK_THREADS_MS);

    while (chk_imports_threads() && chk_pause(&end))
        ;
    if (chk_imports_threads())
        chk_fail(env, "R9", "after fini %u threads that the plugin began still run",
                 (unsigned)chk_imports_threads());
}

bool chk_plugin_close(chk_env *env, chk_plugin *plugin)
{
    chk_case *c = chk_case_of(env);

    if (plugin->descriptor->fini)
        plugin->descriptor->fini(plugin->self);
    plugin->self = NULL;
    chk_host_accounts(plugin->host);
    if (atomic_fetch_sub(&c->open, 1) == 1)
        threads_check(env);
    return true;
}
