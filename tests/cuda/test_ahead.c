/*
 * How far the host runs ahead of a GPU that lags: as engine.queue_max says for single operators, a few calls
 * of a net or steps of training, and always to the end. The program is its own child, which has the double
 * of the driver.
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
#include "tenon/tenon.h"

#define RUNS 1500
#define FEW 64        /* operations that may be under way */
#define ITEMS_EACH 4u /* of a stream for an operation: a wait, a kernel, a record, a notification */
#define FAR 1000      /* items */
#define NET_HOLD 4    /* items that the device waits for: two calls of a net have more */
#define NET_ITEMS 64  /* and those that are under way together have fewer than so many */
#define SIDE 600      /* of a product, whose sums take more than 1 MiB */
#define PRODUCTS 60
#define PRODUCT_HOLD 24       /* items: the device waits for so many */
#define KEPT 16               /* losses that a list keeps */
#define BEHIND 2              /* steps that are queued behind a host that lags */
#define NET_FRAMES (RUNS / 8) /* that are made; see few_calls */

/* ---- in the child -------------------------------------------------------------------------------------- */

/* A number is doubled and taken back to 1 again and again; each call takes the result of the one before. */
static void operators(tn_ctx *ctx, tn_array **x)
{
    const char *const names[] = {"_plus_scalar", "_minus_scalar"}, *const attrs[] = {"scalar", "1", NULL};
    tn_site *sites[2];

    for (int i = 0; i < 2; i++)
        MUST(tn_site_create(ctx, names[i], attrs, &sites[i]));
    for (int i = 0; i < RUNS; i++) {
        tn_array *out = NULL;

        MUST(tn_invoke(sites[i % 2], 1, x, 1, &out));
        tn_array_release(*x);
        *x = out;
    }
    for (int i = 0; i < 2; i++)
        tn_site_release(sites[i]);
}

/* One more, and one less. */
static tn_symbol *there_and_back(tn_ctx *ctx, tn_symbol *s)
{
    s = symbol_node(ctx, "_plus_scalar", NULL, LIST("scalar", "1"), s, NULL);
    return symbol_node(ctx, "_minus_scalar", NULL, LIST("scalar", "1"), s, NULL);
}

/* The same by a net, whose frames are those of programs; `train`: each call is recorded, and goes back. */
static void nets(tn_ctx *ctx, tn_array **x, bool train)
{
    const int64_t shape[] = {1};
    const tn_known known = {.name = "x", .shape = shape, .ndim = 1, .dtype = TN_F32};
    const tn_simple_bind_options o = {.struct_size = TN_SIZE(tn_simple_bind_options),
                                      .mode = train ? TN_MODE_WRITE : TN_MODE_NONE,
                                      .known_count = 1,
                                      .known = &known};
    tn_symbol *s = NULL;
    tn_executor *e = NULL;

    MUST(tn_symbol_variable(ctx, "x", &s));
    s = there_and_back(ctx, s);
    MUST(tn_executor_simple_bind(ctx, s, &o, &e));
    MUST(tn_array_copy(*x, tn_executor_array(e, TN_EXECUTOR_VALUE, "x")));
    for (int i = 0; i < RUNS; i++) {
        MUST(tn_executor_forward(e, train, 0, NULL));
        if (train)
            MUST(tn_executor_backward(e, NULL));
    }
    MUST(tn_array_copy(tn_executor_output(e, 0), *x));
    tn_executor_destroy(e);
    tn_symbol_release(s);
}

static tn_status gate_wait(void *arg)
{
    while (!atomic_load((atomic_int *)arg))
        ;
    return TN_OK;
}

/* Steps of a net whose losses are all kept; `flags`: of their backwards. Those that are done count no more:
 * further ones are queued while nothing runs. */
static void kept(tn_ctx *ctx, tn_array **x, uint32_t flags)
{
    static atomic_int gate;
    tn_var *const var = tn_array_var(*x);
    const tn_task task = {.struct_size = TN_SIZE(tn_task),
                          .run = gate_wait,
                          .arg = &gate,
                          .writes = &var,
                          .write_count = 1,
                          .flags = TN_TASK_HOST};
    const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options)};
    tn_array *losses[KEPT] = {NULL};
    tn_cached_op *net = NULL;
    tn_symbol *s = NULL;

    MUST(tn_symbol_variable(ctx, "x", &s));
    s = there_and_back(ctx, s);
    MUST(tn_cached_op_create(ctx, s, &o, &net));
    MUST(tn_attach_grad(ctx, *x, TN_MODE_WRITE, NULL));
    for (int i = 0; i < KEPT; i++) {
        if (i == KEPT - BEHIND) {
            MUST(tn_array_wait(tn_array_grad(*x)));
            MUST(tn_engine_push(ctx, &task));
        }
        (void)tn_record_set(1);
        MUST(tn_cached_op_call(net, 1, x, 1, &losses[i]));
        (void)tn_record_set(0);
        MUST(tn_backward(ctx, 1, &losses[i], NULL, flags));
    }
    atomic_store(&gate, 1);
    for (int i = 0; i < KEPT; i++)
        tn_array_release(losses[i]);
    tn_cached_op_release(net);
    tn_symbol_release(s);
}

