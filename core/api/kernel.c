/* tenon/kernel.h: kernels of loaded plugins, and why one is chosen. */
#include <string.h>

#include "api/api.h"
#include "tenon/kernel.h"

/* ---- what there is ------------------------------------------------------------------------------- */

/* Kernel `index` of all; NULL: there are fewer, and `*seen` says how many. */
static const tn_kernel *kernel_at(const tn_ctx *ctx, size_t index, tni_plugin **plugin, size_t *seen)
{
    const tn_capability *head;

    *seen = 0;
    for (size_t i = 0; tni_registry_capability(ctx->plugins, TN_KIND_KERNELS, i, &head, plugin); i++) {
        const tn_kernel *const *k = ((const tn_kernel_table *)(const void *)head)->kernels;

        for (; *k; k++)
            if ((*seen)++ == index)
                return *k;
    }
    return NULL;
}

tn_status tn_kernel_count(tn_ctx *ctx, size_t *count)
{
    tni_plugin *plugin;
    size_t seen;

    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    (void)kernel_at(ctx, SIZE_MAX, &plugin, &seen);
    *count = seen;
    return TN_OK;
}

tn_status tn_kernel_at(tn_ctx *ctx, size_t index, tn_kernel_info *out)
{
    static const char *const any[] = {NULL};
    tni_plugin *plugin;
    const tn_kernel *k;
    size_t seen;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (!(k = kernel_at(ctx, index, &plugin, &seen)))
        return tni_error(TN_E_ARG, "kernel %zu of %zu", index, seen);
    const tn_kernel_info info = {.flags = k->flags & (TN_KERNEL_IS_DETERMINISTIC | TN_KERNEL_IS_STRIDED |
                                                      TN_KERNEL_IS_ADDING | TN_KERNEL_IS_ASYNC),
                                 .op = k->op,
                                 .name = k->name,
                                 .plugin = plugin->note.body.name,
                                 .device = k->device,
                                 .isa = k->isa ? k->isa : "",
                                 .types = k->types ? k->types : any,
                                 .rank = k->rank,
                                 .op_version_min = k->op_version_min,
                                 .op_version_max = k->op_version_max,
                                 .host_in = k->host_in,
                                 .host_out = k->host_out,
                                 .usable = tni_isa_present(k->isa)};

    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

_Static_assert(TN_KERNEL_IS_DETERMINISTIC == TN_KERNEL_DETERMINISTIC &&
                   TN_KERNEL_IS_STRIDED == TN_KERNEL_STRIDED && TN_KERNEL_IS_ADDING == TN_KERNEL_ADD_TO &&
                   TN_KERNEL_IS_ASYNC == TN_KERNEL_ASYNC,
               "the flags of a plugin's kernel and those that programs see are the same bits");

/* ---- why one is chosen --------------------------------------------------------------------------- */

struct tn_choice {
    tni_why *why;
    tni_context *ctx;
    tn_known *known; /* inputs, then outputs */
    char device[80], option[256], value[256];
};

/* What of the options decided, as it is now. */
static void option_take(tn_choice *c)
{
    const int32_t rule = c->why->choice.rule;
    const char *value;

    (void)snprintf(c->option, sizeof c->option, "kernel.%.180s@%.60s", c->why->def->op->name,
                   c->why->device->type);
    value = tni_option_text(c->ctx->options, c->option);
    if (rule == TN_RULE_PIN || (rule == TN_RULE_NONE && value[0])) {
        (void)snprintf(c->value, sizeof c->value, "%s", value);
        return;
    }
    c->option[0] = '\0';
    if (rule == TN_RULE_PREFER)
        (void)snprintf(c->option, sizeof c->option, "kernel.prefer");
    else if (rule == TN_RULE_LOAD)
        (void)snprintf(c->option, sizeof c->option, "plugins.load");
    if (c->option[0])
        (void)snprintf(c->value, sizeof c->value, "%s", tni_option_text(c->ctx->options, c->option));
}

static tn_status choice_make(tn_ctx *ctx, tni_why *why, tn_choice **out)
{
    tn_choice *c = tni_zalloc(sizeof *c);
    const uint32_t count = why->in_count + why->out_count;

    if (!c || !(c->known = tni_calloc(count + 1u, sizeof *c->known))) {
        tni_free(c);
        return TN_E_NOMEM;
    }
    c->why = why;
    c->ctx = ctx;
    for (uint32_t i = 0; i < count; i++)
        c->known[i] = (tn_known){.name = why->names[i],
                                 .shape = why->shapes[i].dim,
                                 .ndim = why->shapes[i].ndim < 0 ? -1 : why->shapes[i].ndim,
                                 .dtype = why->dtypes[i]};
    (void)snprintf(c->device, sizeof c->device, "%s:%d", why->device->type, why->device->index);
    if (why->def->op->flags & TN_OP_VIEW)
        why->choice.rule = TN_RULE_CORE;
    option_take(c);
    *out = c;
    return TN_OK;
}

static tn_status query_take(tn_ctx *ctx, const tn_choice_query *q, const api_attrs *attrs, tni_why_query *out)
{
    *out = (tni_why_query){.op = q->op,
                           .attr_count = attrs->count,
                           .names = attrs->names,
                           .texts = attrs->texts,
                           .input_count = q->input_count,
                           .dtype = q->dtype < 0 ? TN_F32 : q->dtype,
                           .train = (q->flags & TN_CHOICE_TRAIN) != 0};
    if (q->dtype >= TN_DTYPE_LIMIT)
        return tni_error(TN_E_ARG, "data type %d is none", q->dtype);
    return api_device(ctx, q->device, &out->device);
}

/* The program's list of inputs as the room takes it; tni_free. */
static tn_status inputs_take(const tn_choice_query *q, tni_why_input **out)
{
    tni_why_input *in = tni_calloc(q->input_count + 1u, sizeof *in);

    if (!in)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < q->input_count; i++) {
        const tn_known *k = &q->inputs[i];

        if ((k->ndim > 0 && !k->shape) || k->dtype >= TN_DTYPE_LIMIT) {
            tni_free(in);
            return tni_error(TN_E_ARG, "tn_choice_create: input %u has no shape, or no such data type", i);
        }
        in[i] = (tni_why_input){k->name, k->shape, k->ndim, k->dtype};
    }
    *out = in;
    return TN_OK;
}

