/*
 * Steps of optimizers over many weights, on the emulated GPU: the bits of steps over one weight at a time, in
 * few launches. The weights are as many as ResNet-18 has. The program is its own child, which has the double
 * of the driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/must.h"
#include "tenon/tenon.h"

#define WEIGHTS 62 /* of ResNet-18: convolutions, gammas and betas, the classifier */
#define EACH_LAUNCH 42
#define LAUNCHES ((WEIGHTS + EACH_LAUNCH - 1) / EACH_LAUNCH)
#define ARRAYS_MAX (WEIGHTS * 5 + 2)
#define TEXT_MAX 2048

/* An operator of many weights, and that of one; NULL: the same with lists of one. The lists are named as the
 * operator names them; `tail`: arrays behind those of the weights, with a number for each weight or one. */
typedef struct form {
    const char *many, *one, *count;
    const char *lists[4], *singles[4]; /* what the other operator calls the same */
    const char *numbers[8];
    uint32_t states, mixed, tail, launches; /* launches: for EACH_LAUNCH weights */
    int32_t dtype;
} form;

#define RATES .lists = {"lrs", "wds"}, .singles = {"lr", "wd"}
#define ETAS .lists = {"lrs", "wds", "etas"}, .singles = {"lr", "wd", "eta"}
#define LAMBS                                                                                                \
    .lists = {"learning_rates", "wds", "step_count"}, .singles = {"learning_rates", "wds", "step_count"}
#define SGD_NUMBERS .numbers = {"rescale_grad", "0.5", "clip_gradient", "0.75"}
#define MOM_NUMBERS .numbers = {"rescale_grad", "0.5", "clip_gradient", "0.75", "momentum", "0.9"}
#define COUNT .count = "num_weights"

static const form forms[] = {
    {"multi_sgd_update", "sgd_update", COUNT, RATES, SGD_NUMBERS, 0, 0, 0, 1, TN_F32},
    {"multi_sgd_update", "sgd_update", COUNT, RATES, SGD_NUMBERS, 0, 0, 0, 1, TN_BF16},
    {"multi_sgd_mom_update", "sgd_mom_update", COUNT, RATES, MOM_NUMBERS, 1, 0, 0, 1, TN_F32},
    {"multi_sgd_mom_update", "sgd_mom_update", COUNT, RATES, MOM_NUMBERS, 1, 0, 0, 1, TN_F64},
    {"multi_mp_sgd_update", "mp_sgd_update", COUNT, RATES, SGD_NUMBERS, 0, 1, 0, 1, TN_F16},
    {"multi_mp_sgd_mom_update", "mp_sgd_mom_update", COUNT, RATES, MOM_NUMBERS, 1, 1, 0, 1, TN_BF16},
    {"preloaded_multi_sgd_update", "sgd_update", COUNT, RATES, SGD_NUMBERS, 0, 0, 2, 1, TN_F16},
    {"preloaded_multi_sgd_mom_update", "sgd_mom_update", COUNT, RATES, MOM_NUMBERS, 1, 0, 2, 1, TN_F32},
    {"preloaded_multi_mp_sgd_update", "mp_sgd_update", COUNT, RATES, SGD_NUMBERS, 0, 1, 2, 1, TN_F16},
    {"preloaded_multi_mp_sgd_mom_update", "mp_sgd_mom_update", COUNT, RATES, MOM_NUMBERS, 1, 1, 2, 1,
     TN_BF16},
    {"_multi_adamw_update", "_adamw_update", COUNT, ETAS, .states = 2, .tail = 1, .launches = 1},
    {"_multi_mp_adamw_update", "_mp_adamw_update", COUNT, ETAS, .states = 2, .mixed = 1, .tail = 1,
     .launches = 1, .dtype = TN_F16},
    {"_multi_lamb_update", NULL, .count = "num_tensors", LAMBS, .states = 2, .launches = 3},
    {"_multi_mp_lamb_update", NULL, .count = "num_tensors", LAMBS, .states = 2, .mixed = 1, .launches = 3,
     .dtype = TN_BF16},
};
#define FORMS (sizeof forms / sizeof *forms)