/* A column by a row, of ones, into the same place each time; the least element of it becomes x. */
static void products(tn_ctx *ctx, tn_array **x)
{
    const int64_t column[] = {SIDE, 1}, row[] = {1, SIDE};
    static uint16_t ones[SIDE];
    tn_array *in[2], *out = NULL, *least = NULL;
    tn_site *dot, *min;

    for (int i = 0; i < SIDE; i++)
        ones[i] = 0x3f80;
    MUST(tn_array_from(ctx, TN_BF16, 2, column, ones, &in[0]));
    MUST(tn_array_from(ctx, TN_BF16, 2, row, ones, &in[1]));
    MUST(tn_site_create(ctx, "dot", NULL, &dot));
    MUST(tn_site_create(ctx, "min", NULL, &min));
    for (int i = 0; i < PRODUCTS; i++)
        MUST(tn_invoke(dot, 2, in, 1, &out));
    MUST(tn_invoke(min, 1, &out, 1, &least));
    tn_array_release(*x);
    *x = least;
    for (int i = 0; i < 2; i++)
        tn_array_release(in[i]);
    tn_array_release(out);
    tn_site_release(dot);
    tn_site_release(min);
}

/* child operators|products|nets|steps|kept|retained QUEUE_MAX */
static int child(char **argv)
{
    const float one = 1;
    const int64_t shape[] = {1};
    char plugins[4200], queue[64];
    const char *settings[] = {plugins, queue, "device.default=cuda:0", NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};
    tn_array *x = NULL;
    tn_ctx *ctx = NULL;
    double value;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    (void)snprintf(queue, sizeof queue, "engine.queue_max=%s", argv[2]);
    MUST(tn_open(&o, &ctx));
    MUST(tn_array_from(ctx, TN_F32, 1, shape, &one, &x));
    if (!strcmp(argv[1], "operators"))
        operators(ctx, &x);
    else if (!strcmp(argv[1], "products"))
        products(ctx, &x);
    else if (!strcmp(argv[1], "kept") || !strcmp(argv[1], "retained"))
        kept(ctx, &x, argv[1][0] == 'k' ? 0 : TN_BACKWARD_RETAIN);
    else
        nets(ctx, &x, !strcmp(argv[1], "steps"));
    MUST(tn_array_scalar(x, &value));
    MUST(tn_ctx_stats(ctx, &stats));
    printf("value %g\nframes %d\n", value, (int)stats.frames);
    tn_array_release(x);
    MUST(tn_close(ctx));
    return 0;
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

static char self[4096];

typedef struct counts {
    int queued, events, kernels, frames;
} counts;

static int count_of(const said *s, const char *name)
{
    const char *at = strstr(s->out, name);

    return at ? atoi(at + strlen(name)) : 0;
}

static counts ran(const char *what, int queue_max, int hold)
{
    char command[4600], settings[64];
    const said *s;

    (void)snprintf(settings, sizeof settings, "TNEMU_DELAY_US=20 TNEMU_HOLD=%d", hold);
    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d); trap 'rm -r $D' EXIT; export TNEMU_COUNTS=$D/counts; '%s' %s %d && "
                   "cat $D/counts",
                   self, what, queue_max);
    s = cuda_say(settings, command);
    if (s->code)
        fail_msg("%s: ends with %d:\n%s", what, s->code, s->out);
    cuda_said(s, "value 1\n");
    return (counts){count_of(s, "\nqueued "), count_of(s, "\ncuEventCreate "), count_of(s, "\nkernel "),
                    count_of(s, "\nframes ")};
}

static void bounded(void **state)
{
    const counts few = ran("operators", FEW, FEW / 2), far = ran("operators", 65536, FAR);

    (void)state;
    print_message("%d items and %d events, of more %d and %d\n", few.queued, few.events, far.queued,
                  far.events);
    assert_true(few.kernels > 0);
    assert_true(few.queued <= (int)(FEW * ITEMS_EACH));
    assert_true(few.events <= 2 * FEW);
    assert_true(far.queued >= FAR); /* so a queue that is longer is seen */
}

/* What such a call needs for itself is the next one's behind it, so many may be under way. */
static void room_passes(void **state)
{
    const counts c = ran("products", 65536, PRODUCT_HOLD);

    (void)state;
    print_message("%d items\n", c.queued);
    assert_true(c.kernels >= PRODUCTS);
    assert_true(c.queued >= PRODUCT_HOLD);
}

/* Whatever the queue may hold: a graph knows few sets of buffers, and each takes memory. Frames are taken
 * again and again. One that is done, but not back yet, is replaced by a new one, and the schedule decides how
 * often that happens: seldom. */
static void few_calls(void **state)
{
    static const char *const whats[] = {"nets", "steps"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const counts c = ran(whats[i], 65536, NET_HOLD);

        print_message("%s: %d items, %d frames\n", whats[i], c.queued, c.frames);
        assert_true(c.kernels >= RUNS);
        assert_true(c.queued < NET_ITEMS);
        assert_in_range(c.frames, 1, NET_FRAMES);
    }
}

/* Of losses that a list keeps none is under way. */
static void kept_losses(void **state)
{
    (void)state;
    assert_true(ran("kept", 65536, 0).kernels >= KEPT);
    assert_true(ran("retained", 65536, 0).kernels >= KEPT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounded), cmocka_unit_test(room_passes),
                                       cmocka_unit_test(kept_losses), cmocka_unit_test(few_calls)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 2)
        return child(argv);
    cuda_setup();
    return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
