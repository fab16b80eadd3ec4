/* As test_arguments.c: operators, gradients, symbols, programs. */
#include <math.h>

#include "api/fixture.h"
#include "tenon/plugin/op.h"

#include <math.h>
#include <stdio.h>

#include "support/scratch.h"

/* ---- operators, gradients ---------------------------------------------------------------------------- */

static void vocabulary(void **state)
{
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)}, bad = {0};
    size_t n;

    (void)state;
    assert_fails(tn_op_count(NULL, &n), TN_E_ARG);
    assert_fails(tn_op_count(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_op_count(f.ctx, &n));
    assert_fails(tn_op_at(f.ctx, n, &info), TN_E_ARG);
    assert_fails(tn_op_at(f.ctx, 0, &bad), TN_E_ARG);
    assert_fails(tn_op_at(f.ctx, 0, NULL), TN_E_ARG);
    assert_fails(tn_op_at(NULL, 0, &info), TN_E_ARG);
    assert_fails(tn_op_find(f.ctx, NULL, &info), TN_E_ARG);
    assert_fails(tn_op_find(f.ctx, "Convolutoin", &info), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "Convolution"));
    assert_fails(tn_op_find(f.ctx, "dot", &bad), TN_E_ARG);
    assert_fails(tn_op_register(NULL, NULL), TN_E_ARG);
    assert_fails(tn_op_register(f.ctx, NULL), TN_E_ARG);
    assert_ok(tn_op_find(f.ctx, "dot", &info));
    {
        tn_op ruled = {.struct_size = sizeof ruled,
                       .version = 1,
                       .name = "dot",
                       .shapes = "data:(N) -> output:(N)"};

        assert_fails(tn_op_register(f.ctx, &ruled), TN_E_KEY);
        ruled.name = "ruled";
        ruled.inputs = info.inputs; /* said twice */
        assert_fails(tn_op_register(f.ctx, &ruled), TN_E_ARG);
        ruled.inputs = NULL;
        ruled.gradients = "once: dy -> nothing";
        assert_fails(tn_op_register(f.ctx, &ruled), TN_E_ARG);
        assert_non_null(strstr(tn_error_text(), "nothing"));
    }
    assert_ok(tn_op_find(f.ctx, "BatchNorm", &info));
    assert_int_equal(info.visible, 1); /* of three outputs */
}

static void sites(void **state)
{
    const char *many[2 * 200 + 1];
    const int64_t few[] = {1};
    tn_site *site = NULL, *lr = NULL;
    uint32_t index = 7;

    (void)state;
    assert_fails(tn_site_create(NULL, "dot", NULL, &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, NULL, NULL, &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "dot", NULL, NULL), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "dto", NULL, &site), TN_E_KEY);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_typ", "relu"), &site), TN_E_ATTR);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_type", "rule"), &site), TN_E_ATTR);
    assert_fails(tn_site_create(f.ctx, "Activation", LIST("act_type"), &site), TN_E_ARG);
    assert_fails(tn_site_create(f.ctx, "Activation", NULL, &site), TN_E_ATTR);
    for (size_t i = 0; i < 400; i++)
        many[i] = "x";
    many[400] = NULL;
    assert_fails(tn_site_create(f.ctx, "Activation", many, &site), TN_E_ATTR);
    assert_null(site);
    assert_ok(tn_site_create(f.ctx, "elemwise_add", NULL, &site));
    assert_ok(tn_site_create(f.ctx, "sgd_update", LIST("lr", "0.1"), &lr));
    assert_fails(tn_site_attr(NULL, "lr", &index), TN_E_ARG);
    assert_fails(tn_site_attr(lr, NULL, &index), TN_E_ARG);
    assert_fails(tn_site_attr(lr, "lr", NULL), TN_E_ARG);
    assert_fails(tn_site_attr(site, "lr", &index), TN_E_ATTR);
    assert_int_equal(index, 7);
    assert_ok(tn_site_attr(lr, "lr", &index));
    assert_fails(tn_site_set_float(NULL, index, 1), TN_E_ARG);
    assert_fails(tn_site_set_float(lr, HUGE_COUNT, 1), TN_E_ATTR);
    assert_fails(tn_site_set_int(NULL, index, 1), TN_E_ARG);
    assert_fails(tn_site_set_int(lr, HUGE_COUNT, 1), TN_E_ATTR);
    assert_fails(tn_site_set_int(lr, index, 1), TN_E_ATTR);
    assert_fails(tn_site_set_tuple(lr, index, 1, few), TN_E_ATTR);
    assert_fails(tn_site_set_floats(lr, index, 1, (double[]){1}), TN_E_ATTR);
    assert_fails(tn_site_set_none(lr, index), TN_E_ATTR);
    tn_site_release(lr);
    tn_site_release(site);
    tn_site_release(NULL);
}

