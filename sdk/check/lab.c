/*
 * What a test of a kernel or of an operator works with: the plugin under test, the subject's definition, and
 * plugin `cpu` as reference: its own file, opened a second time by the kit, so that its kernels can be called
 * as directly as those under test.
 */
#include <dlfcn.h>
#include <string.h>

#include "internal.h"
#include "space.h"

#define MEANINGS_MAX 64 /* definitions of one plugin that name another one's kernels */

/* ---- subjects ---------------------------------------------------------------------------------------- */

const tn_op *chk_own_op(chk_env *env, size_t index)
{
    for (const tn_op_table *t = NULL; (t = chk_capability(env, TN_KIND_OPS, NULL, t));)
        for (const tn_op *const *op = TN_OFFERS(t, tn_op_table, ops) ? t->ops : NULL; op && *op; op++)
            if (!index--)
                return *op;
    return NULL;
}

static bool is_whole(const tn_kernel *k)
{
    return k->struct_size >= TN_END(tn_kernel, run) && k->op && k->name && k->device && k->prepare && k->run;
}

/* Where a walk over the kernels is: zeros at first. */
typedef struct walk {
    const tn_kernel_table *table; /* of the kernel that came last */
    const tn_kernel *const *next;
} walk;

/* Tables without a list, and what lacks its names or functions, are for the group load: other tests pass over
 * them. `device` NULL: of every device. NULL: no more. */
static const tn_kernel *kernel_next(chk_env *env, const char *device, walk *w)
{
    for (;;) {
        for (; w->next && *w->next; w->next++)
            if (is_whole(*w->next))
                return *w->next++;
        w->table = chk_capability(env, TN_KIND_KERNELS, device, w->table);
        if (!w->table)
            return NULL;
        w->next = TN_OFFERS(w->table, tn_kernel_table, kernels) ? w->table->kernels : NULL;
    }
}

bool chk_is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");

        if (word == length && !memcmp(at, name, length))
            return true;
        at += word;
    }
    return false;
}

static bool is_called(const tn_op *op, const char *name)
{
    return op->name && !strcmp(op->name, name);
}

static const char *subject_text(const tn_kernel *k, char *text, size_t size)
{
    const bool host = !strcmp(k->device, "cpu");

    (void)snprintf(text, size, "%s/%s%s%s", k->op, k->name, host ? "" : "@", host ? "" : k->device);
    return text;
}

static bool is_for_host(chk_env *env, const tn_kernel *k)
{
    (void)env;
    return !strcmp(k->device, "cpu");
}

static bool is_for_own_device(chk_env *env, const tn_kernel *k)
{
    return !is_for_host(env, k) && chk_device_table(env, k->device);
}

static bool is_here(chk_env *env, const tn_kernel *k)
{
    return is_for_host(env, k) || is_for_own_device(env, k);
}

static bool is_any(chk_env *env, const tn_kernel *k)
{
    (void)env;
    (void)k;
    return true;
}

static void kernels_name(chk_env *env, chk_names *names, bool (*fits)(chk_env *env, const tn_kernel *k))
{
    const tn_kernel *k;
    walk w = {0};
    char text[200];

    while ((k = kernel_next(env, NULL, &w)))
        if (fits(env, k))
            chk_name_add(names, subject_text(k, text, sizeof text));
}

uint32_t chk_kernels_count(chk_env *env)
{
    const tn_kernel *k;
    walk w = {0};
    uint32_t count = 0;

    while ((k = kernel_next(env, NULL, &w)))
        count += is_here(env, k);
    return count;
}

void chk_subject_kernels(chk_env *env, chk_names *names)
{
    kernels_name(env, names, is_here);
}

void chk_subject_device_kernels(chk_env *env, chk_names *names)
{
    kernels_name(env, names, is_for_own_device);
}

void chk_subject_all_kernels(chk_env *env, chk_names *names)
{
    kernels_name(env, names, is_any);
}

void chk_subject_operators(chk_env *env, chk_names *names)
{
    const tn_op *op;

    for (size_t i = 0; (op = chk_own_op(env, i)); i++)
        if (op->name)
            chk_name_add(names, op->name);
}

