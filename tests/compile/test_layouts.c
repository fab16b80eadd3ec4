/* Private layouts: equal ones are one; when there are as many as a context keeps, kernels plan for dense
 * ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compile/select.h"
#include "context/context.h"

enum { MORE = 65536 + 100 };

static uint64_t number; /* of the layout that the kernel asks for */
static bool offered;    /* it was told that it may */
static uint32_t layout_flags, plan_flags, plan_reserved;

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static tn_layout layout = {.struct_size = (uint32_t)TN_END(tn_layout, memory_bytes),
                               .owner = "stranger",
                               .bytes = (const char *)&number,
                               .byte_count = sizeof number,
                               .memory_bytes = 64};

    (void)plugin;
    (void)err;
    offered = (node->flags & TN_NODE_LAYOUTS) != 0;
    layout.flags = layout_flags;
    plan->flags |= plan_flags;
    plan->reserved = plan_reserved;
    if (offered)
        plan->out_layout[0] = &layout;
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)x;
    (void)err;
    return TN_OK;
}

static const tn_kernel kernel = {.struct_size = sizeof kernel,
                                 .op = "tanh",
                                 .name = "any",
                                 .device = "cpu",
                                 .isa = "",
                                 .op_version_max = 1,
                                 .flags = TN_KERNEL_LAYOUTS,
                                 .prepare = prepare,
                                 .run = run};

typedef struct asker {
    tni_context *c;
    tni_plugin plugin;
    tn_plugin descriptor;
    tni_attrs *attrs;
    tni_request request;
    tn_tensor tensor;
    const tn_tensor *list[1];
    tni_candidate candidate;
} asker;

static const int64_t shape[1] = {4}, stride[1] = {1};

static void asker_open(asker *a)
{
    static const uint8_t modes[1] = {TN_MODE_WRITE};
    const char *const settings[] = {"plugins.load=cpu", NULL};
    const tni_context_options o = {.settings = settings};
    const tni_opdef *def;

    memset(a, 0, sizeof *a);
    assert_int_equal(tni_context_open(&o, &a->c), TN_OK);
    assert_int_equal(tni_opset_find(a->c->ops, "tanh", &def), TN_OK);
    assert_int_equal(tni_attrs_parse(def, 0, NULL, NULL, &a->attrs), TN_OK);
    a->descriptor.name = "stranger";
    a->plugin.descriptor = &a->descriptor;
    a->tensor = (tn_tensor){.shape = shape, .stride = stride, .bytes = 16, .ndim = 1, .dtype = TN_F32};
    a->list[0] = &a->tensor;
    a->candidate = (tni_candidate){.kernel = &kernel, .plugin = &a->plugin};
    a->request = (tni_request){.def = def,
                               .attrs = a->attrs,
                               .in = a->list,
                               .out = a->list,
                               .modes = modes,
                               .in_count = 1,
                               .out_count = 1,
                               .threads = 1,
                               .flags = TN_NODE_LAYOUTS};
    assert_int_equal(tni_default_device(a->c, &a->request.device), TN_OK);
}

static void asker_close(asker *a)
{
    tni_attrs_release(a->attrs);
    assert_int_equal(tni_context_close(a->c, 0), TN_OK);
}

/* What layout number `n` became: its address as long as the context. NULL: dense. */
static const tn_layout *ask(asker *a, uint64_t n)
{
    const tn_layout *got;
    tni_prepared *p = NULL;
    tn_err err = {0};

    number = n;
    if (tni_candidate_prepare(a->c->selector, &a->request, &a->candidate, true, &p, &err))
        fail_msg("layout %llu: %s", (unsigned long long)n, err.message);
    got = p->plan.out_layout[0];
    assert_true(p->layouts == (got != NULL));
    tni_prepared_release(p);
    return got;
}

static void test_equal_ones_are_one(void **state)
{
    const tn_layout *first[300];
    asker a;

    (void)state;
    asker_open(&a);
    for (uint64_t i = 0; i < 300; i++) {
        assert_non_null(first[i] = ask(&a, i));
        assert_memory_equal(first[i]->bytes, &i, sizeof i);
        for (uint64_t k = 0; k < i; k++)
            assert_ptr_not_equal(first[i], first[k]);
    }
    for (uint64_t i = 300; i-- > 0;)
        assert_ptr_equal(ask(&a, i), first[i]);
    asker_close(&a);
}

/* More than are kept: dense, with the same kernel, and what was there stays. */
static void test_too_many(void **state)
{
    const tn_layout *first;
    uint64_t given = 0;
    asker a;

    (void)state;
    asker_open(&a);
    first = ask(&a, 0);
    for (uint64_t i = 0; i < MORE; i++)
        given += ask(&a, i) != NULL;
    assert_int_equal(given, 65536);
    assert_false(offered);
    assert_int_equal(*(const uint64_t *)(const void *)first->bytes, 0);
    a.tensor.layout = first; /* its input comes in one: it is told of dense ones all the same */
    assert_null(ask(&a, 1));
    asker_close(&a);
}

static void refused(asker *a, const char *says)
{
    tni_prepared *p = NULL;
    tn_err err = {0};

    assert_int_equal(tni_candidate_prepare(a->c->selector, &a->request, &a->candidate, true, &p, &err),
                     TN_E_UNSUPPORTED);
    assert_null(p);
    if (!strstr(err.message, says))
        fail_msg("%s", err.message);
}

/* Bits without a meaning in what `prepare` fills in. */
static void test_unknown(void **state)
{
    asker a;

    (void)state;
    asker_open(&a);
    layout_flags = TN_LAYOUT_POINTWISE | 2u;
    refused(&a, "flags are not sound");
    layout_flags = TN_LAYOUT_POINTWISE;
    assert_non_null(ask(&a, 1));
    layout_flags = 0;
    plan_flags = 1u << 16;
    refused(&a, "gives a plan with flags");
    plan_flags = 0;
    plan_reserved = 1;
    refused(&a, "gives a plan with flags, or with a `reserved`");
    plan_reserved = 0;
    assert_non_null(ask(&a, 2));
    asker_close(&a);
}

static void test_no_memory(void **state)
{
    tni_prepared *p = NULL;
    tn_err err = {0};
    bool failed = true;
    asker a;

    (void)state;
    asker_open(&a);
    for (uint64_t nth = 1; failed; nth++) {
        tn_status st;

        number = nth;
        tni_mem_fail_at(nth, false, true);
        st = tni_candidate_prepare(a.c->selector, &a.request, &a.candidate, true, &p, &err);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        tni_error_clear();
        assert_int_equal(st, failed ? TN_E_NOMEM : TN_OK);
        assert_true(nth > 4 || failed);
    }
    tni_prepared_release(p);
    asker_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_ones_are_one),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