static void tuples(void **state)
{
    const int64_t few[] = {1, TN_NONE_ITEM};
    static const int64_t many[4097];
    const double nan = (double)NAN;
    uint32_t begin, lrs, axis;
    tn_site *slice = NULL, *sgd = NULL, *one = NULL;

    (void)state;
    assert_ok(tn_site_create(f.ctx, "slice", LIST("begin", "(0, 0)", "end", "(1, 1)"), &slice));
    assert_ok(tn_site_create(f.ctx, "slice_axis", LIST("axis", "0", "begin", "0", "end", "1"), &one));
    assert_ok(tn_site_create(f.ctx, "multi_sgd_update", LIST("lrs", "(0.1,)", "wds", "(0,)"), &sgd));
    assert_ok(tn_site_attr(slice, "begin", &begin));
    assert_ok(tn_site_attr(one, "axis", &axis));
    assert_ok(tn_site_attr(sgd, "lrs", &lrs));
    assert_fails(tn_site_set_tuple(NULL, begin, 2, few), TN_E_ARG);
    assert_fails(tn_site_set_tuple(slice, begin, 2, NULL), TN_E_ARG);
    assert_fails(tn_site_set_tuple(slice, HUGE_COUNT, 2, few), TN_E_ATTR);
    assert_fails(tn_site_set_tuple(slice, begin, 4097, many), TN_E_ATTR);
    assert_fails(tn_site_set_tuple(one, axis, 1, few), TN_E_ATTR); /* decides how the call is prepared */
    assert_fails(tn_site_set_tuple(sgd, lrs, 1, few), TN_E_ATTR);
    assert_ok(tn_site_set_tuple(slice, begin, 2, few));
    assert_ok(tn_site_set_tuple(slice, begin, 4096, many));
    assert_ok(tn_site_set_tuple(slice, begin, 0, NULL));
    assert_ok(tn_site_set_none(slice, begin));
    assert_ok(tn_site_set_none(one, axis + 2));
    assert_fails(tn_site_set_none(one, axis + 1), TN_E_ATTR);
    assert_fails(tn_site_set_none(NULL, 0), TN_E_ARG);
    assert_fails(tn_site_set_none(slice, HUGE_COUNT), TN_E_ATTR);
    assert_fails(tn_site_set_floats(NULL, lrs, 1, &nan), TN_E_ARG);
    assert_fails(tn_site_set_floats(sgd, lrs, 1, NULL), TN_E_ARG);
    assert_fails(tn_site_set_floats(sgd, HUGE_COUNT, 1, &nan), TN_E_ATTR);
    assert_fails(tn_site_set_floats(sgd, lrs, HUGE_COUNT, &nan), TN_E_ATTR);
    assert_fails(tn_site_set_floats(slice, begin, 1, &nan), TN_E_ATTR);
    assert_ok(tn_site_set_floats(sgd, lrs, 1, &nan)); /* as tn_site_set_float: it has no bounds */
    tn_site_release(slice);
    tn_site_release(one);
    tn_site_release(sgd);
}

static void calls(void **state)
{
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "elemwise_add", .in_count = 2};
    tn_array *in[2] = {f.a, f.a}, *out = NULL;
    tn_site *site = NULL;
    uint32_t made = 7;

    (void)state;
    assert_ok(tn_site_create(f.ctx, "elemwise_add", NULL, &site));
    assert_fails(tn_invoke(NULL, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, in, 1, NULL), TN_E_ARG);
    assert_fails(tn_invoke(site, 2, in, 0, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, 1, in, 1, &out), TN_E_ARG);
    assert_fails(tn_invoke(site, HUGE_COUNT, in, 1, &out), TN_E_ARG);
    in[1] = NULL;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    in[1] = f.foreign;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    in[1] = f.b;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_SHAPE);
    in[1] = f.a;
    out = f.b; /* an output of another shape stays as it is */
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_SHAPE);
    assert_ptr_equal(out, f.b);
    out = f.foreign;
    assert_fails(tn_invoke(site, 2, in, 1, &out), TN_E_ARG);
    out = NULL;
    tn_site_release(site);
    assert_fails(tn_invoke_text(NULL, &call, 1, &out, &made), TN_E_ARG);
    assert_fails(tn_invoke_text(f.ctx, NULL, 1, &out, &made), TN_E_ARG);
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG); /* no inputs */
    call.in = in;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, NULL, &made), TN_E_ARG);
    call.op = NULL;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG);
    call.op = "elemwise_ad";
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_KEY);
    call.struct_size = 0;
    assert_fails(tn_invoke_text(f.ctx, &call, 1, &out, &made), TN_E_ARG);
    assert_true(!out && made == 7);
}

