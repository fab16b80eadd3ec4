/*
 * Group load: the tables that the descriptor lists. The core believes them, so what it would trip over is
 * said here.
 */
#include <string.h>

#include "internal.h"
#include "lab.h"

#define ROWS_MAX 100000u

/* ---- every table (R2) ---- */

typedef struct table_rule {
    uint32_t kind, bytes; /* least size */
    const char *what;
} table_rule;

static const table_rule table_rules[] = {
    {TN_KIND_OPS, TN_END(tn_op_table, ops), "operators"},
    {TN_KIND_KERNELS, TN_END(tn_kernel_table, kernels), "kernels"},
    {TN_KIND_DEVICE, TN_END(tn_device_ops, copy), "device"},
    {TN_KIND_POOL, TN_END(tn_pool_ops, destroy), "pool"},
    {TN_KIND_OPTIONS, TN_END(tn_option_table, rows), "options"},
    {TN_KIND_ARCHIVE, TN_END(tn_archive_ops, write), "archive"},
    {TN_KIND_TRANSPORT, TN_END(tn_transport_ops, close), "transport"},
    {TN_KIND_COLLECTIVE, TN_END(tn_collective_ops, close), "collective"},
    {TN_KIND_IMAGE, TN_END(tn_image_ops, encode), "image"},
};

static void table_check(chk_env *env, const tn_capability *at, const tn_capability *const *before)
{
    for (size_t i = 0; i < sizeof table_rules / sizeof *table_rules; i++)
        if (table_rules[i].kind == at->kind && at->struct_size < table_rules[i].bytes)
            chk_fail(env, NULL, "the table of %s has struct_size %u; its members need %u",
                     table_rules[i].what, (unsigned)at->struct_size, (unsigned)table_rules[i].bytes);
    if (at->struct_size < TN_END(tn_capability, id))
        chk_fail(env, NULL, "a table of kind %u has struct_size %u: its head alone needs %zu",
                 (unsigned)at->kind, (unsigned)at->struct_size, TN_END(tn_capability, id));
    chk_fail_if(env, !at->kind, NULL, "a table has no kind");
    if (at->kind != TN_KIND_OPS && (!at->id || !*at->id))
        chk_fail(env, NULL, "a table of kind %u has no id", (unsigned)at->kind);
    for (; *before != at; before++)
        if (at->kind != TN_KIND_OPS && at->kind != TN_KIND_KERNELS && (*before)->kind == at->kind &&
            (*before)->id && at->id && strcmp((*before)->id, at->id) == 0)
            chk_fail(env, NULL, "two tables of kind %u have the id %s", (unsigned)at->kind, at->id);
}

void chk_load_tables(chk_env *env)
{
    const tn_plugin *d = chk_descriptor(env);

    for (size_t i = 0; d->capabilities[i]; i++) {
        chk_fail_if(env, i == ROWS_MAX, NULL, "the list of tables has no end");
        table_check(env, d->capabilities[i], d->capabilities);
        chk_count(env);
    }
    chk_fail_if(env, !d->capabilities[0], NULL, "the plugin gives nothing: its list of tables is empty");
}

/* ---- functions that must be there ---- */

typedef void (*function)(void);
typedef struct member {
    const char *name;
    uint32_t offset;
} member;
#define MEMBER(T, name)                                                                                      \
    {                                                                                                        \
#name, (uint32_t)offsetof(T, name)                                                                   \
    }

static const member device_members[] = {
    MEMBER(tn_device_ops, count),         MEMBER(tn_device_ops, open),
    MEMBER(tn_device_ops, close),         MEMBER(tn_device_ops, info),
    MEMBER(tn_device_ops, alloc),         MEMBER(tn_device_ops, free),
    MEMBER(tn_device_ops, stream_create), MEMBER(tn_device_ops, stream_destroy),
    MEMBER(tn_device_ops, stream_wait),   MEMBER(tn_device_ops, stream_call),
    MEMBER(tn_device_ops, event_create),  MEMBER(tn_device_ops, event_destroy),
    MEMBER(tn_device_ops, event_record),  MEMBER(tn_device_ops, event_wait),
    MEMBER(tn_device_ops, event_query),   MEMBER(tn_device_ops, event_notify),
    MEMBER(tn_device_ops, copy),
};
static const member pool_members[] = {MEMBER(tn_pool_ops, create), MEMBER(tn_pool_ops, alloc),
                                      MEMBER(tn_pool_ops, free),   MEMBER(tn_pool_ops, trim),
                                      MEMBER(tn_pool_ops, stats),  MEMBER(tn_pool_ops, destroy)};

