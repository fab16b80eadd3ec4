/* Pass dead on programs made by hand: what reads a saved block is no maker of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compile/code.h"

enum { DATA, RESULT, BLOCK, UNREAD, GRADIENT, VALUES };

static const tn_op op = {.name = "made"};
static const tni_opdef def = {.op = &op};

static void value_push(tni_code *c, uint32_t place, uint32_t made_by)
{
    const tni_value v = {
        .root = (uint32_t)c->values.count, .def = made_by, .place = place, .again = TNI_NONE};

    assert_int_equal(tni_vec_push(&c->values, &v), TN_OK);
}

/* One input, one output. */
static void code_push(tni_code *c, uint32_t in, uint32_t out, uint16_t flags)
{
    const tni_instruction made = {.def = &def,
                                  .first_operand = (uint32_t)c->operands.count,
                                  .in_count = 1,
                                  .out_count = 1,
                                  .random = TNI_NONE,
                                  .workspace = TNI_NONE,
                                  .saved = BLOCK,
                                  .flags = flags};
    const uint8_t modes[] = {TN_MODE_NONE, TN_MODE_WRITE};
    const uint32_t operands[] = {in, out};

    for (int k = 0; k < 2; k++) {
        assert_int_equal(tni_vec_push(&c->operands, &operands[k]), TN_OK);
        assert_int_equal(tni_vec_push(&c->modes, &modes[k]), TN_OK);
    }
    assert_int_equal(tni_vec_push(&c->code, &made), TN_OK);
}

/* A forward that saves a block, a backward that nobody needs and one that does: both read the block. */
static void readers_of_a_block(void **state)
{
    const uint16_t reads = TNI_CODE_BACKWARD | TNI_CODE_READS_SAVED;
    tni_program p = {.graph = NULL};
    uint32_t code_of[1];
    tni_code c = {.p = &p, .code_of = code_of};

    (void)state;
    tni_vec_init(&c.values, sizeof(tni_value), 16);
    tni_vec_init(&c.code, sizeof(tni_instruction), 16);
    tni_vec_init(&c.operands, sizeof(uint32_t), 16);
    tni_vec_init(&c.modes, 1, 16);
    value_push(&c, TNI_PLACE_PORT, TNI_NONE);
    value_push(&c, TNI_PLACE_NONE, 0);
    value_push(&c, TNI_PLACE_NONE, 0);
    value_push(&c, TNI_PLACE_NONE, 1);
    value_push(&c, TNI_PLACE_PORT, 2);
    assert_int_equal(c.values.count, VALUES);
    code_push(&c, DATA, RESULT, 0);
    code_push(&c, DATA, UNREAD, reads);
    code_push(&c, DATA, GRADIENT, reads);
    assert_int_equal(tni_pass_dead(&c), TN_OK);
    assert_int_equal(c.rewrites, 1);
    assert_int_equal(c.code.count, 2); /* the block is made, and read once */
    assert_int_equal(tni_code_operands(&c, tni_code_at(&c, 0))[1], RESULT);
    assert_int_equal(tni_code_operands(&c, tni_code_at(&c, 1))[1], GRADIENT);
    tni_vec_fini(&c.values);
    tni_vec_fini(&c.code);
    tni_vec_fini(&c.operands);
    tni_vec_fini(&c.modes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_of_a_block)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