/* ---- in the child -------------------------------------------------------------------------------------- */

typedef struct sweep {
    tn_ctx *ctx;
    const form *f;
    uint32_t each;                /* arrays of a weight: weight, gradient, states */
    tn_array *arrays[ARRAYS_MAX]; /* of all weights, then the tail */
} sweep;

static int64_t size_of(uint32_t weight)
{
    static const int64_t sizes[] = {64, 4097, 1, 8192, 300, 4096, 7, 9001, 0, 33};

    return sizes[weight % (sizeof sizes / sizeof *sizes)];
}

/* Numbers that float32 has; steps of LAMB are whole. */
static double number_of(const form *f, int list, uint32_t weight)
{
    if (list == 0)
        return 0.125 * (1 + weight % 3);
    return list == 1 ? 0.25 * (weight % 2) : f->one ? 0.5 + weight % 2 : 1 + weight % 5;
}

static tn_array *array_make(tn_ctx *ctx, int32_t dtype, int64_t count, const float *values)
{
    tn_array *single = NULL, *out = NULL;

    MUST(tn_array_from(ctx, TN_F32, 1, &count, values, &single));
    if (dtype == TN_F32)
        return single;
    MUST(tn_array_cast(ctx, single, dtype, &out));
    tn_array_release(single);
    return out;
}

/* States are no less than 0: of some a root is taken. */
static void arrays_make(sweep *s)
{
    const form *f = s->f;
    static float values[10000];

    for (uint32_t i = 0; i < WEIGHTS * s->each; i++) {
        const uint32_t role = i % s->each;
        const int32_t dtype = role < 2 || !f->mixed ? f->dtype : TN_F32;
        const int64_t count = size_of(i / s->each);

        for (int64_t k = 0; k < count; k++)
            values[k] = (float)((k * 37 + i * 11) % 101 - (role < 2 ? 50 : 0)) / 64;
        s->arrays[i] = array_make(s->ctx, dtype, count, values);
    }
    for (uint32_t list = 0; list < f->tail; list++) {
        for (uint32_t w = 0; w < WEIGHTS; w++)
            values[w] = f->tail == 1 ? 0.5F : (float)number_of(f, (int)list, w);
        s->arrays[WEIGHTS * s->each + list] = array_make(s->ctx, f->tail == 2 || f->mixed ? TN_F32 : f->dtype,
                                                         f->tail == 1 ? 1 : WEIGHTS, values);
    }
}

/* Attributes of a call over `count` weights from `first` on, by lists or not. */
static void attrs_make(const form *f, uint32_t first, uint32_t count, bool listed, const char **out,
                       char text[5][TEXT_MAX])
{
    size_t n = 0;

    for (size_t k = 0; k < 8 && f->numbers[k]; k++)
        out[n++] = f->numbers[k];
    for (int list = 0; list < 4 && f->lists[list] && !(listed && f->tail == 2); list++) {
        size_t at = 0;

        for (uint32_t w = first; w < first + count; w++)
            at += (size_t)snprintf(text[list] + at, TEXT_MAX - at, "%s%g",
                                   !listed     ? ""
                                   : w > first ? ","
                                               : "(",
                                   number_of(f, list, w));
        if (listed)
            (void)snprintf(text[list] + at, TEXT_MAX - at, ",)");
        out[n++] = listed ? f->lists[list] : f->singles[list];
        out[n++] = text[list];
    }
    if (listed) {
        (void)snprintf(text[4], TEXT_MAX, "%u", (unsigned)count);
        out[n++] = f->count;
        out[n++] = text[4];
    }
    out[n] = NULL;
}