/* By a definition, or by a kernel for the host before `end`. */
static bool named_before(chk_env *env, const char *name, const tn_kernel *end)
{
    const tn_kernel *k;
    const tn_op *op;
    walk w = {0};

    for (size_t i = 0; (op = chk_own_op(env, i)); i++)
        if (is_called(op, name))
            return true;
    while ((k = kernel_next(env, "cpu", &w)) && k != end)
        if (!strcmp(k->op, name))
            return true;
    return false;
}

void chk_subject_gradients(chk_env *env, chk_names *names)
{
    const tn_kernel *k;
    const tn_op *op;
    walk w = {0};

    for (size_t i = 0; (op = chk_own_op(env, i)); i++)
        if (op->name && !(op->flags & TN_OP_BACKWARD))
            chk_name_add(names, op->name);
    while ((k = kernel_next(env, "cpu", &w)))
        if (strncmp(k->op, "_backward_", 10) != 0 && !named_before(env, k->op, k))
            chk_name_add(names, k->op);
}

/* The subject; names are compared before texts are made. */
static const tn_kernel *kernel_find(chk_env *env, const tn_kernel_table **table)
{
    const tn_kernel *k;
    walk w = {0};
    char text[200];

    while ((k = kernel_next(env, NULL, &w)))
        if (!strncmp(k->op, env->subject, strlen(k->op)) &&
            !strcmp(subject_text(k, text, sizeof text), env->subject)) {
            *table = w.table;
            return k;
        }
    chk_fail(env, "kit", "the plugin has no kernel %s", env->subject);
}

/* ---- definitions ------------------------------------------------------------------------------------- */

bool chk_has_texts(const tn_op *op)
{
    return (op->struct_size >= TN_END(tn_op, second) && (op->shapes || op->gradients)) ||
           (op->struct_size >= TN_END(tn_op, computes) && op->computes);
}

void chk_definitions_give(chk_env *env, tn_ctx *ctx)
{
    chk_case *c = chk_case_of(env);
    bool any = false;
    const tn_op *op;

    for (size_t i = 0; (op = chk_own_op(env, i)); i++)
        any |= chk_has_texts(op);
    for (size_t i = 0; any && c->given != ctx && (op = chk_own_op(env, i)); i++)
        (void)tn_op_register(ctx, op);
    c->given = ctx;
}

/* Definitions of the plugin that other definitions' kernels serve. */
static struct {
    const tn_op *op, *meaning;
} derived[MEANINGS_MAX];
static size_t derived_count;

const tn_op *chk_meaning(const tn_op *op)
{
    for (size_t i = 0; i < derived_count; i++)
        if (derived[i].op == op)
            return derived[i].meaning;
    return NULL;
}

static bool is_derived(const tn_op *op)
{
    return op->struct_size >= TN_END(tn_op, computes) && op->computes;
}

static const tn_op *meaning_find(chk_lab *lab, const tn_op *op)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

    return tn_op_find(lab->ctx, op->computes, &info) ? NULL : info.definition;
}

/* The plugin's definition as the library made it complete; NULL: it is refused. */
static const tn_op *completed(chk_lab *lab, const tn_op *op)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    const tn_op *meaning;

    if (!chk_has_texts(op))
        return op;
    if (tn_op_find(lab->ctx, op->name, &info))
        return NULL;
    if (is_derived(info.definition) && !chk_meaning(info.definition)) {
        meaning = meaning_find(lab, info.definition);
        if (!meaning || derived_count == MEANINGS_MAX)
            return NULL;
        derived[derived_count].op = info.definition;
        derived[derived_count++].meaning = meaning;
    }
    return info.definition;
}

/* The library's definition, or the one whose kernels serve it: that one's functions expect it. */
static const tn_op *meaning_of(chk_lab *lab, const tn_op_info *info)
{
    return is_derived(info->definition) ? meaning_find(lab, info->definition) : info->definition;
}

const tn_op *chk_op_find(chk_lab *lab, const char *name)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    const tn_op *op;

    for (size_t i = 0; (op = chk_own_op(lab->env, i)); i++)
        if (is_called(op, name))
            return completed(lab, op);
    return tn_op_find(lab->ctx, name, &info) ? NULL : meaning_of(lab, &info);
}

