/*
 * Kernels of compiled nets as graphs, on the emulated GPU: recorded at the third run, one launch from then
 * on, a further form for other addresses while there is room, set where numbers alone are others or a few
 * moved, plain where recording is in vain; the bits are those of plain launches. The plugin's function is
 * called with wrong arguments and by itself, too. The program is its own child, which has the double of the
 * driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/must.h"
#include "support/symbols.h"
#include "table.h"
#include "tenon/tenon.h"

#define SIDE 3
#define RUNS 8
#define STEPS 24      /* of a training, each with numbers of its own */
#define STEPS_FORMS 8 /* sets of buffers that these may take turns with: each step is waited for */
#define ROUNDS 6

/* ---- nets: in the child ------------------------------------------------------------------------------ */

/* relu(w1 x), w2 of it, w3 of that: each of a group, or half of it at random; all numbers stay whole. */
static tn_symbol *net_make(tn_ctx *ctx, bool grouped)
{
    static const char *const groups[] = {"a", "b", "c"};
    tn_symbol *x = NULL, *w;

    MUST(tn_symbol_variable(ctx, "x", &x));
    for (int i = 0; i < 3; i++) {
        const char name[] = {'w', (char)('1' + i), '\0'};

        MUST(tn_symbol_variable(ctx, name, &w));
        x = symbol_node(ctx, "dot", NULL, LIST("__ctx_group__", groups[i]), w, x);
        x = symbol_node(ctx, "relu", NULL, LIST("__ctx_group__", groups[i]), x, NULL);
        if (!grouped)
            x = symbol_node(ctx, "Dropout", NULL, LIST("p", "0.5"), x, NULL);
    }
    return x;
}

static void numbers(tn_array *a, int seed)
{
    float values[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = (float)((i * 5 + seed * 3) % 7 - 2);
    MUST(tn_array_write(a, values, sizeof values));
}

static void told(tn_array *a)
{
    float values[SIDE * SIDE];

    MUST(tn_array_read(a, values, sizeof values));
    for (int i = 0; i < SIDE * SIDE; i++)
        printf(" %g", (double)values[i]);
}

/* Each run has other inputs; outputs and the gradients of all of them are told. */
static void net_run(tn_ctx *ctx, bool still, const char *const *groups)
{
    static const char *const names[] = {"x", "w1", "w2", "w3"};
    const int64_t shape[] = {SIDE, SIDE};
    tn_known known[4];
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = TN_MODE_WRITE,
                                      .known_count = 4,
                                      .known = known,
                                      .group2ctx = groups};
    tn_symbol *s = net_make(ctx, still || groups);
    tn_executor *e = NULL;

    for (int i = 0; i < 4; i++)
        known[i] = (tn_known){.name = names[i], .shape = shape, .ndim = 2, .dtype = TN_F32};
    MUST(tn_executor_simple_bind(ctx, s, &o, &e));
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < 4; i++)
            numbers(tn_executor_array(e, TN_EXECUTOR_VALUE, names[i]), run + i);
        MUST(tn_executor_forward(e, 1, 0, NULL));
        MUST(tn_executor_backward(e, NULL));
        printf("values");
        told(tn_executor_output(e, 0));
        for (int i = 0; i < 4; i++)
            told(tn_executor_array(e, TN_EXECUTOR_GRAD, names[i]));
        printf("\n");
    }
    tn_executor_destroy(e);
    tn_symbol_release(s);
}

/* A training without a net: backward is a program, and the scale of the loss is a number that it is given.
 * The scale and the learning rate are others at each step. */
