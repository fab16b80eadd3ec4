/* What a program lives with: contexts opened and closed again and again, own work and own operators,
 * DLPack. */
#include "api/support.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "support/heard.h"
#include "support/list.h"
#include "support/scratch.h"
#include "tenon/plugin/attr.h"

static size_t entries_of(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);

    while (dir && readdir(dir))
        count++;
    if (dir)
        (void)closedir(dir);
    return count;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

/* A thread that was joined stands in /proc a little longer. */
static bool threads_fall_to(size_t most)
{
    for (int i = 0; i < 10000 && entries_of("/proc/self/task") > most; i++)
        (void)usleep(10000);
    return entries_of("/proc/self/task") <= most;
}

static void contexts_leave_nothing(void **state)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};
    uint64_t bytes = 0;
    size_t files = 0, threads = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        tn_ctx *ctx = test_open(i % 3 ? NULL : LIST("engine.type=naive"));

        if (i % 10 == 0)
            test_use(ctx);
        assert_ok(tn_wait_all(ctx)); /* what is under way has memory, too */
        assert_ok(tn_ctx_stats(ctx, &stats));
        test_close(ctx);
        if (i == 10) {
            bytes = stats.host_bytes;
            files = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
        }
    }
    {
        tn_ctx *ctx = test_open(LIST("engine.type=naive"));

        test_use(ctx);
        test_close(ctx);
        ctx = test_open(NULL);
        test_use(ctx);
        assert_ok(tn_wait_all(ctx));
        assert_ok(tn_ctx_stats(ctx, &stats));
        test_close(ctx);
    }
    assert_true(stats.host_bytes <= bytes + 65536);
    assert_true(entries_of("/proc/self/fd") <= files);
    assert_true(threads_fall_to(threads));
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define LEAKS_ALLOWED(on) ((on) ? __lsan_disable() : __lsan_enable())
#else
#define LEAKS_ALLOWED(on) ((void)(on))
#endif

/* Arrays, lists and symbols may be released late. What they still refer to then stays behind: a few bytes. */
static void late_releases(void **state)
{
    tn_ctx *ctx;
    tn_array *a = NULL, *big = NULL;
    tn_params *p = NULL;
    tn_symbol *s = NULL;

    (void)state;
    LEAKS_ALLOWED(1);
    ctx = test_open(NULL);
    LEAKS_ALLOWED(0);
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){4}, NULL, &a));
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){100000}, NULL, &big));
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "big", big));
    assert_ok(tn_symbol_variable(ctx, "x", &s));
    assert_ok(tn_close(ctx));
    tn_params_destroy(p);
    tn_array_release(a);
    tn_array_release(big);
    tn_symbol_release(s);
}

static void two_contexts_live_apart(void **state)
{
    tn_ctx *one = test_open(NULL), *two = test_open(LIST("engine.type=naive"));

    (void)state;
    assert_string_equal(tn_ctx_option(one, "engine.type"), "threaded");
    assert_string_equal(tn_ctx_option(two, "engine.type"), "naive");
    test_use(one);
    test_use(two);
    test_close(one);
    test_use(two);
    test_close(two);
}

/* ---- options, log
 * ------------------------------------------------------------------------------------------- */