const tn_op *chk_op_at(chk_lab *lab, size_t index)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    const tn_op *op = chk_own_op(lab->env, index);
    size_t own = 0;

    if (op)
        return completed(lab, op) ? completed(lab, op) : op;
    while (chk_own_op(lab->env, own))
        own++;
    return tn_op_at(lab->ctx, index - own, &info) ? NULL : meaning_of(lab, &info);
}

/* ---- the reference ----------------------------------------------------------------------------------- */

static const tn_service *no_service(const tn_host *host, const char *id)
{
    (void)host;
    (void)id;
    return NULL;
}

const tn_host chk_host_bare = {
    (uint32_t)TN_END(tn_host, service), TN_ABI_MAJOR, TN_ABI_MINOR, "kit", NULL, no_service};

static void reference_open(chk_lab *lab)
{
    tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};
    const tn_plugin *p;
    size_t count = 0;
    void *handle;
    tn_err err;

    if (!strcmp(lab->plugin.descriptor->name, "cpu")) {
        lab->is_reference = true;
        lab->reference = lab->plugin.descriptor;
        lab->reference_self = lab->plugin.self;
        return;
    }
    (void)tn_plugin_count(lab->ctx, &count);
    for (size_t i = 0; i < count; i++)
        if (!tn_plugin_at(lab->ctx, i, &info) && !strcmp(info.name, "cpu") &&
            info.state != TN_PLUGIN_REFUSED && *info.path && (handle = dlopen(info.path, RTLD_NOW)) &&
            (p = dlsym(handle, "tn_plugin_v1")) &&
            (!p->init || p->init(&chk_host_bare, &lab->reference_self, &err) == TN_OK)) {
            lab->reference = p;
            return;
        }
}