static void rates(tn_ctx *ctx)
{
    static const char *const ops[] = {"dot", "relu", "_mul_scalar", "sgd_update"};
    static const char *const lr[] = {"lr", "1", NULL}, *const scalar[] = {"scalar", "1", NULL};
    const int64_t shape[] = {SIDE, SIDE};
    tn_array *x = NULL, *w = NULL;
    tn_site *sites[4];
    uint32_t scale, rate;

    MUST(tn_array_create(ctx, TN_F32, 2, shape, NULL, &x));
    MUST(tn_array_create(ctx, TN_F32, 2, shape, NULL, &w));
    numbers(x, 1);
    numbers(w, 2);
    MUST(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    for (int i = 0; i < 4; i++)
        MUST(tn_site_create(ctx, ops[i], i == 2 ? scalar : i == 3 ? lr : NULL, &sites[i]));
    MUST(tn_site_attr(sites[2], "scalar", &scale));
    MUST(tn_site_attr(sites[3], "lr", &rate));
    for (int step = 0; step < STEPS; step++) {
        tn_array *values[3] = {NULL, NULL, NULL}, *const in[] = {w, x},
                 *const update[] = {w, tn_array_grad(w)};

        MUST(tn_site_set_float(sites[2], scale, 1 + step));
        MUST(tn_site_set_float(sites[3], rate, 1 + step % 3));
        (void)tn_record_set(1);
        for (int i = 0; i < 3; i++)
            MUST(tn_invoke(sites[i], i ? 1 : 2, i ? &values[i - 1] : in, 1, &values[i]));
        (void)tn_record_set(0);
        MUST(tn_backward(ctx, 1, &values[2], NULL, 0));
        MUST(tn_invoke(sites[3], 2, update, 1, &w));
        printf("values");
        told(w);
        printf("\n");
        for (int i = 0; i < 3; i++)
            tn_array_release(values[i]);
    }
    for (int i = 0; i < 4; i++)
        tn_site_release(sites[i]);
    tn_array_release(x);
    tn_array_release(w);
}

static atomic_int lines[2]; /* of the log: a way that a graph's runs took, what became of all of them */

static void log_line(void *arg, int32_t level, const char *text)
{
    (void)arg;
    if (level == TN_LOG_DEBUG && strstr(text, "a segment's graph"))
        atomic_fetch_add(&lines[strstr(text, "graph ends") != NULL], 1);
}

/* child nets DEVICE whole|still|spread|host|rates [SETTING] */
static int nets(int argc, char **argv)
{
    char plugins[4200], device[64];
    const char *settings[] = {plugins, device, argc > 4 ? argv[4] : NULL, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .log = log_line,
                               .settings = settings};
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};
    tn_ctx *ctx = NULL;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(device, sizeof device, "device.default=%s", argv[2]);
    MUST(tn_open(&o, &ctx));
    if (!strcmp(argv[3], "rates"))
        rates(ctx);
    else
        net_run(ctx, !strcmp(argv[3], "still"),
                !strcmp(argv[3], "whole") || !strcmp(argv[3], "still") ? NULL
                : !strcmp(argv[3], "spread") ? LIST("a", "cuda:0", "b", "cpu:0", "c", "cuda:1")
                                             : LIST("a", "cpu:0", "b", "cpu:0", "c", "cpu:0"));
    MUST(tn_ctx_stats(ctx, &stats));
    printf("graphs %d, launched %d, changed %d\n", (int)stats.graphs, (int)stats.graph_launches,
           (int)stats.graph_updates);
    MUST(tn_close(ctx));
    printf("told %d, ends %d\n", atomic_load(&lines[0]), atomic_load(&lines[1]));
    return 0;
}

/* ---- nets -------------------------------------------------------------------------------------------- */

static char self[4096];

/* The lines of values of a run; `count`: graphs, launches, changes. */
static void nets_say(const char *how, char *values, size_t bytes, int count[3])
{
    char command[4600];
    const said *s;
    const char *at;

    (void)snprintf(command, sizeof command, "'%s' nets %s", self, how);
    s = cuda_say("TNEMU_DELAY_US=20", command);
    at = strstr(s->out, "graphs ");
    if (s->code || !at ||
        sscanf(at, "graphs %d, launched %d, changed %d", &count[0], &count[1], &count[2]) != 3)
        fail_msg("%s: ends with %d:\n%s", how, s->code, s->out);
    (void)snprintf(values, bytes, "%.*s", (int)(at - s->out), s->out);
}