static void gradients(void **state)
{
    tn_gradient_call call = {.struct_size = TN_SIZE(tn_gradient_call)};
    tn_array *heads[] = {f.a}, *nothing[] = {NULL}, *out[1] = {NULL};

    (void)state;
    assert_int_equal(tn_np_shape_set(1), 0);
    assert_int_equal(tn_np_shape_set(0), 1);
    assert_int_equal(tn_record_set(0), 0);
    assert_int_equal(tn_train_set(0), 0);
    assert_int_equal(tn_recording(), 0);
    assert_int_equal(tn_training(), 0);
    assert_fails(tn_attach_grad(NULL, f.a, TN_MODE_WRITE, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, NULL, TN_MODE_WRITE, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, 77, NULL), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.b), TN_E_SHAPE);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.a), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.a, TN_MODE_WRITE, f.foreign), TN_E_ARG);
    assert_fails(tn_attach_grad(f.ctx, f.foreign, TN_MODE_WRITE, NULL), TN_E_ARG);
    tn_detach_grad(NULL);
    tn_detach_grad(f.a);
    assert_null(tn_array_grad(NULL));
    assert_null(tn_array_grad(f.a));
    assert_int_equal(tn_array_grad_mode(NULL), TN_MODE_NONE);
    assert_int_equal(tn_array_grad_turn(NULL), 0);
    assert_int_equal(tn_array_grad_turn(f.a), 0);
    tn_array_grad_touch(NULL);
    assert_fails(tn_backward(NULL, 1, heads, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, NULL, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 0, heads, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, nothing, NULL, 0), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, heads, NULL, 0x100), TN_E_ARG);
    assert_fails(tn_backward(f.ctx, 1, heads, NULL, TN_BACKWARD_CREATE), TN_E_ARG); /* tn_gradients alone */
    assert_fails(tn_backward(f.ctx, 1, heads, NULL, 0), TN_E_STATE);                /* nothing recorded */
    assert_fails(tn_gradients(NULL, &call, out), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, NULL, out), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, &call, NULL), TN_E_ARG);
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    call.head_count = call.variable_count = 1;
    call.heads = heads;
    call.variables = nothing;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    call.variables = heads;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_STATE);
    call.flags = TN_BACKWARD_CREATE;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_STATE);
    call.flags = 0x100;
    assert_fails(tn_gradients(f.ctx, &call, out), TN_E_ARG);
    assert_null(out[0]);
}

/* ---- symbols, programs ------------------------------------------------------------------------------- */

static void symbols_composed(void **state)
{
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call)};
    tn_symbol *out = NULL, *in[1] = {f.x}, *nothing[1] = {NULL};
    uint32_t index = 9;

    (void)state;
    assert_fails(tn_symbol_variable(NULL, "x", &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, "", &out), TN_E_ARG);
    assert_fails(tn_symbol_variable(f.ctx, "x", NULL), TN_E_ARG);
    assert_fails(tn_symbol_op(NULL, &call, &out), TN_E_ARG);
    assert_fails(tn_symbol_op(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.op = "Activatoin";
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_KEY);
    call.op = "Activation";
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ATTR);
    call.attrs = LIST("act_type", "relu");
    call.in_count = 1;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = nothing;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = &f.foreign_symbol;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    call.in = in;
    call.in_names = LIST("wieght");
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_KEY);
    call.in_names = NULL;
    call.in_count = HUGE_COUNT;
    assert_fails(tn_symbol_op(f.ctx, &call, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(NULL, 0, NULL, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(f.net, 1, NULL, in, &out), TN_E_ARG);
    assert_fails(tn_symbol_substitute(f.net, 1, LIST("nowhere"), in, &out), TN_E_KEY);
    assert_fails(tn_symbol_group(0, in, &out), TN_E_ARG);
    assert_fails(tn_symbol_group(1, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_group(1, nothing, &out), TN_E_ARG);
    assert_fails(tn_symbol_internals(NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_internals(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_children(NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_children(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_output(NULL, 0, &out), TN_E_ARG);
    assert_fails(tn_symbol_output(f.net, 1, &out), TN_E_ARG);
    assert_int_equal(tn_symbol_output_count(NULL), 0);
    assert_fails(tn_symbol_find(NULL, "fc_output", &index), TN_E_ARG);
    assert_fails(tn_symbol_find(f.net, NULL, &index), TN_E_ARG);
    assert_fails(tn_symbol_find(f.net, "fc_out", &index), TN_E_KEY);
    assert_int_equal(index, 9);
    tn_symbol_retain(NULL);
    tn_symbol_release(NULL);
    assert_fails(tn_symbol_prefix_push(NULL), TN_E_ARG);
    tn_symbol_prefix_pop();
    assert_null(out);
}

static void symbols_asked(void **state)
{
    tn_known known[2] = {{.name = NULL, .ndim = -1, .dtype = -1}, {.ndim = -1, .dtype = -1}}, found;
    const char *path = scratch_path("absent-symbol.json"), *text = NULL;
    tn_inferred *inferred = NULL;
    char **names = NULL, *json = NULL;
    tn_symbol *out = NULL;
    size_t count = 9;

    (void)state;
    assert_fails(tn_symbol_list(NULL, 0, &count, &names), TN_E_ARG);
    assert_fails(tn_symbol_list(f.net, 17, &count, &names), TN_E_ARG);
    assert_fails(tn_symbol_list(f.net, 0, NULL, &names), TN_E_ARG);
    assert_int_equal(count, 9);
    assert_fails(tn_symbol_infer(NULL, 0, NULL, 0, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 1, NULL, 0, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 0, NULL, 8, &inferred), TN_E_ARG);
    assert_fails(tn_symbol_infer(f.net, 0, NULL, 0, &inferred), TN_E_SHAPE);
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_ARG);
    known[0].name = "nowhere";
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_KEY);
    known[0] = (tn_known){.name = "x", .ndim = 33, .shape = f.shape, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_SHAPE);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = (int64_t[]){-2, 3}, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_SHAPE);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = NULL, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_ARG);
    known[0] = (tn_known){.name = "x", .ndim = 2, .shape = f.shape, .dtype = 99};
    assert_fails(tn_symbol_infer(f.net, 1, known, 0, &inferred), TN_E_DTYPE);
    known[0].dtype = -1;
    known[1] = (tn_known){.name = "fc_weight", .ndim = 2, .shape = (int64_t[]){4, 5}, .dtype = -1};
    assert_fails(tn_symbol_infer(f.net, 2, known, 0, &inferred), TN_E_SHAPE); /* they contradict */
    assert_null(inferred);
    assert_ok(tn_symbol_infer(f.net, 0, NULL, TN_SYMBOL_PARTIAL, &inferred));
    assert_int_equal(tn_inferred_complete(inferred), 0);
    assert_fails(tn_inferred_at(NULL, 0, 0, &found), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, 0, 0, NULL), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, 9, 0, &found), TN_E_ARG);
    assert_fails(tn_inferred_at(inferred, TN_LIST_AUX, 0, &found), TN_E_ARG);
    tn_inferred_destroy(inferred);
    tn_inferred_destroy(NULL);
    assert_int_equal(tn_inferred_complete(NULL), 0);
    assert_fails(tn_symbol_attr_get(NULL, "k", &text), TN_E_ARG);
    assert_fails(tn_symbol_attr_get(f.net, NULL, &text), TN_E_ARG);
    assert_fails(tn_symbol_attr_get(f.net, "k", NULL), TN_E_ARG);
    assert_fails(tn_symbol_attr_set(NULL, "k", "v"), TN_E_ARG);
    assert_fails(tn_symbol_attr_set(f.net, "k", NULL), TN_E_ARG);
    assert_fails(tn_symbol_load(NULL, path, &out), TN_E_ARG);
    assert_fails(tn_symbol_load(f.ctx, NULL, &out), TN_E_ARG);
    assert_fails(tn_symbol_load(f.ctx, path, &out), TN_E_IO);
    assert_fails(tn_symbol_from_json(NULL, "{}", 2, &out), TN_E_ARG);
    assert_fails(tn_symbol_from_json(f.ctx, NULL, 2, &out), TN_E_ARG);
    assert_fails(tn_symbol_from_json(f.ctx, "{}", 2, &out), TN_E_FORMAT);
    assert_fails(tn_symbol_from_json(f.ctx, "", 0, &out), TN_E_FORMAT);
    assert_fails(tn_symbol_save(NULL, path), TN_E_ARG);
    assert_fails(tn_symbol_save(f.net, NULL), TN_E_ARG);
    assert_fails(tn_symbol_save(f.net, "/nowhere/at/all.json"), TN_E_IO);
    assert_fails(tn_symbol_to_json(NULL, &json), TN_E_ARG);
    assert_fails(tn_symbol_to_json(f.net, NULL), TN_E_ARG);
    assert_true(!out && !json && !names);
}

