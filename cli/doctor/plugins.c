/*
 * Checks of plugins: those that are refused before loading, those that fail while they are loaded, and
 * runtimes that do not go together.
 */
#include "plugins/plugins.h"
#include "doctor/doctor.h"
#include "machine.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- refused ---- */

/* How many plugins were refused for the same reason, if `p` is the first of them; else 0. */
static size_t same_reason(const doctor *d, size_t index, const tn_plugin_info *p, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        tn_plugin_info other = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (tn_plugin_at(d->ctx, i, &other) || other.refusal != p->refusal || strcmp(other.reason, p->reason))
            continue;
        if (i < index)
            return 0;
        n++;
    }
    return n;
}

/* What the reason says, then what it advises: the two are divided by "; ". */
static void refusal_say(doctor *d, const tn_plugin_info *p, size_t alike)
{
    tn_error_info row = {.struct_size = TN_SIZE(tn_error_info)};
    bool known = !tn_error_find(3000 + p->refusal, &row);
    size_t length = strlen(p->reason), advice = known ? strlen(row.advice) + 2 : 0;
    char more[96] = "", lacks[32];

    if (known && advice < length && !strcmp(p->reason + length - advice + 2, row.advice))
        length -= advice;
    if (p->refusal == 8)
        (void)snprintf(more, sizeof more, "; this processor is %s", cli_machine_level(lacks));
    if (alike > 1)
        doctor_say(d, DOCTOR_BAD, known ? row.advice : "", "L%02u %.*s%s (%zu plugins, the first is %s)",
                   (unsigned)p->refusal, (int)length, p->reason, more, alike, p->path);
    else
        doctor_say(d, DOCTOR_BAD, known ? row.advice : "", "L%02u %s: %.*s%s", (unsigned)p->refusal, p->path,
                   (int)length, p->reason, more);
}

