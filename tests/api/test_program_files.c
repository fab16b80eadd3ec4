/*
 * Programs loaded from files: weights that reach packed ones alone leave memory, and are read again from
 * their file for inputs of another shape. What happens to the file meanwhile changes no result: a new file of
 * that name is another one, one that was changed in place is an error of the run that needs it.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "api/support.h"
#include "support/scratch.h"

enum { CHANNELS = 64, WEIGHTS = CHANNELS * CHANNELS * 9, SIDE = 6, SHAPES = 4, THREADS = 4, ROUNDS = 6 };
#define WEIGHT_BYTES (WEIGHTS * sizeof(float))

/* BatchNorm goes into the weight, which nobody reads then. Dilated: no kernel packs it in a form of more bytes. */
#define NET                                                                                                  \
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []}, "                                  \
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []}, "                                                  \
    "{\"op\": \"Convolution\", \"name\": \"conv\", \"attrs\": {\"kernel\": \"(3, 3)\", \"pad\": \"(2, "      \
    "2)\", \"dilate\": \"(2, 2)\", "                                                                         \
    "\"num_filter\": \"64\", \"no_bias\": \"True\"}, \"inputs\": [[0, 0, 0], [1, 0, 0]]}, "                  \
    "{\"op\": \"null\", \"name\": \"gamma\", \"inputs\": []}, "                                              \
    "{\"op\": \"null\", \"name\": \"beta\", \"inputs\": []}, "                                               \
    "{\"op\": \"null\", \"name\": \"mean\", \"inputs\": []}, "                                               \
    "{\"op\": \"null\", \"name\": \"var\", \"inputs\": []}, "                                                \
    "{\"op\": \"BatchNorm\", \"name\": \"bn\", \"attrs\": {\"fix_gamma\": \"False\"}, "                      \
    "\"inputs\": [[2, 0, 0], [3, 0, 0], [4, 0, 0], [5, 0, 1], [6, 0, 1]]}], "                                \
    "\"arg_nodes\": [0, 1, 3, 4, 5, 6], \"heads\": [[7, 0, 0]], "                                            \
    "\"attrs\": {\"mxnet_version\": [\"int\", 10901]}}"

typedef struct files {
    tn_ctx *ctx;
    char symbol[SCRATCH_PATH_BYTES], params[SCRATCH_PATH_BYTES];
    tn_program *program; /* of the files */
} files;

/* Saves the net's parameters; returns them. */
static tn_params *params_write(tn_ctx *ctx, const char *path, float scale)
{
    static const char *const names[] = {"arg:w", "arg:gamma", "arg:beta", "aux:mean", "aux:var"};
    static float values[WEIGHTS];
    tn_params *p = NULL;

    assert_ok(tn_params_create(&p));
    for (size_t i = 0; i < 5; i++) {
        tn_array *a;

        for (size_t k = 0; k < (i ? CHANNELS : WEIGHTS); k++)
            values[k] = i ? 1 + (float)((k + i) % 7) / 8 : scale * ((float)(k * 37 % 101) / 50 - 1);
        a = i ? test_array(ctx, 1, (int64_t[]){CHANNELS}, values)
              : test_array(ctx, 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, values);
        assert_ok(tn_params_add(p, names[i], a));
        tn_array_release(a);
    }
    assert_ok(tn_params_save(p, path));
    return p;
}

static files files_open(void)
{
    files f = {.ctx = test_open((const char *const[]){"compile.passes_off=", NULL})};

    (void)snprintf(f.symbol, sizeof f.symbol, "%s", scratch_write("held-symbol.json", NET, sizeof NET - 1));
    (void)snprintf(f.params, sizeof f.params, "%s", scratch_path("held.params"));
    tn_params_destroy(params_write(f.ctx, f.params, 1));
    assert_ok(tn_program_load(f.ctx, f.symbol, f.params, NULL, &f.program));
    return f;
}

static void files_close(files *f)
{
    tn_program_destroy(f->program);
    test_close(f->ctx);
}

static tn_status run(tn_ctx *ctx, tn_program *p, int64_t batch, float *out)
{
    const int64_t shape[] = {batch, CHANNELS, SIDE, SIDE};
    const size_t count = (size_t)batch * CHANNELS * SIDE * SIDE;
    float *values = malloc(count * sizeof *values);
    tn_array *x = NULL, *y = NULL;
    tn_status st;

    for (size_t i = 0; i < count; i++)
        values[i] = (float)(i * 29 % 83) / 40 - 1;
    if (!(st = tn_array_from(ctx, TN_F32, 4, shape, values, &x)) && !(st = tn_program_run(p, 1, &x, 1, &y)))
        st = tn_array_read(y, out, count * sizeof *out);
    tn_array_release(x);
    tn_array_release(y);
    free(values);
    return st;
}

static uint64_t live(tn_ctx *ctx)
{
    tn_memory_stats s = {.struct_size = TN_SIZE(tn_memory_stats)};

    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_device_memory(ctx, NULL, TN_MEMORY_DEVICE, &s));
    return s.live;
}

static float got[SHAPES * CHANNELS * SIDE * SIDE], want[SHAPES * CHANNELS * SIDE * SIDE];