static void members_check(chk_env *env, const tn_capability *table, const member *m, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        function f;

        memcpy(&f, (const char *)table + m[i].offset, sizeof f);
        chk_count(env);
        chk_fail_if(env, !f, NULL, "%s has no function `%s`, which is not optional", table->id, m[i].name);
    }
}

void chk_load_functions(chk_env *env)
{
    const tn_capability *at = NULL;

    (void)chk_descriptor(env);
    chk_count(env);
    while ((at = chk_capability(env, TN_KIND_DEVICE, NULL, at)))
        members_check(env, at, device_members, sizeof device_members / sizeof *device_members);
    while ((at = chk_capability(env, TN_KIND_POOL, NULL, at)))
        members_check(env, at, pool_members, sizeof pool_members / sizeof *pool_members);
}

/* ---- kernels ---- */

/* What the plugin itself brings, or the context knows: of texts that made it complete. */
static bool operator_find(chk_env *env, const char *name, tn_op_info *out)
{
    const tn_op *op;

    for (size_t i = 0; (op = chk_own_op(env, i)); i++)
        if (op->name && strcmp(op->name, name) == 0 && !chk_has_texts(op)) {
            out->inputs = op->inputs;
            out->outputs = op->outputs;
            out->version = op->version;
            return true;
        }
    chk_definitions_give(env, env->ctx);
    return !tn_op_find(env->ctx, name, out);
}

/* "arg3" and "arg*" belong to a last argument "arg*". */
static bool is_argument(const char *const *names, const char *name, size_t length)
{
    for (; names && *names; names++) {
        size_t have = strlen(*names);

        if (have == length && memcmp(*names, name, length) == 0)
            return true;
        if (have && (*names)[have - 1] == '*' && length >= have && memcmp(*names, name, have - 1) == 0)
            return true;
    }
    return false;
}

static bool is_storage(const char *text)
{
    return !strcmp(text, "dense") || !strcmp(text, "row_sparse") || !strcmp(text, "csr");
}

/* "data:f32,=weight": name, then data types, storage types or names of other arguments. */
static void type_check(chk_env *env, const tn_kernel *k, const tn_op_info *op, const char *row)
{
    size_t name = strcspn(row, ":");
    const char *at = row + name + 1;

    if (!row[name] || !name || !*at)
        chk_fail(env, NULL, "kernel %s: the row \"%s\" of `types` is no \"name:type,type\"", k->name, row);
    if ((name != 1 || *row != '*') && !is_argument(op->inputs, row, name) &&
        !is_argument(op->outputs, row, name))
        chk_fail(env, NULL, "kernel %s: `types` speaks of \"%.*s\", which is no argument of %s", k->name,
                 (int)name, row, k->op);
    while (*at) {
        size_t length = strcspn(at, ",");
        char text[32];
        int32_t dtype;

        (void)snprintf(text, sizeof text, "%.*s", (int)length, at);
        chk_count(env);
        if (*text == '='
                ? !is_argument(op->inputs, text + 1, strlen(text) - 1) &&
                      !is_argument(op->outputs, text + 1, strlen(text) - 1)
                : tn_dtype_parse(text, &dtype) && !is_storage(text))
            chk_fail(env, NULL, "kernel %s: \"%s\" in the row \"%s\" is no data type", k->name, text, row);
        at += length + (at[length] == ',');
    }
}

