/*
 * The ways of running a case. All of them start with the same values, attached gradients and seed, and must
 * end with the same statuses and bits. The first way is the reference; a way that cannot serve a case leaves
 * it out.
 */
#include "trip.h"

#include <stdlib.h>
#include <string.h>

/* No other device comes. */
#define SHARED_SETTINGS                                                                                      \
    "memory.cpu.pool=none", "memory.cpu.limit=4MiB", "run.seed=1", "plugin.cpu.sync_timeout=1ms"

/* Passes that change no bit are on, or off; the others are off. */
#define EXACT "compile.passes_off=fold,fuse,layout"
#define NO_PASSES EXACT ",cse,dead,constants,mirror,inplace"

const fuzz_mode fuzz_modes[] = {
    {"plain", {"engine.threads=1", EXACT, NULL}},
    {"plain kernels", {"engine.threads=1", EXACT, "kernel.prefer=cpu", NULL}},
    {"all queued", {"engine.threads=1", EXACT, "engine.inline_ns=0", NULL}},
    {"no passes", {"engine.threads=1", NO_PASSES, NULL}},
    {"computed again", {"engine.threads=1", EXACT, "compile.mirror=true", NULL}},
    {"two threads", {"engine.threads=2", "run.deterministic=threads", NULL}},
};
const uint32_t fuzz_mode_count = sizeof fuzz_modes / sizeof *fuzz_modes;

static const fuzz_way ways[] = {
    {"eager", 0, 0},
    {"cached", 0, FUZZ_WAY_CACHED},
    {"eager, all arrays dense", 0, FUZZ_WAY_DENSE},
    {"eager, nothing over anything", 0, FUZZ_WAY_APART},
    {"eager, by name", 0, FUZZ_WAY_TEXT},
    {"eager, called twice", 0, FUZZ_WAY_TWICE},
    {"eager, run-time attributes set", 0, FUZZ_WAY_SETS},
    {"cached, called twice", 0, FUZZ_WAY_CACHED | FUZZ_WAY_TWICE},
    {"cached, from JSON", 0, FUZZ_WAY_CACHED | FUZZ_WAY_JSON},
    {"program", 0, FUZZ_WAY_PROGRAM},
    {"naive eager", 1, 0},
    {"naive cached", 1, FUZZ_WAY_CACHED},
};
#define WAY_COUNT (sizeof ways / sizeof *ways)

/* ---- contexts ------------------------------------------------------------------------------------------ */

static void must(tn_status st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), tn_error_text());
    abort();
}

/* All plugins are loaded, so that their operators are part of the set. */
static tn_ctx *context_open(const fuzz_mode *mode, const char *engine)
{
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    const char *settings[16] = {SHARED_SETTINGS, engine, NULL};
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                         .settings = settings};
    char path[TN_PATH_BYTES_MAX];
    size_t count = 5, plugin_count = 0;
    tn_ctx *ctx = NULL;

    snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    settings[count++] = path;
    for (size_t i = 0; mode->settings[i]; i++)
        settings[count++] = mode->settings[i];
    settings[count] = NULL;
    must(tn_open(&o, &ctx), "tn_open");
    must(tn_plugin_count(ctx, &plugin_count), "tn_plugin_count");
    for (size_t i = 0; i < plugin_count; i++) {
        tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};

        must(tn_plugin_at(ctx, i, &info), "tn_plugin_at");
        if (info.state == TN_PLUGIN_READY)
            must(tn_plugin_load(ctx, info.name), info.name);
    }
    return ctx;
}

void fuzz_bench_open(fuzz_bench *b, uint32_t mode, bool naive_only)
{
    const fuzz_mode *m = &fuzz_modes[mode];

    b->ctx[0] = context_open(m, naive_only ? "engine.type=naive" : "engine.type=threaded");
    b->ctx[1] = naive_only ? NULL : context_open(m, "engine.type=naive");
    for (int i = 0; i < 2; i++)
        if (b->ctx[i])
            must(tn_device_get(b->ctx[i], "cpu", &b->cpu[i]), "tn_device_get");
}

