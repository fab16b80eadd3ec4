/*
 * Family random: Philox against the known answers of its authors' distribution (Random123, kat_vectors),
 * moments of the draws, dropout's share and gradient, equal bits for all threads (the runner's forms).
 */
#include <math.h>

#include "support/op_case.h"
#include "tenon/plugin/random.h"

static void philox_known(void **state)
{
    static const struct {
        uint64_t key, high, low;
        uint32_t out[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];

        tn_philox(known[i].key, known[i].high, known[i].low, out);
        for (int k = 0; k < 4; k++)
            assert_int_equal(out[k], known[i].out[k]);
    }
}

/* Two devices, two draws, two seeds: nothing in common; the same again: the same. */
static void draws_differ(void **state)
{
    const uint64_t step = 5;
    const tn_rng base = {.seed = 1, .step = &step}, device = {.seed = 1, .stream = 1, .step = &step},
                 seed = {.seed = 2, .step = &step}, next = {.seed = 1, .step = &step, .step_add = 1};
    const tn_draw a = tn_draw_of(&base), b = tn_draw_of(&device), c = tn_draw_of(&seed),
                  d = tn_draw_of(&next);
    double sum = 0, squares = 0;
    const int count = 20000;

    (void)state;
    for (uint64_t k = 0; k < 100; k++) {
        const double u = tn_draw_unit(&a, k);

        assert_true(u == tn_draw_unit(&a, k));
        assert_true(u != tn_draw_unit(&b, k) && u != tn_draw_unit(&c, k) && u != tn_draw_unit(&d, k));
    }
    for (int k = 0; k < count; k++) {
        const double u = tn_draw_unit(&a, (uint64_t)k);

        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
    }
    assert_true(fabs(sum / count - 0.5) < 0.01);
    assert_true(fabs(squares / count - 1.0 / 3) < 0.01);
}

static const tn_op_case uniform_cases[] = {
    {"float", "shape=(3,50)", .flags = TN_CASE_NO_GRAD},
    {"many", "low=-1 high=2 shape=70000 dtype=float64", .flags = TN_CASE_NO_GRAD},
    {"point", "low=2 high=2 shape=2", .out = {"f32[2] 2 2"}, .flags = TN_CASE_NO_GRAD},
    {"half", "shape=5 dtype=float16", .flags = TN_CASE_NO_GRAD},
    {"default", "", .flags = TN_CASE_NO_GRAD},
    {"empty", "shape=0", .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"integers", "shape=2 dtype=int32", .status = TN_E_DTYPE},
};
TN_OP_TESTS(uniform, "_random_uniform", uniform_cases)

static const tn_op_case normal_cases[] = {
    {"float", "shape=(3,50)", .flags = TN_CASE_NO_GRAD},
    {"many", "loc=3 scale=2 shape=70000 dtype=float64", .flags = TN_CASE_NO_GRAD},
    {"point", "loc=3 scale=0 shape=2", .out = {"f32[2] 3 3"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(normal, "_random_normal", normal_cases)

static const tn_op_case dropout_cases[] = {
    {"evaluate", "", .in = {"f32[4] 1 2 3 4"}, .out = {"f32[4] 1 2 3 4"}},
    {"train", "", .in = {"f64[5,6] random"}, .flags = TN_CASE_TRAIN},
    {"always", "p=0.3 mode=always", .in = {"f64[5,6] random"}},
    {"all", "p=1", .in = {"f32[3] 1 2 3"}, .out = {"f32[3] 0 0 0"}, .flags = TN_CASE_TRAIN | TN_CASE_NO_GRAD},
    {"none", "p=0", .in = {"f32[3] 1 2 3"}, .out = {"f32[3] 1 2 3"}, .flags = TN_CASE_TRAIN},
    {"shared", "p=0.5 axes=(1,)", .in = {"f64[6,5] random"}, .flags = TN_CASE_TRAIN},
    {"many", "", .in = {"f32[70000] random"}, .flags = TN_CASE_TRAIN | TN_CASE_NO_GRAD},
    {"above", "p=1.5", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR},
    {"below", "p=-0.1", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR},
    {"axis", "axes=2", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(dropout, "Dropout", dropout_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(philox_known), cmocka_unit_test(draws_differ),
                                       TN_OP_TEST(uniform), TN_OP_TEST(normal), TN_OP_TEST(dropout)};

    return tn_op_main(tests);
}