static void kernel_check(chk_env *env, const tn_kernel_table *table, const tn_kernel *k)
{
    static const char *const levels[] = {"", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    tn_op_info op = {.struct_size = TN_SIZE(tn_op_info)};
    bool known = false;

    if (k->struct_size < TN_END(tn_kernel, run))
        chk_fail(env, "R2", "a kernel has struct_size %u; its members need %zu", (unsigned)k->struct_size,
                 TN_END(tn_kernel, run));
    if (!k->name || !*k->name || !k->op || !*k->op)
        chk_fail(env, NULL, "a kernel has no name or no operator (name \"%s\", operator \"%s\")",
                 k->name ? k->name : "", k->op ? k->op : "");
    if (!k->device || strcmp(k->device, table->head.id) != 0)
        chk_fail(env, NULL, "kernel %s is for device \"%s\" in a table of kernels for \"%s\"", k->name,
                 k->device ? k->device : "", table->head.id);
    if (!k->prepare || !k->run)
        chk_fail(env, NULL, "kernel %s has no `prepare` or no `run`", k->name);
    if (k->op_version_min > k->op_version_max || !k->op_version_max)
        chk_fail(env, NULL, "kernel %s serves versions %u to %u of %s", k->name, (unsigned)k->op_version_min,
                 (unsigned)k->op_version_max, k->op);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        known |= !k->isa || strcmp(k->isa, levels[i]) == 0;
    chk_fail_if(env, !known, NULL, "kernel %s needs the unknown instruction set \"%s\"", k->name, k->isa);
    if (!operator_find(env, k->op, &op))
        chk_fail(env, NULL, "kernel %s serves %s, which is no operator of Tenon or of this plugin", k->name,
                 k->op);
    for (const char *const *row = k->types; row && *row; row++)
        type_check(env, k, &op, *row);
    chk_count(env);
}

void chk_load_kernels(chk_env *env)
{
    const tn_kernel_table *table = NULL;
    bool any = false;

    while ((table = chk_capability(env, TN_KIND_KERNELS, NULL, table))) {
        if (!table->kernels)
            chk_fail(env, NULL, "the table of kernels for %s has no list", table->head.id);
        for (size_t i = 0; table->kernels[i]; i++) {
            kernel_check(env, table, table->kernels[i]);
            any = true;
            for (size_t k = 0; k < i; k++)
                if (strcmp(table->kernels[k]->name, table->kernels[i]->name) == 0 &&
                    strcmp(table->kernels[k]->op, table->kernels[i]->op) == 0)
                    chk_fail(env, NULL, "two kernels for %s are called %s: which runs would be chance",
                             table->kernels[i]->op, table->kernels[i]->name);
        }
    }
    if (!any)
        chk_skip(env, "the plugin has no kernels");
}

/* ---- operators ---- */

void chk_load_operators(chk_env *env)
{
    const tn_op_table *table = NULL;
    bool any = false;

    while ((table = chk_capability(env, TN_KIND_OPS, NULL, table))) {
        chk_fail_if(env, !table->ops, NULL, "the table of operators has no list");
        for (size_t i = 0; table->ops[i]; i++) {
            const tn_op *op = table->ops[i];

            any = true;
            if (tn_op_register(env->ctx, op))
                chk_fail(env, NULL, "the core refuses the definition: %s", tn_error_text());
            chk_count(env);
            if (op->struct_size >= TN_END(tn_op, computes) && op->computes)
                continue; /* both are that one's */
            if (!op->doc || !*op->doc)
                chk_fail(env, NULL, "operator %s has no `doc`", op->name);
            if (op->version == 0)
                chk_fail(env, NULL, "operator %s has version 0; versions count from 1", op->name);
        }
    }
    if (!any)
        chk_skip(env, "the plugin brings no operators");
}

/* ---- the core's own checks ---- */

void chk_load_accepted(chk_env *env)
{
    tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};
    size_t index = 0;
    tn_ctx *ctx = env->ctx;

    if (tn_plugin_open(ctx, env->file, &index) || tn_plugin_at(ctx, index, &info))
        chk_fail(env, NULL, "the core refuses the file: %s", tn_error_text());
    chk_count(env);
    if (tn_plugin_load(ctx, info.name))
        chk_fail(env, NULL, "the core does not load it: %s", tn_error_text());
    env->ctx = NULL;
    if (tn_close(ctx))
        chk_fail(env, NULL, "closing the context, the core says: %s", tn_error_text());
}