static void as_plain_launches(void **state)
{
    static char host[32768], plain[32768], graphs[32768];
    int count[3];

    (void)state;
    nets_say("cpu:0 whole", host, sizeof host, count);
    assert_int_equal(count[0], 0);
    nets_say("cuda:0 whole plugin.cuda.graphs=false", plain, sizeof plain, count);
    assert_int_equal(count[0] + count[1] + count[2], 0);
    assert_string_equal(plain, host);
    nets_say("cuda:0 whole", graphs, sizeof graphs, count);
    assert_string_equal(graphs, host);
    assert_true(count[0] >= 2 && count[0] <= count[1]); /* the draws are others each time */
    assert_int_equal(count[1], 2 * (RUNS - 2));
    assert_true(count[2] <= count[1] - count[0]);
}

/* Forward and backward are recorded once for each set of buffers, and nothing is ever set. */
static void steady(const char *how)
{
    static char host[32768], graphs[32768];
    int count[3];

    nets_say("cpu:0 still", host, sizeof host, count);
    nets_say(how, graphs, sizeof graphs, count);
    assert_string_equal(graphs, host);
    assert_true(count[0] >= 2 && count[0] <= 4);
    assert_int_equal(count[1], 2 * (RUNS - 2));
    assert_int_equal(count[2], 0);
}

static void without_draws(void **state)
{
    (void)state;
    steady("cuda:0 still");
}

/* A number that is another at each step is set in the nodes of a form, and never takes one of its own. */
static void other_rates(void **state)
{
    static char host[32768], graphs[32768];
    int count[3];

    (void)state;
    nets_say("cpu:0 rates", host, sizeof host, count);
    nets_say("cuda:0 rates", graphs, sizeof graphs, count);
    assert_string_equal(graphs, host);
    assert_int_equal(count[1], STEPS - 2);
    assert_in_range(count[0], 1, STEPS_FORMS);
    assert_int_equal(count[0] + count[2], count[1]); /* none was like one before */
}

/* At the end of each graph what became of its runs; nothing where the level is another. */
static void tells_the_log(void **state)
{
    char command[4600];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command, "'%s' nets cuda:0 whole log.level=debug", self);
    s = cuda_say("TNEMU_DELAY_US=20", command);
    assert_int_equal(s->code, 0);
    cuda_said(s, ", ends 2\n");
    (void)snprintf(command, sizeof command, "'%s' nets cuda:0 whole", self);
    s = cuda_say("TNEMU_DELAY_US=20", command);
    cuda_said(s, "told 0, ends 0\n");
}

/* Calls of cuBLASLt's double are entries of the graphs. */
static void of_a_library(void **state)
{
    static char host[32768], graphs[32768], how[512];
    const char *folder = getenv("TENON_TEST_LT");
    int count[3];

    (void)state;
    if (!folder) {
        print_message("skipped: the double of cuBLASLt is not built\n");
        skip();
    }
    nets_say("cpu:0 whole", host, sizeof host, count);
    (void)snprintf(how, sizeof how, "cuda:0 whole 'plugin.cuda.libraries=%s'", folder);
    nets_say(how, graphs, sizeof graphs, count);
    assert_string_equal(graphs, host);
    assert_true(count[0] >= 2 && count[0] <= count[1]);
    assert_int_equal(count[1], 2 * (RUNS - 2));
    assert_true(count[2] <= count[1] - count[0]);
    (void)snprintf(how, sizeof how, "cuda:0 still 'plugin.cuda.libraries=%s'", folder);
    steady(how);
}

/* group2ctx: a net over cpu and two GPUs, copies at the borders. */
static void over_devices(void **state)
{
    static char host[32768], spread[32768];
    int count[3];

    (void)state;
    nets_say("cpu:0 host", host, sizeof host, count);
    nets_say("cuda:0 spread", spread, sizeof spread, count);
    assert_string_equal(spread, host);
    assert_true(count[0] >= 4 && count[1] >= 4 * (RUNS - 2)); /* each of two GPUs, forward and backward */
    nets_say("cuda:0 spread plugin.cuda.graphs=false", spread, sizeof spread, count);
    assert_string_equal(spread, host);
}

/* ---- the function: in the child ---------------------------------------------------------------------- */

