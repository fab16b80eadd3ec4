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

static const tn_op_case interval_cases[] = {
    {"wide", "low=-1.7e308 high=1.7e308 shape=100 dtype=float64", .flags = TN_CASE_NO_GRAD},
    {"short", "low=1 high=1.0009765625 shape=3000 dtype=float16", .out = {"f16[3000] fill:1"},
     .flags = TN_CASE_NO_GRAD, .tolerance = 1e-9}, /* not high, to which half of them are nearer */
    {"below 0", "low=-1.0078125 high=-1 shape=3000 dtype=bfloat16", .out = {"bf16[3000] fill:-1.0078125"},
     .flags = TN_CASE_NO_GRAD, .tolerance = 1e-9},
};
TN_OP_TESTS(interval, "_random_uniform", interval_cases)

static const tn_op_case gamma_cases[] = {
    {"many", "alpha=0.3 beta=2 shape=(7,10001) dtype=float64", .flags = TN_CASE_NO_GRAD},
    {"short", "alpha=3 shape=50 dtype=bfloat16", .flags = TN_CASE_NO_GRAD},
    {"smallest", "alpha=4.9e-324 shape=50", .out = {"f32[50] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"tiny", "alpha=1e-300 shape=50", .out = {"f32[50] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"huge", "alpha=1e300 beta=1e-300 shape=50 dtype=float64", .out = {"f64[50] fill:1"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(gamma, "_random_gamma", gamma_cases)

static const tn_op_case exponential_cases[] = {
    {"many", "lam=0.3 shape=70000", .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(exponential, "_random_exponential", exponential_cases)

static const tn_op_case poisson_cases[] = {
    {"few", "lam=0.3 shape=70000", .flags = TN_CASE_NO_GRAD},
    {"many", "lam=1e5 shape=70000", .flags = TN_CASE_NO_GRAD},
    {"none", "lam=0 shape=(2,2)", .out = {"f32[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"smallest", "lam=4.9e-324 shape=50", .out = {"f32[50] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"huge", "lam=1e20 shape=50 dtype=float64", .out = {"f64[50] fill:1e20"}, .flags = TN_CASE_NO_GRAD},
    {"largest", "lam=1.7e308 shape=50 dtype=float64", .out = {"f64[50] fill:1.7e308"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(poisson, "_random_poisson", poisson_cases)

static const tn_op_case negative_cases[] = {
    {"many", "k=3 p=0.1 shape=70000", .flags = TN_CASE_NO_GRAD},
    {"sure", "k=3 p=1 shape=5", .out = {"f32[5] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"no failure", "k=0 p=0.5 shape=5", .out = {"f32[5] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"rare", "k=1 p=1e-300 shape=5", .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(negative, "_random_negative_binomial", negative_cases)

static const tn_op_case dispersed_cases[] = {
    {"many", "mu=10 alpha=0.7 shape=70000", .flags = TN_CASE_NO_GRAD},
    {"none", "mu=0 alpha=3 shape=5", .out = {"f32[5] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"subnormal", "mu=1e12 alpha=4.9e-324 shape=5 dtype=float64", .out = {"f64[5] fill:1e12"},
     .flags = TN_CASE_NO_GRAD, .tolerance = 1e-5},
    {"small", "mu=1e12 alpha=1e-200 shape=5 dtype=float64", .out = {"f64[5] fill:1e12"},
     .flags = TN_CASE_NO_GRAD, .tolerance = 1e-5},
    {"huge", "mu=1e300 alpha=1e300 shape=50", .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(dispersed, "_random_generalized_negative_binomial", dispersed_cases)

static const tn_op_case like_cases[] = {
    {"shape", "mu=3 alpha=1", .in = {"f32[2,3,4] fill:nan"}, .flags = TN_CASE_NO_GRAD},
    {"many", "mu=3 alpha=1", .in = {"f16[70000] fill:1"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"integers", "", .in = {"i32[3] 1 2 3"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(like, "_random_generalized_negative_binomial_like", like_cases)

static const tn_op_case randint_cases[] = {
    {"many", "low=-3 high=9 shape=70000", .flags = TN_CASE_NO_GRAD},
    {"one", "low=7 high=8 shape=4 dtype=int64", .out = {"i64[4] 7 7 7 7"}, .flags = TN_CASE_NO_GRAD},
    {"all", "low=-9223372036854775808 high=9223372036854775807 shape=40 dtype=int64",
     .flags = TN_CASE_NO_GRAD},
    {"bytes", "low=0 high=256 shape=400 dtype=uint8", .flags = TN_CASE_NO_GRAD},
    {"missing", "low=3", .status = TN_E_ATTR, .message = "high"},
    {"floats", "low=0 high=3 dtype=float32", .status = TN_E_DTYPE},
};
TN_OP_TESTS(randint, "_random_randint", randint_cases)

static const tn_op_case sample_cases[] = {
    {"each", "shape=(2,3)", .in = {"f64[2] 1 2", "f64[2] 3 4"}, .flags = TN_CASE_NO_GRAD},
    {"one each", "", .in = {"f32[2,3] fill:1", "f32[2,3] fill:2"}, .flags = TN_CASE_NO_GRAD},
    {"many", "shape=700", .in = {"f32[101] random:1:3", "f32[101] random:1:3"}, .flags = TN_CASE_NO_GRAD},
    {"integers", "shape=3 dtype=float16", .in = {"i64[2] 1 2", "i64[2] 3 4"}, .flags = TN_CASE_NO_GRAD},
    {"no dimension", "shape=3", .in = {"f32[] 1", "f32[] 3"}, .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"outside", "shape=2", .in = {"f32[7] 0 -1 nan inf 1 1 1", "f32[7] 1 1 1 1 0 -inf inf"},
     .out = {"f32[7,2] fill:nan"}, .flags = TN_CASE_NO_GRAD},
    {"nothing", "shape=(0,)", .in = {"f32[2] 1 2", "f32[2] 3 4"}, .out = {"f32[2,0]"},
     .flags = TN_CASE_NO_GRAD},
    {"none", "shape=(2,)", .in = {"f32[0]", "f32[0]"}, .out = {"f32[0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"shapes", "shape=2", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"types", "shape=2", .in = {"f32[2] 1 2", "f64[2] 1 2"}, .status = TN_E_DTYPE},
    {"whole numbers", "dtype=int32", .in = {"f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_DTYPE},
    {"negative", "shape=-1", .in = {"f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(sample, "_sample_gamma", sample_cases)

static const tn_op_case sample_poisson_cases[] = {
    {"outside", "shape=2", .in = {"f64[4] -1 nan inf -inf"}, .out = {"f32[4,2] fill:nan"},
     .flags = TN_CASE_NO_GRAD},
    {"large and small", "shape=2 dtype=float64", .in = {"f64[3] 0 4.9e-324 1.7e308"},
     .out = {"f64[3,2] 0 0 0 0 1.7e308 1.7e308"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(sample_poisson, "_sample_poisson", sample_poisson_cases)

static const tn_op_case sample_negative_cases[] = {
    {"outside", "shape=2", .in = {"f64[6] 1 1 1 -1 nan inf", "f64[6] 0 1.1 nan 0.5 0.5 0.5"},
     .out = {"f32[6,2] fill:nan"}, .flags = TN_CASE_NO_GRAD},
    {"real", "shape=(50,50)", .in = {"f64[2] 0.1 3.7", "f64[2] 0.5 0.3"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(sample_negative, "_sample_negative_binomial", sample_negative_cases)

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(philox_known),
                                       cmocka_unit_test(draws_differ),
                                       TN_OP_TEST(uniform),
                                       TN_OP_TEST(normal),
                                       TN_OP_TEST(interval),
                                       TN_OP_TEST(gamma),
                                       TN_OP_TEST(exponential),
                                       TN_OP_TEST(poisson),
                                       TN_OP_TEST(negative),
                                       TN_OP_TEST(dispersed),
                                       TN_OP_TEST(like),
                                       TN_OP_TEST(randint),
                                       TN_OP_TEST(sample),
                                       TN_OP_TEST(sample_poisson),
                                       TN_OP_TEST(sample_negative),
                                       TN_OP_TEST(dropout)};

    return tn_op_main(tests);
}