tn_status tn_choice_create(tn_ctx *ctx, const tn_choice_query *query, tn_choice **out)
{
    tn_choice_query q = {0};
    tni_why_query room;
    tni_why_input *inputs = NULL;
    tni_why *why = NULL;
    api_attrs attrs;
    tn_status st;

    if (!ctx || !query || !out)
        return api_null(__func__, "ctx, query or out");
    if ((st = api_options(__func__, query, &q, (uint32_t)sizeof q)))
        return st;
    if (!q.op || (q.input_count && !q.inputs))
        return api_null(__func__, "op or inputs");
    if (q.flags & ~TN_CHOICE_TRAIN || q.input_count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "tn_choice_create: flags 0x%x, %u inputs: not known, or too many", q.flags,
                         q.input_count);
    if ((st = api_attrs_read(__func__, q.attrs, &attrs)) || (st = query_take(ctx, &q, &attrs, &room)) ||
        (st = inputs_take(&q, &inputs)))
        return st;
    room.inputs = inputs;
    if (!(st = tni_why_create(ctx, &room, &why)) && (st = choice_make(ctx, why, out)))
        tni_why_destroy(why);
    tni_free(inputs);
    return st;
}

void tn_choice_destroy(tn_choice *choice)
{
    if (!choice)
        return;
    tni_why_destroy(choice->why);
    tni_free(choice->known);
    tni_free(choice);
}

tn_status tn_choice_get(const tn_choice *choice, tn_choice_info *out)
{
    const tni_why *y;

    if (!choice || !out)
        return api_null(__func__, "choice or out");
    y = choice->why;
    const tn_choice_info info = {.rule = y->choice.rule,
                                 .count = (uint32_t)y->choice.lines.count,
                                 .chosen = y->choice.chosen,
                                 .asked = y->asked,
                                 .input_count = y->in_count,
                                 .output_count = y->out_count,
                                 .op = y->def->op->name,
                                 .device = choice->device,
                                 .option = choice->option,
                                 .value = choice->value,
                                 .inputs = choice->known,
                                 .outputs = choice->known + y->in_count};

    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_choice_candidate(const tn_choice *choice, uint32_t index, tn_candidate_info *out)
{
    const tni_choice_line *line;

    if (!choice || !out)
        return api_null(__func__, "choice or out");
    if (index >= choice->why->choice.lines.count)
        return tni_error(TN_E_ARG, "candidate %u of %zu", index, choice->why->choice.lines.count);
    line = tni_vec_at(&choice->why->choice.lines, index);
    const tn_candidate_info info = {.serves = line->fits,
                                    .plugin = line->plugin->note.body.name,
                                    .kernel = line->kernel ? line->kernel->name : "",
                                    .reason = line->why,
                                    .rank = line->kernel ? line->kernel->rank : 0,
                                    .pinned = line->pinned,
                                    .prefer = line->prefer == INT32_MAX ? -1 : line->prefer};

    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}