static void parameters(void **state)
{
    const tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options),
                                 .params = (const char *const[]){"nobody", NULL}};
    tn_cached_op *op = NULL;

    (void)state;
    assert_fails(tn_cached_op_create(f.ctx, f.net, &o, &op), TN_E_KEY);
    assert_null(op);
}

static void programs(void **state)
{
    tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .static_shape = 1};
    const char *path = scratch_path("absent.params");
    tn_array *in[3] = {f.a, f.a, f.a}, *out = NULL;
    tn_cached_op *op = NULL;
    tn_program *p = NULL;
    tn_params *params = NULL;
    uint64_t planned = 0, bound = 0;

    (void)state;
    assert_fails(tn_cached_op_create(NULL, f.net, NULL, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, NULL, NULL, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, f.net, &o, &op), TN_E_ARG);
    assert_fails(tn_cached_op_create(f.ctx, f.foreign_symbol, NULL, &op), TN_E_ARG);
    o.static_shape = 0;
    o.group2ctx = LIST("a");
    assert_fails(tn_cached_op_create(f.ctx, f.net, &o, &op), TN_E_ARG); /* no device */
    o.group2ctx = LIST("a", "cpu:1");
    assert_fails(tn_cached_op_create(f.ctx, f.net, &o, &op), TN_E_KEY); /* no such group */
    o.group2ctx = LIST(NULL);
    assert_ok(tn_cached_op_create(f.ctx, f.net, &o, &op));
    tn_cached_op_release(op);
    op = NULL;
    assert_ok(tn_cached_op_create(f.ctx, f.net, NULL, &op));
    assert_fails(tn_cached_op_call(NULL, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 0, &out), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 1, NULL), TN_E_ARG);
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_SHAPE);
    in[2] = NULL;
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_ARG);
    in[2] = f.foreign;
    assert_fails(tn_cached_op_call(op, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_cached_op_memory(NULL, &planned, &bound), TN_E_ARG);
    assert_fails(tn_cached_op_memory(op, NULL, &bound), TN_E_ARG);
    assert_fails(tn_cached_op_memory(op, &planned, &bound), TN_E_STATE);
    tn_cached_op_release(op);
    tn_cached_op_release(NULL);
    assert_ok(tn_params_create(&params));
    assert_fails(tn_program_create(NULL, f.net, params, &p), TN_E_ARG);
    assert_fails(tn_program_create(f.ctx, f.net, NULL, &p), TN_E_ARG);
    assert_fails(tn_program_create(f.ctx, f.foreign_symbol, params, &p), TN_E_ARG);
    assert_fails(tn_program_load(f.ctx, path, NULL, NULL, &p), TN_E_ARG);
    assert_fails(tn_program_load(f.ctx, path, path, NULL, &p), TN_E_IO);
    assert_fails(tn_program_load(f.ctx, path, path, f.foreign_device, &p), TN_E_ARG);
    assert_null(p);
    assert_ok(tn_program_create(f.ctx, f.net, params, &p));
    assert_int_equal(tn_program_input_count(p), 3);
    assert_null(tn_program_input(p, 3));
    assert_null(tn_program_input(NULL, 0));
    assert_null(tn_program_output(p, 1));
    assert_null(tn_program_output(NULL, 0));
    assert_int_equal(tn_program_input_count(NULL), 0);
    assert_int_equal(tn_program_output_count(NULL), 0);
    assert_fails(tn_program_run(NULL, 3, in, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 2, in, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 3, NULL, 1, &out), TN_E_ARG);
    assert_fails(tn_program_run(p, 3, in, 1, &out), TN_E_ARG); /* of another context */
    in[0] = in[1] = in[2] = NULL;
    assert_fails(tn_program_run(p, 3, in, 1, &out), TN_E_SHAPE); /* nothing tells the shapes */
    assert_fails(tn_program_run(p, 3, in, 0, &out), TN_E_ARG);
    assert_fails(tn_program_memory(NULL, &planned, &bound), TN_E_ARG);
    assert_fails(tn_program_memory(p, &planned, &bound), TN_E_STATE);
    assert_null(out);
    tn_program_destroy(p);
    tn_program_destroy(NULL);
    tn_params_destroy(params);
}