static void options_have_an_origin(void **state)
{
    static const char *const begins[] = {"TENON_", "MXNET_", NULL};
    static const char ini[] = "[engine]\ntype = naive\n[kernel]\nprefer = cpu\n";
    heard log = HEARD(TN_LOG_DEBUG);
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_SYSTEM,
                         .files = LIST(scratch_write("tenon.ini", ini, sizeof ini - 1)),
                         .settings = LIST("train.lr=0.25", "kernel.dot@cpu=cpu"),
                         .log = heard_take,
                         .log_arg = &log};
    tn_option_info info = {.struct_size = TN_SIZE(tn_option_info)};
    unsigned seen = 0;
    int64_t number;
    double lr;
    size_t count;
    tn_ctx *ctx;

    (void)state;
    scratch_environment_clear(begins);
    assert_int_equal(setenv("TENON_ENGINE__WAIT_WARN_S", "7", 1), 0);
    assert_int_equal(setenv("MXNET_CPU_WORKER_NTHREADS", "2", 1), 0);
    assert_ok(tn_open(&o, &ctx));
    (void)unsetenv("TENON_ENGINE__WAIT_WARN_S");
    (void)unsetenv("MXNET_CPU_WORKER_NTHREADS");
    assert_ok(tn_ctx_option_count(ctx, &count));
    for (size_t i = 0; i < count; i++) {
        assert_ok(tn_ctx_option_at(ctx, i, &info));
        if (!strcmp(info.key, "engine.type"))
            seen |= info.origin == TN_ORIGIN_FILE && strstr(info.where, "tenon.ini:2") ? 1 : 0;
        else if (!strcmp(info.key, "engine.wait_warn_s"))
            seen |= info.origin == TN_ORIGIN_ENVIRONMENT && !strcmp(info.value, "7") ? 2 : 0;
        else if (!strcmp(info.key, "engine.workers"))
            seen |= info.origin == TN_ORIGIN_MXNET ? 4 : 0;
        else if (!strcmp(info.key, "train.lr"))
            seen |= info.origin == TN_ORIGIN_SET ? 8 : 0;
        else if (!strcmp(info.key, "kernel.dot@cpu"))
            seen |= !strcmp(info.value, "cpu") ? 16 : 0;
        else if (!strcmp(info.key, "train.wd"))
            seen |= info.origin == TN_ORIGIN_DEFAULT && info.help[0] ? 32 : 0;
    }
    assert_int_equal(seen, 63);
    assert_ok(tn_ctx_option_float(ctx, "train.lr", &lr));
    assert_true(lr == 0.25);
    assert_ok(tn_ctx_option_int(ctx, "engine.wait_warn_s", &number));
    assert_int_equal(number, 7);
    assert_ok(tn_ctx_log(ctx, TN_LOG_INFO, "not heard"));
    assert_int_equal(heard_times(&log, "not heard"), 0);
    assert_ok(tn_ctx_option_set(ctx, "log.level", "info"));
    assert_ok(tn_ctx_log(ctx, TN_LOG_INFO, "heard %s"));
    assert_int_equal(heard_times(&log, "2 heard %s\n"), 1);
    assert_ok(tn_close(ctx));
}

/* ./tenon.ini is read if asked for, and may not say where plugins lie. */
static void the_local_file_is_not_trusted(void **state)
{
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_SYSTEM | TN_OPEN_NO_ENVIRONMENT | TN_OPEN_LOCAL};
    char before[4096];
    tn_ctx *ctx = NULL;

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    scratch_write("tenon.ini", "[engine]\ntype = naive\n", 22);
    assert_int_equal(chdir(scratch_folder()), 0);
    assert_ok(tn_open(&o, &ctx));
    assert_string_equal(tn_ctx_option(ctx, "engine.type"), "naive");
    assert_ok(tn_close(ctx));
    scratch_write("tenon.ini", "[plugins]\npath = /tmp\n", 22);
    ctx = NULL;
    assert_fails(tn_open(&o, &ctx), TN_E_KEY);
    assert_null(ctx);
    o.flags &= ~TN_OPEN_LOCAL;
    assert_ok(tn_open(&o, &ctx));
    assert_ok(tn_close(ctx));
    assert_int_equal(chdir(before), 0);
}

static void seeds_are_live(void **state)
{
    tn_ctx *ctx = test_open(LIST("run.seed=5"));
    const char *const attrs[] = {"shape", "(4,)", NULL};
    uint64_t seed, position;
    tn_array *r[3];
    float v[3][4];

    (void)state;
    assert_ok(tn_random_save(ctx, NULL, &seed, &position));
    assert_true(seed == 5 && position == 0);
    r[0] = test_op(ctx, "_random_uniform", attrs, 0, NULL);
    assert_ok(tn_random_restore(ctx, NULL, seed, position));
    r[1] = test_op(ctx, "_random_uniform", attrs, 0, NULL);
    assert_ok(tn_ctx_option_set(ctx, "run.seed", "6"));
    r[2] = test_op(ctx, "_random_uniform", attrs, 0, NULL);
    for (int i = 0; i < 3; i++) {
        assert_ok(tn_array_read(r[i], v[i], sizeof v[i]));
        tn_array_release(r[i]);
    }
    assert_memory_equal(v[0], v[1], sizeof v[0]);
    assert_memory_not_equal(v[0], v[2], sizeof v[0]);
    test_close(ctx);
}

