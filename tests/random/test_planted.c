/* Kernels with a planted fault: each is found, by the right name, and the case is made small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver.h"
#include "support/static_plugin.h"

#define CASES_MAX 500

enum { HEALTHY, TAKES_FOR_DENSE, CHANGES_INPUT, KEEPS_STATE, FAILS_AT_TIMES, BREAKS };

static int fault;
static atomic_uint runs; /* calls whose results are dropped may run beside others */

/* ---- an operator: y = x + 1 ---------------------------------------------------------------------------- */

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static const tn_op planted =
    TEST_OP(.name = "test_planted", .inputs = (const char *const[]){"x", NULL},
            .outputs = (const char *const[]){"y", NULL}, .flags = TN_OP_ZERO_GRADIENT, .shape = same_shape);
TEST_OPS(op_table, "planted", &planted);

static tn_status planted_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->est_ns = 100;
    return TN_OK;
}

static int64_t offset_of(const tn_tensor *t, int64_t i)
{
    int64_t at = 0;

    for (int32_t d = t->ndim; d-- > 0; i /= t->shape[d])
        at += i % t->shape[d] * t->stride[d];
    return at;
}

static tn_status planted_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    const int64_t last = offset_of(in, tn_tensor_count(in) - 1); /* what lies behind is not ours */
    const unsigned run = atomic_fetch_add(&runs, 1u) + 1u;
    float *from = in->data, *to = out->data;

    (void)plan;
    if (fault == BREAKS)
        return tn_fail(err, TN_E_INTERNAL, "planted");
    if (fault == FAILS_AT_TIMES && run % 2)
        return tn_fail(err, TN_E_ARG, "planted");
    for (int64_t i = 0; i < tn_tensor_count(in); i++)
        to[offset_of(out, i)] = from[fault == TAKES_FOR_DENSE && i <= last ? i : offset_of(in, i)] + 1;
    if (fault == CHANGES_INPUT)
        from[0] += 1;
    if (fault == KEEPS_STATE)
        to[0] += (float)(run % 8);
    return TN_OK;
}

static const tn_kernel kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                 .rank = 64,
                                 .op = "test_planted",
                                 .name = "planted",
                                 .device = "cpu",
                                 .isa = "",
                                 .op_version_min = 1,
                                 .op_version_max = 1,
                                 .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_STRIDED,
                                 .types = (const char *const[]){"*:f32", NULL},
                                 .prepare = planted_prepare,
                                 .run = planted_run};
TEST_KERNELS(kernel_table, "cpu", &kernel);
TEST_PLUGIN(plugin, "planted", &op_table.head, &kernel_table.head);

/* ---- finding it ---------------------------------------------------------------------------------------- */

typedef struct hunt {
    fuzz_bench bench;
    fuzz_case c;
    fuzz_verdict found;
} hunt;

static bool fails_alike(const fuzz_case *c, void *arg)
{
    const hunt *h = arg;
    fuzz_verdict v;

    return !fuzz_run(&h->bench, c, true, &v) && !strcmp(v.kind, h->found.kind);
}

/* The kind of the first finding in some cases; "": there is none. */
static const char *hunt_run(hunt *h)
{
    const tni_opdef *def = NULL;
    const fuzz_maker m = {.ops = &def, .op_count = 1};
    fuzz_rng r;

    assert_int_equal(tni_opset_find(h->bench.ctx[0]->ops, "test_planted", &def), TN_OK);
    h->found.kind[0] = '\0';
    for (uint64_t n = 0; n < CASES_MAX && !h->found.kind[0]; n++) {
        fuzz_case_init(&h->c, 1, n, &r);
        fuzz_make_op(&m, &h->c, &r);
        (void)fuzz_run(&h->bench, &h->c, true, &h->found);
    }
    if (h->found.kind[0])
        fuzz_shrink(&h->c, fails_alike, h);
    (void)tn_wait_all(h->bench.ctx[0]); /* the fault is changed when no call looks at it any more */
    return h->found.kind;
}

static void faults_are_found(void **state)
{
    static const struct {
        int fault;
        const char *kind;
        uint64_t elements_max; /* of the case made small */
    } rows[] = {{HEALTHY, "", 0},         {TAKES_FOR_DENSE, "bits", 4},  {CHANGES_INPUT, "input", 1},
                {KEEPS_STATE, "bits", 1}, {FAILS_AT_TIMES, "status", 1}, {BREAKS, "internal", 1}};
    hunt *h = calloc(1, sizeof *h);

    (void)state;
    assert_non_null(h);
    fuzz_bench_open(&h->bench, 0, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tn_plugin_add(h->bench.ctx[i], &plugin), TN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fault = rows[i].fault;
        assert_string_equal(hunt_run(h), rows[i].kind);
        if (!rows[i].kind[0])
            continue;
        assert_int_equal(h->c.variable_count, 1);
        assert_true(fuzz_elements(&h->c.entries[0].shape) <= rows[i].elements_max);
        assert_int_equal(h->c.nodes[0].attr_count, 0);
        assert_true((h->c.variables[0].form == FUZZ_DENSE) == (fault != TAKES_FOR_DENSE));
    }
    fuzz_bench_close(&h->bench);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(faults_are_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