/* ---- views ------------------------------------------------------------------------------------------- */

static void symbol_views(void **state)
{
    tn_known known = {.name = "x", .ndim = 2, .shape = f.shape, .dtype = TN_F32}, found = {.name = NULL};
    tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)}, bad = {0};
    tn_inferred *shapes = NULL;
    tn_symbol_view *v = NULL;
    tn_view_edge edge;

    (void)state;
    assert_ok(tn_symbol_infer(f.net, 1, &known, 0, &shapes));
    assert_fails(tn_symbol_view_create(NULL, shapes, &v), TN_E_ARG);
    assert_fails(tn_symbol_view_create(f.net, shapes, NULL), TN_E_ARG);
    assert_fails(tn_symbol_view_create(f.x, shapes, &v), TN_E_ARG); /* another symbol's shapes */
    assert_null(v);
    assert_ok(tn_symbol_view_create(f.net, shapes, &v));
    tn_inferred_destroy(shapes);
    assert_int_equal(tn_symbol_view_count(NULL), 0);
    assert_int_equal(tn_symbol_view_count(v), 4); /* x, weight, bias, fc */
    assert_fails(tn_symbol_view_node(NULL, 0, &node), TN_E_ARG);
    assert_fails(tn_symbol_view_node(v, 0, NULL), TN_E_ARG);
    assert_fails(tn_symbol_view_node(v, 0, &bad), TN_E_ARG);
    assert_fails(tn_symbol_view_node(v, 4, &node), TN_E_ARG);
    assert_fails(tn_symbol_view_output(NULL, 0, 0, &found), TN_E_ARG);
    assert_fails(tn_symbol_view_output(v, 0, 0, NULL), TN_E_ARG);
    assert_fails(tn_symbol_view_output(v, 0, 1, &found), TN_E_ARG);
    assert_fails(tn_symbol_view_output(v, HUGE_COUNT, 0, &found), TN_E_ARG);
    assert_fails(tn_symbol_view_head(NULL, 0, &edge), TN_E_ARG);
    assert_fails(tn_symbol_view_head(v, 0, NULL), TN_E_ARG);
    assert_fails(tn_symbol_view_head(v, 1, &edge), TN_E_ARG);
    assert_null(found.name);
    assert_ok(tn_symbol_view_node(v, 3, &node));
    assert_string_equal(node.op, "FullyConnected");
    assert_true(node.input_count == 3 && node.inputs[1].node == 1 && !node.flags);
    assert_string_equal(node.attrs[0], "num_hidden");
    assert_string_equal(node.attrs[1], "4");
    assert_null(node.attrs[2]);
    assert_ok(tn_symbol_view_output(v, 1, 0, &found));
    assert_string_equal(found.name, "fc_weight");
    assert_true(found.ndim == 2 && found.shape[0] == 4 && found.shape[1] == 3 && found.dtype == TN_F32);
    assert_ok(tn_symbol_view_head(v, 0, &edge));
    assert_true(edge.node == 3 && edge.output == 0);
    tn_symbol_view_destroy(v);
    tn_symbol_view_destroy(NULL);
}