/* ---- own work
 * -------------------------------------------------------------------------------------------------- */

typedef struct counter {
    atomic_int runs, done, status;
    int value;
} counter;

static tn_status count_up(void *arg)
{
    counter *c = arg;

    c->value++; /* a write of its variable: one at a time */
    atomic_fetch_add(&c->runs, 1);
    return TN_OK;
}

static tn_status count_fails(void *arg)
{
    (void)arg;
    return TN_E_PEER;
}

static void count_done(void *arg, tn_status status)
{
    counter *c = arg;

    atomic_store(&c->status, status); /* the variables are free again: others may run by now */
    atomic_fetch_add(&c->done, 1);
}

static void work_is_ordered_by_variables(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    counter c = {0}, skipped = {0};
    tn_var *var = NULL;
    tn_task task = {
        .struct_size = TN_SIZE(tn_task), .run = count_up, .done = count_done, .arg = &c, .write_count = 1};
    char *text = NULL;

    (void)state;
    assert_ok(tn_var_create(ctx, &var));
    task.writes = &var;
    for (int i = 0; i < 1000; i++) {
        task.est_ns = i % 2 ? 100 : 0;
        assert_ok(tn_engine_push(ctx, &task));
    }
    assert_ok(tn_var_wait(ctx, var));
    assert_int_equal(c.value, 1000);
    task.run = count_fails;
    task.name = "the failing one";
    assert_ok(tn_engine_push(ctx, &task));
    task.run = count_up;
    task.arg = &skipped;
    task.reads = &var;
    task.read_count = 1;
    task.write_count = 0;
    assert_ok(tn_engine_push(ctx, &task));
    assert_fails(tn_var_wait(ctx, var), TN_E_PEER);
    assert_non_null(strstr(tn_error_text(), "the failing one"));
    (void)tn_wait_all(ctx);
    assert_int_equal(skipped.runs, 0);
    assert_int_equal(skipped.done, 1);
    assert_int_not_equal(skipped.status, TN_OK);
    assert_ok(tn_engine_dump(ctx, &text));
    tn_free(text);
    tn_var_destroy(ctx, var);
    assert_ok(tn_close(ctx));
}

typedef struct closer {
    tn_ctx *own, *other;
    tn_status st[4]; /* of own and other in `run`, then in `done` */
    atomic_bool over;
} closer;

static tn_status closer_run(void *arg)
{
    closer *c = arg;

    c->st[0] = tn_close(c->own);
    c->st[1] = strstr(tn_error_text(), "tn_close") ? tn_close(c->other) : TN_E_INTERNAL;
    return TN_OK;
}

static void closer_done(void *arg, tn_status status)
{
    closer *c = arg;

    (void)status;
    c->st[2] = tn_close(c->own);
    c->st[3] = tn_close(c->other);
    atomic_store(&c->over, true);
}

/* Closing waits for all work, also for the work that closes: on workers and, as short work, on the caller. */
static void callbacks_close_nothing(void **state)
{
    const char *const types[] = {"engine.type=threaded", "engine.type=naive"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        closer c = {.own = test_open(LIST(types[i / 2])), .other = test_open(NULL)};
        const tn_task task = {.struct_size = TN_SIZE(tn_task),
                              .run = closer_run,
                              .done = closer_done,
                              .arg = &c,
                              .est_ns = i % 2 ? 100 : 0};

        assert_ok(tn_engine_push(c.own, &task));
        assert_ok(tn_wait_all(c.own));
        assert_true(atomic_load(&c.over));
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(c.st[k], TN_E_STATE);
        test_use(c.own); /* both are open */
        test_use(c.other);
        test_close(c.own);
        test_close(c.other);
    }
}