#define BYTES 64
#define FORMS 64
#define MANY 80 /* more than there are forms */
#define PLACES (MANY + 8)
#define SAY(what, call) printf("%s %d\n", what, (int)(call))

typedef struct work {
    const tn_device_ops *ops;
    tn_stream *stream;
    char *from, *to, *further; /* memory of the device */
    int copies, calls;         /* what a run gives */
    atomic_int called, runs;
    tn_status st; /* what it returns */
} work;

static tn_status called(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return TN_OK;
}

static tn_status give(void *arg, tn_err *err)
{
    work *w = arg;
    tn_status st = w->st;

    atomic_fetch_add(&w->runs, 1);
    for (int i = 0; i < w->copies && !st; i++) {
        const tn_place from = {i ? w->to : w->from, 0, TN_MEMORY_DEVICE, "cuda"},
                       to = {i ? w->further : w->to, 0, TN_MEMORY_DEVICE, "cuda"};

        st = w->ops->copy(w->stream, &to, &from, BYTES, err);
    }
    if (w->calls && !st)
        st = w->ops->stream_call(w->stream, called, &w->called, err);
    return st;
}

/* Runs it, and says: the status, what moved, and a byte at the end of the copies. */
static void ran(work *w, tn_device_graph **graph, const char *what, const char *end)
{
    uint32_t moved = 7;
    tn_err err = {0};
    char got[BYTES];
    const tn_place to = {got, -1, TN_MEMORY_HOST, NULL},
                   from = {(void *)(uintptr_t)end, 0, TN_MEMORY_DEVICE, "cuda"};
    const tn_status st = w->ops->graph_run(graph, w->stream, give, w, &moved, &err);

    (void)w->ops->copy(w->stream, &to, &from, BYTES, &err);
    (void)w->ops->stream_wait(w->stream, &err);
    printf("%s: %d, moved %d, %.2s\n", what, (int)st, (int)moved, got);
}

static void fill(work *w, char *at, const char *with)
{
    char all[BYTES] = {0};
    const tn_place to = {at, 0, TN_MEMORY_DEVICE, "cuda"}, from = {all, -1, TN_MEMORY_HOST, NULL};
    tn_err err = {0};

    (void)snprintf(all, sizeof all, "%s", with);
    (void)w->ops->copy(w->stream, &to, &from, BYTES, &err);
    (void)w->ops->stream_wait(w->stream, &err);
}

static void refusals(work *w, tn_device_graph **graph)
{
    tn_device_graph *none = NULL;
    uint32_t moved = 0;
    tn_err err = {0};

    SAY("no place", w->ops->graph_run(NULL, w->stream, give, w, &moved, &err));
    SAY("no stream", w->ops->graph_run(graph, NULL, give, w, &moved, &err));
    SAY("no function", w->ops->graph_run(graph, w->stream, NULL, w, &moved, &err));
    SAY("a launch", w->ops->graph_launch(*graph, w->stream, &err));
    SAY("no number", w->ops->graph_run(graph, w->stream, give, w, NULL, &err));
    SAY("begun", w->ops->graph_begin(w->stream, &err));
    SAY("within a recording", w->ops->graph_run(graph, w->stream, give, w, &moved, &err));
    SAY("ended", w->ops->graph_end(w->stream, 0, NULL, NULL, NULL, &err));
    w->st = TN_E_ATTR;
    SAY("a function that fails", w->ops->graph_run(graph, w->stream, give, w, &moved, &err));
    SAY("and has no graph", w->ops->graph_run(&none, w->stream, give, w, &moved, &err));
    w->st = TN_OK;
    printf("no graph: %d\n", none == NULL);
}