void fuzz_bench_close(fuzz_bench *b)
{
    (void)tn_close(b->ctx[0]); /* what failed was told, or was nobody's */
    (void)tn_close(b->ctx[1]);
}

/* ---- which ways ---------------------------------------------------------------------------------------- */

typedef struct traits { /* what a case has */
    bool counted, forms, over, mutates, random, runtime;
} traits;

static traits traits_of(const fuzz_bench *b, const fuzz_case *c)
{
    traits t = {.counted = true};

    for (uint32_t n = 0; n < c->node_count; n++) {
        tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

        t.counted &= c->nodes[n].counted;
        t.over |= c->nodes[n].inplace != FUZZ_NONE;
        if (tn_op_find(b->ctx[0], fuzz_text_at(c, c->nodes[n].op), &info))
            continue;
        t.mutates |= info.mutates != 0;
        t.random |= info.random != 0;
        for (uint32_t i = 0; i < info.attr_count; i++)
            t.runtime |= info.attrs[i].flags & TN_ATTR_F_RUNTIME;
    }
    for (uint32_t i = 0; i < c->variable_count; i++) {
        t.forms |= c->variables[i].form != FUZZ_DENSE || c->variables[i].grad_form < FUZZ_FORMS;
    }
    for (uint32_t h = 0; h < c->head_count; h++) {
        t.forms |= c->heads[h].form != FUZZ_DENSE && c->heads[h].form < FUZZ_FORMS;
        t.over |= c->heads[h].over != FUZZ_NONE;
    }
    return t;
}

static bool applies(const fuzz_bench *b, const fuzz_case *c, const traits *t, const fuzz_way *w)
{
    if (!b->ctx[w->engine])
        return false;
    if (w->flags & (FUZZ_WAY_CACHED | FUZZ_WAY_PROGRAM) && !t->counted)
        return false;
    if (w->flags & FUZZ_WAY_PROGRAM && c->flags & FUZZ_TRAIN)
        return false;
    if (w->flags & FUZZ_WAY_TWICE && (t->mutates || t->over || (t->random && w->flags == FUZZ_WAY_TWICE)))
        return false;
    if (w->flags & FUZZ_WAY_SETS && !t->runtime)
        return false;
    return (!(w->flags & FUZZ_WAY_DENSE) || t->forms) && (!(w->flags & FUZZ_WAY_APART) || t->over);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static bool finding(const fuzz_way *w, const char *what, fuzz_verdict *v)
{
    snprintf(v->kind, sizeof v->kind, "%.*s", (int)strcspn(what, ":"), what);
    snprintf(v->text, sizeof v->text, "%s (%s%s)", what, w == ways ? "" : "eager, and ", w->name);
    return false;
}

bool fuzz_run(const fuzz_bench *b, const fuzz_case *c, bool all_ways, fuzz_verdict *v)
{
    static fuzz_result reference, other;
    const traits t = traits_of(b, c);
    fuzz_rng r = {c->seed ^ c->number * 0x9e3779b97f4a7c15u};
    const uint32_t one = fuzz_chance(&r, 50) ? 1 : 1 + fuzz_below(&r, WAY_COUNT - 1);

    *v = (fuzz_verdict){.accepted = false};
    if (!fuzz_trip(b, c, &ways[0], &reference))
        return true;
    v->accepted = reference.reached[FUZZ_FORWARD] && !reference.status[FUZZ_FORWARD];
    if (reference.wrong[0])
        return finding(&ways[0], reference.wrong, v);
    for (uint32_t i = 1; i < WAY_COUNT; i++) {
        const char *differs;

        if (!applies(b, c, &t, &ways[i]) || (!all_ways && i != one && !(ways[i].flags & FUZZ_WAY_APART)) ||
            (ways[i].flags & FUZZ_WAY_APART && !v->accepted))
            continue;
        if (!fuzz_trip(b, c, &ways[i], &other))
            continue;
        if (other.wrong[0])
            return finding(&ways[i], other.wrong, v);
        differs = fuzz_result_differs(&reference, &other, c->node_count == 1);
        if (differs[0])
            return finding(&ways[i], differs, v);
    }
    return true;
}