/* An array's variable: work of the program between two operators. */
static tn_status double_it(void *arg)
{
    float *v = arg;

    for (int i = 0; i < 4; i++)
        v[i] *= 2;
    return TN_OK;
}

static void work_stands_between_operators(void **state)
{
    const float ones[] = {1, 1, 1, 1}, expected[] = {4, 4, 4, 4};
    tn_ctx *ctx = test_open(NULL);
    tn_array *a = test_array(ctx, 1, (int64_t[]){4}, ones), *b;
    tn_var *var = tn_array_var(a);
    tn_task task = {.struct_size = TN_SIZE(tn_task), .run = double_it, .writes = &var, .write_count = 1};

    (void)state;
    assert_ok(tn_array_data(a, &task.arg));
    assert_ok(tn_engine_push(ctx, &task));
    b = test_op(ctx, "elemwise_add", NULL, 2, (tn_array *[]){a, a});
    test_values(b, expected, 4, 0);
    tn_array_release(a);
    tn_array_release(b);
    test_close(ctx);
}

/* ---- serving
 * ------------------------------------------------------------------------------------------------------ */

#define SERVERS 8

typedef struct server {
    tn_ctx *ctx;
    tn_program *program;
    int index, wrong;
    pthread_t thread;
} server;

static void *serve(void *arg)
{
    server *s = arg;

    for (int round = 0; round < 50; round++) {
        float x[8], y[4];
        tn_array *in = NULL, *out = NULL;

        for (int i = 0; i < 8; i++)
            x[i] = (float)(s->index * 100 + round + i);
        s->wrong += tn_array_from(s->ctx, TN_F32, 2, (int64_t[]){2, 4}, x, &in) != TN_OK ||
                    tn_program_run(s->program, 1, &in, 1, &out) != TN_OK ||
                    tn_array_read(out, y, sizeof y) != TN_OK;
        for (int i = 0; i < 2 && out; i++)
            s->wrong +=
                y[i * 2] != x[i * 4] + x[i * 4 + 1] || y[i * 2 + 1] != x[i * 4 + 2] + x[i * 4 + 3] + 1;
        tn_array_release(in);
        tn_array_release(out);
    }
    return NULL;
}

static tn_program *pairs_program(tn_ctx *ctx)
{
    const float weight[] = {1, 1, 0, 0, 0, 0, 1, 1}, bias[] = {0, 1};
    tn_symbol *data = NULL, *net = NULL;
    tn_array *w = test_array(ctx, 2, (int64_t[]){2, 4}, weight),
             *b = test_array(ctx, 1, (int64_t[]){2}, bias);
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = "FullyConnected",
                                 .name = "fc",
                                 .attrs = LIST("num_hidden", "2"),
                                 .in = &data};
    tn_program *p = NULL;
    tn_params *params = NULL;

    assert_ok(tn_symbol_variable(ctx, "data", &data));
    assert_ok(tn_symbol_op(ctx, &call, &net));
    assert_ok(tn_params_create(&params));
    assert_ok(tn_params_add(params, "arg:fc_weight", w));
    assert_ok(tn_params_add(params, "fc_bias", b));
    assert_ok(tn_program_create(ctx, net, params, &p));
    tn_params_destroy(params);
    tn_symbol_release(data);
    tn_symbol_release(net);
    tn_array_release(w);
    tn_array_release(b);
    return p;
}

static void one_program_serves_many_threads(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    server s[SERVERS];
    tn_program *p = pairs_program(ctx);
    uint64_t planned, bound;

    (void)state;
    tn_record_set(1); /* a run neither records nor trains, and leaves the thread as it was */
    for (int i = 0; i < SERVERS; i++) {
        s[i] = (server){.ctx = ctx, .program = p, .index = i};
        assert_int_equal(pthread_create(&s[i].thread, NULL, serve, &s[i]), 0);
    }
    serve(&(server){.ctx = ctx, .program = p, .index = 9});
    assert_int_equal(tn_record_set(0), 1);
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(pthread_join(s[i].thread, NULL), 0);
        assert_int_equal(s[i].wrong, 0);
    }
    assert_ok(tn_program_memory(p, &planned, &bound));
    tn_program_destroy(p);
    test_close(ctx);
}