/* More forms than there is room for, in turns, of other copies each; then what no entry is. */
static void in_vain(work *w)
{
    tn_device_graph *graph = NULL;
    int recorded = 0, plain = 0, wrong = 0, last = TN_OK;
    tn_err err = {0};

    w->calls = 0;
    for (int i = 0; i < 4 * MANY; i++) {
        uint32_t moved = 7;

        w->copies = 2 + i % MANY;
        wrong += w->ops->graph_run(&graph, w->stream, give, w, &moved, &err) != TN_OK;
        recorded += moved == UINT32_MAX;
        plain += !moved;
    }
    printf("in turns: recorded %d, plain %d, wrong %d\n", recorded, plain, wrong);
    w->ops->graph_free(graph);
    graph = NULL;
    w->calls = 1;
    for (recorded = 0; !last && recorded < 4 * MANY; recorded++) {
        uint32_t moved = 7;

        last = w->ops->graph_run(&graph, w->stream, give, w, &moved, &err);
    }
    printf("a function each time: %d runs, then %d\n", recorded - 1, last);
    (void)w->ops->stream_wait(w->stream, &err);
    w->ops->graph_free(graph);
}

static int function(void)
{
    static table t;
    static work w;
    tn_device_graph *graph = NULL;
    void *memory = NULL;
    tn_err err = {0};

    if (table_start(&t, &err) ||
        t.ops->alloc(t.device, TN_MEMORY_DEVICE, (uint64_t)PLACES * BYTES, &memory, &err) ||
        t.ops->stream_create(t.device, 0, &w.stream, &err))
        return 1;
    w.ops = t.ops;
    w.from = memory;
    w.to = w.from + BYTES;
    w.further = w.to + BYTES;
    w.copies = 2;
    fill(&w, w.from, "aa");
    ran(&w, &graph, "recorded", w.further);
    fill(&w, w.from, "bb");
    ran(&w, &graph, "the same", w.further);
    w.further += BYTES;
    fill(&w, w.from, "cc");
    ran(&w, &graph, "another address", w.further);
    ran(&w, &graph, "the same again", w.further);
    w.further -= BYTES;
    fill(&w, w.from, "ee");
    ran(&w, &graph, "the first address", w.further);
    w.further += BYTES;
    fill(&w, w.from, "ff");
    ran(&w, &graph, "and the other one", w.further);
    for (int i = 0; i < MANY; i++) { /* more of them than there are forms */
        w.to = w.from + BYTES + i % 2 * BYTES;
        w.further = w.from + 4 * BYTES + i * BYTES;
        fill(&w, w.from, i % 2 ? "hh" : "gg");
        ran(&w, &graph, "one of many", w.further);
    }
    w.to = w.from + BYTES;
    w.further = w.to + 2 * BYTES;
    w.copies = 1;
    fill(&w, w.from, "dd");
    ran(&w, &graph, "less", w.to);
    w.copies = 2;
    ran(&w, &graph, "more", w.further);
    printf("runs %d\n", atomic_load(&w.runs));
    refusals(&w, &graph);
    w.calls = 1;
    ran(&w, &graph, "a function within", w.further);
    ran(&w, &graph, "and again", w.further);
    printf("called %d\n", atomic_load(&w.called));
    t.ops->graph_free(graph);
    in_vain(&w);
    t.ops->stream_destroy(w.stream);
    t.ops->free(t.device, TN_MEMORY_DEVICE, memory);
    printf("%s\n", strstr(t.ops->statistics(t.device), "\"graphs\":"));
    table_stop(&t);
    printf("blocks left %d\n", (int)atomic_load(&t.memory_live));
    return 0;
}

/* ---- events: in the child ---------------------------------------------------------------------------- */

/* What a graph knows may be told of a little later than its stream is. */
static tn_status reached(const tn_device_ops *ops, tn_event *event)
{
    tn_err err = {0};
    tn_status st;

    while ((st = ops->event_query(event, &err)) == TN_PENDING)
        ;
    return st;
}

/* Two are recorded at one point, one behind a copy; graphs record two of them; then each is recorded anew.
 * What follows an event in another stream comes behind it. */