static void served_views(void **state)
{
    static const char *const weights[] = {"fc_weight", "fc_bias", NULL}, *const wrong[] = {"fc_weigth", NULL};
    tn_known known = {.name = "x", .ndim = 2, .shape = f.shape, .dtype = TN_F32};
    tn_view_program info = {.struct_size = TN_SIZE(tn_view_program)};
    tn_view_pass pass = {.struct_size = TN_SIZE(tn_view_pass)}, no_pass = {0};
    tn_inferred *shapes = NULL, *partial = NULL;
    tn_program_view *v = NULL;

    (void)state;
    assert_ok(tn_symbol_infer(f.net, 1, &known, 0, &shapes));
    assert_ok(tn_symbol_infer(f.net, 0, NULL, TN_SYMBOL_PARTIAL, &partial));
    assert_fails(tn_program_view_served(NULL, f.net, shapes, NULL, weights, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, NULL, shapes, NULL, weights, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, f.net, NULL, NULL, weights, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, f.net, shapes, NULL, NULL, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, f.net, shapes, NULL, weights, NULL), TN_E_ARG);
    assert_fails(tn_program_view_served(f.other, f.net, shapes, NULL, weights, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, f.net, shapes, f.foreign_device, weights, &v), TN_E_ARG);
    assert_fails(tn_program_view_served(f.ctx, f.net, partial, NULL, weights, &v), TN_E_SHAPE);
    assert_fails(tn_program_view_served(f.ctx, f.net, shapes, NULL, wrong, &v), TN_E_KEY);
    assert_null(v);
    assert_ok(tn_program_view_served(f.ctx, f.net, shapes, NULL, weights, &v));
    assert_ok(tn_program_view_info(v, &info));
    assert_int_equal(info.once_count + info.forward_count, info.step_count);
    assert_fails(tn_program_view_pass(NULL, 0, &pass), TN_E_ARG);
    assert_fails(tn_program_view_pass(v, 0, NULL), TN_E_ARG);
    assert_fails(tn_program_view_pass(v, 0, &no_pass), TN_E_ARG);
    assert_fails(tn_program_view_pass(v, info.pass_count, &pass), TN_E_ARG);
    assert_ok(tn_program_view_pass(v, info.pass_count - 1, &pass));
    assert_string_equal(pass.name, "plan");
    assert_int_equal(pass.after, info.step_count);
    tn_program_view_destroy(v);
    tn_inferred_destroy(shapes);
    tn_inferred_destroy(partial);
}

static void program_views(void **state)
{
    tn_known known = {.name = "x", .ndim = 2, .shape = f.shape, .dtype = TN_F32};
    tn_view_program info = {.struct_size = TN_SIZE(tn_view_program)}, no_info = {0};
    tn_view_entry entry = {.struct_size = TN_SIZE(tn_view_entry)}, no_entry = {0};
    tn_view_step step = {.struct_size = TN_SIZE(tn_view_step)}, no_step = {0};
    tn_inferred *shapes = NULL, *partial = NULL;
    tn_program_view *v = NULL;
    tn_cached_op *op = NULL;
    tn_params *params = NULL;
    tn_program *p = NULL;

    (void)state;
    assert_ok(tn_symbol_infer(f.net, 1, &known, 0, &shapes));
    assert_ok(tn_symbol_infer(f.net, 0, NULL, TN_SYMBOL_PARTIAL, &partial));
    assert_fails(tn_program_view_plan(NULL, f.net, shapes, NULL, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, NULL, shapes, NULL, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.net, NULL, NULL, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.net, shapes, NULL, 0, NULL), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.other, f.net, shapes, NULL, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.x, shapes, NULL, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.net, shapes, f.foreign_device, 0, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.net, shapes, NULL, 8, &v), TN_E_ARG);
    assert_fails(tn_program_view_plan(f.ctx, f.net, partial, NULL, 0, &v), TN_E_SHAPE);
    assert_ok(tn_cached_op_create(f.ctx, f.net, NULL, &op));
    assert_fails(tn_program_view_cached(NULL, &v), TN_E_ARG);
    assert_fails(tn_program_view_cached(op, NULL), TN_E_ARG);
    assert_fails(tn_program_view_cached(op, &v), TN_E_STATE);
    assert_ok(tn_params_create(&params));
    assert_ok(tn_program_create(f.ctx, f.net, params, &p));
    assert_fails(tn_program_view_create(NULL, &v), TN_E_ARG);
    assert_fails(tn_program_view_create(p, NULL), TN_E_ARG);
    assert_fails(tn_program_view_create(p, &v), TN_E_STATE);
    assert_fails(tn_program_view_info(NULL, &info), TN_E_ARG);
    assert_fails(tn_program_view_entry(NULL, 0, &entry), TN_E_ARG);
    assert_fails(tn_program_view_step(NULL, 0, &step), TN_E_ARG);
    assert_null(v);
    assert_ok(tn_program_view_plan(f.ctx, f.net, shapes, NULL, TN_VIEW_TRAIN | TN_VIEW_RECORDED, &v));
    assert_fails(tn_program_view_info(v, NULL), TN_E_ARG);
    assert_fails(tn_program_view_info(v, &no_info), TN_E_ARG);
    assert_ok(tn_program_view_info(v, &info));
    assert_true(info.forward_count == 1 && info.entry_count >= 4 && info.planned >= info.bound);
    assert_fails(tn_program_view_entry(v, 0, NULL), TN_E_ARG);
    assert_fails(tn_program_view_entry(v, 0, &no_entry), TN_E_ARG);
    assert_fails(tn_program_view_entry(v, info.entry_count, &entry), TN_E_ARG);
    assert_ok(tn_program_view_entry(v, 1, &entry));
    assert_true(entry.kind == TN_VIEW_INPUT && entry.bytes == 48 && entry.root == 1);
    assert_fails(tn_program_view_step(v, 0, NULL), TN_E_ARG);
    assert_fails(tn_program_view_step(v, 0, &no_step), TN_E_ARG);
    assert_fails(tn_program_view_step(v, info.step_count, &step), TN_E_ARG);
    assert_ok(tn_program_view_step(v, 0, &step));
    assert_string_equal(step.node, "fc");
    assert_true(step.plugin[0] && step.kernel[0]);
    tn_program_view_destroy(v);
    tn_program_view_destroy(NULL);
    tn_inferred_destroy(shapes);
    tn_inferred_destroy(partial);
    tn_cached_op_release(op);
    tn_program_destroy(p);
    tn_params_destroy(params);
}

