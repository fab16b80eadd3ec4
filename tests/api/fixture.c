#include "api/fixture.h"

fixture f;

int fixture_open(void **state)
{
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = "FullyConnected",
                                 .name = "fc",
                                 .attrs = LIST("num_hidden", "4"),
                                 .in = &f.x};

    (void)state;
    f = (fixture){.shape = {2, 3}};
    f.ctx = test_open(NULL);
    f.other = test_open(NULL);
    assert_ok(tn_array_zeros(f.ctx, TN_F32, 2, f.shape, NULL, &f.a));
    assert_ok(tn_array_zeros(f.ctx, TN_F32, 1, (int64_t[]){4}, NULL, &f.b));
    assert_ok(tn_array_zeros(f.other, TN_F32, 2, f.shape, NULL, &f.foreign));
    assert_ok(tn_device_get(f.other, NULL, &f.foreign_device));
    assert_ok(tn_symbol_variable(f.ctx, "x", &f.x));
    assert_ok(tn_symbol_variable(f.other, "x", &f.foreign_symbol));
    assert_ok(tn_symbol_op(f.ctx, &call, &f.net));
    return 0;
}

int fixture_close(void **state)
{
    (void)state;
    tn_array_release(f.a);
    tn_array_release(f.b);
    tn_array_release(f.foreign);
    tn_symbol_release(f.x);
    tn_symbol_release(f.net);
    tn_symbol_release(f.foreign_symbol);
    test_close(f.ctx);
    test_close(f.other);
    return 0;
}