static int events(void)
{
    static table t;
    tn_stream *s[2] = {NULL, NULL};
    tn_event *e[3] = {NULL, NULL, NULL};
    tn_device_graph *graph = NULL;
    void *memory = NULL;
    char got[3 * BYTES];
    tn_err err = {0};
    tn_place at[4];
    const tn_place host = {got, -1, TN_MEMORY_HOST, NULL};
    int wrong = 0;

    if (table_start(&t, &err) || t.ops->alloc(t.device, TN_MEMORY_DEVICE, (uint64_t)4 * BYTES, &memory, &err))
        return 1;
    for (int i = 0; i < 2; i++)
        wrong += t.ops->stream_create(t.device, 0, &s[i], &err) != TN_OK;
    for (int i = 0; i < 3; i++)
        wrong += t.ops->event_create(t.device, &e[i], &err) != TN_OK;
    for (int i = 0; i < 4; i++)
        at[i] = (tn_place){(char *)memory + (ptrdiff_t)i * BYTES, 0, TN_MEMORY_DEVICE, "cuda"};
    for (int i = 0; i < 3; i++) /* none was recorded: they are reached */
        wrong += t.ops->event_query(e[i], &err) != TN_OK || t.ops->event_wait(s[0], e[i], &err) != TN_OK;
    for (int round = 0; round < ROUNDS; round++) {
        const tn_place from = {got, -1, TN_MEMORY_HOST, NULL};

        memset(got, 'a' + round, sizeof got);
        wrong += t.ops->copy(s[0], &at[0], &from, BYTES, &err) != TN_OK ||
                 t.ops->event_record(e[0], s[0], &err) != TN_OK ||
                 t.ops->event_record(e[1], s[0], &err) != TN_OK ||
                 t.ops->copy(s[0], &at[1], &at[0], BYTES, &err) != TN_OK ||
                 t.ops->event_record(e[2], s[0], &err) != TN_OK ||
                 t.ops->event_wait(s[1], e[round % 2], &err) != TN_OK ||
                 t.ops->copy(s[1], &at[2], &at[0], BYTES, &err) != TN_OK ||
                 t.ops->event_wait(s[1], e[2], &err) != TN_OK ||
                 t.ops->copy(s[1], &at[3], &at[1], BYTES, &err) != TN_OK;
        if (round == 1) { /* a graph records one that shares its point, and one that has its own */
            wrong += t.ops->graph_begin(s[0], &err) != TN_OK ||
                     t.ops->event_record(e[0], s[0], &err) != TN_OK ||
                     t.ops->event_record(e[2], s[0], &err) != TN_OK ||
                     t.ops->graph_end(s[0], 0, NULL, NULL, &graph, &err) != TN_OK;
        }
        if (round > 1)
            wrong += t.ops->graph_launch(graph, s[0], &err) != TN_OK ||
                     t.ops->event_wait(s[1], e[0], &err) != TN_OK;
        wrong += t.ops->event_record(e[1], s[1], &err) != TN_OK ||
                 t.ops->event_wait(s[0], e[1], &err) != TN_OK ||
                 t.ops->copy(s[1], &host, &at[1], 3 * BYTES, &err) != TN_OK ||
                 t.ops->stream_wait(s[1], &err) != TN_OK;
        for (int i = 0; i < 3 * BYTES; i++)
            wrong += got[i] != 'a' + round;
        for (int i = 0; i < 2; i++)
            wrong += t.ops->stream_wait(s[i], &err) != TN_OK;
        for (int i = 0; i < 3; i++)
            wrong += reached(t.ops, e[i]) != TN_OK;
    }
    t.ops->graph_free(graph);
    for (int i = 0; i < 2; i++)
        t.ops->stream_destroy(s[i]);
    for (int i = 0; i < 3; i++) { /* their streams are gone */
        wrong += reached(t.ops, e[i]) != TN_OK;
        t.ops->event_destroy(e[i]);
    }
    t.ops->free(t.device, TN_MEMORY_DEVICE, memory);
    table_stop(&t);
    printf("wrong %d\nblocks left %d\n", wrong, (int)atomic_load(&t.memory_live));
    return 0;
}

#define EVENTS 64

static atomic_int open_gate;

static tn_status gate_wait(void *arg, tn_err *err)
{
    (void)arg;
    (void)err;
    while (!atomic_load(&open_gate))
        ;
    return TN_OK;
}

/* One is recorded behind each of many copies, and looked at later or never: it is reached with the copy
 * before it, also while a function that came behind it has not returned; behind a wait for the stream it is
 * reached at once, and behind the stream's end. */