static void step(sweep *s, uint32_t first, uint32_t count, bool listed)
{
    static char text[5][TEXT_MAX];
    const char *attrs[24];
    tn_array *in[ARRAYS_MAX], *out[WEIGHTS];
    uint32_t n = count * s->each;
    tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .op = listed ? s->f->many : s->f->one, .attrs = attrs, .in = in};

    attrs_make(s->f, first, count, listed, attrs, text);
    memcpy(in, s->arrays + first * s->each, n * sizeof *in);
    for (uint32_t w = 0; w < count; w++)
        out[w] = in[w * s->each];
    for (uint32_t k = 0; k < (listed || s->f->tail == 1 ? s->f->tail : 0); k++)
        in[n++] = s->arrays[WEIGHTS * s->each + k];
    call.in_count = n;
    MUST(tn_invoke_text(s->ctx, &call, count, out, NULL));
}

static void told(sweep *s)
{
    static char bytes[10000 * 8];
    uint64_t h = 14695981039346656037u;

    for (uint32_t i = 0; i < WEIGHTS * s->each; i++) {
        const uint64_t size = tn_array_bytes(s->arrays[i]);

        MUST(tn_array_read(s->arrays[i], bytes, size));
        for (uint64_t k = 0; k < size; k++)
            h = (h ^ (unsigned char)bytes[k]) * 1099511628211u;
    }
    printf("bits %016llx\n", (unsigned long long)h);
}

/* child FORM STEPS many|one|host */
static int child(char **argv)
{
    const char *how = argv[3];
    char plugins[4200];
    const char *settings[] = {plugins, strcmp(how, "host") ? "device.default=cuda:0" : "device.default=cpu:0",
                              NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    static sweep s;

    s.f = &forms[strtoul(argv[1], NULL, 10) % FORMS];
    s.each = 2 + s.f->states + s.f->mixed;
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    MUST(tn_open(&o, &s.ctx));
    arrays_make(&s);
    for (long steps = strtol(argv[2], NULL, 10); steps > 0; steps--)
        for (uint32_t w = 0; w < WEIGHTS; w += strcmp(how, "one") ? WEIGHTS : 1)
            step(&s, w, strcmp(how, "one") ? WEIGHTS : 1, strcmp(how, "one") || !s.f->one);
    told(&s);
    for (uint32_t i = 0; i < ARRAYS_MAX; i++)
        tn_array_release(s.arrays[i]);
    MUST(tn_close(s.ctx));
    return 0;
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

static char self[4096];

/* What the steps make, and how many kernels were launched in all. */
static int swept(size_t f, int steps, const char *how, char bits[32])
{
    char command[4600];
    const said *s;
    const char *at, *count;

    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d); trap 'rm -r $D' EXIT; export TNEMU_COUNTS=$D/counts; '%s' %zu %d %s && "
                   "grep cuLaunchKernel $D/counts",
                   self, f, steps, how);
    s = cuda_say("TNEMU_DELAY_US=0", command);
    at = strstr(s->out, "bits ");
    count = strstr(s->out, "cuLaunchKernel ");
    if (s->code || !at || !count)
        fail_msg("%s %s: ends with %d:\n%s", forms[f].many, how, s->code, s->out);
    (void)snprintf(bits, 32, "%.*s", (int)strcspn(at, "\n"), at);
    return atoi(count + strlen("cuLaunchKernel "));
}

static void many_at_once(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMS; f++) {
        char many[32], one[32], again[32];
        const int launches = swept(f, 2, "many", many), fewer = swept(f, 1, "many", again);

        (void)swept(f, 2, "one", one);
        if (strcmp(many, one) != 0)
            fail_msg("%s: %s, of one at a time %s", forms[f].many, many, one);
        assert_string_not_equal(many, again);
        assert_int_equal(launches - fewer, (int)forms[f].launches * LAUNCHES);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_at_once)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 3)
        return child(argv);
    cuda_setup();
    return cmocka_run_group_tests_name("update", tests, NULL, NULL);
}