static bool isa_present(const char *isa)
{
    if (!isa || !isa[0])
        return true;
#if defined(__x86_64__)
    if (!strcmp(isa, "x86-64-v2"))
        return __builtin_cpu_supports("sse4.2");
    if (!strcmp(isa, "x86-64-v3"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!strcmp(isa, "x86-64-v4"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
    return false;
}

bool chk_kernel_matches(chk_lab *lab, const tn_kernel *k, const chk_problem *p)
{
    return chk_version_matches(&lab->arena, k, p->op, &p->attrs) && chk_types_match(p->op, k, &p->f);
}

static bool side_find(chk_lab *lab, const tn_plugin *plugin, const char *device, const chk_problem *p,
                      chk_side *out)
{
    const bool reference = plugin == lab->reference && !lab->is_reference;

    for (const tn_capability *const *c = plugin ? plugin->capabilities : NULL; c && *c; c++) {
        const tn_kernel_table *t = (const tn_kernel_table *)(const void *)*c;

        if ((*c)->kind != TN_KIND_KERNELS || !(*c)->id || strcmp((*c)->id, device) != 0)
            continue;
        for (const tn_kernel *const *k = TN_OFFERS(t, tn_kernel_table, kernels) ? t->kernels : NULL; k && *k;
             k++)
            if (is_whole(*k) && !strcmp((*k)->op, p->op->name) && isa_present((*k)->isa) &&
                chk_kernel_matches(lab, *k, p)) {
                *out = (chk_side){.kernel = *k,
                                  .table = t,
                                  .self = reference ? lab->reference_self : lab->plugin.self,
                                  .host = reference ? &chk_host_bare : chk_host_table(lab->plugin.host),
                                  .space = strcmp(device, "cpu") ? lab->device : &chk_space_host};
                return true;
            }
    }
    return false;
}

bool chk_side_find(chk_lab *lab, const tn_plugin *plugin, const chk_problem *p, chk_side *out)
{
    return side_find(lab, plugin, "cpu", p, out);
}

bool chk_side_beside(chk_lab *lab, const chk_problem *p, chk_side *out)
{
    const char *device = lab->side.kernel ? lab->side.kernel->device : "cpu";

    return side_find(lab, lab->plugin.descriptor, device, p, out);
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static bool is_stream_test(chk_env *env)
{
    return chk_case_of(env)->test->run == chk_kernel_stream;
}

static void lab_begin(chk_env *env, tn_ctx *ctx, chk_lab *lab)
{
    memset(lab, 0, sizeof *lab);
    lab->env = env;
    lab->ctx = ctx;
    chk_case_of(env)->lab = lab;
}

/* Operators that read an image's file, whose own tests have files. */
static bool reads_file(const char *op)
{
    static const char *const ops[] = {"_cvimdecode", "_cvimread"};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

void chk_lab_open(chk_env *env, chk_host_kind kind, chk_lab *lab)
{
    const tn_kernel_table *table;
    const tn_kernel *k = kernel_find(env, &table);

    lab_begin(env, env->ctx, lab);
    if (!is_here(env, k))
        chk_skip(env, "kernels for device %s are not run: the plugin itself has no such device", k->device);
    if (!isa_present(k->isa))
        chk_skip(env, "this processor lacks %s", k->isa);
    if (!chk_case_of(env)->fault_who)
        chk_case_of(env)->fault_who = env->subject;
    (void)chk_plugin_open(env, kind, &lab->plugin);
    chk_definitions_give(env, lab->ctx);
    lab->op = chk_op_find(lab, k->op);
    if (!lab->op)
        chk_skip(env, "no operator %s is known here", k->op);
    if (reads_file(k->op))
        chk_skip(env, "%s reads the file of an image, and the kit has none", k->op);
    if (lab->op->version < k->op_version_min)
        chk_skip(env, "made for versions %u to %u of %s, known here is %u", k->op_version_min,
                 k->op_version_max, k->op, lab->op->version);
    for (uint32_t i = 0; lab->op->attrs && lab->op->attrs[i].name; i++)
        if (lab->op->attrs[i].since > k->op_version_max && (lab->op->attrs[i].flags & TN_ATTR_F_RUNTIME))
            chk_skip(env, "made for version %u of %s: %s came later and may change from call to call",
                     k->op_version_max, k->op, lab->op->attrs[i].name);
    lab->side.kernel = k;
    if (chk_case_of(env)->needs && !chk_case_of(env)->needs(lab))
        chk_skip(env, "%s", chk_case_of(env)->needs_text);
    if (!is_for_host(env, k))
        lab->device = chk_space_device(lab, k, table);
    lab->side = (chk_side){.kernel = k,
                           .table = table,
                           .self = lab->plugin.self,
                           .host = chk_host_table(lab->plugin.host),
                           .space = lab->device ? lab->device : &chk_space_host};
    reference_open(lab);
    if (lab->device && !is_stream_test(env) && !chk_stream_followed(lab))
        chk_skip(env, "its work does not follow its stream: kernel/stream says more");
}

void chk_lab_visit(chk_env *env, uint32_t what, chk_visit visit, void *arg)
{
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, what, visit, arg);
    chk_lab_close(&lab);
}

void chk_lab_need(chk_env *env, bool (*is)(const chk_lab *lab), const char *unless)
{
    chk_case_of(env)->needs = is;
    chk_case_of(env)->needs_text = unless;
}

void chk_lab_open_op(chk_env *env, chk_host_kind kind, chk_lab *lab)
{
    lab_begin(env, env->ctx, lab);
    (void)chk_plugin_open(env, kind, &lab->plugin);
    chk_definitions_give(env, lab->ctx);
    lab->op = chk_op_find(lab, env->subject);
    if (!lab->op)
        chk_skip(env, "the library refuses the definition of %s: load/operators says why", env->subject);
    reference_open(lab);
}

void chk_lab_open_context(chk_env *env, tn_ctx *ctx, chk_lab *lab)
{
    lab_begin(env, ctx, lab);
    lab->op = chk_op_find(lab, env->subject);
    if (!lab->op)
        chk_skip(env, "no operator %s is known here", env->subject);
}

void chk_lab_close(chk_lab *lab)
{
    chk_case_of(lab->env)->lab = NULL;
    chk_space_close(lab->device);
    if (lab->reference && !lab->is_reference && lab->reference->fini)
        lab->reference->fini(lab->reference_self);
    if (lab->plugin.descriptor)
        (void)chk_plugin_close(lab->env, &lab->plugin);
    chk_arena_free(&lab->arena);
}