static int late(void)
{
    static table t;
    tn_stream *s[2] = {NULL, NULL};
    tn_event *e[EVENTS] = {NULL};
    void *memory = NULL;
    char got[EVENTS] = {0}, ones[EVENTS];
    tn_err err = {0};
    int wrong = 0;

    memset(ones, 1, sizeof ones);
    if (table_start(&t, &err) || t.ops->alloc(t.device, TN_MEMORY_DEVICE, 2 * EVENTS, &memory, &err))
        return 1;
    for (int i = 0; i < 2; i++)
        wrong += t.ops->stream_create(t.device, 0, &s[i], &err) != TN_OK;
    for (int i = 0; i < EVENTS; i++) {
        const tn_place from = {ones, -1, TN_MEMORY_HOST, NULL},
                       to = {(char *)memory + i, 0, TN_MEMORY_DEVICE, "cuda"};

        wrong += t.ops->event_create(t.device, &e[i], &err) != TN_OK ||
                 t.ops->copy(s[0], &to, &from, 1, &err) != TN_OK ||
                 t.ops->event_record(e[i], s[0], &err) != TN_OK;
    }
    wrong += t.ops->stream_call(s[0], gate_wait, NULL, &err) != TN_OK;
    for (int i = 1; i < EVENTS; i += 20) {
        const tn_place from = {memory, 0, TN_MEMORY_DEVICE, "cuda"}, to = {got, -1, TN_MEMORY_HOST, NULL};

        wrong += t.ops->event_wait(s[1], e[i], &err) != TN_OK ||
                 t.ops->copy(s[1], &to, &from, (uint64_t)i + 1, &err) != TN_OK ||
                 t.ops->stream_wait(s[1], &err) != TN_OK || memcmp(got, ones, (size_t)i + 1) != 0;
    }
    wrong += reached(t.ops, e[EVENTS - 1]) != TN_OK;
    atomic_store(&open_gate, 1);
    for (int i = 0; i < 4; i++) {
        const tn_place from = {ones, -1, TN_MEMORY_HOST, NULL}, to = {memory, 0, TN_MEMORY_DEVICE, "cuda"};

        wrong +=
            t.ops->copy(s[0], &to, &from, 1, &err) != TN_OK || t.ops->event_record(e[i], s[0], &err) != TN_OK;
        if (i == 1)
            wrong += t.ops->stream_wait(s[0], &err) != TN_OK || t.ops->event_query(e[0], &err) != TN_OK ||
                     t.ops->event_query(e[1], &err) != TN_OK;
    }
    for (int i = 0; i < 2; i++)
        t.ops->stream_destroy(s[i]);
    for (int i = 0; i < EVENTS; i++) {
        wrong += t.ops->event_query(e[i], &err) != TN_OK;
        t.ops->event_destroy(e[i]);
    }
    t.ops->free(t.device, TN_MEMORY_DEVICE, memory);
    table_stop(&t);
    printf("wrong %d\nblocks left %d\n", wrong, (int)atomic_load(&t.memory_live));
    return 0;
}

static int count_of(const said *s, const char *name)
{
    const char *at = strstr(s->out, name);

    return at ? atoi(at + strlen(name)) : 0;
}

/* One record of the driver's behind eight copies, and one more here and there; where the driver fails one,
 * the stream is waited for. */
static void late_events(void **state)
{
    static const char *const faults[] = {"", "TNEMU_FAULT=cuEventRecordWithFlags:1:2 "};
    char command[4400], settings[120];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d); trap 'rm -r $D' EXIT; export TNEMU_COUNTS=$D/counts; '%s' late && "
                   "cat $D/counts",
                   self);
    for (int seed = 0; seed < 8; seed++) {
        (void)snprintf(settings, sizeof settings, "%sTNEMU_DELAY_US=100 TNEMU_SEED=%d", faults[seed % 2],
                       seed);
        s = cuda_say(settings, command);
        if (s->code)
            fail_msg("ends with %d:\n%s", s->code, s->out);
        cuda_said(s, "wrong 0\nblocks left 0\n");
        assert_in_range(count_of(s, "\ncuEventRecordWithFlags "), 4, EVENTS / 8 + 8);
    }
}