/* A label that nobody has at inference: zeros of the shape that follows. */
static void absent_inputs_are_zeros(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *data = NULL, *net = NULL;
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = "SoftmaxOutput",
                                 .name = "softmax",
                                 .in = &data};
    const float x[] = {1, 1, 3, 3}, expected[] = {0.5f, 0.5f, 0.5f, 0.5f};
    tn_array *in[2] = {test_array(ctx, 2, (int64_t[]){2, 2}, x), NULL}, *out = NULL;
    tn_program *p = NULL;
    tn_params *none = NULL;

    (void)state;
    assert_ok(tn_symbol_variable(ctx, "data", &data));
    assert_ok(tn_symbol_op(ctx, &call, &net));
    assert_ok(tn_params_create(&none));
    assert_ok(tn_program_create(ctx, net, none, &p));
    assert_int_equal(tn_program_input_count(p), 2);
    assert_string_equal(tn_program_input(p, 1), "softmax_label");
    assert_ok(tn_program_run(p, 2, in, 1, &out));
    test_values(out, expected, 4, 1e-6f);
    tn_array_release(in[0]);
    tn_array_release(out);
    tn_program_destroy(p);
    tn_params_destroy(none);
    tn_symbol_release(data);
    tn_symbol_release(net);
    test_close(ctx);
}

/* ---- memory of others
 * ------------------------------------------------------------------------------------------- */

static void mark(void *arg)
{
    *(int *)arg += 1;
}

static void memory_is_borrowed_and_lent(void **state)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    const float transposed[] = {1, 4, 2, 5, 3, 6}, doubled[] = {2, 4, 6, 8, 10, 12};
    struct DLManagedTensorVersioned *lent = NULL;
    struct DLManagedTensor *legacy = NULL;
    tn_ctx *ctx = test_open(NULL);
    int released = 0;
    tn_array_memory m = {.struct_size = TN_SIZE(tn_array_memory),
                         .dtype = TN_F32,
                         .ndim = 2,
                         .shape = (int64_t[]){3, 2},
                         .stride = (int64_t[]){1, 3},
                         .data = data,
                         .bytes = sizeof data,
                         .release = mark,
                         .arg = &released};
    tn_array *a = NULL, *b = NULL, *c = NULL, *sum;
    const int64_t *stride;

    (void)state;
    assert_ok(tn_array_wrap(ctx, &m, &a));
    test_values(a, transposed, 6, 0);
    assert_ok(tn_array_stride(a, &stride));
    assert_int_equal(stride[1], 3);
    m.stride = NULL;
    m.shape = (int64_t[]){2, 3};
    assert_ok(tn_array_wrap(ctx, &m, &b));
    assert_ok(tn_array_to_dlpack(b, 0, &lent));
    assert_ok(tn_array_from_dlpack(ctx, lent, &c));
    sum = test_op(ctx, "elemwise_add", NULL, 2, (tn_array *[]){b, c});
    test_values(sum, doubled, 6, 0);
    assert_fails(tn_array_fill(c, 1), TN_E_STATE);
    tn_array_release(c);
    assert_ok(tn_array_to_dlpack_legacy(b, &legacy));
    assert_ok(tn_array_from_dlpack_legacy(ctx, legacy, &c));
    assert_ok(tn_wait_all(ctx));
    tn_array_release(a);
    tn_array_release(b);
    assert_int_equal(released, 1); /* c still looks at it */
    tn_array_release(c);
    tn_array_release(sum);
    assert_ok(tn_wait_all(ctx));
    assert_int_equal(released, 2);
    test_close(ctx);
}