static void operators_of_a_file(void **state)
{
    static const char text[] =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
        " {\"op\": \"FullyConnected\", \"name\": \"fc\", \"inputs\": [[0, 0, 0]],"
        "  \"attr\": {\"num_hidden\": \"4\", \"ctx_group\": \"dev1\", \"weight_lr_mult\": \"2\", \"__x__\": "
        "\"1\"},"
        "  \"subgraphs\": [{\"nodes\": [{\"op\": \"NoSuchOp\", \"name\": \"in\"}]}]},"
        " {\"op\": \"NoSuchOp\", \"name\": \"no\", \"param\": {\"a\": \"b\"}, \"inputs\": [[1, 0, 0]]}]}";
    tn_operator_use u = {.struct_size = TN_SIZE(tn_operator_use)}, no_size = {0};
    tn_operators *o = NULL;

    (void)state;
    assert_fails(tn_operators_load(NULL, "x.json", &o), TN_E_ARG);
    assert_fails(tn_operators_load(f.ctx, NULL, &o), TN_E_ARG);
    assert_fails(tn_operators_load(f.ctx, "x.json", NULL), TN_E_ARG);
    assert_fails(tn_operators_load(f.ctx, "/nowhere/x.json", &o), TN_E_IO);
    assert_fails(tn_operators_from_json(NULL, text, sizeof text - 1, &o), TN_E_ARG);
    assert_fails(tn_operators_from_json(f.ctx, NULL, 1, &o), TN_E_ARG);
    assert_fails(tn_operators_from_json(f.ctx, text, sizeof text - 1, NULL), TN_E_ARG);
    assert_fails(tn_operators_from_json(f.ctx, text, 9, &o), TN_E_FORMAT);
    assert_fails(tn_operators_from_json(f.ctx, "[1]", 3, &o), TN_E_FORMAT);
    assert_null(o);
    assert_ok(tn_operators_from_json(f.ctx, text, sizeof text - 1, &o));
    assert_true(tn_operators_count(o) == 3 && tn_operators_missing(o) == 2);
    assert_true(!tn_operators_count(NULL) && !tn_operators_missing(NULL));
    assert_fails(tn_operators_at(o, 3, &u), TN_E_ARG);
    assert_fails(tn_operators_at(o, 0, NULL), TN_E_ARG);
    assert_fails(tn_operators_at(o, 0, &no_size), TN_E_ARG);
    assert_fails(tn_operators_at(NULL, 0, &u), TN_E_ARG);
    assert_ok(tn_operators_at(o, 0, &u));
    assert_true(u.index == 1 && u.depth == 0 && u.number == 0 && !*u.why);
    assert_string_equal(u.attrs[0], "num_hidden"); /* and none that no operator reads */
    assert_null(u.attrs[2]);
    assert_ok(tn_operators_at(o, 1, &u));
    assert_true(u.depth == 1 && u.number == 1301 && !u.attrs[0]);
    assert_ok(tn_operators_at(o, 2, &u));
    assert_string_equal(u.node, "no");
    assert_string_equal(u.why, "there is no operator NoSuchOp");
    assert_string_equal(u.attrs[1], "b");
    tn_operators_destroy(o);
    tn_operators_destroy(NULL);
}