void doctor_plugins(doctor *d)
{
    size_t count = 0, usable = 0;

    if (!d->ctx || tn_plugin_count(d->ctx, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
        size_t alike;

        if (tn_plugin_at(d->ctx, i, &p))
            continue;
        usable += p.state == TN_PLUGIN_READY || p.state == TN_PLUGIN_LOADED;
        if (p.state == TN_PLUGIN_REFUSED && p.refusal && (alike = same_reason(d, i, &p, count)))
            refusal_say(d, &p, alike);
    }
    if (usable)
        doctor_say(d, DOCTOR_OK, "", "%zu can be used", usable);
    else
        doctor_say(d, DOCTOR_BAD, "install tenon-plugin-cpu, or name its folder in plugins.path",
                   "none can be used: no operator can run");
}

/* ---- loading ---- */

void doctor_libraries(doctor *d)
{
    size_t loaded = 0;

    for (size_t i = 0; i < d->probe_count; i++) {
        const doctor_probe *p = &d->probes[i];
        tn_error_info row = {.struct_size = TN_SIZE(tn_error_info)};

        if (p->number)
            doctor_say(d, DOCTOR_BAD,
                       !tn_error_find(p->number, &row) && p->number > 15
                           ? row.advice
                           : "take it out of plugins.load, and tell its vendor",
                       "%s: %s", p->name, p->message ? p->message : "");
        else
            loaded++;
        if (p->device && *p->device) { /* as of a machine without a GPU, which is no fault */
            const char *colon = cli_plugin_colon(p->name, p->device);

            doctor_say(d, DOCTOR_OK, "", "no device: %s%s%s", *colon ? p->name : "", colon, p->device);
        }
    }
    if (loaded)
        doctor_say(d, DOCTOR_OK, "", "%zu plugin%s with all libraries", loaded,
                   loaded == 1 ? " loads" : "s load");
}

/* ---- the parameter store ---- */

static const struct {
    const char *type, *id, *library; /* type: how its names begin */
} stores[] = {{"mpi", "mpi", "Open MPI (Debian: libopenmpi-dev)"},
              {"nccl", "nccl", "nvcc and NCCL's header"},
              {"dist_", "zmq", "libzmq (Debian: libzmq3-dev)"},
              {"dist_", "rdma", "libibverbs (Debian: libibverbs-dev)"}};

static bool plugin_usable(const doctor *d, const char *name)
{
    size_t count = 0;

    if (!d->ctx || tn_plugin_count(d->ctx, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_plugin_at(d->ctx, i, &p) && !strcmp(p.name, name) &&
            (p.state == TN_PLUGIN_READY || p.state == TN_PLUGIN_LOADED))
            return true;
    }
    return false;
}

/* As libibverbs looks for them. */
const char *doctor_no_rdma(void)
{
    DIR *d = opendir("/sys/class/infiniband_verbs");
    const struct dirent *e;
    bool any = false;

    while (d && (e = readdir(d)))
        any |= !strncmp(e->d_name, "uverbs", 6);
    if (d)
        (void)closedir(d);
    return any ? "" : "this machine has no RDMA device";
}

/* As the plugin kv-nccl looks for them. */
const char *doctor_no_nccl(void)
{
    static const char *const needed[][2] = {
        {"libcuda.so.1", "there is no NVIDIA driver: libcuda.so.1 was not found"},
        {"libnccl.so.2", "there is no NCCL: libnccl.so.2 cannot be opened"},
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        void *library = dlopen(needed[i][0], RTLD_LAZY | RTLD_LOCAL);

        if (!library)
            return needed[i][1];
        (void)dlclose(library);
    }
    return "";
}

/* A transport that is named may come from any plugin: a store that lacks it says so itself. */
void doctor_store(doctor *d)
{
    const char *type = doctor_option(d, "kvstore.type"), *transport = doctor_option(d, "kvstore.transport");
    char name[80], advice[200];

    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (strncmp(type, stores[i].type, strlen(stores[i].type)) != 0 ||
            (strcmp(transport, "auto") != 0 && strcmp(transport, stores[i].id) != 0))
            continue;
        (void)snprintf(name, sizeof name, "kv-%s", stores[i].id);
        (void)snprintf(advice, sizeof advice, "install tenon-plugin-%s, or build it with %s", name,
                       stores[i].library);
        if (plugin_usable(d, name) && !strcmp(stores[i].id, "rdma") && *doctor_no_rdma())
            doctor_say(d, DOCTOR_BAD,
                       "`rdma link add rxe0 type rxe netdev eth0` makes one of an Ethernet port, or take "
                       "kvstore.transport = auto",
                       "kvstore.transport is rdma, but %s", doctor_no_rdma());
        else if (plugin_usable(d, name) && !strcmp(stores[i].id, "nccl") && *doctor_no_nccl())
            doctor_say(d, DOCTOR_BAD, "install it where the loader looks, or take kvstore.type = device",
                       "kvstore.type is nccl, but %s", doctor_no_nccl());
        else if (plugin_usable(d, name))
            doctor_say(d, DOCTOR_OK, "", "kvstore.type is %s, and the plugin %s is here", type, name);
        else
            doctor_say(d, DOCTOR_BAD, advice, "kvstore.type is %s, but the plugin %s cannot be used", type,
                       name);
        return;
    }
    doctor_say(d, DOCTOR_OK, "", "kvstore.type is %s", type);
}

/* ---- OpenMP ---- */

static const struct {
    const char *prefix, *of;
} runtimes[] = {
    {"libgomp.so", "gcc"}, {"libomp.so", "LLVM"}, {"libiomp5.so", "Intel"}, {"libomp5.so", "LLVM"}};

#define RUNTIMES (sizeof runtimes / sizeof *runtimes)

/* Names of the plugins that bring the runtime, with commas; "" if none does. */
static void users_of(const doctor *d, size_t runtime, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < d->probe_count; i++) {
        json_t *library;
        size_t k;
        bool brings = false;

        json_array_foreach(d->probes[i].libraries, k, library) brings |=
            !strncmp(json_string_value(library), runtimes[runtime].prefix, strlen(runtimes[runtime].prefix));
        if (brings && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", d->probes[i].name);
    }
}

void doctor_openmp(doctor *d)
{
    char users[256], all[800] = "", advice[400];
    size_t found = 0, used = 0;

    for (size_t i = 0; i < RUNTIMES; i++) {
        users_of(d, i, users, sizeof users);
        if (!*users || used >= sizeof all)
            continue;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s of %s (%s)", found ? " and " : "",
                                 runtimes[i].prefix, runtimes[i].of, users);
        found++;
        if (found > 1)
            (void)snprintf(advice, sizeof advice,
                           "build %s with gcc's OpenMP, or leave it out: --set plugins.load=NAME,...", users);
    }
    if (found > 1)
        doctor_say(d, DOCTOR_BAD, advice,
                   "%zu runtimes in one process, each with threads for all processors: %s", found, all);
    else if (found)
        doctor_say(d, DOCTOR_OK, "", "one runtime: %s", all);
}