static void arrays_are_cast_viewed_and_kept(void **state)
{
    const float values[] = {1.5f, -2.5f, 3, 4, 5, 6}, row[] = {4, 5, 6};
    tn_ctx *ctx = test_open(NULL);
    tn_array *a = test_array(ctx, 2, (int64_t[]){2, 3}, values), *b = NULL, *c = NULL, *d = NULL;
    const tn_device *cpu1 = NULL;
    double x;

    (void)state;
    assert_ok(tn_array_cast(ctx, a, TN_I32, &b));
    assert_ok(tn_array_at(a, -1, &c));
    test_values(c, row, 3, 0);
    tn_array_release(c);
    c = NULL;
    assert_ok(tn_array_slice(b, 0, -1, &c));
    assert_int_equal(tn_array_count(c), 3);
    assert_int_equal(tn_array_bytes(c), 12);
    assert_ok(tn_array_view(b, 1, 0, NULL, NULL, &d));
    assert_ok(tn_array_scalar(d, &x));
    assert_true(x == -2);
    tn_array_release(d);
    d = NULL;
    assert_ok(tn_device_get(ctx, "cpu:1", &cpu1));
    assert_ok(tn_array_to(ctx, a, cpu1, &d));
    assert_int_equal(tn_device_index(tn_array_device(d)), 1);
    test_values(d, values, 6, 0);
    tn_array_release(d);
    d = NULL;
    assert_null(tn_device_use(cpu1));
    assert_ok(tn_array_zeros(ctx, TN_F16, 0, NULL, NULL, &d));
    assert_ptr_equal(tn_array_device(d), cpu1);
    assert_ptr_equal(tn_device_use(NULL), cpu1);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(c);
    tn_array_release(d);
    test_close(ctx);
}

/* ---- own operators
 * ------------------------------------------------------------------------------------------------ */

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status plus_one_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->est_ns = 20;
    return TN_OK;
}

static tn_status plus_one_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->out[0]); i++)
        out[i] = in[i] + 1;
    return TN_OK;
}

static const char *const data_name[] = {"data", NULL}, *const output_name[] = {"output", NULL};
static const char *const float_types[] = {"*:f32", NULL};
static const tn_op plus_one = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                               .version = 1,
                               .name = "test_plus_one",
                               .doc = "data + 1.",
                               .inputs = data_name,
                               .outputs = output_name,
                               .flags = TN_OP_POINTWISE,
                               .shape = same_shape};
static const tn_kernel plus_one_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                          .rank = 64,
                                          .op = "test_plus_one",
                                          .name = "test_plus_one.loop",
                                          .device = "cpu",
                                          .isa = "",
                                          .op_version_min = 1,
                                          .op_version_max = 1,
                                          .flags = TN_KERNEL_DETERMINISTIC,
                                          .types = float_types,
                                          .prepare = plus_one_prepare,
                                          .run = plus_one_run};
static const tn_kernel *const kernels[] = {&plus_one_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};
static const tn_capability *const capabilities[] = {&kernel_table.head, NULL};
static const tn_plugin in_program = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                     .magic = TN_MAGIC,
                                     .abi_major = TN_ABI_MAJOR,
                                     .abi_minor = TN_ABI_TARGET,
                                     .abi_minor_min = TN_ABI_MIN,
                                     .name = "in-program",
                                     .version = "1.0.0",
                                     .vendor = "test",
                                     .license = "Apache-2.0",
                                     .summary = "kernels of the program",
                                     .capabilities = capabilities};

