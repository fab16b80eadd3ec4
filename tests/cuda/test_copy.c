/*
 * Copies on the emulated GPU: large ones without gaps are the driver's, all others a kernel's; the elements
 * are the same. The program is its own child, which has the double of the driver.
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

#define COUNT 262145 /* 1 MiB of float32, and an element */

static const struct row {
    const char *what, *op;
    int64_t count;
    const char *attr, *value;
    bool driven;
} rows[] = {
    {"1 MiB", "_copy", COUNT - 1, NULL, NULL, true},
    {"more", "_copy", COUNT, NULL, NULL, true},
    {"less", "_copy", COUNT - 2, NULL, NULL, false},
    {"a cast to the same type", "Cast", COUNT, "dtype", "float32", true},
    {"a cast to another type", "Cast", COUNT, "dtype", "float64", false},
    {"a broadcast", "broadcast_to", 1, "shape", "(262145,)", false},
};
#define ROWS (sizeof rows / sizeof *rows)

/* ---- in the child -------------------------------------------------------------------------------------- */

static void look(tn_ctx *ctx, tn_array *out, const float *values, int64_t step)
{
    static float got[COUNT];
    tn_array *single = NULL;
    const int64_t count = (int64_t)tn_array_count(out);

    MUST(tn_array_cast(ctx, out, TN_F32, &single));
    MUST(tn_array_read(single, got, (uint64_t)count * sizeof *got));
    tn_array_release(single);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != values[i * step]) {
            printf("element %lld is %g, not %g\n", (long long)i, got[i], values[i * step]);
            exit(1);
        }
}

/* child ROW STEPS */
static int child(char **argv)
{
    const struct row *r = &rows[strtoul(argv[1], NULL, 10) % ROWS];
    const char *attrs[] = {r->attr, r->value, NULL};
    char plugins[4200];
    const char *settings[] = {plugins, "device.default=cuda:0", NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    static float values[COUNT];
    tn_array *in = NULL, *out = NULL;
    tn_site *site = NULL;
    tn_ctx *ctx;

    for (int64_t i = 0; i < COUNT; i++)
        values[i] = (float)(i % 1009) / 8;
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    MUST(tn_open(&o, &ctx));
    MUST(tn_array_from(ctx, TN_F32, 1, &r->count, values, &in));
    MUST(tn_site_create(ctx, r->op, attrs, &site));
    for (long steps = strtol(argv[2], NULL, 10); steps > 0; steps--)
        MUST(tn_invoke(site, 1, &in, 1, &out));
    look(ctx, out, values, r->count > 1);
    tn_site_release(site);
    tn_array_release(in);
    tn_array_release(out);
    MUST(tn_close(ctx));
    return 0;
}

/* ---- the tests ----------------------------------------------------------------------------------------- */

static char self[4096];

static int count_of(const said *s, const char *name)
{
    const char *at = strstr(s->out, name);

    return at ? atoi(at + strlen(name)) : 0;
}

/* Kernels and copies of so many steps. */
static void copied(size_t row, int steps, int counts[2])
{
    char command[4600];
    const said *s;

    (void)snprintf(
        command, sizeof command,
        "D=$(mktemp -d); trap 'rm -r $D' EXIT; export TNEMU_COUNTS=$D/counts; '%s' %zu %d && cat $D/counts",
        self, row, steps);
    s = cuda_say("TNEMU_DELAY_US=0", command);
    if (s->code)
        fail_msg("%s: ends with %d:\n%s", rows[row].what, s->code, s->out);
    counts[0] = count_of(s, "cuLaunchKernel ");
    counts[1] = count_of(s, "cuMemcpyAsync ");
}

static void large_ones_are_the_drivers(void **state)
{
    (void)state;
    for (size_t row = 0; row < ROWS; row++) {
        int few[2], many[2];

        copied(row, 1, few);
        copied(row, 4, many);
        if (many[rows[row].driven] - few[rows[row].driven] != 3 ||
            many[!rows[row].driven] != few[!rows[row].driven])
            fail_msg("%s: 3 steps more launch %d kernels and %d copies", rows[row].what, many[0] - few[0],
                     many[1] - few[1]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_ones_are_the_drivers)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 2)
        return child(argv);
    cuda_setup();
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