static void breaks(void **state)
{
    tn_break one = {.struct_size = TN_SIZE(tn_break)};
    tn_known known = {.name = "x", .ndim = 2, .shape = f.shape, .dtype = TN_F32};
    tn_inferred *shapes = NULL;
    tn_breaks *b = NULL;

    (void)state;
    assert_ok(tn_symbol_infer(f.net, 1, &known, 0, &shapes));
    assert_fails(tn_graph_breaks(NULL, f.net, NULL, NULL, &b), TN_E_ARG);
    assert_fails(tn_graph_breaks(f.ctx, NULL, NULL, NULL, &b), TN_E_ARG);
    assert_fails(tn_graph_breaks(f.ctx, f.net, NULL, NULL, NULL), TN_E_ARG);
    assert_fails(tn_graph_breaks(f.other, f.net, NULL, NULL, &b), TN_E_ARG);
    assert_fails(tn_graph_breaks(f.ctx, f.x, shapes, NULL, &b), TN_E_ARG);
    assert_fails(tn_graph_breaks(f.ctx, f.net, shapes, f.foreign_device, &b), TN_E_ARG);
    assert_null(b);
    assert_ok(tn_graph_breaks(f.ctx, f.net, shapes, NULL, &b));
    assert_int_equal(tn_breaks_count(b), 0);
    assert_int_equal(tn_breaks_count(NULL), 0);
    assert_fails(tn_breaks_at(NULL, 0, &one), TN_E_ARG);
    assert_fails(tn_breaks_at(b, 0, NULL), TN_E_ARG);
    assert_fails(tn_breaks_at(b, 0, &one), TN_E_ARG);
    tn_breaks_destroy(b);
    tn_breaks_destroy(NULL);
    tn_inferred_destroy(shapes);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

static tn_status nothing(tn_function_run *run, tn_array *const *in, tn_array **out)
{
    (void)run;
    (void)in;
    (void)out;
    return TN_OK;
}

static void functions(void **state)
{
    static const char *const names[] = {"x", NULL};
    const tn_function fine = {.struct_size = TN_SIZE(tn_function), .forward = nothing};
    const tn_op op = {.struct_size = (uint32_t)TN_END(tn_op, gradient),
                      .version = 1,
                      .exec = TN_EXEC_HOST,
                      .name = "test_nothing",
                      .inputs = names,
                      .outputs = names};
    tn_function bad = fine;
    tn_function_run run = {.struct_size = TN_SIZE(tn_function_run), .ctx = f.ctx};
    tn_array *const in[] = {f.a, NULL}, *const foreign[] = {f.foreign};
    tn_array *out[2] = {NULL};
    tn_op other = op;

    (void)state;
    assert_fails(tn_function_call(NULL, &fine, 1, in, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, NULL, 1, in, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, NULL, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, in, 1, NULL), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 2, in, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, foreign, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, in, 0, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, in, TN_FUNCTION_OUTPUTS_MAX + 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, HUGE_COUNT, in, 1, out), TN_E_ARG);
    assert_fails(tn_function_call(f.ctx, &fine, 1, in, 1, out), TN_E_ARG); /* it makes no output */
    bad.struct_size = 0;
    assert_fails(tn_function_call(f.ctx, &bad, 1, in, 1, out), TN_E_ARG);
    bad = fine;
    bad.reserved = 1;
    assert_fails(tn_function_call(f.ctx, &bad, 1, in, 1, out), TN_E_ARG);
    bad = fine;
    bad.forward = NULL;
    assert_fails(tn_function_call(f.ctx, &bad, 1, in, 1, out), TN_E_ARG);
    assert_null(out[0]);
    assert_fails(tn_function_save(NULL, 1, in), TN_E_ARG);
    assert_fails(tn_function_save(&run, 1, NULL), TN_E_ARG);
    assert_fails(tn_function_save(&run, 1, in), TN_E_STATE); /* of nobody's call */
    assert_fails(tn_function_register(NULL, &op, &fine), TN_E_ARG);
    assert_fails(tn_function_register(f.ctx, NULL, &fine), TN_E_ARG);
    assert_fails(tn_function_register(f.ctx, &op, NULL), TN_E_ARG);
    assert_fails(tn_function_register(f.ctx, &op, &bad), TN_E_ARG);
    other.exec = TN_EXEC_KERNEL;
    assert_fails(tn_function_register(f.ctx, &other, &fine), TN_E_ARG);
    other = op;
    other.mutates = 1;
    assert_fails(tn_function_register(f.ctx, &other, &fine), TN_E_ARG);
    other = op;
    other.name = "dot";
    assert_fails(tn_function_register(f.ctx, &other, &fine), TN_E_KEY);
    other.name = "not good";
    assert_fails(tn_function_register(f.ctx, &other, &fine), TN_E_ARG);
    other.struct_size = 8;
    assert_fails(tn_function_register(f.ctx, &other, &fine), TN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabulary),
        cmocka_unit_test(sites),
        cmocka_unit_test(tuples),
        cmocka_unit_test(functions),
        cmocka_unit_test(calls),
        cmocka_unit_test(gradients),
        cmocka_unit_test(symbols_composed),
        cmocka_unit_test(symbols_asked),
        cmocka_unit_test(parameters),
        cmocka_unit_test(programs),
        cmocka_unit_test(symbol_views),
        cmocka_unit_test(served_views),
        cmocka_unit_test(program_views),
        cmocka_unit_test(breaks),
        cmocka_unit_test(operators_of_a_file),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