static void shared_events(void **state)
{
    char command[4400];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d); trap 'rm -r $D' EXIT; export TNEMU_COUNTS=$D/counts; '%s' events && "
                   "cat $D/counts",
                   self);
    for (int seed = 0; seed < 8; seed++) {
        char settings[80];

        (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=300 TNEMU_SEED=%d", seed);
        s = cuda_say(settings, command);
        if (s->code)
            fail_msg("ends with %d:\n%s", s->code, s->out);
        cuda_said(s, "wrong 0\nblocks left 0\n");
        assert_int_equal(count_of(s, "\ncuEventCreate "), count_of(s, "\ncuEventDestroy "));
        /* Three in each round, and one more for each of what a graph knows, which shares no longer; a launch
         * has one, too. */
        assert_true(count_of(s, "\ncuEventRecordWithFlags ") <= 3 * ROUNDS + 2 * (ROUNDS - 2) + 8);
    }
}

static int times(const char *text, const char *what)
{
    int count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

static void by_itself(void **state)
{
    char command[4200], wanted[100];
    const said *s;

    (void)state;
    (void)snprintf(command, sizeof command, "'%s' function", self);
    s = cuda_say("TNEMU_DELAY_US=20", command);
    if (s->code)
        fail_msg("ends with %d:\n%s", s->code, s->out);
    cuda_said(s, "recorded: 0, moved -1, aa\nthe same: 0, moved 0, bb\nanother address: 0, moved -1, cc\n"
                 "the same again: 0, moved 0, cc\nthe first address: 0, moved 0, ee\n"
                 "and the other one: 0, moved 0, ff\none of many: 0, moved -1, gg\n"
                 "one of many: 0, moved -1, hh\none of many: 0, moved -1, gg\n");
    assert_int_equal(times(s->out, "one of many: 0, moved -1"), FORMS - 2);
    assert_int_equal(times(s->out, "one of many: 0, moved 1,"),
                     MANY - (FORMS - 2)); /* no room: a copy is set */
    cuda_said(s, "less: 0, moved -1, dd\nmore: 0, moved 1, dd\n");
    /* Twice the forms are recorded in vain; 64 runs pay for one. */
    cuda_said(s, "in turns: recorded 132, plain 188, wrong 0\n");
    (void)snprintf(wanted, sizeof wanted, "a function each time: 130 runs, then %d\n", TN_E_UNSUPPORTED);
    cuda_said(s, wanted);
    (void)snprintf(wanted, sizeof wanted,
                   "no place %d\nno stream %d\nno function %d\na launch %d\nno number %d\n", TN_E_ARG,
                   TN_E_ARG, TN_E_ARG, TN_E_STATE, TN_E_ARG);
    cuda_said(s, wanted);
    (void)snprintf(wanted, sizeof wanted, "within a recording %d\n", TN_E_STATE);
    cuda_said(s, wanted);
    (void)snprintf(wanted, sizeof wanted, "a function that fails %d\n", TN_E_ATTR);
    cuda_said(s, wanted);
    (void)snprintf(wanted, sizeof wanted, "and has no graph %d\nno graph: 1\n", TN_E_UNSUPPORTED);
    cuda_said(s, wanted); /* it is to be tried without a graph, which says why */
    cuda_said(s, "a function within: 0, moved -1, dd\nand again: 0, moved -1, dd\ncalled 2\n");
    cuda_said(s, "blocks left 0\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_plain_launches), cmocka_unit_test(without_draws), cmocka_unit_test(tells_the_log),
        cmocka_unit_test(of_a_library),      cmocka_unit_test(over_devices),  cmocka_unit_test(by_itself),
        cmocka_unit_test(shared_events),     cmocka_unit_test(late_events),   cmocka_unit_test(other_rates),
    };

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 3)
        return nets(argc, argv);
    if (argc > 1)
        return !strcmp(argv[1], "events") ? events() : !strcmp(argv[1], "late") ? late() : function();
    cuda_setup();
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