/* What the same net gives whose weights stay. */
static void wanted(files *f, int64_t batch, float *out)
{
    tn_symbol *symbol = NULL;
    tn_params *params = params_write(f->ctx, scratch_path("stay.params"), 1);
    tn_program *p = NULL;

    assert_ok(tn_symbol_load(f->ctx, f->symbol, &symbol));
    assert_ok(tn_program_create(f->ctx, symbol, params, &p));
    assert_ok(run(f->ctx, p, batch, out));
    tn_program_destroy(p);
    tn_params_destroy(params);
    tn_symbol_release(symbol);
}

static void expect(files *f, int64_t batch)
{
    const size_t bytes = (size_t)batch * CHANNELS * SIDE * SIDE * sizeof *got;

    wanted(f, batch, want);
    assert_ok(run(f->ctx, f->program, batch, got));
    assert_memory_equal(got, want, bytes);
}

/* The folded weight takes the place of the one that was read. */
static void weights_leave(void **state)
{
    files f = files_open();
    uint64_t loaded = live(f.ctx), served;

    (void)state;
    assert_ok(run(f.ctx, f.program, 1, got));
    served = live(f.ctx);
    assert_true(served < loaded + WEIGHT_BYTES / 2);
    tn_program_destroy(f.program);
    f.program = NULL;
    assert_true(live(f.ctx) + WEIGHT_BYTES <= served); /* the folded one */
    assert_ok(tn_program_load(f.ctx, f.symbol, f.params, NULL, &f.program));
    for (int64_t batch = 1; batch <= SHAPES; batch++) {
        expect(&f, batch);
        expect(&f, 1);
    }
    files_close(&f);
}

static void file_removed(void **state)
{
    files f = files_open();

    (void)state;
    expect(&f, 1);
    assert_int_equal(unlink(f.params), 0);
    expect(&f, 2);
    files_close(&f);
}

static void file_replaced(void **state)
{
    files f = files_open();

    (void)state;
    expect(&f, 1);
    tn_params_destroy(params_write(f.ctx, f.params, 3));
    expect(&f, 2);
    files_close(&f);
}

/* Turns a byte of the weight over. */
static void byte_turn(const char *path)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, WEIGHT_BYTES / 2, SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, WEIGHT_BYTES / 2, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 0x55, file), byte ^ 0x55);
    assert_int_equal(fclose(file), 0);
}

static void failing(files *f, int64_t batch)
{
    assert_fails(run(f->ctx, f->program, batch, got), TN_E_IO);
    assert_non_null(strstr(tn_error_text(), f->params));
    assert_non_null(strstr(tn_error_text(), "changed"));
    (void)tn_wait_all(f->ctx);
}

/* Shapes that were served still are; another one is again when the file is what it was. */
static void file_changed(void **state)
{
    files f = files_open();

    (void)state;
    expect(&f, 1);
    byte_turn(f.params);
    failing(&f, 2);
    failing(&f, 2);
    expect(&f, 1);
    byte_turn(f.params);
    expect(&f, 2);
    tn_program_destroy(f.program);
    assert_ok(tn_close(f.ctx));
}

static void file_cut(void **state)
{
    files f = files_open();

    (void)state;
    expect(&f, 1);
    assert_int_equal(truncate(f.params, WEIGHT_BYTES / 2), 0);
    failing(&f, 2);
    expect(&f, 1);
    tn_program_destroy(f.program);
    assert_ok(tn_close(f.ctx));
}

typedef struct caller {
    files *f;
    pthread_t thread;
    uint32_t number;
    const float *want[SHAPES]; /* per batch, from 1 */
    tn_status status;
    bool same;
} caller;

static void *call_on(void *arg)
{
    caller *c = arg;
    float *out = malloc(sizeof got);

    c->same = true;
    for (uint32_t i = 0; i < ROUNDS && !c->status; i++) {
        const int64_t batch = 1 + (c->number + i) % SHAPES;

        if (!(c->status = run(c->f->ctx, c->f->program, batch, out)))
            c->same &= !memcmp(out, c->want[batch - 1], (size_t)batch * CHANNELS * SIDE * SIDE * sizeof *out);
    }
    free(out);
    return NULL;
}

/* Several callers begin with different shapes: some read the weight while others are through with it. */
static void many_threads(void **state)
{
    files f = files_open();
    caller callers[THREADS] = {{.f = NULL}};
    float *all[SHAPES];

    (void)state;
    for (int64_t batch = 1; batch <= SHAPES; batch++)
        wanted(&f, batch, all[batch - 1] = malloc(sizeof got));
    for (uint32_t i = 0; i < THREADS; i++) {
        callers[i] = (caller){.f = &f, .number = i};
        memcpy(callers[i].want, all, sizeof all);
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_on, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].status, TN_OK);
        assert_true(callers[i].same);
    }
    for (size_t i = 0; i < SHAPES; i++)
        free(all[i]);
    files_close(&f);
}

static void twice_from_one_file(void **state)
{
    files f = files_open();
    tn_program *other = NULL;

    (void)state;
    expect(&f, 1);
    assert_ok(tn_program_load(f.ctx, f.symbol, f.params, NULL, &other));
    assert_ok(run(f.ctx, other, 2, got));
    tn_program_destroy(f.program);
    f.program = other;
    expect(&f, 3);
    files_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_leave),
        cmocka_unit_test(file_removed),
        cmocka_unit_test(file_replaced),
        cmocka_unit_test(file_changed),
        cmocka_unit_test(file_cut),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(twice_from_one_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