static void programs_bring_operators(void **state)
{
    const float zeros[] = {0, 0, 0}, ones[] = {1, 1, 1}, three[] = {3, 3, 3};
    tn_ctx *ctx = test_open(NULL);
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    tn_plugin_info plugin = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_array *a = test_array(ctx, 1, (int64_t[]){3}, zeros), *b, *out = NULL;
    tn_symbol *s = NULL, *next;
    tn_cached_op *op = NULL;
    char *json = NULL;
    bool found = false;
    size_t count;

    (void)state;
    assert_ok(tn_op_register(ctx, &plus_one));
    assert_ok(tn_op_find(ctx, "test_plus_one", &info));
    assert_string_equal(info.plugin, "");
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .op = "test_plus_one", .in_count = 1, .in = &a};
    assert_fails(tn_invoke_text(ctx, &call, 1, &out, NULL), TN_E_UNSUPPORTED); /* no kernel yet */
    assert_ok(tn_plugin_add(ctx, &in_program));
    assert_fails(tn_plugin_add(ctx, &in_program), TN_E_KEY);
    assert_ok(tn_plugin_count(ctx, &count));
    for (size_t i = 0; i < count; i++) {
        assert_ok(tn_plugin_at(ctx, i, &plugin));
        found |= !strcmp(plugin.name, "in-program") && plugin.state == TN_PLUGIN_LOADED;
    }
    assert_true(found);
    b = test_op(ctx, "test_plus_one", NULL, 1, &a);
    test_values(b, ones, 3, 0);
    assert_ok(tn_symbol_variable(ctx, "x", &s));
    for (int i = 0; i < 3; i++) {
        const tn_symbol_call node = {
            .struct_size = TN_SIZE(tn_symbol_call), .op = "test_plus_one", .in_count = 1, .in = &s};

        assert_ok(tn_symbol_op(ctx, &node, &next));
        tn_symbol_release(s);
        s = next;
    }
    assert_ok(tn_symbol_to_json(s, &json));
    assert_ok(tn_symbol_from_json(ctx, json, strlen(json), &next));
    assert_ok(tn_cached_op_create(ctx, next, NULL, &op));
    assert_ok(tn_cached_op_call(op, 1, &a, 1, &out));
    test_values(out, three, 3, 0);
    tn_free(json);
    tn_cached_op_release(op);
    tn_symbol_release(s);
    tn_symbol_release(next);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(out);
    test_close(ctx);
}

/* ---- memory, trace, data
 * -------------------------------------------------------------------------------------------- */

static void counters_tell(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_memory_stats m = {.struct_size = TN_SIZE(tn_memory_stats)};
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};
    tn_array *a = NULL;
    char *json = NULL, *path = NULL;
    int32_t available = 0;
    size_t devices;

    (void)state;
    assert_ok(tn_trace_start(1024));
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){1 << 20}, NULL, &a));
    assert_ok(tn_array_wait(a));
    tn_trace_stop();
    assert_ok(tn_trace_json(&json));
    assert_int_equal(json[0], '{');
    tn_free(json);
    assert_ok(tn_device_memory(ctx, NULL, TN_MEMORY_DEVICE, &m));
    assert_true(m.live >= 4u << 20 && m.peak >= m.live);
    tn_array_release(a);
    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_device_trim(ctx, NULL, 0));
    assert_ok(tn_device_memory(ctx, NULL, TN_MEMORY_DEVICE, &m));
    assert_true(m.live < 4u << 20);
    assert_ok(tn_device_available(ctx, "cpu", &available));
    assert_true(available >= 1);
    assert_ok(tn_device_count(ctx, &devices));
    assert_true(devices >= 1);
    assert_ok(tn_ctx_stats(ctx, &stats));
    assert_true(stats.done == stats.pushed && stats.threads >= 1 && stats.arrays == 0);
    assert_ok(tn_data_find(ctx, scratch_folder(), &path));
    assert_string_equal(path, scratch_folder());
    tn_free(path);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_leave_nothing),          cmocka_unit_test(late_releases),
        cmocka_unit_test(two_contexts_live_apart),         cmocka_unit_test(options_have_an_origin),
        cmocka_unit_test(the_local_file_is_not_trusted),   cmocka_unit_test(seeds_are_live),
        cmocka_unit_test(work_is_ordered_by_variables),    cmocka_unit_test(work_stands_between_operators),
        cmocka_unit_test(one_program_serves_many_threads), cmocka_unit_test(absent_inputs_are_zeros),
        cmocka_unit_test(memory_is_borrowed_and_lent),     cmocka_unit_test(arrays_are_cast_viewed_and_kept),
        cmocka_unit_test(programs_bring_operators),        cmocka_unit_test(counters_tell),
        cmocka_unit_test(callbacks_close_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
