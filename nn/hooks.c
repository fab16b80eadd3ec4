/*
 * Functions of the program around the calls of nets and layers. They see values; they call no layers, so that
 * what a net computes does not depend on who watches.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define HOOKS_MAX 16

struct tnn_hooks {
    tn_hook_options items[HOOKS_MAX]; /* hook NULL: free */
};

bool tnn_hooks_run(tnn_run *r, const char *what, const char *file, int32_t line)
{
    return r->watched && tnn_fail(r->app, TN_E_STATE, "%s, called at %s:%d: a hook must not call layers",
                                  what, file ? file : "?", line);
}

static void hooks_call(tnn_run *r, const tn_net *net, const tn_call_info *call)
{
    const struct tnn_hooks *hooks = net->hooks;

    for (size_t i = 0; hooks && i < HOOKS_MAX && !r->app->status; i++) {
        const tn_hook_options *o = &hooks->items[i];

        if (!o->hook || !o->before != (call->out_count > 0) || (call->op && !o->layers))
            continue;
        r->watched = true;
        o->hook(o->arg, call);
        r->watched = false;
    }
}

void tnn_hooks_net(tnn_run *r, const tn_net *net, const tn_x *in, const tn_x *out)
{
    const tn_call_info call = {.struct_size = sizeof call,
                               .path = net->path,
                               .in_count = net->input_count,
                               .out_count = out ? net->output_count : 0,
                               .in = in,
                               .out = out};

    if (net->hooks && !r->traced)
        hooks_call(r, net, &call);
}

/* Those of all nets that the layer is in: its chain and those above it, and nets that call them. */
void tnn_hooks_layer(tnn_run *r, const tnn_layer *l, uint32_t count, const tn_x *in, tn_x out)
{
    const tn_call_info call = {.struct_size = sizeof call,
                               .path = l->path,
                               .op = l->op,
                               .in_count = count,
                               .out_count = out != NULL,
                               .in = in,
                               .out = out ? &out : NULL};
    const tn_net *last = NULL;

    for (const tn_net *net = l->net; net; net = net->parent)
        hooks_call(r, net, &call);
    for (uint32_t i = r->depth; i-- > 0;) {
        const tn_net *net = r->frames[i].net, *above = l->net;

        while (above && above != net)
            above = above->parent;
        if (!above && net != last)
            hooks_call(r, net, &call);
        last = net;
    }
}

int32_t tn_net_hook_(tn_net *net, const tn_hook_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_hook_options o = {0};
    int32_t i = 0;

    tnn_options_copy(&o, sizeof o, options);
    if (!app)
        return 0;
    if (!net->hooks && !(net->hooks = tnn_alloc(app, 1, sizeof *net->hooks)))
        return 0;
    while (i < HOOKS_MAX && net->hooks->items[i].hook)
        i++;
    if (!o.hook || i == HOOKS_MAX || net->model || net->graph) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_hook at %s:%d: %s", o.file ? o.file : "?", o.line,
                       !o.hook          ? "the hook is NULL"
                       : i == HOOKS_MAX ? "a net has at most 16 hooks"
                                        : "the net was loaded, it has no function");
        return 0;
    }
    o.file = NULL;
    net->hooks->items[i] = o;
    app->hook_count++;
    return i + 1;
}

void tn_net_unhook(tn_net *net, int32_t hook)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return;
    if (!net->hooks || hook < 1 || hook > HOOKS_MAX || !net->hooks->items[hook - 1].hook) {
        (void)tnn_fail(app, TN_E_KEY, "net %s has no hook %d", net->path, hook);
        return;
    }
    net->hooks->items[hook - 1].hook = NULL;
    app->hook_count--;
}
